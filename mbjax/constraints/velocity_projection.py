"""The velocity nearest to a given one that satisfies the constraints at a configuration."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float


def project_velocity(v: Float[Array, " nv"], G: Float[Array, "nc nv"], W: Float[Array, "nv nv"]) -> Float[Array, " nv"]:
    """v + x with the least xᵀ W x for which G (v + x) = 0.

    [W  Gᵀ] [x]   [  0  ]
    [G  0 ] [μ] = [-G v ]
    """
    nv, nc = v.size, G.shape[0]
    K = jnp.block([[W, G.T], [G, jnp.zeros((nc, nc), v.dtype)]])
    return v + solve_by_pseudo_inverse(K, jnp.concatenate([jnp.zeros(nv, v.dtype), -G @ v]))[:nv]


def solve_by_pseudo_inverse(K: Float[Array, "n n"], b: Float[Array, " n"]) -> Float[Array, " n"]:
    """x = K⁺ b, differentiable to any order where b is in the range of K: dx = K⁺ (db - dK x)."""
    inverse = pseudo_inverse(lax.stop_gradient(K))
    return lax.custom_linear_solve(
        lambda x: K @ x, b, lambda _, b: inverse @ b, transpose_solve=lambda _, b: inverse.T @ b
    )


def pseudo_inverse(K: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """K⁺, with singular values that are zero to rounding left out."""
    return jnp.linalg.pinv(K, rtol=K.shape[0] * jnp.finfo(K.dtype).eps * 100.0)
