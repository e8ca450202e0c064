"""The search for the configuration nearest to a guess that satisfies the constraints.

Newton's method on the conditions of `assembly_problem`; where it does not help, first-order steps in several metrics
and lengths, of which the best is taken. The same from other starts about the guess, as the nearest solution need not be
the one that lies down the slope. Everything here is for one world.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from mbjax.execution import scan, varying_as_after
from mbjax.kinematics import difference_configuration, integrate_configuration
from mbjax.spatial import safe_norm, safe_sqrt

from .assembly_problem import AssemblyProblem, Point, calc_jacobian, evaluate
from .velocity_projection import pseudo_inverse

STEP_LENGTHS = (1.0, 0.3, 0.1, 0.01)  # of a step; the best one is taken
METRICS = (0.0, 1.0, 1.0)  # what first-order steps add to the weights, relative to the largest
CUT_OFFS = (0.0, 0.0, 0.1)  # singular values of G in that metric that they leave out, relative to the largest
LESS_ERROR = 0.999  # to what the error must fall for a step that is farther from the guess than it is worth
OTHER_STARTS = 4  # beside the guess
NEARER = 1e-6  # by which share an objective must be less for another solution to be the nearer one


class Tolerances(NamedTuple):
    """When a search ends: norm of the error, entries of the gradient relative to W, and rounds."""

    error: float
    gradient: float
    rounds: int


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


def search_assembly(problem: AssemblyProblem, tolerances: Tolerances) -> Search:
    """The nearest of the solutions found from the guess and from other starts; the least error where there is none."""
    problem = lax.stop_gradient(problem)
    nv = problem.W.shape[0]

    def search_again(found: Search, signs: Array) -> tuple[Search, None]:
        is_first = jnp.all(signs == 0.0)
        other = search_from(problem, tolerances, calc_start(problem, found, signs))
        take = is_first | is_nearer(other, found)
        return jax.tree.map(lambda new, old: jnp.where(take, new, old), other, found), None

    point = evaluate(problem, problem.q_guess, jnp.zeros(problem.cset.num_rows, problem.W.dtype))
    no = jnp.zeros((), bool)
    nothing = Search(point, point, jnp.zeros((), jnp.int32), no, no)
    return scan(search_again, nothing, jnp.asarray(sign_patterns(nv), problem.W.dtype))[0]


def sign_patterns(nv: int) -> Float[np.ndarray, "k nv"]:
    """Where the starts lie: at the guess, opposite to the first solution, and signs drawn once and for all."""
    drawn = np.random.default_rng(0).choice([-1.0, 1.0], (OTHER_STARTS, nv))
    return np.concatenate([np.zeros((1, nv)), drawn])


def calc_start(problem: AssemblyProblem, found: Search, signs: Float[Array, " nv"]) -> Float[Array, " nq"]:
    """A configuration about as far from the guess as the best that was found, coordinate by coordinate.

    A nearer solution is within that distance. Where no solution was found, the distance is at least half a radian.
    """
    q = jnp.where(jnp.all(signs == 0.0), problem.q_guess, found.best.q)
    change = difference_configuration(problem.model, problem.q_guess, q)
    spread = safe_norm(change) / np.sqrt(change.size)
    size = jnp.where(found.converged, spread, jnp.maximum(spread, 0.5))
    return integrate_configuration(problem.model, problem.q_guess, signs * size)


def is_nearer(other: Search, found: Search) -> Bool[Array, ""]:
    """Whether it is a solution where the other is none, or a nearer one; without solutions, the one of less error."""
    nearer = other.best.objective < (1.0 - NEARER) * found.best.objective
    less_error = safe_norm(other.best.error) < (1.0 - NEARER) * safe_norm(found.best.error)
    both_alike = jnp.where(found.converged, nearer, less_error)
    return jnp.where(other.converged == found.converged, both_alike, other.converged)


def search_from(problem: AssemblyProblem, tolerances: Tolerances, q: Float[Array, " nq"]) -> Search:
    """One search, with the rounds it took."""
    model = problem.model
    q = integrate_configuration(model, q, jnp.zeros(model.num_velocities, model.dtype))
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
    """Whether the conditions hold: the slope is compared with the weight, but for what rounding does."""
    weights = jnp.diagonal(problem.W)
    slope = jnp.abs(point.residual[: weights.size])
    allowed = tolerances.gradient * jnp.maximum(weights, 1e-4 * jnp.max(weights))
    rounding = 100.0 * jnp.finfo(slope.dtype).eps * (jnp.abs(point.multipliers) @ jnp.abs(point.G))
    return jnp.all(slope <= allowed + rounding) & (safe_norm(point.error) <= tolerances.error)


def improve(problem: AssemblyProblem, point: Point) -> tuple[Point, Bool[Array, ""]]:
    """One round: the Newton step if it halves r and does not lead to a maximum, else what lowers the merit most, or,
    where nothing does, the error.

    Also whether nothing helped; then the point is what it was.
    """
    newton, curvature = calc_newton_step(problem, point)
    kinds = zip(METRICS, CUT_OFFS, strict=True)
    first_order = jax.tree.map(lambda *x: jnp.stack(x), *(calc_first_order_step(problem, point, *k) for k in kinds))
    price = jnp.max(jax.vmap(safe_norm)(first_order.multipliers))  # of an error: in any metric
    penalty = 2.0 * price + 1e-3 * jnp.max(problem.W)
    steps = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), newton, first_order)

    def merit(point: Point) -> Array:
        value = point.objective + penalty * safe_norm(point.error)
        return jnp.where(jnp.isfinite(value), value, jnp.inf)

    def along(step: Step, is_newton: Array, length: Array) -> Point:
        share = jnp.where(is_newton, length, 1.0)
        multipliers = point.multipliers + share * (step.multipliers - point.multipliers)
        return evaluate(problem, integrate_configuration(problem.model, point.q, length * step.d), multipliers)

    lengths = jnp.asarray(STEP_LENGTHS, point.q.dtype)
    number = 1 + len(METRICS)
    repeated = jax.tree.map(lambda x: jnp.repeat(x, lengths.size, axis=0), steps)
    is_newton = jnp.asarray(np.repeat(np.arange(number) == 0, lengths.size))
    candidates = jax.vmap(along)(repeated, is_newton, jnp.tile(lengths, number))
    merits = jax.vmap(merit)(candidates)
    full_step = jax.tree.map(lambda x: x[0], candidates)
    halved = safe_norm(full_step.residual) < 0.5 * safe_norm(point.residual)
    take_newton = halved & (curvature >= 0.0)
    best = jnp.argmin(merits)
    errors = jnp.where(jnp.isfinite(merits), jax.vmap(safe_norm)(candidates.error), jnp.inf)
    is_better = merits[best] < merit(point)
    stuck = ~take_newton & ~is_better & ~(jnp.min(errors) < LESS_ERROR * safe_norm(point.error))
    chosen = jnp.where(take_newton, 0, jnp.where(is_better, best, jnp.argmin(errors)))
    return jax.tree.map(lambda old, new: jnp.where(stuck, old, new[chosen]), point, candidates), stuck


def calc_newton_step(problem: AssemblyProblem, point: Point) -> tuple[Step, Float[Array, ""]]:
    """d and new λ with K (d, Δλ) = -r, of least norm where rows are redundant, and dᵀ H d of the Lagrangian's H."""
    K = calc_jacobian(problem, point.q, point.multipliers)
    d, change = jnp.split(-pseudo_inverse(K) @ point.residual, [problem.W.shape[0]])
    return Step(d, point.multipliers + change), d @ K[: d.size, : d.size] @ d


def calc_first_order_step(problem: AssemblyProblem, point: Point, added: float, cut_off: float) -> Step:
    """The step with the constraints taken as linear: M d + gradient + Gᵀ λ = 0, G d = -error, least in dᵀ M d.

    M is W and `added` times the largest weight on all coordinates: with little weight on some, the nearest solution of
    the linear problem may be far off. Near singular points it is too, unless small singular values are cut off: those
    steps lead to where the error is least if it can't be zero.
    """
    weights = jnp.diagonal(problem.W)
    scale = 1.0 / safe_sqrt(weights + added * jnp.max(weights))
    G, gradient = point.G * scale, point.gradient * scale
    inverse = pseudo_inverse(G, cut_off)
    d = -inverse @ (point.error - G @ gradient) - gradient
    return Step(d * scale, -inverse.T @ (gradient + d))
