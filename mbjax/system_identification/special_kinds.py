"""Kinds of parameters whose numbers are not simply those of a leaf: inertias, placements, friction of surfaces."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.model import MultibodyModel
from mbjax.spatial import (
    central_second_moment,
    from_log_cholesky,
    log_cholesky,
    point_mass_unit_inertia,
    quaternion_conjugate,
    quaternion_exp,
    quaternion_log,
    quaternion_multiply,
    unit_inertia_of_second_moment,
)

from .kinds import Kind
from .system import System

SMALLEST_MOMENT = 1e-12  # m²; below it a body counts as a point, a rod or a sheet


class CenterOfMassKind(Kind):
    """Centres of mass p_BoBcm_B; the inertia about the centre of mass stays, so the one about Bo changes."""

    def write(self, system: System, base: System, at: tuple[int, ...], numbers: Float[Array, " k"]) -> System:
        system = super().write(system, base, at, numbers)
        old, com = base.model.parameters, system.model.parameters.body_com
        central = old.body_unit_inertia - point_mass_unit_inertia(old.body_com)
        return with_unit_inertia(system, jnp.array(rows_of(at, 3)), central + point_mass_unit_inertia(com))


class InertiaKind(Kind):
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

    def write(self, system: System, base: System, at: tuple[int, ...], numbers: Float[Array, " k"]) -> System:
        rows = jnp.array(rows_of(at, 6))
        com = system.model.parameters.body_com[rows]
        six = unit_inertia_of_second_moment(com, from_log_cholesky(numbers.reshape(-1, 6).astype(com.dtype)))
        leaf = system.model.parameters.body_unit_inertia
        return eqx.tree_at(lambda s: s.model.parameters.body_unit_inertia, system, leaf.at[rows].set(six))


class FrameRotationKind(Kind):
    """Turns of frames from where the model has them: a rotation vector in the frame, in rad."""

    def raw(self, system: System, base: System, at: tuple[int, ...]) -> Float[Array, " k"]:
        rows = jnp.array(rows_of(at, 4))
        turn = quaternion_multiply(quaternion_conjugate(self.leaf(base)[rows]), self.leaf(system)[rows])
        return quaternion_log(turn).reshape(-1)

    def write(self, system: System, base: System, at: tuple[int, ...], numbers: Float[Array, " k"]) -> System:
        rows, leaf = jnp.array(rows_of(at, 4)), self.leaf(base)
        turn = quaternion_exp(numbers.reshape(-1, 3).astype(leaf.dtype))
        return eqx.tree_at(self.leaf, system, self.leaf(system).at[rows].set(quaternion_multiply(leaf[rows], turn)))


class SurfaceFrictionKind(Kind):
    """Static friction coefficients of surfaces; dynamic ones keep their ratio to them."""

    def write(self, system: System, base: System, at: tuple[int, ...], numbers: Float[Array, " k"]) -> System:
        rows, old = jnp.array(at), base.model.collision
        has_friction = old.static_friction[rows] > 0.0
        static = jnp.where(has_friction, old.static_friction[rows], 1.0)
        ratio = jnp.where(has_friction, old.dynamic_friction[rows] / static, 1.0)
        system = super().write(system, base, at, numbers)
        dynamic = system.model.collision.dynamic_friction.at[rows].set(ratio * numbers.astype(static.dtype))
        return eqx.tree_at(lambda s: s.model.collision.dynamic_friction, system, dynamic)


@dataclasses.dataclass(frozen=True)
class ElementKind(Kind):
    """One number or vector of one force element."""

    index: int = 0
    field: str = ""

    def leaf(self, system: System) -> Array:
        return getattr(system.model.force_elements[self.index], self.field)


def rows_of(at: tuple[int, ...], width: int) -> tuple[int, ...]:
    """Rows of a leaf with this many columns that hold the given flat places."""
    return tuple(dict.fromkeys(place // width for place in at))


def with_unit_inertia(system: System, rows: Array, six: Float[Array, "n 6"]) -> System:
    """The system with these rows of unit inertias about Bo."""
    leaf = system.model.parameters.body_unit_inertia
    return eqx.tree_at(lambda s: s.model.parameters.body_unit_inertia, system, leaf.at[rows].set(six[rows]))


def element_kinds(model: MultibodyModel) -> list[tuple[ElementKind, str]]:
    """Kinds for each number of each force element, and the element's name; joint springs go by their joint."""
    found = []
    for i, element in enumerate(model.force_elements):
        joint = getattr(element, "joint", None)
        label = f"{type(element).__name__}{i}" if joint is None else model.joint_names[model.joint(joint).index]
        for field in dataclasses.fields(element):
            leaf = getattr(element, field.name)
            if not eqx.is_inexact_array(leaf):
                continue
            components = ("",) if leaf.size == 1 else tuple(str(k) for k in range(leaf.size))
            place = {label: (tuple(range(leaf.size)), components)}
            spring = {"stiffness": "spring_stiffness", "nominal_angle": "spring_position"}
            spring["nominal_position"] = "spring_position"
            is_spring = type(element).__name__ in ("RevoluteSpring", "PrismaticSpring")
            name = spring[field.name] if is_spring else f"force_element_{field.name}"
            found.append((ElementKind(name, "", (), lambda _, place=place: place, index=i, field=field.name), label))
    return found
