"""Minimum of a convex quadratic function within a box, by projected Newton steps."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mbjax.linear_algebra import eliminate_columns

MAX_TURNS = 30
ARMIJO = 0.1  # a step is taken if it gives this part of the decrease that its slope promises


def solve_in_box(
    H: Float[Array, "n n"], g: Float[Array, " n"], low: Float[Array, " n"], high: Float[Array, " n"]
) -> tuple[Float[Array, " n"], Bool[Array, " n"]]:
    """Minimizes xᵀ H x / 2 + g·x within low <= x <= high; also returns which entries are free to move.

    Entries at a limit whose gradient pushes outward are held, the others take Newton's step, projected to the box
    (Bertsekas 1982; Tassa et al. 2014, "Control-limited differential dynamic programming"). NaN where H is indefinite.
    """
    one, scale = jnp.eye(len(g), dtype=g.dtype), jnp.finfo(g.dtype).eps ** 0.75
    lengths = 0.5 ** jnp.arange(12, dtype=g.dtype)

    def is_free(x: Array, gradient: Array) -> Array:
        return ~(((x <= low) & (gradient > 0.0)) | ((x >= high) & (gradient < 0.0)))

    def slope(x: Array) -> Array:
        return jnp.sum(H * x, axis=1) + g

    def value(x: Array) -> Array:
        return 0.5 * jnp.sum(x * (slope(x) + g))

    def turn(carry: tuple) -> tuple:
        x, _, _, count = carry
        gradient = slope(x)
        free = is_free(x, gradient)
        held_apart = jnp.where(free[:, None] & free, H, one)
        newton, is_convex = eliminate_columns(held_apart, jnp.where(free, gradient, 0.0)[:, None])
        move = jnp.where(free, -newton[:, 0], 0.0)
        tried = jax.vmap(lambda a: jnp.clip(x + a * move, low, high))(lengths)
        gained = value(x) - jax.vmap(value)(tried)
        promised = -jnp.sum((tried - x) * gradient, axis=1)
        length = jnp.max(jnp.where(gained >= ARMIJO * promised, lengths, 0.0))
        x_new = jnp.clip(x + length * move, low, high)
        moved = jnp.max(jnp.abs(x_new - x)) > scale * (1.0 + jnp.max(jnp.abs(x)))
        is_finite = is_convex & jnp.all(jnp.isfinite(move))
        return jnp.where(is_finite, x_new, jnp.nan), free, moved & is_finite, count + 1

    start = jnp.clip(jnp.zeros_like(g), low, high)
    x, *_ = jax.lax.while_loop(
        lambda c: c[2] & (c[3] < MAX_TURNS), turn, (start, jnp.ones(len(g), bool), jnp.asarray(True), 0)
    )
    return x, is_free(x, slope(x))
