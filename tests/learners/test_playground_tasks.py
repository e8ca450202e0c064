"""Playground's tasks beside Playground's own code, on the states of our simulation, where its wheel is installed."""

import importlib
import importlib.util
import types
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import mbjax
from mbjax.environments import AbstractEnvironment, EnvState, InHandCube
from mbjax.errors import MissingPackageError
from mbjax.learners.playground_tasks import playground

HAS_WHEEL = importlib.util.find_spec("mujoco_playground") is not None
needs_wheel = pytest.mark.skipif(
    not HAS_WHEEL, reason="needs the files of Playground: pip install --no-deps playground"
)
TETRAHEDRON = np.array(
    [
        [0, 0, 0, 1, 0, 0, 0, 1, 0],
        [0, 0, 0, 0, 1, 0, 0, 0, 1],
        [0, 0, 0, 0, 0, 1, 1, 0, 0],
        [1, 0, 0, 0, 0, 1, 0, 1, 0],
    ],
    float,
)
STEPS = 200
ACCELEROMETER = slice(51, 54)  # of the Go1's privileged state


def stl_of_a_tetrahedron() -> bytes:
    """A binary STL file that stands for meshes that are only drawn, which Playground downloads."""
    facets = b"".join(
        np.concatenate([np.zeros(3), 0.01 * facet]).astype("<f4").tobytes() + bytes(2) for facet in TETRAHEDRON
    )
    return bytes(80) + np.uint32(len(TETRAHEDRON)).tobytes() + facets


OBJ_OF_A_TETRAHEDRON = b"""
v 0 0 0
v 0.01 0 0
v 0 0.01 0
v 0 0 0.01
f 1 3 2
f 1 2 4
f 1 4 3
f 2 3 4
"""


class Assets(dict):
    """Playground's files, and a tetrahedron for every mesh that is not there."""

    def __init__(self, files: dict):
        super().__init__(files)
        texts = b"".join(text for name, text in files.items() if name.endswith(".xml")).decode()
        meshes = {part.split('"')[0].split("/")[-1] for part in texts.split('file="')[1:]}
        for name in meshes - set(files):
            if name.lower().endswith(".stl"):
                self[name] = stl_of_a_tetrahedron()
            elif name.lower().endswith(".obj"):
                self[name] = OBJ_OF_A_TETRAHEDRON


class Original:
    """Playground's environment, with MuJoCo's C in the place of MJX: it judges the states that it is given."""

    def __init__(self, module: str, make: Callable, patch: pytest.MonkeyPatch):
        base = "mujoco_playground._src"
        self.mjx_env = importlib.import_module(f"{base}.mjx_env")
        home = importlib.import_module(f"{base}.{module}")
        mjx = importlib.import_module("mujoco.mjx")
        patch.setattr(mjx, "put_model", lambda model, **_: OfC(model))
        patch.setattr(mjx, "forward", lambda _, data: data)
        patch.setattr(self.mjx_env, "make_data", lambda *_, **__: self.data)
        patch.setattr(self.mjx_env, "step", lambda *_: self.data)
        self.data: Any = None
        self.env = make(home)
        self.model = self.env.mj_model
        self.of_c = mujoco.MjData(self.model)
        self.state: Any = None

    def shown(self, env: AbstractEnvironment, state: EnvState, ctrl: np.ndarray, target: np.ndarray | None) -> None:
        """MuJoCo's numbers for one of our states."""
        data = self.of_c
        data.qpos[:], data.qvel[:] = map(np.asarray, mbjax.mujoco_state(env.model, state.physics))
        data.ctrl[:] = ctrl
        if target is not None:
            data.mocap_pos[0, :2] = target
        mujoco.mj_forward(self.model, data)
        names = (
            "qpos",
            "qvel",
            "ctrl",
            "sensordata",
            "site_xpos",
            "geom_xpos",
            "actuator_force",
            "xfrc_applied",
            "mocap_pos",
            "qacc",
        )
        arrays = {name: jnp.array(getattr(data, name)) for name in names}
        arrays |= {name: jnp.array(getattr(data, name)).reshape(-1, 3, 3) for name in ("site_xmat", "xmat")}
        self.data = Data(arrays)

    def step(self, action: np.ndarray, command: np.ndarray | None) -> tuple[Any, float, bool]:
        """Observation, reward and end by Playground, for the state shown last."""
        if command is not None:
            self.state.info["command"] = jnp.asarray(command)
        with jax.numpy_dtype_promotion("standard"):
            self.state = self.env.step(self.state, jnp.asarray(action))
        return self.state.obs, float(self.state.reward), bool(self.state.done)


class OfC:
    """MuJoCo's model in the place of MJX's."""

    def __init__(self, model: mujoco.MjModel):
        self.model, self.impl = model, types.SimpleNamespace(value="c")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)


class Data(types.SimpleNamespace):
    """What Playground reads of MJX's data."""

    def __init__(self, arrays: dict):
        super().__init__(**arrays)

    def replace(self, **changes: Any) -> "Data":
        return Data(vars(self) | changes)


