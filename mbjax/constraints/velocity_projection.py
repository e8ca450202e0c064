"""Velocity projection: the velocity nearest to a given one that satisfies the constraints at a configuration."""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from mbjax import linear_algebra


def project_velocity(v: Float[Array, " nv"], G: Float[Array, "nc nv"], W: Float[Array, "nv nv"]) -> Float[Array, " nv"]:
    """Projects v to v + x with G (v + x) = 0 and the least xᵀ W x; of several such x takes the shortest.

    W may have zeros. The system on the left leaves x open where neither W nor the rows determine it. The system on the
    right makes x and its derivatives unique.

    [W  Gᵀ] [x]   [  0  ]                               [S  K] [z]   [0]
    [G  0 ] [μ] = [-G v ],  K z = b for short, makes    [K  0] [ν] = [b],    S = s diag(1, 0), for any s > 0.
    """
    nv, nc = v.size, G.shape[0]
    K = jnp.block([[W, G.T], [G, jnp.zeros((nc, nc), v.dtype)]])
    b = jnp.concatenate([jnp.zeros(nv, v.dtype), -G @ v])
    small = float(jnp.finfo(v.dtype).eps) ** 0.25  # s: singular values of K above it are not squared
    S = jnp.diag(jnp.asarray(np.repeat([small, 0.0], [nv, nc]), v.dtype)) * lax.stop_gradient(jnp.max(jnp.abs(K)))
    both = jnp.block([[S, K], [K, jnp.zeros_like(K)]])
    return v + solve_by_pseudo_inverse(both, jnp.concatenate([jnp.zeros_like(b), b]))[:nv]


def solve_by_pseudo_inverse(K: Float[Array, "n n"], b: Float[Array, " n"]) -> Float[Array, " n"]:
    """Solves x = K⁺ b, differentiable to any order where b is in the range of K: dx = K⁺ (db - dK x)."""
    inverse = pseudo_inverse_above_rounding(lax.stop_gradient(K))
    return lax.custom_linear_solve(
        lambda x: K @ x, b, lambda _, b: inverse @ b, transpose_solve=lambda _, b: inverse.T @ b
    )


def pseudo_inverse_above_rounding(K: Float[Array, "m n"], cut_off: float = 0.0) -> Float[Array, "n m"]:
    """K⁺ without the singular values that are zero to rounding, or below `cut_off` times the largest."""
    rounding = max(K.shape) * float(jnp.finfo(K.dtype).eps) * 100.0
    return linear_algebra.pseudo_inverse(K, max(cut_off, rounding))
