"""Inverts a symmetric matrix with the sparsity of a tree, where all columns of the inverse are needed.

For many worlds on a CPU the inverse is found along paths (`inverse_along_paths`). Else the triangular factor is
inverted by blocks of 1, 2, 4, … rows, all blocks of a size in one product of matrices:

    [A 0; C B]⁻¹ = [A⁻¹ 0; -B⁻¹ C A⁻¹ B⁻¹]
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from mbjax.execution import on_cpu
from mbjax.execution.arrays import take
from mbjax.execution.recursions import in_one_kernel

from .branch_factor import Parents, factor_branches, paths
from .inverse_along_paths import invert_along_paths
from .products import products_of_columns


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def inverse_of_branches(parents: Parents, A: Float[Array, "n n *w"]) -> Float[Array, "n n *w"]:
    """Inverse A⁻¹ = L⁻¹ D⁻¹ L⁻ᵀ, with the derivative -A⁻¹ dA A⁻¹."""
    if not parents:
        return A
    in_products = functools.partial(invert_in_products, parents)
    if A.ndim == 2:
        return in_products(A)
    return on_cpu(functools.partial(in_one_kernel, functools.partial(invert_along_paths, parents)), in_products, A)


@inverse_of_branches.defjvp
def _inverse_of_branches_jvp(parents: Parents, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    (A,), (dA,) = primals, tangents
    inverse = inverse_of_branches(parents, A)
    return inverse, -products_of_columns(inverse, products_of_columns(dA, inverse))


def invert_in_products(parents: Parents, A: Float[Array, "n n *w"]) -> Float[Array, "n n *w"]:
    """A⁻¹ by products of matrices."""
    factor, _ = factor_branches(parents, A)
    inverse = invert_triangular(parents, factor.L)
    scaled = inverse * jnp.moveaxis(factor.one_over_D, 0, -1)[..., None, :]
    return jnp.moveaxis(product(scaled, jnp.swapaxes(inverse, -1, -2)), (-2, -1), (0, 1))


def product(A: Float[Array, "... i k"], B: Float[Array, "... k j"]) -> Float[Array, "... i j"]:
    """Product A B at full precision on every device."""
    return jnp.matmul(A, B, precision=lax.Precision.HIGHEST)


def invert_triangular(parents: Parents, L: Float[Array, "n depth *w"]) -> Float[Array, "*w n n"]:
    """Inverse of L, which is given by depth; worlds come first, as products of matrices need them."""
    n, worlds = len(parents), L.shape[2:]
    places, exists, sizes = blocks_below_diagonal(parents)
    flat = take(L.reshape(-1, *worlds), places, 0)
    flat = jnp.where(exists.reshape(-1, *(1 for _ in worlds)), flat, 0.0)
    below = jnp.moveaxis(flat, 0, -1)
    inverse, start = jnp.ones((*worlds, 2 ** len(sizes), 1, 1), L.dtype), 0
    for size in sizes:
        count = 2 ** len(sizes) // (2 * size)
        C = below[..., start : start + count * size**2].reshape(*worlds, count, size, size)
        start += count * size**2
        pairs = inverse.reshape(*worlds, count, 2, size, size)
        upper, lower = pairs[..., 0, :, :], pairs[..., 1, :, :]
        left = jnp.concatenate([upper, -product(lower, product(C, upper))], -2)
        inverse = jnp.concatenate([left, jnp.concatenate([jnp.zeros_like(C), lower], -2)], -1)
    return inverse[..., 0, :n, :n]


@functools.lru_cache(maxsize=256)
def blocks_below_diagonal(parents: Parents) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """Places among rows by depth of the entries of every block C, whether each entry exists, and the sizes of C.

    Blocks follow one another, the smallest first; rows and columns are filled up to a power of two.
    """
    _, ancestors, inboard = paths(parents)
    n, depth = ancestors.shape
    sizes = tuple(2**k for k in range((n - 1).bit_length()))
    padded = 2 ** len(sizes)
    dense, known = np.zeros((padded, padded), int), np.zeros((padded, padded), bool)
    for node in range(n):
        for k in np.flatnonzero(inboard[node]):
            dense[node, ancestors[node, k]], known[node, ancestors[node, k]] = node * depth + k, True
    places, exists = [], []
    for size in sizes:
        for start in range(0, padded, 2 * size):
            block = slice(start + size, start + 2 * size), slice(start, start + size)
            places.append(dense[block].ravel())
            exists.append(known[block].ravel())
    return np.concatenate([*places, np.zeros(0, int)]), np.concatenate([*exists, np.zeros(0, bool)]), sizes
