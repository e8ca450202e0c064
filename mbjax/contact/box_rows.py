"""Rows that act on one velocity each, with impulses between bounds: joint limits, friction, actuators that track."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.spatial import component_algebra as ca
from mbjax.topology import dot_with_mask, take


class BoxRows(eqx.Module):
    """impulse = start - stiffness dv within bounds, dv that of the row's velocity; N s and kg, or N m s and kg m²."""

    start: Float[Array, " k"]
    stiffness: Float[Array, " k"]
    lower: Float[Array, " k"]
    upper: Float[Array, " k"]
    velocities: tuple[int, ...] = eqx.field(static=True)  # the velocity of each row

    def motion(self, dv: Float[Array, " nv"]) -> Float[Array, " k"]:
        """dv of each row."""
        return take(dv, list(self.velocities), 0)

    def impulse(self, motion: Float[Array, " k"]) -> Float[Array, " k"]:
        """At a bound itself the derivative is that of the inside; where both bounds are one there is no inside."""
        free = self.start - self.stiffness * motion
        inside = jnp.where(self.lower < self.upper, free, 0.5 * (self.lower + self.upper))
        return jnp.where(free > self.upper, self.upper, jnp.where(free < self.lower, self.lower, inside))

    def slope(self, motion: Float[Array, " k"]) -> Float[Array, " k"]:
        """-d impulse / d motion."""
        free = self.start - self.stiffness * motion
        is_inside = (free <= self.upper) & (free >= self.lower) & (self.lower < self.upper)
        return jnp.where(is_inside, self.stiffness, 0.0)

    def generalized(self, x: Float[Array, " k"], num_velocities: int) -> Float[Array, " nv"]:
        """Numbers of the rows added up at their velocities."""
        return dot_with_mask(x, np.array(self.velocities)[:, None] == np.arange(num_velocities), 0)


def join_rows(groups: Sequence[BoxRows | None]) -> BoxRows | None:
    """All rows; None where there are none."""
    groups = [group for group in groups if group is not None and group.velocities]
    if not groups:
        return None

    def joined(name: str) -> Array:
        return ca.concatenate([getattr(group, name) for group in groups], 0)

    velocities = tuple(velocity for group in groups for velocity in group.velocities)
    return BoxRows(joined("start"), joined("stiffness"), joined("lower"), joined("upper"), velocities)
