"""Newton's method with line search for the discrete step's convex problem."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from mbjax.execution import ResumedSearch
from mbjax.execution.arrays import largest_over_first, sum_over_first
from mbjax.spatial import safe_sqrt
from mbjax.topology import TreeTopology

from ..rows.rows_of_step import OfRows
from .convex_problem import (
    ConvexProblem,
    LinearLaws,
    calc_laws_at_start,
    calc_linear_laws,
    calc_row_forces,
    calc_row_motion,
    row_power_along,
)
from .line_search import find_minimum

MAX_ITERATIONS = 100  # piles of 100 bodies that fall on each other take up to 50
NEARLY_BALANCED = 0.1  # residual at vdot = 0 relative to the largest force, below which the search begins there
BALANCED = {4: 1e-5, 8: 1e-11}  # largest residual of a solution relative to the largest force, by bytes of a float


class ConvexSolution(NamedTuple):
    """The solution vdot, and whether each world found it within the iterations allowed."""

    vdot: Float[Array, " nv"]
    num_iterations: Int[Array, ""]
    converged: Bool[Array, ""]


class ConvexSearch(NamedTuple):
    """State of the search: vdot, (M + diag) vdot, the rows' motion and laws, the residual, and finished worlds."""

    vdot: Float[Array, " nv"]
    inertial: Float[Array, " nv"]
    motion: OfRows
    laws: LinearLaws
    residual: Float[Array, " nv"]
    num_iterations: Int[Array, ""]
    still: Bool[Array, ""]  # the last step was lost in rounding
    converged: Bool[Array, ""]  # or the residual is not a number, which ends the world's search too

    def is_unfinished(self) -> Bool[Array, ""]:
        """Mask of the worlds that need another iteration and may have one."""
        return ~self.converged & (self.num_iterations < MAX_ITERATIONS)

    def solution(self) -> ConvexSolution:
        """The solution found; vdot is NaN where the residual is not finite, so that failure shows."""
        is_finite = jnp.isfinite(sum_over_first(self.residual))
        vdot = jnp.where(is_finite, self.vdot, jnp.nan)
        return ConvexSolution(vdot, self.num_iterations, self.converged & is_finite)


