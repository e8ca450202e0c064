"""Scenes with contact, built alike in a plant of ours and one of Drake's."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pydrake.geometry as drake_geometry
import pydrake.multibody.tree as drake_tree
from pydrake.math import RigidTransform as DrakeTransform
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph, CoulombFriction, DiscreteContactApproximation
from pydrake.multibody.plant import MultibodyPlant as DrakePlant
from pydrake.multibody.tree import PdControllerGains
from pydrake.systems.framework import DiagramBuilder

import mbjax
from mbjax.geometry import Box, Capsule, Cylinder, Geometry, HalfSpace, ProximityProperties, Sphere
from tests.models import Twin, make_twin

DT = 1e-3
APPROXIMATIONS = {
    "sap": DiscreteContactApproximation.kSap,
    "similar": DiscreteContactApproximation.kSimilar,
    "lagged": DiscreteContactApproximation.kLagged,
}


class ContactTwin:
    """The two plants; `simulation()` gives Drake's diagram with a context for each run."""

    def __init__(self, approximation: str = "sap", time_step: float = DT):
        self.builder = DiagramBuilder()
        defaults = drake_geometry.DefaultProximityProperties(
            point_stiffness=None, hunt_crossley_dissipation=None, relaxation_time=None
        )  # so that the plant's own hold, from the penetration allowance
        graph = drake_geometry.SceneGraph(drake_geometry.SceneGraphConfig(default_proximity_properties=defaults))
        self.theirs, _ = AddMultibodyPlantSceneGraph(self.builder, DrakePlant(time_step), graph)
        self.ours = mbjax.MultibodyPlant(time_step, discrete_contact_approximation=approximation)
        if time_step:
            self.theirs.set_discrete_contact_approximation(APPROXIMATIONS[approximation])

    def body(self, name: str, mass: float, com=(0.0, 0.0, 0.0), G=(0.004, 0.005, 0.006)) -> None:
        self.ours.add_rigid_body(name, mbjax.SpatialInertia(mass, com, mbjax.UnitInertia(*G, 0.0, 0.0, 0.0)))
        self.theirs.AddRigidBody(name, drake_tree.SpatialInertia(mass, com, drake_tree.UnitInertia(*G)))

    def hinge(self, name: str, parent: str, child: str, at, axis, **options: Any) -> None:
        limits = options.pop("limits", (-np.inf, np.inf))
        damping = options.pop("damping", 0.0)
        self._joint(mbjax.RevoluteJoint, drake_tree.RevoluteJoint, name, parent, child, at, axis, limits, damping)

    def slider(self, name: str, parent: str, child: str, at, axis, **options: Any) -> None:
        limits = options.pop("limits", (-np.inf, np.inf))
        damping = options.pop("damping", 0.0)
        self._joint(mbjax.PrismaticJoint, drake_tree.PrismaticJoint, name, parent, child, at, axis, limits, damping)

    def _joint(self, our_class, their_class, name, parent, child, at, axis, limits, damping) -> None:
        axis = np.array(axis) / np.linalg.norm(axis)
        frame = self.theirs.world_frame() if parent == "world" else self.theirs.GetFrameByName(parent)
        F = self.theirs.AddFrame(drake_tree.FixedOffsetFrame(f"{name}_parent", frame, DrakeTransform(at)))
        M = self.theirs.GetFrameByName(child)
        joint = their_class(
            name=name, frame_on_parent=F, frame_on_child=M, axis=axis, damping=damping,
            pos_lower_limit=limits[0], pos_upper_limit=limits[1],
        )  # fmt: skip
        self.theirs.AddJoint(joint)
        self.ours.add_joint(our_class(name, parent, child, X_PF=at, axis=axis, damping=damping, position_limits=limits))

    def motor(self, name: str, joint: str, effort_limit: float, kp: float, kd: float) -> None:
        actuator = self.theirs.AddJointActuator(name, self.theirs.GetJointByName(joint), effort_limit)
        actuator.set_controller_gains(PdControllerGains(p=kp, d=kd))
        self.ours.add_joint_actuator(name, joint, effort_limit, kp=kp, kd=kd)

    def shape(self, body: str, name: str, shape: Any, friction: float = 0.5, at=(0.0, 0.0, 0.0), **material) -> None:
        """`material`: stiffness, dissipation (Hunt–Crossley), relaxation_time; Drake's defaults where not given."""
        properties = drake_geometry.ProximityProperties()
        drake_geometry.AddContactMaterial(
            material.get("dissipation"), material.get("stiffness"), CoulombFriction(friction, friction), properties
        )
        if "relaxation_time" in material:
            properties.AddProperty("material", "relaxation_time", material["relaxation_time"])
        frame = self.theirs.world_body() if body == "world" else self.theirs.GetBodyByName(body)
        self.theirs.RegisterCollisionGeometry(frame, DrakeTransform(at), drake_shape(shape), name, properties)
        ours = ProximityProperties(
            friction,
            friction,
            point_stiffness=material.get("stiffness"),
            hunt_crossley_dissipation=material.get("dissipation"),
            relaxation_time=material.get("relaxation_time"),
        )
        self.ours.register_collision_geometry(body, Geometry(name, shape, translation=tuple(at)), ours)

    def done(self) -> Twin:
        """Our model and Drake's plant; its diagram is `twin.diagram`."""
        self.theirs.Finalize()
        self.diagram = self.builder.Build()
        return make_twin(self.ours.finalize(), self.theirs)


