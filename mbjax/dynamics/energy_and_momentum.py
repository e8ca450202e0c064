"""Energies and momenta of the whole system: also the tests' main witnesses."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.array_types import Positions, SpatialVector, Vector3, Velocities
from mbjax.forces import calc_potential_energy
from mbjax.kinematics import calc_position_kinematics
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca

from .equations_of_motion import calc_reflected_inertia, calc_tree_motion


def kinetic_energy(model: MultibodyModel, q: Positions, v: Velocities) -> Float[Array, ""]:
    """½ vᵀ M v in J, rotors included."""
    h_Mo, motion = _mobod_momenta(model, q, v)
    velocity = motion.velocity
    assert velocity is not None
    assert motion.v is not None
    V_WMo = jnp.concatenate([velocity.V_WM_T[:3], velocity.v_WMo])
    rotors = jnp.sum(calc_reflected_inertia(model) * motion.v**2)
    return 0.5 * (jnp.sum(V_WMo * h_Mo) + rotors)


def potential_energy(model: MultibodyModel, q: Positions) -> Float[Array, ""]:
    """Energy of gravity (zero at the world's origin) and of the springs, in J."""
    return calc_potential_energy(model, calc_position_kinematics(model, q), q)


def spatial_momentum_in_world_about_point(
    model: MultibodyModel, q: Positions, v: Velocities, p_WoP_W: Vector3
) -> SpatialVector:
    """L_WSP_W: angular momentum of all bodies about P in kg m²/s, then translational in kg m/s."""
    h_Mo, _ = _mobod_momenta(model, q, v)
    position = calc_position_kinematics(model, q)
    p_PM_W = position.p_WM - jnp.asarray(p_WoP_W, model.dtype)[:, None]
    angular = h_Mo[:3] + ca.cross(p_PM_W, h_Mo[3:])
    return jnp.sum(jnp.concatenate([angular, h_Mo[3:]]), axis=-1)


def _mobod_momenta(model: MultibodyModel, q: Positions, v: Velocities):
    """Spatial momentum of each mobod about its Mo, in W, with the motion it comes from."""
    position = calc_position_kinematics(model, q)
    motion = calc_tree_motion(model, position, q, v)
    velocity, inertia = motion.velocity, motion.inertia_W
    assert velocity is not None
    w, v_Mo = velocity.V_WM_T[:3], velocity.v_WMo
    angular = ca.symmetric_matvec(inertia.rotational, w) + ca.cross(inertia.moment, v_Mo)
    translational = inertia.mass * v_Mo + ca.cross(w, inertia.moment)
    return jnp.concatenate([angular, translational]), motion
