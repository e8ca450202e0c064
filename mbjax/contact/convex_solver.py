"""Newton's method with line search for the discrete step, and the derivative of its solution.

The derivative is that of the equation at the solution, one more solve with the same matrix: it depends neither on the
number of iterations nor on the start. Which rows stick, slide, or are at a bound is found by the solution; within each
of these the derivatives are exact.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from mbjax.dynamics import calc_articulated_factor, calc_inverse_dynamics, solve_with_factor
from mbjax.dynamics.mass_matrix import calc_mass_matrix
from mbjax.linear_algebra import (
    chain,
    factor_branches,
    matrix_vector,
    products_of_columns,
    solve_branches,
    sum_over_first,
)
from mbjax.topology import TreeTopology

from .convex_problem import ConvexProblem, calc_residual, calc_row_forces

MAX_ITERATIONS = 50
MAX_LINE_SEARCH = 40
ROUNDING = {4: 1e-5, 8: 1e-11}  # largest residual of a solution beside the largest force, by bytes of a float


class ConvexSolution(NamedTuple):
    """vdot, and per world whether it was found within the iterations allowed."""

    vdot: Float[Array, " nv"]
    num_iterations: Int[Array, ""]
    converged: Bool[Array, ""]


def calc_convex_solution(topology: TreeTopology, problem: ConvexProblem) -> ConvexSolution:
    """The acceleration of the step, with its derivatives; the other results have none."""
    found = search(topology, lax.stop_gradient(problem))
    return ConvexSolution(at_solution(topology, problem, found.vdot), found.num_iterations, found.converged)


class _Search(NamedTuple):
    """vdot, (M + diag) vdot, the residual there, and which worlds are done."""

    vdot: Float[Array, " nv"]
    inertial: Float[Array, " nv"]
    residual: Float[Array, " nv"]
    num_iterations: Int[Array, ""]
    converged: Bool[Array, ""]


def search(topology: TreeTopology, problem: ConvexProblem) -> ConvexSolution:
    """Newton's iterations, of all worlds until the last one has converged; those that have stay as they are."""
    terms = problem.terms
    applied = terms.tau - calc_inverse_dynamics(topology, terms.motion, None, terms.F_applied_T)
    applied = jnp.where(terms.locked, 0.0, applied)
    factorize = factorizer(topology, problem)
    tolerance = ROUNDING[applied.dtype.itemsize]
    dt, steps_that_round_away = problem.time_step, 8.0 * float(jnp.finfo(applied.dtype).eps)

    def evaluate(vdot: Array, inertial: Array) -> tuple[Array, Array]:
        forces = jnp.where(terms.locked, 0.0, calc_row_forces(problem, vdot))
        residual = inertial - applied - forces
        size = jnp.abs(inertial) + jnp.abs(applied) + jnp.abs(forces)
        return residual, ~(largest(jnp.abs(residual)) > tolerance * largest(size))

    def update(state: _Search) -> _Search:
        solve, slope_product = factorize(state.vdot)
        direction = -solve(state.residual)
        inertial = -state.residual - slope_product(direction)

        def slope(t: Array) -> Array:
            vdot = state.vdot + t * direction
            return total(direction * (state.inertial + t * inertial - applied - calc_row_forces(problem, vdot)))

        start = jnp.where(state.converged, 0.0, total(direction * state.residual))
        t = jnp.where(state.converged, 0.0, find_minimum(slope, start))
        vdot, new_inertial = state.vdot + t * direction, state.inertial + t * inertial
        residual, converged = evaluate(vdot, new_inertial)
        moved, size = (largest(jnp.abs(x)) for x in (t * direction, jnp.abs(vdot) + jnp.abs(problem.v) / dt))
        converged = converged | (moved <= steps_that_round_away * size)
        count = state.num_iterations + jnp.where(state.converged, 0, 1)
        return _Search(vdot, new_inertial, residual, count, state.converged | converged)

    def unfinished(state: _Search) -> Array:
        return jnp.any(~state.converged & (state.num_iterations < MAX_ITERATIONS))

    zero = jnp.zeros((applied.shape[0], *shape_of_worlds(problem)), applied.dtype)
    residual, converged = evaluate(zero, zero)
    start = _Search(zero, zero, residual, jnp.zeros(converged.shape, jnp.int32), converged)
    found = lax.while_loop(unfinished, update, start)
    is_finite = jnp.isfinite(total(found.residual))  # a NaN ends the search of its world, and must be seen
    vdot = jnp.where(is_finite, found.vdot, jnp.nan)
    return ConvexSolution(vdot, found.num_iterations, found.converged & is_finite)


def shape_of_worlds(problem: ConvexProblem) -> tuple[int, ...]:
    """(number of worlds,), or () of one: what any number of the problem may be shared over."""
    if problem.time_step.ndim == 0:
        return ()
    return (max(leaf.shape[-1] for leaf in jax.tree.leaves(problem)),)


def total(x: Float[Array, "n *w"]) -> Float[Array, "*w"]:
    """The sum over velocities."""
    return sum_over_first(x)


def largest(x: Float[Array, "n *w"]) -> Float[Array, "*w"]:
    """The largest over velocities."""
    return jnp.max(x, axis=0, initial=0.0)


