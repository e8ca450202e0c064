"""A policy that was trained here, walking in MuJoCo's C: the same robot, controllers and rate of control."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from mbjax.engines import mujoco_state, state_from_mujoco
from mbjax.environments import QuadrupedVelocity, VelocityTracking
from mbjax.environments.tasks.quadruped import QuadrupedMemory
from mbjax.environments.velocity_tracking import planar_velocity, steps_of, tracking_of
from mbjax.errors import ModelError
from mbjax.formats import to_mjcf
from mbjax.optional_packages import imported
from mbjax.simulation import State


def evaluate_velocity_in_mujoco(
    environment: QuadrupedVelocity,
    policy: Callable[[Any], Any],
    commands: Float[Array, "commands 3"],
    key: PRNGKeyArray,
    seconds: float = 20.0,
    shown: int = 4,
    time_step: float = 0.002,
) -> VelocityTracking:
    """As `evaluate_velocity`, but MuJoCo's C moves the robots that `to_mjcf` writes, with steps of `time_step`, in s.

    Steps divide the time between two actions. Nothing is tuned: MuJoCo has its default contacts, and its position
    actuators the gains of the model. `policy` maps observations, with a leading axis of robots, to actions; it may be
    NumPy's. Pushes are left out. Needs mujoco.
    """
    mujoco: Any = imported("mujoco", "evaluate_velocity_in_mujoco needs MuJoCo", "mjcf")
    environment = dataclasses.replace(environment, changing=0.0, pushes=None)
    model = environment.model
    period = environment.substeps * float(model.time_step)
    substeps = round(period / time_step) if time_step > 0.0 else 0
    if substeps < 1 or abs(substeps * time_step - period) > 1e-6 * period:
        raise ModelError(
            f"evaluate_velocity_in_mujoco: time_step {time_step:g} s must divide the {period:g} s between two actions."
        )
    robot = mujoco.MjModel.from_xml_string(to_mjcf(model))
    robot.opt.timestep = time_step
    robot.actuator_ctrllimited[:] = 0  # the model limits efforts, as forces are here, and no desired positions
    per_angle = robot.actuator_gear[:, 0]
    commands = jnp.asarray(commands, model.dtype)

    def restored(qpos: Array, qvel: Array, time: Array) -> State:
        return state_from_mujoco(model, qpos, qvel, time)

    @jax.jit
    @jax.vmap
    def started(key: PRNGKeyArray, command: Array) -> tuple[QuadrupedMemory, Array, Array]:
        first = environment.reset(key)
        return dataclasses.replace(first.memory, command=command), *mujoco_state(model, first.physics)

    @jax.jit
    def seen(qpos: Array, qvel: Array, time: Array, memory: QuadrupedMemory, key: PRNGKeyArray) -> Array:
        keys = jax.random.split(key, len(qpos))
        return jax.vmap(lambda p, v, m, k: environment.observe(restored(p, v, time), m, k))(qpos, qvel, memory, keys)

    @jax.jit
    def wanted(qpos: Array, qvel: Array, time: Array, memory: QuadrupedMemory, action: Array) -> Array:
        def one(p: Array, v: Array, m: QuadrupedMemory, a: Array) -> Array:
            return environment.desired(restored(p, v, time), m, jnp.clip(a, -1.0, 1.0))

        return jax.vmap(one)(qpos, qvel, memory, action)

    @jax.jit
    def judged(
        qpos: Array, qvel: Array, time: Array, memory: QuadrupedMemory, action: Array, key: PRNGKeyArray
    ) -> tuple[QuadrupedMemory, Array, Array, State]:
        def one(p: Array, v: Array, m: QuadrupedMemory, a: Array) -> tuple:
            state = restored(p, v, time)
            m = environment.remembered(state, m, jnp.clip(a, -1.0, 1.0), key)
            return m, planar_velocity(state), environment.has_fallen(state), state

        return jax.vmap(one)(qpos, qvel, memory, action)

    key, key_start = jax.random.split(key)
    memory, qpos, qvel = started(jax.random.split(key_start, len(commands)), commands)
    robots = [mujoco.MjData(robot) for _ in commands]
    for data, p, v in zip(robots, np.asarray(qpos), np.asarray(qvel), strict=True):
        data.qpos[:], data.qvel[:] = p, v

    def read() -> tuple[np.ndarray, np.ndarray, float]:
        return np.stack([x.qpos for x in robots]), np.stack([x.qvel for x in robots]), float(robots[0].time)

    stands, velocities, standing, shown_states = np.ones(len(commands), bool), [], [], []
    for step in range(steps_of(environment, seconds)):
        now, key_step = read(), jax.random.fold_in(key, step)
        action = jnp.asarray(policy(np.asarray(seen(*now, memory, key_step))), model.dtype)
        for data, angles in zip(robots, np.asarray(wanted(*now, memory, action)), strict=True):
            data.ctrl[:] = per_angle * angles
            mujoco.mj_step(robot, data, substeps)
        memory, velocity, fell, states = judged(*read(), memory, action, key_step)
        stands = stands & ~np.asarray(fell)
        velocities.append(velocity)
        standing.append(stands)
        shown_states.append(jax.tree.map(lambda x: np.asarray(x[:shown]), states))
    states = jax.tree.map(lambda *x: jnp.stack([jnp.asarray(y) for y in x]), *shown_states)
    return tracking_of(environment, commands, jnp.stack(velocities), jnp.asarray(np.stack(standing)), states)
