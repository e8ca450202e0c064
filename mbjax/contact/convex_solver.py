"""The solution of the discrete step's problem, with its derivative.

The derivative follows from the equation at the solution by one more solve with its Newton matrix. It depends neither
on the number of iterations nor on the start. The solution determines which rows stick, slide, or are at a bound;
within each of these modes the derivatives are exact.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from mbjax.execution import ResumedSearch
from mbjax.topology import TreeTopology

from .convex_problem import ConvexProblem, calc_problem_residual, calc_row_motion, calc_stiffness
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
    _, moved = eqx.filter_jvp(lambda p: calc_problem_residual(topology, p, vdot), (problem,), (tangents[1],))

    def product(x: Array) -> Array:
        return jax.jvp(lambda a: calc_problem_residual(topology, problem, a), (vdot,), (x,))[1]

    fixed = lax.stop_gradient(problem)
    motion = calc_row_motion(fixed, lax.stop_gradient(vdot))
    solve = newton_matrix(topology, fixed).solver(calc_stiffness(fixed, motion))
    moved = jnp.broadcast_to(-moved, (vdot.shape[0], *shape_of_worlds(problem)))
    return vdot, lax.custom_linear_solve(product, moved, lambda _, b: solve(b), symmetric=True)
