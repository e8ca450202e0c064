"""What a model's report says of limits that joints have and that no step enforces."""

from collections.abc import Sequence

import numpy as np

from mbjax.joints import AbstractJoint
from mbjax.model import RECORDED, ReportEntry


def limits_not_enforced(joints: Sequence[AbstractJoint], is_discrete: bool) -> list[ReportEntry]:
    """One report entry for limits of positions, and one for those of velocities and accelerations, where there are any.

    A step keeps position limits of joints with one degree of freedom only, and no other limits; a continuous plant
    keeps none.
    """
    return [*_position_limits(joints, is_discrete), *_limits_of_motion(joints)]


def _position_limits(joints: Sequence[AbstractJoint], is_discrete: bool) -> list[ReportEntry]:
    limited = [j for j in joints if np.isfinite(j.position_limits).any()]
    loose = [j for j in limited if j.num_positions > 1 or not is_discrete]
    if not loose:
        return []
    names = [f"'{j.name}' ({j.kind})" for j in loose]
    why = (
        "not enforced in a step: no force keeps a joint with several degrees of freedom within them"
        if is_discrete
        else "not enforced, as the plant is continuous; a time_step above 0 makes one whose steps keep those of joints "
        "with one degree of freedom"
    )
    message = (
        f"kept for random states and inverse kinematics, {why}: {', '.join(names[:8])}{', …' if len(names) > 8 else ''}"
    )
    return [ReportEntry(RECORDED, "position limits", message)]


def _limits_of_motion(joints: Sequence[AbstractJoint]) -> list[ReportEntry]:
    count = {
        what: sum(bool(np.isfinite(getattr(joint, f"{what}_limits")).any()) for joint in joints)
        for what in ("velocity", "acceleration")
    }
    found = [what for what, number in count.items() if number]
    if not found:
        return []
    number = max(count.values())
    message = (
        f"recorded, not enforced: no force keeps {'the joint' if number == 1 else f'the {number} joints'} within them; "
        f"model.{found[0]}_upper_limits has them, for a controller or a planner to respect"
    )
    return [ReportEntry(RECORDED, f"{' and '.join(found)} limits", message)]
