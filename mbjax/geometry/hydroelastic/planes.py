"""Linear functions of position, and the planes where they are zero; components first."""

from typing import NamedTuple

from jaxtyping import Array, Float


class Planes(NamedTuple):
    """Functions slope · x + at_origin, positive on the inner side of the planes."""

    slope: Float[Array, "3 *n"]
    at_origin: Float[Array, "*n"]

    def at(self, points: Float[Array, "3 *m"]) -> Float[Array, "..."]:
        """Values at points; axes after the components broadcast."""
        x, y, z = points[0], points[1], points[2]
        return self.slope[0] * x + self.slope[1] * y + self.slope[2] * z + self.at_origin
