"""Kinds of numbers that have names, such as mass or joint friction: how they are read and written."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.model import MultibodyModel, set_joint_friction
from mbjax.spatial import (
    central_second_moment,
    point_mass_unit_inertia,
    quaternion_exp,
    quaternion_multiply,
    unit_inertia_of_second_moment,
)

from .named_numbers import Places, joint_labels


@dataclasses.dataclass(frozen=True)
class NumberKind:
    """Numbers of one leaf, by element. Subclasses read or write other numbers than the leaf's own.

    `path` leads from the model to the leaf. `only_factors`: a value is a factor of the model's own, 1 in the model.
    """

    name: str
    unit: str
    path: tuple[str, ...]
    places: Callable[[MultibodyModel], Places] = dataclasses.field(compare=False)
    words: str

    only_factors: ClassVar[bool] = False

    def leaf(self, model: MultibodyModel) -> Array:
        """The leaf that holds the numbers."""
        found: Any = model
        for name in self.path:
            found = getattr(found, name)
        return found

    def prepared(self, model: MultibodyModel, at: tuple[int, ...]) -> MultibodyModel:
        """The model, made ready for other numbers at these places where its program depends on them."""
        del at
        return model

    def read(self, model: MultibodyModel, at: tuple[int, ...]) -> Float[Array, " k"]:
        """Numbers at these places."""
        return self.leaf(model).reshape(-1)[jnp.array(at)]

    def write(self, model: MultibodyModel, at: tuple[int, ...], numbers: Float[Array, " k"]) -> MultibodyModel:
        """The model with the numbers at these places replaced."""
        leaf = self.leaf(model)
        new = leaf.reshape(-1).at[jnp.array(at)].set(numbers.astype(leaf.dtype)).reshape(leaf.shape)
        return eqx.tree_at(self.leaf, model, new)


class CenterOfMassKind(NumberKind):
    """Centres of mass p_BoBcm_B; the inertia about the centre of mass stays, so the one about Bo changes."""

    def write(self, model: MultibodyModel, at: tuple[int, ...], numbers: Float[Array, " k"]) -> MultibodyModel:
        rows, old = jnp.array(rows_of(at, 3)), model.parameters
        model = super().write(model, at, numbers)
        com = model.parameters.body_com[rows]
        central = old.body_unit_inertia[rows] - point_mass_unit_inertia(old.body_com[rows])
        return with_unit_inertia(model, rows, central + point_mass_unit_inertia(com))


class SecondMomentFactors(NumberKind):
    """Factors of a body's second moments along the axes of its frame, about its centre of mass.

    A factor f along x stretches the body's mass by sqrt(f) along x. Whatever the factors > 0, a physical inertia stays
    physical. Mass and centre of mass stay.
    """

    only_factors = True

    def read(self, model: MultibodyModel, at: tuple[int, ...]) -> Float[Array, " k"]:
        return jnp.ones(len(at), model.dtype)

    def write(self, model: MultibodyModel, at: tuple[int, ...], numbers: Float[Array, " k"]) -> MultibodyModel:
        rows, parameters = jnp.array(rows_of(at, 6)), model.parameters
        com = parameters.body_com[rows]
        S = central_second_moment(com, parameters.body_unit_inertia[rows])
        places = [rows_of(at, 6).index(place // 6) * 3 + place % 6 for place in at]
        factors = jnp.ones(3 * len(rows), S.dtype).at[jnp.array(places)].set(numbers.astype(S.dtype)).reshape(-1, 3)
        stretch = factors**0.5
        S = stretch[:, :, None] * S * stretch[:, None, :]
        return with_unit_inertia(model, rows, unit_inertia_of_second_moment(com, S))


class FrameRotationKind(NumberKind):
    """Turns of frames from where the model has them: a rotation vector in the frame, in rad; zero in the model."""

    def read(self, model: MultibodyModel, at: tuple[int, ...]) -> Float[Array, " k"]:
        return jnp.zeros(len(at), model.dtype)

    def write(self, model: MultibodyModel, at: tuple[int, ...], numbers: Float[Array, " k"]) -> MultibodyModel:
        rows, leaf = rows_of(at, 4), self.leaf(model)
        places = [rows.index(place // 4) * 3 + place % 4 for place in at]
        turn = jnp.zeros(3 * len(rows), leaf.dtype).at[jnp.array(places)].set(numbers.astype(leaf.dtype))
        new = quaternion_multiply(leaf[jnp.array(rows)], quaternion_exp(turn.reshape(-1, 3)))
        return eqx.tree_at(self.leaf, model, leaf.at[jnp.array(rows)].set(new))


class SurfaceFrictionKind(NumberKind):
    """Static friction coefficients of surfaces; dynamic ones keep their ratio to them."""

    def write(self, model: MultibodyModel, at: tuple[int, ...], numbers: Float[Array, " k"]) -> MultibodyModel:
        rows, old = jnp.array(at), model.collision
        has_friction = old.static_friction[rows] > 0.0
        static = jnp.where(has_friction, old.static_friction[rows], 1.0)
        ratio = jnp.where(has_friction, old.dynamic_friction[rows] / static, 1.0)
        model = super().write(model, at, numbers)
        dynamic = model.collision.dynamic_friction.at[rows].set(ratio * numbers.astype(static.dtype))
        return eqx.tree_at(lambda m: m.collision.dynamic_friction, model, dynamic)


class JointFrictionKind(NumberKind):
    """Coulomb friction of joints; a joint without friction before gets its rows in the discrete step."""

    def prepared(self, model: MultibodyModel, at: tuple[int, ...]) -> MultibodyModel:
        for joint in model.layout.joints:
            if set(at) & set(range(joint.all_v.start, joint.all_v.stop)) and not joint.has_friction:
                model = set_joint_friction(model, joint.index, model.parameters.joint_friction[joint.all_v])
        return model


@dataclasses.dataclass(frozen=True)
class ElementKind(NumberKind):
    """Numbers of one field of one force element."""

    index: int = 0
    field: str = ""

    def leaf(self, model: MultibodyModel) -> Array:
        return getattr(model.force_elements[self.index], self.field)


def rows_of(at: tuple[int, ...], width: int) -> tuple[int, ...]:
    """Rows of a leaf with this many columns that hold the given flat places."""
    return tuple(dict.fromkeys(place // width for place in at))


def with_unit_inertia(model: MultibodyModel, rows: Array, six: Float[Array, "n 6"]) -> MultibodyModel:
    """The model with these rows of unit inertias about Bo replaced."""
    leaf = model.parameters.body_unit_inertia
    return eqx.tree_at(lambda m: m.parameters.body_unit_inertia, model, leaf.at[rows].set(six))


def element_kinds(model: MultibodyModel) -> list[ElementKind]:
    """Kinds for each number of each force element; springs in joints go by their joint.

    A second spring in a joint is `joint #2`, a third `joint #3`.
    """
    found: list[ElementKind] = []
    taken: set[tuple[str, str]] = set()  # kinds with the elements that have one
    spring = {
        "stiffness": "spring_stiffness",
        "nominal_angle": "spring_position",
        "nominal_position": "spring_position",
    }
    for i, element in enumerate(model.force_elements):
        joint = getattr(element, "joint", None)
        label = f"{type(element).__name__}{i}" if joint is None else joint_labels(model)[model.joint(joint).index]
        is_spring = type(element).__name__ in ("RevoluteSpring", "PrismaticSpring")
        fields = [
            field.name for field in dataclasses.fields(element) if eqx.is_inexact_array(getattr(element, field.name))
        ]
        names = [spring[field] if is_spring else f"force_element_{field}" for field in fields]
        label = free_label(label, names, taken)
        taken |= {(name, label) for name in names}
        for name, field in zip(names, fields, strict=True):
            size = getattr(element, field).size
            place = {label: (tuple(range(size)), ("",) if size == 1 else tuple(map(str, range(size))))}
            words = f"{field} of a {type(element).__name__}"
            found.append(ElementKind(name, "", (), lambda _, place=place: place, words, i, field))
    return found


def free_label(label: str, kinds: list[str], taken: set[tuple[str, str]]) -> str:
    """The label, with ` #2` or a higher number where an earlier element has it for one of these kinds."""
    numbered, count = label, 1
    while any((kind, numbered) in taken for kind in kinds):
        count += 1
        numbered = f"{label} #{count}"
    return numbered
