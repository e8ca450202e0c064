"""Errors, Jacobian and bias of all rows of a set: the one place that turns kinds of constraints into rows.

Axes inside `for_worlds` are rows first, then velocities, then worlds if there are several.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.execution.arrays import take
from mbjax.kinematics import PositionKinematics, VelocityKinematics
from mbjax.model import (
    AbstractConstraint,
    CouplerConstraint,
    CustomConstraint,
    LockConstraint,
    MultibodyModel,
)
from mbjax.spatial import component_algebra as ca

from .bound_constraint_set import BoundConstraintSet as BoundConstraintSet
from .bound_constraint_set import bound_constraints as bound_constraints
from .coupler import coupler_rows
from .custom import custom_rows
from .joint_rows import JointRows
from .lock import lock_rows
from .pair_rows import PAIR_KINDS, calc_pair_jacobian, calc_pair_rows

JOINT_ROWS = {CouplerConstraint: coupler_rows, LockConstraint: lock_rows, CustomConstraint: custom_rows}


class ConstraintTerms(NamedTuple):
    """Terms of each row's equation G vdot = gamma + stabilization. Without v, terms that depend on it are zero."""

    error: Float[Array, " nc"]
    velocity_error: Float[Array, " nc"]  # G v
    G: Float[Array, "nc nv"]
    gamma: Float[Array, " nc"]  # -(dG/dt) v
    stabilization: Float[Array, " nc"]  # -2/T velocity_error - 1/T² error
    active: Float[Array, " nc"]  # 1 or 0
    v_plus: Float[Array, " nc"]


def calc_constraint_terms(
    model: MultibodyModel,
    cset: BoundConstraintSet,
    position: PositionKinematics,
    velocity: VelocityKinematics | None,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"] | None,
) -> ConstraintTerms:
    """Terms of all rows, in the order of the set."""
    rows = calc_rows(model, cset.constraints, position, velocity, q, v)
    rate = jnp.zeros_like(rows.error) if rows.rate is None else rows.rate
    gain = 1.0 / per_row(model, cset.constraints, [c.stabilization_time for c in cset.constraints])
    return ConstraintTerms(
        error=rows.error,
        velocity_error=rate,
        G=rows.G,
        gamma=jnp.zeros_like(rows.error) if rows.bias is None else -rows.bias,
        stabilization=-2.0 * gain * rate - gain * gain * rows.error,
        active=per_row(model, cset.constraints, [c.active for c in cset.constraints]),
        v_plus=per_row(model, cset.constraints, [c.v_plus for c in cset.constraints]),
    )


def calc_rows(
    model: MultibodyModel,
    constraints: Sequence[AbstractConstraint],
    position: PositionKinematics,
    velocity: VelocityKinematics | None,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"] | None,
) -> JointRows:
    """Errors, Jacobian and rates of all rows. Rows between frames are computed together, the others one by one."""
    places = [(i, c) for i, c in enumerate(constraints) if c.num_rows]
    between_frames = [(i, c) for i, c in places if type(c) in PAIR_KINDS]
    parts, owners = [], []
    if between_frames:
        parts.append(rows_between_frames(model, [c for _, c in between_frames], position, velocity, v))
        owners += [i for i, c in between_frames for _ in range(c.num_rows)]
    for i, constraint in places:
        if type(constraint) not in PAIR_KINDS:
            parts.append(JOINT_ROWS[type(constraint)](constraint, model, q, v if velocity is not None else None))
            owners += [i] * constraint.num_rows
    if not parts:
        none = model.zeros(0)
        return JointRows(none, model.zeros(0, model.num_velocities), none, none)
    order = np.argsort(np.array(owners), kind="stable")

    def joined(answers: list[Any]) -> Any:
        return None if answers[0] is None else take(ca.concatenate(answers, 0), order, 0)

    return JointRows(*(joined([getattr(part, x) for part in parts]) for x in ("error", "G", "rate", "bias")))


def rows_between_frames(
    model: MultibodyModel,
    constraints: Sequence[AbstractConstraint],
    position: PositionKinematics,
    velocity: VelocityKinematics | None,
    v: Float[Array, " nv"] | None,
) -> JointRows:
    """Rows of contacts, loops, balls, welds and distances."""
    rows = calc_pair_rows(model, constraints, position, velocity, v)
    return JointRows(rows.error, calc_pair_jacobian(model, position, rows), rows.rate, rows.bias)


def per_row(
    model: MultibodyModel, constraints: Sequence[AbstractConstraint], values: Sequence[Array]
) -> Float[Array, " nc"]:
    """Spreads values over all rows; each constraint has one value, or one for each of its rows."""
    parts = [
        jnp.broadcast_to(x, (c.num_rows, *x.shape[x.ndim - model.num_world_axes :]))
        for c, x in zip(constraints, values, strict=True)
        if c.num_rows
    ]
    return ca.concatenate(parts, 0) if parts else model.zeros(0)
