"""Derivative rule of inverse dynamics: tangents of the torques, and in kernels a recursion for the cotangent."""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.execution.derivative_rules import fitting, linear_map
from mbjax.kinematics import calc_position_kinematics, qdot_to_velocity
from mbjax.linear_algebra import products_of_columns
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.topology import TreeTopology

from ..explicit_forces import calc_fixed_weights
from ..newton_euler.sums import calc_inverse_dynamics, calc_motion_and_forces
from ..records.direction_rows import PlacedRows
from ..records.tree_motion import TreeMotion
from .cotangent_by_model import calc_model_change
from .cotangent_inward import calc_torque_cotangent, has_torque_cotangent
from .jacobian import TorqueColumns, calc_all_columns


class Fixed(NamedTuple):
    """Point at which the derivative is taken: model, q, v and vdot."""

    model: MultibodyModel
    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    vdot: Float[Array, " nv"]
    placed: PlacedRows | None = None  # known rows, which the recursion reuses


class Moved(eqx.Module):
    """Tangents of the model, q, v and vdot: None where nothing moves."""

    model: Any
    q: Float[Array, " nq"] | None
    v: Float[Array, " nv"] | None
    vdot: Float[Array, " nv"] | None


def torque_derivative_rule(
    motion: TreeMotion,
    vdot: Float[Array, " nv"],
    F_applied_T: Float[Array, "6 nm"] | None,
    only_weights: bool,
    dmotion: Any,
    dvdot: Float[Array, " nv"] | None,
    dF_applied_T: Float[Array, "6 nm"] | None,
    placed: PlacedRows | None = None,
) -> Float[Array, " nv"] | None:
    """dtau of `calc_inverse_dynamics` along tangents; None where nothing moves."""
    moved = Moved(dmotion.model, dmotion.q, dmotion.v, dvdot)
    if (only_weights or F_applied_T is None) and has_torque_cotangent(motion.model) and jax.tree.leaves(moved):
        fixed = Fixed(motion.model, motion.q, motion.v, vdot, placed)
        return calc_change_under_weights(fixed, moved, F_applied_T is not None)
    arguments, tangents = (motion, vdot, F_applied_T), (dmotion, dvdot, dF_applied_T)
    return eqx.filter_jvp(calc_inverse_dynamics, arguments, tangents)[1]


def calc_change_under_weights(fixed: Fixed, moved: Moved, gravity: bool) -> Float[Array, " nv"]:
    """dtau where only weights act, or without `gravity` nothing; for trees that have a recursive cotangent."""
    like = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), moved)

    def change(fixed: Fixed, moved: Moved) -> Array:
        def required(model: MultibodyModel, q: Array, v: Array, vdot: Array) -> Array:
            motion, F_T = calc_motion_and_forces(model, q, v, None, gravity)
            return calc_inverse_dynamics(motion, vdot, F_T)

        tau, change = eqx.filter_jvp(required, fixed[:4], (moved.model, moved.q, moved.v, moved.vdot))
        return jnp.zeros_like(tau) if change is None else change

    def pull_back(fixed: Fixed, weight: Array) -> Moved:
        model, q, v, vdot, placed = fixed
        of_model = bool(jax.tree.leaves(like.model))
        found = calc_torque_cotangent(model, q, v, vdot, weight, gravity, of_model, placed)
        by_model = like.model
        if of_model:
            by_model = pull_back_to_model(model, found.by_model, found.by_gravity, like.model)
        by_state = pull_back_to_q(model, q, found.q), found.v, found.vdot
        state = zip((like.q, like.v, like.vdot), by_state, strict=True)
        return Moved(by_model, *(None if x is None else y for x, y in state))

    many = partial(push_many, gravity), partial(pull_many, gravity, like), enough(fixed.model.topology)
    many = None if jax.tree.leaves(like.model) else many
    return linear_map(change, pull_back, fixed, moved, shape_of_torques(fixed.v, (fixed, moved)), many)


