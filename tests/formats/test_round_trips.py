"""A file written of a model is that model: dynamics by names for mbjax itself, for Drake and for MuJoCo."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pydrake
import pytest

import mbjax
from tests.formats.comparison import (
    EXACT,
    assert_same_by_names,
    assert_same_in_drake,
    assert_same_in_mujoco,
    load_quietly,
    touching_shapes,
    write_quietly,
)
from tests.formats.test_mjcf_against_mujoco import EVERYTHING
from tests.models import ALL_KINDS, load_robot, random_tree

GYMNASIUM = Path(importlib.util.find_spec("gymnasium").origin).parent / "envs/mujoco/assets"  # pyright: ignore
DRAKE = Path(pydrake.getDrakePath())
ROBOTS = {
    "Panda": "panda_description/urdf/panda.urdf",
    "TALOS": "talos_data/robots/talos_reduced.urdf",
    "ANYmal": "anymal_b_simple_description/robots/anymal.urdf",
    "HyQ": "hyq_description/robots/hyq_no_sensors.urdf",
}
# Robots with inertias that no body can have, which Drake replaces and MuJoCo refuses: to_mjcf writes the nearest that a
# body can have, and reports it. How far M is then from the robot's.
NOT_PHYSICAL = {"ANYmal": 1e-7, "HyQ": 3e-7}
BUNDLED = ("arm", "quadruped", "four_bar", "pendulum", "acrobot", "cart_pole")
IN_TRIMMED_RUN = ("arm", "quadruped", "four_bar", "Panda", "ant.xml", "half_cheetah.xml", "humanoid.xml", "everything")
FILES = {path.name: path for path in sorted(GYMNASIUM.glob("*.xml"))}
FILES |= {path.name: path for path in sorted([*DRAKE.rglob("*.sdf"), *DRAKE.rglob("*.urdf")])}
NAMES = [
    name if name in IN_TRIMMED_RUN else pytest.param(name, marks=pytest.mark.whole_run("other robots stand for it"))
    for name in (*BUNDLED, *ROBOTS, *FILES, "everything")
]
# What a text's report says that the format leaves out, and the word for it here.
PARTS = {"RevoluteSpring": "springs", "PrismaticSpring": "springs", "gravity": "gravity", "armature": "armature"}
PARTS |= {"friction": "friction"}
# Which parts of a robot a format does not hold; no other may be missing, and all bodies are in all files.
EXPECTED_MISSING = {
    ("half_cheetah.xml", "urdf"): {"springs"},
    ("humanoid.xml", "urdf"): {"springs"},
    ("humanoidstandup.xml", "urdf"): {"springs"},
    ("inverted_double_pendulum.xml", "urdf"): {"gravity"},
    ("pusher.xml", "urdf"): {"armature", "gravity"},
    ("pusher.xml", "sdf"): {"armature"},
    ("pusher_v5.xml", "urdf"): {"armature", "gravity"},
    ("pusher_v5.xml", "sdf"): {"armature"},
    ("swimmer.xml", "urdf"): {"armature"},
    ("swimmer.xml", "sdf"): {"armature"},
    ("everything", "urdf"): {"springs", "armature", "gravity"},
    ("everything", "sdf"): {"armature"},
}
WRITERS = {"urdf": mbjax.to_urdf, "sdf": mbjax.to_sdf}
HANGING = tuple(kind for kind in ALL_KINDS if not kind.endswith("floating"))


def model_of(name: str, **options: Any) -> mbjax.MultibodyModel:
    if name in BUNDLED:
        return mbjax.load(name, **options)
    if name in ROBOTS:
        return load_robot(ROBOTS[name])
    return load_quietly(str(FILES.get(name, EVERYTHING)), on_unsupported="warn", **options)


def left_out(text: mbjax.Written) -> set[str]:
    """Parts of the model that the text does not hold, as its report says."""
    missing = [str(entry) for entry in text.report if "the file is written without it" in entry.message]
    return {part for entry in missing for word, part in PARTS.items() if word in entry}


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("name", NAMES)
def test_urdf_and_sdf_give_the_same_dynamics(name, kind) -> None:
    model = model_of(name)
    text = write_quietly(WRITERS[kind], model)
    missing = left_out(text)
    assert missing == EXPECTED_MISSING.get((name, kind), set())
    assert_same_by_names(model, load_quietly(text, on_unsupported="warn"), missing)
    if name not in NOT_PHYSICAL and not missing:
        assert_same_in_drake(model, text, kind)


@pytest.mark.parametrize("name", NAMES)
def test_mjcf_gives_the_same_dynamics(name) -> None:
    model = model_of(name)
    text = write_quietly(mbjax.to_mjcf, model)
    other = load_quietly(text)
    assert_same_in_mujoco(model, text, other, NOT_PHYSICAL.get(name, EXACT))
    assert touching_shapes(other) == touching_shapes(model)
    np.testing.assert_array_equal(other.parameters.gravity, model.parameters.gravity)


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.whole_run("one tree")) for k in (1, 2))])
def test_trees_of_all_joints_that_formats_have(seed) -> None:
    model = random_tree(seed, HANGING).model
    for kind, write in WRITERS.items():
        text = write(model)
        assert_same_by_names(model, mbjax.load(text))
        assert_same_in_drake(model, text, kind)
    mujoco = random_tree(seed, tuple(kind for kind in HANGING if kind != "screw")).model
    text = mbjax.to_mjcf(mujoco)
    assert_same_in_mujoco(mujoco, text, mbjax.load(text))


def test_trees_with_floating_joints_in_urdf() -> None:
    tree = random_tree(1, ("revolute", "quaternion_floating", "ball_rpy")).model
    still = mbjax.set_joint_damping(tree, "joint1", 0.0)
    assert_same_by_names(still, mbjax.load(mbjax.to_urdf(still)))
    for write in (mbjax.to_urdf, mbjax.to_sdf, mbjax.to_mjcf):
        with pytest.raises(mbjax.UnsupportedError, match=r"joint 'joint1'.*damping .* of a quaternion_floating joint"):
            write(tree)


@pytest.mark.parametrize("name", ["quadruped", "ant.xml", "inverted_double_pendulum.xml", "hopper.xml"])
def test_the_same_shapes_may_touch(name) -> None:
    model = model_of(name)
    from_sdf = touching_shapes(load_quietly(write_quietly(mbjax.to_sdf, model)))
    as_of_world = {
        tuple(sorted(("world", kind) if body == "shapes_of_the_world" else (body, kind) for body, kind in pair)): count
        for pair, count in from_sdf.items()
    }
    assert as_of_world == dict(touching_shapes(model))
    without_world = {pair: n for pair, n in touching_shapes(model).items() if "world" not in (pair[0][0], pair[1][0])}
    from_urdf = touching_shapes(load_quietly(write_quietly(mbjax.to_urdf, model)))
    assert {pair: n for pair, n in from_urdf.items() if "world" not in (pair[0][0], pair[1][0])} == without_world


def test_numbers_are_those_of_now() -> None:
    model = mbjax.load("arm", contact_model="point")
    model = mbjax.set_mass(model, "forearm", 1.0 / 3.0)
    model = mbjax.set_joint_damping(model, "elbow", 0.7)
    model = mbjax.set_joint_axis(model, "elbow", np.array([0.1, 1.0, 0.2]))
    model = mbjax.set_position_limits(model, "elbow", -0.1, 1.1)
    model = mbjax.set_gravity(model, np.array([0.1, 0.0, -3.7]))
    model = mbjax.set_effort_limit(model, 0, 12.3)
    model = mbjax.set_controller_gains(model, 100.0, 7.0, 0)
    for kind, write in WRITERS.items():
        text = write_quietly(write, model)
        assert left_out(text) == ({"gravity"} if kind == "urdf" else set())
        assert_same_by_names(model, load_quietly(text), left_out(text))
    text = mbjax.to_mjcf(model)
    assert_same_in_mujoco(model, text, mbjax.load(text))
