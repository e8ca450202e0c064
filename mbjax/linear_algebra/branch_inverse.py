"""The inverse of a symmetric matrix with the sparsity of a tree, where many columns of it are needed."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .branch_factor import Parents, factor_branches
from .products import products_of_columns


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def inverse_of_branches(parents: Parents, A: Float[Array, "n n *w"]) -> Float[Array, "n n *w"]:
    """A⁻¹ = (L⁻ᵀ)ᵀ D⁻¹ L⁻ᵀ; its derivative is -A⁻¹ dA A⁻¹."""
    n = len(parents)
    identity = jnp.eye(n, dtype=A.dtype).reshape(n, n, *(1 for _ in A.shape[2:]))
    factor, Y = factor_branches(parents, A, jnp.broadcast_to(identity, A.shape))
    return products_of_columns(Y, Y * factor.one_over_D[:, None])


@inverse_of_branches.defjvp
def _inverse_of_branches_jvp(parents: Parents, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    (A,), (dA,) = primals, tangents
    inverse = inverse_of_branches(parents, A)
    return inverse, -products_of_columns(inverse, products_of_columns(dA, inverse))
