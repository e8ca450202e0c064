"""Warns of limits of joints that look like degrees, where radians are meant."""

import math
from collections.abc import Sequence

from mbjax.joints import RevoluteJoint
from mbjax.model import KEPT

from ..notes.load_notes import LoadNotes
from .robot_records import RobotRecord

PLAUSIBLE = 4.0 * math.pi  # two turns; joints with cables or hoses have no more
LARGEST_IN_DEGREES = 720.0  # files write larger limits for none
WARNING = "limits of joints look like degrees, but are taken as radians, as they stand"


def note_limits_in_degrees(robots: Sequence[RobotRecord], notes: LoadNotes) -> None:
    """Adds a report entry for each revolute joint whose limits look like degrees, and one warning for all."""
    for robot in robots:
        for joint in robot.joints:
            limits = joint.options.get("position_limits")
            if limits is None or not issubclass(joint.joint_class, RevoluteJoint):
                continue
            lower, upper = (float(limit) for limit in limits)
            largest = max((abs(limit) for limit in (lower, upper) if math.isfinite(limit)), default=0.0)
            if PLAUSIBLE < largest <= LARGEST_IN_DEGREES:
                found = f"limits {lower:g} to {upper:g} rad"
                right = " to ".join(f"{math.radians(limit):.4g}" for limit in (lower, upper))
                message = (
                    f"{found} are {largest / (2.0 * math.pi):.0f} turns; if they are in degrees, write {right} rad"
                )
                notes.add(KEPT, f"joint '{joint.name}'", message, joint.place)
                notes.warn(WARNING, f"joint '{joint.name}': {found}")