def drake_shape(shape: Any) -> Any:
    """Drake's shape of the same size."""
    match shape:
        case Sphere():
            return drake_geometry.Sphere(shape.radius)
        case Box():
            return drake_geometry.Box(*shape.size)
        case Capsule():
            return drake_geometry.Capsule(shape.radius, shape.length)
        case Cylinder():
            return drake_geometry.Cylinder(shape.radius, shape.length)
        case HalfSpace():
            return drake_geometry.HalfSpace()
    raise TypeError(f"no shape of Drake's for {shape}")


Start = tuple[np.ndarray, np.ndarray]
Scene = Callable[[str], tuple[ContactTwin, dict[str, tuple], dict[str, float]]]


def free(p, w=(0.0, 0.0, 0.0), v=(0.0, 0.0, 0.0), quaternion=(1.0, 0.0, 0.0, 0.0)) -> tuple:
    """Pose and velocity of a free body."""
    return np.array([*quaternion, *p]), np.array([*w, *v])


def rolling(approximation: str) -> tuple[ContactTwin, dict]:
    """A ball thrown along the ground: bounces, slides, rolls."""
    scene = ContactTwin(approximation)
    scene.body("ball", 0.5)
    scene.shape("world", "ground", HalfSpace(), 0.4)
    scene.shape("ball", "ball", Sphere(0.1), 0.6, dissipation=5.0, stiffness=1e4, relaxation_time=0.01)
    return scene, {"ball": free((0.0, 0.0, 0.11), w=(3.0, 0.0, 1.0), v=(1.0, 0.3, -0.5))}


def off_centre(approximation: str) -> tuple[ContactTwin, dict]:
    """A ball whose centre of mass and whose sphere are not where its origin is, on an incline of Drake's defaults."""
    scene = ContactTwin(approximation)
    scene.body("ball", 1.3, com=(0.01, 0.02, -0.01))
    scene.shape("world", "ground", HalfSpace(), 0.4)
    scene.shape("ball", "ball", Sphere(0.1), 0.2, at=(0.02, 0.0, 0.01))
    return scene, {"ball": free((0.0, 0.0, 0.1), v=(0.2, 0.0, 0.0), quaternion=(0.8, 0.6, 0.0, 0.0))}


def stacked(approximation: str) -> tuple[ContactTwin, dict]:
    """A ball on three balls that a wall of anchored balls holds: chains of contacts, unequal masses."""
    scene = ContactTwin(approximation)
    scene.shape("world", "ground", HalfSpace(), 0.5)
    start = {}
    for i in range(3):
        angle = 2.0 * np.pi * i / 3.0
        scene.body(f"ball{i}", 0.3 + 0.2 * i)
        scene.shape(f"ball{i}", f"shape{i}", Sphere(0.1), 0.9, stiffness=2e4, dissipation=10.0)
        start[f"ball{i}"] = free((0.12 * np.cos(angle), 0.12 * np.sin(angle), 0.0999))
    scene.body("top", 0.4)
    scene.shape("top", "shape", Sphere(0.1), 0.8, stiffness=2e4, dissipation=10.0)
    start["top"] = free((0.005, 0.0, 0.262))
    return scene, start


def colliding(approximation: str) -> tuple[ContactTwin, dict]:
    """Billiards: two balls meet off centre, without gravity's help."""
    scene = ContactTwin(approximation)
    for name, mass, radius in (("a", 0.2, 0.05), ("b", 0.3, 0.07)):
        scene.body(name, mass)
        scene.shape(name, name, Sphere(radius), 0.3, stiffness=5e4, dissipation=0.5, relaxation_time=0.001)
    return scene, {"a": free((0.0, 0.0, 0.0), v=(2.0, 0.0, 0.0)), "b": free((0.13, 0.04, 0.01), w=(0.0, 5.0, 0.0))}


def arm(approximation: str) -> tuple[ContactTwin, dict]:
    """Two links that meet joint limits, PD control that saturates, a coupler, and a fingertip on the ground."""
    scene = ContactTwin(approximation)
    for i, mass in enumerate((1.0, 0.8, 0.3)):
        scene.body(f"link{i}", mass, com=(0.0, 0.0, -0.15), G=(0.03, 0.03, 0.002))
    scene.hinge("j0", "world", "link0", (0.0, 0.0, 0.6), (0, 1, 0), limits=(-0.4, 0.6), damping=0.05)
    scene.hinge("j1", "link0", "link1", (0.0, 0.0, -0.3), (0, 1, 0.1), limits=(-1.2, 1.2), damping=0.02)
    scene.slider("j2", "world", "link2", (0.5, 0.0, 0.5), (0, 0, 1), limits=(-0.05, np.inf))
    scene.motor("m0", "j0", 2.0, 400.0, 5.0)
    scene.motor("m1", "j1", 50.0, 30.0, 2.0)
    joints = [scene.theirs.GetJointByName(name) for name in ("j0", "j1")]
    scene.theirs.AddCouplerConstraint(*joints, -0.7, 0.05)
    scene.ours.add_coupler_constraint("j0", "j1", -0.7, 0.05)
    scene.shape("world", "ground", HalfSpace(), 0.5)
    scene.shape("link1", "tip", Sphere(0.04), 0.5, at=(0.0, 0.0, -0.28))
    return scene, {}


SCENES = {f.__name__: f for f in (rolling, off_centre, stacked, colliding, arm)}


@functools.cache
def built(name: str, approximation: str) -> tuple[ContactTwin, Twin, np.ndarray, np.ndarray]:
    """A scene's two plants and where it starts, in our order of coordinates."""
    scene, start = SCENES[name](approximation)
    twin = scene.done()
    model = twin.model
    q = np.array(mbjax.default_state(model).q)
    v = np.zeros(model.num_velocities)
    for body, (pose, velocity) in start.items():
        joint = model.joint(body)
        q[joint.q], v[joint.v] = pose, velocity
    return scene, twin, q, v
