"""Rows that act on several velocities each: constraints."""

import equinox as eqx
from jaxtyping import Array, Float


class CoupledRows(eqx.Module):
    """impulse = start - stiffness G dv with dv = dt vdot: rows of constraints, near-rigid or springs."""

    G: Float[Array, "nc nv"]
    start: Float[Array, " nc"]
    stiffness: Float[Array, " nc"]

    def impulse(self, motion: Float[Array, " nc"]) -> Float[Array, " nc"]:
        """Impulses of the rows after the change `motion` = G dv of their velocities."""
        return self.start - self.stiffness * motion
