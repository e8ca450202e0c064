"""v → velocities of mobilized bodies."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.array_types import Positions, Velocities
from mbjax.joints import JOINT_KINDS
from mbjax.model import MultibodyModel, all_joint_positions
from mbjax.outside_jit import compiled_outside_jit
from mbjax.spatial import component_algebra as ca
from mbjax.topology import over_directions, sum_velocities_over_path, take

from .coordinate_maps import qdot_to_velocity
from .position_kinematics import (
    PositionKinematics,
    as_coordinates,
    gather,
    in_coordinate_order,
    joint_groups,
)


class VelocityKinematics(eqx.Module):
    """What depends on q and v. About T: at the point of the world where the tree's origin is now."""

    V_WM_T: Float[Array, "6 nm"]
    v_WMo: Float[Array, "3 nm"]  # velocity of the point Mo itself
    Sdot_T: Float[Array, "6 nd"]  # rate of S_T, T held fixed in the world


@compiled_outside_jit
def calc_velocity_kinematics(
    model: MultibodyModel, position: PositionKinematics, q: Positions, v: Velocities
) -> VelocityKinematics:
    """V_WM = sum over the path of S v, and the rates of the directions S."""
    topology, worlds = model.topology, model.num_world_axes
    q = as_coordinates("q", q, topology.num_positions, model.dtype, worlds)
    v = over_directions(topology, as_coordinates("v", v, topology.num_velocities, model.dtype, worlds))
    V_WM_T = sum_velocities_over_path(topology, ca.scale(position.S_T, v))
    w_WM, v_WMo = velocities_of_origins(position, V_WM_T)
    Sdot_T = calc_direction_rates(model, position, all_joint_positions(model, q), v, w_WM, v_WMo)
    return VelocityKinematics(V_WM_T, v_WMo, Sdot_T)


def velocities_of_origins(
    position: PositionKinematics, V_WM_T: Float[Array, "6 nm"]
) -> tuple[Float[Array, "3 nm"], Float[Array, "3 nm"]]:
    """Angular velocity, and velocity of each Mo, from velocities about T."""
    w_WM, v = jnp.split(V_WM_T, 2)
    return w_WM, v + ca.cross(w_WM, position.p_TM_W)


def calc_rigid_displacement(
    model: MultibodyModel, position: PositionKinematics, q: Float[Array, " nq"], dq: Float[Array, " nq"]
) -> tuple[Float[Array, "3 nm"], Float[Array, "3 nm"]]:
    """How mobods turn along dq, and how far their Mo move from their trees' origins T, in W; linear in dq."""
    topology = model.topology
    directions = ca.scale(position.S_T, over_directions(topology, qdot_to_velocity(model, q, dq)))
    phi = sum_velocities_over_path(topology, directions)
    turned, moved = velocities_of_origins(position, phi)
    return turned, moved - take(moved, topology.mobod_roots, 1)


def calc_direction_rates(
    model: MultibodyModel,
    position: PositionKinematics,
    q: Float[Array, " njq"],
    v: Float[Array, " nd"],
    w_WM: Float[Array, "3 nm"],
    v_WMo: Float[Array, "3 nm"],
) -> Float[Array, "6 nd"]:
    """dS_T/dt at velocities v of the directions and what follows from them, linear in these; T held fixed."""
    owner = model.topology.velocity_mobods
    w_WF = take(w_WM, model.topology.parents[owner], 1)
    v_point, r = take(v_WMo, owner, 1), take(position.p_TM_W, owner, 1)
    h_rotation, h_translation = position.H_W[:3], position.H_W[3:]
    rate_rotation = ca.cross(w_WF, h_rotation)
    rate_translation = ca.cross(w_WF, h_translation)
    H_rate = calc_hinge_map_rate(model, position, q, v)
    if H_rate is not None:
        rate_rotation, rate_translation = rate_rotation + H_rate[:3], rate_translation + H_rate[3:]
    rate_about_T = rate_translation + ca.cross(v_point, h_rotation) + ca.cross(r, rate_rotation)
    return ca.concatenate([rate_rotation, rate_about_T], 0)


def calc_hinge_map_rate(
    model: MultibodyModel, position: PositionKinematics, q: Float[Array, " njq"], v: Float[Array, " nd"]
) -> Float[Array, "6 nd"] | None:
    """Rate of the hinge map in F, expressed in W; None where every joint's is constant, as of those that mimic."""
    groups = joint_groups(model)
    asked = [ca.with_equal_columns(gather(q, g.q_indices), gather(v, g.v_indices)) for g in groups]
    rates = [JOINT_KINDS[g.kind].hinge_map_rate(*x) for g, x in zip(groups, asked, strict=True)]
    if all(rate is None for rate in rates):
        return None
    parts = [
        jnp.zeros((6, len(g.v_indices), len(g.mobods), *v.shape[1:]), v.dtype) if rate is None else rate
        for g, rate in zip(groups, rates, strict=True)
    ]
    H_F = in_coordinate_order(parts, [g.v_indices for g in groups])
    R_WF = take(position.R_WF, model.topology.velocity_mobods, 2)
    return ca.concatenate([ca.matvec(R_WF, H_F[:3]), ca.matvec(R_WF, H_F[3:])], 0)
