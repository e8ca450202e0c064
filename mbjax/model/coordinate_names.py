"""Names of the numbers of q, v, x = [q, v] and u: Drake's strings with Drake's options."""

from .model_layout import JointInfo
from .model_queries import ModelQueries


class CoordinateNames(ModelQueries):
    """Queries of names, `{instance}_{joint}_{suffix}` per coordinate, of the whole model or of one model instance.

    The instance's name is prefixed for the whole model and left out for one instance, unless
    `add_model_instance_prefix` says otherwise.
    """

    def position_names(
        self,
        model_instance: str | int | None = None,
        *,
        add_model_instance_prefix: bool | None = None,
        always_add_suffix: bool = True,
    ) -> tuple[str, ...]:
        """Position names of one model instance, or of the whole model.

        Without `always_add_suffix` only joints with several positions get a suffix.
        """
        names: list[str] = []
        for joint in self._moving_joints(model_instance):
            stem = self._prefix(joint.model_instance, model_instance, add_model_instance_prefix) + joint.name
            names += with_suffixes(stem, joint.position_suffixes, always_add_suffix)
        return tuple(names)

    def velocity_names(
        self,
        model_instance: str | int | None = None,
        *,
        add_model_instance_prefix: bool | None = None,
        always_add_suffix: bool = True,
    ) -> tuple[str, ...]:
        """Velocity names of one model instance, or of the whole model.

        Without `always_add_suffix` only joints with several velocities get a suffix.
        """
        names: list[str] = []
        for joint in self._moving_joints(model_instance):
            stem = self._prefix(joint.model_instance, model_instance, add_model_instance_prefix) + joint.name
            names += with_suffixes(stem, joint.velocity_suffixes, always_add_suffix)
        return tuple(names)

    def state_names(
        self, model_instance: str | int | None = None, *, add_model_instance_prefix: bool | None = None
    ) -> tuple[str, ...]:
        """State names: position names, then velocity names."""
        prefix = add_model_instance_prefix
        q_names = self.position_names(model_instance, add_model_instance_prefix=prefix)
        return q_names + self.velocity_names(model_instance, add_model_instance_prefix=prefix)

    def actuation_names(
        self, model_instance: str | int | None = None, *, add_model_instance_prefix: bool | None = None
    ) -> tuple[str, ...]:
        """Actuation names, `{instance}_{actuator}` per number of u, as Drake's GetActuatorNames gives them."""
        actuators = [self.layout.actuators[i] for i in self.joint_actuator_indices(model_instance)]
        return tuple(
            self._prefix(a.model_instance, model_instance, add_model_instance_prefix) + a.name for a in actuators
        )

    def _moving_joints(self, model_instance: str | int | None) -> list[JointInfo]:
        """Joints with coordinates of their own, in the order of the coordinates."""
        owned = self.joint_indices(model_instance)
        joints = (self.layout.joints[i] for i in owned)
        return sorted((j for j in joints if j.mobod > 0 and j.mimics is None), key=lambda j: j.mobod)

    def _prefix(self, owner: int, model_instance: str | int | None, wanted: bool | None) -> str:
        wanted = model_instance is None if wanted is None else wanted
        return f"{self.layout.instance_names[owner]}_" if wanted else ""


def with_suffixes(stem: str, suffixes: tuple[str, ...], always: bool) -> list[str]:
    """Names `stem_suffix` per suffix; a single suffix is left out unless `always`."""
    return [f"{stem}_{suffix}" for suffix in suffixes] if always or len(suffixes) > 1 else [stem]
