"""Configurations and velocities that satisfy the constraints, as near to a guess as possible."""

import enum
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

from mbjax.array_types import Positions, Velocities
from mbjax.errors import ModelError
from mbjax.execution import call_compiled, takes_model_first
from mbjax.execution.arrays import scan
from mbjax.execution.derivative_rules import varying_as_after
from mbjax.kinematics import difference_configuration, integrate_configuration, velocity_to_qdot
from mbjax.model import MultibodyModel, as_coordinates, zero_where_locked
from mbjax.number_rules import POSITIVE, checked_numbers, is_known, is_whole, shown
from mbjax.spatial import safe_norm

from .assembly_problem import (
    AssemblyProblem,
    Point,
    calc_active_jacobian,
    calc_jacobian,
    calc_position_rows,
    evaluate,
)
from .assembly_search import AssemblySearch, Tolerances, calc_newton_step, is_solution, search_assembly
from .bound_constraint_set import BoundConstraintSet, require_bound_set
from .row_inverse import solve_under_rows
from .velocity_projection import project_velocity

POLISHING = 2  # Newton steps from the tolerance of the search to rounding
FINISHING = 10  # Newton steps, at most, with weights of zero that are zero
OUT_OF_REACH = 0.05  # cosine between the error and the range of G, below which the search is called singular


class AssemblyStatus(enum.IntEnum):
    """Outcome of the search for a configuration; `message` says it in a sentence."""

    CONVERGED = 0
    ITERATION_LIMIT = 1
    SINGULAR = 2
    STUCK = 3
    NOT_FINITE = 4

    @property
    def message(self) -> str:
        return {
            AssemblyStatus.CONVERGED: "the constraints are satisfied, as near to the guess as possible.",
            AssemblyStatus.ITERATION_LIMIT: "the search reached max_iterations while it still made progress: allow "
            "more, start from a better guess, or check whether the constraints can be satisfied at all.",
            AssemblyStatus.SINGULAR: "no motion lowers the error from here: the constraints contradict each other or "
            "are out of reach, or the guess is a singular point, where no direction lowers the error; start elsewhere.",
            AssemblyStatus.STUCK: "the constraints are satisfied, but q is not the nearest configuration to the last "
            "digit, and no step that was tried comes nearer: use q, but not its derivatives. More iterations change "
            "nothing; a better guess, or weights of more similar size, may help.",
            AssemblyStatus.NOT_FINITE: "q or an error of a row is not finite: the guess, the weights, the constraints "
            "or the model have a number that is not.",
        }[self]


class AssemblyResult(eqx.Module):
    """Result of `assembly_q`: q, the position errors there by row of the set, an `AssemblyStatus`, and rounds used."""

    q: Float[Array, " nq"]
    error: Float[Array, " nc"]
    status: Int[Array, ""]
    iterations: Int[Array, ""]


@takes_model_first
def assembly_q(
    model: MultibodyModel,
    cset: BoundConstraintSet,
    q_guess: Positions,
    weights: ArrayLike | None = None,
    *,
    tolerance: float | None = None,
    max_iterations: int = 100,
) -> AssemblyResult:
    """The q nearest to `q_guess` that satisfies the constraints on positions: min δᵀ W δ with q = q_guess ⊕ δ.

    `weights` (nv,) are the cost of changing each velocity coordinate: 1 (when None), or 0 for coordinates that are free
    to change, which then change as little as the others' nearness allows. Only their ratios matter, and one below 1e-7
    (1e-3 in float32) of the largest counts as zero. Rows that constrain velocities only, like contacts, are left out;
    locked joints stay. Redundant rows do no harm. RBDL's CalcAssemblyQ.

    The search starts at the guess, and then at four other points about as far from it as the first solution. It returns
    the nearest solution found; a nearer one may exist. `iterations` are those of the search that found it, at most
    `max_iterations` each. The norm of the error is at most `tolerance` (1e-12; 1e-6 in float32) when the status is
    CONVERGED, and the least that was found otherwise.

    Derivatives with respect to the guess, the weights and all leaves are those of the nearest configuration. They are
    linear systems at the solution and do not depend on the iterations. They mean nothing where the status is not
    CONVERGED, nor with respect to a weight of zero where other coordinates of weight zero could make the same change.
    Raises `ModelError` for a set that is bound to another model, a guess that is not finite, and numbers that are none.
    """
    require_bound_set("assembly_q", cset, model)
    q_guess = as_coordinates("q_guess", q_guess, model.num_positions, model.dtype)
    if is_known(q_guess) and not np.all(np.isfinite(np.asarray(q_guess))):
        raise ModelError(f"assembly_q: q_guess must be finite, got {shown(q_guess)}.")
    if is_known(max_iterations) and not (is_whole(max_iterations) and max_iterations >= 1):
        raise ModelError(f"assembly_q: max_iterations must be a whole number of at least 1, got {max_iterations!r}.")
    if tolerance is not None:
        checked_numbers("assembly_q", "tolerance", tolerance, POSITIVE)
    is_double = model.dtype == jnp.float64
    error = tolerance if tolerance is not None else 1e-12 if is_double else 1e-6
    tolerances = Tolerances(error, 1e-10 if is_double else 1e-4, max_iterations)
    return call_compiled(_assembly_q, model, cset, q_guess, checked_weights(model, weights), tolerances)


