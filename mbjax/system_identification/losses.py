"""Losses: how residuals that are far too large are weighed, so that outliers do not decide the fit."""

import dataclasses
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.spatial import safe_sqrt

NORMAL = 1.4826  # standard deviation of normal noise over the median of its size


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

    def score(self, z: Float[Array, "..."]) -> Float[Array, "..."]:
        """Half the derivative of the loss: z where errors are small, and at most `scale` in size if it is robust."""
        if self.kind == "least_squares":
            return z
        if self.kind == "soft_l1":
            return z / safe_sqrt(1.0 + (z / self.scale) ** 2)
        return jnp.clip(z, -self.scale, self.scale)

    def score_slope(self, z: Float[Array, "..."]) -> Float[Array, "..."]:
        """Derivative of `score`."""
        if self.kind == "least_squares":
            return jnp.ones_like(z)
        if self.kind == "soft_l1":
            return (1.0 + (z / self.scale) ** 2) ** -1.5
        return (jnp.abs(z) <= self.scale).astype(z.dtype)

    @property
    def is_robust(self) -> bool:
        """Whether errors that are far too large count less."""
        return self.kind != "least_squares"


def as_loss(loss: "str | Loss") -> Loss:
    """A loss given by its name."""
    return loss if isinstance(loss, Loss) else Loss(loss)  # pyright: ignore[reportArgumentType]


def noise_square(
    errors: Float[Array, "samples channels"], counts: Float[Array, "samples channels"]
) -> Float[Array, " channels"]:
    """Square of a standard deviation that outliers do not move: the median of |errors| times 1.4826, for normal noise.

    Errors whose count is zero are left out.
    """

    def of_channel(size: Array, count: Array) -> Array:
        order = jnp.argsort(jnp.where(count > 0.0, size, jnp.inf))
        place = jnp.maximum(jnp.sum(count > 0.0) - 1, 0)
        return 0.5 * (size[order[place // 2]] + size[order[(place + 1) // 2]])

    return (NORMAL * jax.vmap(of_channel, 1)(jnp.abs(errors), counts)) ** 2
