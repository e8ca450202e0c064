"""Derivatives of hinge maps by the position of their own joint, for the kinds of joint where they vary."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.execution.arrays import take
from mbjax.joints import JOINT_KINDS
from mbjax.kinematics import PositionKinematics, joint_groups
from mbjax.kinematics.joint_groups import JointGroup, gather, in_coordinate_order
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca


class HingeMapDerivatives(NamedTuple):
    """Derivatives of hinge maps H in F, expressed in W. Sums are over the velocities k of j's joint."""

    of_velocity: Float[Array, "6 nd"]  # sum_k dH_k/dq_j v_k
    of_acceleration: Float[Array, "6 nd"]  # sum_k dH_k/dq_j vdot_k
    rate: Float[Array, "6 nd"]  # sum_k dH_k/dt v_k
    of_rate: Float[Array, "6 nd"]  # its derivative with respect to q_j
    by_place: list[Float[Array, "6 nd"]]  # dH_k/dq of the first, second, … velocity of k's joint


def calc_hinge_map_derivatives(
    model: MultibodyModel,
    position: PositionKinematics,
    q: Float[Array, " njq"],
    v: Float[Array, " nd"],
    vdot: Float[Array, " nd"],
) -> HingeMapDerivatives | None:
    """Derivatives of all hinge maps; None where every map is constant in F, as are those of joints that mimic."""
    groups = joint_groups(model)
    asked = [[gather(q, g.q_indices), gather(v, g.v_indices), gather(vdot, g.v_indices)] for g in groups]
    parts = [of_group(g, *ca.with_equal_columns(*x)) for g, x in zip(groups, asked, strict=True)]
    if all(part is None for part in parts):
        return None
    most = max(len(g.v_indices) for g in groups)
    zeros = [jnp.zeros((6, len(g.v_indices), len(g.mobods), *v.shape[1:]), v.dtype) for g in groups]
    R_WF, rows = take(position.R_WF, model.topology.velocity_mobods, 2), [g.v_indices for g in groups]

    def in_world(which: int) -> Array:
        filled = [zero if part is None else part[which] for zero, part in zip(zeros, parts, strict=True)]
        H_F = in_coordinate_order(filled, rows)
        return ca.concatenate([ca.matvec(R_WF, H_F[:3]), ca.matvec(R_WF, H_F[3:])], 0)

    parts = [part and [*part, *[zero] * (4 + most - len(part))] for zero, part in zip(zeros, parts, strict=True)]
    of_velocity, of_acceleration, rate, of_rate, *by_place = (in_world(k) for k in range(4 + most))
    return HingeMapDerivatives(of_velocity, of_acceleration, rate, of_rate, by_place)


def of_group(
    group: JointGroup, q: Float[Array, "nq k"], v: Float[Array, "nv k"], vdot: Float[Array, "nv k"]
) -> list[Float[Array, "6 nv k"]] | None:
    """Fields of `HingeMapDerivatives` for the joints of one kind, in F, `by_place` one by one; None where constant."""
    kind = JOINT_KINDS[group.kind]
    if kind.hinge_map_rate(q, v) is None:
        return None

    def dH_along(q: Array, v: Array) -> Array:
        rate = kind.hinge_map_rate(q, v)
        assert rate is not None
        return rate

    def times(dH: Array, v: Array) -> Array:
        return ca.sum_products(jnp.unstack(dH, axis=1), [ca.spread(x, 6) for x in jnp.unstack(v)])

    def rate(q: Array) -> Array:
        return times(dH_along(q, v), v)

    units = [unit_velocity(place, v) for place in range(v.shape[0])]
    dH = [dH_along(q, unit) for unit in units]
    of_rate = [jax.jvp(rate, (q,), (kind.velocity_to_qdot(q, unit),))[1] for unit in units]
    sums = ([times(x, v) for x in dH], [times(x, vdot) for x in dH], [rate(q)] * len(units), of_rate)
    return [*(jnp.stack(x, 1) for x in sums), *dH]


def unit_velocity(place: int, like: Float[Array, "nv *n"]) -> Float[Array, "nv *n"]:
    """Velocities that are 1 at one place, else 0."""
    unit = np.arange(like.shape[0]) == place
    return jnp.broadcast_to(jnp.asarray(unit.reshape(-1, *(1,) * (like.ndim - 1)), like.dtype), like.shape)
