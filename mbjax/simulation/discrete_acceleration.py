"""The discrete plant's acceleration: one convex problem for everything that acts at the end of the step."""

import dataclasses

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from mbjax.contact import (
    AbstractContactForm,
    BoxRows,
    ContactPoints,
    ConvexProblem,
    ConvexSearch,
    ConvexSolution,
    CoupledRows,
    OtherRows,
    StepSoFar,
    calc_contact_forces_of_step,
    calc_contact_points,
    calc_convex_solution,
    calc_impulses,
    calc_row_motion,
    form_elsewhere,
    is_matrix_factored,
    join_rows,
)
from mbjax.dynamics import ForwardDynamicsTerms, calc_forward_dynamics, spread_over_velocities
from mbjax.dynamics.composite_body.mass_matrix_diagonal import calc_mass_matrix_diagonal
from mbjax.dynamics.composite_body.recursion import calc_mass_matrix_from_state
from mbjax.execution import ResumedSearch
from mbjax.forces import calc_dissipation_coefficient
from mbjax.model import MultibodyModel, actuator_ratios

from .actuation import ActuatorLaw, calc_actuator_law, is_tracking, saturate
from .constraint_rows import calc_rows_of_step, num_constraint_rows
from .deformable_step import calc_node_motion, calc_nodes_of_step, calc_solution_with_nodes, with_fixed_nodes
from .joint_friction_rows import calc_friction_without_rows, calc_joint_friction_rows
from .joint_limit_rows import calc_joint_limit_rows
from .ports import Inputs
from .state import State
from .time_derivatives import Acceleration, calc_explicit_terms, feels_weights_alone, replace_tau


def calc_discrete_acceleration(
    model: MultibodyModel,
    state: State,
    inputs: Inputs,
    found: ConvexSolution | ResumedSearch | None = None,
    reads_contacts: bool = True,
) -> tuple[Acceleration, ConvexSolution | None, ConvexSearch | None]:
    """Acceleration vdot of the discrete step, whose new velocity is v + dt vdot, and the forces that cause it.

    (M + diag) vdot + bias = tau - D v + Gᵀ γ(G v⁺) / dt        v⁺ = v + dt vdot, and diag has dt D

    Dissipation D acts on the new velocity, and so do all rows: tracking actuators within their effort limits, joint
    limits and friction, constraints and contacts. See docs/development/contact.md. The second result is the solution
    if a search was needed; passed as `found`, it spares the search. The third result is the search. Where nobody reads
    the contacts there are no results of them, and one world may work on a list of those that act.
    """
    problem, points, u = calc_step_problem(model, state, inputs)
    nodes = None if model.deformables is None else calc_nodes_of_step(model, state, inputs, problem.terms)
    if nodes is not None:
        problem = with_fixed_nodes(model, problem, nodes.eliminated)
    if problem.contacts is None and not problem.others.exist and not model.has_node_contacts:
        vdot = calc_forward_dynamics(problem.terms)
        moved = None if nodes is None else calc_node_motion(model, nodes, vdot, problem.terms.position)
        return Acceleration(vdot, u, model.zeros(0), nodes=moved), None, None
    if nodes is not None and nodes.of_problem is not None:
        found, search = calc_solution_with_nodes(model, problem, nodes.of_problem, found), None
    else:
        found, search = calc_convex_solution(model, problem, points if reads_contacts else None, found)
    of_bodies = found._replace(vdot=found.vdot[: model.num_velocities])
    motion = calc_row_motion(problem, of_bodies.vdot)
    impulses = calc_impulses(problem, motion)
    if is_tracking(inputs) and impulses.box is not None:
        u = impulses.box[: model.num_actuators] / model.time_step
    multipliers = model.zeros(0) if impulses.coupled is None else impulses.coupled / model.time_step
    moved = None
    if nodes is not None:
        moved = calc_node_motion(model, nodes, found.vdot, problem.terms.position, found.converged)
        multipliers = multipliers[: num_constraint_rows(model)]
    contacts = None
    if reads_contacts and points is not None:
        contacts = calc_contact_forces_of_step(model, problem, points, of_bodies, motion, impulses)
    return Acceleration(of_bodies.vdot, u, multipliers, contacts, moved), found, search


