"""What the recursions (`recursive_*`, `weighted_motion`) read of each direction, directions first.

The directions of a joint follow one another. The first crosses the joint's inboard frame and translates, the last
rotates and has the inertia of the mobod; all are at the same point, Mo. Of the first P is the parent's frame, of those
that follow it is F.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.kinematics import (
    JointRows,
    MobodInertia,
    OtherPoses,
    all_feel_gravity,
    calc_body_placement,
    calc_hinge_map_rate_in_F,
    calc_hinge_maps,
    calc_joint_rows,
    calc_model_placement,
)
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.topology import TreeTopology, take


class DirectionRows(NamedTuple):
    """None stands for zeros, or for a direction that is always its joint's only one."""

    joint: JointRows
    hinge_map: Float[Array, "nd 6 ..."]  # in P
    hinge_map_rate: Float[Array, "nd 6 ..."] | None  # in P, times v
    v: Float[Array, "nd 1 ..."]
    vdot: Float[Array, "nd 1 ..."] | None
    inertia: Float[Array, "nd 10 ..."]  # of the mobod about Mo, in M: moments, m p_MoMcm, m
    weight: Float[Array, "nd 4 ..."] | None  # of what feels gravity: m p_MoMcm, m; where not all bodies do
    F_applied_W: Float[Array, "nd 6 ..."] | None  # at Mo
    is_first: Float[Array, "nd 1 ..."] | None


class PlacedRows(NamedTuple):
    """Of each direction, in W at Mo, where a pass outward has found it."""

    hinge: Float[Array, "nd 9 ..."]  # H_W, and p from the inboard direction's point to Mo
    inertia: Float[Array, "nd 10 ..."]  # of the mobod, of the last direction of a joint: moments, m p_MoMcm, m


def calc_direction_rows(
    model: MultibodyModel,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    vdot: Float[Array, " nv"] | None,
    weights: bool,
    F_applied_W: Float[Array, "6 nm"] | None,
) -> tuple[DirectionRows, OtherPoses | None]:
    """The rows of a tree in which no joint mimics another."""
    topology, placement = model.topology, calc_body_placement(model)
    first, last = ends_of_joints(topology)
    several = not first.all()
    joint, others = calc_joint_rows(model, placement, q, topology.velocity_mobods, first, last)
    R_PF = take(placement.R_PF, topology.velocity_mobods, 2)

    def of_mobods(x: Array) -> Array:
        return directions_first(take(x.reshape(-1, *x.shape[x.ndim - v.ndim :]), topology.velocity_mobods, 1))

    def only_if(chosen: np.ndarray, x: Array, else_: Array | float = 0.0) -> Array:
        return jnp.where(chosen.reshape(-1, *(1,) * (x.ndim - 1)), x, else_) if several else x

    def in_P(H_F: Array) -> Array:
        H_P = ca.concatenate([ca.matvec(R_PF, x) for x in jnp.split(H_F, 2)], 0)
        return only_if(first, directions_first(H_P), directions_first(H_F))

    rate = calc_hinge_map_rate_in_F(model, q, v)
    inertia, weight = calc_inertias(model)
    rows = DirectionRows(
        joint=joint,
        hinge_map=in_P(calc_hinge_maps(model, placement, q)),
        hinge_map_rate=None if rate is None else in_P(ca.scale(rate, v)),
        v=v[:, None],
        vdot=None if vdot is None else vdot[:, None],
        inertia=only_if(last, of_mobods(inertia)),
        weight=only_if(last, of_mobods(weight)) if weights and weight is not None else None,
        F_applied_W=None if F_applied_W is None else only_if(last, of_mobods(F_applied_W)),
        is_first=jnp.asarray(first, v.dtype).reshape(-1, 1, *(1 for _ in v.shape[1:])) if several else None,
    )
    return rows, others


def worlds_of(rows: DirectionRows | PlacedRows, *others: Array) -> tuple[int, ...]:
    """The axis of worlds of all that is computed from the rows and from other numbers of each direction."""
    shapes = [x.shape[2:] for x in jax.tree.leaves(rows)] + [x.shape[1:] for x in others]
    return np.broadcast_shapes(*shapes)


def calc_inertias(model: MultibodyModel) -> tuple[Float[Array, "10 nm"], Float[Array, "4 nm"] | None]:
    """Of mobods about Mo, in M: moments, m p_MoMcm and m; the latter two of what feels gravity, if that is not all."""
    placement = model.placement or calc_model_placement(model)
    whole, part = placement.inertia, placement.weight
    inertia = ca.concatenate([ca.symmetric_components(whole.rotational), whole.moment, whole.mass[None]], 0)
    return inertia, None if all_feel_gravity(model) else ca.concatenate([part.moment, part.mass[None]], 0)


def calc_placed_inertia(topology: TreeTopology, inertia_W: MobodInertia) -> Float[Array, "nd 10 ..."]:
    """`PlacedRows.inertia` from the records."""
    parts = ca.symmetric_components(inertia_W.rotational), inertia_W.moment, inertia_W.mass[None]
    rows = directions_first(take(ca.concatenate(parts, 0), topology.velocity_mobods, 1))
    _, last = ends_of_joints(topology)
    return jnp.where(last.reshape(-1, *(1 for _ in rows.shape[1:])), rows, 0.0)


def ends_of_joints(topology: TreeTopology) -> tuple[np.ndarray, np.ndarray]:
    """(nd,) whether a direction is the first, and the last, of its joint."""
    owner = topology.velocity_mobods
    starts, counts = np.array(topology.mobod_v_starts)[owner], np.array(topology.mobod_num_velocities)[owner]
    places = np.arange(owner.size) - starts
    return places == 0, places == counts - 1


def directions_first(x: Float[Array, "k n ..."]) -> Float[Array, "n k ..."]:
    """With the axis of directions first."""
    return jnp.swapaxes(x, 0, 1)
