"""Revolute joint: rotation about one axis, the same in F and in M."""

from .axis_joint import AxisJoint


class RevoluteJoint(AxisJoint):
    """q: the angle in rad, v: its rate."""

    kind = "revolute"
    position_suffixes = ("q",)
    velocity_suffixes = ("w",)
    angular_velocities = (True,)
    turns = True

    @staticmethod
    def advance(pitch):
        del pitch
