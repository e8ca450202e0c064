"""What a law of contact answers, for m points at once, everything in W."""

import abc

import equinox as eqx
from jaxtyping import Array, Float


class AbstractContactLaw(eqx.Module):
    """Impulses over a step as minus the gradient of a convex function of the velocity at its end."""

    @abc.abstractmethod
    def impulse(self, v_AcBc_W: Float[Array, "3 m"]) -> Float[Array, "3 m"]:
        """On B at C, in N s."""

    @abc.abstractmethod
    def stiffness(self, v_AcBc_W: Float[Array, "3 m"]) -> Float[Array, "3 3 m"]:
        """-d impulse / d v_AcBc_W: symmetric, positive semidefinite."""
