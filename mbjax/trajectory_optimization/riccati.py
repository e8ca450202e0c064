"""Riccati recursions: the optimal feedback of a linear-quadratic problem, with box limits on efforts if given.

From the last step backward, with V' the value function of the next step moved by its gap:
    Q_x = l_x + Aᵀ V'_x,         Q_u = l_u + Bᵀ V'_x
    Q_xx = l_xx + Aᵀ V'_xx A,    Q_ux = l_ux + Bᵀ V'_xx A,    Q_uu = l_uu + Bᵀ V'_xx B
    du = -k - K dx minimizes Q:  k = Q_uu⁻¹ Q_u,  K = Q_uu⁻¹ Q_ux   (Tassa et al. 2014; Mastalli et al. 2020)
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.execution import in_one_kernel, on_cpu
from mbjax.linear_algebra import eliminate_columns, product_by_rows

from .box_limits import solve_in_box
from .expansion import Expansion


class Feedback(NamedTuple):
    """The feedback du = -k - K dx of all steps, the value function's derivatives, and the model's expected change."""

    k: Float[Array, "steps nu"]
    K: Float[Array, "steps nu ndx"]
    V_x: Float[Array, "steps_and_end ndx"]
    V_xx: Float[Array, "steps_and_end ndx ndx"]
    first_order: Float[Array, ""]  # sum of Q_u · k
    second_order: Float[Array, ""]  # sum of k · Q_uu k
    is_convex: Array  # whether all Q_uu were positive definite


def solve_riccati(
    expansion: Expansion,
    regularization: Float[Array, ""],
    room: tuple[Float[Array, "steps nu"], Float[Array, "steps nu"]] | None,
) -> Feedback:
    """Solves the problem from its last step backward, on a CPU as one kernel.

    `regularization` is added to the diagonals of V_xx and Q_uu. `room` is how far efforts may fall and rise.
    """
    return on_cpu(
        functools.partial(in_one_kernel, functools.partial(solve_backward, product_by_rows)),
        functools.partial(solve_backward, jnp.matmul),
        expansion,
        regularization,
        room,
    )


def solve_backward(
    product: Callable[[Array, Array], Array], e: Expansion, regularization: Float[Array, ""], room: tuple | None
) -> Feedback:
    """The recursion, by one way or another to multiply matrices."""
    ndx, nu = e.A.shape[-1], e.B.shape[-1]
    one_x, one_u = (regularization * jnp.eye(n, dtype=e.A.dtype) for n in (ndx, nu))

    def backward(carry: tuple, step: tuple) -> tuple:
        V_x, V_xx = carry
        A, B, gap, l_x, l_u, l_xx, l_ux, l_uu, room = step
        AB, l_z = jnp.concatenate([A, B], axis=1), jnp.concatenate([l_x, l_u])
        l_zz = jnp.concatenate([jnp.concatenate([l_xx, l_ux.T], axis=1), jnp.concatenate([l_ux, l_uu], axis=1)])
        V_x = V_x + jnp.sum(V_xx * gap, axis=1)
        Q_z = l_z + jnp.sum(V_x[:, None] * AB, axis=0)
        Q_zz = l_zz + product(AB.T, product(V_xx + one_x, AB))
        Q_x, Q_u = Q_z[:ndx], Q_z[ndx:]
        Q_xx, Q_ux, Q_uu = Q_zz[:ndx, :ndx], Q_zz[ndx:, :ndx], Q_zz[ndx:, ndx:]
        k, K, is_convex = feedback_of(Q_u, Q_ux, Q_uu + one_u, room)
        pushed = jnp.sum(Q_uu * k, axis=1)
        V_x = Q_x - jnp.sum(K * (Q_u - pushed)[:, None] + k[:, None] * Q_ux, axis=0)
        V_xx = Q_xx - product(K.T, Q_ux + regularization * K)  # as Q_uu K = Q_ux - regularization K
        V_xx = 0.5 * (V_xx + V_xx.T)
        return (V_x, V_xx), (k, K, V_x, V_xx, jnp.sum(Q_u * k), jnp.sum(k * pushed), is_convex)

    steps = e.A, e.B, e.gaps, e.l_x[:-1], e.l_u, e.l_xx[:-1], e.l_ux, e.l_uu, room
    _, (k, K, V_x, V_xx, first, second, is_convex) = jax.lax.scan(
        backward, (e.l_x[-1], e.l_xx[-1]), steps, reverse=True
    )
    V_x, V_xx = jnp.concatenate([V_x, e.l_x[-1:]]), jnp.concatenate([V_xx, e.l_xx[-1:]])
    return Feedback(k, K, V_x, V_xx, jnp.sum(first), jnp.sum(second), jnp.all(is_convex))


def feedback_of(
    Q_u: Float[Array, " nu"], Q_ux: Float[Array, "nu ndx"], Q_uu: Float[Array, "nu nu"], room: tuple | None
) -> tuple[Array, Array, Array]:
    """k and K of one step, and whether Q_uu is positive definite; limited efforts have no feedback.

    Where the minimum without limits lies within them it is the minimum: most steps need no search within the box.
    """
    both, is_convex = eliminate_columns(Q_uu, jnp.concatenate([Q_u[:, None], Q_ux], axis=1))
    free = both[:, 0], both[:, 1:], is_convex
    if room is None:
        return free
    low, high = room
    is_inside = is_convex & jnp.all((low < -free[0]) & (-free[0] < high))
    # a branch, as the loop of one turn that a kernel can hold
    carry = is_inside, free
    return jax.lax.while_loop(
        lambda c: ~c[0], lambda _: (jnp.asarray(True), limited_feedback(Q_u, Q_ux, Q_uu, room)), carry
    )[1]


def limited_feedback(
    Q_u: Float[Array, " nu"], Q_ux: Float[Array, "nu ndx"], Q_uu: Float[Array, "nu nu"], room: tuple
) -> tuple[Array, Array, Array]:
    """k and K where some efforts are held at a limit."""
    du, free = solve_in_box(Q_uu, Q_u, *room)
    one = jnp.eye(len(Q_u), dtype=Q_u.dtype)
    K, is_convex = eliminate_columns(jnp.where(free[:, None] & free, Q_uu, one), jnp.where(free[:, None], Q_ux, 0.0))
    return -du, K, is_convex & jnp.all(jnp.isfinite(du))
