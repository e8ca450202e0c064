"""A plant of two interleaved model instances with every way to float, and its Drake twin."""

import functools

import numpy as np
import pydrake.multibody.tree as drake_tree
from pydrake.math import RigidTransform as DrakeTransform
from pydrake.math import RollPitchYaw
from pydrake.multibody.plant import MultibodyPlant as DrakePlant

import mbjax
from tests.models import Twin, add_joint, make_twin, random_inertia

# body, model instance, kind of its joint (None: it floats), parent
BODIES = (
    ("shelf", "left", "weld", "world"),
    ("bin", "right", "weld", "shelf"),
    ("slider", "left", "prismatic", "bin"),
    ("tilted", "right", "quaternion_floating", "world"),
    ("angled", "left", "rpy_floating", "shelf"),
    ("turret", "right", "revolute", "world"),
    ("moon", "left", "quaternion_floating", "turret"),
    ("satellite", "right", "rpy_floating", "slider"),
    ("free", "right", None, None),
    ("arm", "left", "revolute", "free"),
    ("hand", "right", "universal", "arm"),
    ("finger", "left", "screw", "hand"),
    ("ball", "left", "ball_rpy", "world"),
    ("puck", "right", "planar", "world"),
    ("other", "left", None, None),
)
FREE_BODIES = ("tilted", "angled", "moon", "satellite", "free", "other")
ACTUATED = ("finger", "slider", "turret", "arm")  # not in the order of the joints


def random_pose(rng: np.random.Generator) -> DrakeTransform:
    """Any orientation, and a translation of about a metre."""
    return DrakeTransform(RollPitchYaw(rng.normal(size=3)), rng.normal(size=3))


def ours(X: DrakeTransform) -> mbjax.RigidTransform:
    """Drake's pose as ours."""
    return mbjax.RigidTransform(X.rotation().matrix(), X.translation())


@functools.cache
def two_instances() -> Twin:
    """The plant of BODIES in both libraries; joints are called `{body}_joint`."""
    rng = np.random.default_rng(11)
    plant, drake = mbjax.MultibodyPlant(), DrakePlant(0.0)
    instances = {name: drake.AddModelInstance(name) for name in ("left", "right")}
    for name in instances:
        plant.add_model_instance(name)
    for name, instance, kind, parent in BODIES:
        mass, com, G = random_inertia(rng)
        upper = (G[0, 0], G[1, 1], G[2, 2], G[0, 1], G[0, 2], G[1, 2])
        plant.add_rigid_body(name, mbjax.SpatialInertia(mass, com, mbjax.UnitInertia(*upper)), instance)
        inertia = drake_tree.SpatialInertia(mass, com, drake_tree.UnitInertia(*upper))
        body = drake.AddRigidBody(name, instances[instance], inertia)
        axis = rng.normal(size=3)
        poses = [random_pose(rng) for _ in range(2)]
        if kind is not None:
            add_joint(plant, drake, kind, f"{name}_joint", parent, body, poses, axis / np.linalg.norm(axis), rng)
    for name in ACTUATED:
        plant.add_joint_actuator(f"{name}_motor", f"{name}_joint")
        drake.AddJointActuator(f"{name}_motor", drake.GetJointByName(f"{name}_joint"))
    drake.Finalize()
    return make_twin(plant.finalize(), drake)