def search(topology: TreeTopology, problem: ConvexProblem, begun: ResumedSearch | None = None) -> ConvexSearch:
    """Runs Newton's iterations on all worlds until the last one has ended; finished worlds stay as they are.

    A search that has `begun` resumes where it was, and may leave some worlds to a later turn. A world's result is
    bitwise independent of how its iterations are divided among turns, and of the other worlds.

    The first iteration takes a full step towards the state in which all contacts stick, as fewer iterations remain
    from there than from vdot = 0. Contacts that say `starts_at_rest` let Newton's method begin at vdot = 0 if that
    nearly is the solution: a pile at rest takes 2 iterations instead of 11 to 17. One short step does not end the
    search, as it may have crossed from slip to stick; two short steps do.

    Forces are divided by the square root of the inertia they move, as in Drake. All are then in N / √kg, and those of
    a light body are not lost beside those of a heavy one.
    """
    applied, locked, start = problem.applied, problem.locked, problem.start
    matrix = problem.newton_matrix(topology)
    tolerance, eps = BALANCED[applied.dtype.itemsize], float(jnp.finfo(applied.dtype).eps)

    scale = jnp.where(locked, 0.0, 1.0 / safe_sqrt(problem.inertia))

    def calc_forces(impulses: OfRows) -> Array:
        return jnp.where(locked, 0.0, calc_row_forces(problem, impulses))

    def is_balanced(residual: Array, inertial: Array, forces: Array, tolerance: float) -> Array:
        size = jnp.abs(inertial) + jnp.abs(applied) + jnp.abs(forces)
        return ~(largest_over_first(scale * jnp.abs(residual)) > tolerance * largest_over_first(scale * size))

    def update(state: ConvexSearch) -> ConvexSearch:
        direction = -matrix.solve(state.laws.stiffness, state.residual)
        inertial, rate = matrix.inertia_product(direction), calc_row_motion(problem, direction)
        power, power_rate = sum_over_first(direction * (state.inertial - applied)), sum_over_first(direction * inertial)
        of_rows = row_power_along(problem, state.motion, rate)

        def slope(t: Array) -> tuple[Array, Array]:
            of_rows_at_t = of_rows(t)
            return power + t * power_rate - of_rows_at_t[0], power_rate - of_rows_at_t[1]

        rounding = 8.0 * eps * sum_over_first(jnp.abs(direction) * (jnp.abs(state.inertial) + jnp.abs(applied)))
        going = state.is_unfinished()
        speed = largest_over_first(jnp.abs(state.vdot) + jnp.abs(start) / problem.time_step)
        step, lost = largest_over_first(jnp.abs(direction)), 8.0 * eps * speed
        rise, searched = sum_over_first(direction * state.residual), going & (is_near | (state.num_iterations > 0))
        t = find_minimum(slope, rise, rounding, step, lost, searched)
        t = jnp.where(going, t, 0.0)
        vdot, new_inertial, motion = advanced(
            (state.vdot, state.inertial, state.motion), t, (direction, inertial, rate)
        )
        change = jax.tree.map(lambda x: t * x, rate)
        laws = calc_linear_laws(problem, motion, state.laws, change)
        forces = calc_forces(laws.impulses)
        residual = new_inertial - applied - forces
        balanced = is_balanced(residual, new_inertial, forces, tolerance)
        still = t * step <= lost
        converged = state.converged | (going & (balanced | (step <= lost) | (still & state.still)))
        count = state.num_iterations + jnp.where(going, 1, 0)
        return ConvexSearch(vdot, new_inertial, motion, laws.of_points(), residual, count, still, converged)

    def unfinished(state: ConvexSearch) -> Array:
        going = state.is_unfinished()
        return jnp.any(going) if begun is None else jnp.sum(going) > begun.allowed

    worlds = shape_of_worlds(problem)
    zero = jnp.zeros((applied.shape[0], *worlds), applied.dtype)
    motion = jax.tree.map(jnp.zeros_like, calc_row_motion(problem, zero))
    no = jnp.zeros(worlds, bool)
    starts = [(calc_forces(laws.impulses), laws.of_points()) for laws in calc_laws_at_start(problem, motion)]
    (forces, laws), is_near = starts[0], no
    for at_rest in starts[1:]:
        is_near = is_balanced(zero - applied - at_rest[0], zero, at_rest[0], NEARLY_BALANCED)
        forces, laws = jax.tree.map(lambda x, y, near=is_near: jnp.where(near, x, y), at_rest, starts[0])
    residual = zero - applied - forces
    first = ConvexSearch(zero, zero, motion, laws, residual, jnp.zeros(worlds, jnp.int32), no, no)
    if begun is not None:
        first = jax.tree.map(lambda new, old: jnp.where(begun.goes_on, old, new), first, begun.search)
        first = first._replace(converged=first.converged | ~begun.wanted)
    return lax.while_loop(unfinished, update, first)


def without_numbers(problem: ConvexProblem) -> ConvexSearch:
    """Zeros in the shapes of a search of one world."""
    zero, no = jnp.zeros_like(problem.v), jnp.zeros((), bool)
    motion = eqx.filter_eval_shape(calc_row_motion, problem, zero)
    laws = eqx.filter_eval_shape(lambda problem, motion: calc_laws_at_start(problem, motion)[0], problem, motion)
    motion, laws = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), (motion, laws.of_points()))
    return ConvexSearch(zero, zero, motion, laws, zero, jnp.zeros((), jnp.int32), no, no)


def advanced(x: Any, t: Float[Array, "*w"], direction: Any) -> Any:
    """The pytree x + t direction."""
    return jax.tree.map(lambda x, d: x + t * d, x, direction)


def shape_of_worlds(problem: ConvexProblem) -> tuple[int, ...]:
    """Shape (number of worlds,) of a batch, or () of one world; leaves of the problem may be shared by all worlds."""
    if problem.time_step.ndim == 0:
        return ()
    return (max(leaf.shape[-1] for leaf in jax.tree.leaves(problem)),)