def find_minimum(slope: Callable[[Array], Array], start: Float[Array, "*w"]) -> Float[Array, "*w"]:
    """t in (0, 1] where a rising slope, negative at 0, crosses zero, or 1 if it stays below; by false position.

    The Illinois rule halves the weight of an end that stays, so the bracket shrinks from both sides. Where the
    slope at 0 is zero there is no search: a world that is done keeps no other one waiting.
    """
    one, rounding = jnp.ones_like(start), 8.0 * float(jnp.finfo(start.dtype).eps)
    end = slope(one)
    small = 1e-2 * jnp.abs(start)  # the direction is Newton's: near the solution t = 1 is better than any search

    def unfinished(carry: tuple) -> Array:
        *_, count, done = carry
        return jnp.any(~done) & (count < MAX_LINE_SEARCH)

    def narrow(carry: tuple) -> tuple:
        low, at_low, high, at_high, t, count, done = carry
        guess = (low * at_high - high * at_low) / (at_high - at_low)
        guess = jnp.where((guess > low) & (guess < high), guess, 0.5 * (low + high))
        at_guess = slope(guess)
        below = at_guess < 0.0
        t = jnp.where(done, t, guess)
        new_low, new_at_low = jnp.where(below, guess, low), jnp.where(below, at_guess, 0.5 * at_low)
        new_high, new_at_high = jnp.where(below, high, guess), jnp.where(below, 0.5 * at_high, at_guess)
        is_narrow = new_high - new_low <= rounding * new_high
        return new_low, new_at_low, new_high, new_at_high, t, count + 1, done | (jnp.abs(at_guess) <= small) | is_narrow

    done = ~(end > small) | (start == 0.0)
    carry = (jnp.zeros_like(one), start, one, end, one, jnp.zeros((), jnp.int32), done)
    return lax.while_loop(unfinished, narrow, carry)[4]


Solve = Callable[[Array], Array]


def factorizer(topology: TreeTopology, problem: ConvexProblem) -> Callable[[Array], tuple[Solve, Solve]]:
    """Per vdot the solver of H x = b, H = M + diag + Gᵀ S G with S = -dγ/dv, and the product with Gᵀ S G.

    Rows that act on single velocities keep the tree's sparsity: articulated bodies. Others fill H.
    """
    terms, box = problem.terms, problem.box
    n = terms.tau.shape[0]

    def box_slopes(dv: Array) -> Array:
        return jnp.zeros_like(dv) if box is None else box.generalized(box.slope(dv), n)

    def in_tree(vdot: Array) -> tuple[Solve, Solve]:
        slopes = box_slopes(problem.time_step * vdot)
        diagonal = terms.diagonal + slopes
        factor = calc_articulated_factor(topology, terms.position, terms.inertia_W, diagonal, terms.locked)
        return lambda b: solve_with_factor(topology, factor, b), lambda x: slopes * x

    if not problem.is_coupled:
        return in_tree
    M = calc_mass_matrix(topology, terms.position, terms.inertia_W, terms.diagonal)

    def dense(vdot: Array) -> tuple[Solve, Solve]:
        dv = problem.time_step * vdot
        slopes = on_diagonal(box_slopes(dv))
        if problem.coupled is not None:
            columns = problem.coupled.G
            slopes = slopes + products_of_columns(columns * problem.coupled.stiffness[:, None], columns)
        if problem.contacts is not None:
            J, law = problem.contacts.J, problem.contacts.law
            slopes = slopes + calc_contact_hessian(J, law.stiffness(problem.contacts.velocities(problem.v + dv)))
        free = ~terms.locked
        slopes = jnp.where(free[:, None] & free[None], slopes, 0.0)
        H = jnp.where(free[:, None] & free[None], M + slopes, on_diagonal(jnp.ones_like(dv)))
        factor = factor_branches(chain(n), H)[0]
        return lambda b: solve_branches(chain(n), factor, b), lambda x: matrix_vector(slopes, x)

    return dense


def calc_contact_hessian(J: Float[Array, "3 m nv"], G: Float[Array, "3 3 m"]) -> Float[Array, "nv nv"]:
    """Σ Jᵀ G J over the points."""
    x, y, z = (G[:, k, :, None] * J[k][None] for k in range(3))
    GJ = x + y + z
    GJ, J = (rows.reshape(3 * rows.shape[1], *rows.shape[2:]) for rows in (GJ, J))  # worlds may share J
    return products_of_columns(GJ, J)


def on_diagonal(x: Float[Array, "n *w"]) -> Float[Array, "n n *w"]:
    """The diagonal matrix of x."""
    own = np.eye(x.shape[0], dtype=bool).reshape(x.shape[0], -1, *(1 for _ in x.shape[1:]))
    return jnp.where(own, x[None], 0.0)


@eqx.filter_custom_jvp
def at_solution(topology: TreeTopology, problem: ConvexProblem, vdot: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """vdot, a solution, which the derivative rule knows to be one."""
    return vdot


@at_solution.def_jvp
def _at_solution_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    topology, problem, vdot = primals
    vdot = at_solution(topology, problem, vdot)  # its own derivative is needed for second ones
    _, moved = eqx.filter_jvp(lambda p: calc_residual(topology, p, vdot), (problem,), (tangents[1],))

    def product(x: Array) -> Array:
        return jax.jvp(lambda a: calc_residual(topology, problem, a), (vdot,), (x,))[1]

    solve, _ = factorizer(topology, lax.stop_gradient(problem))(lax.stop_gradient(vdot))
    moved = jnp.broadcast_to(-moved, (vdot.shape[0], *shape_of_worlds(problem)))
    return vdot, lax.custom_linear_solve(product, moved, lambda _, b: solve(b), symmetric=True)
