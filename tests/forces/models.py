"""Trees of several model instances with every force element, and their Drake twins."""

import functools
from typing import Any

import numpy as np
import pydrake.multibody.tree as drake_tree
from pydrake.math import RigidTransform as DrakeTransform
from pydrake.math import RollPitchYaw
from pydrake.multibody.plant import MultibodyPlant as DrakePlant

import mbjax
from tests.models import Twin, add_joint, make_twin, random_inertia

GRAVITY = (1.3, -2.1, -8.7)
HINGE = {
    "spring_zero_angle_rad": 0.4,
    "spring_constant": 3.1,
    "dynamic_friction_torque": 1.7,
    "static_friction_torque": 0.9,
    "viscous_friction": 0.6,
    "catch_width": 0.8,
    "catch_torque": 2.3,
    "motion_threshold": 0.5,
}
# Kind, parent (an index into this list, or the world) and instance of each body; the last ones float freely.
BODIES = (
    ("revolute", None, "arm"),
    ("prismatic", 0, "arm"),
    ("weld", 1, "tool"),
    ("universal", 0, "arm"),
    ("screw", 2, "tool"),
    ("rpy_floating", None, "drone"),
    ("ball_rpy", 5, "drone"),
    ("planar", None, "cart"),
    ("quaternion_floating", None, "ball"),
    ("revolute", 8, "ball"),
    ("revolute", 7, "arm"),
)
INSTANCES = ("arm", "tool", "drone", "cart", "ball")
WITHOUT_GRAVITY = ("tool", "ball")


def build(bodies: tuple, seed: int) -> tuple[mbjax.MultibodyPlant, DrakePlant, np.random.Generator]:
    """The same unfinished tree twice: bodies b0, b1, … on joints j0, j1, …, in the instances they name."""
    rng = np.random.default_rng(seed)
    ours, theirs = mbjax.MultibodyPlant(), DrakePlant(0.0)
    instances = {}
    for name in dict.fromkeys(instance for _, _, instance in bodies):
        ours.add_model_instance(name)
        instances[name] = theirs.AddModelInstance(name)
    for i, (kind, parent, instance) in enumerate(bodies):
        mass, com, G = random_inertia(rng)
        upper = (G[0, 0], G[1, 1], G[2, 2], G[0, 1], G[0, 2], G[1, 2])
        ours.add_rigid_body(f"b{i}", mbjax.SpatialInertia(mass, com, mbjax.UnitInertia(*upper)), instance)
        inertia = drake_tree.SpatialInertia(mass, com, drake_tree.UnitInertia(*upper))
        body = theirs.AddRigidBody(f"b{i}", instances[instance], inertia)
        poses = [random_pose(rng) for _ in range(2)]
        axis = rng.normal(size=3)
        parent_name = "world" if parent is None else f"b{parent}"
        add_joint(ours, theirs, kind, f"j{i}", parent_name, body, poses, axis / np.linalg.norm(axis), rng)
    return ours, theirs, rng


def random_pose(rng: np.random.Generator) -> DrakeTransform:
    return DrakeTransform(RollPitchYaw(rng.normal(size=3)), 0.4 * rng.normal(size=3))


@functools.cache
def every_element(seed: int = 0) -> Twin:
    """Every joint type, five instances, gravity off in two, and every force element of which Drake knows the energy."""
    ours, theirs, rng = build(BODIES, seed)
    P, Q = 0.3 * rng.normal(size=(2, 3))
    for A, B, numbers in (
        ("b1", "b4", (0.9, 40.0, 3.0)),
        ("world", "b6", (0.5, 20.0, 2.0)),
        ("b8", "b0", (2.0, 9.0, 0)),
    ):
        ours.add_force_element(mbjax.LinearSpringDamper(A, P, B, Q, *numbers))
        bodies = (theirs.GetBodyByName(name) if name != "world" else theirs.world_body() for name in (A, B))
        first, second = bodies
        theirs.AddForceElement(drake_tree.LinearSpringDamper(first, P, second, Q, *numbers))
    ours.add_force_element(mbjax.RevoluteSpring("j0", 0.3, 11.0))
    ours.add_force_element(mbjax.PrismaticSpring("j1", -0.2, 70.0))
    ours.add_force_element(mbjax.DoorHinge("j9", mbjax.DoorHingeConfig(**HINGE)))
    theirs.AddForceElement(drake_tree.RevoluteSpring(theirs.GetJointByName("j0"), 0.3, 11.0))
    theirs.AddForceElement(drake_tree.PrismaticSpring(theirs.GetJointByName("j1"), -0.2, 70.0))
    theirs.AddForceElement(drake_tree.DoorHinge(theirs.GetJointByName("j9"), drake_hinge(HINGE)))
    ours.set_gravity(GRAVITY)
    theirs.mutable_gravity_field().set_gravity_vector(np.array(GRAVITY))
    for name in WITHOUT_GRAVITY:
        ours.set_gravity_enabled(name, False)
        theirs.set_gravity_enabled(theirs.GetModelInstanceByName(name), False)
    theirs.Finalize()
    return make_twin(ours.finalize(), theirs)


def drake_hinge(numbers: dict[str, float]) -> Any:
    config = drake_tree.DoorHingeConfig()
    for name, value in numbers.items():
        setattr(config, name, value)
    return config


BUSHING_CONSTANTS = ((5.0, 6.0, 7.0), (0.5, 0.6, 0.7), (30.0, 40.0, 50.0), (3.0, 4.0, 5.0))


@functools.cache
def bushings(seed: int = 1) -> Twin:
    """Bushings between offset frames of two trees, of one tree, and of a body and the world."""
    kinds = (("revolute", None, "one"), ("ball_rpy", 0, "one"), ("quaternion_floating", None, "two"))
    ours, theirs, rng = build(kinds, seed)
    for i, (A, C) in enumerate((("b1", "b2"), ("b0", "b1"), ("world", "b2"))):
        frames = []
        for side, body in (("A", A), ("C", C)):
            X = random_pose(rng)
            ours.add_frame(f"{side}{i}", body, X.GetAsMatrix4())
            parent = theirs.GetFrameByName(body)
            frames.append(theirs.AddFrame(drake_tree.FixedOffsetFrame(f"{side}{i}", parent, X)))
        constants = [np.array(c) * rng.uniform(0.5, 2.0) for c in BUSHING_CONSTANTS]
        ours.add_force_element(mbjax.LinearBushingRollPitchYaw(f"A{i}", f"C{i}", *constants))
        theirs.AddForceElement(drake_tree.LinearBushingRollPitchYaw(*frames, *constants))
    theirs.Finalize()
    return make_twin(ours.finalize(), theirs)
