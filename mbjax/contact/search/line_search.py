"""Line search: finds where the slope of a convex function along a line crosses zero."""

from collections.abc import Callable

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

MAX_EVALUATIONS = 30


def find_minimum(
    slope: Callable[[Array], tuple[Array, Array]],
    start: Float[Array, "*w"],
    rounding: Float[Array, "*w"],
    step: Float[Array, "*w"],
    lost: Float[Array, "*w"],
    wanted: Bool[Array, "*w"],
) -> Float[Array, "*w"]:
    """Finds t in (0, 1] where |slope| is at most a hundredth of |start|, or `rounding`; t = 1 if the slope stays < 0.

    The slope rises from `start` < 0 at t = 0; `slope` returns it with its derivative. Newton's method, safeguarded by a
    bracket, runs for the worlds `wanted`. It ends when the bracket times `step` is no more than what is `lost` in
    rounding, as the slope of a stiff row may jump over zero. More digits do not pay: the direction is Newton's too, and
    near the solution t = 1 is better than any search.
    """
    one = jnp.ones_like(start)
    small = jnp.maximum(1e-2 * jnp.abs(start), rounding)

    def unfinished(carry: tuple) -> Array:
        *_, count, done = carry
        return jnp.any(~done) & (count < MAX_EVALUATIONS)

    def narrow(carry: tuple) -> tuple:
        low, high, t, count, done = carry
        at_t, curvature = slope(t)
        done = done | ~((jnp.abs(at_t) > small) & ((at_t > 0.0) | (count > 0)))
        low, high = jnp.where(at_t < 0.0, t, low), jnp.where(at_t < 0.0, high, t)
        done = done | ~((high - low) * step > lost)
        guess = t - at_t / curvature
        guess = jnp.where((guess > low) & (guess < high), guess, 0.5 * (low + high))
        return low, high, jnp.where(done, t, guess), count + 1, done

    carry = (jnp.zeros_like(one), one, one, jnp.zeros((), jnp.int32), ~wanted)
    return lax.while_loop(unfinished, narrow, carry)[2]
