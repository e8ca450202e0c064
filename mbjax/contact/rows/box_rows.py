"""Rows that act on one velocity each, with impulses between bounds: joint limits, friction, actuators that track."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.execution.arrays import dot_with_mask, take
from mbjax.spatial import component_algebra as ca


class BoxRows(eqx.Module):
    """Rows with impulse = start - stiffness dv within bounds, dv the row's change of velocity.

    Impulses and stiffnesses are in N s and kg, or N m s and kg m². With `gains` a row moves by gain times its velocity,
    as an actuator does whose joint mimics another.
    """

    start: Float[Array, " k"]
    stiffness: Float[Array, " k"]
    lower: Float[Array, " k"]
    upper: Float[Array, " k"]
    velocities: tuple[int, ...] = eqx.field(static=True)  # the velocity of each row
    gains: Float[Array, " k"] | None = None  # None: 1

    def motion(self, dv: Float[Array, " nv"]) -> Float[Array, " k"]:
        """Change of each row's velocity, from the change dv of all velocities."""
        return self.times_gains(take(dv, list(self.velocities), 0))

    def times_gains(self, x: Float[Array, " k"]) -> Float[Array, " k"]:
        """x times the gains, which map velocities to rows and impulses of rows back."""
        return x if self.gains is None else self.gains * x

    def impulse(self, motion: Float[Array, " k"]) -> Float[Array, " k"]:
        """Impulses of the rows. Exactly at a bound the derivative is the inside's; equal bounds leave no inside."""
        free = self.start - self.stiffness * motion
        inside = jnp.where(self.lower < self.upper, free, 0.5 * (self.lower + self.upper))
        return jnp.where(free > self.upper, self.upper, jnp.where(free < self.lower, self.lower, inside))

    def slope(self, motion: Float[Array, " k"]) -> Float[Array, " k"]:
        """Stiffness of the rows, -d impulse / d motion; zero at a bound."""
        free = self.start - self.stiffness * motion
        is_inside = (free <= self.upper) & (free >= self.lower) & (self.lower < self.upper)
        return jnp.where(is_inside, self.stiffness, 0.0)

    def generalized(self, x: Float[Array, " k"], num_velocities: int) -> Float[Array, " nv"]:
        """Generalized impulses: the rows' impulses added up at their velocities."""
        return dot_with_mask(self.times_gains(x), np.array(self.velocities)[:, None] == np.arange(num_velocities), 0)


def join_rows(groups: Sequence[BoxRows | None]) -> BoxRows | None:
    """The rows of all groups as one; None if there are none."""
    groups = [group for group in groups if group is not None and group.velocities]
    if not groups:
        return None

    def joined(name: str) -> Array:
        return ca.concatenate([getattr(group, name) for group in groups], 0)

    velocities = tuple(velocity for group in groups for velocity in group.velocities)
    gains = None
    if any(group.gains is not None for group in groups):
        gains = ca.concatenate([jnp.ones_like(g.start) if g.gains is None else g.gains for g in groups], 0)
    return BoxRows(joined("start"), joined("stiffness"), joined("lower"), joined("upper"), velocities, gains)
