"""The configuration nearest to a guess that satisfies the constraints: its conditions, and the search for them.

    minimize 1/2 δᵀ W δ   subject to   error(q) = 0,      q = q_guess ⊕ δ

with δ in velocity coordinates, so that q stays on the configuration manifold. With multipliers λ the conditions are

    r(q, λ) = [∂/∂d 1/2 δᵀ W δ + Gᵀ λ;  error] = 0,       where q moves along d,

solved by Newton's method. Everything here is for one world.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from mbjax.kinematics import calc_position_kinematics, difference_configuration, integrate_configuration
from mbjax.manual_axes import varying_as_after
from mbjax.model import ContactConstraint, CustomConstraint, LockConstraint, MultibodyModel, locked_velocities
from mbjax.spatial import safe_norm

from .constraint_kinematics import BoundConstraintSet, calc_constraint_terms
from .velocity_projection import pseudo_inverse

STEP_LENGTHS = (1.0, 0.25, 0.0625, 0.01, 0.001)  # of a step; the best one is taken
CUT_OFF = 1e-4  # eigenvalues of G W⁻¹ Gᵀ below it, relative to the largest, are left out of a first-order step


class AssemblyProblem(NamedTuple):
    """What is asked: nearest to `q_guess` in the metric W (nv, nv), with the rows of `cset` that have a position."""

    model: MultibodyModel
    cset: BoundConstraintSet
    q_guess: Float[Array, " nq"]
    W: Float[Array, "nv nv"]


class Tolerances(NamedTuple):
    """When the search ends: norm of the error, largest entry of the gradient relative to W, and rounds."""

    error: float
    gradient: float
    rounds: int


class Point(NamedTuple):
    """A configuration with multipliers, and what the conditions read there."""

    q: Float[Array, " nq"]
    multipliers: Float[Array, " nc"]
    objective: Float[Array, ""]
    gradient: Float[Array, " nv"]  # of the objective
    error: Float[Array, " nc"]
    G: Float[Array, "nc nv"]

    @property
    def residual(self) -> Float[Array, " nv+nc"]:
        """r(q, λ)."""
        return jnp.concatenate([self.gradient + self.multipliers @ self.G, self.error])


class Search(NamedTuple):
    """Where the search is, where the error was least (or small enough), and whether the search has ended."""

    point: Point
    best: Point
    rounds: Int[Array, ""]
    converged: Bool[Array, ""]
    stuck: Bool[Array, ""]


class Step(NamedTuple):
    """A change of q along d, and the multipliers after it."""

    d: Float[Array, " nv"]
    multipliers: Float[Array, " nc"]


def calc_position_rows(
    model: MultibodyModel, cset: BoundConstraintSet, q: Float[Array, " nq"]
) -> tuple[Float[Array, " nc"], Float[Array, "nc nv"]]:
    """error and G of the active rows that constrain positions; zeros elsewhere, and in columns of locked velocities."""
    position = calc_position_kinematics(model, q)
    terms = calc_constraint_terms(model, cset, position, None, q, None)
    counted = terms.active * jnp.asarray(rows_with_position(cset), terms.active.dtype)
    free = jnp.where(locked_velocities(model), 0.0, 1.0)
    return counted * terms.error, counted[:, None] * terms.G * free


def rows_with_position(cset: BoundConstraintSet) -> Bool[np.ndarray, " nc"]:
    """Which rows constrain positions, not velocities alone."""
    flags = [
        not (
            isinstance(c, ContactConstraint)
            or (isinstance(c, CustomConstraint) and c.level == "velocity")
            or (isinstance(c, LockConstraint) and c.position is None)
        )
        for c in cset.constraints
    ]
    return np.repeat(np.array(flags, bool), [c.num_rows for c in cset.constraints])


def evaluate(problem: AssemblyProblem, q: Array, multipliers: Array) -> Point:
    """1/2 δᵀ W δ and its derivative along each velocity that is not locked, errors and G."""
    model = problem.model

    def objective(d: Array) -> Array:
        change = difference_configuration(model, problem.q_guess, integrate_configuration(model, q, d))
        return 0.5 * change @ problem.W @ change

    value, gradient = jax.value_and_grad(objective)(jnp.zeros(model.num_velocities, model.dtype))
    gradient = jnp.where(locked_velocities(model), 0.0, gradient)
    return Point(q, multipliers, value, gradient, *calc_position_rows(model, problem.cset, q))


def calc_jacobian(problem: AssemblyProblem, q: Array, multipliers: Array) -> Float[Array, "n n"]:
    """K = ∂r/∂(d, λ): symmetric at the solution, with zero rows and columns for locked velocities."""
    model = problem.model
    at_rest = jnp.zeros(model.num_velocities, model.dtype)

    def moved(d: Array) -> tuple[Array, Array]:
        point = evaluate(problem, integrate_configuration(model, q, d), multipliers)
        return point.residual, point.G

    along_d, G = jax.jacfwd(moved, has_aux=True)(at_rest)
    along_d = jnp.where(locked_velocities(model), 0.0, along_d)
    no_rows = jnp.zeros((G.shape[0], G.shape[0]), G.dtype)
    return jnp.concatenate([along_d, jnp.concatenate([G.T, no_rows])], axis=1)


def search_assembly(problem: AssemblyProblem, tolerances: Tolerances) -> Search:
    """Newton's method from the guess; where that does not help, first-order steps of the best length."""
    problem = lax.stop_gradient(problem)
    model = problem.model
    q = integrate_configuration(model, problem.q_guess, jnp.zeros(model.num_velocities, model.dtype))
    point = evaluate(problem, q, jnp.zeros(problem.cset.num_rows, model.dtype))
    no = jnp.zeros((), bool)
    start = Search(point, point, jnp.zeros((), jnp.int32), is_solution(problem, tolerances, point), no)

    def going_on(search: Search) -> Array:
        return ~search.converged & ~search.stuck & (search.rounds < tolerances.rounds)

    def advance(search: Search) -> Search:
        point, stuck = improve(problem, search.point)
        reach = jnp.maximum(safe_norm(search.best.error), tolerances.error)
        is_better = safe_norm(point.error) <= reach  # a solution always is, NaN never
        best = jax.tree.map(lambda new, old: jnp.where(is_better, new, old), point, search.best)
        return Search(point, best, search.rounds + 1, is_solution(problem, tolerances, point), stuck)

    return lax.while_loop(going_on, advance, varying_as_after(advance, start))


