"""Acceleration kinematics: from v̇ to the accelerations of mobilized bodies."""

import equinox as eqx
from jaxtyping import Array, Float

from mbjax.array_types import Accelerations, Velocities
from mbjax.execution import compiled_outside_jit
from mbjax.model import MultibodyModel, as_coordinates
from mbjax.spatial import component_algebra as ca
from mbjax.topology import over_directions, sum_velocities_over_path

from .tree_poses import PositionKinematics
from .velocity_kinematics import VelocityKinematics


class AccelerationKinematics(eqx.Module):
    """Accelerations of mobods, which depend on q, v and vdot."""

    A_WM_T: Float[Array, "6 nm"]  # rate of V_WM_T, T held fixed in the world
    a_WMo: Float[Array, "3 nm"]  # acceleration of the point Mo itself


@compiled_outside_jit
def calc_acceleration_kinematics(
    model: MultibodyModel,
    position: PositionKinematics,
    velocity: VelocityKinematics,
    v: Velocities,
    vdot: Accelerations | None,
) -> AccelerationKinematics:
    """Computes A_WM = sum over the path of S vdot + dS/dt v; with vdot None only the bias dS/dt v."""
    topology, worlds = model.topology, model.num_world_axes
    v = as_coordinates("v", v, model.num_velocities, model.dtype, worlds)
    driven = velocity.Sdot_T * over_directions(topology, v)[None]
    if vdot is not None:
        vdot = as_coordinates("vdot", vdot, model.num_velocities, model.dtype, worlds)
        driven = driven + position.S_T * over_directions(topology, vdot)[None]
    A_WM_T = sum_velocities_over_path(topology, driven)
    a_WMo = A_WM_T[3:] + ca.cross(A_WM_T[:3], position.p_TM_W) + ca.cross(velocity.V_WM_T[:3], velocity.v_WMo)
    return AccelerationKinematics(A_WM_T, a_WMo)
