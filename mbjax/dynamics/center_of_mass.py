"""The centre of mass of the system, or of some model instances: position, velocity, Jacobian, bias."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.array_types import Positions, Vector3, Velocities
from mbjax.errors import ModelError
from mbjax.forces import calc_masses_and_centers
from mbjax.kinematics import (
    calc_acceleration_kinematics,
    calc_body_accelerations,
    calc_position_kinematics,
    calc_velocity_kinematics,
)
from mbjax.kinematics.jacobians import WithRespectTo, convert_columns
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_divide
from mbjax.topology import dot_with_mask, take

Instances = Sequence[str | int] | None


def total_mass(model: MultibodyModel, model_instances: Instances = None) -> Float[Array, ""]:
    """Mass of all bodies, or of those of some instances, in kg."""
    return jnp.sum(model.parameters.body_mass * jnp.asarray(selected_bodies(model, model_instances)[1:], model.dtype))


def center_of_mass_position_in_world(model: MultibodyModel, q: Positions, model_instances: Instances = None) -> Vector3:
    """p_WScm = sum m p_WBcm / sum m, in m."""
    mass, _, p_WBcm = calc_masses_and_centers(model, calc_position_kinematics(model, q))
    mass = mass * jnp.asarray(selected_bodies(model, model_instances), model.dtype)
    return safe_divide(jnp.sum(mass * p_WBcm, axis=-1), jnp.sum(mass))


def center_of_mass_translational_velocity_in_world(
    model: MultibodyModel, q: Positions, v: Velocities, model_instances: Instances = None
) -> Vector3:
    """v_WScm_W = J v, in m/s."""
    J = jacobian_center_of_mass_translational_velocity(model, q, model_instances)
    return J @ jnp.asarray(v, model.dtype)


def jacobian_center_of_mass_translational_velocity(
    model: MultibodyModel, q: Positions, model_instances: Instances = None, wrt: WithRespectTo = "v"
) -> Float[Array, "3 n"]:
    """J with v_WScm_W = J v (or J qdot)."""
    position = calc_position_kinematics(model, q)
    mass, p_BoBcm_W, _ = calc_masses_and_centers(model, position)
    mass = mass * jnp.asarray(selected_bodies(model, model_instances), model.dtype)
    mobods = model.topology.body_mobods
    p_TBcm_W = take(position.p_TM_W, mobods) + p_BoBcm_W
    p_TBcm_W = p_TBcm_W + ca.matvec(take(position.R_WM, mobods), position.placement.p_MB)
    per_body = jnp.concatenate([mass[None], mass * p_TBcm_W])
    outboard = dot_with_mask(dot_with_mask(per_body, model.topology.body_membership), model.topology.moves.T)
    w, v_T = position.S_T[:3], position.S_T[3:]
    J = safe_divide(outboard[0] * v_T + ca.cross(w, outboard[1:]), jnp.sum(mass))
    return convert_columns(model, q, J, wrt)


def bias_center_of_mass_translational_acceleration(
    model: MultibodyModel, q: Positions, v: Velocities, model_instances: Instances = None
) -> Vector3:
    """a_WScm_W at vdot = 0, in m/s²."""
    position = calc_position_kinematics(model, q)
    velocity = calc_velocity_kinematics(model, position, q, v)
    acceleration = calc_acceleration_kinematics(model, position, velocity, v, None)
    A_WB = calc_body_accelerations(model, position, velocity, acceleration)
    w, alpha = take(velocity.V_WM_T[:3], model.topology.body_mobods), A_WB[:3]
    mass, p, _ = calc_masses_and_centers(model, position)
    mass = mass * jnp.asarray(selected_bodies(model, model_instances), model.dtype)
    a_WBcm = A_WB[3:] + ca.cross(alpha, p) + ca.cross(w, ca.cross(w, p))
    return safe_divide(jnp.sum(mass * a_WBcm, axis=-1), jnp.sum(mass))


def selected_bodies(model: MultibodyModel, model_instances: Instances) -> np.ndarray:
    """(nb,) which bodies belong to the instances; all but the world when None."""
    if isinstance(model_instances, str | int):
        raise ModelError(f"model_instances must be a list, got {model_instances!r}; write [{model_instances!r}].")
    owners = np.array(model.layout.body_instances)
    selected = np.ones(len(owners), bool)
    if model_instances is not None:
        selected = np.isin(owners, [model.model_instance_index(i) for i in model_instances])
    selected[0] = False
    return selected
