"""Disturbances of a task: pushes on a body, slopes, and blocks to step on."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from mbjax.geometry import Box, Geometry
from mbjax.model import MultibodyModel, set_gravity
from mbjax.number_rules import NOT_NEGATIVE, NumberRule, checked_numbers
from mbjax.simulation import AppliedSpatialForces
from mbjax.spatial import safe_norm

from .counts import as_plain, require_count

PROBABILITY = NumberRule("a number from 0 to 1", lambda x: (x >= 0.0) & (x <= 1.0))


class RandomPushes(eqx.Module):
    """Horizontal forces on a body, which start with this probability at a step and last `steps` steps."""

    body: str = eqx.field(static=True)
    force: float = eqx.field(static=True, default=50.0)  # N, the largest in x and y
    probability: float = eqx.field(static=True, default=0.005)
    steps: int = eqx.field(static=True, default=10, converter=as_plain)

    def __check_init__(self) -> None:
        require_count("RandomPushes", "steps", self.steps)
        checked_numbers("RandomPushes", "force", self.force, NOT_NEGATIVE, unit="N")
        checked_numbers("RandomPushes", "probability", self.probability, PROBABILITY)

    def start(self, model: MultibodyModel) -> Float[Array, "3"]:
        """The memory at the start: force along x and y, and how many steps it still lasts."""
        return model.zeros(3)

    def update(self, memory: Float[Array, "3"], key: PRNGKeyArray) -> Float[Array, "3"]:
        """The memory after a step."""
        drawn = jax.random.uniform(key, (3,), memory.dtype, -1.0, 1.0)
        begins = (memory[2] <= 0.0) & (0.5 * (drawn[2] + 1.0) < self.probability)
        force = jnp.where(begins, self.force * drawn[:2], memory[:2])
        left = jnp.where(begins, float(self.steps), jnp.maximum(memory[2] - 1.0, 0.0))
        return jnp.append(jnp.where(left > 0.0, force, 0.0), left)

    def applied(self, memory: Float[Array, "3"]) -> AppliedSpatialForces:
        """The push, for `Inputs.applied_spatial_forces`."""
        zero = jnp.zeros((), memory.dtype)
        return AppliedSpatialForces([self.body], jnp.stack([zero, zero, zero, memory[0], memory[1], zero])[None])


def on_slope(model: MultibodyModel, pitch: Any = 0.0, roll: Any = 0.0) -> MultibodyModel:
    """The model on a slope: gravity turned, in rad, while the ground stays z = 0. With a pitch > 0, x leads uphill.

    Gravity keeps its strength, and its direction is that of the slope, wherever it pointed before.
    """
    strength = safe_norm(model.parameters.gravity)
    pitch, roll = jnp.asarray(pitch, strength.dtype), jnp.asarray(roll, strength.dtype)
    direction = [-jnp.sin(pitch) * jnp.cos(roll), -jnp.sin(roll), -jnp.cos(pitch) * jnp.cos(roll)]
    return set_gravity(model, strength * jnp.stack(direction))


def add_blocks(plant: Any, heights: Float[np.ndarray, "rows columns"], side: float, friction: float = 1.0) -> None:
    """Adds a field of square blocks to the world of a plant, for robots to step on; the middle is at the origin.

    `heights` are those of the blocks' tops in m, and `side` is their width.
    """
    heights = np.asarray(heights, float)
    for i, j in np.ndindex(heights.shape):
        x, y = ((k - 0.5 * (n - 1)) * side for k, n in zip((i, j), heights.shape, strict=True))
        box = Geometry(f"block_{i}_{j}", Box((side, side, 1.0)), translation=(x, y, float(heights[i, j]) - 0.5))
        plant.register_collision_geometry("world", box, friction)
