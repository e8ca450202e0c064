"""3-D and 6-D algebra on arrays with components first: a vector is (3, ...), a matrix (3, 3, ...).

Everything after the components is carried along: bodies, and a batch. Small products are written out over
the components, so XLA fuses them with what surrounds them. Arrays are taken apart by `unstack` and put together
by `stack`, which are each other's transpose: reverse mode then needs no padding.
"""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float


def cross(a: Float[Array, "3 *n"], b: Float[Array, "3 *n"]) -> Float[Array, "3 *n"]:
    """a x b."""
    (ax, ay, az), (bx, by, bz) = jnp.unstack(a), jnp.unstack(b)
    return jnp.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx])


def dot(a: Float[Array, "k *n"], b: Float[Array, "k *n"]) -> Float[Array, "*n"]:
    """Scalar product over the components."""
    return sum_products(jnp.unstack(a), jnp.unstack(b))


def sum_products(a: Sequence[Array], b: Sequence[Array]) -> Array:
    """a[0] b[0] + a[1] b[1] + …, written out, of components already apart."""
    total = a[0] * b[0]
    for k in range(1, len(a)):
        total = total + a[k] * b[k]
    return total


def matvec(R: Float[Array, "i 3 *n"], x: Float[Array, "3 *n"]) -> Float[Array, "i *n"]:
    """R x."""
    return sum_products(jnp.unstack(R, axis=1), jnp.unstack(x))


def transposed_matvec(R: Float[Array, "3 i *n"], x: Float[Array, "3 *n"]) -> Float[Array, "i *n"]:
    """Rᵀ x."""
    return sum_products(jnp.unstack(R), jnp.unstack(x))


def matmul(A: Float[Array, "i 3 *n"], B: Float[Array, "3 j *n"]) -> Float[Array, "i j *n"]:
    """A B."""
    columns = [column[:, None] for column in jnp.unstack(A, axis=1)]
    return sum_products(columns, [row[None] for row in jnp.unstack(B)])


def vee_of_antisymmetric_part(A: Float[Array, "3 3 *n"]) -> Float[Array, "3 *n"]:
    """x with [x]x = (A - Aᵀ) / 2."""
    (_, xy, xz), (yx, _, yz), (zx, zy, _) = (jnp.unstack(row) for row in jnp.unstack(A))
    return 0.5 * jnp.stack([zy - yz, xz - zx, yx - xy])


# Symmetric 3x3 matrices as six components: xx, yy, zz, xy, xz, yz.

SYMMETRIC_INDEX = ((0, 3, 4), (3, 1, 5), (4, 5, 2))
SYMMETRIC_PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


def symmetric_matvec(S: Float[Array, "6 *n"], x: Float[Array, "3 *n"]) -> Float[Array, "3 *n"]:
    """S x for a symmetric matrix."""
    entries, components = jnp.unstack(S), jnp.unstack(x)
    return jnp.stack([sum_products([entries[k] for k in row], components) for row in SYMMETRIC_INDEX])


def symmetric_re_express(R_AE: Float[Array, "3 3 *n"], S_E: Float[Array, "6 *n"]) -> Float[Array, "6 *n"]:
    """R S Rᵀ for a symmetric matrix."""
    R, entries = [jnp.unstack(row) for row in jnp.unstack(R_AE)], jnp.unstack(S_E)
    RS = [[sum_products(R[i], [entries[k] for k in row]) for row in SYMMETRIC_INDEX] for i in range(3)]
    return jnp.stack([sum_products(RS[i], R[j]) for i, j in SYMMETRIC_PAIRS])


def point_mass_inertia(p: Float[Array, "3 *n"]) -> Float[Array, "6 *n"]:
    """Unit inertia p² 1 - p pᵀ of a particle at p, about the origin."""
    x, y, z = jnp.unstack(p)
    xx, yy, zz = x * x, y * y, z * z
    return jnp.stack([yy + zz, xx + zz, xx + yy, -x * y, -x * z, -y * z])


def symmetric_product_inertia(a: Float[Array, "3 *n"], b: Float[Array, "3 *n"]) -> Float[Array, "6 *n"]:
    """(a·b) 1 - (a bᵀ + b aᵀ) / 2, which is `point_mass_inertia` where a = b."""
    (ax, ay, az), (bx, by, bz) = jnp.unstack(a), jnp.unstack(b)
    xx, yy, zz = ax * bx, ay * by, az * bz
    xy, xz, yz = -0.5 * (ax * by + ay * bx), -0.5 * (ax * bz + az * bx), -0.5 * (ay * bz + az * by)
    return jnp.stack([yy + zz, xx + zz, xx + yy, xy, xz, yz])