def calc_step_problem(
    model: MultibodyModel, state: State, inputs: Inputs
) -> tuple[ConvexProblem, ContactPoints | None, Float[Array, " nu"]]:
    """The step's convex problem, its possible contact points, and the efforts of actuators that do not track."""
    law = calc_actuator_law(model, inputs, state.q, state.v, model.time_step)
    terms, u = calc_implicit_terms(model, state, inputs, law)
    if has_box_rows_alone(model, inputs):
        M = calc_mass_matrix_from_state(model, state.q, jnp.zeros_like(terms.diagonal))
        terms = dataclasses.replace(terms, M=lax.stop_gradient(M))
    tracking = calc_tracking_rows(model, law) if is_tracking(inputs) else None
    others, contacts, points = calc_rows_of_state(model, state, terms, tracking)
    return ConvexProblem(terms, terms.v, model.time_step, others, contacts), points, u


def has_box_rows_alone(model: MultibodyModel, inputs: Inputs) -> bool:
    """Whether a step has rows that act on one velocity each, and reads of the kinematics M and the bias alone."""
    topology, layout = model.topology, model.layout
    has_rows = is_tracking(inputs) or bool(layout.limited_joints or layout.frictional_directions)
    return has_rows and feels_weights_alone(model, inputs) and is_matrix_factored(topology) and not topology.followers


def calc_implicit_terms(
    model: MultibodyModel, state: State, inputs: Inputs, law: ActuatorLaw
) -> tuple[ForwardDynamicsTerms, Float[Array, " nu"]]:
    """Equation of motion with dissipation at the new velocity, and the efforts of actuators that do not track."""
    terms = calc_explicit_terms(model, state, inputs)
    dissipation = calc_dissipation_coefficient(model, terms.v, calc_friction_without_rows(model))
    u = saturate(law.u_0, model.parameters.effort_limit)
    tau = terms.tau - dissipation * terms.v
    if not is_tracking(inputs):
        tau = tau + spread_over_velocities(model, u)
    return replace_tau(terms, tau, terms.diagonal + model.time_step * dissipation), u


def calc_rows_of_state(
    model: MultibodyModel, state: State, terms: ForwardDynamicsTerms, tracking: BoxRows | None
) -> tuple[OtherRows, AbstractContactForm | None, ContactPoints | None]:
    """The rows of limits, friction and constraints beside those that track, and the contacts with all their points.

    diag(M) estimates how they respond. The form of contact is the one that serves derivatives and results, too.
    """
    layout = model.layout
    has_contacts, has_joint_rows = bool(layout.contact.pairs), layout.limited_joints or layout.frictional_directions
    if not (has_contacts or model.constraints or has_joint_rows):
        return OtherRows(join_rows([tracking])), None, None
    diagonal = calc_mass_matrix_diagonal(terms.motion, terms.diagonal, terms.M)
    limits = calc_joint_limit_rows(model, state.q, terms.v, diagonal)
    friction = calc_joint_friction_rows(model, terms.v, diagonal)
    box = join_rows([tracking, join_rows([limits, friction])])
    others = OtherRows(box, calc_coupled_rows(model, state, terms, diagonal))
    if not has_contacts:
        return others, None, None
    points = calc_contact_points(model, terms.position)
    return others, form_elsewhere(model).at(StepSoFar(model, terms, diagonal, points)), points


def calc_tracking_rows(model: MultibodyModel, law: ActuatorLaw) -> BoxRows:
    """Impulse rows of u = u_0 - k (v⁺ - v) within the effort limits over the step; one row per actuator."""
    dt, limit = model.time_step, model.parameters.effort_limit
    is_limited = jnp.isfinite(limit)  # keeps inf * 0 out of derivatives
    bound = jnp.where(is_limited, dt * jnp.where(is_limited, limit, 0.0), jnp.inf)
    return BoxRows(
        dt * law.u_0, dt * law.k, -bound, bound, model.layout.velocities_of_actuators, actuator_ratios(model)
    )


def calc_coupled_rows(
    model: MultibodyModel, state: State, terms: ForwardDynamicsTerms, diagonal: Float[Array, " nv"]
) -> CoupledRows | None:
    """Rows of the model's constraints; None without constraints."""
    if not model.constraints:
        return None
    rows = calc_rows_of_step(model, terms, diagonal, state.q, state.v)
    assert rows.R is not None
    stiffness = rows.active / rows.R
    return CoupledRows(rows.G, model.time_step * rows.rhs * stiffness, stiffness)
