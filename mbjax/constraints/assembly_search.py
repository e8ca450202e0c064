"""The search for the configuration nearest to a guess that satisfies the constraints.

Newton's method solves the conditions of `assembly_problem`. Where it does not help, the best of several first-order
steps, in several metrics and lengths, is taken. The search repeats from other starts about the guess, as descent from
the guess need not lead to the nearest solution. Everything here is for one world.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from mbjax.execution.arrays import scan
from mbjax.execution.derivative_rules import varying_as_after
from mbjax.kinematics import difference_configuration, integrate_configuration
from mbjax.model import zero_where_locked
from mbjax.spatial import safe_norm, safe_sqrt

from .assembly_problem import AssemblyProblem, Point, calc_jacobian, evaluate
from .row_inverse import invert_rows, invert_under_rows

STEP_LENGTHS = (1.0, 0.3, 0.1, 0.01)  # lengths tried for each step; the best one is taken
METRICS = (0.0, 1.0, 1.0)  # added to the weights for each first-order step, relative to the largest weight
CUT_OFFS = (0.0, 0.0, 0.1)  # relative size below which each first-order step drops singular values of G
LESS_ERROR = 0.999  # factor by which a step must lower the error to be taken although the merit rises
OTHER_STARTS = 4  # starts besides the guess
NEARER = 1e-6  # relative decrease of the objective that makes another solution the nearer one


class Tolerances(NamedTuple):
    """Limits that end a search: norm of the error, entries of the gradient relative to W, and number of rounds."""

    error: float
    gradient: float
    rounds: int


class AssemblySearch(NamedTuple):
    """State of the search: the current point, the point of least (or small enough) error, and how it ended."""

    point: Point
    best: Point
    rounds: Int[Array, ""]
    converged: Bool[Array, ""]
    stuck: Bool[Array, ""]


class Step(NamedTuple):
    """A change of q along d, and the multipliers after it."""

    d: Float[Array, " nv"]
    multipliers: Float[Array, " nc"]


def search_assembly(problem: AssemblyProblem, tolerances: Tolerances) -> AssemblySearch:
    """The nearest solution found from the guess and other starts; the point of least error if there is none."""
    problem = lax.stop_gradient(problem)
    nv = problem.W.shape[0]

    def search_again(found: AssemblySearch, signs: Array) -> tuple[AssemblySearch, None]:
        is_first = jnp.all(signs == 0.0)
        other = search_from(problem, tolerances, calc_start(problem, found, signs))
        take = is_first | is_nearer(other, found)
        return jax.tree.map(lambda new, old: jnp.where(take, new, old), other, found), None

    point = evaluate(problem, problem.q_guess, jnp.zeros(problem.cset.num_rows, problem.W.dtype))
    no = jnp.zeros((), bool)
    nothing = AssemblySearch(point, point, jnp.zeros((), jnp.int32), no, no)
    return scan(search_again, nothing, jnp.asarray(sign_patterns(nv), problem.W.dtype))[0]


def sign_patterns(nv: int) -> Float[np.ndarray, "k nv"]:
    """Directions from the guess to each start: zero for the guess itself, then signs from a fixed random seed."""
    drawn = np.random.default_rng(0).choice([-1.0, 1.0], (OTHER_STARTS, nv))
    return np.concatenate([np.zeros((1, nv)), drawn])


def calc_start(problem: AssemblyProblem, found: AssemblySearch, signs: Float[Array, " nv"]) -> Float[Array, " nq"]:
    """A start about as far from the guess, in each coordinate, as the best point found so far.

    A nearer solution must be within that distance. Where no solution was found, it is at least half a radian.
    """
    q = jnp.where(jnp.all(signs == 0.0), problem.q_guess, found.best.q)
    change = difference_configuration(problem.model, problem.q_guess, q)
    spread = safe_norm(change) / math.sqrt(change.size)
    size = jnp.where(found.converged, spread, jnp.maximum(spread, 0.5))
    return integrate_configuration(problem.model, problem.q_guess, zero_where_locked(problem.model, signs * size))


def is_nearer(other: AssemblySearch, found: AssemblySearch) -> Bool[Array, ""]:
    """Whether `other` beats `found`: a solution beats none, then the nearer solution wins, or else the lesser error."""
    nearer = other.best.objective < (1.0 - NEARER) * found.best.objective
    less_error = safe_norm(other.best.error) < (1.0 - NEARER) * safe_norm(found.best.error)
    both_alike = jnp.where(found.converged, nearer, less_error)
    return jnp.where(other.converged == found.converged, both_alike, other.converged)


def search_from(problem: AssemblyProblem, tolerances: Tolerances, q: Float[Array, " nq"]) -> AssemblySearch:
    """Runs one search from q."""
    model = problem.model
    q = integrate_configuration(model, q, jnp.zeros(model.num_velocities, model.dtype))
    point = evaluate(problem, q, jnp.zeros(problem.cset.num_rows, model.dtype))
    no = jnp.zeros((), bool)
    start = AssemblySearch(point, point, jnp.zeros((), jnp.int32), is_solution(problem, tolerances, point), no)

    def going_on(search: AssemblySearch) -> Array:
        return ~search.converged & ~search.stuck & (search.rounds < tolerances.rounds)

    def advance(search: AssemblySearch) -> AssemblySearch:
        point, stuck = improve(problem, search.point)
        reach = jnp.maximum(safe_norm(search.best.error), tolerances.error)
        is_better = safe_norm(point.error) <= reach  # always true for a solution, never for NaN
        best = jax.tree.map(lambda new, old: jnp.where(is_better, new, old), point, search.best)
        return AssemblySearch(point, best, search.rounds + 1, is_solution(problem, tolerances, point), stuck)

    return lax.while_loop(going_on, advance, varying_as_after(advance, start))


def is_solution(problem: AssemblyProblem, tolerances: Tolerances, point: Point) -> Bool[Array, ""]:
    """Whether the conditions hold: the slope is small relative to the weights, up to rounding."""
    weights = jnp.diagonal(problem.W)
    slope = jnp.abs(point.residual[: weights.size])
    allowed = tolerances.gradient * jnp.maximum(weights, 1e-4 * jnp.max(weights))
    rounding = 100.0 * jnp.finfo(slope.dtype).eps * (jnp.abs(point.multipliers) @ jnp.abs(point.G))
    return jnp.all(slope <= allowed + rounding) & (safe_norm(point.error) <= tolerances.error)


def improve(problem: AssemblyProblem, point: Point) -> tuple[Point, Bool[Array, ""]]:
    """Takes one step, and says whether the search is stuck; then the point is unchanged.

    It takes the Newton step if that halves r and does not lead to a maximum. Otherwise it takes the step that lowers
    the merit most or, if none lowers it, the error.
    """
    newton, curvature = calc_newton_step(problem, point)
    kinds = zip(METRICS, CUT_OFFS, strict=True)
    first_order = jax.tree.map(lambda *x: jnp.stack(x), *(calc_first_order_step(problem, point, *k) for k in kinds))
    price = jnp.max(jax.vmap(safe_norm)(first_order.multipliers))  # price of an error, the highest in any metric
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
    """Newton step d and λ from K (d, Δλ) = -r, of least norm if rows are redundant; and dᵀ H d, H the Lagrangian's."""
    K = calc_jacobian(problem, point.q, point.multipliers)
    nv = problem.W.shape[0]
    H = K[:nv, :nv]
    d, change = jnp.split(-invert_under_rows(H, K[nv:, :nv]) @ point.residual, [nv])
    d = zero_where_locked(problem.model, d)  # to the last bit
    return Step(d, point.multipliers + change), d @ H @ d


def calc_first_order_step(problem: AssemblyProblem, point: Point, added: float, cut_off: float) -> Step:
    """First-order step under linearized constraints: M d + gradient + Gᵀ λ = 0, G d = -error, least in dᵀ M d.

    M is W plus `added` times the largest weight on all coordinates, as with little weight on some the nearest solution
    of the linear problem may be far off. It is far off near singular points too, unless small singular values are cut
    off. Steps with a cut-off lead to the least error where it cannot be zero.
    """
    weights = jnp.diagonal(problem.W)
    scale = 1.0 / safe_sqrt(weights + added * jnp.max(weights))
    G, gradient = point.G * scale[None], point.gradient * scale
    inverse = invert_rows(G, cut_off)
    d = -inverse @ (point.error - G @ gradient) - gradient
    d = zero_where_locked(problem.model, d)
    return Step(d * scale, -inverse.T @ (gradient + d))
