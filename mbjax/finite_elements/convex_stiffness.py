"""dP/dF of a material without its negative eigenvalues, which keeps the matrices of a step positive definite.

In the axes of the singular vectors of F, the stiffness of an isotropic law couples little: three twists, three flips
and a 3 × 3 matrix of stretches, whose eigenvalues are cut off at zero (Smith, de Goes and Kim 2019), or turned to
their absolute values, which keeps Newton's steps short where much is cut off (Chen et al. 2024, arXiv 2406.05928).
Laws of small strain are convex as they are. Singular vectors are never differentiated. Stiffnesses are (*m, 9, 9);
their rows and columns go through matrices row by row.
"""

import functools
from collections.abc import Callable
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
    PrincipalStiffness,
    stiffness_of,
)
from .rotation_factor import singular_factors, transposed

COUNTS_AS_ZERO = 64.0  # in units of eps: eigenvalues this near to zero, in units of the largest, count as zero
PLANES = ((1, 2), (0, 2), (0, 1))  # without the axis 0, 1, 2


def _units_of_planes() -> Float[np.ndarray, "6 9"]:
    """Antisymmetric, then symmetric unit matrices in the planes."""
    units = np.zeros((6, 3, 3))
    for k, (i, j) in enumerate(PLANES):
        units[k, i, j], units[k, j, i] = -np.sqrt(0.5), np.sqrt(0.5)
        units[3 + k, i, j] = units[3 + k, j, i] = np.sqrt(0.5)
    return units.reshape(6, 9)


PLANE_UNITS = _units_of_planes()
OF_PLANES = np.einsum("ki,kj->kij", PLANE_UNITS, PLANE_UNITS).reshape(6, 81)  # from eigenvalues of twists and flips
STRETCHES = np.eye(9)[[0, 4, 8]]  # the diagonal entries of F
OF_STRETCHES = np.einsum("ai,bj->abij", STRETCHES, STRETCHES).reshape(9, 81)


class PrincipalAxes(NamedTuple):
    """The singular vectors of F, the stiffness in their axes, and eigenvalues and vectors of its part of stretches."""

    U: ElementMatrix
    V: ElementMatrix
    stiffness: PrincipalStiffness
    values: Float[Array, "*m 3"]
    vectors: ElementMatrix


def principal_axes(law: AbstractIsotropicLaw, F: ElementMatrix, lame: LameConstants) -> PrincipalAxes:
    """The stiffness of a law in the axes of the singular vectors; not differentiated."""
    F, lame = lax.stop_gradient((F, lame))
    U, sigma, V = singular_factors(F)
    stiffness = law.principal_stiffness(sigma, lame)
    return PrincipalAxes(U, V, stiffness, *eigenvectors_of_symmetric(stiffness.stretch))


def eigenvectors_of_symmetric(A: ElementMatrix) -> tuple[Float[Array, "*m 3"], ElementMatrix]:
    """Eigenvalues and eigenvectors, as columns, of symmetric matrices, from singular vectors of A moved up.

    A multiple of the identity makes all eigenvalues positive, so that they are singular values.
    """
    shift = jnp.max(jnp.sum(jnp.abs(A), axis=-1), axis=-1)[..., None, None]
    axes = singular_factors(A + shift * jnp.eye(3, dtype=A.dtype)).V
    return jnp.sum(axes * (A @ axes), axis=-2), axes


def in_axes_of_F(axes: PrincipalAxes, change: Callable[[Array], Array]) -> Float[Array, "*m 9 9"]:
    """The stiffness with changed eigenvalues, from the axes of singular vectors to those of F."""
    U, V, stiffness, values, vectors = axes
    stretch = (vectors * change(values)[..., None, :]) @ transposed(vectors)
    planes = change(jnp.concatenate([stiffness.twist, stiffness.flip], axis=-1))
    m, dtype = stretch.shape[:-2], stretch.dtype
    flat = stretch.reshape(*m, 9) @ jnp.asarray(OF_STRETCHES, dtype) + planes @ jnp.asarray(OF_PLANES, dtype)
    both = (U[..., :, None, :, None] * V[..., None, :, None, :]).reshape(*m, 9, 9)
    return both @ flat.reshape(*m, 9, 9) @ transposed(both)


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
    law: AbstractMaterialLaw, F: ElementMatrix, R: ElementMatrix, lame: LameConstants, turns: Bool[Array, "*m"]
) -> tuple[Float[Array, "*m 9 9"], Float[Array, "*m 9 9"]]:
    """The convex stiffness; and the same, or the one with absolute eigenvalues where `turns`. Not differentiated."""
    if not isinstance(law, AbstractIsotropicLaw):
        C = stiffness_of(law, F, R, lame)
        return C, C
    axes = principal_axes(law, F, lame)
    share = jnp.where(turns, -1.0, 0.0)[..., None].astype(F.dtype)
    C = in_axes_of_F(axes, without_negative)
    return C, in_axes_of_F(axes, lambda values: jnp.maximum(values, share * values))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _convex_stiffness(law: AbstractIsotropicLaw, F: ElementMatrix, lame: LameConstants) -> Float[Array, "*m 9 9"]:
    return in_axes_of_F(principal_axes(law, F, lame), without_negative)


@_convex_stiffness.defjvp
def _convex_stiffness_jvp(law: AbstractIsotropicLaw, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    """dC₊ = Q (Γ ∘ Qᵀ dC Q) Qᵀ, where Γ_ab = (max(λ_a, 0) - max(λ_b, 0)) / (λ_a - λ_b) (Daleckii and Krein 1965)."""
    F, lame = primals
    _, dC = jax.jvp(lambda F, lame: stiffness_of(law, F, F, lame), primals, tangents)
    values, Q = lax.stop_gradient(eigen_factors(law, F, lame))
    return _convex_stiffness(law, F, lame), Q @ (kept_shares(values) * (transposed(Q) @ dC @ Q)) @ transposed(Q)


def kept_shares(values: Float[Array, "*m 9"]) -> Float[Array, "*m 9 9"]:
    """Γ: 1 for two eigenvalues that stay, 0 for two that go, and the share of the one that stays for one of each."""
    tolerance = COUNTS_AS_ZERO * jnp.finfo(values.dtype).eps * jnp.max(jnp.abs(values), axis=-1, keepdims=True)
    stays = values >= -tolerance
    size = jnp.maximum(jnp.abs(values), jnp.finfo(values.dtype).tiny)
    a, b = size[..., :, None], size[..., None, :]
    one, two = stays[..., :, None], stays[..., None, :]
    return jnp.where(one & two, 1.0, jnp.where(one | two, jnp.where(one, a, b) / (a + b), 0.0))


def eigen_factors(
    law: AbstractIsotropicLaw, F: ElementMatrix, lame: LameConstants
) -> tuple[Float[Array, "*m 9"], Float[Array, "*m 9 9"]]:
    """Eigenvalues of dP/dF, and eigenvectors as columns."""
    U, V, stiffness, values, axes = principal_axes(law, F, lame)
    stretches = transposed(axes) @ jnp.asarray(STRETCHES, F.dtype)
    planes = jnp.broadcast_to(jnp.asarray(PLANE_UNITS, F.dtype), (*F.shape[:-2], 6, 9))
    inner = jnp.concatenate([planes, stretches], axis=-2).reshape(*F.shape[:-2], 9, 3, 3)
    vectors = U[..., None, :, :] @ inner @ transposed(V)[..., None, :, :]
    values = jnp.concatenate([stiffness.twist, stiffness.flip, values], axis=-1)
    return values, transposed(vectors.reshape(*F.shape[:-2], 9, 9))
