"""The discrete plant's acceleration: one convex problem for everything that acts at the end of the step."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.contact import (
    BoxRows,
    ContactForces,
    ContactPoints,
    ContactRows,
    ConvexProblem,
    ConvexSearch,
    ConvexSolution,
    CoupledRows,
    calc_contact_points,
    calc_contact_rows,
    calc_convex_solution,
    calc_impulses,
    calc_listed_solution,
    calc_row_motion,
    can_list,
    count_left_out,
    find_moved_bodies,
    in_all_slots,
    join_rows,
)
from mbjax.dynamics import ForwardDynamicsTerms, calc_forward_dynamics, spread_over_velocities
from mbjax.dynamics.composite_body.mass_matrix_diagonal import calc_mass_matrix_diagonal
from mbjax.execution import ResumedSearch
from mbjax.forces import calc_dissipation_coefficient
from mbjax.model import MultibodyModel, actuator_ratios

from .actuation import ActuatorLaw, calc_actuator_law, is_tracking, saturate
from .constraint_rows import calc_rows_of_step
from .joint_friction_rows import calc_friction_without_rows, calc_joint_friction_rows
from .joint_limit_rows import calc_joint_limit_rows
from .ports import Inputs
from .state import State
from .time_derivatives import Acceleration, calc_explicit_terms, replace_tau


def calc_discrete_acceleration(
    model: MultibodyModel,
    state: State,
    inputs: Inputs,
    found: ConvexSolution | ResumedSearch | None = None,
    reads_contacts: bool = True,
) -> tuple[Acceleration, ConvexSolution | None, ConvexSearch | None]:
    """Acceleration vdot of the discrete step, whose new velocity is v + dt vdot, and the forces that cause it.

    (M + dt C) vdot = tau(q, v) - C v + Gᵀ γ(v + dt vdot) / dt

    Dissipation C acts on the new velocity, and so do all rows: tracking actuators within their effort limits, joint
    limits and friction, constraints and contacts. See `mbjax.contact.convex_problem`. The second result is the
    solution if a search was needed; passed as `found`, it spares the search. The third result is the search. Where
    nobody reads the contacts there are no results of them, and one world may work on a list of those that act.
    """
    problem, points, u = calc_step_problem(model, state, inputs)
    if problem.box is None and problem.coupled is None and problem.contacts is None:
        return Acceleration(calc_forward_dynamics(problem.terms), u, model.zeros(0)), None, None
    if found is None and not reads_contacts and can_list(model):
        found, search = calc_listed_solution(model, problem)
    else:
        found, search = calc_convex_solution(model.topology, problem, found)
    vdot, num_iterations, converged = found
    motion = calc_row_motion(problem, vdot)
    impulses = calc_impulses(problem, motion)
    if is_tracking(inputs) and impulses.box is not None:
        u = impulses.box[: model.num_actuators] / model.time_step
    multipliers = model.zeros(0) if impulses.coupled is None else impulses.coupled / model.time_step
    if not reads_contacts or points is None:
        return Acceleration(vdot, u, multipliers), found, search
    rows, count = problem.contacts, len(points.pairs)
    assert isinstance(rows, ContactRows)
    assert impulses.contacts is not None
    assert motion.contacts is not None
    f_Bc_W = impulses.contacts / model.time_step
    tau, v_AcBc_W, num_left_out = rows.generalized(f_Bc_W), rows.v_AcBc_W + motion.contacts, None
    if rows.slots is not None:
        moved = find_moved_bodies(model.topology, problem.terms.position, points)
        v_AcBc_W = moved.velocities(problem.v + model.time_step * vdot)
        num_left_out = count_left_out(model, points, rows.slots, v_AcBc_W)
    f_Bc_W = in_all_slots(rows, f_Bc_W, count)
    of_contacts = ContactForces(points, f_Bc_W, v_AcBc_W, tau, num_iterations, converged, num_left_out)
    return Acceleration(vdot, u, multipliers, of_contacts), found, search


def calc_step_problem(
    model: MultibodyModel, state: State, inputs: Inputs
) -> tuple[ConvexProblem, ContactPoints | None, Float[Array, " nu"]]:
    """The step's convex problem, its possible contact points, and the efforts of actuators that do not track."""
    terms = calc_explicit_terms(model, state, inputs)
    law = calc_actuator_law(model, inputs, state.q, state.v, model.time_step)
    dissipation = calc_dissipation_coefficient(model, terms.v, calc_friction_without_rows(model))
    u = saturate(law.u_0, model.parameters.effort_limit)
    tau = terms.tau - dissipation * terms.v
    if not is_tracking(inputs):
        tau = tau + spread_over_velocities(model, u)
    terms = replace_tau(terms, tau, terms.diagonal + model.time_step * dissipation)
    tracking = calc_tracking_rows(model, law) if is_tracking(inputs) else None
    of_joints, coupled, contacts, points = calc_other_rows(model, state, terms)
    rows = join_rows([tracking, of_joints])
    return ConvexProblem(terms, terms.v, model.time_step, rows, coupled, contacts), points, u


def calc_other_rows(
    model: MultibodyModel, state: State, terms: ForwardDynamicsTerms
) -> tuple[BoxRows | None, CoupledRows | None, ContactRows | None, ContactPoints | None]:
    """Rows of joint limits and friction, constraints and contacts, or None; diag(M) estimates their responses."""
    has_contacts, layout = bool(model.layout.contact.pairs), model.layout
    if not (has_contacts or model.constraints or layout.limited_joints or layout.frictional_directions):
        return None, None, None, None
    diagonal = calc_mass_matrix_diagonal(terms.motion, terms.diagonal)
    limits = calc_joint_limit_rows(model, state.q, terms.v, diagonal)
    of_joints = join_rows([limits, calc_joint_friction_rows(model, terms.v, diagonal)])
    coupled, contacts, points = None, None, None
    if model.constraints:
        of_constraints = calc_rows_of_step(model, terms, diagonal, state.q, state.v)
        assert of_constraints.R is not None
        stiffness = of_constraints.active / of_constraints.R
        coupled = CoupledRows(of_constraints.G, model.time_step * of_constraints.rhs * stiffness, stiffness)
    if has_contacts:
        points = calc_contact_points(model, terms.position)
        contacts = calc_contact_rows(model, points, terms.position, terms.v, diagonal, terms.locked)
    return of_joints, coupled, contacts, points


def calc_tracking_rows(model: MultibodyModel, law: ActuatorLaw) -> BoxRows:
    """Impulse rows of u = u_0 - k (v⁺ - v) within the effort limits over the step; one row per actuator."""
    dt, limit = model.time_step, model.parameters.effort_limit
    is_limited = jnp.isfinite(limit)  # keeps inf * 0 out of derivatives
    bound = jnp.where(is_limited, dt * jnp.where(is_limited, limit, 0.0), jnp.inf)
    return BoxRows(
        dt * law.u_0, dt * law.k, -bound, bound, model.layout.velocities_of_actuators, actuator_ratios(model)
    )
