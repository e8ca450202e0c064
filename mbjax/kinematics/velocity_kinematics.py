"""Velocity kinematics: from v to the velocities of mobilized bodies."""

import equinox as eqx
from jaxtyping import Array, Float

from mbjax.array_types import Positions, Velocities
from mbjax.execution import compiled_outside_jit
from mbjax.model import MultibodyModel, all_joint_positions, as_coordinates
from mbjax.spatial import component_algebra as ca
from mbjax.topology import over_directions, sum_velocities_over_path

from .direction_rates import calc_direction_rates, calc_hinge_rates, velocities_of_origins
from .tree_poses import PositionKinematics


class VelocityKinematics(eqx.Module):
    """Velocities of mobods, which depend on q and v. About T: at the world's point where the tree's origin is now."""

    V_WM_T: Float[Array, "6 nm"]
    v_WMo: Float[Array, "3 nm"]  # velocity of the point Mo itself
    Sdot_T: Float[Array, "6 nd"]  # rate of S_T, T held fixed in the world


@compiled_outside_jit
def calc_velocity_kinematics(
    model: MultibodyModel, position: PositionKinematics, q: Positions, v: Velocities
) -> VelocityKinematics:
    """Computes V_WM = sum over the path of S v, and the rates of the directions S."""
    topology, worlds = model.topology, model.num_world_axes
    q = as_coordinates("q", q, topology.num_positions, model.dtype, worlds)
    v = over_directions(topology, as_coordinates("v", v, topology.num_velocities, model.dtype, worlds))
    V_WM_T = sum_velocities_over_path(topology, ca.scale(position.S_T, v))
    w_WM, v_WMo = velocities_of_origins(position, V_WM_T)
    Hdot_W = calc_hinge_rates(model, position, all_joint_positions(model, q), v, w_WM)
    Sdot_T = calc_direction_rates(topology, position, Hdot_W, v_WMo)
    return VelocityKinematics(V_WM_T, v_WMo, Sdot_T)
