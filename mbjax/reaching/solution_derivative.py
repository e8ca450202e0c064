"""The solution as a function of the task's numbers: the implicit function theorem on the conditions of the minimum.

With s = w r(q) the weighted residuals, y the multipliers of the hard rows h that hold with equality, and the
coordinates at their limits fixed there, a minimum satisfies

    (w J)ᵀ s + Gᵀ y = 0,      w r - s = 0,      h - bound = 0

whose tangent is one linear system in (d, ds, dy), d along tangent coordinates. It is exact for residuals that are not
zero, too, as it has the curvature of goals. Where solutions are not isolated, as of an arm with a spare joint, d is the
shortest change that keeps a solution, which a new search from the old solution would make to first order.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from mbjax.linear_algebra import pseudo_inverse
from mbjax.model import locked_velocities

from .lanes import search_tasks
from .search import Found, Settings
from .tangent import coordinates_of, limits_in_tangent, move
from .task import Evaluation, Task, evaluate


@eqx.filter_custom_jvp
def solution_of(task: Task, settings: Settings, guess: Float[Array, " nq"]) -> Found:
    """What the search finds, with the derivatives of the minimum; none by the guess."""
    return search_tasks(task, settings, guess)


@solution_of.def_jvp
def _solution_of_jvp(primals: tuple, tangents: tuple) -> tuple[Found, Any]:
    (task, settings, guess), (dtask, _, _) = primals, tangents
    found = solution_of(task, settings, guess)
    d, rows = change_of_solution(task, dtask, found)
    dq = jax.jvp(lambda d: move(task.model, found.q, d), (jnp.zeros_like(d),), (d,))[1]
    change = jax.tree.map(lambda _: None, found)
    return found, change._replace(q=dq, rows=rows)


def change_of_solution(task: Task, dtask: Any, found: Found) -> tuple[Float[Array, " nv"], Evaluation]:
    """Changes of the solution, along tangent coordinates, and of the rows there, with the task's numbers."""
    q, nv = found.q, found.rows.J.shape[1]
    rows = found.rows
    s = rows.weight * rows.value
    is_active = (found.multipliers != 0.0) | (rows.lower == rows.upper)
    y = jnp.where(is_active, found.multipliers, 0.0)
    is_fixed = coordinates_at_limits(task, q)

    def conditions(task: Task, d: Array) -> tuple[Array, Evaluation]:
        here = evaluate(task, move(task.model, q, d))
        slope = jnp.sum(here.J * (here.weight * s)[:, None], 0) + jnp.sum(here.G * y[:, None], 0)
        return slope, here

    still = jnp.zeros(nv, q.dtype)
    (_, _), (dslope, drows) = eqx.filter_jvp(lambda task: conditions(task, still), (task,), (dtask,))
    dslope, drows = filled(dslope, still), filled(drows, rows)
    C = jax.jacfwd(lambda d: conditions(task, d)[0])(still)
    K = matrix_of(C, rows, is_active, is_fixed)
    dexcess = jnp.where(is_active, drows.hard - drow_bound(rows, drows), 0.0)
    dresidual = rows.weight * drows.value + drows.weight * rows.value
    right = jnp.concatenate([jnp.where(is_fixed, change_of_limits(task, dtask, q), -dslope), -dresidual, -dexcess])
    eps = float(jnp.finfo(q.dtype).eps)
    inverse = pseudo_inverse(lax.stop_gradient(K), 1e3 * eps)
    d = jnp.sum(inverse * right[None], 1)[:nv]
    value = drows.value + jnp.sum(rows.J * d[None], 1)
    hard = drows.hard + jnp.sum(rows.G * d[None], 1)
    return d, Evaluation(value, None, drows.weight, hard, None, drows.lower, drows.upper)  # pyright: ignore[reportArgumentType]


def filled(change: Any, like: Any) -> Any:
    """Tangents with zeros in place of None."""
    return jax.tree.map(lambda x, y: jnp.zeros_like(y) if x is None else x, change, like, is_leaf=lambda x: x is None)


def drow_bound(rows: Evaluation, drows: Evaluation) -> Float[Array, " h"]:
    """Change of the bound that each hard row is nearer to."""
    is_upper = jnp.abs(rows.hard - rows.upper) < jnp.abs(rows.hard - rows.lower)
    return jnp.where(is_upper, drows.upper, drows.lower)


def matrix_of(
    C: Float[Array, "nv nv"], rows: Evaluation, is_active: Bool[Array, " h"], is_fixed: Bool[Array, " nv"]
) -> Float[Array, "n n"]:
    """Matrix of the linear system; unknowns that are fixed have rows of the identity."""
    J = rows.weight[:, None] * rows.J
    G = jnp.where(is_active[:, None], rows.G, 0.0)
    m, h, dtype = J.shape[0], G.shape[0], C.dtype
    top = jnp.concatenate([C, J.T, G.T], 1)
    top = jnp.where(is_fixed[:, None], jnp.eye(*top.shape, dtype=dtype), top)
    middle = jnp.concatenate([J, -jnp.eye(m, dtype=dtype), jnp.zeros((m, h), dtype)], 1)
    passive = jnp.diag(jnp.where(is_active, 0.0, jnp.ones(h, dtype)))
    bottom = jnp.concatenate([G, jnp.zeros((h, m), dtype), passive], 1)
    return jnp.concatenate([top, middle, bottom])


def coordinates_at_limits(task: Task, q: Float[Array, " nq"]) -> Bool[Array, " nv"]:
    """Coordinates that stay where they are: at a limit, or locked."""
    low, high = limits_in_tangent(task.model, task.limits, q)
    return (low >= 0.0) | (high <= 0.0) | locked_velocities(task.model)


def change_of_limits(task: Task, dtask: Any, q: Float[Array, " nq"]) -> Float[Array, " nv"]:
    """Change of the limit that each coordinate is at; zero elsewhere."""
    low, high = limits_in_tangent(task.model, task.limits, q)
    lower, upper = (jnp.zeros_like(q) if x is None else x for x in (dtask.limits[0], dtask.limits[1]))
    places = coordinates_of(task.model).places
    own = places >= 0
    index = jnp.where(own, places, 0)
    change = jnp.where(low >= 0.0, lower[index], jnp.where(high <= 0.0, upper[index], 0.0))
    return jnp.where(own & ~locked_velocities(task.model), change, 0.0)
