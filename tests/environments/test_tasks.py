"""Every task runs, and its rewards, ends and observations are those of the formulas written out by NumPy."""

import functools
import importlib.util
import pathlib
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import mbjax
from mbjax.contact import are_worlds_alone
from mbjax.contact.forms import choose
from mbjax.environments import (
    AbstractEnvironment,
    Ant,
    ArmReach,
    CartPoleSwingUp,
    EnvState,
    Hopper,
    InHandCube,
    Motion,
    PlaygroundCartPole,
    PlaygroundReacher,
    QuadrupedVelocity,
    contact_forces,
    leap_hand_file,
)
from mbjax.errors import MissingPackageError

ASSETS = pathlib.Path(gymnasium.__file__).parent / "envs/mujoco/assets"
STEPS = 3


def of_gymnasium(name: str, time_step: float) -> mbjax.MultibodyModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbjax.ModelWarning)
        options = {"contact_model": "point", "on_unsupported": "warn"}
        return mbjax.load(ASSETS / f"{name}.xml", time_step=time_step, **options)


def gained(name: str, **options) -> mbjax.MultibodyModel:
    return mbjax.set_controller_gains(mbjax.load(name, **options), 60.0, 1.5)


def cart_pole(env: CartPoleSwingUp, before: EnvState, after: EnvState, action: np.ndarray) -> tuple[float, bool]:
    (x, angle), (_, rate) = after.physics.q, after.physics.v
    margins = (1.0 + 0.1 ** (x / 2.0) ** 2) / 2.0, (1.0 + 0.1 ** (rate / 5.0) ** 2) / 2.0
    return (1.0 + np.cos(angle)) / 2.0 * (4.0 + 1.0 - action[0] ** 2) / 5.0 * margins[0] * margins[1], False


def ant(env: Ant, before: EnvState, after: EnvState, action: np.ndarray) -> tuple[float, bool]:
    seen, shown = (gymnasium_sees("Ant-v4", env, state) for state in (before, after))
    np.testing.assert_allclose(after.observation, shown[2:], atol=1e-12)
    ends = not 0.2 <= shown[2] <= 1.0
    return (shown[0] - seen[0]) / 0.05 + (not ends) - 0.5 * action @ action, ends


def hopper(env: Hopper, before: EnvState, after: EnvState, action: np.ndarray) -> tuple[float, bool]:
    seen, shown = (gymnasium_sees("Hopper-v5", env, state) for state in (before, after))
    np.testing.assert_allclose(after.observation, np.clip(shown[1:], -10.0, 10.0), atol=1e-12)
    ends = not (shown[1] > 0.7 and abs(shown[2]) < 0.2)
    return (shown[0] - seen[0]) / 0.008 + (not ends) - 1e-3 * action @ action, ends


def gymnasium_sees(task: str, env: AbstractEnvironment, state: EnvState) -> np.ndarray:
    """The observation of the original for the state, with x and y, which it leaves out."""
    qpos, qvel = (np.asarray(x) for x in mbjax.mujoco_state(env.model, state.physics))
    original = originals(task)
    original.set_state(qpos, qvel)
    return np.concatenate([qpos[: qpos.size + qvel.size - original._get_obs().size], original._get_obs()])


@functools.cache
def originals(task: str) -> gymnasium.Env:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = gymnasium.make(task).unwrapped
    made.reset(seed=0)
    return made


