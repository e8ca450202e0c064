"""Queries of a plant while it is built: elements by name, counts, bodies welded together."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mbjax.errors import ModelError
from mbjax.joints import AbstractJoint, WeldJoint
from mbjax.model import (
    AbstractConstraint,
    AbstractForceElement,
    Body,
    Frame,
    JointActuator,
    LoadReport,
    MultibodyModel,
)
from mbjax.model.element_queries import ElementQueries
from mbjax.model.lookup import Named, checked_index
from mbjax.model.topology_graphviz import topology_graphviz_string

from .contact_settings import ContactSettings
from .declarations import CollisionExclusion, DeclaredKeyframe, Mimic, RegisteredCollision


class PlantQueries(ElementQueries):
    """What a plant holds, and queries of its elements: as objects, by name (`"arm"`, `"instance::arm"`) or index."""

    time_step: float
    gravity: np.ndarray
    instance_names: list[str]
    gravity_enabled: list[bool]
    bodies: list[Body]
    frames: list[Frame]
    joints: list[AbstractJoint]
    actuators: list[JointActuator]
    force_elements: list[AbstractForceElement]
    constraints: list[AbstractConstraint]
    mimics: list[Mimic]
    collisions: list[RegisteredCollision]
    collision_exclusions: list[CollisionExclusion]
    contact_kept: tuple[tuple[str, str], ...]  # pairs of names; empty: all pairs that the filters allow
    contact_settings: ContactSettings
    instances_that_list_contacts: set[int]
    default_free_poses: dict[int, Any]
    free_poses_of_files: dict[int, Any]  # where files put bodies, if these turn out to float
    random_distributions: list[tuple[Callable[..., MultibodyModel], AbstractJoint | Body, tuple[Any, ...]]]
    keyframes: list[DeclaredKeyframe]
    report: LoadReport
    names: set[tuple[str, int, str]]  # what, model instance, name
    world_frame: Frame
    _body_frame: dict[int, Frame]

    def _elements(self, what: str) -> Sequence[Named]:
        return {"body": self.bodies, "frame": self.frames, "joint": self.joints, "actuator": self.actuators}[what]

    def _instance_names(self) -> Sequence[str]:
        return self.instance_names

    @property
    def is_discrete(self) -> bool:
        return self.time_step > 0.0

    def body(self, body: Body | str | int, call: str = "", *, model_instance: str | int | None = None) -> Body:
        """Finds a body; `call` begins error messages."""
        return self._element("body", body, self.bodies, Body, call, model_instance)

    def frame(
        self, frame: Frame | Body | str | int, call: str = "", *, model_instance: str | int | None = None
    ) -> Frame:
        """Finds a frame; a body stands for its own frame."""
        if isinstance(frame, Body):
            return self._body_frame[self.body(frame, call, model_instance=model_instance).index]
        return self._element("frame", frame, self.frames, Frame, call, model_instance)

    def joint(
        self, joint: AbstractJoint | str | int, call: str = "", *, model_instance: str | int | None = None
    ) -> AbstractJoint:
        """Finds a joint; floating joints of free bodies exist after finalize only."""
        return self._element("joint", joint, self.joints, AbstractJoint, call, model_instance)

    def actuator(
        self, actuator: JointActuator | str | int, call: str = "", *, model_instance: str | int | None = None
    ) -> JointActuator:
        """Finds a joint actuator."""
        return self._element("actuator", actuator, self.actuators, JointActuator, call, model_instance)

    def force_element(self, index: int) -> AbstractForceElement:
        """The force element with this index, in the order they were added."""
        return self.force_elements[checked_index("force element", index, len(self.force_elements))]

    @property
    def num_force_elements(self) -> int:
        """Number of force elements; gravity, which Drake counts, and joint damping are parameters here."""
        return len(self.force_elements)

    @property
    def num_visual_geometries(self) -> int:
        return sum(len(body.visual) for body in self.bodies)

    @property
    def num_collision_geometries(self) -> int:
        return sum(len(body.collision) for body in self.bodies)

    def is_gravity_enabled(self, model_instance: str | int) -> bool:
        """Whether the bodies of a model instance feel gravity."""
        return self.gravity_enabled[self.model_instance_index(model_instance)]

    def bodies_welded_to(self, body: Body | str | int) -> tuple[int, ...]:
        """Indices of all bodies rigidly connected to a body so far, itself included."""
        welded = {self.body(body).index}
        pairs = [(j.parent.body.index, j.child.body.index) for j in self.joints if isinstance(j, WeldJoint)]
        while reached := {i for pair in pairs for i in pair if welded & set(pair)} - welded:
            welded |= reached
        return tuple(sorted(welded))

    def topology_graphviz_string(self) -> str:
        """Text for Graphviz's `dot`: bodies by model instance and the joints between them, as Drake draws them."""
        edges = [(j.name, j.kind, j.parent.body.index, j.child.body.index) for j in self.joints]
        return topology_graphviz_string(self.instance_names, self.bodies, edges)

    def _element(self, what: str, key: Any, elements: list, kind: type, call: str, model_instance: Any) -> Any:
        if not isinstance(key, kind):
            return elements[self._find(what, key, model_instance, call)]
        if not (0 <= key.index < len(elements)) or elements[key.index] is not key:
            raise ModelError(f"{call or what}: {what} '{key.name}' belongs to another plant.")
        self._find(what, key.index, model_instance, call)
        return key
