"""Losses: how residuals that are far too large are weighed, so that outliers do not decide the fit."""

import dataclasses
from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.spatial import safe_sqrt


@dataclasses.dataclass(frozen=True)
class Loss:
    """A loss rho of scaled residuals z = r / sigma; beyond `scale` standard deviations it grows as |z| only.

    least_squares  z²      huber  z² inside, 2 s |z| - s² outside      soft_l1  2 s² (sqrt(1 + (z/s)²) - 1)
    """

    kind: Literal["least_squares", "huber", "soft_l1"] = "least_squares"
    scale: float = 2.0

    def __post_init__(self) -> None:
        if self.kind not in ("least_squares", "huber", "soft_l1"):
            raise ModelError(f"loss must be 'least_squares', 'huber' or 'soft_l1', got {self.kind!r}.")

    def apply(self, z: Float[Array, "..."]) -> Float[Array, "..."]:
        """Residuals whose squares are the losses: sign(z) sqrt(rho(z)), smooth where z is zero."""
        if self.kind == "least_squares":
            return z
        s = self.scale
        if self.kind == "soft_l1":
            root = safe_sqrt(1.0 + (z / s) ** 2)
            return z * safe_sqrt(2.0 / (1.0 + root))  # 2 s² (root - 1) = 2 z² / (1 + root)
        is_small = jnp.abs(z) <= s
        large = jnp.where(is_small, s, jnp.abs(z))
        return jnp.where(is_small, z, jnp.sign(z) * safe_sqrt(2.0 * s * large - s * s))


def as_loss(loss: "str | Loss") -> Loss:
    """A loss given by its name."""
    return loss if isinstance(loss, Loss) else Loss(loss)  # pyright: ignore[reportArgumentType]
