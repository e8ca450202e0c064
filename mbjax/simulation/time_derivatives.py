"""Time derivatives of the continuous plant: ẋ = f(x, u)."""

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.contact import (
    ContactForces,
    calc_contact_points,
    calc_continuous_contact_forces,
    find_moved_bodies,
)
from mbjax.dynamics import (
    ForwardDynamicsTerms,
    calc_forward_dynamics,
    calc_forward_dynamics_from_state,
    calc_reflected_inertia,
    calc_tree_motion,
    spread_over_velocities,
)
from mbjax.execution import each_world
from mbjax.forces import calc_joint_dissipation, calc_mobod_forces, calc_passive_forces_on_tree
from mbjax.kinematics import calc_position_kinematics, for_worlds_of, velocity_to_qdot
from mbjax.model import MultibodyModel, locked_velocities, without_unread_geometry
from mbjax.number_rules import is_known

from .actuation import calc_actuator_law, saturate
from .applied_forces import calc_input_forces
from .constraint_rows import calc_rows_now, solve_with_rows
from .deformable_step import NodeMotion
from .ports import Inputs, as_inputs
from .state import State, as_state, require_rigid_bodies_alone


class Acceleration(eqx.Module):
    """Acceleration vdot, net actuation u, constraint forces λ by row, and contact forces."""

    vdot: Float[Array, " nv"]
    u: Float[Array, " nu"]
    multipliers: Float[Array, " nc"]
    contacts: ContactForces | None = None
    nodes: NodeMotion | None = None


def time_derivatives(
    model: MultibodyModel, state: State, inputs: Any = None
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """Derivatives (qdot, vdot) of the continuous plant, with all forces taken at the given state.

    A discrete model is taken as a continuous one with its numbers. No force keeps joints within position limits. Raises
    `ModelError` where two rigid geometries may touch.
    """
    state, inputs = as_state(model, state), as_inputs(model, inputs)
    require_rigid_bodies_alone(model, "time_derivatives", "take mbjax.step, which moves their nodes")
    require_compliant_pairs(model)
    return for_worlds_of(_time_derivatives, without_unread_geometry(model), state, inputs)


def require_compliant_pairs(model: MultibodyModel) -> None:
    """Raises `ModelError` for two rigid geometries that may touch, as a discrete model may have; traced ones pass."""
    if model.layout.contact.pairs and is_known(model.collision.stiffness):
        model.layout.contact.refuse_rigid_pairs(np.asarray(model.collision.stiffness))


def _time_derivatives(model: MultibodyModel, state: State, inputs: Inputs) -> tuple[Array, Array]:
    return velocity_to_qdot(model, state.q, state.v), calc_acceleration_now(model, state, inputs).vdot


def calc_acceleration_now(model: MultibodyModel, state: State, inputs: Inputs) -> Acceleration:
    """Acceleration of the continuous plant, with all forces explicit."""
    if feels_weights_alone(model, inputs):
        tau, u = add_joint_forces(model, state, inputs, applied_or_zero(inputs, state.v))
        diagonal = calc_reflected_inertia(model)
        vdot = calc_forward_dynamics_from_state(model, state.q, state.v, tau, diagonal, True)
        return Acceleration(vdot, u, model.zeros(0))
    terms, u, contacts = calc_terms_now(model, state, inputs)
    if not model.constraints:
        return Acceleration(calc_forward_dynamics(terms), u, model.zeros(0), contacts)
    vdot, multipliers = solve_with_rows(model, terms, calc_rows_now(model, terms, state.q, state.v))
    return Acceleration(vdot, u, multipliers, contacts)


def feels_weights_alone(model: MultibodyModel, inputs: Inputs) -> bool:
    """Whether gravity is the only force on bodies, and there are no constraints."""
    others = (
        model.constraints,
        model.layout.contact.pairs,
        model.force_elements,
        model.has_fixed_nodes,
        model.has_node_contacts,
    )
    return inputs.applied_spatial_forces is None and not any(others)


def applied_or_zero(inputs: Inputs, v: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """The applied generalized force, or zero if the inputs give none."""
    tau = inputs.applied_generalized_force
    return jnp.zeros_like(v) if tau is None else tau


def add_joint_forces(
    model: MultibodyModel, state: State, inputs: Inputs, tau: Float[Array, " nv"]
) -> tuple[Float[Array, " nv"], Float[Array, " nu"]]:
    """Adds the forces of actuators and dissipation to tau; also returns the net actuation."""
    u = saturate(calc_actuator_law(model, inputs, state.q, state.v, None).u_0, model.parameters.effort_limit)
    return tau + spread_over_velocities(model, u) + calc_joint_dissipation(model, state.v), u


def calc_contacts_now(model: MultibodyModel, terms: ForwardDynamicsTerms) -> tuple[ContactForces, Float[Array, " nv"]]:
    """Contact forces of the continuous plant, and their generalized forces."""
    points = calc_contact_points(model, terms.position)
    moved = find_moved_bodies(model.topology, terms.position, points)
    v_AcBc_W = moved.velocities(terms.v)
    collision = model.collision
    tolerance, smoothing = collision.stiction_tolerance, collision.smoothing_length
    f_Bc_W = calc_continuous_contact_forces(points, v_AcBc_W, tolerance, smoothing)
    tau = moved.generalized(f_Bc_W)
    return ContactForces(points, f_Bc_W, v_AcBc_W, tau), tau


def calc_terms_now(
    model: MultibodyModel, state: State, inputs: Inputs
) -> tuple[ForwardDynamicsTerms, Float[Array, " nu"], ContactForces | None]:
    """Equation of motion with all forces but the constraints', the net actuation, and the contact forces."""
    terms = calc_explicit_terms(model, state, inputs)
    (tau, u), contacts = add_joint_forces(model, state, inputs, terms.tau), None
    if model.layout.contact.pairs:
        contacts, tau_of_contacts = calc_contacts_now(model, terms)
        tau = tau + tau_of_contacts
    return replace_tau(terms, tau, terms.diagonal), u, contacts


def calc_explicit_terms(model: MultibodyModel, state: State, inputs: Inputs) -> ForwardDynamicsTerms:
    """Equation of motion with gravity, force elements and applied forces, without actuation or dissipation."""
    position = calc_position_kinematics(model, state.q)
    motion = calc_tree_motion(model, position, state.q, state.v)
    tau, F_T = calc_passive_forces_on_tree(model, position, motion.velocity, state.q, state.v)
    applied = each_world(calc_input_forces, model.num_world_axes, model, position, inputs)
    if applied is not None:
        tau = tau + applied.generalized
    if applied is not None and inputs.applied_spatial_forces is not None:
        F_T = F_T + calc_mobod_forces(model, position, applied.body)
    return ForwardDynamicsTerms(
        motion,
        tau,
        F_T,
        calc_reflected_inertia(model),
        locked_velocities(model),
        only_weights=inputs.applied_spatial_forces is None and not model.force_elements,
    )


def replace_tau(
    terms: ForwardDynamicsTerms, tau: Float[Array, " nv"], diagonal: Float[Array, " nv"]
) -> ForwardDynamicsTerms:
    """The equation of motion with `tau` and `diagonal` replaced."""
    return dataclasses.replace(terms, tau=tau, diagonal=diagonal)
