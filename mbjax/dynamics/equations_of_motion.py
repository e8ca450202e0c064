"""The equations of motion M(q) v̇ + C(q, v) v = tau + sum Jᵀ F: their terms, inverse and forward dynamics."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.array_types import Accelerations, GeneralizedForces, Positions, Velocities
from mbjax.errors import ModelError
from mbjax.execution import compiled_outside_jit, takes_model_first
from mbjax.execution.arrays import dot_with_mask
from mbjax.forces import (
    MultibodyForces,
    are_elements_at,
    calc_joint_dissipation,
    calc_mobod_forces,
    calc_passive_forces_on_tree,
    in_place_of_forces,
)
from mbjax.kinematics import PositionKinematics, calc_position_kinematics, for_worlds_of
from mbjax.model import (
    MultibodyModel,
    actuator_ratios,
    as_coordinates,
    locked_velocities,
    sum_joint_coefficients,
    zero_where_locked,
)

from .composite_body.recursion import calc_mass_matrix_from_state
from .forward_dynamics import ForwardDynamicsTerms, calc_forward_dynamics, calc_forward_dynamics_from_state
from .inverse_dynamics import calc_inverse_dynamics_from_motion, calc_inverse_dynamics_from_state
from .newton_euler.sums import calc_mass_matrix_product
from .records.tree_motion import TreeMotion, calc_inertia_in_world, calc_tree_motion


@takes_model_first
def mass_matrix(model: MultibodyModel, q: Positions) -> Float[Array, "nv nv"]:
    """Mass matrix M(q), symmetric and positive definite, with reflected rotor inertias on its diagonal."""
    q = as_coordinates("q", q, model.num_positions, model.dtype)
    return for_worlds_of(_mass_matrix, model, q)


def _mass_matrix(model: MultibodyModel, q: Array) -> Float[Array, "nv nv"]:
    return calc_mass_matrix_from_state(model, q, calc_reflected_inertia(model))


@compiled_outside_jit
def mass_matrix_via_inverse_dynamics(model: MultibodyModel, q: Positions) -> Float[Array, "nv nv"]:
    """Mass matrix M(q) by inverse dynamics at unit accelerations, column by column: a slower, independent check."""
    position = calc_position_kinematics(model, q)
    inertia_W = calc_inertia_in_world(model, position)
    columns = jnp.eye(model.num_velocities, dtype=model.dtype)
    product = jax.vmap(lambda x: calc_mass_matrix_product(model.topology, position, inertia_W, x))(columns)
    return product + jnp.diag(calc_reflected_inertia(model))


@takes_model_first
def bias_term(model: MultibodyModel, q: Positions, v: Velocities) -> GeneralizedForces:
    """Bias term C(q, v) v in N m or N: Coriolis, centripetal and gyroscopic forces, without gravity."""
    return inverse_dynamics(model, q, v, jnp.zeros(model.num_velocities, model.dtype))


@takes_model_first
def inverse_dynamics(
    model: MultibodyModel,
    q: Positions,
    v: Velocities,
    vdot: Accelerations,
    forces: MultibodyForces | None = None,
    *,
    force_elements: bool = False,
) -> GeneralizedForces:
    """Generalized forces tau = M(q) vdot + C(q, v) v - tau_applied - sum J^T F_applied, in N m or N.

    `forces` are all the forces that act: gravity and damping act only if they are among them. With `force_elements`
    the forces of `force_elements_contribution` act too, from the same kinematics. As Drake's `CalcInverseDynamics`.
    """
    if are_elements_at(forces, model, q, v) and not force_elements:
        forces, force_elements = None, True
    q = as_coordinates("q", q, model.num_positions, model.dtype)
    v = as_coordinates("v", v, model.num_velocities, model.dtype)
    vdot = as_coordinates("vdot", vdot, model.num_velocities, model.dtype)
    return for_worlds_of(_inverse_dynamics, model, q, v, vdot, forces, force_elements)


def _inverse_dynamics(
    model: MultibodyModel, q: Array, v: Array, vdot: Array, forces: MultibodyForces | None, force_elements: bool
) -> Float[Array, " nv"]:
    if forces is None and not (force_elements and model.force_elements):
        tau = calc_inverse_dynamics_from_state(model, q, v, vdot, force_elements) + calc_reflected_inertia(model) * vdot
        return tau - calc_joint_dissipation(model, v) if force_elements else tau
    position = calc_position_kinematics(model, q)
    motion = calc_tree_motion(model, position, q, v)
    tau_applied, F_T = calc_acting_forces(model, position, motion, q, forces, force_elements)
    tau = calc_inverse_dynamics_from_motion(motion, vdot, F_T, False) + calc_reflected_inertia(model) * vdot
    return tau if tau_applied is None else tau - tau_applied


@takes_model_first
def forward_dynamics(
    model: MultibodyModel,
    q: Positions,
    v: Velocities,
    tau: GeneralizedForces,
    forces: MultibodyForces | None = None,
    *,
    force_elements: bool = False,
) -> Accelerations:
    """Accelerations vdot with M(q) vdot + C(q, v) v = tau + tau_applied + sum J^T F_applied.

    Inverts `inverse_dynamics`, with the same `forces` and `force_elements`. Locked joints have zero velocity, whatever
    v says, and zero acceleration.
    """
    if are_elements_at(forces, model, q, v) and not (force_elements or model.force_elements):  # they read v as it is
        forces, force_elements = None, True
    q = as_coordinates("q", q, model.num_positions, model.dtype)
    v = as_coordinates("v", v, model.num_velocities, model.dtype)
    tau = as_coordinates("tau", tau, model.num_velocities, model.dtype)
    return for_worlds_of(_forward_dynamics, model, q, v, tau, forces, force_elements)


def _forward_dynamics(
    model: MultibodyModel, q: Array, v: Array, tau: Array, forces: MultibodyForces | None, force_elements: bool
) -> Float[Array, " nv"]:
    v = zero_where_locked(model, v)
    if forces is None and not (force_elements and model.force_elements):
        tau = tau + calc_joint_dissipation(model, v) if force_elements else tau
        return calc_forward_dynamics_from_state(model, q, v, tau, calc_reflected_inertia(model), force_elements)
    position = calc_position_kinematics(model, q)
    motion = calc_tree_motion(model, position, q, v)
    tau_applied, F_T = calc_acting_forces(model, position, motion, q, forces, force_elements)
    terms = ForwardDynamicsTerms(
        motion,
        tau if tau_applied is None else tau + tau_applied,
        F_T,
        calc_reflected_inertia(model),
        locked_velocities(model),
    )
    return calc_forward_dynamics(terms)


def calc_acting_forces(
    model: MultibodyModel,
    position: PositionKinematics,
    motion: TreeMotion,
    q: Float[Array, " nq"],
    forces: MultibodyForces | None,
    force_elements: bool,
) -> tuple[Float[Array, " nv"] | None, Float[Array, "6 nm"] | None]:
    """Generalized forces, and forces on mobods about T: the given ones, and with `force_elements` all elements'."""
    tau, F_T = split_forces(model, position, forces)
    if not force_elements:
        return tau, F_T
    tau_passive, F_passive_T = calc_passive_forces_on_tree(model, position, motion.velocity, q, motion.v)
    tau_passive = tau_passive + calc_joint_dissipation(model, motion.v)
    if tau is None or F_T is None:
        return tau_passive, F_passive_T
    return tau + tau_passive, F_T + F_passive_T


