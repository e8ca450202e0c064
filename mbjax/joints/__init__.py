"""Kinds of joints, one a file: each answers the questions of `abstract_joint.py` in the same order."""

from .abstract_joint import AbstractJoint as AbstractJoint
from .axis_joint import AxisJoint as AxisJoint
from .ball_rpy import BallRpyJoint as BallRpyJoint
from .planar import PlanarJoint as PlanarJoint
from .prismatic import PrismaticJoint as PrismaticJoint
from .quaternion_floating import QuaternionFloatingJoint as QuaternionFloatingJoint
from .revolute import RevoluteJoint as RevoluteJoint
from .rpy_floating import RpyFloatingJoint as RpyFloatingJoint
from .screw import ScrewJoint as ScrewJoint
from .universal import UniversalJoint as UniversalJoint
from .weld import WeldJoint as WeldJoint

JOINT_KINDS: dict[str, type[AbstractJoint]] = {
    joint.kind: joint
    for joint in (
        RevoluteJoint,
        PrismaticJoint,
        ScrewJoint,
        UniversalJoint,
        BallRpyJoint,
        PlanarJoint,
        WeldJoint,
        QuaternionFloatingJoint,
        RpyFloatingJoint,
    )
}
