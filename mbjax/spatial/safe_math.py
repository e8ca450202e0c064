"""The only home of guarded square roots, norms, divisions and trigonometric ratios.

Every guard is a double `where`: the argument is replaced before the singular operation and the
result after it, so that forward and reverse derivatives are finite, row by row, in a batch that
mixes singular and regular rows. NaN is never hidden: a NaN that goes in comes out. Functions keep
the dtype of their array arguments and work on any leading shape.

Even functions of an angle, such as sin(x)/x, are written as functions of s = x^2. Composed with
a squared norm they are smooth at zero and no square root is differentiated there.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

# Below this square the power series is used. At x = 1 neither form cancels, so that second
# derivatives keep full precision on both sides in float32 and float64 alike. x - sin(x) cancels
# up to larger x.
_SERIES_LIMIT = 1.0
_CUBIC_SERIES_LIMIT = 4.0
# atan(t)/t has a series of radius 1; t^2 = 1/16 keeps it short.
_ARCTAN_SERIES_LIMIT = 0.0625
_LONGEST_WRITTEN_OUT = 8  # components that are added up one by one


@jax.custom_jvp
def safe_sqrt(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Square root; 0 with zero derivative where `x <= 0` (rounding may push a square below 0).

    Guards read the root, and the derivative divides by it: XLA copies cheap operations to wherever their result is
    read, but neither roots nor divisions. If guards read x, all that leads to x would be computed anew by each reader,
    and in reverse mode all that leads to the cotangent.
    """
    return jnp.sqrt(jnp.where(x <= 0.0, 0.0, x))


@safe_sqrt.defjvp
def _safe_sqrt_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    (x,), (dx,) = primals, tangents
    root = safe_sqrt(x)
    is_zero = root == 0.0
    return root, jnp.where(is_zero, 0.0, 0.5 * dx / jnp.where(is_zero, 1.0, root))


def safe_norm(x: Float[Array, "..."], axis: int = -1, keepdims: bool = False) -> Float[Array, "..."]:
    """Euclidean norm along `axis`; its derivative at exactly zero is defined as zero."""
    squared = dot_along(x, x, axis)
    return safe_sqrt(jnp.expand_dims(squared, axis) if keepdims else squared)


def safe_normalize(x: Float[Array, "..."], axis: int = -1) -> Float[Array, "..."]:
    """Unit vector x / |x| along `axis`; a zero vector gives a zero vector with zero derivative."""
    squared = repeat_along(dot_along(x, x, axis), x.shape[axis], axis)
    is_zero = squared == 0.0
    return jnp.where(is_zero, 0.0, x / jnp.sqrt(jnp.where(is_zero, 1.0, squared)))


def safe_direction(
    x: Float[Array, "..."], fallback: Float[Array, "..."], axis: int = 0
) -> tuple[Float[Array, "..."], Bool[Array, "..."]]:
    """Unit vector x / |x| along `axis`, and where `fallback` replaces it: |x| is zero, or its square underflows."""
    limits = jnp.finfo(x.dtype)
    is_zero = dot_along(x, x, axis) <= float(limits.tiny) / float(limits.eps)
    none = jnp.expand_dims(is_zero, axis)
    return jnp.where(none, fallback, unit_vector(jnp.where(none, 1.0, x), axis)), is_zero


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def unit_vector(x: Float[Array, "..."], axis: int) -> Float[Array, "..."]:
    """Unit vector n = x / |x|; its derivative has no part along n that would have to cancel, however short x is."""
    return x / jnp.expand_dims(jnp.sqrt(dot_along(x, x, axis)), axis)