def _assembly_q(
    model: MultibodyModel, cset: BoundConstraintSet, q_guess: Array, weights: Array, tolerances: Tolerances
) -> AssemblyResult:
    """Solves with small weights e and e/2 in place of zeros, extrapolates, and solves with the zeros themselves.

    The part that is linear in e cancels in the extrapolation, whose derivatives are those of the solution. What is left
    is quadratic in e, without effect on derivatives.
    """
    counts = least_weight(model) * jnp.array([1.0, 0.5], model.dtype)

    def problem_with(count: Array) -> AssemblyProblem:
        return AssemblyProblem(model, cset, q_guess, jnp.diag(counted_weights(weights, count)))

    search = search_assembly(problem_with(counts[0]), tolerances)

    def solve_with(count: Array) -> tuple[Array, Array]:
        problem = problem_with(count)
        point = polish(lax.stop_gradient(problem), search)
        return q_with_rule(problem, point.q, point.multipliers)

    (one, other), multipliers = jax.vmap(solve_with)(counts)
    q = integrate_configuration(model, other, zero_where_locked(model, difference_configuration(model, one, other)))
    exact = lax.stop_gradient(problem_with(jnp.zeros((), model.dtype)))
    start = lax.stop_gradient((q, 2.0 * multipliers[1] - multipliers[0]))
    point = finish(exact, evaluate(exact, *start), search.converged)
    left = difference_configuration(model, start[0], point.q)
    q = integrate_configuration(model, q, lax.stop_gradient(zero_where_locked(model, left)))
    error, G = calc_position_rows(model, cset, q)
    is_solved = search.converged & is_solution(exact, tolerances, point)
    status = calc_assembly_status(search, is_solved, error, G, tolerances.error)
    status = jnp.where(jnp.all(jnp.isfinite(q)) & jnp.all(jnp.isfinite(error)), status, AssemblyStatus.NOT_FINITE)
    return AssemblyResult(q, error, status.astype(jnp.int32), search.rounds)


def finish(problem: AssemblyProblem, start: Point, goes_on: Bool[Array, ""]) -> Point:
    """Newton steps on the conditions of the problem, as long as each halves what they miss."""
    size = jnp.max(problem.W)

    def missing(point: Point) -> Array:
        slope, error = jnp.split(point.residual, [problem.W.shape[0]])
        return safe_norm(jnp.concatenate([slope / size, error]))

    def advance(carry: tuple) -> tuple:
        point, _, rounds = carry
        step = calc_newton_step(problem, point)[0]
        new = evaluate(problem, integrate_configuration(problem.model, point.q, step.d), step.multipliers)
        left, before = missing(new), missing(point)
        taken = jax.tree.map(lambda new, old: jnp.where(left < before, new, old), new, point)
        return taken, left < 0.5 * before, rounds + 1

    carry = start, goes_on, jnp.zeros((), jnp.int32)
    carry = varying_as_after(advance, carry)
    return lax.while_loop(lambda carry: carry[1] & (carry[2] < FINISHING), advance, carry)[0]


def polish(problem: AssemblyProblem, search: AssemblySearch) -> Point:
    """The search's best point, refined by a few more Newton steps if it is a solution."""

    def advance(point: Point, _: Any) -> tuple[Point, None]:
        step = calc_newton_step(problem, point)[0]
        q = integrate_configuration(problem.model, point.q, jnp.where(search.converged, step.d, 0.0))
        return evaluate(problem, q, jnp.where(search.converged, step.multipliers, point.multipliers)), None

    start = evaluate(problem, search.best.q, search.best.multipliers)
    return scan(advance, start, None, length=POLISHING)[0]


