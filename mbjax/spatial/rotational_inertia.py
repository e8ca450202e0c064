"""RotationalInertia (kg m^2), and the base class that it shares with UnitInertia (m^2)."""

from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Bool, Float

from .checked_arrays import VectorLike, as_float_arrays, require_shape
from .inertia_kernels import (
    point_mass_unit_inertia,
    re_express_rotational_inertia,
    rotational_inertia_from_matrix,
    rotational_inertia_matrix,
)
from .inertia_validity import concrete_array, principal_moments, rotational_inertia_report
from .small_matrices import small_matvec

InertiaT = TypeVar("InertiaT", bound="AbstractInertia")


def moments_and_products(*entries: ArrayLike) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
    """Vectors [Ixx, Iyy, Izz] and [Ixy, Ixz, Iyz] of six scalar entries."""
    if any(isinstance(entry, jax.Array) for entry in entries):
        six = jnp.stack(as_float_arrays(*entries))
    else:
        six = np.stack([np.asarray(entry) for entry in entries]).astype(jnp.result_type(float, *entries))
    if six.shape != (6,):
        raise ValueError(
            f"Moments and products of inertia must be six scalars, got shape {six.shape}. Build batches with jax.vmap."
        )
    return jnp.asarray(six[:3], six.dtype), jnp.asarray(six[3:], six.dtype)