def quadruped(env: QuadrupedVelocity, before: EnvState, after: EnvState, action: np.ndarray) -> tuple[float, bool]:
    q, v, command = np.asarray(after.physics.q), np.asarray(after.physics.v), np.asarray(before.memory.command)
    R_WB = Rotation.from_quat(np.roll(q[:4], -1))
    up, omega, velocity = R_WB.inv().apply(np.stack([[0.0, 0.0, 1.0], v[:3], v[3:6]]))
    names = [name.removesuffix("_motor") for name in env.model.actuator_names]
    joints = [env.model.position_names().index(f"quadruped_{name}_q") for name in names]
    angles = {"abduction": 0.0, "flexion": 0.6, "knee": -1.2}
    standing = np.array([angles[name.split("_")[-1]] for name in names])
    phase = float(before.memory.first_phase) + float(before.physics.time) / 0.5
    trot = np.asarray(env.trot.angles(np.float64(phase), command))
    effort = 60.0 * (standing + trot + 0.3 * action - q[joints]) - 1.5 * v[np.array(joints) - 1]
    wrong = np.append(velocity[:2], omega[2]) - command
    reward = np.exp(-(wrong[:2] @ wrong[:2]) / 0.15) + 0.5 * np.exp(-(wrong[2] ** 2) / 0.15)
    reward -= velocity[2] ** 2 + 0.05 * (omega[:2] @ omega[:2]) + up[:2] @ up[:2] + 2e-4 * effort @ effort
    change = action - np.asarray(before.memory.last_action)
    angle = 2.0 * np.pi * (phase + 0.02 / 0.5)
    seen = np.concatenate([velocity, omega, up, np.asarray(after.memory.command), [np.sin(angle), np.cos(angle)]])
    np.testing.assert_allclose(after.observation[:14], seen, atol=1e-12)
    np.testing.assert_allclose(after.observation[14:26], q[joints] - standing, atol=1e-12)
    np.testing.assert_array_equal(after.observation[-action.size :], action)
    return reward - 0.01 * (action @ action + change @ change), bool(up[2] < 0.5 or q[6] < 0.19)


def reach(env: ArmReach, before: EnvState, after: EnvState, action: np.ndarray) -> tuple[float, bool]:
    place = mbjax.body_poses_in_world(env.model, after.physics.q).translation[env.model.body_index("tool")]
    way = np.asarray(before.memory[1]) - np.asarray(place)
    np.testing.assert_allclose(after.observation[-3:], way, atol=1e-12)
    distance = np.linalg.norm(way)
    return np.exp(-100.0 * distance**2) - distance - 0.01 * action @ action, False


HAND = """
<mujoco>
  <default><geom friction="0.7"/><joint damping="0.1" range="-60 60"/><position kp="3" inheritrange="1"/></default>
  <worldbody>
    <body name="palm">
      <geom type="box" size="0.1 0.1 0.01"/>
      <body name="first" pos="0.06 0 0.01">
        <joint name="near" axis="0 1 0"/><geom name="first_tip" type="sphere" size="0.01" pos="0 0 0.04" mass="0.05"/>
      </body>
      <body name="second" pos="-0.06 0 0.01">
        <joint name="far" axis="0 1 0"/><geom name="second_tip" type="sphere" size="0.01" pos="0 0 0.04" mass="0.05"/>
      </body>
    </body>
    <body name="cube"><freejoint/><geom name="cube" type="box" size="0.035 0.035 0.035" mass="0.1"/></body>
  </worldbody>
  <actuator><position name="b" joint="far"/><position name="a" joint="near"/></actuator>
  <keyframe><key name="home" qpos="-0.2 0.3 0 0 0.08 1 0 0 0"/></keyframe>
</mujoco>
"""


def hand(text: str = HAND, **options) -> InHandCube:
    return InHandCube(mbjax.load(text, time_step=0.01, contact_pairs=[("*tip", "cube")], **options))


def in_hand(env: InHandCube, before: EnvState, after: EnvState, action: np.ndarray) -> tuple[float, bool]:
    """The reward and the end of MuJoCo Playground's LeapCubeRotateZAxis."""
    model, q, v = env.model, after.physics.q, after.physics.v
    cube = mbjax.body_pose_in_world(model, q, "cube").translation
    rate = v[model.body("cube").floating_velocities_start_in_v + 2]
    angles = [q[model.joint(joint).q.start] for joint in ("far", "near")]
    np.testing.assert_allclose(after.observation[:2], angles, atol=env.noise)
    np.testing.assert_array_equal(after.observation[2:], before.memory.last_action)
    np.testing.assert_array_equal(after.memory.last_action, action)
    ends = bool(cube[2] < -0.05)
    return 0.05 * (float(rate) - 100.0 * ends), ends


