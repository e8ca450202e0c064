"""Tasks of Playground on small robots: observations are MuJoCo's sensors, rewards the formulas written out by NumPy.

`tests/learners/test_playground_tasks.py` has Playground's own robots and code, where its wheel is installed.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import mbjax
from mbjax.environments import (
    BipedRules,
    EnvState,
    JoystickBiped,
    JoystickQuadruped,
    Motion,
    PlaygroundCartPole,
    PlaygroundReacher,
    QuadrupedVelocity,
    as_brax,
    frame_motion,
)
from mbjax.environments.playground.biped import height_of_phase
from mbjax.environments.playground.joystick import Noise, command_after

CART_POLE = """
<mujoco><worldbody><body name="cart"><joint name="slider" type="slide" axis="1 0 0" range="-1.8 1.8" limited="true"/>
  <geom type="box" size="0.2 0.15 0.1" mass="1"/>
  <body name="pole"><joint name="hinge" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 0 0 1" size="0.045" mass="0.1"/></body></body></worldbody>
<actuator><motor joint="slider" gear="10" ctrllimited="true" ctrlrange="-1 1"/></actuator></mujoco>
"""
REACHER = """
<mujoco><compiler angle="degree"/><worldbody>
  <body name="arm" pos="0 0 0.01"><joint name="shoulder" axis="0 0 1" damping="0.01"/>
    <geom type="capsule" fromto="0 0 0 0.12 0 0" size="0.01"/>
    <body name="hand" pos="0.12 0 0"><joint name="wrist" axis="0 0 1" limited="true" range="-160 160" damping="0.01"/>
      <geom type="capsule" fromto="0 0 0 0.1 0 0" size="0.01"/>
      <body name="finger" pos="0.12 0 0"><geom type="sphere" size="0.01"/></body></body></body></worldbody>
<actuator><motor joint="shoulder" gear="0.05" ctrllimited="true" ctrlrange="-1 1"/>
  <motor joint="wrist" gear="0.05" ctrllimited="true" ctrlrange="-1 1"/></actuator></mujoco>
"""
PLACES = {"FR": (0.2, -0.1), "FL": (0.2, 0.1), "RR": (-0.2, -0.1), "RL": (-0.2, 0.1)}


def walker(places: dict[str, tuple[float, float]]) -> str:
    """A trunk on legs of one joint each, with an inertial unit that is turned, and a frame at each foot.

    Efforts are limited at the actuators of four legs, and at the joints of two, as in Playground's files.
    """
    of_joint, of_actuator = 'actuatorfrclimited="true" actuatorfrcrange', 'forcelimited="true" forcerange'
    limits = [f'{name}="-6 6"' for name in (of_joint, of_actuator)]
    of_joint, of_actuator = (limits[0], "") if len(places) == 2 else ("", limits[1])
    legs = "".join(
        f'<body name="{n}_leg" pos="{x} {y} 0"><joint name="{n}_joint" axis="0 1 0" range="-0.6 0.8" limited="true" '
        f'damping="0.5" {of_joint}/><geom name="{n}_rod" type="capsule" fromto="0 0 0 0 0 -0.2" size="0.01" mass="0.3" '
        f'contype="0" conaffinity="0"/><geom name="{n}" type="sphere" pos="0 0 -0.2" size="0.02" mass="0.05"/>'
        f'<site name="{n}" pos="0 0 -0.2"/></body>'
        for n, (x, y) in places.items()
    )
    sensors = "".join(f'<framelinvel objtype="site" objname="{n}" name="{n}_vel"/>' for n in places)
    actuators = "".join(
        f'<position joint="{n}_joint" kp="40" ctrllimited="true" ctrlrange="-0.6 0.8" {of_actuator}/>' for n in places
    )
    angles = " ".join(["0.1"] * len(places))
    return f"""