def is_solution(problem: AssemblyProblem, tolerances: Tolerances, point: Point) -> Bool[Array, ""]:
    """Whether the conditions hold."""
    slope = jnp.abs(point.residual[: problem.W.shape[0]])
    return jnp.all(slope <= tolerances.gradient * jnp.max(problem.W)) & (safe_norm(point.error) <= tolerances.error)


def improve(problem: AssemblyProblem, point: Point) -> tuple[Point, Bool[Array, ""]]:
    """One round: the Newton step if it halves r and does not lead to a maximum, else what lowers the merit most.

    Also whether nothing helped; then the point is what it was.
    """
    newton, curvature = calc_newton_step(problem, point)
    first_order = calc_first_order_step(problem, point)
    penalty = 2.0 * safe_norm(first_order.multipliers) + 1e-3 * jnp.max(problem.W)

    def merit(point: Point) -> Array:
        value = point.objective + penalty * safe_norm(point.error)
        return jnp.where(jnp.isfinite(value), value, jnp.inf)

    def along(length: Array, of_newton: Array) -> Point:
        step = jax.tree.map(lambda a, b: jnp.where(of_newton, a, b), newton, first_order)
        share = jnp.where(of_newton, length, 1.0)
        multipliers = point.multipliers + share * (step.multipliers - point.multipliers)
        return evaluate(problem, integrate_configuration(problem.model, point.q, length * step.d), multipliers)

    lengths = jnp.asarray(STEP_LENGTHS, point.q.dtype)
    candidates = jax.vmap(along)(jnp.tile(lengths, 2), jnp.repeat(jnp.array([True, False]), lengths.size))
    merits = jax.vmap(merit)(candidates)
    full_step = jax.tree.map(lambda x: x[0], candidates)
    halved = safe_norm(full_step.residual) < 0.5 * safe_norm(point.residual)
    take_newton = halved & (curvature >= 0.0)
    best = jnp.argmin(merits)
    stuck = ~take_newton & ~(merits[best] < merit(point))
    chosen = jnp.where(take_newton, 0, best)
    return jax.tree.map(lambda old, new: jnp.where(stuck, old, new[chosen]), point, candidates), stuck


def calc_newton_step(problem: AssemblyProblem, point: Point) -> tuple[Step, Float[Array, ""]]:
    """d and new λ with K (d, Δλ) = -r, of least norm where rows are redundant, and dᵀ H d of the Lagrangian's H."""
    K = calc_jacobian(problem, point.q, point.multipliers)
    d, change = jnp.split(-pseudo_inverse(K) @ point.residual, [problem.W.shape[0]])
    return Step(d, point.multipliers + change), d @ K[: d.size, : d.size] @ d


def calc_first_order_step(problem: AssemblyProblem, point: Point) -> Step:
    """The step with the constraints taken as linear: W d + gradient + Gᵀ λ = 0, G d = -error."""
    G, W_inverse = point.G, jnp.linalg.inv(problem.W)
    of_rows = jnp.linalg.pinv(G @ W_inverse @ G.T, rtol=CUT_OFF, hermitian=True)
    multipliers = of_rows @ (point.error - G @ W_inverse @ point.gradient)
    return Step(-W_inverse @ (point.gradient + multipliers @ G), multipliers)


def calc_active_jacobian(
    model: MultibodyModel, cset: BoundConstraintSet, q: Float[Array, " nq"]
) -> Float[Array, "nc nv"]:
    """G of the active rows; zero rows elsewhere, zero columns for locked velocities."""
    position = calc_position_kinematics(model, q)
    terms = calc_constraint_terms(model, cset, position, None, q, None)
    return jnp.where(locked_velocities(model), 0.0, terms.active[:, None] * terms.G)
