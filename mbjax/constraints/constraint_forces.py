"""Spatial forces of constraints on bodies: those of λ, and those of the springs of compliant constraints."""

from jaxtyping import Array, Float

from mbjax.execution.arrays import take
from mbjax.kinematics import PositionKinematics, VelocityKinematics
from mbjax.model import DistanceConstraint, MultibodyModel
from mbjax.spatial import component_algebra as ca

from .bound_constraint_set import BoundConstraintSet
from .pair_rows import PAIR_KINDS, calc_pair_forces, calc_pair_rows
from .relative_motion import stack_columns


def calc_constraint_forces(
    model: MultibodyModel, cset: BoundConstraintSet, position: PositionKinematics, multipliers: Float[Array, " nc"]
) -> Float[Array, "nb 6"]:
    """Spatial forces F_Bo_W of λ on every body and the world; couplers, locks and custom constraints act on joints."""
    rows, between_frames, start = [], [], 0
    for constraint in cset.constraints:
        if type(constraint) in PAIR_KINDS and constraint.num_rows:
            between_frames.append(constraint)
            rows += range(start, start + constraint.num_rows)
        start += constraint.num_rows
    if not between_frames:
        return model.zeros(model.num_bodies, 6)
    pair_rows = calc_pair_rows(model, between_frames, position, None, None)
    return ca.transpose(calc_pair_forces(model, pair_rows, take(multipliers, rows, 0)))


def calc_compliant_forces(
    model: MultibodyModel,
    cset: BoundConstraintSet,
    position: PositionKinematics,
    velocity: VelocityKinematics,
    v: Float[Array, " nv"],
) -> Float[Array, "nb 6"]:
    """Spatial forces F_Bo_W of the springs and dampers of active distance constraints with finite stiffness.

    λ = -stiffness (|p_PQ| - distance) - damping d|p_PQ|/dt.
    """
    springs = [c for c in cset.constraints if isinstance(c, DistanceConstraint) and not c.is_rigid]
    if not springs:
        return model.zeros(model.num_bodies, 6)
    rows = calc_pair_rows(model, springs, position, velocity, v)
    assert rows.rate is not None
    stiffness, damping, active = (
        stack_columns([getattr(c, x) for c in springs], 0) for x in ("stiffness", "damping", "active")
    )
    multipliers = -active * (stiffness * rows.error + damping * rows.rate)
    return ca.transpose(calc_pair_forces(model, rows, multipliers))
