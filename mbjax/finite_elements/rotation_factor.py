"""Singular values of 3 × 3 matrices, and the rotation of their polar factors with a derivative that stays finite.

F = R S, with a rotation R and a symmetric S; where det F < 0, the smallest singular value counts as negative, so that R
does not reflect, as in Drake. Matrices are (*m, 3, 3) for m elements.
"""

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from mbjax.spatial import safe_sqrt

MOST_SWEEPS = 7  # of Jacobi's method, which converges quadratically: one more than the worst matrices need in f64
ORTHOGONAL = 8.0  # in units of eps: the cosine of two columns that need no rotation


class SingularFactors(NamedTuple):
    """F = U diag(sigma) Vᵀ with rotations U and V; sigma falls, and its last entry has the sign of det F."""

    U: Float[Array, "*m 3 3"]
    sigma: Float[Array, "*m 3"]
    V: Float[Array, "*m 3 3"]


def singular_factors(F: Float[Array, "*m 3 3"]) -> SingularFactors:
    """Singular values and vectors of F; not differentiated."""
    F = lax.stop_gradient(F)
    m = F.shape[:-2]
    images, axes = orthogonal_columns(F.reshape(-1, 3, 3))
    for i, j in ((0, 1), (0, 2), (1, 2)):  # the longest image first; the sign keeps the axes a rotation
        swaps = jnp.sum(images[j] ** 2, axis=0) > jnp.sum(images[i] ** 2, axis=0)
        for columns in (images, axes):
            first, second = jnp.where(swaps, columns[j], columns[i]), jnp.where(swaps, -columns[i], columns[j])
            columns[i], columns[j] = first, second
    u0 = unit_or(images[0], jnp.array([1.0, 0.0, 0.0], F.dtype)[:, None])
    u1 = unit_or(images[1] - jnp.sum(u0 * images[1], axis=0) * u0, any_perpendicular(u0))
    U = jnp.stack([u0, u1, jnp.cross(u0, u1, axis=0)], axis=1)
    sigma = jnp.sum(U * jnp.stack(images, axis=1), axis=0)
    V = jnp.stack(axes, axis=1)
    U, V, sigma = U.transpose(2, 0, 1), V.transpose(2, 0, 1), sigma.T
    return SingularFactors(U.reshape(*m, 3, 3), sigma.reshape(*m, 3), V.reshape(*m, 3, 3))


def orthogonal_columns(F: Float[Array, "m 3 3"]) -> tuple[list[Float[Array, "3 m"]], list[Float[Array, "3 m"]]]:
    """Columns of F V, which are orthogonal to each other, and those of the rotation V.

    One-sided Jacobi rotations of two columns at a time, sweep after sweep, until all pairs are orthogonal (Golub and
    Van Loan, Matrix Computations, section 8.6). Components come first, and elements last.
    """
    both = jnp.concatenate([F, jnp.broadcast_to(jnp.eye(3, dtype=F.dtype), F.shape)], axis=1).transpose(2, 1, 0)
    most = (ORTHOGONAL * float(jnp.finfo(F.dtype).eps)) ** 2

    def is_left(carry: tuple) -> Bool[Array, ""]:
        count, columns = carry
        rough = [
            product_of_images(p, q) ** 2 > most * product_of_images(p, p) * product_of_images(q, q)
            for p, q in itertools.combinations(columns, 2)
        ]
        return jnp.any(rough[0] | rough[1] | rough[2]) & (count < MOST_SWEEPS)

    def sweep(carry: tuple) -> tuple:
        count, columns = carry
        columns = list(columns)
        for i, j in ((0, 1), (0, 2), (1, 2)):
            (p, q), (c, s) = (columns[i], columns[j]), jacobi_turn(columns[i], columns[j])
            columns[i], columns[j] = c * p - s * q, s * p + c * q
        return count + 1, tuple(columns)

    _, columns = lax.while_loop(is_left, sweep, (jnp.zeros((), jnp.int32), tuple(both)))
    return [x[:3] for x in columns], [x[3:] for x in columns]


def product_of_images(p: Float[Array, "_ m"], q: Float[Array, "_ m"]) -> Float[Array, " m"]:
    """Scalar products of images, the first three components."""
    return p[0] * q[0] + p[1] * q[1] + p[2] * q[2]


