"""Riccati recursions: the optimal feedback of a linear-quadratic problem, with box limits on efforts if given.

From the last step backward, with V' the value function of the next step moved by its gap:
    Q_x = l_x + Aᵀ V'_x,         Q_u = l_u + Bᵀ V'_x
    Q_xx = l_xx + Aᵀ V'_xx A,    Q_ux = l_ux + Bᵀ V'_xx A,    Q_uu = l_uu + Bᵀ V'_xx B
    du = -k - K dx minimizes Q:  k = Q_uu⁻¹ Q_u,  K = Q_uu⁻¹ Q_ux   (Tassa et al. 2014; Mastalli et al. 2020)
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.linear_algebra import cholesky, cholesky_solve

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
    """Solves the problem from its last step backward.

    `regularization` is added to the diagonals of V_xx and Q_uu. `room` is how far efforts may fall and rise.
    """
    e, ndx, nu = expansion, expansion.A.shape[-1], expansion.B.shape[-1]
    one_x, one_u = (regularization * jnp.eye(n, dtype=e.A.dtype) for n in (ndx, nu))
    # by z = (dx, du), so that a step has few products of matrices, each a kernel
    AB, l_z = jnp.concatenate([e.A, e.B], axis=2), jnp.concatenate([e.l_x[:-1], e.l_u], axis=1)
    l_xu = jnp.swapaxes(e.l_ux, 1, 2)
    l_zz = jnp.concatenate(
        [jnp.concatenate([e.l_xx[:-1], l_xu], axis=2), jnp.concatenate([e.l_ux, e.l_uu], axis=2)], axis=1
    )

    def backward(carry: tuple, step: tuple) -> tuple:
        V_x, V_xx = carry
        AB, gap, l_z, l_zz, room = step
        Q_z = l_z + (V_x + V_xx @ gap) @ AB
        Q_zz = l_zz + AB.T @ ((V_xx + one_x) @ AB)
        Q_x, Q_u = Q_z[:ndx], Q_z[ndx:]
        Q_xx, Q_ux, Q_uu = Q_zz[:ndx, :ndx], Q_zz[ndx:, :ndx], Q_zz[ndx:, ndx:]
        k, K, is_convex = feedback_of(Q_u, Q_ux, Q_uu + one_u, room)
        pushed = Q_uu @ k
        V_x = Q_x - K.T @ (Q_u - pushed) - k @ Q_ux
        V_xx = Q_xx + K.T @ (Q_uu @ K - 2.0 * Q_ux)
        V_xx = 0.5 * (V_xx + V_xx.T)
        return (V_x, V_xx), (k, K, V_x, V_xx, Q_u @ k, k @ pushed, is_convex)

    steps = AB, e.gaps, l_z, l_zz, room
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
    factor = cholesky(Q_uu)
    both = cholesky_solve(factor, jnp.concatenate([Q_u[:, None], Q_ux], axis=1))
    free = both[:, 0], both[:, 1:], jnp.all(jnp.isfinite(factor))
    if room is None:
        return free
    low, high = room
    is_inside = free[2] & jnp.all((low < -free[0]) & (-free[0] < high))
    return jax.lax.cond(is_inside, lambda: free, lambda: limited_feedback(Q_u, Q_ux, Q_uu, room))


def limited_feedback(
    Q_u: Float[Array, " nu"], Q_ux: Float[Array, "nu ndx"], Q_uu: Float[Array, "nu nu"], room: tuple
) -> tuple[Array, Array, Array]:
    """k and K where some efforts are held at a limit."""
    du, free = solve_in_box(Q_uu, Q_u, *room)
    one = jnp.eye(len(Q_u), dtype=Q_u.dtype)
    factor = cholesky(jnp.where(free[:, None] & free, Q_uu, one))
    K = cholesky_solve(factor, jnp.where(free[:, None], Q_ux, 0.0))
    return -du, K, jnp.all(jnp.isfinite(factor)) & jnp.all(jnp.isfinite(du))
