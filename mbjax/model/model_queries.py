"""Queries of a finished model besides names: its records, its tree, its forces, its limits."""

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.topology import TreeTopology

from .abstract_constraint import AbstractConstraint
from .abstract_force_element import AbstractForceElement
from .constraint_queries import ConstraintQueries
from .geometry_queries import GeometryQueries
from .lookup import Named, checked_index
from .model_layout import ActuatorInfo, BodyInfo, FrameInfo, JointInfo, ModelInstanceInfo, ModelLayout
from .parameters import MultibodyParameters
from .topology_graphviz import topology_graphviz_string


class ModelQueries(GeometryQueries, ConstraintQueries):
    """Queries of a model's records, by name or index: `model.joint("elbow").q`, `model.body("tool").is_floating`."""

    topology: TreeTopology
    layout: ModelLayout
    parameters: MultibodyParameters
    force_elements: tuple[AbstractForceElement, ...]
    constraints: tuple[AbstractConstraint, ...]

    def _elements(self, what: str) -> Sequence[Named]:
        layout = self.layout
        return {"body": layout.bodies, "frame": layout.frames, "joint": layout.joints, "actuator": layout.actuators}[
            what
        ]

    def _instance_names(self) -> Sequence[str]:
        return self.layout.instance_names

    def body(self, body: str | int, model_instance: str | int | None = None) -> BodyInfo:
        """Record of a body by name (`"body"` or `"instance::body"`) or index."""
        return self.layout.bodies[self._find("body", body, model_instance)]

    def frame(self, frame: str | int, model_instance: str | int | None = None) -> FrameInfo:
        """Record of a frame by name or index."""
        return self.layout.frames[self._find("frame", frame, model_instance)]

    def joint(self, joint: str | int, model_instance: str | int | None = None) -> JointInfo:
        """Record of a joint by name (`"joint"` or `"instance::joint"`) or index; `.q` and `.v` are its slices."""
        return self.layout.joints[self._find("joint", joint, model_instance)]

    def actuator(self, actuator: str | int, model_instance: str | int | None = None) -> ActuatorInfo:
        """Record of an actuator by name or index."""
        return self.layout.actuators[self._find("actuator", actuator, model_instance)]

    def model_instance(self, model_instance: str | int) -> ModelInstanceInfo:
        """Record of a model instance by name or index: its elements, counts and places in q, v and u."""
        index, layout = self.model_instance_index(model_instance), self.layout
        moving = sorted((j for j in layout.joints if j.model_instance == index and j.mobod > 0), key=lambda j: j.mobod)
        return ModelInstanceInfo(
            name=layout.instance_names[index],
            index=index,
            bodies=self.body_indices(index),
            frames=self.frame_indices(index),
            joints=self.joint_indices(index),
            actuators=self.joint_actuator_indices(index),
            q=np.array([i for j in moving for i in range(j.q.start, j.q.stop)], int),
            v=np.array([i for j in moving for i in range(j.v.start, j.v.stop)], int),
            is_gravity_enabled=layout.gravity_enabled[index],
        )

    @property
    def world_body(self) -> BodyInfo:
        return self.layout.bodies[0]

    @property
    def world_frame(self) -> FrameInfo:
        return self.layout.frames[0]

    def body_frame_index(self, body: str | int) -> int:
        """Index of a body's own frame."""
        return self.body(body).body_frame

    def actuated_joint_indices(self, model_instance: str | int | None = None) -> tuple[int, ...]:
        """Indices of joints with an actuator, of one model instance or of the whole model, in increasing order."""
        actuators = (self.layout.actuators[i] for i in self.joint_actuator_indices(model_instance))
        return tuple(sorted({actuator.joint for actuator in actuators}))

    # The tree. Bodies that welds hold together form one mobilized body (mobod).

    @property
    def num_mobilizers(self) -> int:
        """Number of joints that move, floating ones included; welds are merged away."""
        return self.topology.num_mobods - 1

    @property
    def tree_height(self) -> int:
        """Number of mobilized bodies on the longest path from the world, the world included."""
        return self.topology.height

    def mobilizer(self, mobod: int) -> JointInfo:
        """Record of the joint that moves a mobilized body, 1 … num_mobilizers; the world (0) has none."""
        if checked_index("mobilized body", mobod, self.topology.num_mobods) == 0:
            raise ModelError("mobilized body 0 is the world and has no mobilizer.")
        return self.layout.joints[self.topology.mobod_joints[mobod]]

    def bodies_welded_to(self, body: str | int) -> tuple[int, ...]:
        """Indices of all bodies rigidly connected to a body, itself included."""
        mobod = self.body(body).mobod_index
        return tuple(b.index for b in self.layout.bodies if b.mobod_index == mobod)

    def is_anchored(self, body: str | int) -> bool:
        """Whether only welds lie between the body and the world."""
        return self.body(body).mobod_index == 0

    def bodies_kinematically_affected_by(self, joints: Iterable[str | int]) -> tuple[int, ...]:
        """Indices of the bodies that any of the joints moves, in increasing order; welds are refused."""
        moving = []
        for key in joints:
            joint = self.joint(key)
            if joint.mobod <= 0:
                raise ModelError(f"bodies_kinematically_affected_by: joint '{joint.name}' is a weld and moves nothing.")
            moving.append(joint.mobod)
        affected = np.any(self.topology.is_ancestor[:, moving], axis=1)
        return tuple(b.index for b in self.layout.bodies if affected[b.mobod_index])

    def floating_base_bodies(self) -> tuple[int, ...]:
        """Indices of the bodies that a six-dof joint connects to the world."""
        return tuple(b.index for b in self.layout.bodies if b.is_floating)

    def has_unique_free_base_body(self, model_instance: str | int) -> bool:
        """Whether exactly one body of the instance hangs on the world, and floats."""
        bases = self._base_bodies(model_instance)
        return len(bases) == 1 and bases[0].is_floating

    def unique_free_base_body(self, model_instance: str | int) -> BodyInfo:
        """The only body of the instance that hangs on the world; raises `ModelError` unless it is unique and floats."""
        bases, name = (
            self._base_bodies(model_instance),
            self.model_instance_name(self.model_instance_index(model_instance)),
        )
        if not self.has_unique_free_base_body(model_instance):
            found = ", ".join(f"'{b.name}'{'' if b.is_floating else ' (not floating)'}" for b in bases) or "none"
            raise ModelError(
                f"model instance '{name}' has no unique floating base body; connected to the world: {found}."
            )
        return bases[0]

    def _base_bodies(self, model_instance: str | int) -> list[BodyInfo]:
        """Bodies of the instance whose inboard joint, of any kind, is on the world."""
        bodies = (self.layout.bodies[i] for i in self.body_indices(model_instance))
        return [b for b in bodies if b.inboard_joint is not None and b.inboard_joint.parent_body == 0]

    def topology_graphviz_string(self) -> str:
        """Text for Graphviz's `dot`: bodies by model instance and the joints between them, as Drake draws them."""
        edges = [(j.name, j.kind, j.parent_body, j.child_body) for j in self.layout.joints]
        return topology_graphviz_string(self.layout.instance_names, self.layout.bodies, edges)

    # Numbers

    @property
    def effort_lower_limits(self) -> Float[Array, " nu"]:
        """Lower limits of actuators' efforts, in N m or N."""
        return -self.parameters.effort_limit

    @property
    def effort_upper_limits(self) -> Float[Array, " nu"]:
        """Upper limits of actuators' efforts, in N m or N."""
        return self.parameters.effort_limit

    @property
    def gravity_vector(self) -> Float[Array, "3"]:
        """Acceleration of gravity in the world, in m/s²."""
        return self.parameters.gravity

    # Forces

    def is_gravity_enabled(self, model_instance: str | int) -> bool:
        """Whether the bodies of a model instance feel gravity."""
        return self.layout.gravity_enabled[self.model_instance_index(model_instance)]

    @property
    def num_force_elements(self) -> int:
        """Number of force elements; gravity, which Drake counts, and joint damping are parameters here."""
        return len(self.force_elements)

    def force_element(self, index: int) -> AbstractForceElement:
        return self.force_elements[checked_index("force element", index, len(self.force_elements))]