<mujoco><compiler angle="radian"/><worldbody><geom name="floor" type="plane" size="0 0 1"/>
  <body name="trunk" pos="0 0 0.23"><freejoint/><geom name="box" type="box" size="0.2 0.1 0.04" mass="4" contype="0"
    conaffinity="0"/><site name="imu" pos="0.02 -0.06 0.01" euler="0.1 -0.2 0.3"/>{legs}</body></worldbody>
<actuator>{actuators}</actuator>
<sensor><velocimeter site="imu"/><gyro site="imu"/><framezaxis objtype="site" objname="imu"/>
  <framelinvel objtype="site" objname="imu"/><frameangvel objtype="site" objname="imu"/>{sensors}</sensor>
<keyframe><key name="home" qpos="0 0 0.219 1 0 0 0 {angles}"/></keyframe></mujoco>
"""


def loaded(text: str, time_step: float) -> mbjax.MultibodyModel:
    options = {"contact_pairs": [("floor", name) for name in PLACES if f'"{name}"' in text]} if "floor" in text else {}
    return mbjax.load(text, time_step=time_step, on_unsupported="warn", **options)


class Judge:
    """MuJoCo's C for the states of an environment: sensors, heights of feet, and which feet touch."""

    def __init__(self, env: JoystickQuadruped | JoystickBiped, text: str, feet: tuple[str, ...]):
        self.env, self.feet = env, feet
        self.model = mujoco.MjModel.from_xml_string(text)
        self.data = mujoco.MjData(self.model)

    def look(self, state: EnvState, ctrl: np.ndarray) -> None:
        data = self.data
        data.qpos[:], data.qvel[:] = map(np.asarray, mbjax.mujoco_state(self.env.model, state.physics))
        data.ctrl[:] = ctrl
        mujoco.mj_forward(self.model, data)
        self.velocity, self.gyro, self.up, self.global_velocity, self.turning = data.sensordata[:15].reshape(5, 3)
        self.feet_velocity = data.sensordata[15:].reshape(-1, 3)
        self.gravity = data.site("imu").xmat.reshape(3, 3).T @ [0, 0, -1]
        self.heights = np.array([data.site(name).xpos[2] for name in self.feet])
        pairs = [{self.model.geom(i).name for i in contact.geom} for contact in data.contact if contact.dist < 0.0]
        self.touches = np.array([{name, "floor"} in pairs for name in self.feet])
        self.effort = data.actuator_force.copy()


@pytest.fixture(scope="module")
def quadruped() -> tuple[JoystickQuadruped, EnvState, EnvState, np.ndarray]:
    """An environment without noise, its start, and 60 steps under actions that lift feet."""
    model = loaded(walker(PLACES), 0.004)
    return walked(JoystickQuadruped(model, noise=None))


def walked(env, steps: int = 60):
    rng = np.random.default_rng(3)
    actions = np.clip(np.cumsum(rng.normal(size=(steps, env.action_size)), axis=0) * 0.4, -1.0, 1.0)

    @jax.jit
    def run(key: jax.Array, actions: jax.Array) -> tuple[EnvState, EnvState]:
        first = env.reset(key)
        return first, jax.lax.scan(lambda state, action: (env.step(state, action),) * 2, first, actions)[1]

    return env, *run(jax.random.key(0), jnp.asarray(actions)), actions


