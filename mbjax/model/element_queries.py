"""Counts, names and indices of elements, for a plant while it is built and for a finished model alike."""

import abc
from collections.abc import Sequence

from .lookup import Named, checked_index, find_index, find_model_instance, matching_indices


class ElementQueries(abc.ABC):
    """Queries of elements by name (`"arm"` or `"instance::arm"`) or index; model instances likewise."""

    @abc.abstractmethod
    def _elements(self, what: str) -> Sequence[Named]:
        """All elements of a kind: body, frame, joint or actuator."""

    @abc.abstractmethod
    def _instance_names(self) -> Sequence[str]: ...

    def _find(self, what: str, key: str | int, model_instance: str | int | None = None, call: str = "") -> int:
        instance = None if model_instance is None else self.model_instance_index(model_instance)
        return find_index(what, key, self._elements(what), self._instance_names(), instance, call)

    def _has(self, what: str, name: str, model_instance: str | int | None) -> bool:
        instance = None if model_instance is None else self.model_instance_index(model_instance)
        if not matching_indices(name, self._elements(what), self._instance_names(), instance):
            return False
        self._find(what, name, instance)  # raises where the name is ambiguous, as in Drake
        return True

    def _indices(self, what: str, model_instance: str | int | None) -> tuple[int, ...]:
        elements = self._elements(what)
        if model_instance is None:
            return tuple(range(len(elements)))
        instance = self.model_instance_index(model_instance)
        return tuple(i for i, element in enumerate(elements) if element.model_instance == instance)

    # Bodies

    @property
    def num_bodies(self) -> int:
        """Number of bodies, the world included."""
        return len(self._elements("body"))

    def num_bodies_with_name(self, name: str) -> int:
        """Number of bodies of this name in all model instances."""
        return len(matching_indices(name, self._elements("body"), self._instance_names()))

    def has_body_named(self, name: str, model_instance: str | int | None = None) -> bool:
        """Whether a body has this name; raises where several instances have one and no instance is given."""
        return self._has("body", name, model_instance)

    def body_index(self, body: str | int, model_instance: str | int | None = None) -> int:
        """Index of a body by name; an index is checked and returned."""
        return self._find("body", body, model_instance)

    def body_indices(self, model_instance: str | int | None = None) -> tuple[int, ...]:
        """Indices of the bodies of one model instance, or of the whole model."""
        return self._indices("body", model_instance)

    # Frames

    @property
    def num_frames(self) -> int:
        """Number of frames, every body's own frame included."""
        return len(self._elements("frame"))

    def has_frame_named(self, name: str, model_instance: str | int | None = None) -> bool:
        """Whether a frame has this name; raises where several instances have one and no instance is given."""
        return self._has("frame", name, model_instance)

    def frame_index(self, frame: str | int, model_instance: str | int | None = None) -> int:
        """Index of a frame by name; every body's own frame has the body's name."""
        return self._find("frame", frame, model_instance)

    def frame_indices(self, model_instance: str | int | None = None) -> tuple[int, ...]:
        """Indices of the frames of one model instance, or of the whole model."""
        return self._indices("frame", model_instance)

    # Joints

    @property
    def num_joints(self) -> int:
        """Number of joints, welds included; finalize adds the floating joints of free bodies."""
        return len(self._elements("joint"))

    def has_joint(self, index: int) -> bool:
        return 0 <= index < self.num_joints

    def has_joint_named(self, name: str, model_instance: str | int | None = None) -> bool:
        """Whether a joint has this name; raises where several instances have one and no instance is given."""
        return self._has("joint", name, model_instance)

    def joint_index(self, joint: str | int, model_instance: str | int | None = None) -> int:
        """Index of a joint by name; an index is checked and returned."""
        return self._find("joint", joint, model_instance)

    def joint_indices(self, model_instance: str | int | None = None) -> tuple[int, ...]:
        """Indices of the joints of one model instance, or of the whole model."""
        return self._indices("joint", model_instance)

    # Actuators

    @property
    def num_actuators(self) -> int:
        return len(self._elements("actuator"))

    @property
    def num_actuated_dofs(self) -> int:
        """Size of u, equal to `num_actuators`, as each actuator drives one velocity."""
        return self.num_actuators

    def has_joint_actuator(self, index: int) -> bool:
        return 0 <= index < self.num_actuators

    def has_joint_actuator_named(self, name: str, model_instance: str | int | None = None) -> bool:
        """Whether an actuator has this name; raises where several instances have one and no instance is given."""
        return self._has("actuator", name, model_instance)

    def joint_actuator_index(self, actuator: str | int, model_instance: str | int | None = None) -> int:
        """Index of an actuator by name; an index is checked and returned."""
        return self._find("actuator", actuator, model_instance)

    def joint_actuator_indices(self, model_instance: str | int | None = None) -> tuple[int, ...]:
        """Indices of the actuators of one model instance, or of the whole model."""
        return self._indices("actuator", model_instance)

    # Model instances

    @property
    def num_model_instances(self) -> int:
        """Number of model instances, the world's and the default one included."""
        return len(self._instance_names())

    def has_model_instance_named(self, name: str) -> bool:
        return name in self._instance_names()

    def model_instance_index(self, model_instance: str | int) -> int:
        """Index of a model instance by name; an index is checked and returned."""
        return find_model_instance(model_instance, self._instance_names())

    def model_instance_name(self, index: int) -> str:
        return self._instance_names()[checked_index("model instance", index, self.num_model_instances)]
