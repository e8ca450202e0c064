"""dP/dF of a material without its negative eigenvalues, which keeps the matrices of a step positive definite.

In the axes of the singular vectors of F, the stiffness of an isotropic law couples little: three twists, three flips
and a 3 × 3 matrix of stretches, whose eigenvalues are cut off at zero (Smith, de Goes and Kim 2019), or turned to
their absolute values, which keeps Newton's steps short where much is cut off (Chen et al. 2024, arXiv 2406.05928).
Laws of small strain are convex as they are. Singular vectors are never differentiated. Stiffnesses are (*m, 9, 9);
their rows and columns go through matrices row by row.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from .material_laws import (
    AbstractIsotropicLaw,
    AbstractMaterialLaw,
    ElementMatrix,
    LameConstants,
    stiffness_of,
)
from .rotation_factor import singular_factors, transposed

COUNTS_AS_ZERO = 64.0  # in units of eps: eigenvalues this near to zero, in units of the largest, count as zero
PLANES = ((1, 2), (0, 2), (0, 1))  # without the axis 0, 1, 2


def _units_of_planes() -> Float[np.ndarray, "9 6"]:
    """Antisymmetric, then symmetric unit matrices in the planes, as columns."""
    units = np.zeros((3, 3, 6))
    for k, (i, j) in enumerate(PLANES):
        units[i, j, k], units[j, i, k] = -np.sqrt(0.5), np.sqrt(0.5)
        units[i, j, 3 + k] = units[j, i, 3 + k] = np.sqrt(0.5)
    return units.reshape(9, 6)


PLANE_UNITS = _units_of_planes()
STRETCHES = [0, 4, 8]  # the diagonal entries of F


class EigenFactors(NamedTuple):
    """Eigenvalues of dP/dF, in Pa, and its eigenvectors as columns."""

    values: Float[Array, "*m 9"]
    vectors: Float[Array, "*m 9 9"]


def eigen_factors(law: AbstractIsotropicLaw, F: ElementMatrix, lame: LameConstants) -> EigenFactors:
    """Three twists, three flips and three stretches of a law; not differentiated."""
    F, lame = lax.stop_gradient((F, lame))
    U, sigma, V = singular_factors(F)
    stiffness = law.principal_stiffness(sigma, lame)
    of_stretches, axes = eigenvectors_of_symmetric(stiffness.stretch)
    turned = (U[..., :, None, :, None] * V[..., None, :, None, :]).reshape(*F.shape[:-2], 9, 9)
    vectors = [turned @ jnp.asarray(PLANE_UNITS, F.dtype), turned[..., STRETCHES] @ axes]
    values = [stiffness.twist, stiffness.flip, of_stretches]
    return EigenFactors(jnp.concatenate(values, axis=-1), jnp.concatenate(vectors, axis=-1))


def eigenvectors_of_symmetric(A: ElementMatrix) -> tuple[Float[Array, "*m 3"], ElementMatrix]:
    """Eigenvalues and eigenvectors, as columns, of symmetric matrices, from singular vectors of A moved up.

    A multiple of the identity makes all eigenvalues positive, so that they are singular values.
    """
    shift = jnp.max(jnp.sum(jnp.abs(A), axis=-1), axis=-1)[..., None, None]
    axes = singular_factors(A + shift * jnp.eye(3, dtype=A.dtype)).V
    return jnp.sum(axes * (A @ axes), axis=-2), axes


def with_eigenvalues(values: Float[Array, "*m 9"], vectors: Float[Array, "*m 9 9"]) -> Float[Array, "*m 9 9"]:
    """The matrix with these eigenvalues and eigenvectors."""
    return (vectors * values[..., None, :]) @ transposed(vectors)


def without_negative(values: Float[Array, "*m k"]) -> Float[Array, "*m k"]:
    """Eigenvalues, zero in the place of negative ones."""
    return jnp.maximum(values, 0.0)


def convex_stiffness(
    law: AbstractMaterialLaw, F: ElementMatrix, R: ElementMatrix, lame: LameConstants
) -> Float[Array, "*m 9 9"]:
    """dP/dF without negative eigenvalues.

    Its derivative is exact as long as no eigenvalue changes its sign; a second derivative takes the eigenvectors of
    dropped eigenvalues as constant.
    """
    if isinstance(law, AbstractIsotropicLaw):
        return _convex_stiffness(law, F, lame)
    return stiffness_of(law, F, R, lame)


def stiffness_in_search(
    law: AbstractMaterialLaw,
    F: ElementMatrix,
    R: ElementMatrix,
    lame: LameConstants,
    turns: Bool[Array, "*m"],
    dF: ElementMatrix,
) -> tuple[Float[Array, "*m 9 9"], ElementMatrix]:
    """The convex stiffness, or where `turns` the one with absolute eigenvalues; and the convex one times dF.

    Not differentiated.
    """
    change = dF.reshape(*dF.shape[:-2], 9, 1)
    if not isinstance(law, AbstractIsotropicLaw):
        C = stiffness_of(law, F, R, lame)
        return C, (C @ change).reshape(dF.shape)
    values, vectors = eigen_factors(law, F, lame)
    share = jnp.where(turns, -1.0, 0.0)[..., None].astype(F.dtype)
    parts = without_negative(values) * jnp.sum(vectors * change, axis=-2)
    along = jnp.sum(vectors * parts[..., None, :], axis=-1).reshape(dF.shape)
    return with_eigenvalues(jnp.maximum(values, share * values), vectors), along


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _convex_stiffness(law: AbstractIsotropicLaw, F: ElementMatrix, lame: LameConstants) -> Float[Array, "*m 9 9"]:
    values, vectors = eigen_factors(law, F, lame)
    return with_eigenvalues(without_negative(values), vectors)


@_convex_stiffness.defjvp
def _convex_stiffness_jvp(law: AbstractIsotropicLaw, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    """dC₊ = Q (Γ ∘ Qᵀ dC Q) Qᵀ, where Γ_ab = (max(λ_a, 0) - max(λ_b, 0)) / (λ_a - λ_b) (Daleckii and Krein 1965)."""
    F, lame = primals
    _, dC = jax.jvp(lambda F, lame: stiffness_of(law, F, F, lame), primals, tangents)
    values, Q = eigen_factors(law, F, lame)
    return _convex_stiffness(law, F, lame), Q @ (kept_shares(values) * (transposed(Q) @ dC @ Q)) @ transposed(Q)


def kept_shares(values: Float[Array, "*m 9"]) -> Float[Array, "*m 9 9"]:
    """Γ: 1 for two eigenvalues that stay, 0 for two that go, and the share of the one that stays for one of each."""
    tolerance = COUNTS_AS_ZERO * jnp.finfo(values.dtype).eps * jnp.max(jnp.abs(values), axis=-1, keepdims=True)
    stays = values >= -tolerance
    size = jnp.maximum(jnp.abs(values), jnp.finfo(values.dtype).tiny)
    a, b = size[..., :, None], size[..., None, :]
    one, two = stays[..., :, None], stays[..., None, :]
    return jnp.where(one & two, 1.0, jnp.where(one | two, jnp.where(one, a, b) / (a + b), 0.0))