def test_the_quadrupeds_observations_and_rewards(quadruped) -> None:
    env, before, way, actions = quadruped
    judge = Judge(env, walker(PLACES), env.feet)
    home, aloft, peak, last = np.full(4, 0.1), np.zeros(4), np.zeros(4), np.zeros(4)
    touched, landed = np.zeros(4, bool), 0
    shown = np.asarray(before.memory.command)
    np.testing.assert_array_equal(before.observation[-3:], shown)
    for i, action in enumerate(actions):
        after = jax.tree.map(lambda x: x[i], way)  # noqa: B023
        judge.look(after, home + 0.5 * action)
        command = np.asarray(before.memory.command)
        q, v = np.asarray(after.physics.q[7:]), np.asarray(after.physics.v[6:])
        seen = [judge.velocity, judge.gyro, judge.gravity, q - home, v, last, command]
        np.testing.assert_allclose(after.observation, np.concatenate(seen), atol=1e-9)
        has_landed = (aloft > 0.0) & (judge.touches | touched)
        aloft, peak = aloft + 0.02, np.maximum(peak, judge.heights)
        speed, moves = np.linalg.norm(judge.feet_velocity[:, :2], axis=1), np.linalg.norm(command) > 0.01
        low, high = 0.95 * -0.6, 0.95 * 0.8
        terms = {
            "tracking_lin_vel": np.exp(-np.sum((command[:2] - judge.velocity[:2]) ** 2) / 0.25),
            "tracking_ang_vel": np.exp(-((command[2] - judge.gyro[2]) ** 2) / 0.25),
            "lin_vel_z": judge.global_velocity[2] ** 2,
            "ang_vel_xy": np.sum(judge.turning[:2] ** 2),
            "orientation": np.sum(judge.up[:2] ** 2),
            "stand_still": np.abs(q - home).sum() * (not moves),
            "pose": np.exp(-np.sum(np.array([1.0, 1.0, 0.1, 1.0]) * (q - home) ** 2)),
            "torques": np.linalg.norm(judge.effort) + np.abs(judge.effort).sum(),
            "action_rate": np.sum((action - last) ** 2),
            "energy": np.abs(judge.effort * v).sum(),
            "feet_slip": moves * np.sum(speed**2 * judge.touches),
            "feet_clearance": np.sum(np.abs(judge.heights - 0.1) * np.sqrt(speed)),
            "feet_height": moves * np.sum((peak / 0.1 - 1.0) ** 2 * has_landed),
            "feet_air_time": moves * np.sum((aloft - 0.1) * has_landed),
            "dof_pos_limits": np.sum(np.maximum(low - q, 0.0) + np.maximum(q - high, 0.0)),
            "termination": judge.up[2] < 0.0,
        }
        for name, number in after.metrics.items():
            np.testing.assert_allclose(number, env.weights[name] * terms[name], atol=1e-9, err_msg=f"{i}: {name}")
        total = 0.02 * sum(env.weights[name] * x for name, x in terms.items())
        np.testing.assert_allclose(after.reward, max(total, 0.0), atol=1e-9)
        assert bool(after.done) == (judge.up[2] < 0.0)
        aloft, peak = np.where(judge.touches, 0.0, aloft), np.where(judge.touches, 0.0, peak)
        touched, last, landed, before = judge.touches, action, landed + has_landed.sum(), after
    assert landed > 3, "feet were in the air and came down"


@pytest.mark.whole_run("brax's wrappers in test_adapters.py, and what the policy sees, above")
def test_brax_gets_what_the_policy_and_the_critic_see_by_their_names(quadruped) -> None:
    env = dataclasses.replace(quadruped[0], privileged=True)
    adapted = as_brax(env)
    assert adapted.observation_size == {"state": (24,), "privileged_state": (75,)}
    first = jax.eval_shape(adapted.reset, jax.random.key(0))
    after = jax.eval_shape(adapted.step, first, jnp.zeros(4))
    for state in (first, after):
        assert {name: x.shape for name, x in state.obs.items()} == adapted.observation_size


@pytest.mark.whole_run("soles flat on the ground at a keyframe, in test_biped_steps")
def test_residuals_on_a_trot_start_from_the_keyframe(quadruped) -> None:
    """Any robot with feet and a keyframe "home" walks by `QuadrupedVelocity`: joints as there, feet on the ground."""
    home = QuadrupedVelocity(quadruped[0].model).home
    np.testing.assert_allclose(home[7:], 0.1, atol=1e-12)
    np.testing.assert_allclose(home[:7], [1, 0, 0, 0, 0, 0, 0.2 * np.cos(0.1) + 0.02], atol=1e-12)


def test_a_weight_of_no_term_is_refused(quadruped) -> None:
    with pytest.raises(mbjax.ModelError, match="no term 'feet_hight'; weights are of action_rate,"):
        dataclasses.replace(quadruped[0], weights={"feet_hight": 1.0})


