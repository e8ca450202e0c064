"""Record of the surface where two hydroelastic geometries press on each other."""

import equinox as eqx
from jaxtyping import Array, Bool, Float, Int


class ContactSurface(eqx.Module):
    """Faces of the contact surface of geometries A and B in world frame W, in a fixed number of slots.

    A face is a convex polygon with a linear pressure. Slots where `active` is false are empty: their area and pressure
    are 0, their gradients 1, their normal is Wz, so that nothing computed of them is infinite or NaN.
    """

    centroid_W: Float[Array, "faces 3"]
    area: Float[Array, " faces"]  # m²
    normal_W: Float[Array, "faces 3"]  # unit vectors out of B and into A
    pressure: Float[Array, " faces"]  # Pa at the centroid; negative within a margin
    gradient_M: Float[Array, " faces"]  # ∇p_A·n in Pa/m, into A; inf where A is rigid
    gradient_N: Float[Array, " faces"]  # -∇p_B·n in Pa/m, into B; inf where B is rigid
    active: Bool[Array, " faces"]
    vertices_W: Float[Array, "faces corners 3"]  # counterclockwise about the normal; the last ones repeat the first
    vertex_pressure: Float[Array, "faces corners"]  # Pa at the vertices, between which the pressure is linear
    num_vertices: Int[Array, " faces"]
    left_out: Int[Array, ""]  # number of pairs of elements for which there was no slot

    @property
    def num_faces(self) -> Int[Array, ""]:
        """Number of faces that are there."""
        return self.active.sum()
