"""What the elements of a model are called in a file, which may have one space of names where a model has several."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from mbjax.joints import JOINT_KINDS
from mbjax.model import DeformableBodyInfo
from mbjax.model.model_layout import FrameInfo, ModelLayout

from ..notes.write_notes import WriteNotes
from .contact_shapes import unique_name
from .robot_records import WORLD

DEFAULT_NAME = "robot"  # of elements that were added without a model instance
DEFAULT_INSTANCE = 1
DELIMITER = "::"
KINDS = ("body", "joint", "frame", "actuator", "deformable")


def unchanged(name: str) -> str:
    """The name: the format has no names of its own."""
    return name


@dataclasses.dataclass(frozen=True)
class NameRules:
    """`is_flat`: the file holds one robot, whatever instances the model has. Kinds in `shared` share their names.

    `allowed` gives the nearest name that an element may have in the format.
    """

    is_flat: bool
    shared: tuple[str, ...]
    allowed: Callable[[str], str] = unchanged


class Names:
    """Names of elements by kind and index; those that a file cannot have twice are changed."""

    def __init__(
        self, layout: ModelLayout, rules: NameRules, notes: WriteNotes, deformables: Sequence[DeformableBodyInfo] = ()
    ):
        self.layout, self.is_flat = layout, rules.is_flat
        with_bodies = {body.model_instance for body in (*layout.bodies, *deformables)}
        used = [i for i in range(1, len(layout.instance_names)) if i in with_bodies]
        self.instances = used or [DEFAULT_INSTANCE]
        self.of_instances = {i: self._allowed_instance(i, rules, notes) for i in range(len(layout.instance_names))}
        self.of_instances[DEFAULT_INSTANCE] = unique_name(DEFAULT_NAME, dict.fromkeys(layout.instance_names, 0))
        self.robot = self.of_instances[self.instances[0]] if len(self.instances) == 1 else DEFAULT_NAME
        self._names: dict[tuple[str, int], str] = {("body", 0): WORLD}
        self._taken: dict[tuple[int, str], dict[str, int]] = {}
        self._rules, self._notes = rules, notes
        self._of_readers = {
            f"{rules.allowed(joint.name)}_{side}" for joint in layout.joints for side in ("parent", "child")
        }
        elements: dict[str, tuple[Any, ...]] = {
            "body": layout.bodies[1:],
            "joint": layout.joints,
            "frame": tuple(f for f in layout.frames if not f.is_body_frame),
            "actuator": layout.actuators,
            "deformable": tuple(deformables),
        }
        for kind, members in elements.items():
            for element in members:
                self._names[kind, element.index] = self._free_name(kind, element)
        if rules.is_flat and len(self.instances) > 1:
            names = ", ".join(f"'{self.of_instances[i]}'" for i in self.instances)
            notes.ignored("model instances", f"{names}: {notes.format_name} holds one robot, in which all of them are")

    def _allowed_instance(self, instance: int, rules: NameRules, notes: WriteNotes) -> str:
        """The name of a model instance, each part of `outer::inner` by itself."""
        own = self.layout.instance_names[instance]
        name = DELIMITER.join(map(rules.allowed, own.split(DELIMITER)))
        if name != own and instance in self.instances:
            notes.repaired(
                f"model instance '{own}'", f"written as '{name}', since {notes.format_name} reserves the name"
            )
        return name

    def _free_name(self, kind: str, element: Any) -> str:
        scope = 0 if self.is_flat else element.model_instance
        space = "element" if kind in self._rules.shared else kind
        taken = self._taken.setdefault((scope, space), {WORLD: 0})
        name = self._rules.allowed(element.name)
        if kind == "frame" and name in self._of_readers:
            return unique_name(f"{name}_frame", taken)
        if kind == "joint" and JOINT_KINDS[element.kind].is_floating and not self.is_flat:
            return name  # which no SDFormat file has
        is_allowed = name == element.name
        if name in taken and self.is_flat and len(self.instances) > 1:
            name = f"{self.of_instances[element.model_instance]}_{name}"
        elif name in taken:
            name = f"{name}_{kind}"
        name = unique_name(name, taken)
        if name != element.name:
            why = "the file has another element of that name"
            why = why if is_allowed else f"{self._notes.format_name} reserves its name"
            message = f"written as '{name}': {why}"
            self._notes.repaired(f"{kind} '{element.scoped_name}'", message)
        return name

    def is_made_by_readers(self, frame: FrameInfo) -> bool:
        """Whether reading a joint makes that frame: it is one of the joint's and is named after it."""
        joints = [j for j in self.layout.joints if frame.index in (j.parent_frame, j.child_frame)]
        return any(frame.name in (f"{joint.name}_parent", f"{joint.name}_child") for joint in joints)

    def local(self, kind: str, index: int) -> str:
        """An element's name in its own robot."""
        return self._names[kind, index]

    def seen_from(self, instance: int, kind: str, index: int) -> str:
        """An element's name in the robot of an instance: its own, or `robot::name`."""
        name = self._names[kind, index]
        elements = {"body": self.layout.bodies, "joint": self.layout.joints, "frame": self.layout.frames}
        element = elements[kind][index]
        owner, is_of_world = element.model_instance, kind == "frame" and element.body == 0
        if self.is_flat or owner in (instance, 0) or is_of_world:
            return name
        return f"{self.of_instances[owner]}::{name}"