def shape_of_torques(like: Float[Array, " nv"], others: Any) -> tuple[int, ...]:
    """Shape of an array like `like`, with the axis of worlds that it and the others broadcast to."""
    worlds = (x.shape[x.ndim - like.ndim + 1 :] for x in jax.tree.leaves((like, others)))
    return (like.shape[0], *np.broadcast_shapes(*worlds))


def push_many(gravity: bool, fixed: Fixed, moved: Moved) -> Float[Array, "k nv"]:
    """dtau along k tangents at once, from the whole Jacobians."""
    model, q, *_ = fixed
    columns, M = calc_whole_change(*fixed[:4], gravity)
    dq = None if moved.q is None else jax.vmap(lambda dq: qdot_to_velocity(model, q, dq))(moved.q)
    pairs = zip((columns.dq, columns.dv, M), (dq, moved.v, moved.vdot), strict=True)
    parts = [products_of_columns(ca.transpose(J), ca.transpose(x)) for J, x in pairs if x is not None]
    return ca.transpose(sum(parts[1:], parts[0]))


def pull_many(gravity: bool, like: Moved, fixed: Fixed, weights: Float[Array, "k nv"]) -> Moved:
    """Transpose of `push_many`: cotangents of k weights at once, from the whole Jacobians."""
    model, q, *_ = fixed
    columns, M = calc_whole_change(*fixed[:4], gravity)
    of_state = (
        None if x is None else ca.transpose(products_of_columns(J, ca.transpose(weights)))
        for J, x in zip((columns.dq, columns.dv, M), (like.q, like.v, like.vdot), strict=True)
    )
    by_q, by_v, by_vdot = of_state
    if by_q is not None:
        q = jnp.broadcast_to(q, (q.shape[0], *by_q.shape[2:]))
        _, to_qdot = jax.vjp(lambda dq: qdot_to_velocity(model, q, dq), jnp.zeros_like(q))
        (by_q,) = jax.vmap(to_qdot)(by_q)
    return Moved(like.model, by_q, by_v, by_vdot)


def calc_whole_change(
    model: MultibodyModel, q: Float[Array, " nq"], v: Float[Array, " nv"], vdot: Float[Array, " nv"], gravity: bool
) -> tuple[TorqueColumns, Float[Array, "nv nv"]]:
    """Jacobians of inverse dynamics by q, in terms of velocities, by v and by vdot."""
    position = calc_position_kinematics(model, q)
    wrenches = calc_fixed_weights(model, position) if gravity else None
    _, columns, M = calc_all_columns(model, position, q, v, vdot, wrenches)
    return columns, M


def pull_back_to_q(model: MultibodyModel, q: Float[Array, " nq"], by_q: Float[Array, " nv"]) -> Float[Array, " nq"]:
    """Gradient by q, from the one in terms of velocities."""
    q, by_q = (jnp.broadcast_to(x, (x.shape[0], *by_q.shape[1:])) for x in (q, by_q))
    return jax.vjp(lambda dq: qdot_to_velocity(model, q, dq), jnp.zeros_like(q))[1](by_q)[0]


def pull_back_to_model(
    model: MultibodyModel, by_moved: Float[Array, "nd k"] | None, by_gravity: Float[Array, "3"] | None, like: Any
) -> Any:
    """Gradient by the model's moving leaves, from the gradient by what they move (`calc_model_change`).

    Without `by_gravity` gravity has no part in it.
    """
    still = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), like)
    (moved, gravity), pull = jax.vjp(lambda dmodel: calc_model_change(model, dmodel), still)
    assert by_moved is not None
    of_gravity = None
    if gravity is not None:
        of_gravity = jnp.zeros_like(gravity) if by_gravity is None else fitting(by_gravity, gravity.shape)
    return pull((fitting(by_moved, moved.shape), of_gravity))[0]


def enough(topology: TreeTopology) -> int:
    """Number of tangents, or of solves, from which on the whole matrix is faster than one after another."""
    return max(4, topology.num_velocities // 8)
