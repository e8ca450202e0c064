"""Eliminates the velocities, which leaves a system for the multipliers.

With M = Lᵀ D L and Y = L⁻ᵀ Gᵀ, whose nonzeros follow the tree's sparsity in Gᵀ (Featherstone 2008, §8.5),
    S λ = rhs_c - G M⁻¹ rhs_v,    S = G M⁻¹ Gᵀ + R = Yᵀ D⁻¹ Y + R.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.linear_algebra import (
    BranchFactor,
    factor_branches,
    matrix_vector,
    solve_inward,
    solve_outward,
    sum_of_outer,
    transposed_matrix_vector,
)

from .abstract_solver import KktMatrix


class Elimination(NamedTuple):
    """The factor of M, the matrix D⁻¹ Y, and S."""

    inertia: BranchFactor
    Y_over_D: Float[Array, "nv nc *w"]
    S: Float[Array, "nc nc *w"]


def eliminate_velocities(system: KktMatrix) -> Elimination:
    """Eliminates the velocities in one pass over the tree for M and all rows of G."""
    inertia, Y = factor_branches(system.inertia.parents, system.inertia.matrix(), jnp.swapaxes(system.G, 0, 1))
    Y_over_D = Y * inertia.one_over_D[:, None]
    return Elimination(inertia, Y_over_D, add_to_diagonal(sum_of_outer(Y, Y_over_D), system.regularization))


def free_motion(
    system: KktMatrix, elimination: Elimination, rhs_v: Float[Array, "nv *w"]
) -> tuple[Float[Array, "nv *w"], Float[Array, "nc *w"]]:
    """The half-solved motion D⁻¹ L⁻ᵀ rhs_v without multipliers, and its rates G M⁻¹ rhs_v along the rows."""
    y = solve_inward(system.inertia.parents, elimination.inertia, rhs_v)
    return elimination.inertia.one_over_D * y, transposed_matrix_vector(elimination.Y_over_D, y)


def constrained_motion(
    system: KktMatrix, elimination: Elimination, free: Float[Array, "nv *w"], multipliers: Float[Array, "nc *w"]
) -> Float[Array, "nv *w"]:
    """The motion x = M⁻¹ (rhs_v + Gᵀ λ) under the multipliers."""
    z = free + matrix_vector(elimination.Y_over_D, multipliers)
    return solve_outward(system.inertia.parents, elimination.inertia, z)


def add_to_diagonal(S: Float[Array, "n n *w"], x: Float[Array, "n *w"] | None) -> Float[Array, "n n *w"]:
    """The matrix S + diag(x); x None means zero."""
    if x is None:
        return S
    n = S.shape[0]
    identity = jnp.eye(n, dtype=S.dtype).reshape(n, n, *(1 for _ in S.shape[2:]))
    return S + identity * x[None]
