"""SpatialInertia M_SP_E: mass, centre of mass and unit inertia of a body about one point."""

import equinox as eqx
import jax.core
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Bool, Float

from .checked_arrays import VectorLike, as_float_arrays, require_shape
from .inertia_kernels import (
    re_express_rotational_inertia,
    shift_unit_inertia,
    spatial_inertia_matrix,
    spatial_inertia_times_vector,
)
from .inertia_validity import concrete_array, spatial_inertia_report
from .rotational_inertia import RotationalInertia
from .safe_math import safe_divide, safe_normalize
from .small_matrices import cross3, small_matvec
from .unit_inertia import UnitInertia


class SpatialInertia(eqx.Module):
    """Mass properties of a body or composite body S about a point P, expressed in a frame E.

    `mass` in kg, `com` = p_PScm_E in m from P to the centre of mass, `unit_inertia` = G_SP_E in
    m^2 about P (not about the centre of mass). As a 6x6 matrix, rotation first:
    M_SP_E = [[m G, m [com]x], [-m [com]x, m 1]]  (Jain 2010, section 2.1).

    The constructor raises ValueError when concrete numbers are not physically possible, unless
    `skip_validity_check`; traced values cannot be checked. Shifting, adding and transforming
    never check. One element: build batches with `jax.vmap`.
    """

    mass: Float[Array, ""]
    com: Float[Array, "3"]
    unit_inertia: UnitInertia

    def __init__(
        self,
        mass: ArrayLike,
        p_PScm_E: VectorLike,
        G_SP_E: UnitInertia,
        skip_validity_check: bool = False,
    ):
        G = G_SP_E.moments, G_SP_E.products
        self.mass, self.com, moments, products = as_float_arrays(mass, p_PScm_E, *G)
        if self.mass.shape != () or self.com.shape != (3,):
            raise ValueError(
                "SpatialInertia: mass must be a scalar and p_PScm_E have shape (3,), got "
                f"{self.mass.shape} and {self.com.shape}. Build batches with jax.vmap."
            )
        same = moments.dtype == G[0].dtype
        self.unit_inertia = G_SP_E if same else UnitInertia(*moments, *products)
        leaves = [self.mass, self.com, moments, products]
        if skip_validity_check or any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            return
        problem = self.physical_validity_report()
        if problem is not None:
            raise ValueError(
                f"SpatialInertia: {problem}. Correct the numbers (the unit inertia is about P, "
                "not about the centre of mass), or pass skip_validity_check=True."
            )

    @staticmethod
    def from_central_inertia(
        mass: ArrayLike,
        p_PScm_E: VectorLike,
        I_SScm_E: RotationalInertia,
        skip_validity_check: bool = False,
    ) -> "SpatialInertia":
        """Spatial inertia from the rotational inertia about the centre of mass, in kg m^2.

        With zero mass the unit inertia is that of a particle at the centre of mass.
        """
        G_SScm_E = UnitInertia.from_rotational_inertia(I_SScm_E, mass)
        m, com, six = as_float_arrays(mass, p_PScm_E, G_SScm_E.moments_products())
        G_SP_E = UnitInertia.from_moments_products(six).shift_from_center_of_mass(com)
        return SpatialInertia(m, com, G_SP_E, skip_validity_check)

    @staticmethod
    def zero(dtype: DTypeLike | None = None) -> "SpatialInertia":
        """Spatial inertia with zero mass, centre of mass and unit inertia."""
        zero = jnp.zeros(3, dtype=dtype)
        return SpatialInertia(zero[0], zero, UnitInertia.zero(dtype), True)

    @staticmethod
    def nan(dtype: DTypeLike | None = None) -> "SpatialInertia":
        """Spatial inertia whose numbers are NaN, to mark values not yet known (Drake's default constructor)."""
        nan = jnp.full(3, jnp.nan, dtype=dtype)
        return SpatialInertia(nan[0], nan, UnitInertia.nan(dtype), True)

    def calc_com_moment(self) -> Float[Array, "3"]:
        """First moment mass * p_PScm_E, in kg m."""
        return self.mass * self.com

    def calc_rotational_inertia(self) -> RotationalInertia:
        """Rotational inertia I_SP_E = mass * G_SP_E about P, in kg m^2."""
        return self.unit_inertia * self.mass

    def calc_central_rotational_inertia(self) -> RotationalInertia:
        """Rotational inertia I_SScm_E about the centre of mass, in kg m^2."""
        return self.unit_inertia.shift_to_center_of_mass(self.com) * self.mass

    def copy_to_full_matrix6(self) -> Float[Array, "6 6"]:
        """Spatial mass matrix (6, 6), rotation first."""
        return spatial_inertia_matrix(self.mass, self.com, self.unit_inertia.moments_products())

    def is_nan(self) -> Bool[Array, ""]:
        """Whether any number is NaN; may be traced."""
        return jnp.isnan(self.mass) | jnp.any(jnp.isnan(self.com)) | self.unit_inertia.is_nan()

    def is_zero(self) -> Bool[Array, ""]:
        """Whether all numbers are exactly zero; may be traced."""
        return (self.mass == 0.0) & jnp.all(self.com == 0.0) & self.unit_inertia.is_zero()

    def physical_validity_report(self) -> str | None:
        """Says why no body can have these mass properties, or None if one can. Concrete values only.

        Checked: NaN, negative mass, and about the centre of mass negative moments and the triangle
        inequality, for diagonal and principal moments, to rounding (16 epsilon of the dtype).
        """
        caller = "physical_validity_report"
        mass = concrete_array(self.mass, caller)
        com = concrete_array(self.com, caller)
        six = np.concatenate(
            [concrete_array(part, caller) for part in (self.unit_inertia.moments, self.unit_inertia.products)]
        )
        return spatial_inertia_report(mass, com, six, float(jnp.finfo(self.mass.dtype).eps))

    def is_physically_valid(self) -> bool:
        """Whether some mass distribution has these properties. Concrete values only."""
        return self.physical_validity_report() is None

    def re_express(self, R_AE: Float[Array, "3 3"]) -> "SpatialInertia":
        """Re-expresses the inertia in frame A, about the same point P."""
        six = re_express_rotational_inertia(R_AE, self.unit_inertia.moments_products())
        com = small_matvec(R_AE, self.com)
        return SpatialInertia(self.mass, com, UnitInertia.from_moments_products(six), True)

    def shift(self, p_PQ_E: Float[Array, "3"]) -> "SpatialInertia":
        """Shifts the inertia from point P to point Q (parallel axis theorem)."""
        p_QScm_E = self.com - require_shape("shift: p_PQ_E", jnp.asarray(p_PQ_E, self.com.dtype), 3)
        six = shift_unit_inertia(self.unit_inertia.moments_products(), self.com, p_QScm_E)
        return SpatialInertia(self.mass, p_QScm_E, UnitInertia.from_moments_products(six), True)

    def __add__(self, other: "SpatialInertia") -> "SpatialInertia":
        """Inertia of both bodies as one composite body, about the same point P and in the same frame E.

        When both masses are zero the centres and unit inertias are averaged, as in Drake. There
        the derivative of the first moment mass * com with respect to a mass is not exact: code
        that must differentiate through massless bodies adds masses, first moments and rotational
        inertias instead.
        """
        if not isinstance(other, SpatialInertia):
            return NotImplemented
        total = self.mass + other.mass
        share = safe_divide(self.mass, total, at_zero=0.5)
        other_share = safe_divide(other.mass, total, at_zero=0.5)
        com = share * self.com + other_share * other.com
        own_six = self.unit_inertia.moments_products()
        six = share * own_six + other_share * other.unit_inertia.moments_products()
        return SpatialInertia(total, com, UnitInertia.from_moments_products(six), True)

    def __mul__(self, A_E: Float[Array, "6"]) -> Float[Array, "6"]:
        """Product of M_SP_E with a spatial acceleration (a force) or a spatial velocity (a momentum)."""
        six = self.unit_inertia.moments_products()
        return spatial_inertia_times_vector(self.mass, self.com, six, A_E)

    def astype(self, dtype: DTypeLike) -> "SpatialInertia":
        """Converts all numbers to another floating dtype (Drake's cast)."""
        unit_inertia = self.unit_inertia.astype(dtype)
        return SpatialInertia(self.mass.astype(dtype), self.com.astype(dtype), unit_inertia, True)

    def __str__(self) -> str:
        inertia = self.calc_rotational_inertia().copy_to_full_matrix3()
        return (
            f"SpatialInertia\n mass: {self.mass} kg\n centre of mass p_PScm_E: {self.com} m\n"
            f" rotational inertia about P, I_SP_E, kg m^2:\n{inertia}"
        )

    # Solids of uniform density, named as in Drake; about their centre unless the name says
    # otherwise. Lengths in m, density in kg/m^3. A `unit_vector` is normalised.

    @staticmethod
    def point_mass(mass: ArrayLike, position: VectorLike) -> "SpatialInertia":
        """Particle at `position`, about the origin."""
        m, p = as_float_arrays(mass, position)
        return SpatialInertia(m, p, UnitInertia.point_mass(p))

    @staticmethod
    def solid_box_with_mass(mass: ArrayLike, lx: ArrayLike, ly: ArrayLike, lz: ArrayLike) -> "SpatialInertia":
        """Box of edge lengths lx, ly, lz, about its centre."""
        m, x, y, z = as_float_arrays(mass, lx, ly, lz)
        return _centered(m, UnitInertia.solid_box(x, y, z))

    @staticmethod
    def solid_box_with_density(density: ArrayLike, lx: ArrayLike, ly: ArrayLike, lz: ArrayLike) -> "SpatialInertia":
        """Box of edge lengths lx, ly, lz, about its centre."""
        rho, x, y, z = as_float_arrays(density, lx, ly, lz)
        return SpatialInertia.solid_box_with_mass(rho * x * y * z, x, y, z)

    @staticmethod
    def solid_cube_with_mass(mass: ArrayLike, length: ArrayLike) -> "SpatialInertia":
        """Cube of the given edge length."""
        m, L = as_float_arrays(mass, length)
        return _centered(m, UnitInertia.solid_cube(L))

    @staticmethod
    def solid_cube_with_density(density: ArrayLike, length: ArrayLike) -> "SpatialInertia":
        """Cube of the given edge length."""
        return SpatialInertia.solid_box_with_density(density, length, length, length)

    @staticmethod
    def solid_sphere_with_mass(mass: ArrayLike, radius: ArrayLike) -> "SpatialInertia":
        """Solid ball of the given radius, about its centre."""
        m, r = as_float_arrays(mass, radius)
        return _centered(m, UnitInertia.solid_sphere(r))

    @staticmethod
    def solid_sphere_with_density(density: ArrayLike, radius: ArrayLike) -> "SpatialInertia":
        """Solid ball of the given radius, about its centre."""
        rho, r = as_float_arrays(density, radius)
        return SpatialInertia.solid_sphere_with_mass(rho * r * r * r * (4.0 / 3.0 * jnp.pi), r)

    @staticmethod
    def hollow_sphere_with_mass(mass: ArrayLike, radius: ArrayLike) -> "SpatialInertia":
        """Thin spherical shell of the given radius, about its centre."""
        m, r = as_float_arrays(mass, radius)
        return _centered(m, UnitInertia.hollow_sphere(r))

    @staticmethod
    def hollow_sphere_with_density(area_density: ArrayLike, radius: ArrayLike) -> "SpatialInertia":
        """Thin spherical shell of the given radius, about its centre; density per area, in kg/m^2."""
        rho, r = as_float_arrays(area_density, radius)
        return SpatialInertia.hollow_sphere_with_mass(rho * r * r * (4.0 * jnp.pi), r)

    @staticmethod
    def solid_ellipsoid_with_mass(mass: ArrayLike, a: ArrayLike, b: ArrayLike, c: ArrayLike) -> "SpatialInertia":
        """Ellipsoid of semi-axes a, b, c along x, y, z."""
        m, x, y, z = as_float_arrays(mass, a, b, c)
        return _centered(m, UnitInertia.solid_ellipsoid(x, y, z))

    @staticmethod
    def solid_ellipsoid_with_density(density: ArrayLike, a: ArrayLike, b: ArrayLike, c: ArrayLike) -> "SpatialInertia":
        """Ellipsoid of semi-axes a, b, c along x, y, z."""
        rho, x, y, z = as_float_arrays(density, a, b, c)
        mass = rho * x * y * z * (4.0 / 3.0 * jnp.pi)
        return SpatialInertia.solid_ellipsoid_with_mass(mass, x, y, z)

    @staticmethod
    def solid_cylinder_with_mass(
        mass: ArrayLike, radius: ArrayLike, length: ArrayLike, unit_vector: VectorLike
    ) -> "SpatialInertia":
        """Cylinder with its axis along `unit_vector`."""
        m, r, L, axis = as_float_arrays(mass, radius, length, unit_vector)
        return _centered(m, UnitInertia.solid_cylinder(r, L, axis))

    @staticmethod
    def solid_cylinder_with_density(
        density: ArrayLike, radius: ArrayLike, length: ArrayLike, unit_vector: VectorLike
    ) -> "SpatialInertia":
        """Cylinder with its axis along `unit_vector`."""
        rho, r, L, axis = as_float_arrays(density, radius, length, unit_vector)
        return SpatialInertia.solid_cylinder_with_mass(rho * r * r * L * jnp.pi, r, L, axis)

    @staticmethod
    def solid_cylinder_with_mass_about_end(
        mass: ArrayLike, radius: ArrayLike, length: ArrayLike, unit_vector: VectorLike
    ) -> "SpatialInertia":
        """Cylinder about the centre of an end face, from which it runs along `unit_vector`."""
        m, r, L, axis = as_float_arrays(mass, radius, length, unit_vector)
        unit_inertia = UnitInertia.solid_cylinder_about_end(r, L, axis)
        return SpatialInertia(m, 0.5 * L * safe_normalize(axis), unit_inertia)

    @staticmethod
    def solid_cylinder_with_density_about_end(
        density: ArrayLike, radius: ArrayLike, length: ArrayLike, unit_vector: VectorLike
    ) -> "SpatialInertia":
        """Cylinder about the centre of an end face, from which it runs along `unit_vector`."""
        rho, r, L, axis = as_float_arrays(density, radius, length, unit_vector)
        mass = rho * r * r * L * jnp.pi
        return SpatialInertia.solid_cylinder_with_mass_about_end(mass, r, L, axis)

    @staticmethod
    def solid_capsule_with_mass(
        mass: ArrayLike, radius: ArrayLike, length: ArrayLike, unit_vector: VectorLike
    ) -> "SpatialInertia":
        """Capsule whose cylindrical part has `length`, with its axis along `unit_vector`."""
        m, r, L, axis = as_float_arrays(mass, radius, length, unit_vector)
        return _centered(m, UnitInertia.solid_capsule(r, L, axis))

    @staticmethod
    def solid_capsule_with_density(
        density: ArrayLike, radius: ArrayLike, length: ArrayLike, unit_vector: VectorLike
    ) -> "SpatialInertia":
        """Capsule whose cylindrical part has `length`, with its axis along `unit_vector`."""
        rho, r, L, axis = as_float_arrays(density, radius, length, unit_vector)
        mass = rho * jnp.pi * r * r * (L + r * (4.0 / 3.0))
        return SpatialInertia.solid_capsule_with_mass(mass, r, L, axis)

    @staticmethod
    def thin_rod_with_mass(mass: ArrayLike, length: ArrayLike, unit_vector: VectorLike) -> "SpatialInertia":
        """Thin rod along `unit_vector`."""
        m, L, axis = as_float_arrays(mass, length, unit_vector)
        return _centered(m, UnitInertia.thin_rod(L, axis))

    @staticmethod
    def thin_rod_with_mass_about_end(mass: ArrayLike, length: ArrayLike, unit_vector: VectorLike) -> "SpatialInertia":
        """Thin rod about one end, from which it runs along `unit_vector`."""
        m, L, axis = as_float_arrays(mass, length, unit_vector)
        unit_inertia = UnitInertia.straight_line(L * L / 3.0, axis)
        return SpatialInertia(m, 0.5 * L * safe_normalize(axis), unit_inertia)

    @staticmethod
    def solid_tetrahedron_about_vertex_with_density(
        density: ArrayLike, p1: VectorLike, p2: VectorLike, p3: VectorLike
    ) -> "SpatialInertia":
        """Tetrahedron about its vertex B0, from which `p1`, `p2`, `p3` run to the others."""
        origin = [0.0, 0.0, 0.0]
        return SpatialInertia.solid_tetrahedron_about_point_with_density(density, origin, p1, p2, p3)

    @staticmethod
    def solid_tetrahedron_about_point_with_density(
        density: ArrayLike, p0: VectorLike, p1: VectorLike, p2: VectorLike, p3: VectorLike
    ) -> "SpatialInertia":
        """Tetrahedron about the point A from which `p0` to `p3` run to its vertices."""
        rho, r0, r1, r2, r3 = as_float_arrays(density, p0, p1, p2, p3)
        volume = jnp.abs(jnp.sum((r1 - r0) * cross3(r2 - r0, r3 - r0))) / 6.0
        unit_inertia = UnitInertia.solid_tetrahedron_about_point(r0, r1, r2, r3)
        return SpatialInertia(rho * volume, 0.25 * (r0 + r1 + r2 + r3), unit_inertia)


def _centered(mass: Float[Array, ""], unit_inertia: UnitInertia) -> SpatialInertia:
    """Spatial inertia of a body about its own centre of mass."""
    return SpatialInertia(mass, jnp.zeros_like(unit_inertia.moments), unit_inertia)
