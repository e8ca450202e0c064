"""Uniform gravity, felt by the bodies of the model instances where it is on."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.kinematics import PositionKinematics, calc_body_poses, calc_inertia_in_mobod
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca


def bodies_with_gravity(model: MultibodyModel) -> np.ndarray:
    """(nb,) which bodies feel gravity; the world does not."""
    enabled = np.array(model.layout.gravity_enabled)[np.array(model.layout.body_instances, dtype=int)]
    enabled[0] = False
    return enabled


def calc_gravity_on_mobods(model: MultibodyModel, position: PositionKinematics) -> Float[Array, "6 nm"]:
    """Weight of each mobod about its tree's origin T, in W: f = m g, t = p_TMcm x f."""
    enabled = bodies_with_gravity(model)
    counted = None if enabled[1:].all() else enabled
    inertia = calc_inertia_in_mobod(model, position.placement, counted)
    moment_T = ca.matvec(position.R_WM, inertia.moment) + ca.scale(position.p_TM_W, inertia.mass)
    g = jnp.repeat(model.parameters.gravity[:, None], moment_T.shape[1], axis=1)
    return ca.concatenate([ca.cross(moment_T, g), inertia.mass * g], 0)


def calc_gravity_on_bodies(model: MultibodyModel, position: PositionKinematics) -> Float[Array, "nb 6"]:
    """Weight of each body at its origin Bo, in W."""
    mass, p_BoBcm_W, _ = calc_masses_and_centers(model, position)
    mass = mass * jnp.asarray(bodies_with_gravity(model), model.dtype)
    f = mass * model.parameters.gravity[:, None]
    return jnp.concatenate([ca.cross(p_BoBcm_W, f), f]).T


def calc_gravity_potential_energy(model: MultibodyModel, position: PositionKinematics) -> Float[Array, ""]:
    """-m g · p_WBcm over the bodies, in J; zero at the world's origin."""
    mass, _, p_WBcm = calc_masses_and_centers(model, position)
    weight = mass * jnp.asarray(bodies_with_gravity(model), model.dtype) * model.parameters.gravity[:, None]
    return -jnp.sum(weight * p_WBcm)


def calc_masses_and_centers(
    model: MultibodyModel, position: PositionKinematics
) -> tuple[Float[Array, " nb"], Float[Array, "3 nb"], Float[Array, "3 nb"]]:
    """Mass of each body (the world: none), p_BoBcm_W and p_WBcm."""
    zero = jnp.zeros((1,), model.dtype)
    mass = jnp.concatenate([zero, model.parameters.body_mass])
    com = jnp.concatenate([jnp.zeros((3, 1), model.dtype), model.parameters.body_com.T], axis=-1)
    R_WB, p_WB = calc_body_poses(model, position)
    p_BoBcm_W = ca.matvec(R_WB, com)
    return mass, p_BoBcm_W, p_WB + p_BoBcm_W
