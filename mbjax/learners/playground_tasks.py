"""Tasks of MuJoCo Playground by their names, with the physics of mbjax and the files of Playground's wheel."""

import fnmatch
import importlib.util
import pathlib
import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from mbjax.environments import (
    AbstractEnvironment,
    InHandCube,
    JoystickBiped,
    JoystickQuadruped,
    PlaygroundCartPole,
    PlaygroundReacher,
)
from mbjax.environments.playground import G1
from mbjax.environments.tasks.in_hand import SCENE
from mbjax.errors import MissingPackageError, ModelError, ModelWarning
from mbjax.formats import load
from mbjax.model import MultibodyModel, set_friction
from mbjax.optional_packages import how_to_install

SUITE, LOCOMOTION = "_src/dm_control_suite/xmls", "_src/locomotion"
FRICTION = 0.6  # of feet on the floor, of all robots
# MuJoCo takes the larger friction of a pair, 0.7 at a tip and 0.3 elsewhere; here a pair has 2 a b / (a + b).
FRICTION_OF_HAND = MappingProxyType({"cube": 1e4, "*_tip": 0.35, "*_collision*": 0.15})


class PlaygroundTask(NamedTuple):
    """A task's file in the wheel, the time step of its physics in s, its environment, and what that is made with.

    `pairs` are those of shapes that may touch, by default all; `friction` is by patterns of shapes' names.
    """

    file: str
    time_step: float
    environment: Callable[..., AbstractEnvironment]
    options: dict[str, Any]
    pairs: tuple[tuple[str, str], ...] | None = None
    friction: Mapping[str, float] = MappingProxyType({"*": FRICTION})


CART_POLE = f"{SUITE}/cartpole.xml", 0.01, PlaygroundCartPole
REACHER = f"{SUITE}/reacher.xml", 0.005, PlaygroundReacher
PLAYGROUND_TASKS = {
    "CartpoleBalance": PlaygroundTask(*CART_POLE, {"swings_up": False}),
    "CartpoleBalanceSparse": PlaygroundTask(*CART_POLE, {"swings_up": False, "sparse": True}),
    "CartpoleSwingup": PlaygroundTask(*CART_POLE, {}),
    "CartpoleSwingupSparse": PlaygroundTask(*CART_POLE, {"sparse": True}),
    "ReacherEasy": PlaygroundTask(*REACHER, {"radius": 0.06}),
    "ReacherHard": PlaygroundTask(*REACHER, {"radius": 0.025}),
    "Go1JoystickFlatTerrain": PlaygroundTask(
        f"{LOCOMOTION}/go1/xmls/scene_mjx_feetonly_flat_terrain.xml", 0.004, JoystickQuadruped, {}
    ),
    "BerkeleyHumanoidJoystickFlatTerrain": PlaygroundTask(
        f"{LOCOMOTION}/berkeley_humanoid/xmls/scene_mjx_feetonly_flat_terrain.xml", 0.002, JoystickBiped, {}
    ),
    "G1JoystickFlatTerrain": PlaygroundTask(
        f"{LOCOMOTION}/g1/xmls/scene_mjx_feetonly_flat_terrain.xml", 0.002, JoystickBiped, {"rules": G1}
    ),
    "LeapCubeRotateZAxis": PlaygroundTask(
        SCENE, 0.01, InHandCube, {}, (("*_collision*", "cube"), ("*_tip", "cube")), FRICTION_OF_HAND
    ),
}


def playground(name: str, **options: Any) -> AbstractEnvironment:
    """A task of MuJoCo Playground by its name there, with the same observations, rewards and ends of episodes.

        env = mbjax.learners.playground_tasks.playground("Go1JoystickFlatTerrain")
        episodes = mbjax.environments.Episodes(env, length=1000, same_start=True)

    The physics are those of mbjax: contact is Drake's, rigid with friction, not MuJoCo's soft one, and limits of joints
    are exact. Time steps are Playground's. Options go to the environment, such as `noise=None`. Needs the files of
    Playground's wheel, but neither MJX nor the robots' meshes, which Playground downloads: these are only drawn.
    """
    if name not in PLAYGROUND_TASKS:
        known = ", ".join(PLAYGROUND_TASKS)
        raise ModelError(f"playground: there is no task '{name}' here; those that there are: {known}.")
    task = PLAYGROUND_TASKS[name]
    return task.environment(playground_model(name), **(task.options | options))


def playground_model(name: str, time_step: float | None = None) -> MultibodyModel:
    """The model of a task of Playground; pairs that may touch have the friction that they have in Playground."""
    task = PLAYGROUND_TASKS[name]
    path = playground_file(task.file)
    options: dict[str, Any] = {"contact_model": "point", "contact_pairs": task.pairs, "on_unsupported": "warn"}
    with warnings.catch_warnings():  # of meshes that are only drawn, and of targets that tasks move themselves
        warnings.simplefilter("ignore", ModelWarning)
        model = load(path, time_step=time_step or task.time_step, **options)
    kept = model.collision_pairs if task.pairs else [pair for pair in model.collision_pairs if "world::floor" in pair]
    for shape in sorted({name for pair in kept for name in pair}):
        own = shape.split("::")[-1]
        model = set_friction(
            model, shape, next(x for pattern, x in task.friction.items() if fnmatch.fnmatchcase(own, pattern))
        )
    return model


def playground_file(file: str) -> pathlib.Path:
    """A file of Playground's wheel; raises `MissingPackageError` where it is not installed."""
    found = importlib.util.find_spec("mujoco_playground")
    if found is None or found.origin is None:
        raise MissingPackageError(
            f"playground: the robots' files are those of MuJoCo Playground: {how_to_install('playground', None)}; the "
            "wheel alone is enough (pip install --no-deps playground)."
        )
    path = pathlib.Path(found.origin).parent / file
    if not path.is_file():
        raise MissingPackageError(
            f"playground: {path} is not there; files of 0.2.0 are known: pip install playground==0.2.0."
        )
    return path
