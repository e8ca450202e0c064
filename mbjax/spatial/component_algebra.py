"""3-D and 6-D algebra on arrays with components first: a vector is (3, ...), a matrix (3, 3, ...).

Everything after the components is carried along: bodies, and a batch. Small products are written out over
the components, so XLA fuses them with what surrounds them.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float


def cross(a: Float[Array, "3 *n"], b: Float[Array, "3 *n"]) -> Float[Array, "3 *n"]:
    """a x b."""
    return jnp.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def dot(a: Float[Array, "k *n"], b: Float[Array, "k *n"]) -> Float[Array, "*n"]:
    """Scalar product over the components."""
    return sum_products(a, b)


def sum_products(a: Any, b: Any) -> Any:
    """a[0] b[0] + a[1] b[1] + …, written out."""
    total = a[0] * b[0]
    for k in range(1, len(a)):
        total = total + a[k] * b[k]
    return total


def matvec(R: Float[Array, "i k *n"], x: Float[Array, "k *n"]) -> Float[Array, "i *n"]:
    """R x."""
    return R[:, 0] * x[0] + R[:, 1] * x[1] + R[:, 2] * x[2]


def transposed_matvec(R: Float[Array, "k i *n"], x: Float[Array, "k *n"]) -> Float[Array, "i *n"]:
    """Rᵀ x."""
    return R[0] * x[0] + R[1] * x[1] + R[2] * x[2]


def matmul(A: Float[Array, "i 3 *n"], B: Float[Array, "3 j *n"]) -> Float[Array, "i j *n"]:
    """A B."""
    return A[:, 0, None] * B[None, 0] + A[:, 1, None] * B[None, 1] + A[:, 2, None] * B[None, 2]


def vee_of_antisymmetric_part(A: Float[Array, "3 3 *n"]) -> Float[Array, "3 *n"]:
    """x with [x]x = (A - Aᵀ) / 2."""
    return 0.5 * jnp.stack([A[2, 1] - A[1, 2], A[0, 2] - A[2, 0], A[1, 0] - A[0, 1]])


# Symmetric 3x3 matrices as six components: xx, yy, zz, xy, xz, yz.

SYMMETRIC_INDEX = ((0, 3, 4), (3, 1, 5), (4, 5, 2))
SYMMETRIC_PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


def symmetric_matvec(I: Float[Array, "6 *n"], x: Float[Array, "3 *n"]) -> Float[Array, "3 *n"]:  # noqa: E741
    """I x for a symmetric matrix."""
    return jnp.stack([sum_products([I[k] for k in row], x) for row in SYMMETRIC_INDEX])


def symmetric_re_express(R_AE: Float[Array, "3 3 *n"], I_E: Float[Array, "6 *n"]) -> Float[Array, "6 *n"]:
    """R I Rᵀ for a symmetric matrix."""
    RI = [[sum_products(R_AE[i], [I_E[k] for k in row]) for row in SYMMETRIC_INDEX] for i in range(3)]
    return jnp.stack([sum_products(RI[i], R_AE[j]) for i, j in SYMMETRIC_PAIRS])


def point_mass_inertia(p: Float[Array, "3 *n"]) -> Float[Array, "6 *n"]:
    """Unit inertia p² 1 - p pᵀ of a particle at p, about the origin."""
    xx, yy, zz = p[0] * p[0], p[1] * p[1], p[2] * p[2]
    return jnp.stack([yy + zz, xx + zz, xx + yy, -p[0] * p[1], -p[0] * p[2], -p[1] * p[2]])


def symmetric_product_inertia(a: Float[Array, "3 *n"], b: Float[Array, "3 *n"]) -> Float[Array, "6 *n"]:
    """(a·b) 1 - (a bᵀ + b aᵀ) / 2, which is `point_mass_inertia` where a = b."""
    xx, yy, zz = a[0] * b[0], a[1] * b[1], a[2] * b[2]
    xy = -0.5 * (a[0] * b[1] + a[1] * b[0])
    xz = -0.5 * (a[0] * b[2] + a[2] * b[0])
    yz = -0.5 * (a[1] * b[2] + a[2] * b[1])
    return jnp.stack([yy + zz, xx + zz, xx + yy, xy, xz, yz])