def test_noise_is_uniform_up_to_its_sizes() -> None:
    parts = {"linvel": jnp.zeros(3), "gyro": jnp.zeros(3), "gravity": jnp.ones(3), "joint_pos": jnp.zeros(2)}
    noise = Noise(joint_pos=(0.01, 0.5))
    seen = jax.vmap(lambda key: noise.added(parts, key))(jax.random.split(jax.random.key(0), 4000))
    sizes = {"linvel": 0.1, "gyro": 0.2, "gravity": 0.05, "joint_pos": np.array([0.01, 0.5])}
    for name, size in sizes.items():
        error = np.asarray(seen[name] - parts[name])
        np.testing.assert_allclose(np.abs(error).max(axis=0), np.broadcast_to(size, error.shape[1:]), rtol=0.01)
        np.testing.assert_allclose(error.std(axis=0), np.broadcast_to(size / np.sqrt(3.0), error.shape[1:]), rtol=0.05)


def test_commands_follow_one_another_as_in_playground() -> None:
    """Half of the numbers stay; of the others those that are not kept are zero."""
    keys = jax.random.split(jax.random.key(1), 20_000)
    command, kept = jnp.array([5.0, 6.0, 7.0]), np.array([0.9, 0.25, 0.5])
    drawn = np.asarray(jax.vmap(lambda key: command_after(command, (1.5, 0.8, 1.2), tuple(kept), key))(keys))
    np.testing.assert_allclose((drawn == np.asarray(command)).mean(axis=0), 0.5, atol=0.02)
    np.testing.assert_allclose((drawn == 0.0).mean(axis=0), 0.5 * (1.0 - kept), atol=0.02)
    new = np.where(drawn == np.asarray(command), 0.0, np.abs(drawn))
    np.testing.assert_allclose(new.max(axis=0), [1.5, 0.8, 1.2], rtol=0.01)


LEGS = {"left": (0.0, 0.1), "right": (0.0, -0.1)}