def jacobi_turn(p: Float[Array, "_ m"], q: Float[Array, "_ m"]) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
    """Cosine and sine of the rotation after which c p - s q and s p + c q are orthogonal in three components."""
    off = product_of_images(p, q)  # which kernels may compute twice and round in two ways: t is as small as either
    half = 0.5 * (product_of_images(q, q) - product_of_images(p, p))
    size = jnp.abs(half) + length_of_two(half, off)
    t = jnp.where(half >= 0.0, off, -off) / jnp.where(size == 0.0, 1.0, size)
    c = 1.0 / safe_sqrt(1.0 + t * t)
    return c, t * c


def length_of_two(a: Float[Array, " m"], b: Float[Array, " m"]) -> Float[Array, " m"]:
    """Length of the vector (a, b), also where squares would vanish."""
    larger, smaller = jnp.maximum(jnp.abs(a), jnp.abs(b)), jnp.minimum(jnp.abs(a), jnp.abs(b))
    share = smaller / jnp.where(larger == 0.0, 1.0, larger)
    return larger * safe_sqrt(1.0 + share * share)


def unit_or(v: Float[Array, "3 m"], other: Float[Array, "3 #m"]) -> Float[Array, "3 m"]:
    """The vector at unit length; `other` where it is zero."""
    size = safe_sqrt(jnp.sum(v * v, axis=0))
    is_zero = size <= 1e-30
    return jnp.where(is_zero, other, v / jnp.where(is_zero, 1.0, size))


def any_perpendicular(v: Float[Array, "3 m"]) -> Float[Array, "3 m"]:
    """A unit vector perpendicular to the unit vector v."""
    is_along_z = jnp.abs(v[2]) > 0.9
    zero = jnp.zeros_like(v[0])
    other = jnp.stack([jnp.where(is_along_z, 1.0, zero), zero, jnp.where(is_along_z, zero, 1.0)])
    w = jnp.cross(v, other, axis=0)
    return w / safe_sqrt(jnp.sum(w * w, axis=0))


def transposed(A: Float[Array, "*m i j"]) -> Float[Array, "*m j i"]:
    """Aᵀ."""
    return jnp.swapaxes(A, -1, -2)


@jax.custom_jvp
def rotation_factor(F: Float[Array, "*m 3 3"]) -> Float[Array, "*m 3 3"]:
    """The rotation R of F = R S."""
    factors = singular_factors(F)
    return factors.U @ transposed(factors.V)


@rotation_factor.defjvp
def _rotation_factor_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    (F,), (dF,) = primals, tangents
    R = rotation_factor(F)
    return R, rotation_change(F, R, dF)


def rotation_change(F: Array, R: Array, dF: Float[Array, "*m 3 3"]) -> Float[Array, "*m 3 3"]:
    """dR = R [w]×, with (tr S - S) w = axial(Rᵀ dF), the axial vector of twice the skew part.

    From d(R S): the skew part of Rᵀ dF is that of [w]× S. Nothing divides by a difference of singular values; where two
    of them have the sum zero, R jumps, and the derivative is zero.
    """
    A, S = transposed(R) @ dF, transposed(R) @ F
    S = 0.5 * (S + transposed(S))
    G = jnp.trace(S, axis1=-2, axis2=-1)[..., None, None] * jnp.eye(3, dtype=F.dtype) - S
    C = cofactors(G)
    determinant = jnp.sum(G[..., 0, :] * C[..., 0, :], axis=-1)[..., None]
    is_singular = determinant == 0.0
    axial = jnp.stack([A[..., 2, 1] - A[..., 1, 2], A[..., 0, 2] - A[..., 2, 0], A[..., 1, 0] - A[..., 0, 1]], axis=-1)
    w = jnp.where(
        is_singular, 0.0, jnp.sum(C * axial[..., None, :], axis=-1) / jnp.where(is_singular, 1.0, determinant)
    )
    return R @ cross_matrix(w)


def cofactors(F: Float[Array, "*m 3 3"]) -> Float[Array, "*m 3 3"]:
    """The matrix of cofactors, det(F) F⁻ᵀ, which is the derivative of det F by F."""
    a, b, c = F[..., 0, :], F[..., 1, :], F[..., 2, :]
    return jnp.stack([jnp.cross(b, c), jnp.cross(c, a), jnp.cross(a, b)], axis=-2)


def cross_matrix(w: Float[Array, "*m 3"]) -> Float[Array, "*m 3 3"]:
    """[w]×, with [w]× x = w × x."""
    x, y, z = w[..., 0], w[..., 1], w[..., 2]
    zero = jnp.zeros_like(x)
    rows = [[zero, -z, y], [z, zero, -x], [-y, x, zero]]
    return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)
