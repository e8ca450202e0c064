"""The proximal strategy, for dependent or contradicting rows: least-squares motion and smallest multipliers."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mbjax.errors import ModelError
from mbjax.execution.arrays import scan
from mbjax.linear_algebra import (
    BranchFactor,
    chain,
    factor_branches,
    factor_semidefinite,
    matrix_vector,
    solve_branches,
)
from mbjax.number_rules import POSITIVE, checked_numbers, is_whole

from .abstract_solver import AbstractConstraintSolver, KktMatrix
from .elimination import (
    Elimination,
    add_to_diagonal,
    constrained_motion,
    eliminate_velocities,
    free_motion,
)


class ProximalFactor(NamedTuple):
    velocities: Elimination
    damped: BranchFactor  # factor of S + mu
    rows: BranchFactor  # factor of S, which gives its rank


class Proximal(AbstractConstraintSolver):
    """Finds λ = S⁺ (rhs_c - G M⁻¹ rhs_v) by a fixed number of proximal steps (after Carpentier et al. 2021).

    Each step adds (S + mu)⁻¹ S (S + mu)⁻¹ (c - S λ), with c the right-hand side, which never leaves the range of S.
    Contradicting rows are met in the least-squares sense of their accelerations, and of all multipliers with that
    motion the smallest are taken. `mu` is relative to the largest diagonal entry of S, by default sqrt(eps). The error
    along an eigenvector with eigenvalue s of S shrinks by the factor 1 - s²/(s + mu)² a step.
    """

    mu: float | None = None
    iterations: int = eqx.field(static=True, default=12)

    def __check_init__(self) -> None:
        if not (is_whole(self.iterations) and self.iterations >= 1):
            raise ModelError(f"Proximal: iterations must be a whole number of at least 1, got {self.iterations!r}.")
        if self.mu is not None:
            checked_numbers("Proximal", "mu", self.mu, POSITIVE)

    def init(self, system: KktMatrix) -> ProximalFactor:
        velocities = eliminate_velocities(system)
        S = velocities.S
        n = S.shape[0]
        mu = float(jnp.finfo(S.dtype).eps) ** 0.5 if self.mu is None else jnp.asarray(self.mu, S.dtype)
        largest = jnp.max(S[jnp.arange(n), jnp.arange(n)], axis=0, initial=0.0)
        shift = mu * jnp.where(largest > 0.0, largest, 1.0)
        damped, _ = factor_branches(chain(n), add_to_diagonal(S, jnp.broadcast_to(shift, (n, *shift.shape))))
        return ProximalFactor(velocities, damped, factor_semidefinite(S, system.G, system.regularization))

    def solve(
        self, system: KktMatrix, factor: ProximalFactor, rhs_v: Float[Array, "nv *w"], rhs_c: Float[Array, "nc *w"]
    ) -> tuple[Float[Array, "nv *w"], Float[Array, "nc *w"]]:
        S = factor.velocities.S
        free, seen = free_motion(system, factor.velocities, rhs_v)
        asked, rows = rhs_c - seen, chain(S.shape[0])

        def step(multipliers: Array, _: None) -> tuple[Array, None]:
            error = solve_branches(rows, factor.damped, asked - matrix_vector(S, multipliers))
            return multipliers + solve_branches(rows, factor.damped, matrix_vector(S, error)), None

        nothing = jnp.zeros(jnp.broadcast_shapes(asked.shape, S.shape[1:]), asked.dtype)
        multipliers, _ = scan(step, nothing, None, length=self.iterations)
        return constrained_motion(system, factor.velocities, free, multipliers), multipliers

    def kept(self, factor: ProximalFactor) -> Bool[Array, "nc *w"]:
        return factor.rows.kept
