"""Kinetic energy, potential energy and spatial momentum; their balances are the tests' main checks."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.array_types import Positions, SpatialVector, Vector3, Velocities
from mbjax.execution import compiled_outside_jit
from mbjax.forces import calc_potential_energy
from mbjax.kinematics import (
    PositionKinematics,
    VelocityKinematics,
    calc_inertia_in_mobod,
    calc_position_kinematics,
    calc_velocity_kinematics,
)
from mbjax.model import MultibodyModel, as_coordinates
from mbjax.spatial import component_algebra as ca

from .center_of_mass import Instances, selected_bodies
from .equations_of_motion import calc_reflected_inertia


@compiled_outside_jit
def kinetic_energy(model: MultibodyModel, q: Positions, v: Velocities) -> Float[Array, ""]:
    """Kinetic energy ½ vᵀ M v in J, reflected rotor inertia included."""
    position = calc_position_kinematics(model, q)
    velocity = calc_velocity_kinematics(model, position, q, v)
    V_WMo = jnp.concatenate([velocity.V_WM_T[:3], velocity.v_WMo])
    v = as_coordinates("v", v, model.num_velocities, model.dtype)
    bodies = jnp.sum(V_WMo * calc_momenta_in_mobods(model, position, velocity))
    return 0.5 * (bodies + jnp.sum(calc_reflected_inertia(model) * v**2))


@compiled_outside_jit
def potential_energy(model: MultibodyModel, q: Positions) -> Float[Array, ""]:
    """Potential energy of gravity (zero at the world's origin) and of the springs, in J."""
    return calc_potential_energy(model, calc_position_kinematics(model, q), q)


@compiled_outside_jit
def spatial_momentum_in_world_about_point(
    model: MultibodyModel, q: Positions, v: Velocities, p_WoP_W: Vector3, model_instances: Instances = None
) -> SpatialVector:
    """Spatial momentum L_WSP_W about P, of all bodies or some instances': angular (kg m²/s), then linear (kg m/s)."""
    point = as_coordinates("p_WoP_W", p_WoP_W, 3, model.dtype)
    position = calc_position_kinematics(model, q)
    velocity = calc_velocity_kinematics(model, position, q, v)
    counted = None if model_instances is None else selected_bodies(model, model_instances)
    L_Mo = calc_momenta_in_mobods(model, position, velocity, counted)
    p_PM_W = position.p_WM - point[:, None]
    angular = L_Mo[:3] + ca.cross(p_PM_W, L_Mo[3:])
    return jnp.sum(jnp.concatenate([angular, L_Mo[3:]]), axis=-1)


def calc_momenta_in_mobods(
    model: MultibodyModel,
    position: PositionKinematics,
    velocity: VelocityKinematics,
    counted: np.ndarray | None = None,
) -> Float[Array, "6 nm"]:
    """Spatial momentum of each mobod about its Mo, in W; the mask `counted` (nb,) selects bodies, None all."""
    inertia, R_WM = calc_inertia_in_mobod(model, position.placement, counted), position.R_WM
    rotational, moment = ca.re_express_symmetric(R_WM, inertia.rotational), ca.matvec(R_WM, inertia.moment)
    w, v_Mo = velocity.V_WM_T[:3], velocity.v_WMo
    angular = ca.matvec(rotational, w) + ca.cross(moment, v_Mo)
    return jnp.concatenate([angular, inertia.mass * v_Mo + ca.cross(w, moment)])
