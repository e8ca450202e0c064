"""The mutable plant, to which one adds bodies, frames, joints and actuators before `finalize`."""

import warnings
from typing import Any

import numpy as np

from mbjax.errors import ModelError, ModelWarning
from mbjax.joints import AbstractJoint, WeldJoint
from mbjax.model import (
    KEPT,
    AbstractConstraint,
    AbstractForceElement,
    Body,
    Frame,
    JointActuator,
    LoadReport,
    MultibodyModel,
)
from mbjax.model.lookup import find_model_instance
from mbjax.model.poses import as_rigid_transform
from mbjax.number_rules import FINITE, LARGEST, NOT_NEGATIVE, as_numbers, is_known, known_numbers, shown
from mbjax.spatial import SpatialInertia

from .constraints import PlantConstraints
from .contact_settings import ContactSettings
from .declarations import CollisionExclusion, DeclaredKeyframe, Mimic, RegisteredCollision
from .deformables import PlantDeformables
from .finalize import finalize
from .geometry import PlantGeometry
from .keyframes import PlantKeyframes
from .mimics import PlantMimics
from .number_checks import float_type
from .random_distributions import PlantRandomDistributions
from .removal import remove_joint, remove_joint_actuator

WORLD_INSTANCE = 0
DEFAULT_INSTANCE = 1
MODEL_ATTRIBUTES = (
    "parameters", "topology", "layout", "dtype", "is_discrete", "placement", "num_positions", "num_velocities",
)  # fmt: skip