@unit_vector.defjvp
def _unit_vector_jvp(axis: int, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    """Computes |x| dn = dx - n n·dx: as n² = 1, component i is the sum over k != i of n_k (n_k dx_i - n_i dx_k)."""
    (x,), (dx,) = primals, tangents
    n, length = unit_vector(x, axis), jnp.expand_dims(jnp.sqrt(dot_along(x, x, axis)), axis)
    parts, moves = jnp.unstack(n, axis=axis), jnp.unstack(dx, axis=axis)
    every = range(len(parts))
    turned = [sum(parts[k] * (parts[k] * moves[i] - parts[i] * moves[k]) for k in every if k != i) for i in every]
    return n, jnp.stack(turned, axis=axis) / length


def dot_along(a: Float[Array, "..."], b: Float[Array, "..."], axis: int) -> Float[Array, "..."]:
    """Scalar product over an axis; few components are written out, as XLA's sums over a short axis are slow."""
    if a.shape[axis] > _LONGEST_WRITTEN_OUT or a.shape[axis] == 0:
        return jnp.sum(a * b, axis=axis)
    products = jnp.unstack(a * b, axis=axis)
    return sum(products[1:], products[0])


def repeat_along(x: Float[Array, "..."], size: int, axis: int) -> Float[Array, "..."]:
    """Repeats x along a new axis; reverse mode sums over it, with few components written out."""
    if size > _LONGEST_WRITTEN_OUT or size == 0:
        return jnp.repeat(jnp.expand_dims(x, axis), size, axis)
    return jnp.stack([x] * size, axis)


def safe_divide(
    numerator: Float[Array, "..."], denominator: Float[Array, "..."], at_zero: float = 0.0
) -> Float[Array, "..."]:
    """Quotient; `at_zero` with zero derivative where the denominator is exactly zero."""
    is_zero = denominator == 0.0
    return jnp.where(is_zero, at_zero, numerator / jnp.where(is_zero, 1.0, denominator))


def safe_arctan2(y: Float[Array, "..."], x: Float[Array, "..."], radius: float = 0.0) -> Float[Array, "..."]:
    """arctan2(y, x); 0 with zero derivative within `radius` of the origin, its singular point."""
    is_singular = (jnp.abs(x) <= radius) & (jnp.abs(y) <= radius)
    y_regular = jnp.where(is_singular, 0.0, y)
    x_regular = jnp.where(is_singular, 1.0, x)
    return jnp.arctan2(y_regular, x_regular)


def normalize_quaternion(q: Float[Array, "*batch 4"]) -> Float[Array, "*batch 4"]:
    """Unit quaternion q / |q|; the zero quaternion gives the identity (1, 0, 0, 0) with zero derivative."""
    squared = repeat_along(dot_along(q, q, -1), 4, -1)
    is_zero = squared == 0.0
    identity = (jnp.arange(4) == 0).astype(q.dtype)
    return jnp.where(is_zero, identity, q / jnp.sqrt(jnp.where(is_zero, 1.0, squared)))


def sin_over_x(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """sin(x) / x, smooth through 1 at x = 0."""
    return sin_over_x_of_square(x * x)


def one_minus_cos_over_x2(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """(1 - cos x) / x^2, smooth through 1/2 at x = 0."""
    return one_minus_cos_over_x2_of_square(x * x)


def x_minus_sin_over_x3(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """(x - sin x) / x^3, smooth through 1/6 at x = 0."""
    return x_minus_sin_over_x3_of_square(x * x)


def cos_and_sinc_of_square(
    s: Float[Array, "..."],
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """cos(x) and sin(x)/x with x = sqrt(s), both analytic in s at s = 0."""
    is_small, s_series, x = _split_square(s)
    cosine = jnp.where(is_small, _alternating_series(s_series, offset=0), jnp.cos(x))
    sinc = jnp.where(is_small, _alternating_series(s_series, offset=1), jnp.sin(x) / x)
    return cosine, sinc


def sin_over_x_of_square(s: Float[Array, "..."]) -> Float[Array, "..."]:
    """sin(x)/x with x = sqrt(s), analytic in s at s = 0."""
    is_small, s_series, x = _split_square(s)
    return jnp.where(is_small, _alternating_series(s_series, offset=1), jnp.sin(x) / x)


def one_minus_cos_over_x2_of_square(s: Float[Array, "..."]) -> Float[Array, "..."]:
    """(1 - cos x)/x^2 with x = sqrt(s), by the half angle, which does not cancel."""
    half_angle_sinc = sin_over_x_of_square(0.25 * s)
    return 0.5 * half_angle_sinc * half_angle_sinc


def x_minus_sin_over_x3_of_square(s: Float[Array, "..."]) -> Float[Array, "..."]:
    """(x - sin x)/x^3 with x = sqrt(s), analytic in s at s = 0."""
    is_small, s_series, x = _split_square(s, _CUBIC_SERIES_LIMIT)
    direct = (x - jnp.sin(x)) / (x * x * x)
    return jnp.where(is_small, _alternating_series(s_series, offset=3, extra_terms=2), direct)


def angle_over_sine_of_square(sine_squared: Float[Array, "..."], cosine: Float[Array, "..."]) -> Float[Array, "..."]:
    """Ratio a / (r sin a), where `sine_squared` = (r sin a)^2, `cosine` = r cos a >= 0, for any r > 0.

    It is the inverse companion of `sin_over_x_of_square`: analytic at a = 0, and finite up to
    a = pi/2 where `cosine` is 0. Where both arguments are 0 it returns 0 with zero derivative.
    """
    is_small = sine_squared < _ARCTAN_SERIES_LIMIT * cosine * cosine
    c = jnp.where(is_small, cosine, 1.0)
    tangent_squared = jnp.where(is_small, sine_squared, 0.0) / (c * c)
    series = _arctan_series(tangent_squared) / c

    is_zero = sine_squared == 0.0
    use_direct = ~(is_small | is_zero)
    sine = jnp.sqrt(jnp.where(use_direct, sine_squared, 1.0))
    direct = jnp.where(is_zero, 0.0, jnp.arctan2(sine, jnp.where(use_direct, cosine, 1.0)) / sine)
    return jnp.where(is_small, series, direct)


def _split_square(
    s: Float[Array, "..."], limit: float = _SERIES_LIMIT
) -> tuple[Array, Float[Array, "..."], Float[Array, "..."]]:
    """Mask of the series branch, the argument for it, and x = sqrt(s) for the other branch."""
    is_small = s < limit
    return is_small, jnp.where(is_small, s, 0.0), jnp.sqrt(jnp.where(is_small, 1.0, s))


def _alternating_series(s: Float[Array, "..."], offset: int, extra_terms: int = 0) -> Float[Array, "..."]:
    """Series sum_k (-s)^k / (2k + offset)!, to rounding up to second derivatives for 0 <= s <= 1."""
    num_terms = extra_terms + (10 if jnp.finfo(s.dtype).bits > 32 else 6)
    return _horner(s, [(-1) ** k / math.factorial(2 * k + offset) for k in range(num_terms)])


def _arctan_series(t_squared: Float[Array, "..."]) -> Float[Array, "..."]:
    """Series atan(t)/t = sum_k (-t^2)^k / (2k + 1) for t^2 <= 1/16."""
    num_terms = 17 if jnp.finfo(t_squared.dtype).bits > 32 else 9
    return _horner(t_squared, [(-1) ** k / (2 * k + 1) for k in range(num_terms)])


def _horner(x: Float[Array, "..."], coefficients: list[float]) -> Float[Array, "..."]:
    """Polynomial sum_k coefficients[k] x^k by Horner's rule."""
    total = jnp.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total
