"""The rows that recursions read, one for each direction of motion, directions first.

The directions of a joint follow one another, all at the same point, Mo. The first crosses the joint's inboard frame and
translates; the last rotates and has the inertia of the mobod. For the first, P is the parent's frame; for those that
follow, P is F.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.execution.arrays import take
from mbjax.execution.recursions import rows_of
from mbjax.kinematics import (
    JointStepRows,
    MobodInertia,
    OtherPoses,
    calc_hinge_map_rate_in_F,
    calc_hinge_maps,
    calc_hinge_maps_in_P,
    calc_joint_rows,
    calc_model_placement,
    inertia_rows_of_mobods,
    only_if,
    placement_of,
)
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.topology import TreeTopology, ends_of_joints

from .spatial_records import Force, HingeMap, MassMoment, RigidInertia


class DirectionRows(NamedTuple):
    """Inputs of a recursion, one row for each direction. None means zeros; for `is_first`, that every direction is."""

    joint: JointStepRows
    hinge_map: HingeMap  # in P
    hinge_map_rate: HingeMap | None  # in P, times v
    v: Array
    vdot: Array | None
    inertia: RigidInertia  # of the mobod about Mo, in M
    weight: MassMoment | None  # of what feels gravity, in M; None: all do (a_0 = -g), or no weights are wanted
    F_applied_W: Force | None  # at Mo
    is_first: Array | None


class PlacedRows(NamedTuple):
    """Hinge maps and inertias, one row for each direction, that an outward pass has placed in W at Mo."""

    hinge: Float[Array, "nd 9 ..."]  # H_W, and p from the inboard direction's point to Mo
    inertia: Float[Array, "nd 10 ..."]  # of the mobod, at the last direction of a joint: moments, m p_MoMcm, m


def calc_direction_rows(
    model: MultibodyModel,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    vdot: Float[Array, " nv"] | None,
    weights: bool,
    F_applied_W: Float[Array, "6 nm"] | None,
) -> tuple[DirectionRows, OtherPoses | None]:
    """Direction rows of a tree in which no joint mimics another, and the poses of joints without an axis."""
    topology, placement = model.topology, placement_of(model) or calc_model_placement(model)
    (first, last), of_model = ends_of_joints(topology), placement.directions
    assert of_model is not None
    mobods, several = topology.velocity_mobods, not first.all()
    joint, others = calc_joint_rows(model, placement.bodies, of_model.joint, q, mobods, first, last)

    def in_P(H_F: Array) -> Array:
        return calc_hinge_maps_in_P(topology, placement.bodies, H_F)

    def of_last(F: Array) -> Array:
        return only_if(last, directions_first(take(F, mobods, 1)))

    rate, hinge_map = calc_hinge_map_rate_in_F(model, q, v), of_model.hinge_map
    hinge_map = in_P(calc_hinge_maps(model, placement.bodies, q)) if hinge_map is None else hinge_map
    is_first = jnp.asarray(first, v.dtype).reshape(-1, 1, *(1 for _ in v.shape[1:])) if several else None
    rows = DirectionRows(
        joint=joint,
        hinge_map=rows_of(HingeMap, hinge_map),
        hinge_map_rate=None if rate is None else rows_of(HingeMap, in_P(ca.scale(rate, v))),
        v=rows_of(1, v[:, None]),
        vdot=None if vdot is None else rows_of(1, vdot[:, None]),
        inertia=rows_of(RigidInertia, of_model.inertia),
        weight=rows_of(MassMoment, of_model.weight) if weights and of_model.weight is not None else None,
        F_applied_W=None if F_applied_W is None else rows_of(Force, of_last(F_applied_W)),
        is_first=None if is_first is None else rows_of(1, is_first),
    )
    return rows, others


def worlds_of(rows: DirectionRows | PlacedRows, *others: Array) -> tuple[int, ...]:
    """Broadcast shape of the axes of worlds, of the rows and of other arrays with one number a direction."""
    shapes = [x.shape[2:] for x in jax.tree.leaves(rows)] + [x.shape[1:] for x in others]
    return np.broadcast_shapes(*shapes)


def calc_placed_inertia(topology: TreeTopology, inertia_W: MobodInertia) -> Float[Array, "nd 10 ..."]:
    """`PlacedRows.inertia` from the inertia records of mobods."""
    rows = directions_first(take(inertia_rows_of_mobods(inertia_W), topology.velocity_mobods, 1))
    return only_if(ends_of_joints(topology)[1], rows)


def directions_first(x: Float[Array, "k n ..."]) -> Float[Array, "n k ..."]:
    """Swaps the first two axes, so that directions come before components."""
    return jnp.swapaxes(x, 0, 1)