@pytest.mark.whole_run("those of a quadruped, above, and heights of a phase, below")
def test_the_bipeds_observations_and_rewards() -> None:
    weights = {
        "tracking_lin_vel": 1.0, "tracking_ang_vel": 0.5, "ang_vel_xy": -0.15, "orientation": -1.0, "torques": -1e-4,
        "action_rate": -0.01, "feet_air_time": 2.0, "feet_slip": -0.25, "feet_phase": 1.0, "termination": -1.0,
        "joint_deviation_knee": -0.1, "joint_deviation_hip": -0.25, "dof_pos_limits": -1.0, "pose": -1.0,
        "stand_still": -1.0,
    }  # fmt: skip
    rules = BipedRules(
        home="home", pelvis="imu", torso="imu", feet=("left", "right"), soles=("left", "right"),
        hips=("left_joint", "right_joint"), knees=("right_joint",), weights=tuple(weights.items()),
        fastest=(1.0, 1.0, 1.0), sigma=0.5, foot_height=0.1, noise=Noise(), pose_weights=(0.7,),
    )  # fmt: skip
    text = walker(LEGS)
    model = mbjax.load(
        text, time_step=0.005, on_unsupported="warn", contact_pairs=[("floor", "left"), ("floor", "right")]
    )
    env, before, way, actions = walked(JoystickBiped(model, substeps=4, rules=rules, noise=False))
    judge = Judge(env, text, rules.feet)
    home, aloft, touched, last = np.full(2, 0.1), np.zeros(2), np.zeros(2, bool), np.zeros(2)
    phase, rate = np.array([0.0, np.pi]), float(before.memory.rate)
    assert 1.25 <= rate / (2.0 * np.pi * 0.02) <= 1.5
    ends = []
    for i, action in enumerate(actions):
        after = jax.tree.map(lambda x: x[i], way)  # noqa: B023
        judge.look(after, home + 0.5 * action)
        command = np.asarray(before.memory.command)
        q, v = np.asarray(after.physics.q[7:]), np.asarray(after.physics.v[6:])
        seen = [judge.velocity, judge.gyro, judge.gravity, command, q - home, v, last, np.cos(phase), np.sin(phase)]
        np.testing.assert_allclose(after.observation, np.concatenate(seen), atol=1e-9)
        has_landed, aloft = (aloft > 0.0) & (judge.touches | touched), aloft + 0.02
        size, planar = np.linalg.norm(command), np.linalg.norm(judge.global_velocity[:2])
        in_phase = np.exp(-np.sum((judge.heights - np.asarray(height_of_phase(jnp.asarray(phase), 0.1))) ** 2) / 0.01)
        low, high = 0.1 - 0.95 * 0.7, 0.1 + 0.95 * 0.7
        terms = {
            "tracking_lin_vel": np.exp(-np.sum((command[:2] - judge.velocity[:2]) ** 2) / 0.5),
            "tracking_ang_vel": np.exp(-((command[2] - judge.gyro[2]) ** 2) / 0.5),
            "ang_vel_xy": np.sum(judge.turning[:2] ** 2),
            "orientation": np.sum(judge.up[:2] ** 2),
            "torques": np.abs(judge.effort).sum(),
            "action_rate": np.sum((action - last) ** 2),
            "feet_air_time": np.sum(np.minimum((aloft - 0.2) * has_landed, 0.3)) * (size > 0.1),
            "feet_slip": planar * judge.touches.sum(),
            "feet_phase": in_phase,
            "stand_still": np.abs(q - home).sum() * (size < 0.01),
            "joint_deviation_hip": np.abs(q - home).sum() * (abs(command[1]) > 0.1),
            "joint_deviation_knee": abs(q[1] - 0.1),
            "dof_pos_limits": np.sum(np.maximum(low - q, 0.0) + np.maximum(q - high, 0.0)),
            "pose": 0.7 * np.sum((q - home) ** 2),
            "termination": judge.up[2] < 0.0,
        }
        for name, number in after.metrics.items():
            np.testing.assert_allclose(number, weights[name] * terms[name], atol=1e-9, err_msg=f"{i}: {name}")
        np.testing.assert_allclose(after.reward, 0.02 * sum(weights[n] * x for n, x in terms.items()), atol=1e-9)
        assert bool(after.done) == (judge.up[2] < 0.0)
        ends.append(bool(after.done))
        phase = np.fmod(phase + rate + np.pi, 2.0 * np.pi) - np.pi
        aloft, touched, last, before = np.where(judge.touches, 0.0, aloft), judge.touches, action, after
    assert any(ends), "two legs of one joint cannot stand"


def test_heights_of_a_phase_rise_and_fall_smoothly() -> None:
    phase = jnp.array([-np.pi, -np.pi / 2, 0.0, np.pi / 2, np.pi])
    np.testing.assert_allclose(height_of_phase(phase, 0.2), [0.0, 0.1, 0.2, 0.1, 0.0], atol=1e-12)


def test_frames_move_as_mujoco_says() -> None:
    model = loaded(walker(PLACES), 0.004)
    rng = np.random.default_rng(0)
    state = mbjax.random_state(model, jax.random.key(2))
    state = mbjax.State(state.q, jnp.asarray(rng.normal(size=model.num_velocities)))
    data = mujoco.MjData(robot := mujoco.MjModel.from_xml_string(walker(PLACES)))
    data.qpos[:], data.qvel[:] = map(np.asarray, mbjax.mujoco_state(model, state))
    mujoco.mj_forward(robot, data)
    found = frame_motion(model, state, ("imu", "FR", "FL", "RR", "RL"))
    sensors = data.sensordata.reshape(-1, 3)
    np.testing.assert_allclose(found.own_velocity[0], sensors[0], atol=1e-12)
    np.testing.assert_allclose(found.own_angular_velocity[0], sensors[1], atol=1e-12)
    np.testing.assert_allclose(found.velocity, sensors[[3, 5, 6, 7, 8]], atol=1e-12)
    np.testing.assert_allclose(found.angular_velocity[0], sensors[4], atol=1e-12)
    for i, name in enumerate(("imu", "FR", "FL", "RR", "RL")):
        np.testing.assert_allclose(found.origin[i], data.site(name).xpos, atol=1e-12)
        np.testing.assert_allclose(found.rotation[i], data.site(name).xmat.reshape(3, 3), atol=1e-12)


