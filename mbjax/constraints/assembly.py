"""Configurations and velocities that satisfy the constraints, as near to a guess as possible."""

import enum

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jax.core import Tracer
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from mbjax.array_types import Positions, Velocities
from mbjax.errors import ModelError
from mbjax.execution import call_compiled
from mbjax.kinematics import velocity_to_qdot
from mbjax.model import MultibodyModel, as_coordinates, zero_where_locked
from mbjax.spatial import safe_norm

from .assembly_problem import (
    AssemblyProblem,
    Tolerances,
    calc_active_jacobian,
    calc_jacobian,
    calc_position_rows,
    evaluate,
    search_assembly,
)
from .constraint_kinematics import BoundConstraintSet
from .velocity_projection import project_velocity, solve_by_pseudo_inverse

LEAST_WEIGHT = 1e-6  # what a weight of zero counts, relative to the largest
OUT_OF_REACH = 0.05  # cosine between the error and what G can change, below which the error is called singular


class AssemblyStatus(enum.IntEnum):
    """How the search for a configuration ended; each has a sentence for people."""

    CONVERGED = 0
    ITERATION_LIMIT = 1
    SINGULAR = 2

    @property
    def message(self) -> str:
        return {
            AssemblyStatus.CONVERGED: "the constraints are satisfied, as near to the guess as possible.",
            AssemblyStatus.ITERATION_LIMIT: "max_iterations came first: allow more, start from a better guess, or see "
            "whether the constraints are within reach at all.",
            AssemblyStatus.SINGULAR: "no motion makes the error smaller from here: the constraints contradict each "
            "other or are out of reach, or the guess lies where they cannot tell which way to go; start elsewhere.",
        }[self]


class AssemblyResult(eqx.Module):
    """q, the constraints' position errors there (rows of the set), an `AssemblyStatus` as a number, and rounds used."""

    q: Float[Array, " nq"]
    error: Float[Array, " nc"]
    status: Int[Array, ""]
    iterations: Int[Array, ""]


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

    `weights` (nv,) say how dear a change of each velocity coordinate is: 1 (when None), or 0 for those free to change;
    a weight below a millionth of the largest counts as that. Rows that constrain velocities only, like contacts, are
    left out; locked joints stay. The norm of the error is at most `tolerance` (1e-12; 1e-6 in float32) when the
    status is CONVERGED, and the least that was found otherwise. Redundant rows do no harm. RBDL's CalcAssemblyQ.

    Derivatives with respect to the guess, the weights and all leaves are those of the nearest configuration, whatever
    the iterations: one linear system at the solution. They mean nothing where the status is not CONVERGED.
    """
    q_guess = as_coordinates("q_guess", q_guess, model.num_positions, model.dtype)
    is_double = model.dtype == jnp.float64
    error = tolerance if tolerance is not None else 1e-12 if is_double else 1e-6
    tolerances = Tolerances(error, 1e-10 if is_double else 1e-4, max_iterations)
    return call_compiled(_assembly_q, model, cset, q_guess, checked_weights(model, weights), tolerances)


def _assembly_q(
    model: MultibodyModel, cset: BoundConstraintSet, q_guess: Array, weights: Array, tolerances: Tolerances
) -> AssemblyResult:
    problem = AssemblyProblem(model, cset, q_guess, jnp.diag(weights))
    search = search_assembly(problem, tolerances)
    q, _ = at_solution(problem, search.best.q, search.best.multipliers)
    error, G = calc_position_rows(model, cset, q)
    slope, size = lax.stop_gradient((safe_norm(error @ G), safe_norm(error) * safe_norm(G.reshape(-1))))
    failed = jnp.where(slope <= OUT_OF_REACH * size, AssemblyStatus.SINGULAR, AssemblyStatus.ITERATION_LIMIT)
    status = jnp.where(search.converged, AssemblyStatus.CONVERGED, failed)
    return AssemblyResult(q, error, status.astype(jnp.int32), search.rounds)


def assembly_qdot(
    model: MultibodyModel,
    cset: BoundConstraintSet,
    q: Positions,
    v_guess: Velocities,
    weights: ArrayLike | None = None,
) -> Velocities:
    """The v nearest to `v_guess` with G(q) v = 0: min (v - v_guess)ᵀ W (v - v_guess), one linear system.

    `weights` as for `assembly_q`; rows that constrain velocities only count too. Locked joints rest. Redundant rows
    do no harm. RBDL's CalcAssemblyQDot, with v in place of q̇.
    """
    q = as_coordinates("q", q, model.num_positions, model.dtype)
    v_guess = as_coordinates("v_guess", v_guess, model.num_velocities, model.dtype)
    return call_compiled(_assembly_qdot, model, cset, q, v_guess, checked_weights(model, weights))


def _assembly_qdot(
    model: MultibodyModel, cset: BoundConstraintSet, q: Array, v_guess: Array, weights: Array
) -> Velocities:
    G = calc_active_jacobian(model, cset, q)
    return project_velocity(zero_where_locked(model, v_guess), G, jnp.diag(weights))


@eqx.filter_custom_jvp
def at_solution(problem: AssemblyProblem, q: Array, multipliers: Array) -> tuple[Array, Array]:
    """(q, λ) as they are, with the derivatives of what solves the problem: K (d, dλ) = -∂r."""
    del problem
    return q, multipliers


@at_solution.def_jvp
def _at_solution_jvp(primals: tuple, tangents: tuple) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    problem, q, multipliers = primals
    q, multipliers = at_solution(problem, q, multipliers)
    _, change = eqx.filter_jvp(lambda p: evaluate(p, q, multipliers).residual, (problem,), (tangents[0],))
    K = calc_jacobian(problem, q, multipliers)
    d, multipliers_tangent = jnp.split(-solve_by_pseudo_inverse(K, change), [problem.W.shape[0]])
    return (q, multipliers), (velocity_to_qdot(problem.model, q, d), multipliers_tangent)


def checked_weights(model: MultibodyModel, weights: ArrayLike | None) -> Float[Array, " nv"]:
    """Weights of the velocity coordinates, none of them zero."""
    if weights is None:
        return jnp.ones(model.num_velocities, model.dtype)
    array = jnp.asarray(weights, model.dtype)
    if array.shape != (model.num_velocities,):
        raise ModelError(
            f"assembly: weights must have shape ({model.num_velocities},), one for each velocity, got {array.shape}."
        )
    if not isinstance(array, Tracer) and not bool(jnp.all(jnp.isfinite(array) & (array >= 0.0)) & jnp.any(array)):
        raise ModelError(f"assembly: weights must be finite, at least zero, and not all zero, got {weights!r}.")
    return jnp.maximum(array, LEAST_WEIGHT * jnp.max(array))
