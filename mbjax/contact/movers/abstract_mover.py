"""What moves contact points: products with their Jacobian J, whose relative velocities are v_AcBc_W = J v."""

import abc

import equinox as eqx
from jaxtyping import Array, Float


class AbstractMover(eqx.Module):
    """The Jacobian of m points, as a matrix or in fewer numbers than one."""

    @abc.abstractmethod
    def velocities(self, v: Float[Array, " nv"]) -> Float[Array, "3 m"]:
        """Relative velocities J v of the points."""

    @abc.abstractmethod
    def generalized(self, f_Bc_W: Float[Array, "3 m"]) -> Float[Array, " nv"]:
        """Generalized forces Jᵀ f of forces f on B at C."""

    @abc.abstractmethod
    def response(self, diagonal: Float[Array, " nv"]) -> Float[Array, "6 m"]:
        """The response J diag⁻¹ Jᵀ of each point in 1/kg, as the entries of a symmetric matrix."""