class AbstractInertia(eqx.Module):
    """Six numbers of a symmetric 3x3 inertia about a point P, expressed in a frame E.

    `moments` is [Ixx, Iyy, Izz], `products` is [Ixy, Ixz, Iyz], the matrix entries themselves.
    Nothing is checked on construction; ask `physical_validity_report()`.
    """

    moments: Float[Array, "3"]
    products: Float[Array, "3"]

    @classmethod
    def from_moments_products(cls: type[InertiaT], moments_products: VectorLike) -> InertiaT:
        """Inertia of the six numbers [Ixx, Iyy, Izz, Ixy, Ixz, Iyz]."""
        (entries,) = as_float_arrays(moments_products)
        require_shape("from_moments_products: the moments and products", entries, 6)
        xx, yy, zz, xy, xz, yz = (entries[i] for i in range(6))
        return cls(xx, yy, zz, xy, xz, yz)  # pyright: ignore[reportCallIssue]

    @classmethod
    def from_matrix(cls: type[InertiaT], matrix: Float[ArrayLike, "3 3"]) -> InertiaT:
        """Inertia of a symmetric matrix, of which the upper triangle is read."""
        entries = require_shape("from_matrix: the matrix", jnp.asarray(matrix), 3, 3)
        return cls.from_moments_products(rotational_inertia_from_matrix(entries))

    @classmethod
    def triaxially_symmetric(cls: type[InertiaT], moment: ArrayLike) -> InertiaT:
        """Equal moments about every axis through P, as for a sphere or a cube about its centre."""
        (m,) = as_float_arrays(moment)
        zero = jnp.zeros_like(m)
        return cls.from_moments_products(jnp.stack([m, m, m, zero, zero, zero]))

    @classmethod
    def zero(cls: type[InertiaT], dtype: DTypeLike | None = None) -> InertiaT:
        """Inertia whose six numbers are zero."""
        return cls.from_moments_products(jnp.zeros(6, dtype=dtype))

    @classmethod
    def nan(cls: type[InertiaT], dtype: DTypeLike | None = None) -> InertiaT:
        """Inertia whose six numbers are NaN, to mark values not yet known."""
        return cls.from_moments_products(jnp.full(6, jnp.nan, dtype=dtype))

    def moments_products(self) -> Float[Array, "6"]:
        """Six numbers [Ixx, Iyy, Izz, Ixy, Ixz, Iyz], the form that the inertia kernels take."""
        return jnp.concatenate([self.moments, self.products])

    def copy_to_full_matrix3(self) -> Float[Array, "3 3"]:
        """Symmetric 3x3 matrix."""
        return rotational_inertia_matrix(self.moments_products())

    def trace(self) -> Float[Array, ""]:
        """Trace Ixx + Iyy + Izz, equal in every frame."""
        return jnp.sum(self.moments)

    def re_express(self: InertiaT, R_AE: Float[Array, "3 3"]) -> InertiaT:
        """Re-expresses the inertia in frame A, about the same point: R I R^T."""
        six = re_express_rotational_inertia(R_AE, self.moments_products())
        return type(self).from_moments_products(six)

    def is_nan(self) -> Bool[Array, ""]:
        """Whether any of the six numbers is NaN; may be traced."""
        return jnp.any(jnp.isnan(self.moments_products()))

    def is_zero(self) -> Bool[Array, ""]:
        """Whether all six numbers are exactly zero; may be traced."""
        return jnp.all(self.moments_products() == 0.0)

    def astype(self: InertiaT, dtype: DTypeLike) -> InertiaT:
        """Converts the six numbers to another floating dtype."""
        return type(self).from_moments_products(self.moments_products().astype(dtype))

    def calc_principal_moments(self) -> np.ndarray:
        """Principal moments in ascending order, as NumPy numbers.

        Concrete values only: eigenvalues of an inertia with equal moments have no Hessian, and its
        eigenvectors no derivative, so they are kept out of differentiable code.
        """
        return principal_moments(concrete_array(self.moments_products(), "calc_principal_moments"))

    def physical_validity_report(self) -> str | None:
        """Says why no body can have this inertia about any point, or None if one can. Concrete values only."""
        six = concrete_array(self.moments_products(), "physical_validity_report")
        epsilon = float(jnp.finfo(self.moments.dtype).eps)
        return rotational_inertia_report(six, epsilon, 0.0, "the given point")

    def could_be_physically_valid(self) -> bool:
        """Whether the inertia meets necessary conditions, sufficient about a centre of mass. Concrete values only."""
        return self.physical_validity_report() is None

    def __add__(self: InertiaT, other: InertiaT) -> InertiaT:
        """Inertia of two bodies together, about the same point and in the same frame."""
        if type(other) is not type(self):
            return NotImplemented
        return type(self).from_moments_products(self.moments_products() + other.moments_products())

    def __sub__(self: InertiaT, other: InertiaT) -> InertiaT:
        """Inertia of a body without a part, about the same point and in the same frame."""
        if type(other) is not type(self):
            return NotImplemented
        return type(self).from_moments_products(self.moments_products() - other.moments_products())

    def __matmul__(self, w_E: Float[Array, "3"]) -> Float[Array, "3"]:
        """Product I w with an angular velocity or acceleration."""
        return small_matvec(self.copy_to_full_matrix3(), w_E)


class RotationalInertia(AbstractInertia):
    """Rotational inertia I_SP_E of a body S about a point P, expressed in E, in kg m^2."""

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

    def shift_from_center_of_mass(
        self, mass: Float[Array, ""] | float, p_ScmQ_E: Float[Array, "3"]
    ) -> "RotationalInertia":
        """Shifts this central inertia I_SScm_E to a point Q: I_SQ_E (parallel axis theorem)."""
        return RotationalInertia.from_moments_products(
            self.moments_products() + mass * point_mass_unit_inertia(p_ScmQ_E)
        )

    def shift_to_center_of_mass(
        self, mass: Float[Array, ""] | float, p_QScm_E: Float[Array, "3"]
    ) -> "RotationalInertia":
        """Shifts this inertia I_SQ_E to the centre of mass: I_SScm_E (parallel axis theorem)."""
        return RotationalInertia.from_moments_products(
            self.moments_products() - mass * point_mass_unit_inertia(p_QScm_E)
        )

    def __mul__(self, factor: Any) -> "RotationalInertia":
        """Scales the inertia, as for a body of the same shape with `factor` times the mass."""
        return RotationalInertia.from_moments_products(self.moments_products() * factor)

    __rmul__ = __mul__
