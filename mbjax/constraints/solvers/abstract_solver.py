"""The linear system of constrained motion, and the interface of a strategy that solves it.

    [ M   Gᵀ ] [  x ]   [ rhs_v ]
    [ G  -R  ] [ -λ ] = [ rhs_c ]

Arrays have rows first, then columns, then worlds if there are several. Strategies are not differentiated: derivatives
solve the system again, see `kkt_solve`.
"""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mbjax.dynamics import MassMatrixFactor, calc_mass_matrix_product, factor_mass_matrix, solve_factored
from mbjax.dynamics.composite_body.mass_matrix import calc_mass_matrix
from mbjax.dynamics.records.inertia_about_origin import shift_inertia_to_T
from mbjax.errors import ModelError
from mbjax.kinematics import MobodInertia, PositionKinematics
from mbjax.linear_algebra import Parents, chain, matrix_vector
from mbjax.topology import TreeTopology, velocity_parents


class ArticulatedInverse(eqx.Module):
    """Products with M⁻¹ of a tree, by articulated bodies where no joint mimics another."""

    topology: TreeTopology = eqx.field(static=True)
    factor: MassMatrixFactor

    def times(self, b: Float[Array, "nv *w"]) -> Float[Array, "nv *w"]:
        """Product M⁻¹ b."""
        return solve_factored(self.topology, self.factor, b)


class AbstractMassMatrix(eqx.Module):
    """The symmetric, positive definite matrix M, in the forms that strategies use."""

    @property
    @abc.abstractmethod
    def parents(self) -> Parents:
        """The tree whose paths carry the nonzeros of M."""

    @property
    @abc.abstractmethod
    def worlds(self) -> tuple[int, ...]:
        """Shape of the axes of worlds, which come after rows and columns."""

    @abc.abstractmethod
    def matrix(self) -> Float[Array, "nv nv *w"]:
        """The matrix M itself."""

    @abc.abstractmethod
    def times(self, x: Float[Array, "nv *w"]) -> Float[Array, "nv *w"]:
        """Product M x, differentiable."""

    @abc.abstractmethod
    def articulated_inverse(self) -> ArticulatedInverse:
        """M⁻¹ without forming M; for the inertia of a tree only."""


class TreeMassMatrix(AbstractMassMatrix):
    """The matrix M(q) + diag of a model. Locked velocities have the identity's rows and columns."""

    topology: TreeTopology = eqx.field(static=True)
    position: PositionKinematics
    inertia_W: MobodInertia
    diagonal: Float[Array, "nv *w"]
    locked: Bool[Array, "nv *w"]

    @property
    def parents(self) -> Parents:
        return velocity_parents(self.topology)

    @property
    def worlds(self) -> tuple[int, ...]:
        position, inertia_W = self.position, self.inertia_W
        per_mobod = (position.p_TM_W.shape[2:], inertia_W.mass.shape[1:])
        return jnp.broadcast_shapes(position.S_T.shape[2:], *per_mobod, self.diagonal.shape[1:], self.locked.shape[1:])

    def matrix(self) -> Float[Array, "nv nv *w"]:
        inertia_T = shift_inertia_to_T(self.position, self.inertia_W)
        M = calc_mass_matrix(self.topology, self.position, inertia_T, self.diagonal)
        n = M.shape[0]
        identity = jnp.eye(n, dtype=M.dtype).reshape(n, n, *(1 for _ in M.shape[2:]))
        return jnp.where(self.locked[:, None] | self.locked[None], identity, M)

    def times(self, x: Float[Array, "nv *w"]) -> Float[Array, "nv *w"]:
        free = jnp.where(self.locked, 0.0, x)
        product = calc_mass_matrix_product(self.topology, self.position, self.inertia_W, free) + self.diagonal * free
        return jnp.where(self.locked, x, product)

    def articulated_inverse(self) -> ArticulatedInverse:
        inertia_W, diagonal = self.inertia_W, self.diagonal
        factor, _ = factor_mass_matrix(self.topology, self.position, inertia_W, diagonal, self.locked)
        return ArticulatedInverse(self.topology, factor)


class DenseMassMatrix(AbstractMassMatrix):
    """An inertia given as a dense matrix."""

    M: Float[Array, "nv nv *w"]

    @property
    def parents(self) -> Parents:
        return chain(self.M.shape[0])

    @property
    def worlds(self) -> tuple[int, ...]:
        return self.M.shape[2:]

    def matrix(self) -> Float[Array, "nv nv *w"]:
        return self.M

    def times(self, x: Float[Array, "nv *w"]) -> Float[Array, "nv *w"]:
        return matrix_vector(self.M, x)

    def articulated_inverse(self) -> ArticulatedInverse:
        raise ModelError("Kokkevis: articulated bodies need a model, and a matrix is given. Use RangeSpace().")


class KktMatrix(eqx.Module):
    """The blocks M, G and R ≥ 0, the compliance of the rows. Inactive rows and locked columns of G are zero."""

    inertia: AbstractMassMatrix
    G: Float[Array, "nc nv *w"]
    regularization: Float[Array, "nc *w"] | None = None


class AbstractConstraintSolver(eqx.Module):
    """A strategy for the system: `init` factorizes it once, then `solve` takes any right-hand sides.

    Results are finite for any G. A row that depends on others, or is zero, is left out and has λ = 0, unless a strategy
    says otherwise.
    """

    @abc.abstractmethod
    def init(self, system: KktMatrix) -> Any:
        """Computes once the factor that `solve` needs."""

    @abc.abstractmethod
    def solve(
        self, system: KktMatrix, factor: Any, rhs_v: Float[Array, "nv *w"], rhs_c: Float[Array, "nc *w"]
    ) -> tuple[Float[Array, "nv *w"], Float[Array, "nc *w"]]:
        """Solves for x and λ."""

    @abc.abstractmethod
    def kept(self, factor: Any) -> Bool[Array, "nc *w"]:
        """Mask of the rows that are independent and kept."""