FEET = {"ground": 0.8, "contact_pairs": [("*foot*", "ground")]}
TASKS: dict[str, tuple[Callable[[], AbstractEnvironment], Callable]] = {
    "cart-pole": (lambda: CartPoleSwingUp(mbjax.load("cart_pole", time_step=0.02)), cart_pole),
    "ant": (lambda: Ant(of_gymnasium("ant", 0.01)), ant),
    "hopper": (lambda: Hopper(of_gymnasium("hopper", 0.002)), hopper),
    "quadruped": (lambda: QuadrupedVelocity(gained("quadruped", time_step=0.01, **FEET)), quadruped),
    "arm": (lambda: ArmReach(gained("arm", time_step=0.01)), reach),
    "hand": (hand, in_hand),
}


OTHERS = pytest.mark.whole_run("a cart-pole and a quadruped; a cube that falls out of a hand")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=OTHERS if name in ("hopper", "arm", "ant", "hand") else ()) for name in TASKS]
)
def test_rewards_ends_and_observations(name: str) -> None:
    made, formula = TASKS[name]
    env = made()
    actions = jax.random.uniform(jax.random.key(1), (STEPS, env.action_size), minval=-0.9, maxval=0.9)

    @jax.jit
    def run(key: jax.Array, actions: jax.Array) -> tuple[EnvState, EnvState]:
        first = env.reset(key)
        return first, jax.lax.scan(lambda state, action: (env.step(state, action),) * 2, first, actions)[1]

    before, way = run(jax.random.key(0), actions)
    assert way.observation.shape == (STEPS, env.observation_size)
    for i in range(STEPS):
        after = jax.tree.map(lambda x: x[i], way)  # noqa: B023
        reward, ends = formula(env, before, after, np.asarray(actions[i]))
        np.testing.assert_allclose(after.reward, reward, rtol=1e-10, atol=1e-12)
        assert bool(after.done) == ends
        assert np.isfinite(after.observation).all()
        np.testing.assert_allclose(after.physics.time - before.physics.time, env.substeps * env.model.time_step)
        before = after


