"""Springs in joints, whatever format they are written in."""

from mbjax.errors import ParseError
from mbjax.forces import PrismaticSpring, RevoluteSpring

from .robot_records import ForceElementRecord, JointRecord

SPRINGS = {"revolute": (RevoluteSpring, "nominal_angle"), "prismatic": (PrismaticSpring, "nominal_position")}


def joint_spring(joint: JointRecord, nominal: float, stiffness: float) -> ForceElementRecord:
    """tau = stiffness (nominal - q) on a revolute or prismatic joint, in N m or N."""
    if joint.joint_class.kind not in SPRINGS:
        file, _, line = joint.place.rpartition(":")
        message = f"joint '{joint.name}' is {joint.joint_class.kind}: springs stand in revolute and prismatic joints."
        raise ParseError(message, file=file, line=int(line))
    element_class, name_of_nominal = SPRINGS[joint.joint_class.kind]
    options = {"joint": joint.name, name_of_nominal: nominal, "stiffness": stiffness}
    return ForceElementRecord("", joint.line, joint.place, element_class, options)
