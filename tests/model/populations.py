"""A plant and its Drake twin with many elements: instances with equal names, all joint kinds, welds, free bodies."""

import functools

import numpy as np
import pydrake.multibody.tree as drake_tree
from pydrake.math import RigidTransform as DrakeTransform
from pydrake.multibody.plant import MultibodyPlant as DrakePlant

import mbjax
from tests.model.plants import inertia
from tests.models import JOINT_CLASSES, SCREW_PITCH

SIDES = ("left", "right", "middle")
SINGLE = ("revolute", "prismatic", "screw")


class Population:
    """Both plants, built call by call; ours is `plant`, Drake's `drake`."""

    def __init__(self, time_step: float = 0.0):
        self.plant, self.drake = mbjax.MultibodyPlant(time_step), DrakePlant(time_step)

    def instance(self, name: str) -> int:
        index = self.plant.add_model_instance(name)
        assert index == int(self.drake.AddModelInstance(name))
        return index

    def body(self, name: str, instance: int = 1) -> int:
        M = inertia()
        G = drake_tree.UnitInertia(*np.asarray(M.unit_inertia.moments_products()))
        theirs = drake_tree.SpatialInertia(float(M.mass), np.asarray(M.com), G)
        body = self.drake.AddRigidBody(name, drake_tree.ModelInstanceIndex(instance), theirs)
        assert self.plant.add_rigid_body(name, M, instance).index == int(body.index())
        return int(body.index())

    def frame(self, name: str, body: int) -> None:
        link = self.drake.get_body(drake_tree.BodyIndex(body))
        X = DrakeTransform([0.1, 0.2, 0.3])
        frame = self.drake.AddFrame(drake_tree.FixedOffsetFrame(name, link, X))
        assert self.plant.add_frame(name, self.plant.body(body), [0.1, 0.2, 0.3]).index == int(frame.index())

    def joint(self, kind: str, name: str, parent: int, child: int, limits=None, acceleration=None, velocity=None):
        our_class, their_class = JOINT_CLASSES[kind]
        keywords = {"position_limits": limits, "velocity_limits": velocity, "acceleration_limits": acceleration}
        pitch = {"screw_pitch": SCREW_PITCH} if our_class.has_pitch else {}
        ours = self.plant.add_joint(
            our_class(name, self.plant.body(parent), self.plant.body(child), **keywords, **pitch)
        )
        P, B = (self.drake.get_body(drake_tree.BodyIndex(i)).body_frame() for i in (parent, child))
        axis = np.array([0.0, 0.0, 1.0])
        extra = {
            "revolute": (axis,), "prismatic": (axis,), "screw": (axis, SCREW_PITCH, 0.0), "planar": (np.zeros(3),),
            "weld": (DrakeTransform(),),
        }.get(kind, ())  # fmt: skip
        theirs = self.drake.AddJoint(their_class(name, P, B, *extra))
        for limit, setter in (
            (limits, "set_position_limits"),
            (velocity, "set_velocity_limits"),
            (acceleration, "set_acceleration_limits"),
        ):
            if limit is not None:
                size = theirs.num_positions() if limit is limits else theirs.num_velocities()
                getattr(theirs, setter)(*(np.broadcast_to(x, size) for x in limit))
        assert ours.index == int(theirs.index())
        return ours, theirs

    def actuator(self, name: str, joint: int, effort_limit: float = np.inf) -> None:
        theirs = self.drake.AddJointActuator(name, self.drake.get_joint(drake_tree.JointIndex(joint)), effort_limit)
        ours = self.plant.add_joint_actuator(name, self.plant.joint(joint), effort_limit)
        assert ours.index == int(theirs.index())

    def finalize(self) -> mbjax.MultibodyModel:
        self.drake.Finalize()
        return self.plant.finalize()


@functools.cache
def population(seed: int) -> tuple[mbjax.MultibodyModel, DrakePlant]:
    """Three instances that share names, declared interleaved; a body anchored in the world carries a floating one."""
    rng, both = np.random.default_rng(seed), Population()
    kinds = [k for k in JOINT_CLASSES if not k.endswith("floating")]
    instances = {side: both.instance(side) for side in SIDES}
    last = {side: [] for side in SIDES}
    for i in range(6):
        for side in rng.permutation(SIDES):
            body = both.body(f"link{i}", instances[side])
            kind = str(rng.choice(kinds))
            if not last[side] and side == "left":
                pass  # the left base floats
            elif not last[side] and side == "middle":
                both.joint("rpy_floating", "base", 0, body)
            else:
                parent = int(rng.choice([0, *last[side]] if side == "right" else last[side]))
                limits = None if rng.random() < 0.4 or kind == "weld" else (-rng.random(), rng.random())
                joint, _ = both.joint(kind, f"joint{i}", parent, body, limits, limits, limits)
                if kind in SINGLE and rng.random() < 0.7:
                    both.actuator(f"motor{i}", joint.index, rng.choice([3.0, np.inf]))
            last[side].append(body)
            if rng.random() < 0.3:
                both.frame(f"tip{i}", body)
    anchored = both.body("anchored")
    both.joint("weld", "anchor", 0, anchored)
    both.joint("quaternion_floating", "hover", anchored, both.body("hovering"))
    both.joint("weld", "rider", both.body("alone"), both.body("on_top"))
    return both.finalize(), both.drake
