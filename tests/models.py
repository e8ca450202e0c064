"""Models the tests share, built once per session: random trees with their Drake twins, and real robots."""

import dataclasses
import functools
import pathlib
import sysconfig
import warnings
from typing import Any

import numpy as np
import pydrake.multibody.tree as drake_tree
from pydrake.math import RigidTransform as DrakeTransform
from pydrake.math import RollPitchYaw
from pydrake.multibody.plant import MultibodyPlant as DrakePlant

import mbjax

ROBOTS = pathlib.Path(sysconfig.get_path("purelib")) / "cmeel.prefix/share/example-robot-data/robots"

JOINT_CLASSES = {
    "revolute": (mbjax.RevoluteJoint, drake_tree.RevoluteJoint),
    "prismatic": (mbjax.PrismaticJoint, drake_tree.PrismaticJoint),
    "screw": (mbjax.ScrewJoint, drake_tree.ScrewJoint),
    "universal": (mbjax.UniversalJoint, drake_tree.UniversalJoint),
    "ball_rpy": (mbjax.BallRpyJoint, drake_tree.BallRpyJoint),
    "planar": (mbjax.PlanarJoint, drake_tree.PlanarJoint),
    "weld": (mbjax.WeldJoint, drake_tree.WeldJoint),
    "quaternion_floating": (mbjax.QuaternionFloatingJoint, drake_tree.QuaternionFloatingJoint),
    "rpy_floating": (mbjax.RpyFloatingJoint, drake_tree.RpyFloatingJoint),
}
SCREW_PITCH = 0.7


@dataclasses.dataclass(frozen=True)
class Twin:
    """The same system twice; `to_drake_q/v` are the indices that reorder our coordinates into Drake's."""

    model: mbjax.MultibodyModel
    plant: DrakePlant
    to_drake_q: np.ndarray
    to_drake_v: np.ndarray

    def context(self, q: Any, v: Any) -> Any:
        """Drake's context at our state."""
        context = self.plant.CreateDefaultContext()
        self.plant.SetPositions(context, np.asarray(q, float)[self.to_drake_q])
        self.plant.SetVelocities(context, np.asarray(v, float)[self.to_drake_v])
        return context


def make_twin(model: mbjax.MultibodyModel, plant: DrakePlant) -> Twin:
    """Matches coordinates by name."""
    q_names, v_names = model.position_names(), model.velocity_names()
    assert sorted(q_names) == sorted(plant.GetPositionNames())
    assert sorted(v_names) == sorted(plant.GetVelocityNames())
    return Twin(
        model,
        plant,
        np.array([q_names.index(n) for n in plant.GetPositionNames()], int),
        np.array([v_names.index(n) for n in plant.GetVelocityNames()], int),
    )


def random_inertia(rng: np.random.Generator) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre of mass and a physical unit inertia matrix about the body's origin."""
    mass, com = rng.uniform(0.5, 2.0), 0.2 * rng.normal(size=3)
    half = 0.3 * rng.normal(size=(3, 3))
    second_moment = half @ half.T + 0.01 * np.eye(3) + np.outer(com, com)
    return mass, com, np.trace(second_moment) * np.eye(3) - second_moment


@functools.cache
def random_tree(seed: int, kinds: tuple[str, ...], time_step: float = 0.0) -> Twin:
    """A tree with one joint of each kind given, on random parents, with one more body that floats freely."""
    rng = np.random.default_rng(seed)
    ours, theirs = mbjax.MultibodyPlant(time_step), DrakePlant(time_step)
    parents = ["world"]
    for i, kind in enumerate((*kinds, None)):
        name = f"body{i}"
        mass, com, G = random_inertia(rng)
        upper = (G[0, 0], G[1, 1], G[2, 2], G[0, 1], G[0, 2], G[1, 2])
        ours.add_rigid_body(name, mbjax.SpatialInertia(mass, com, mbjax.UnitInertia(*upper)))
        body = theirs.AddRigidBody(name, drake_tree.SpatialInertia(mass, com, drake_tree.UnitInertia(*upper)))
        if kind is None:
            continue
        parent = "world" if kind.endswith("floating") else parents[rng.integers(len(parents))]
        poses = [DrakeTransform(RollPitchYaw(rng.normal(size=3)), 0.4 * rng.normal(size=3)) for _ in range(2)]
        axis = rng.normal(size=3)
        add_joint(ours, theirs, kind, f"joint{i}", parent, body, poses, axis / np.linalg.norm(axis), rng)
        parents.append(name)
    theirs.Finalize()
    return make_twin(ours.finalize(), theirs)


def add_joint(ours, theirs, kind, name, parent, body, poses, axis, rng) -> None:
    """The same joint in both plants."""
    our_class, their_class = JOINT_CLASSES[kind]
    X_PF, X_BM = poses
    keywords: dict[str, Any] = {"damping": rng.uniform(0.1, 1.0, our_class.num_velocities)} if kind != "weld" else {}
    F = theirs.AddFrame(drake_tree.FixedOffsetFrame(f"{name}_parent", theirs.GetFrameByName(parent), X_PF))
    M = theirs.AddFrame(drake_tree.FixedOffsetFrame(f"{name}_child", body.body_frame(), X_BM))
    if our_class.has_axis:
        keywords["axis"] = axis
    if our_class.has_pitch:
        keywords["screw_pitch"] = SCREW_PITCH
    if kind in ("universal", "ball_rpy"):
        keywords["damping"] = float(keywords["damping"][0])
    if kind.endswith("floating"):
        angular, translational = keywords["damping"][[0, 3]]
        keywords["damping"] = np.repeat([angular, translational], 3)
    ours.add_joint(our_class(name, parent, body.name(), X_PF=X_PF.GetAsMatrix4(), X_BM=X_BM.GetAsMatrix4(), **keywords))
    damping = keywords.get("damping")
    arguments = {
        "revolute": lambda: (axis, float(damping[0])),
        "prismatic": lambda: (axis, -np.inf, np.inf, float(damping[0])),
        "screw": lambda: (axis, SCREW_PITCH, float(damping[0])),
        "universal": lambda: (damping,),
        "ball_rpy": lambda: (damping,),
        "planar": lambda: (damping,),
        "weld": lambda: (DrakeTransform(),),
        "quaternion_floating": lambda: (damping[0], damping[3]),
        "rpy_floating": lambda: (damping[0], damping[3]),
    }[kind]()
    theirs.AddJoint(their_class(name, F, M, *arguments))


ALL_KINDS = tuple(JOINT_CLASSES)


@functools.cache
def load_robot(urdf: str, base: str = "file", time_step: float = 0.0) -> mbjax.MultibodyModel:
    """A robot of example-robot-data by its path below `robots/`; what its file lacks is warned of and fine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbjax.ModelWarning)
        return mbjax.load(ROBOTS / urdf, base=base, time_step=time_step, on_unsupported="warn")


def relative_error(got: Any, expected: Any) -> float:
    """Largest difference over the largest expected value (or 1e-12, for zeros); inf where anything is NaN.

    Python's `max` of several errors would pass over a NaN.
    """
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape, (got.shape, expected.shape)
    if expected.size == 0:
        return 0.0
    error = float(np.abs(got - expected).max() / max(np.abs(expected).max(), 1e-12))
    return np.inf if np.isnan(error) else error
