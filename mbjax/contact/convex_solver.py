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
from mbjax.execution import ResumedSearch
from mbjax.execution.derivative_rules import add_tangents
from mbjax.topology import TreeTopology

from .convex_problem import (
    ConvexProblem,
    calc_impulses,
    calc_problem_residual,
    calc_row_forces,
    calc_row_motion,
    calc_stiffness,
)
from .convex_search import ConvexSearch, ConvexSolution, search, shape_of_worlds
from .newton_matrix import newton_matrix


def calc_convex_solution(
    topology: TreeTopology, problem: ConvexProblem, found: ConvexSolution | ResumedSearch | None = None
) -> tuple[ConvexSolution, ConvexSearch | None]:
    """The acceleration of the step, with its derivatives; the other results have none.

    If `found` is a solution, no search runs. Otherwise the search starts afresh, or resumes from `found`. The second
    result is the search, or None if none ran; a resumed search may be unfinished.
    """
    if isinstance(found, ConvexSolution):
        searched, found = None, lax.stop_gradient(found)
    else:
        searched = search(topology, lax.stop_gradient(problem), found)
        found = searched.solution()
    return ConvexSolution(
        solution_with_rule(topology, problem, found.vdot), found.num_iterations, found.converged
    ), searched


@eqx.filter_custom_jvp
def solution_with_rule(
    topology: TreeTopology, problem: ConvexProblem, vdot: Float[Array, " nv"]
) -> Float[Array, " nv"]:
    """Returns the solution vdot unchanged; the derivative rule differentiates the equation that it solves."""
    return vdot


@solution_with_rule.def_jvp
def _solution_with_rule_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    topology, problem, vdot = primals
    vdot = solution_with_rule(topology, problem, vdot)  # needed for second derivatives
    forces = calc_force_change(problem, tangents[1], vdot)

    def product(x: Array) -> Array:
        return jax.jvp(lambda a: calc_problem_residual(topology, problem, a), (vdot,), (x,))[1]

    fixed = lax.stop_gradient(problem)
    motion = calc_row_motion(fixed, lax.stop_gradient(vdot))
    solve = newton_matrix(topology, fixed).solver(calc_stiffness(fixed, motion))
    forces = jnp.broadcast_to(forces, (vdot.shape[0], *shape_of_worlds(problem)))
    return vdot, lax.custom_linear_solve(product, forces, lambda _, b: solve(b), symmetric=True)


def calc_force_change(problem: ConvexProblem, change: ConvexProblem, vdot: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """Tangent, along `change` of the problem, of the forces that act less those that vdot requires, vdot held.

    It is that of -`calc_problem_residual`. What vdot requires is inverse dynamics, whose transpose is one recursion.
    """
    locked = problem.terms.locked
    free = jnp.where(locked, 0.0, vdot)

    def of_rows(rows: ConvexProblem) -> Array:
        return calc_row_forces(rows, calc_impulses(rows, calc_row_motion(rows, free)))

    rows, row_change = (dataclasses.replace(x, terms=None) for x in (problem, change))
    _, of_rows_change = eqx.filter_jvp(of_rows, (rows,), (row_change,))
    total = add_tangents(calc_residual_change(problem.terms, change.terms, free, None), of_rows_change)
    return jnp.zeros_like(free) if total is None else jnp.where(locked, 0.0, total)
