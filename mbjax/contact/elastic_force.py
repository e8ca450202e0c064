"""The spring between two surfaces, from the distance where they touch on, or smoothed around it."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.spatial import safe_divide, safe_sqrt


class ElasticForce(eqx.Module):
    """k (-φ)₊ of the signed distance φ. With a length δ k ((φ² + δ²)^½ - φ) / 2: k δ² / (4 φ) from afar."""

    stiffness: Float[Array, " m"]
    smoothing_length: Float[Array, ""] | None

    def at(self, distance: Float[Array, " m"]) -> Float[Array, " m"]:
        """In N."""
        if self.smoothing_length is None:
            return jnp.where(distance < 0.0, -self.stiffness * distance, 0.0)
        return 0.5 * self.stiffness * (self.softened(distance, self.smoothing_length) - distance)

    def slope(self, distance: Float[Array, " m"]) -> Float[Array, " m"]:
        """-d force / d distance."""
        if self.smoothing_length is None:
            return jnp.where(distance < 0.0, self.stiffness, 0.0)
        return 0.5 * self.stiffness * (1.0 - safe_divide(distance, self.softened(distance, self.smoothing_length)))

    def softened(self, distance: Float[Array, " m"], length: Float[Array, ""]) -> Float[Array, " m"]:
        return safe_sqrt(distance * distance + length * length)