def calc_assembly_status(
    search: AssemblySearch, is_solved: Array, error: Array, G: Array, tolerance: float
) -> Int[Array, ""]:
    """The `AssemblyStatus` of a search of finite numbers; a search is stuck where no step lowers the error."""
    slope, size = lax.stop_gradient((safe_norm(error @ G), safe_norm(error) * safe_norm(G.reshape(-1))))
    is_satisfied = safe_norm(lax.stop_gradient(error)) <= tolerance
    is_singular = ~is_satisfied & (search.stuck | (slope <= OUT_OF_REACH * size))
    stuck = search.stuck | (search.converged & is_satisfied)
    failed = jnp.where(stuck, AssemblyStatus.STUCK, AssemblyStatus.ITERATION_LIMIT)
    failed = jnp.where(is_singular, AssemblyStatus.SINGULAR, failed)
    return jnp.where(is_solved, AssemblyStatus.CONVERGED, failed)


@takes_model_first
def assembly_qdot(
    model: MultibodyModel,
    cset: BoundConstraintSet,
    q: Positions,
    v_guess: Velocities,
    weights: ArrayLike | None = None,
) -> Velocities:
    """The v nearest to `v_guess` with G(q) v = 0: min (v - v_guess)ᵀ W (v - v_guess), one linear system.

    `weights` are as for `assembly_q`, but zeros are exact: among the v that they leave equally near, the change is
    least. Rows that constrain velocities only count too. Locked joints rest. Redundant rows do no harm. There is no
    status: v = 0 satisfies every row, so a solution exists and G v is zero to rounding, whatever the weights and units.
    RBDL's CalcAssemblyQDot, with v in place of q̇.
    """
    require_bound_set("assembly_qdot", cset, model)
    q = as_coordinates("q", q, model.num_positions, model.dtype)
    v_guess = as_coordinates("v_guess", v_guess, model.num_velocities, model.dtype)
    return call_compiled(_assembly_qdot, model, cset, q, v_guess, checked_weights(model, weights))


def _assembly_qdot(
    model: MultibodyModel, cset: BoundConstraintSet, q: Array, v_guess: Array, weights: Array
) -> Velocities:
    G = calc_active_jacobian(model, cset, q)
    weights = counted_weights(weights, jnp.zeros((), model.dtype))
    v = project_velocity(zero_where_locked(model, v_guess), G, jnp.diag(weights))
    return zero_where_locked(model, v)  # to the last bit


@eqx.filter_custom_jvp
def q_with_rule(problem: AssemblyProblem, q: Array, multipliers: Array) -> tuple[Array, Array]:
    """Returns (q, λ) unchanged, with the derivatives of the problem's solution: K (d, dλ) = -∂r."""
    del problem
    return q, multipliers


@q_with_rule.def_jvp
def _q_with_rule_jvp(primals: tuple, tangents: tuple) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    problem, q, multipliers = primals
    q, multipliers = q_with_rule(problem, q, multipliers)
    _, change = eqx.filter_jvp(lambda p: evaluate(p, q, multipliers).residual, (problem,), (tangents[0],))
    K = calc_jacobian(problem, q, multipliers)
    nv = problem.W.shape[0]
    d, multipliers_tangent = jnp.split(-solve_under_rows(K, change, nv), [nv])
    d = zero_where_locked(problem.model, d)
    return (q, multipliers), (velocity_to_qdot(problem.model, q, d), multipliers_tangent)


def least_weight(model: MultibodyModel) -> float:
    """The share of the largest weight below which a weight counts as zero."""
    return 1e-7 if model.dtype == jnp.float64 else 1e-3


def counted_weights(weights: Float[Array, " nv"], count: Float[Array, ""]) -> Float[Array, " nv"]:
    """The weights with zeros replaced by `count`; derivatives are those of the weights."""
    return jnp.where(weights == 0.0, count + weights, weights)


def checked_weights(model: MultibodyModel, weights: ArrayLike | None) -> Float[Array, " nv"]:
    """Checked weights of the velocity coordinates, divided by the largest; those that count as zero become zero."""
    if weights is None:
        return jnp.ones(model.num_velocities, model.dtype)
    array = jnp.asarray(weights, model.dtype)
    if array.shape != (model.num_velocities,):
        raise ModelError(
            f"assembly: weights must have shape ({model.num_velocities},), one for each velocity, got {array.shape}."
        )
    if not isinstance(array, Tracer) and not are_weights(np.asarray(array)):
        raise ModelError(f"assembly: weights must be finite, at least zero, and not all zero, got {weights!r}.")
    largest = lax.stop_gradient(jnp.max(array))
    array = array / jnp.where(largest > 0.0, largest, 1.0)
    return jnp.where(jnp.abs(array) < least_weight(model), array - lax.stop_gradient(array), array)


def are_weights(values: np.ndarray) -> bool:
    """Whether they are finite, none negative, and not all zero. In NumPy: JAX would trace it inside jit."""
    return bool(np.all(np.isfinite(values) & (values >= 0.0)) and np.any(values))
