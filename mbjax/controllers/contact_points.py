"""Points at which a robot stands, with a friction pyramid each, and which of them are in contact."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.kinematics import bias_translational_acceleration, jacobian_translational_velocity
from mbjax.model import MultibodyModel
from mbjax.number_rules import DIRECTION, FINITE, NOT_NEGATIVE, NumberRule, is_known, shown
from mbjax.simulation import State
from mbjax.spatial import cross3, safe_normalize


class ContactPoints(eqx.Module):
    """Points p_FC of frames F that may touch a surface with the outward normal n_W and a coefficient of friction.

    `frames` names a frame for each point, so that a foot with four corners is named four times. `p_FC` is (3,) or
    (points, 3) in m, the origins by default; `normal` is (3,) or (points, 3) in the world; `friction` is a number or
    (points,). Raises `ModelError` for others, for normals of zeros and for a friction below 0. Which points are in
    contact is data of each call: one program serves a whole gait.
    """

    p_FC: Float[Array, "points 3"]
    normal: Float[Array, "points 3"]
    friction: Float[Array, " points"]
    frames: tuple[str | int, ...] = eqx.field(static=True)

    def __init__(
        self,
        frames: Sequence[str | int],
        p_FC: Any = (0.0, 0.0, 0.0),
        *,
        normal: Any = (0.0, 0.0, 1.0),
        friction: ArrayLike = 0.7,
    ):
        if isinstance(frames, str):
            raise ModelError(f"ContactPoints: frames must be a list with a frame for each point, got '{frames}'.")
        self.frames = tuple(frames)
        count = len(self.frames)
        self.p_FC = spread("p_FC", p_FC, FINITE, count, 3)
        self.normal = safe_normalize(spread("normal", normal, DIRECTION, count, 3))
        self.friction = spread("friction", friction, NOT_NEGATIVE, count)

    def motion(
        self, model: MultibodyModel, state: State
    ) -> tuple[Float[Array, "points 3 nv"], Float[Array, "points 3"]]:
        """Jacobians of the points' velocities in the world, and the bias J̇ v of their accelerations."""
        p_FC, places, J, bias = self.p_FC.astype(model.dtype), [], [], []
        for frame in dict.fromkeys(self.frames):  # the points of a foot at once
            own = [i for i, each in enumerate(self.frames) if each == frame]
            places += own
            J.append(jacobian_translational_velocity(model, state.q, frame, p_FC[own, :], "world", "world"))
            bias.append(bias_translational_acceleration(model, state.q, state.v, frame, p_FC[own, :], "world", "world"))
        order = np.argsort(places)
        return jnp.concatenate(J).reshape(-1, 3, model.num_velocities)[order], jnp.concatenate(bias)[order]

    def pyramids(self) -> Float[Array, "points 5 3"]:
        """Rows P with P f <= 0 within the pyramid: four sides inscribed in the cone, |f_t| <= μ f_n / √2; f_n >= 0."""
        return jax.vmap(pyramid)(self.normal, self.friction)


def spread(what: str, value: Any, rule: NumberRule, count: int, *shape: int) -> Array:
    """A value for each point, (count, *shape), known ones by a rule."""
    array = jnp.asarray(value, float)
    if array.shape not in (shape, (count, *shape)):
        raise ModelError(f"ContactPoints: {what} has shape {array.shape}; give {shape} or {(count, *shape)}.")
    if is_known(array) and not np.all(rule.holds(np.asarray(array))):
        raise ModelError(f"ContactPoints: {what} must be {rule.words}, got {shown(value)}.")
    return jnp.broadcast_to(array, (count, *shape))


def pyramid(normal: Float[Array, "3"], friction: Float[Array, ""]) -> Float[Array, "5 3"]:
    """Sides of the pyramid about a normal, along two tangents of the surface."""
    other = jnp.eye(3, dtype=normal.dtype)[jnp.argmin(jnp.abs(normal))]
    tangent = safe_normalize(cross3(normal, other))
    tangents = jnp.stack([tangent, cross3(normal, tangent)])
    share = friction * np.sqrt(0.5)
    return jnp.concatenate([tangents - share * normal, -tangents - share * normal, -normal[None]])
