"""Kinds of parameters: those of `mbjax.parameters` and of sensors, with the numbers that a fit moves for them."""

import dataclasses
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.parameters import NumberKind
from mbjax.parameters.number_kinds import rows_of, with_unit_inertia
from mbjax.spatial import (
    central_second_moment,
    from_log_cholesky,
    log_cholesky,
    point_mass_unit_inertia,
    quaternion_conjugate,
    quaternion_log,
    quaternion_multiply,
    unit_inertia_of_second_moment,
)

from .system import System

SMALLEST_MOMENT = 1e-12  # m²; below it a body counts as a point, a rod or a sheet


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of numbers in one part of a `System`, its model or its sensors, and a typical change of them."""

    of: NumberKind
    part: str = "model"
    scale: float = 1.0  # in the unit

    only_physical: ClassVar[bool] = False  # the numbers of an element belong together

    @property
    def name(self) -> str:
        return self.of.name

    @property
    def unit(self) -> str:
        return self.of.unit

    def raw(self, system: System, base: System, at: tuple[int, ...]) -> Float[Array, " k"]:
        """The numbers that `write` takes; `base` is the system before the fit."""
        del base
        return self.of.read(getattr(system, self.part), at)

    def read(self, system: System, base: System, at: tuple[int, ...]) -> Float[Array, " k"]:
        """Values in the kind's unit."""
        return self.raw(system, base, at)

    def write(self, system: System, at: tuple[int, ...], numbers: Float[Array, " k"]) -> System:
        """The system with these numbers replaced, of one whose numbers of this kind are still those of the base."""
        changed: Any = self.of.write(getattr(system, self.part), at, numbers)
        return dataclasses.replace(system, **{self.part: changed})


class LogCholeskyInertia(Kind):
    """Rotational inertias about the centre of mass in the body's frame, in kg m²: xx, yy, zz, xy, xz, yz.

    Written by the six log-Cholesky numbers of the second moment per mass (`mbjax.spatial.log_cholesky`), which with
    the logarithm of the mass and the centre of mass are the ten of Rucker and Wensing (2022), up to scale.
    """

    only_physical = True

    def raw(self, system: System, base: System, at: tuple[int, ...]) -> Float[Array, " k"]:
        rows, parameters = jnp.array(rows_of(at, 6)), system.model.parameters
        S = central_second_moment(parameters.body_com[rows], parameters.body_unit_inertia[rows])
        smallest = jnp.full(S.shape[:-2], SMALLEST_MOMENT, S.dtype)
        return log_cholesky(S, smallest)[0].reshape(-1)

    def read(self, system: System, base: System, at: tuple[int, ...]) -> Float[Array, " k"]:
        rows, parameters = jnp.array(rows_of(at, 6)), system.model.parameters
        central = parameters.body_unit_inertia[rows] - point_mass_unit_inertia(parameters.body_com[rows])
        return (parameters.body_mass[rows][:, None] * central).reshape(-1)

    def write(self, system: System, at: tuple[int, ...], numbers: Float[Array, " k"]) -> System:
        rows = jnp.array(rows_of(at, 6))
        com = system.model.parameters.body_com[rows]
        six = unit_inertia_of_second_moment(com, from_log_cholesky(numbers.reshape(-1, 6).astype(com.dtype)))
        return dataclasses.replace(system, model=with_unit_inertia(system.model, rows, six))


class FrameTurn(Kind):
    """Turns of frames from where the model has them: a rotation vector in the frame, in rad."""

    def raw(self, system: System, base: System, at: tuple[int, ...]) -> Float[Array, " k"]:
        rows = rows_of(at, 4)
        before, after = (self.of.leaf(s.model)[jnp.array(rows)] for s in (base, system))
        vectors = quaternion_log(quaternion_multiply(quaternion_conjugate(before), after)).reshape(-1)
        return vectors[jnp.array([rows.index(place // 4) * 3 + place % 4 for place in at])]
