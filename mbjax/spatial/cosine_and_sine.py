"""Cosine and sine together, in operations that compile to vector instructions wherever they run.

Where XLA's CPU backend fuses its own cosine and sine with other operations, it calls the C library for each number:
16 ns a pair in double precision, for many worlds, where these take 2.4.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

# pi / 2 in parts whose products with whole numbers are exact, of up to a million quarter turns (f32: thousands).
QUARTER_TURN = {
    8: (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21),
    4: (1.5703125, 4.83751296997070312500e-04, 7.54978995489188216e-08),
}
# Minimax polynomials of (sin r - r) / r^3 and (cos r - 1 + r^2 / 2) / r^4 in r^2, |r| <= pi / 4, highest power first.
SINE = {
    8: (
        1.58969099521155010221e-10,
        -2.50507602534068634195e-08,
        2.75573137070700676789e-06,
        -1.98412698298579493134e-04,
        8.33333333332248946124e-03,
        -1.66666666666666324348e-01,
    ),
    4: (-1.9515295891e-04, 8.3321608736e-03, -1.6666654611e-01),
}
COSINE = {
    8: (
        -1.13596475577881948265e-11,
        2.08757232129817482790e-09,
        -2.75573143513906633035e-07,
        2.48015872894767294178e-05,
        -1.38888888888741095749e-03,
        4.16666666666666019037e-02,
    ),
    4: (2.443315711809948e-05, -1.388731625493765e-03, 4.166664568298827e-02),
}


@jax.custom_jvp
def cosine_and_sine(angle: Float[Array, "*n"]) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    """Cosine and sine to 1 ulp of 1 up to a million quarter turns (f32: thousands), beyond to an ulp of the angle."""
    r, quarter = nearest_quarter(angle)
    return turned(*of_quarter(r), quarter)


def nearest_quarter(angle: Float[Array, "*n"]) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    """Remainder of the angle from the nearest quarter turn, and which of the four quarters that is."""
    turns = jnp.round(angle * (2.0 / np.pi))
    r = angle
    for part in QUARTER_TURN[angle.dtype.itemsize]:
        r = r - turns * part
    return jnp.clip(r, -0.8, 0.8), turns - 4.0 * jnp.floor(0.25 * turns)  # clipped for angles beyond all precision


def of_quarter(r: Float[Array, "*n"]) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    """Cosine and sine of an angle r of at most half a quarter turn, pi / 4, either way."""
    size, z = r.dtype.itemsize, r * r
    return (1.0 - 0.5 * z) + z * z * polynomial(COSINE[size], z), r + r * z * polynomial(SINE[size], z)


def turned(cosine: Array, sine: Array, quarter: Array) -> tuple[Array, Array]:
    """Cosine and sine of an angle turned on by 0, 1, 2 or 3 quarters."""
    is_odd, is_left = (quarter == 1.0) | (quarter == 3.0), (quarter == 1.0) | (quarter == 2.0)
    cosine, sine = jnp.where(is_odd, sine, cosine), jnp.where(is_odd, cosine, sine)
    return jnp.where(is_left, -cosine, cosine), jnp.where(quarter >= 2.0, -sine, sine)


@cosine_and_sine.defjvp
def _cosine_and_sine_jvp(primals: tuple, tangents: tuple) -> tuple:
    cosine, sine = cosine_and_sine(*primals)
    (change,) = tangents
    return (cosine, sine), (-sine * change, cosine * change)


def polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    """Polynomial by Horner's rule, coefficients from the highest power down."""
    value = jnp.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        value = value * x + c
    return value
