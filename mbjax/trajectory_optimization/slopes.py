"""Closed forms of costs: residuals with their Jacobians by positions, velocities and efforts.

A cost with a method `slopes` of the arguments that it is called with, which returns a list of `Slopes`, is not
differentiated where the state is a `State`: what it does not depend on, and diagonal Jacobians, cost nothing. It may
return None where there is no closed form. With a keyword `motion` it is given what the dynamics' `motion_slopes` found
of the step, such as contact forces with their derivatives, or None.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.simulation import State
from mbjax.spatial import safe_sqrt

from .problem import Problem, takes_motion
from .weights import Scheduled

Jacobian = Float[Array, "..."] | None  # of a residual: None for zero, (size,) for a diagonal, or (size, n)


class Slopes(NamedTuple):
    """A residual and its Jacobians by the tangent dq, by v and by the effort."""

    residual: Float[Array, " size"]
    by_q: Jacobian = None
    by_v: Jacobian = None
    by_u: Jacobian = None

    def scaled(self, weight: Float[Array, "..."]) -> "Slopes":
        """The weighted residual with its Jacobians; the weight is a number or one for each entry."""
        weight = jnp.broadcast_to(weight, self.residual.shape)
        jacobians = (None if part is None else times(weight, part) for part in (self.by_q, self.by_v, self.by_u))
        return Slopes(weight * self.residual, *jacobians)


def times(weight: Float[Array, " size"], part: Float[Array, "size *n"]) -> Float[Array, "size *n"]:
    """Rows times their weights."""
    return weight * part if part.ndim == 1 else weight[:, None] * part


def slopes_of_goal(goal: Any, given: tuple, motion: Any) -> list[Slopes] | None:
    """The closed form of a residual of these arguments; None where it has none."""
    if not hasattr(goal, "slopes"):
        return None
    found = goal.slopes(*given, **({"motion": motion} if takes_motion(goal, "slopes") else {}))
    return None if found is None else list(found)


def slopes_of(problem: Problem, term: Any, x: Any, u: Any, stage: Any, k: Any, motion: Any) -> list[Slopes] | None:
    """The closed form of a cost at step k, with all weights; None where it has none, or its weight is of the effort."""
    goal = term.goal if isinstance(term, Scheduled) else term
    is_weight_known = problem.per == "step" or not hasattr(problem.dynamics, "step_length")
    if not isinstance(x, State) or not is_weight_known:
        return None
    found = slopes_of_goal(goal, (problem.model, x, *(given for given in (u, stage) if given is not None)), motion)
    if found is None:
        return None
    if u is not None and problem.per == "second":
        root = safe_sqrt(jnp.asarray(problem.step_length(u), u.dtype))
        found = [part.scaled(root) for part in found]
    if not isinstance(term, Scheduled):
        return found
    size = sum(len(part.residual) for part in found)
    return scaled_parts(found, term.weight_at(k, (size,), found[0].residual.dtype))


def scaled_parts(parts: list[Slopes], weights: Float[Array, "..."]) -> list[Slopes]:
    """All residuals times a number, or times one for each of their entries."""
    sizes = [len(part.residual) for part in parts]
    each = jnp.split(jnp.broadcast_to(weights, (sum(sizes),)), np.cumsum(sizes)[:-1])
    return [part.scaled(weight) for part, weight in zip(parts, each, strict=True)]


def expand_slopes(parts: list[Slopes], sizes: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """Value, gradient and Hessian JᵀJ of half the squares of residuals, by tangents of these sizes: dq, dv and du."""
    value = functools.reduce(jnp.add, (0.5 * part.residual @ part.residual for part in parts))
    parts, count = stacked_alike(parts), len(sizes)
    of_type = functools.partial(total, dtype=value.dtype)
    gradients = [of_type([transposed_times(p[1 + a], p.residual) for p in parts], (n,)) for a, n in enumerate(sizes)]
    blocks = {
        (a, b): of_type([product(p[1 + a], p[1 + b]) for p in parts], (sizes[a], sizes[b]))
        for a in range(count)
        for b in range(a, count)
    }
    rows = [[blocks[a, b] if a <= b else blocks[b, a].T for b in range(count)] for a in range(count)]
    return value, jnp.concatenate(gradients), jnp.block(rows)


def stacked_alike(parts: list[Slopes]) -> list[Slopes]:
    """Residuals with matrices by the same arguments as one with all rows, so that their products are one product."""
    groups: dict[tuple[int, ...], list[Slopes]] = {}
    for part in parts:
        is_dense = all(J is None or J.ndim == 2 for J in part[1:])
        key = tuple(J is not None for J in part[1:]) if is_dense else (id(part),)
        groups.setdefault(key, []).append(part)
    return [jax.tree.map(lambda *x: jnp.concatenate(x), *group) for group in groups.values()]


def total(terms: list[Jacobian], shape: tuple[int, ...], dtype: Any) -> Float[Array, "..."]:
    """Sum of the terms that there are; diagonals are put on matrices."""
    there = [term for term in terms if term is not None]
    dense = [term for term in there if term.ndim == len(shape)]
    diagonals = [term for term in there if term.ndim < len(shape)]
    if diagonals:
        dense.append(jnp.diag(functools.reduce(jnp.add, diagonals)))
    return functools.reduce(jnp.add, dense) if dense else jnp.zeros(shape, dtype)


def transposed_times(J: Jacobian, r: Float[Array, " size"]) -> Jacobian:
    """Jᵀ r."""
    if J is None:
        return None
    return J * r if J.ndim == 1 else jnp.sum(J * r[:, None], axis=0)


def product(A: Jacobian, B: Jacobian) -> Jacobian:
    """Aᵀ B of two Jacobians of one residual."""
    if A is None or B is None:
        return None
    if A.ndim == 1:
        return A * B if B.ndim == 1 else A[:, None] * B
    return A.T * B if B.ndim == 1 else A.T @ B
