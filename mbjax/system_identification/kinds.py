"""Kinds of parameters, such as mass or joint friction: where their numbers stand, how they are read and written."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.joints import JOINT_KINDS
from mbjax.model import MultibodyModel

from .system import System, body_labels, unique_names, velocity_labels

Places = dict[str, tuple[tuple[int, ...], tuple[str, ...]]]  # by element: places in the flat leaf, component names


@dataclasses.dataclass(frozen=True)
class Kind:
    """Numbers of one leaf, by element. Subclasses read or write other numbers than the leaf's own."""

    name: str
    unit: str
    path: tuple[str, ...]  # of the leaf, from the `System`
    places: Callable[[MultibodyModel], Places]
    scale: float = 1.0  # a typical change, in the unit
    words: str = ""

    only_physical: ClassVar[bool] = False

    def leaf(self, system: System) -> Array:
        """The leaf that holds the numbers."""
        found: Any = system
        for name in self.path:
            found = getattr(found, name)
        return found

    def raw(self, system: System, base: System, at: tuple[int, ...]) -> Float[Array, " k"]:
        """The numbers that `write` takes."""
        del base
        return self.leaf(system).reshape(-1)[jnp.array(at)]

    def read(self, system: System, base: System, at: tuple[int, ...]) -> Float[Array, " k"]:
        """Values in the kind's unit."""
        return self.raw(system, base, at)

    def write(self, system: System, base: System, at: tuple[int, ...], numbers: Float[Array, " k"]) -> System:
        """The system with these numbers replaced."""
        del base
        leaf = self.leaf(system)
        new = leaf.reshape(-1).at[jnp.array(at)].set(numbers.astype(leaf.dtype)).reshape(leaf.shape)
        return eqx.tree_at(self.leaf, system, new)


XYZ = ("x", "y", "z")


def of_bodies(width: int, components: tuple[str, ...] = ("",)) -> Callable[[MultibodyModel], Places]:
    """Places of numbers by body, the world left out."""

    def places(model: MultibodyModel) -> Places:
        return {
            name: (tuple(range(i * width, (i + 1) * width)), components)
            for i, name in enumerate(body_labels(model)[1:])
        }

    return places


def of_joints(model: MultibodyModel) -> Places:
    """Places of numbers by direction of joints, those that mimic included."""
    labels = unique_names(model.joint_names, tuple(j.scoped_name for j in model.layout.joints))
    found = {}
    for label, joint in zip(labels, model.layout.joints, strict=True):
        rows = tuple(range(joint.all_v.start, joint.all_v.stop))
        if rows and joint.mobod > 0:
            found[label] = rows, JOINT_KINDS[joint.kind].velocity_suffixes if len(rows) > 1 else ("",)
    return found


def of_actuators(model: MultibodyModel) -> Places:
    """Places of numbers by actuator."""
    labels = unique_names(model.actuator_names, tuple(a.scoped_name for a in model.layout.actuators))
    return {label: ((i,), ("",)) for i, label in enumerate(labels)}


def of_velocities(model: MultibodyModel) -> Places:
    """Places of numbers by velocity."""
    return {label: ((i,), ("",)) for i, label in enumerate(velocity_labels(model))}


def of_frames(width: int) -> Callable[[MultibodyModel], Places]:
    """Places of numbers by frame that has a pose: those of joints are `{joint}_parent` and `{joint}_child`."""

    def places(model: MultibodyModel) -> Places:
        frames = model.layout.frames
        labels = unique_names(model.frame_names, tuple(frame.scoped_name for frame in frames))
        return {
            labels[index]: (tuple(range(row * width, row * width + 3)), XYZ)
            for row, index in enumerate(model.layout.offset_frames)
        }

    return places


def of_geometries(field: str | None) -> Callable[[MultibodyModel], Places]:
    """Places of numbers by collision geometry that may touch, of those that have the number."""

    def places(model: MultibodyModel) -> Places:
        rows = [
            i if field is None else getattr(record, field) for i, record in enumerate(model.layout.contact.geometries)
        ]
        return {
            name: ((row,), ("",)) for name, row in zip(model.collision_geometry_names, rows, strict=True) if row >= 0
        }

    return places


def of_the_whole(what: str, components: tuple[str, ...]) -> Callable[[MultibodyModel], Places]:
    """Places of numbers that there are once."""

    def places(model: MultibodyModel) -> Places:
        del model
        return {what: (tuple(range(len(components))), components)}

    return places
