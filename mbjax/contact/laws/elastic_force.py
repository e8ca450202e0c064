"""The spring between two surfaces: it acts from first touch on, or is smoothed around that distance."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.spatial import safe_divide, safe_sqrt


class ElasticForce(eqx.Module):
    """Elastic force k (-φ)₊ of the signed distance φ, or smoothed over a length δ.

    The smoothed force is k ((φ² + δ²)^½ - φ) / 2, which is k δ² / (4 φ) far away.
    """

    stiffness: Float[Array, " m"]
    smoothing_length: Float[Array, ""] | None

    def at(self, distance: Float[Array, " m"]) -> Float[Array, " m"]:
        """The elastic force at a signed distance, in N."""
        if self.smoothing_length is None:
            return jnp.where(distance < 0.0, -self.stiffness * distance, 0.0)
        return 0.5 * self.stiffness * (self.softened(distance, self.smoothing_length) - distance)

    def slope(self, distance: Float[Array, " m"]) -> Float[Array, " m"]:
        """Stiffness of the elastic force, -d force / d distance, in N/m."""
        if self.smoothing_length is None:
            return jnp.where(distance < 0.0, self.stiffness, 0.0)
        return 0.5 * self.stiffness * (1.0 - safe_divide(distance, self.softened(distance, self.smoothing_length)))

    def softened(self, distance: Float[Array, " m"], length: Float[Array, ""]) -> Float[Array, " m"]:
        return safe_sqrt(distance * distance + length * length)
