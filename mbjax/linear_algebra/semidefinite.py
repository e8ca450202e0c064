"""Factors and solves symmetric positive semidefinite systems, leaving out rows that depend on others."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .branch_factor import BranchFactor, chain, factor_branches, solve_branches
from .products import sum_over_first
from .thresholds import smallest_pivots_of_mobilities


def factor_semidefinite(
    S: Float[Array, "n n *w"], G: Float[Array, "n nv *w"], compliance: Float[Array, "n *w"] | None = None
) -> BranchFactor:
    """Factors S = G M⁻¹ Gᵀ + diag(compliance) as Lᵀ D L over its independent rows, taken from the last to the first.

    Rows of G that lie in the span of later ones, and zero rows without compliance, are left out.
    """
    n = S.shape[0]
    diagonal = S[jnp.arange(n), jnp.arange(n)]
    mobilities = diagonal if compliance is None else diagonal - compliance
    squared_lengths = sum_over_first(jnp.swapaxes(G * G, 0, 1))
    smallest = jnp.broadcast_to(smallest_pivots_of_mobilities(mobilities, squared_lengths), diagonal.shape)
    return factor_branches(chain(n), S, smallest=smallest)[0]


def solve_semidefinite(factor: BranchFactor, b: Float[Array, "n *w"]) -> Float[Array, "n *w"]:
    """Solves S x = b in the rows that were kept; x is zero in the others."""
    return solve_branches(chain(factor.L.shape[0]), factor, b)
