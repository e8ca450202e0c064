"""UnitInertia (m^2): rotational inertia per unit mass, also of common solids."""

from typing import Any

import jax.core
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from .checked_arrays import VectorLike, as_float_arrays, require_shape
from .inertia_kernels import point_mass_unit_inertia
from .rotational_inertia import (
    AbstractInertia,
    RotationalInertia,
    moments_and_products,
)
from .safe_math import safe_divide, safe_normalize


def inertia_from_second_moment(second_moment: Float[Array, "3 3"]) -> Float[Array, "6"]:
    """Inertia trace(S) 1 - S as six numbers, from the second moment S = integral of p p^T dm."""
    xx, yy, zz = (second_moment[i, i] for i in range(3))
    xy, xz, yz = second_moment[0, 1], second_moment[0, 2], second_moment[1, 2]
    return jnp.stack([yy + zz, xx + zz, xx + yy, -xy, -xz, -yz])


class UnitInertia(AbstractInertia):
    """Unit inertia G_SP_E of a body S about a point P, expressed in E, in m^2.

    I_SP_E = mass * G_SP_E. The solids below are of uniform density; each says about which point.
    A `unit_vector` may have any nonzero length: it is normalised. Lengths are not checked here;
    a negative one shows up in `physical_validity_report` or not at all, as in any even formula.
    """

    def __init__(
        self,
        Ixx: ArrayLike,
        Iyy: ArrayLike,
        Izz: ArrayLike,
        Ixy: ArrayLike = 0.0,
        Ixz: ArrayLike = 0.0,
        Iyz: ArrayLike = 0.0,
    ):
        self.moments, self.products = moments_and_products(Ixx, Iyy, Izz, Ixy, Ixz, Iyz)

    def __mul__(self, mass: Any) -> RotationalInertia:
        """Rotational inertia mass * G."""
        return RotationalInertia.from_moments_products(self.moments_products() * mass)

    __rmul__ = __mul__

    @staticmethod
    def from_rotational_inertia(inertia: RotationalInertia, mass: ArrayLike) -> "UnitInertia":
        """Unit inertia I / mass; zero for zero mass (Drake's SetFromRotationalInertia refuses that)."""
        six, m = as_float_arrays(inertia.moments_products(), mass)
        return UnitInertia.from_moments_products(safe_divide(six, m))

    def shift_from_center_of_mass(self, p_ScmQ_E: Float[Array, "3"]) -> "UnitInertia":
        """Shifts this central unit inertia G_SScm_E to a point Q: G_SQ_E."""
        six = self.moments_products() + point_mass_unit_inertia(self._offset("p_ScmQ_E", p_ScmQ_E))
        return UnitInertia.from_moments_products(six)

    def shift_to_center_of_mass(self, p_QScm_E: Float[Array, "3"]) -> "UnitInertia":
        """Shifts this unit inertia G_SQ_E to the centre of mass: G_SScm_E."""
        six = self.moments_products() - point_mass_unit_inertia(self._offset("p_QScm_E", p_QScm_E))
        return UnitInertia.from_moments_products(six)

    def _offset(self, what: str, offset: VectorLike) -> Float[Array, "3"]:
        return require_shape(what, jnp.asarray(offset, self.moments.dtype), 3)

    @staticmethod
    def point_mass(p_FQ: VectorLike) -> "UnitInertia":
        """Particle at Q, about the origin of F."""
        (p,) = as_float_arrays(p_FQ)
        require_shape("point_mass: p_FQ", p, 3)
        return UnitInertia.from_moments_products(point_mass_unit_inertia(p))

    @staticmethod
    def solid_box(Lx: ArrayLike, Ly: ArrayLike, Lz: ArrayLike) -> "UnitInertia":
        """Box of edge lengths Lx, Ly, Lz, about its centre."""
        x, y, z = as_float_arrays(Lx, Ly, Lz)
        xx, yy, zz = x * x / 12.0, y * y / 12.0, z * z / 12.0
        return UnitInertia(yy + zz, xx + zz, xx + yy)

    @staticmethod
    def solid_cube(L: ArrayLike) -> "UnitInertia":
        """Cube of edge length L, about its centre."""
        return UnitInertia.solid_box(L, L, L)

    @staticmethod
    def solid_ellipsoid(a: ArrayLike, b: ArrayLike, c: ArrayLike) -> "UnitInertia":
        """Ellipsoid of semi-axes a, b, c along x, y, z, about its centre."""
        x, y, z = as_float_arrays(a, b, c)
        xx, yy, zz = x * x / 5.0, y * y / 5.0, z * z / 5.0
        return UnitInertia(yy + zz, xx + zz, xx + yy)

    @staticmethod
    def solid_sphere(r: ArrayLike) -> "UnitInertia":
        """Ball of radius r, about its centre."""
        (radius,) = as_float_arrays(r)
        return UnitInertia.triaxially_symmetric(0.4 * radius * radius)

    @staticmethod
    def hollow_sphere(r: ArrayLike) -> "UnitInertia":
        """Thin shell of radius r, about its centre."""
        (radius,) = as_float_arrays(r)
        return UnitInertia.triaxially_symmetric(radius * radius * (2.0 / 3.0))

    @staticmethod
    def axially_symmetric(
        moment_parallel: ArrayLike, moment_perpendicular: ArrayLike, unit_vector: VectorLike
    ) -> "UnitInertia":
        """Unit inertia G = J 1 + (K - J) n n^T: K about the axis n, J about any line across it."""
        K, J, axis = as_float_arrays(moment_parallel, moment_perpendicular, unit_vector)
        require_shape("unit_vector", axis, 3)
        if not isinstance(axis, jax.core.Tracer) and not np.any(axis):
            raise ValueError("unit_vector has no length, so it gives no direction; take a vector along the axis.")
        n = safe_normalize(axis)
        x, y, z = n[0], n[1], n[2]
        difference = K - J
        moments = [J + difference * component * component for component in (x, y, z)]
        products = [difference * x * y, difference * x * z, difference * y * z]
        return UnitInertia.from_moments_products(jnp.stack(moments + products))

    @staticmethod
    def straight_line(moment_perpendicular: ArrayLike, unit_vector: VectorLike) -> "UnitInertia":
        """Mass on a line through P, with no inertia about the line and the given one across it."""
        return UnitInertia.axially_symmetric(0.0, moment_perpendicular, unit_vector)

    @staticmethod
    def thin_rod(length: ArrayLike, unit_vector: VectorLike) -> "UnitInertia":
        """Thin rod along `unit_vector`, about its centre."""
        L, axis = as_float_arrays(length, unit_vector)
        return UnitInertia.straight_line(L * L / 12.0, axis)

    @staticmethod
    def solid_cylinder(radius: ArrayLike, length: ArrayLike, unit_vector: VectorLike) -> "UnitInertia":
        """Cylinder with its axis along `unit_vector`, about its centre."""
        r, L, axis = as_float_arrays(radius, length, unit_vector)
        across = (3.0 * r * r + L * L) / 12.0
        return UnitInertia.axially_symmetric(0.5 * r * r, across, axis)

    @staticmethod
    def solid_cylinder_about_end(radius: ArrayLike, length: ArrayLike, unit_vector: VectorLike) -> "UnitInertia":
        """Cylinder with its axis along `unit_vector`, about the centre of an end face."""
        r, L, axis = as_float_arrays(radius, length, unit_vector)
        across = 0.25 * r * r + L * L / 3.0
        return UnitInertia.axially_symmetric(0.5 * r * r, across, axis)

    @staticmethod
    def solid_capsule(radius: ArrayLike, length: ArrayLike, unit_vector: VectorLike) -> "UnitInertia":
        """Cylinder of `length` with two half-balls, axis along `unit_vector`, about its centre."""
        r, L, axis = as_float_arrays(radius, length, unit_vector)
        cylinder = safe_divide(L, L + r * (4.0 / 3.0), at_zero=1.0)  # share of the mass
        ball = 1.0 - cylinder
        along = r * r * (0.5 * cylinder + 0.4 * ball)
        cylinder_across = L * L / 12.0 + 0.25 * r * r
        ball_across = 0.25 * L * L + 0.375 * L * r + 0.4 * r * r
        across = cylinder * cylinder_across + ball * ball_across
        return UnitInertia.axially_symmetric(along, across, axis)

    @staticmethod
    def solid_tetrahedron_about_vertex(p1: VectorLike, p2: VectorLike, p3: VectorLike) -> "UnitInertia":
        """Tetrahedron, about its vertex B0, from which `p1`, `p2`, `p3` run to the others."""
        origin, *vertices = as_float_arrays([0.0, 0.0, 0.0], p1, p2, p3)
        return UnitInertia.solid_tetrahedron_about_point(origin, *vertices)

    @staticmethod
    def solid_tetrahedron_about_point(p0: VectorLike, p1: VectorLike, p2: VectorLike, p3: VectorLike) -> "UnitInertia":
        """Tetrahedron, about the point A from which `p0` to `p3` run to its vertices."""
        return _uniform_simplex(jnp.stack(as_float_arrays(p0, p1, p2, p3)))

    @staticmethod
    def thin_triangle_about_point(p0: VectorLike, p1: VectorLike, p2: VectorLike) -> "UnitInertia":
        """Thin triangular plate, about the point A from which `p0` to `p2` run to its corners."""
        return _uniform_simplex(jnp.stack(as_float_arrays(p0, p1, p2)))


def _uniform_simplex(vertices: Float[Array, "n 3"]) -> UnitInertia:
    """Unit inertia of mass spread evenly over the convex hull of n independent vertices.

    integral p p^T dm = (sum_i p_i p_i^T + s s^T) / (n (n + 1)) with s = sum_i p_i.
    """
    num_vertices = vertices.shape[0]
    total = jnp.sum(vertices, axis=0)
    squares = jnp.sum(vertices[:, :, None] * vertices[:, None, :], axis=0)
    second_moment = (squares + total[:, None] * total[None, :]) / (num_vertices * (num_vertices + 1.0))
    return UnitInertia.from_moments_products(inertia_from_second_moment(second_moment))