def split_forces(
    model: MultibodyModel, position: PositionKinematics, forces: MultibodyForces | None
) -> tuple[Float[Array, " nv"] | None, Float[Array, "6 nm"] | None]:
    """Splits `forces` into generalized forces and forces on mobods about T; both None where `forces` is None."""
    if forces is None:
        return None, None
    if not isinstance(forces, MultibodyForces):
        raise ModelError(
            f"forces must be mbjax.MultibodyForces(generalized, body), got {in_place_of_forces(forces)}. Generalized "
            "forces alone go in by tau."
        )
    num_axes = model.num_world_axes
    tau = as_coordinates("forces.generalized", forces.generalized, model.num_velocities, model.dtype, num_axes)
    return tau, calc_mobod_forces(model, position, forces.body)


def calc_reflected_inertia(model: MultibodyModel) -> Float[Array, " nv"]:
    """The diagonal added to M: armatures, and rotor inertia times gear ratio squared where actuators drive."""
    parameters, ratios = model.parameters, actuator_ratios(model)
    reflected = parameters.rotor_inertia * parameters.gear_ratio**2
    of_rotors = spread_over_velocities(model, reflected if ratios is None else reflected * ratios)
    return of_rotors + sum_joint_coefficients(model, parameters.joint_armature)


def spread_over_velocities(model: MultibodyModel, x: Float[Array, " nu"]) -> Float[Array, " nv"]:
    """Sums per-actuator efforts into forces along the velocities that they drive; zero elsewhere."""
    ratios = actuator_ratios(model)
    x = x if ratios is None else x * ratios
    mask = np.zeros((model.num_actuators, model.num_velocities))
    mask[np.arange(model.num_actuators), list(model.layout.velocities_of_actuators)] = 1.0
    return dot_with_mask(x, mask, 0)