@functools.cache
def cart_pole(**options: bool) -> PlaygroundCartPole:
    return PlaygroundCartPole(mbjax.load(CART_POLE, time_step=0.01), **options)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_cart_poles_rewards_and_observations(sparse: bool) -> None:
    env = cart_pole(sparse=sparse)
    rng = np.random.default_rng(1)
    for angle in (0.02, 0.4, 3.0):
        q, v, action = np.array([0.1, angle]), rng.normal(size=2), rng.uniform(-1.0, 1.0, 1)
        state = mbjax.State(jnp.asarray(q), jnp.asarray(v))
        seen = env.observe(state, (), jax.random.key(0))
        np.testing.assert_allclose(seen, [q[0], np.cos(angle), np.sin(angle), *v], atol=1e-12)
        outcome = env.judge(Motion(state, state, (), jnp.float64(0.01)), (), jnp.asarray(action), jax.random.key(0))
        margins = 0.1 ** (q[0] / 2.0) ** 2, 0.1 ** (v[1] / 5.0) ** 2
        dense = (1 + np.cos(angle)) / 2 * (1 + margins[0]) / 2 * (4 + 1 - action[0] ** 2) / 5 * (1 + margins[1]) / 2
        expected = float(np.cos(angle) >= 0.995) if sparse else dense
        np.testing.assert_allclose(outcome.reward, expected, rtol=1e-12)
        assert not outcome.ends
    np.testing.assert_allclose(env.inputs(state, (), jnp.array([0.5])), [5.0])


@pytest.mark.parametrize("swings_up", [False, True])
def test_the_cart_pole_starts_as_in_playground(swings_up: bool) -> None:
    env = cart_pole(swings_up=swings_up)
    states = jax.vmap(lambda key: env.start(key)[0])(jax.random.split(jax.random.key(0), 4000))
    q, v = np.asarray(states.q), np.asarray(states.v)
    np.testing.assert_allclose(v.std(axis=0), 0.01, rtol=0.05)
    if swings_up:
        np.testing.assert_allclose(q.mean(axis=0), [0.0, np.pi], atol=1e-3)
        np.testing.assert_allclose(q.std(axis=0), 0.01, rtol=0.05)
    else:
        np.testing.assert_allclose(np.abs(q).max(axis=0), [0.1, 0.034], rtol=0.01)


def test_the_reachers_reward_is_one_at_the_target() -> None:
    env = PlaygroundReacher(mbjax.load(REACHER, time_step=0.005))
    starts, targets = jax.vmap(env.start)(jax.random.split(jax.random.key(0), 4000))
    distance = np.linalg.norm(np.asarray(targets), axis=1)
    np.testing.assert_allclose([distance.min(), distance.max()], [0.05, 0.2], rtol=0.01)
    np.testing.assert_allclose(np.abs(starts.q).max(axis=0), [np.pi, np.deg2rad(160)], rtol=0.01)
    q = np.array([0.3, 0.9])
    finger = 0.12 * np.array([np.cos(q[0]) + np.cos(q.sum()), np.sin(q[0]) + np.sin(q.sum())])
    state = mbjax.State(jnp.asarray(q), jnp.array([0.5, -0.7]))
    for way, reward in (((0.059, 0.0), 1.0), ((0.0, 0.061), 0.0)):
        target = jnp.asarray(finger + way)
        seen = env.observe(state, target, jax.random.key(0))
        np.testing.assert_allclose(seen, [*q, *way, 0.5, -0.7], atol=1e-12)
        motion = Motion(state, state, (), jnp.float64(0.02))
        assert float(env.judge(motion, target, jnp.zeros(2), jax.random.key(0)).reward) == reward