def article(noun: str) -> str:
    """A noun with its article: `a body`, `an actuator`."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


class MultibodyPlant(
    PlantRandomDistributions, PlantGeometry, PlantConstraints, PlantMimics, PlantKeyframes, PlantDeformables
):
    """Collects the elements of a model; `finalize()` turns them into a frozen `MultibodyModel`.

    `time_step` in s: a positive one makes a discrete plant for `step` and `rollout`, zero a continuous one
    for `time_derivatives` and `simulate`. Bodies without an inboard joint float, as in Drake. World is body 0
    of instance 0; instance 1 takes elements that are added without an instance.

    `contact_model="none"` lets all geometries pass through each other; the other settings are explained at the
    methods that change them.
    """

    def __init__(
        self,
        time_step: float = 0.0,
        *,
        discrete_contact_approximation: str = ContactSettings.discrete_contact_approximation,
        contact_model: str = ContactSettings.contact_model,
        penetration_allowance: float = ContactSettings.penetration_allowance,
        stiction_tolerance: float = ContactSettings.stiction_tolerance,
        sap_near_rigid_threshold: float = ContactSettings.sap_near_rigid_threshold,
        adjacent_bodies_collision_filters: bool = ContactSettings.adjacent_bodies_collision_filters,
        max_contacts: int | None = ContactSettings.max_contacts,
        max_pairs: int | None = ContactSettings.max_pairs,
        contact_prediction: bool = ContactSettings.contact_prediction,
        contact_smoothing_length: float = ContactSettings.contact_smoothing_length,
        contact_surface_representation: str | None = ContactSettings.contact_surface_representation,
        max_faces: int | None = ContactSettings.max_faces,
    ):
        step = as_numbers(time_step) if is_known(time_step) else None
        if step is None or step.shape != () or not NOT_NEGATIVE.holds(step):
            raise ModelError(f"time_step must be a finite number of seconds >= 0, got {time_step!r}.")
        self.time_step = float(step)
        self.gravity = np.array([0.0, 0.0, -9.81])
        self.instance_names: list[str] = ["WorldModelInstance", "DefaultModelInstance"]
        self.gravity_enabled: list[bool] = [True, True]
        self.bodies: list[Body] = []
        self.frames: list[Frame] = []
        self.joints: list[AbstractJoint] = []
        self.mimics: list[Mimic] = []
        self.actuators: list[JointActuator] = []
        self.force_elements: list[AbstractForceElement] = []
        self.constraints: list[AbstractConstraint] = []
        self.collisions: list[RegisteredCollision] = []
        self.collision_exclusions: list[CollisionExclusion] = []
        self.contact_kept: tuple[tuple[str, str], ...] = ()
        self.contact_settings = ContactSettings(
            contact_model=contact_model,
            discrete_contact_approximation=discrete_contact_approximation,
            penetration_allowance=penetration_allowance,
            stiction_tolerance=stiction_tolerance,
            sap_near_rigid_threshold=sap_near_rigid_threshold,
            adjacent_bodies_collision_filters=adjacent_bodies_collision_filters,
            max_contacts=max_contacts,
            max_pairs=max_pairs,
            contact_prediction=contact_prediction,
            contact_smoothing_length=contact_smoothing_length,
            contact_surface_representation=contact_surface_representation,
            max_faces=max_faces,
        )
        self.default_free_poses: dict[int, Any] = {}
        self.free_poses_of_files: dict[int, Any] = {}  # where files put bodies, if these turn out to float
        self.random_distributions = []
        self.keyframes: list[DeclaredKeyframe] = []
        self.deformables, self.fixed_nodes, self.force_densities = [], [], []
        self.instances_that_list_contacts: set[int] = set()
        self.report = LoadReport()
        self._finalized: MultibodyModel | None = None
        self._body_frame: dict[int, Frame] = {}
        self.names: set[tuple[str, int, str]] = set()  # what, model instance, name
        self.world_body = self._add_body("world", None, WORLD_INSTANCE, None)
        self.world_frame = self._body_frame[0]

    @property
    def is_finalized(self) -> bool:
        return self._finalized is not None

    def __getattr__(self, name: str) -> Any:
        """Explains, for an attribute that only a model has, that functions take the model and not the plant."""
        if name in MODEL_ATTRIBUTES:
            raise AttributeError(
                f"a MultibodyPlant has no '{name}': functions take the model that plant.finalize() returns."
            )
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def add_model_instance(self, name: str) -> int:
        """Adds a model instance, a group of elements with names of its own; returns its index."""
        self._require_building("add_model_instance")
        self._require_free_instance_name(f"add_model_instance('{name}')", name)
        self.instance_names.append(name)
        self.gravity_enabled.append(True)
        return len(self.instance_names) - 1

    def add_rigid_body(
        self,
        name: str,
        inertia: SpatialInertia | None = None,
        model_instance: int | str = DEFAULT_INSTANCE,
        *,
        on_invalid_inertia: str = "error",
        source: str | None = None,
    ) -> Body:
        """Adds a rigid body with spatial inertia M_BBo_B; without one it is massless.

        A non-physical inertia is refused; with `on_invalid_inertia="warn"` it is kept, reported and warned of
        (NaN and negative mass are always refused).
        """
        self._require_building("add_rigid_body")
        instance = find_model_instance(model_instance, self.instance_names, f"add_rigid_body('{name}')")
        if instance == WORLD_INSTANCE:
            raise ModelError(f"add_rigid_body('{name}'): the world's instance holds the world alone.")
        if inertia is not None and not isinstance(inertia, SpatialInertia):
            raise ModelError(
                f"add_rigid_body('{name}'): the inertia must be a mbjax.SpatialInertia, like "
                f"mbjax.SpatialInertia.solid_cube_with_mass(1.0, 0.2), got {shown(inertia)}."
            )
        if inertia is not None:
            self._check_inertia(name, inertia, source, on_invalid_inertia)
        return self._add_body(name, inertia, instance, source)

    def add_frame(
        self,
        name: str,
        parent: Body | Frame | str,
        X_PF: Any = None,
        model_instance: int | str | None = None,
        *,
        source: str | None = None,
    ) -> Frame:
        """Adds a frame fixed at X_PF in a body or in another frame."""
        self._require_building("add_frame")
        P = self.frame(parent, f"add_frame('{name}')")
        instance = (
            P.model_instance
            if model_instance is None
            else find_model_instance(model_instance, self.instance_names, f"add_frame('{name}')")
        )
        self._require_free_name("frame", name, instance)
        X_PF = as_rigid_transform(f"add_frame('{name}'): X_PF", X_PF)
        frame = Frame(name, len(self.frames), instance, P.body, P, X_PF, source)
        self.frames.append(frame)
        self.names.add(("frame", instance, name))
        return frame

    def add_joint(self, joint: AbstractJoint, *, source: str | None = None) -> AbstractJoint:
        """Adds a joint between two bodies; its frames F and M are made at X_PF and X_BM where the joint gives them."""
        self._require_building("add_joint")
        if not isinstance(joint, AbstractJoint):
            raise ModelError(f"add_joint: expected a joint, like mbjax.RevoluteJoint(...), got {shown(joint)}.")
        call = f"add_joint('{joint.name}')"
        if joint.index >= 0:
            raise ModelError(f"{call}: this joint object is part of a plant already; make a new one.")
        parent, child = self.frame(joint.parent, call), self.frame(joint.child, call)
        if child.body is parent.body:
            raise ModelError(f"{call}: parent and child are the same body '{child.body.name}'; a joint needs two.")
        if child.body is self.world_body:
            raise ModelError(
                f"{call}: the world cannot be a child; swap the two (parent=world, child="
                f"'{parent.body.name}') and turn the axis around."
            )
        self._require_free_name("joint", joint.name, child.model_instance)
        instance = child.model_instance
        poses = (("parent", joint.X_PF), ("child", joint.X_BM))
        for side, X in poses:  # refuse all that can be refused before anything is added
            if X is not None:
                as_rigid_transform(f"{call}: pose of the {side}'s frame", X)
                self._require_free_name("frame", f"{joint.name}_{side}", instance)
        joint.index, joint.model_instance, joint.source = len(self.joints), instance, source
        if joint.X_PF is not None:
            parent = self.add_frame(f"{joint.name}_parent", parent, joint.X_PF, instance, source=source)
        if joint.X_BM is not None:
            child = self.add_frame(f"{joint.name}_child", child, joint.X_BM, instance, source=source)
        joint.parent, joint.child = parent, child
        self.joints.append(joint)
        self.names.add(("joint", joint.model_instance, joint.name))
        return joint

    def weld_frames(
        self, frame_on_parent: Any, frame_on_child: Any, X_FM: Any = None, *, name: str | None = None
    ) -> AbstractJoint:
        """Welds the body of the second frame to the first frame: M stays at X_FM in F."""
        self._require_building("weld_frames")
        F, M = self.frame(frame_on_parent, "weld_frames"), self.frame(frame_on_child, "weld_frames")
        name = f"{F.name}_welds_to_{M.name}" if name is None else name
        return self.add_joint(WeldJoint(name, F, M, X_PF=X_FM))

    def add_joint_actuator(
        self,
        name: str,
        joint: AbstractJoint | str,
        effort_limit: float = float("inf"),
        *,
        rotor_inertia: float = 0.0,
        gear_ratio: float = 1.0,
        kp: float | None = None,
        kd: float | None = None,
        source: str | None = None,
    ) -> JointActuator:
        """Adds an actuator on a one-dof joint; with `kp` or `kd` it tracks `Inputs.desired_state`."""
        self._require_building("add_joint_actuator")
        call = f"add_joint_actuator('{name}')"
        joint = self.joint(joint, call)
        if joint.num_velocities != 1:
            raise ModelError(
                f"{call}: joint '{joint.name}' ({joint.kind}) has {joint.num_velocities} degrees of freedom; "
                "actuators drive joints with one. Apply a generalized force instead."
            )
        self._require_free_name("actuator", name, joint.model_instance)
        numbers = {"effort_limit": effort_limit, "rotor_inertia": rotor_inertia, "gear_ratio": gear_ratio}
        numbers |= {what: gain for what, gain in (("kp", kp), ("kd", kd)) if gain is not None}
        rules = {"effort_limit": LARGEST, "gear_ratio": FINITE}
        given: dict[str, Any] = {
            what: float(known_numbers(call, what, value, rules.get(what, NOT_NEGATIVE)))
            for what, value in numbers.items()
        }
        actuator = JointActuator(
            name, len(self.actuators), joint.model_instance, joint,
            source=source, **given,
        )  # fmt: skip
        self.actuators.append(actuator)
        self.names.add(("actuator", actuator.model_instance, name))
        return actuator

    def add_force_element(self, element: AbstractForceElement) -> AbstractForceElement:
        """Adds a law that turns motion into force; its frames and joints are looked up by name at finalize."""
        self._require_building("add_force_element")
        if not isinstance(element, AbstractForceElement):
            raise ModelError(f"add_force_element: expected an AbstractForceElement, got {type(element).__name__}.")
        self.force_elements.append(element)
        return element

    def set_gravity(self, gravity: Any) -> None:
        """Sets the uniform acceleration of gravity in the world frame, in m/s²."""
        self._require_building("set_gravity")
        vector = as_numbers(gravity) if is_known(gravity) else None
        if vector is None or vector.shape != (3,) or not np.all(np.isfinite(vector)):
            raise ModelError(f"set_gravity: expected three finite numbers in m/s², got {gravity!r}.")
        self.gravity = vector

    def set_gravity_enabled(self, model_instance: int | str, enabled: bool) -> None:
        """Sets whether the bodies of one model instance feel gravity."""
        self._require_building("set_gravity_enabled")
        if not isinstance(enabled, bool | np.bool_):
            raise ModelError(
                f"set_gravity_enabled('{model_instance}'): enabled must be True or False, got {enabled!r}."
            )
        self.gravity_enabled[find_model_instance(model_instance, self.instance_names, "set_gravity_enabled")] = bool(
            enabled
        )

    def set_default_free_body_pose(self, body: Body | str, X_WB: Any) -> None:
        """Sets the default pose X_WB of a floating body in the world."""
        self._require_building("set_default_free_body_pose")
        body = self.body(body, "set_default_free_body_pose")
        self.default_free_poses[body.index] = as_rigid_transform(f"default pose of '{body.name}'", X_WB)

    def set_joint_default_positions(self, joint: AbstractJoint | str | int, q: Any) -> None:
        """Sets the default positions of a joint, in rad or m; for a whole model instance set them on the model."""
        self._require_building("set_joint_default_positions")
        self.joint(joint, "set_joint_default_positions").set_default_positions(q)

    def remove_joint(self, joint: AbstractJoint | str | int) -> None:
        """Removes a joint; remove its actuator first and, as in Drake, add force elements and constraints later.

        Joints are renumbered without gaps (Drake leaves one); names and objects stay valid. The child floats
        unless it gets another joint.
        """
        self._require_building("remove_joint")
        remove_joint(self, self.joint(joint, "remove_joint"))

    def remove_joint_actuator(self, actuator: JointActuator | str | int) -> None:
        """Removes an actuator; later ones move up by one in u (Drake leaves a gap in the indices)."""
        self._require_building("remove_joint_actuator")
        remove_joint_actuator(self, self.actuator(actuator, "remove_joint_actuator"))

    def rename_model_instance(self, model_instance: int | str, name: str) -> None:
        """Renames a model instance; its elements' scoped names and coordinate names follow."""
        self._require_building("rename_model_instance")
        instance = find_model_instance(model_instance, self.instance_names, "rename_model_instance")
        self._require_free_instance_name(f"rename_model_instance('{name}')", name)
        self.instance_names[instance] = name

    def finalize(self, dtype: Any = None) -> MultibodyModel:
        """Validates the plant, builds the tree and returns the frozen model; the plant refuses further elements.

        `dtype` is that of the model's leaves: JAX's default float when None.
        """
        self._require_building("finalize")
        self._finalized = finalize(self, float_type("finalize", dtype))
        return self._finalized

    def _add_body(self, name: str, inertia: SpatialInertia | None, instance: int, source: str | None) -> Body:
        self._require_free_name("body", name, instance)
        self._require_free_name("frame", name, instance)
        body = Body(name, len(self.bodies), instance, inertia, source)
        frame = Frame(name, len(self.frames), instance, body, source=source)
        self.bodies.append(body)
        self.frames.append(frame)
        self._body_frame[body.index] = frame
        self.names |= {("body", instance, name), ("frame", instance, name)}
        return body

    def _check_inertia(self, name: str, inertia: SpatialInertia, source: str | None, on_invalid: str) -> None:
        failure = inertia.physical_validity_report()
        if failure is None:
            return
        place = "" if source is None else f"{source}: "
        message = f"{place}body '{name}': the spatial inertia is not physical: {failure}"
        if on_invalid == "error" or inertia.is_nan() or inertia.mass < 0.0:
            raise ModelError(f"{message} Correct the mass, the centre of mass or the moments.")
        self.report.add(KEPT, f"body '{name}'", f"non-physical inertia kept: {failure}", source or "")
        warnings.warn(message, ModelWarning, stacklevel=3)

    def _require_free_instance_name(self, call: str, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise ModelError(f"{call}: the name must be a non-empty string, got {name!r}.")
        if name in self.instance_names:
            raise ModelError(f"{call}: the name is taken; choose another, for example '{name}_2'.")

    def _require_free_name(self, what: str, name: str, instance: int) -> None:
        if not isinstance(name, str) or not name:
            raise ModelError(f"{article(what)}'s name must be a non-empty string, got {shown(name)}.")
        if (what, instance, name) in self.names:
            raise ModelError(
                f"add_{what}('{name}'): model instance '{self.instance_names[instance]}' has {article(what)} of that "
                "name already; names are unique within an instance."
            )

    def _require_building(self, call: str) -> None:
        if self._finalized is not None:
            raise ModelError(
                f"{call}: the plant is finalized and takes no further elements. Add everything before "
                "finalize(); to change numbers use the setters that return a new model."
            )
