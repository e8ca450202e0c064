"""What legged tasks remember of feet: how long each is in the air, how high it got, and whether it touched."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mbjax.contact import signed_distances
from mbjax.model import MultibodyModel


class Feet(eqx.Module):
    """Memory of the feet between steps: time in the air in s, whether each touched, and the peak of its swing in m."""

    air_time: Float[Array, "*batch feet"]
    touched: Bool[Array, "*batch feet"]
    swing_peak: Float[Array, "*batch feet"]

    def moved(self, touches: Bool[Array, " feet"], height: Float[Array, " feet"], duration: Array) -> "FeetStep":
        """What a step is judged by, and the memory after it; `height` is that of the feet's frames."""
        has_landed = (self.air_time > 0.0) & (touches | self.touched)
        during = Feet(self.air_time + duration, self.touched, jnp.maximum(self.swing_peak, height))
        zero = jnp.zeros_like(height)
        after = Feet(jnp.where(touches, zero, during.air_time), touches, jnp.where(touches, zero, during.swing_peak))
        return FeetStep(during, after, touches, has_landed)


class FeetStep(eqx.Module):
    """A step of the feet: memory during and after it, which touch, and which have just landed."""

    during: Feet
    after: Feet
    touches: Bool[Array, " feet"]
    has_landed: Bool[Array, " feet"]


def feet_in_the_air(model: MultibodyModel, number: int) -> Feet:
    """The memory that an episode starts with."""
    return Feet(model.zeros(number), jnp.zeros(number, bool), model.zeros(number))


def overlaps(model: MultibodyModel, q: Float[Array, " nq"], pairs: Sequence[tuple[str, str]]) -> Bool[Array, " pairs"]:
    """Which of these pairs of shapes touch: what MuJoCo's contact sensors find."""
    found = signed_distances(model, q, pairs)
    names = [{name.split("::")[-1] for name in pair} for pair in found.pairs]
    return jnp.stack([found.distance[names.index(set(pair))] <= 0.0 for pair in pairs])
