"""Inertia of a task, and the forces that do not disturb it; safe where the task's Jacobian loses rank."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.linear_algebra import singular_values, solve_positive_definite

SINGULAR = 1e-4  # of the least to the largest mobility: below it the task's inertia is damped


class TaskInertia(NamedTuple):
    """Λ = (J M⁻¹ Jᵀ)⁻¹ and the dynamically consistent inverse J̄ = M⁻¹ Jᵀ Λ."""

    inertia: Float[Array, "rows rows"]
    J_bar: Float[Array, "nv rows"]


def calc_task_inertia(M: Float[Array, "nv nv"], J: Float[Array, "rows nv"], singular: Any = SINGULAR) -> TaskInertia:
    """Inertia seen by a task (Khatib 1987, "A unified approach for motion and force control").

    Where the least mobility falls below `singular` times the largest, a part of the identity is added to the mobility,
    rising smoothly from zero, so that forces stay finite (Nakamura and Hanafusa 1986).
    """
    by_M = solve_positive_definite(M, J.T)
    mobility = J @ by_M
    mobility = 0.5 * (mobility + mobility.T)
    values = singular_values(mobility)
    bound = singular * values[0] + jnp.finfo(M.dtype).tiny
    lack = jnp.maximum(1.0 - values[-1] / bound, 0.0)
    one = jnp.eye(len(J), dtype=M.dtype)
    inertia = solve_positive_definite(mobility + bound * lack**2 * one, one)
    return TaskInertia(inertia, by_M @ inertia)


def without_effect(J: Float[Array, "rows nv"], of: TaskInertia, tau: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """The part (1 - Jᵀ J̄ᵀ) tau of generalized forces that accelerates nothing in the task (Khatib 1987)."""
    return tau - J.T @ (of.J_bar.T @ tau)
