"""The direct strategy: factors the whole system in one pass, velocities from the tips inward, then the rows."""

from typing import NamedTuple

from jaxtyping import Array, Bool, Float

from mbjax.linear_algebra import BranchFactor, factor_semidefinite, solve_semidefinite

from .abstract_solver import AbstractConstraintSolver, KktMatrix
from .elimination import Elimination, constrained_motion, eliminate_velocities, free_motion


class DirectFactor(NamedTuple):
    velocities: Elimination
    rows: BranchFactor


class Direct(AbstractConstraintSolver):
    """Factors the whole symmetric indefinite matrix as Lᵀ D L, without fill-in along the tree: the default strategy.

    Positive pivots belong to velocities, negative ones to rows. Rows that later ones imply are left out.
    """

    def init(self, system: KktMatrix) -> DirectFactor:
        velocities = eliminate_velocities(system)
        return DirectFactor(velocities, factor_semidefinite(velocities.S, system.G, system.regularization))

    def solve(
        self, system: KktMatrix, factor: DirectFactor, rhs_v: Float[Array, "nv *w"], rhs_c: Float[Array, "nc *w"]
    ) -> tuple[Float[Array, "nv *w"], Float[Array, "nc *w"]]:
        free, seen = free_motion(system, factor.velocities, rhs_v)
        multipliers = solve_semidefinite(factor.rows, rhs_c - seen)
        return constrained_motion(system, factor.velocities, free, multipliers), multipliers

    def kept(self, factor: DirectFactor) -> Bool[Array, "nc *w"]:
        return factor.rows.kept
