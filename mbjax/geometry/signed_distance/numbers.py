"""Choices that derivatives hold: signs, clamps and the largest of a few numbers.

At a limit the derivative is that of the inside; the sign of zero is plus.
"""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def sign_of(x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """1 or -1, without derivative."""
    return jnp.where(x < 0.0, jnp.ones_like(x) * -1.0, jnp.ones_like(x))


def clamp(x: Float[Array, "*n"], limit: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """x within ±limit."""
    return jnp.where(x > limit, limit, jnp.where(x < -limit, -limit, x))


def positive_part(x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """x where it is positive, and zero elsewhere."""
    return jnp.where(x > 0.0, x, 0.0)


def first_largest(numbers: Sequence[Float[Array, "*n"]]) -> list[Bool[Array, "*n"]]:
    """Which of the numbers is the largest, the first of equals."""
    flags, taken = [], jnp.zeros(jnp.broadcast_shapes(*(x.shape for x in numbers)), bool)
    for i, x in enumerate(numbers):
        largest = ~taken
        for other in numbers[i + 1 :]:
            largest = largest & (x >= other)
        flags.append(largest)
        taken = taken | largest
    return flags


def rounding(*lengths: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """What lengths of this size are accurate to: a difference below it decides nothing."""
    return 16.0 * float(jnp.finfo(lengths[0].dtype).eps) * sum(lengths[1:], lengths[0])
