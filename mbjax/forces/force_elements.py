"""All force elements of a model together: gravity, joint dissipation, springs and the user's own."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.array_types import GeneralizedForces, Positions, Velocities
from mbjax.execution import compiled_outside_jit, each_world, takes_model_first
from mbjax.kinematics import (
    PositionKinematics,
    VelocityKinematics,
    calc_position_kinematics,
    calc_velocity_kinematics,
    for_worlds_of,
    without_placement,
)
from mbjax.model import MultibodyModel, as_coordinates
from mbjax.spatial import component_algebra as ca
from mbjax.topology import sum_directions, sum_moved_mobods

from .elements_at_state import remember_state
from .gravity import (
    calc_gravity_at_poses,
    calc_gravity_on_bodies,
    calc_gravity_on_mobods,
    calc_gravity_potential_energy,
)
from .joint_dissipation import calc_joint_dissipation
from .multibody_forces import MultibodyForces, calc_mobod_forces


@compiled_outside_jit
def force_elements_contribution(model: MultibodyModel, q: Positions, v: Velocities) -> MultibodyForces:
    """Forces of gravity, joint damping and friction, springs and the model's other force elements.

    Passed on as they are, as `forces` of a function of the same model, q and v, they cost as much as its
    `force_elements=True`.
    """
    return remember_state(_force_elements_contribution(model, q, v), model, q, v)


def _force_elements_contribution(model: MultibodyModel, q: Positions, v: Velocities) -> MultibodyForces:
    if not model.force_elements:  # gravity alone needs nothing but poses
        q = as_coordinates("q", q, model.num_positions, model.dtype)
        v = as_coordinates("v", v, model.num_velocities, model.dtype)
        return MultibodyForces(calc_joint_dissipation(model, v), calc_gravity_at_poses(model, q))
    position = calc_position_kinematics(model, q)
    return calc_force_elements(model, position, calc_velocity_kinematics(model, position, q, v), q, v)


def calc_force_elements(
    model: MultibodyModel, position: PositionKinematics, velocity: VelocityKinematics, q: Positions, v: Velocities
) -> MultibodyForces:
    """Forces of all force elements in one world, from its kinematics: `force_elements_contribution`."""
    v = as_coordinates("v", v, model.num_velocities, model.dtype)
    gravity = MultibodyForces(calc_joint_dissipation(model, v), calc_gravity_on_bodies(model, position))
    return gravity + calc_element_forces(model, position, velocity, q, v)


@takes_model_first
def gravity_generalized_forces(model: MultibodyModel, q: Positions) -> GeneralizedForces:
    """Generalized forces of gravity, tau_g = sum J^T (m g), in N m or N."""
    return for_worlds_of(_gravity_generalized_forces, model, as_coordinates("q", q, model.num_positions, model.dtype))


def _gravity_generalized_forces(model: MultibodyModel, q: Array) -> Float[Array, " nv"]:
    position = calc_position_kinematics(model, q)
    F_T = calc_gravity_on_mobods(model, position)
    return sum_directions(model.topology, ca.dot(position.S_T, sum_moved_mobods(model.topology, F_T)))


def calc_element_forces(
    model: MultibodyModel,
    position: PositionKinematics,
    velocity: VelocityKinematics,
    q: Positions,
    v: Velocities,
) -> MultibodyForces:
    """Forces of the elements in `model.force_elements`, without gravity and joint dissipation."""
    total = MultibodyForces.zero(model)
    q = as_coordinates("q", q, model.num_positions, model.dtype, model.num_world_axes)
    held = without_placement(model)
    for element in model.force_elements:
        total = total + each_world(type(element).forces, model.num_world_axes, element, held, position, velocity, q, v)
    return total


def calc_passive_forces_on_tree(
    model: MultibodyModel,
    position: PositionKinematics,
    velocity: VelocityKinematics,
    q: Positions,
    v: Velocities,
) -> tuple[Float[Array, " nv"], Float[Array, "6 nm"]]:
    """Generalized forces, and forces on mobods about T, of gravity and `model.force_elements`; no joint dissipation."""
    F_T = calc_gravity_on_mobods(model, position)
    if not model.force_elements:
        return jnp.zeros_like(v), F_T
    forces = calc_element_forces(model, position, velocity, q, v)
    return forces.generalized, F_T + calc_mobod_forces(model, position, forces.body)


def calc_potential_energy(model: MultibodyModel, position: PositionKinematics, q: Positions) -> Float[Array, ""]:
    """Potential energy of gravity and of `model.force_elements`, in J."""
    q = as_coordinates("q", q, model.num_positions, model.dtype)
    energy = calc_gravity_potential_energy(model, position)
    for element in model.force_elements:
        energy = energy + element.potential_energy(model, position, q)
    return energy
