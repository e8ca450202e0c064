"""The solution of the discrete step's problem, with its derivative.

The derivative follows from the equation at the solution by one more solve with its Newton matrix. It depends neither
on the number of iterations nor on the start. The solution determines which rows stick, slide, or are at a bound;
within each of these modes the derivatives are exact.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from mbjax.dynamics import calc_residual_change
from mbjax.dynamics.composite_body.mass_matrix_diagonal import calc_mass_matrix_diagonal
from mbjax.execution import ResumedSearch, in_one_kernel, on_cpu
from mbjax.execution.derivative_rules import add_tangents
from mbjax.model import MultibodyModel
from mbjax.topology import TreeTopology

from ..forms.abstract_form import AbstractContactForm, StepSoFar
from ..forms.choose import form_elsewhere, form_on_cpu
from ..points.point_records import ContactPoints
from .condensed_search import ProblemOnFewNodes, on_few_nodes
from .convex_problem import (
    ConvexProblem,
    calc_impulses,
    calc_problem_residual,
    calc_row_forces,
    calc_row_motion,
    calc_stiffness,
)
from .convex_search import ConvexSearch, ConvexSolution, search, shape_of_worlds, without_numbers


def calc_convex_solution(
    model: MultibodyModel,
    problem: ConvexProblem,
    points: ContactPoints | None = None,
    found: ConvexSolution | ResumedSearch | None = None,
) -> tuple[ConvexSolution, ConvexSearch | None]:
    """The acceleration of the step, with its derivatives; the other results have none.

    If `found` is a solution, no search runs. Otherwise the search starts afresh, or resumes from `found`. The second
    result is the search, or None if none ran; a resumed search may be unfinished. `points` are those of all contacts
    if their forces are read anyway: a CPU, whose form of contact may find its own, then takes these.
    """
    reads = points is not None
    if found is None and problem.contacts is not None and form_on_cpu(model, reads) is not type(problem.contacts):
        return calc_solution_on_cpu(model, problem, points)
    return calc_solution(model.topology, problem, found)


def calc_solution(
    topology: TreeTopology, problem: ConvexProblem, found: ConvexSolution | ResumedSearch | None = None
) -> tuple[ConvexSolution, ConvexSearch | None]:
    """`calc_convex_solution` with the form of contact that the problem has."""
    searched = None
    few = None if problem.nodes is None else on_few_nodes(lax.stop_gradient(problem))
    if isinstance(found, ConvexSolution):
        found = lax.stop_gradient(found)
    elif few is not None:
        assert found is None, "such a search is not resumed"
        found = few.search(topology)
    else:
        searched = search(topology, lax.stop_gradient(problem), found)
        found = searched.solution()
    vdot = solution_with_rule(topology, problem, found.vdot, few)
    return ConvexSolution(vdot, found.num_iterations, found.converged), searched


def calc_solution_on_cpu(
    model: MultibodyModel, whole: ConvexProblem, points: ContactPoints | None
) -> tuple[ConvexSolution, ConvexSearch]:
    """The solution of a problem by the form of contact of a CPU, in one kernel; elsewhere by that of `whole`.

    Where nobody reads the `points`, contacts other than those of the search are computed for derivatives alone. The
    second result has the shapes of a search, but no numbers: nobody resumes the search of one world.
    """
    problem = dataclasses.replace(whole, contacts=None)
    arrays, static = eqx.partition(lax.stop_gradient((model, problem, points)), eqx.is_array)

    def by(form: type[AbstractContactForm], arrays: tuple) -> ConvexSolution:
        model, problem, points = eqx.combine(arrays, static)
        return search(model.topology, with_contacts(model, problem, form, points)).solution()

    def here(arrays: tuple) -> ConvexSolution:
        return in_one_kernel(lambda arrays: by(form_on_cpu(model, points is not None), arrays), arrays)

    found = on_cpu(here, lambda arrays: by(form_elsewhere(model), arrays), arrays)
    if points is None:
        vdot = solution_with_rule_of_model(model, problem, found.vdot)
    else:
        vdot = solution_with_rule(model.topology, whole, found.vdot, None)
    return found._replace(vdot=vdot), without_numbers(whole)


def with_contacts(
    model: MultibodyModel,
    problem: ConvexProblem,
    form: type[AbstractContactForm],
    points: ContactPoints | None = None,
) -> ConvexProblem:
    """The problem with contacts of this form."""
    terms = problem.terms
    diagonal = calc_mass_matrix_diagonal(terms.motion, terms.diagonal)
    return dataclasses.replace(problem, contacts=form.at(StepSoFar(model, terms, diagonal, points)))


@eqx.filter_custom_jvp
def solution_with_rule(
    topology: TreeTopology, problem: ConvexProblem, vdot: Float[Array, " nv"], few: ProblemOnFewNodes | None
) -> Float[Array, " nv"]:
    """Returns the solution vdot unchanged; the derivative rule differentiates the equation that it solves.

    `few` has the problem on the nodes that take part, where there are nodes.
    """
    return vdot


@solution_with_rule.def_jvp
def _solution_with_rule_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    topology, problem, vdot, few = primals
    vdot = solution_with_rule(topology, problem, vdot, few)  # needed for second derivatives
    forces = calc_force_change(problem, tangents[1], vdot)

    def product(x: Array) -> Array:
        return jax.jvp(lambda a: calc_problem_residual(topology, problem, a), (vdot,), (x,))[1]

    fixed = lax.stop_gradient(problem)
    motion = calc_row_motion(fixed, lax.stop_gradient(vdot))
    stiffness = calc_stiffness(fixed, motion)
    solve = fixed.newton_matrix(topology).solver(stiffness) if few is None else few.solver(topology, stiffness)
    forces = jnp.broadcast_to(forces, (vdot.shape[0], *shape_of_worlds(problem)))
    return vdot, lax.custom_linear_solve(product, forces, lambda _, b: solve(b), symmetric=True)


def calc_force_change(problem: ConvexProblem, change: ConvexProblem, vdot: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """Tangent, along `change` of the problem, of the forces that act less those that vdot requires, vdot held.

    It is that of -`calc_problem_residual`. What vdot requires is inverse dynamics, whose transpose is one recursion.
    """
    locked = problem.locked
    free = jnp.where(locked, 0.0, vdot)
    of_bodies = free if problem.nodes is None else problem.apart(free)[0]

    def of_rows(rows: ConvexProblem) -> Array:
        forces = calc_row_forces(rows, calc_impulses(rows, calc_row_motion(rows, free)))
        if rows.nodes is None:
            return forces
        return forces - rows.with_nodes(
            jnp.zeros_like(rows.v), lambda nodes: nodes.inertia.product(rows.apart(free)[1])
        )

    rows, row_change = (dataclasses.replace(x, terms=None) for x in (problem, change))
    _, of_rows_change = eqx.filter_jvp(of_rows, (rows,), (row_change,))
    total = calc_residual_change(problem.terms, change.terms, of_bodies, None)
    if total is not None:
        total = problem.with_nodes(total, lambda nodes: jnp.zeros_like(nodes.v_free))
    total = add_tangents(total, of_rows_change)
    return jnp.zeros_like(free) if total is None else jnp.where(locked, 0.0, total)


@eqx.filter_custom_jvp
def solution_with_rule_of_model(
    model: MultibodyModel, problem: ConvexProblem, vdot: Float[Array, " nv"]
) -> Float[Array, " nv"]:
    """Returns vdot unchanged; its derivative is that of the problem with contacts, made only where it is wanted."""
    return vdot


@solution_with_rule_of_model.def_jvp
def _solution_with_rule_of_model_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    model, problem, vdot = primals
    vdot = solution_with_rule_of_model(model, problem, vdot)  # needed for second derivatives

    def of_all(model: MultibodyModel, problem: ConvexProblem) -> Array:
        return solution_with_rule(model.topology, with_contacts(model, problem, form_elsewhere(model)), vdot, None)

    return vdot, eqx.filter_jvp(of_all, (model, problem), tangents[:2])[1]
