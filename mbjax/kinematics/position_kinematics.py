"""Poses at q, and how they change with it: along a change of q every mobod moves rigidly."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.array_types import Positions
from mbjax.model import MultibodyModel, all_joint_positions, as_coordinates
from mbjax.outside_jit import compiled_outside_jit
from mbjax.spatial import component_algebra as ca
from mbjax.tangents import add_tangents, fit_tangent, moving_with, no_tangent
from mbjax.topology import over_directions, sum_velocities_over_path, take

from .coordinate_maps import qdot_to_velocity
from .direction_rates import calc_direction_rates, calc_hinge_rates, velocities_of_origins
from .tree_poses import PositionKinematics, calc_tree_poses


@compiled_outside_jit
def calc_position_kinematics(model: MultibodyModel, q: Positions) -> PositionKinematics:
    """X_WM = X_WP X_PF X_FM(q), outward (`tree_poses`)."""
    q = as_coordinates("q", q, model.topology.num_positions, model.dtype, model.num_world_axes)
    return calc_poses(model, q)


@eqx.filter_custom_jvp
def calc_poses(model: MultibodyModel, q: Float[Array, " nq"]) -> PositionKinematics:
    """`calc_tree_poses`; its derivatives by q are in closed form, and do not go back along the recursion."""
    return moving_with(calc_tree_poses(model, q), q)


@calc_poses.def_jvp
def _calc_poses_jvp(primals: tuple, tangents: tuple) -> tuple[PositionKinematics, PositionKinematics]:
    (model, q), (dmodel, dq) = primals, tangents
    position = calc_poses(model, q)
    change = no_tangent(position)
    if jax.tree.leaves(dmodel):
        _, change = eqx.filter_jvp(lambda m: calc_tree_poses(m, q), (model,), (dmodel,))
    if dq is not None:
        change = add_tangents(change, calc_displaced(model, position, q, dq))
    return position, fit_tangent(change, position)


def calc_displaced(
    model: MultibodyModel, position: PositionKinematics, q: Float[Array, " nq"], dq: Float[Array, " nq"]
) -> PositionKinematics:
    """How poses and directions change along dq, linear in it; None is what depends on the model alone.

    The mobods move by phi = sum over the path of S_j dq_j, dq in the terms of velocities. With its rotation w
    dR = [w]x R, points move with their mobod, and S_T as in `calc_direction_rates`, but T moves with its tree.
    """
    topology = model.topology
    along = over_directions(topology, qdot_to_velocity(model, q, dq))
    phi = sum_velocities_over_path(topology, ca.scale(position.S_T, along))
    w, dp_WM = velocities_of_origins(position, phi)
    w_WP, dp_WP = take(w, topology.parents, 1), take(dp_WM, topology.parents, 1)
    dp_TM = dp_WM - take(dp_WM, topology.mobod_roots, 1)
    dH = calc_hinge_rates(model, position, all_joint_positions(model, q), along, w)
    return PositionKinematics(
        placement=no_tangent(position.placement),
        R_WM=turned(w, position.R_WM),
        p_WM=dp_WM,
        R_WF=turned(w_WP, position.R_WF),
        p_PM_W=dp_WM - dp_WP,
        p_TM_W=dp_TM,
        H_W=dH,
        S_T=calc_direction_rates(topology, position, dH, dp_TM),
        displacement=phi,
    )


def turned(w: Float[Array, "3 n"], R: Float[Array, "3 3 n"]) -> Float[Array, "3 3 n"]:
    """[w]x R."""
    return jnp.stack([ca.cross(w, R[:, k]) for k in range(3)], 1)
