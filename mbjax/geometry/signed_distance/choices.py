"""Choices that derivatives hold fixed: signs, clamps, the largest of a few numbers, and selections by index.

At a limit the derivative is that of the inside; the sign of zero is plus. Candidates that symmetry makes equal differ
by rounding, which is another in each compilation of a program. So a later candidate wins only if it is better by more
than a tolerance, and a sign is minus only beyond one.

Selections compare indices instead of gathering. `index_of_largest` and `chosen_columns` are reductions on purpose:
XLA's CPU backend computes their operands once, while it would fuse chains of comparisons into each of their uses and
recompute them there (26 instead of 2 µs for two boxes, measured). For two or three numbers `flags_of_largest` is
cheaper.
"""

from collections.abc import Sequence

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int


def direction_rounding(dtype: jnp.dtype) -> float:
    """Rounding error of components of unit vectors, and of other numbers without a unit that are about 1."""
    return 64.0 * float(jnp.finfo(dtype).eps)


def sign_of(x: Float[Array, "*n"], tolerance: Float[Array, "*n"] | float = 0.0) -> Float[Array, "*n"]:
    """Sign of x, 1 or -1, without derivative; what is no more than `tolerance` below zero counts as positive."""
    return jnp.where(x < -tolerance, jnp.ones_like(x) * -1.0, jnp.ones_like(x))


def clamp(x: Float[Array, "*n"], limit: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """x clamped to ±limit."""
    return jnp.where(x > limit, limit, jnp.where(x < -limit, -limit, x))


def positive_part(x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """x where it is positive, and zero elsewhere."""
    return jnp.where(x > 0.0, x, 0.0)


def rounding(*lengths: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Rounding error of lengths of this size; smaller differences are not significant."""
    return 16.0 * float(jnp.finfo(lengths[0].dtype).eps) * sum(lengths[1:], lengths[0])


def flags_of_largest(
    numbers: Sequence[Float[Array, "*n"]], tolerance: Float[Array, "*n"] | float
) -> list[Bool[Array, "*n"]]:
    """Flags that mark the largest of the numbers, the first of those that are equal within the tolerance."""
    flags, taken = [], jnp.zeros(jnp.broadcast_shapes(*(x.shape for x in numbers)), bool)
    for i, x in enumerate(numbers):
        largest = ~taken
        raised = x + tolerance
        for other in numbers[i + 1 :]:
            largest = largest & (raised >= other)
        flags.append(largest)
        taken = taken | largest
    return flags


def index_of_largest(
    scores: Float[Array, "m *n"], tolerance: Float[Array, "*n"] | float, relative: float = 0.0
) -> tuple[Int[Array, "*n"], Float[Array, "*n"]]:
    """Index of the first score within a tolerance of the largest, and the value of the largest.

    The tolerance is `tolerance` and `relative` times the largest. Where a score is NaN the value is, too.
    """
    largest = jnp.max(scores, axis=0)
    limit = largest - tolerance
    limit = limit - relative * jnp.abs(largest) if relative else limit
    place = lax.broadcasted_iota(jnp.int32, scores.shape, 0)
    last = jnp.int32(scores.shape[0] - 1)
    return jnp.min(jnp.where(scores >= limit, place, last), axis=0), largest


def index_of_farthest(scores: Float[Array, "m *n"], tolerance: float = 0.0, relative: float = 0.0) -> Int[Array, "*n"]:
    """Index of the largest of many scores, in one vectorized kernel that is computed once.

    A later score wins over an earlier one if it exceeds that by more than `tolerance` and `relative` times itself.
    It compares pairs of neighbours, then pairs of winners. A division by 1, which XLA cannot simplify away, keeps it
    from recomputing the index in every kernel that reads it.
    """
    index = jnp.arange(scores.shape[0], dtype=scores.dtype).reshape(-1, *(1,) * (scores.ndim - 1))
    best, odd = (scores, jnp.broadcast_to(index, scores.shape)), []
    while best[0].shape[0] > 1:
        if best[0].shape[0] % 2:
            odd.append([x[-1:] for x in best])
        end = best[0].shape[0] // 2 * 2
        best = larger([x[0:end:2] for x in best], [x[1:end:2] for x in best], tolerance, relative)
    while odd:
        best = larger(best, odd.pop(), tolerance, relative)
    one = jnp.where(jnp.isnan(best[0]), 2.0, 1.0)
    return (best[1] / one)[0].astype(jnp.int32)


def larger(a: Sequence[Array], b: Sequence[Array], tolerance: float, relative: float) -> tuple[Array, Array]:
    """Score and index of the larger of a and b; a's where both are equal within the tolerance."""
    least = b[0] - tolerance if tolerance else b[0]
    is_a = a[0] >= (least - relative * jnp.abs(b[0]) if relative else least)
    return jnp.where(is_a, a[0], b[0]), jnp.where(is_a, a[1], b[1])


def gathered(index: Int[Array, "*n"], candidates: Float[Array, "3 m *n"]) -> Float[Array, "3 *n"]:
    """The candidate at the index, by a gather; for use without derivatives."""
    return jnp.take_along_axis(candidates, index[None, None], 1, mode="promise_in_bounds")[:, 0]


def chosen_columns(index: Int[Array, "*n"], candidates: Float[Array, "m *kn"], axis: int = 0) -> Float[Array, "*kn"]:
    """The candidate at the index along `axis`; axes between it and those of `index` are kept."""
    place = lax.broadcasted_iota(jnp.int32, candidates.shape, axis)
    return jnp.sum(jnp.where(place == index, candidates, 0), axis=axis, dtype=candidates.dtype)


def rolled_to_last(index: Int[Array, "*n"], x: Float[Array, "3 *kn"], axis: int = 0) -> Float[Array, "3 *kn"]:
    """Components in cyclic order, so that the one at the index comes last."""
    return chosen_columns(index, jnp.stack([jnp.roll(x, -k - 1, axis) for k in range(3)]))


def rolled_back(index: Int[Array, "*n"], x: Float[Array, "3 *kn"]) -> Float[Array, "3 *kn"]:
    """The inverse of `rolled_to_last`."""
    return chosen_columns(index, jnp.stack([jnp.roll(x, k + 1, 0) for k in range(3)]))


def dot_columns(a: Float[Array, "3 *n"], b: Float[Array, "3 *n"]) -> Float[Array, "*n"]:
    """Scalar product over the components as a reduction, which XLA computes once for all its uses.

    XLA recomputes long chains of written-out products in each use (1400 instead of 120 µs a search of two hulls,
    measured).
    """
    return jnp.sum(a * b, axis=0)
