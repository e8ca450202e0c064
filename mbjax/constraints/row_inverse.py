"""Inverses under constraints whose rank is that of the rows' directions: the same for all weights and units.

Rows of G are scaled to unit length before small singular values are dropped, and the multipliers are scaled back.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from mbjax import linear_algebra
from mbjax.spatial import safe_sqrt

DEPENDENT = 100.0  # times size and eps: singular value of rows of unit length below which they depend on others
SHORTEST_ROW = 256.0  # times eps: length of the smallest row that has a direction, relative to the largest
OPEN = 16.0  # times size and eps: curvature, relative to the largest, of a direction that the objective leaves open


def calc_row_scales(G: Float[Array, "nc nv"]) -> Float[Array, " nc"]:
    """One over the length of each row; 0 for rows that are zero to rounding. Not differentiated."""
    lengths = lax.stop_gradient(safe_sqrt(jnp.sum(G * G, axis=1)))
    has_direction = lengths > SHORTEST_ROW * jnp.finfo(G.dtype).eps * jnp.max(lengths, initial=0.0)
    return jnp.where(has_direction, 1.0 / jnp.where(has_direction, lengths, 1.0), 0.0)


def relative_rounding(A: Float[Array, "m n"], factor: float) -> float:
    """`factor` times the size of the matrix and the rounding of one number."""
    return factor * max(A.shape) * float(jnp.finfo(A.dtype).eps)


def invert_rows(G: Float[Array, "nc nv"], cut_off: float = 0.0) -> Float[Array, "nv nc"]:
    """G⁺ as (D G)⁺ D, with rows scaled to unit length by D, without singular values below `cut_off`.

    Not differentiated.
    """
    scale = calc_row_scales(G)
    rounding = relative_rounding(G, DEPENDENT)
    return linear_algebra.pseudo_inverse(scale[:, None] * G, max(cut_off, rounding)) * scale[None]


def invert_under_rows(
    H: Float[Array, "nv nv"], G: Float[Array, "nc nv"], cut_off: float = 0.0
) -> Float[Array, "nv+nc nv+nc"]:
    """Inverse of [H Gᵀ; G 0] by the null space of G, or a generalized one where rows are redundant; not differentiated.

    With P onto the null space, the first block is Z = P (P H P)⁺ P. Of several multipliers, those are least whose rows
    have unit length.
    """
    H, G = lax.stop_gradient((H, G))
    inverse, identity = invert_rows(G, cut_off), jnp.eye(H.shape[0], dtype=H.dtype)
    in_rows = inverse @ G
    P = identity - in_rows
    curvature = P @ H @ P + in_rows  # in_rows makes 1 the least that the largest can be
    Z = P @ linear_algebra.pseudo_inverse(curvature, relative_rounding(H, OPEN)) @ P
    by_rows = inverse - Z @ (H @ inverse)
    upper = jnp.concatenate([Z, by_rows], axis=1)
    lower = jnp.concatenate([inverse.T @ (identity - H @ Z), -inverse.T @ (H @ by_rows)], axis=1)
    return jnp.concatenate([upper, lower])


def solve_under_rows(K: Float[Array, "n n"], b: Float[Array, " n"], nv: int) -> Float[Array, " n"]:
    """Solves K x = b with K = [H Gᵀ; G 0], H of size nv; differentiable to any order where b is in the range of K."""
    inverse = invert_under_rows(K[:nv, :nv], K[nv:, :nv])
    return lax.custom_linear_solve(
        lambda x: K @ x, b, lambda _, b: inverse @ b, transpose_solve=lambda _, b: inverse.T @ b
    )


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def differentiable_pseudo_inverse(A: Float[Array, "m n"], rounding: float) -> Float[Array, "n m"]:
    """A⁺ without singular values below `rounding` times the largest; differentiable to any order at constant rank."""
    return linear_algebra.pseudo_inverse(A, rounding)


@differentiable_pseudo_inverse.defjvp
def _pseudo_inverse_jvp(rounding: float, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    """dA⁺ = -A⁺ dA A⁺ + A⁺ A⁺ᵀ dAᵀ (1 - A A⁺) + (1 - A⁺ A) dAᵀ A⁺ᵀ A⁺."""
    (A,), (dA,) = primals, tangents
    inverse = differentiable_pseudo_inverse(A, rounding)
    by_left = inverse.T @ (dA.T - dA.T @ A @ inverse)
    by_right = (dA.T - inverse @ (A @ dA.T)) @ inverse.T
    return inverse, inverse @ by_left + by_right @ inverse - inverse @ dA @ inverse
