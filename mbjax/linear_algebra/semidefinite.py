"""Factors and solves symmetric positive semidefinite systems, leaving out rows that depend on others."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .branch_factor import BranchFactor, chain, factor_branches, solve_branches
from .thresholds import smallest_pivots


def factor_semidefinite(S: Float[Array, "n n *w"]) -> BranchFactor:
    """Factors S = Lᵀ D L over its independent rows, taken from the last to the first.

    For S = G M⁻¹ Gᵀ, rows of G that lie in the span of later ones, and zero rows, are left out.
    """
    n = S.shape[0]
    return factor_branches(chain(n), S, smallest=smallest_pivots(S[jnp.arange(n), jnp.arange(n)]))[0]


def solve_semidefinite(factor: BranchFactor, b: Float[Array, "n *w"]) -> Float[Array, "n *w"]:
    """Solves S x = b in the rows that were kept; x is zero in the others."""
    return solve_branches(chain(factor.L.shape[0]), factor, b)
