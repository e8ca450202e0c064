"""The range-space strategy: first the multipliers, then the motion, by solves with M for every row."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mbjax.linear_algebra import (
    BranchFactor,
    factor_branches,
    factor_semidefinite,
    matrix_vector,
    products_of_columns,
    solve_branches,
    solve_semidefinite,
)

from .abstract_solver import AbstractConstraintSolver, KktMatrix
from .elimination import add_to_diagonal


class RangeSpaceFactor(NamedTuple):
    inertia: BranchFactor
    X: Float[Array, "nv nc *w"]  # M⁻¹ Gᵀ
    rows: BranchFactor


class RangeSpace(AbstractConstraintSolver):
    """RBDL's range-space method: (G M⁻¹ Gᵀ + R) λ = rhs_c - G M⁻¹ rhs_v, then x = M⁻¹ rhs_v + M⁻¹ Gᵀ λ."""

    def init(self, system: KktMatrix) -> RangeSpaceFactor:
        parents = system.inertia.parents
        inertia, _ = factor_branches(parents, system.inertia.matrix())
        G_T = jnp.swapaxes(system.G, 0, 1)
        X = jax.vmap(lambda column: solve_branches(parents, inertia, column), 1, 1)(G_T)
        S = add_to_diagonal(products_of_columns(G_T, X), system.regularization)
        return RangeSpaceFactor(inertia, X, factor_semidefinite(S, system.G, system.regularization))

    def solve(
        self, system: KktMatrix, factor: RangeSpaceFactor, rhs_v: Float[Array, "nv *w"], rhs_c: Float[Array, "nc *w"]
    ) -> tuple[Float[Array, "nv *w"], Float[Array, "nc *w"]]:
        free = solve_branches(system.inertia.parents, factor.inertia, rhs_v)
        multipliers = solve_semidefinite(factor.rows, rhs_c - matrix_vector(system.G, free))
        return free + matrix_vector(factor.X, multipliers), multipliers

    def kept(self, factor: RangeSpaceFactor) -> Bool[Array, "nc *w"]:
        return factor.rows.kept
