"""Kokkevis's strategy: multipliers by articulated bodies, without forming M."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mbjax.linear_algebra import (
    BranchFactor,
    factor_semidefinite,
    matrix_vector,
    solve_semidefinite,
    sum_of_outer,
)

from .abstract_solver import AbstractConstraintSolver, ArticulatedInverse, KktMatrix
from .elimination import add_to_diagonal


class KokkevisFactor(NamedTuple):
    inertia: ArticulatedInverse
    X: Float[Array, "nv nc *w"]  # M⁻¹ Gᵀ, the tree's response to a unit of each multiplier
    rows: BranchFactor


class Kokkevis(AbstractConstraintSolver):
    """Solves with the tree's responses to unit forces, by articulated bodies (Kokkevis and Metaxas 2004).

    The work grows with velocities times rows, so it suits long robots with few rows. All kinds of constraints and
    applied forces are allowed, where RBDL takes contacts only.
    """

    def init(self, system: KktMatrix) -> KokkevisFactor:
        inertia = system.inertia.articulated_inverse()
        G_T = jnp.swapaxes(system.G, 0, 1)
        X = jax.vmap(inertia.times, 1, 1)(G_T)
        S = add_to_diagonal(sum_of_outer(G_T, X), system.regularization)
        return KokkevisFactor(inertia, X, factor_semidefinite(S, system.G, system.regularization))

    def solve(
        self, system: KktMatrix, factor: KokkevisFactor, rhs_v: Float[Array, "nv *w"], rhs_c: Float[Array, "nc *w"]
    ) -> tuple[Float[Array, "nv *w"], Float[Array, "nc *w"]]:
        free = factor.inertia.times(rhs_v)
        multipliers = solve_semidefinite(factor.rows, rhs_c - matrix_vector(system.G, free))
        return free + matrix_vector(factor.X, multipliers), multipliers

    def kept(self, factor: KokkevisFactor) -> Bool[Array, "nc *w"]:
        return factor.rows.kept
