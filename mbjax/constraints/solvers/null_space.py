"""The null-space strategy: first the motion in the space that the rows leave free, then the multipliers."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mbjax.errors import ModelError
from mbjax.execution.arrays import sum_over_first
from mbjax.linear_algebra import (
    BranchFactor,
    OrthogonalRows,
    chain,
    coefficients,
    factor_branches,
    factor_rows,
    matrix_vector,
    point_with_products,
    products_of_columns,
    solve_branches,
)

from .abstract_solver import AbstractConstraintSolver, KktMatrix


class NullSpaceFactor(NamedTuple):
    M: Float[Array, "nv nv *w"]
    rows: OrthogonalRows
    free: BranchFactor  # factor of P M P + s (1 - P)


class NullSpace(AbstractConstraintSolver):
    """RBDL's null-space method, with the projection P onto the null space of G in place of a basis.

    x = x_y + P z:  G x_y = rhs_c,  (P M P + s (1 - P)) z = P (rhs_v - M x_y),  Gᵀ λ = M x - rhs_v
    (Benzi, Golub and Liesen 2005, §6). The size of P does not depend on the rank of G, so worlds may differ in rank.
    Rows that earlier ones imply are left out.
    """

    def init(self, system: KktMatrix) -> NullSpaceFactor:
        if system.regularization is not None:
            raise ModelError("NullSpace: compliant rows have no null space. Use Direct().")
        M, rows = system.inertia.matrix(), factor_rows(system.G)
        n = M.shape[0]
        identity = jnp.eye(n, dtype=M.dtype).reshape(n, n, *(1 for _ in M.shape[2:]))
        P = identity - products_of_columns(rows.Q, rows.Q * rows.one_over_length2[:, None])
        scale = sum_over_first(M[jnp.arange(n), jnp.arange(n)]) / n
        PMP = products_of_columns(P, products_of_columns(M, P))
        free, _ = factor_branches(chain(n), PMP + scale * (identity - P))
        return NullSpaceFactor(M, rows, free)

    def solve(
        self, system: KktMatrix, factor: NullSpaceFactor, rhs_v: Float[Array, "nv *w"], rhs_c: Float[Array, "nc *w"]
    ) -> tuple[Float[Array, "nv *w"], Float[Array, "nc *w"]]:
        M, rows, free = factor
        x_y = point_with_products(rows, rhs_c)
        remaining = rhs_v - matrix_vector(M, x_y)
        z = solve_branches(chain(M.shape[0]), free, remaining - rows.projection(remaining))
        x = x_y + z - rows.projection(z)
        return x, coefficients(rows, matrix_vector(M, x) - rhs_v)

    def kept(self, factor: NullSpaceFactor) -> Bool[Array, "nc *w"]:
        return factor.rows.kept