@pytest.mark.whole_run("rewards, ends and observations of the tasks")
def test_a_task_that_reads_no_ports_moves_as_steps_do(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Where nobody reads contact forces, worlds have lists of contacts. Whole run: with derivatives by the action."""
    monkeypatch.setattr(choose, "LEAST_PAIRS_OF_BODIES", 1)
    env, model = hand(), hand().model
    assert are_worlds_alone(model, reads_points=False)
    first = [env.start(jax.random.key(i)) for i in range(3)]
    states, memories = jax.tree.map(lambda *x: jnp.stack(x), *first)
    actions = jnp.array([[0.9, -0.9], [0.9, -0.5], [0.4, -0.9]])

    def by_task(action: jax.Array, state: mbjax.State, memory: Any) -> tuple[jax.Array, jax.Array]:
        inputs = env.inputs(state, memory, action)
        state, _ = jax.lax.scan(lambda state, _: (env.moved(state, inputs)[0], ()), state, None, 3)
        return jnp.concatenate([state.q, state.v]), jnp.zeros(())

    def by_steps(action: jax.Array, state: mbjax.State, memory: Any) -> tuple[jax.Array, jax.Array]:
        inputs = env.inputs(state, memory, action)

        def one(state: mbjax.State, _: None) -> tuple[mbjax.State, jax.Array]:
            after, ports = mbjax.step(model, state, inputs)
            return after, contact_forces(model, ports, ["first"])[0]

        state, forces = jax.lax.scan(one, state, None, 3 * env.substeps)
        return jnp.concatenate([state.q, state.v]), jnp.max(forces)

    def measured(function: Callable) -> tuple:
        def of_world(action: jax.Array, *rest: Any) -> tuple:
            if request.config.getoption("--trimmed"):
                return function(action, *rest)
            (after, finger), slope = jax.jvp(lambda x: function(x, *rest), (action,), (jnp.ones_like(action),))
            back = jax.grad(lambda x: function(x, *rest)[0][-1])(action)
            return after, finger, slope[0], back

        return jax.jit(jax.vmap(of_world))(actions, states, memories)

    ours, theirs = measured(by_task), measured(by_steps)
    assert np.all(theirs[1] > 0.1), "a finger has to touch the cube"
    for found, expected in [(ours[0], theirs[0]), *zip(ours[2:], theirs[2:], strict=True)]:
        scale = float(jnp.abs(expected).max())
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9 * scale)


def test_a_cube_that_falls_ends_the_episode() -> None:
    """It starts near its place at home, turned at random, and is dropped where there is no hand below."""
    env = hand(HAND.replace("0 0 0.08 1", "0.3 0 -0.04 1"))
    first, second = (env.start(jax.random.key(i))[0] for i in range(2))
    places = np.stack([x.q[env.cube_rows[1]] for x in (first, second)])
    assert np.abs(places - [0.3, 0.0, -0.04]).max() < 0.01
    assert np.abs(first.q - second.q).min() > 0.0
    below, memory = mbjax.State(first.q - 0.02, first.v), env.start(jax.random.key(0))[1]
    for state, fell in ((first, False), (below, True)):
        outcome = env.judge(Motion(first, state, (), np.float64(0.05)), memory, np.zeros(2), jax.random.key(0))
        assert bool(outcome.ends) == fell
        assert float(outcome.reward) == -5.0 * fell


def test_hands_that_cannot_do_the_task_are_refused() -> None:
    with pytest.raises(mbjax.ModelError, match="must move freely"):
        hand(HAND.replace("<freejoint/>", "").replace("0 0 0.08 1 0 0 0", ""))
    with pytest.raises(mbjax.ModelError, match="need gains"):
        hand(HAND.replace("<position name", "<motor name"))


def test_robots_without_effort_limits_are_refused() -> None:
    """Known ones, where actions are shares of the limit; numbers that are traced pass."""
    model = mbjax.load("pendulum", time_step=0.01)
    (name,) = model.actuator_names
    bounded, without = (mbjax.set_effort_limit(model, name, limit) for limit in (2.0, np.inf))
    reacher = functools.partial(PlaygroundReacher, finger=model.body_names[-1])
    for task in (PlaygroundCartPole, reacher):
        assert task(bounded).model is bounded
        words = rf"actuator '{name}' has no effort limit.*set_effort_limit\(model, '{name}', \.\.\.\)"
        with pytest.raises(mbjax.ModelError, match=words):
            task(without)
    inputs = jax.jit(lambda model: PlaygroundCartPole(model).inputs(mbjax.default_state(model), (), jnp.ones(1)))
    np.testing.assert_array_equal(inputs(bounded), [2.0])
    for task in (Ant, Hopper):
        walker = of_gymnasium(task.__name__.lower(), 0.01)
        with pytest.raises(mbjax.ModelError, match=f"{task.__name__}: actuator '.*' has no effort limit"):
            task(mbjax.set_effort_limit(walker, walker.actuator_names[1], np.inf))


def test_an_arm_has_its_actuators_in_the_order_of_its_joints() -> None:
    def arm(*joints: str) -> mbjax.MultibodyModel:
        plant = mbjax.MultibodyPlant(0.01)
        for name, parent in (("upper", "world"), ("tool", "upper")):
            plant.add_rigid_body(name, mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1))
            plant.add_joint(mbjax.RevoluteJoint(name, parent, name, axis=[0, 1, 0]))
        for i, joint in enumerate(joints):
            plant.add_joint_actuator(f"motor_{i}", joint)
        return plant.finalize()

    assert ArmReach(arm("upper", "tool")).action_size == 2
    for joints in (("tool", "upper"), ("upper", "upper")):
        with pytest.raises(mbjax.ModelError, match=r"ArmReach: actuator 'motor_.*must come in the order of q"):
            ArmReach(arm(*joints))


def test_a_missing_playground_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match="pip install playground"):
        leap_hand_file()