def of_suite(name: str) -> Callable:
    def make(home: Any) -> Any:
        partials = {
            "CartpoleSwingup": lambda: home.Balance(swing_up=True, sparse=False),
            "CartpoleSwingupSparse": lambda: home.Balance(swing_up=True, sparse=True),
            "CartpoleBalance": lambda: home.Balance(swing_up=False, sparse=False),
            "ReacherEasy": lambda: home.Reacher(home.BIG_TARGET),
            "ReacherHard": lambda: home.Reacher(home.SMALL_TARGET),
        }
        return partials[name]()

    return make


def of_robot(base: str, patch: pytest.MonkeyPatch) -> Callable:
    def make(home: Any) -> Any:
        module = importlib.import_module(f"mujoco_playground._src.{base}.base")
        files = module.get_assets()
        patch.setattr(module, "get_assets", lambda: Assets(files))
        quiet = {"noise_config.level": 0.0}
        if base.endswith("leap_hand"):
            return home.CubeRotateZAxis(config_overrides=quiet)
        of_forces = {"reward_config.scales.contact_force": 0.0} if base.endswith("g1") else {}
        return home.Joystick(config_overrides=quiet | of_forces)

    return make


CASES = {
    "CartpoleSwingup": ("dm_control_suite.cartpole", None),
    "CartpoleSwingupSparse": ("dm_control_suite.cartpole", None),
    "CartpoleBalance": ("dm_control_suite.cartpole", None),
    "ReacherEasy": ("dm_control_suite.reacher", None),
    "ReacherHard": ("dm_control_suite.reacher", None),
    "Go1JoystickFlatTerrain": ("locomotion.go1.joystick", "locomotion.go1"),
    "BerkeleyHumanoidJoystickFlatTerrain": ("locomotion.berkeley_humanoid.joystick", "locomotion.berkeley_humanoid"),
    "G1JoystickFlatTerrain": ("locomotion.g1.joystick", "locomotion.g1"),
    "LeapCubeRotateZAxis": ("manipulation.leap_hand.rotate_z", "manipulation.leap_hand"),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Original]:
    module, robot = CASES[request.param]
    make = of_robot(robot, monkeypatch) if robot else of_suite(request.param)
    return request.param, Original(module, make, monkeypatch)


@needs_wheel
def test_observations_rewards_and_ends_are_those_of_playground(case: tuple[str, Original]) -> None:
    """On the states of our simulation, entry by entry, over 200 steps under actions that change slowly."""
    name, original = case
    is_robot = "Joystick" in name
    options: dict[str, dict] = {
        "Go1JoystickFlatTerrain": {"noise": None, "privileged": True},
        "LeapCubeRotateZAxis": {"noise": 0.0, "privileged": True},
    }
    env = playground(name, **options.get(name, {"noise": False} if is_robot else {}))
    rng = np.random.default_rng(0)
    actions = np.clip(np.cumsum(rng.normal(size=(STEPS, env.action_size)), axis=0) * 0.2, -1.0, 1.0)

    @jax.jit
    def run(key: jax.Array, actions: jax.Array) -> tuple[EnvState, EnvState]:
        first = env.reset(key)
        return first, jax.lax.scan(lambda state, action: (env.step(state, action),) * 2, first, actions)[1]

    first, way = run(jax.random.key(0), jnp.asarray(actions))
    target = np.asarray(first.memory) if name.startswith("Reacher") else None
    original.shown(env, first, np.zeros(env.action_size), target)
    with jax.numpy_dtype_promotion("standard"):
        original.state = original.env.reset(jax.random.key(0))
    if hasattr(first.memory, "rate"):
        original.state.info["phase_dt"] = jnp.asarray(first.memory.rate)[None]
    before, rewards = first, []
    for i in range(STEPS):
        after = jax.tree.map(lambda x: x[i], way)  # noqa: B023
        asked = 0.5 * actions[i] + np.asarray(env.joints.home) if is_robot else actions[i]
        if isinstance(env, InHandCube):
            asked = np.asarray(env.desired(actions[i]))
        original.shown(env, after, asked, target)
        observation, reward, ends = original.step(actions[i], before.memory.command if is_robot else None)
        if env.observation_groups:
            observation = np.array(observation["privileged_state"])
        if is_robot and env.observation_groups:
            observation[ACCELEROMETER] = after.observation[ACCELEROMETER]  # by MuJoCo's contact, and by ours
        elif is_robot:
            observation = observation["state"]
        np.testing.assert_allclose(after.observation, observation, atol=1e-9, err_msg=f"step {i}")
        if is_robot:
            for part, number in after.metrics.items():
                expected = original.state.metrics[f"reward/{part}"]
                np.testing.assert_allclose(number, expected, atol=1e-9, err_msg=f"step {i}, {part}")
        np.testing.assert_allclose(after.reward, reward, atol=1e-9, err_msg=f"step {i}")
        assert bool(after.done) == ends
        rewards.append(reward)
        before = after
    assert np.ptp(rewards) > 0.0 or "Sparse" in name or "Reacher" in name


def test_unknown_tasks_and_a_missing_wheel_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(mbjax.ModelError, match="no task 'Go2' here; those that there are: CartpoleBalance"):
        playground("Go2")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match="pip install --no-deps playground"):
        playground("ReacherEasy")
