"""What tasks with a joystick share: joints and their limits, noise, commands that change, and terms of rewards."""

from collections.abc import Iterable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from mbjax.errors import ModelError
from mbjax.model import MultibodyModel
from mbjax.simulation import State, keyframe_state
from mbjax.spatial import quaternion_multiply


class Noise(eqx.Module):
    """Largest errors of what is measured, evenly drawn: m/s, rad/s, of a unit vector, rad and rad/s."""

    linvel: float = eqx.field(static=True, default=0.1)
    gyro: float = eqx.field(static=True, default=0.2)
    gravity: float = eqx.field(static=True, default=0.05)
    joint_pos: float | tuple[float, ...] = eqx.field(static=True, default=0.03)
    joint_vel: float = eqx.field(static=True, default=1.5)

    def added(self, parts: dict[str, Array], key: PRNGKeyArray) -> dict[str, Array]:
        """The parts of an observation, by these names, with noise."""
        drawn = jax.random.uniform(key, (sum(x.size for x in parts.values()),), next(iter(parts.values())).dtype, -1, 1)
        ends = np.cumsum([x.size for x in parts.values()])[:-1]
        errors = zip(parts, jnp.split(drawn, ends), strict=True)
        return {name: parts[name] + jnp.array(getattr(self, name), error.dtype) * error for name, error in errors}


class Shown(eqx.Module):
    """What the observation after a step shows of the task's memory: that of before the step, as in Playground."""

    command: Float[Array, "*batch 3"]
    action: Float[Array, "*batch nu"]


class JoystickJoints(NamedTuple):
    """Joints with actuators, in their order: places in q and v, angles at home and limits, in rad."""

    rows_in_q: Int[np.ndarray, " nu"]
    rows_in_v: Int[np.ndarray, " nu"]
    home: Float[Array, " nu"]
    lower: Float[Array, " nu"]
    upper: Float[Array, " nu"]

    def desired(self, offset: Float[Array, " nu"]) -> Float[Array, " nu"]:
        """Desired angles, within the limits, which MuJoCo clamps them to."""
        return jnp.clip(self.home + offset, self.lower, self.upper)

    def soft_range(self, share: float) -> tuple[Float[Array, " nu"], Float[Array, " nu"]]:
        """Limits of this share of the range, about its middle."""
        middle, half = 0.5 * (self.lower + self.upper), 0.5 * (self.upper - self.lower)
        return middle - share * half, middle + share * half

    def wanted_effort(self, model: MultibodyModel, state: State, offset: Float[Array, " nu"]) -> Float[Array, " nu"]:
        """Efforts that the controllers ask for in a state, before any limit."""
        numbers = model.parameters
        away, rate = self.desired(offset) - state.q[self.rows_in_q], state.v[self.rows_in_v]
        return numbers.proportional_gain * away - numbers.derivative_gain * rate


def joints_of(model: MultibodyModel, home: str) -> JoystickJoints:
    """The joints with actuators; their angles at a keyframe."""
    joints = [model.joint(actuator.joint) for actuator in model.layout.actuators]
    in_q, in_v = (np.array([getattr(joint, x).start for joint in joints]) for x in "qv")
    q = keyframe_state(model, home).q
    return JoystickJoints(in_q, in_v, q[in_q], model.position_lower_limits[in_q], model.position_upper_limits[in_q])


def placed_at_random(state: State, key: PRNGKeyArray) -> State:
    """A state moved by up to 0.5 m along x and y, turned about z, and with up to 0.5 m/s and 0.5 rad/s."""
    drawn = jax.random.uniform(key, (9,), state.q.dtype, -1.0, 1.0)
    half = 0.5 * 3.14 * drawn[2]
    turn = jnp.stack([jnp.cos(half), 0.0 * half, 0.0 * half, jnp.sin(half)])
    q = state.q.at[4:6].add(0.5 * drawn[:2]).at[:4].set(quaternion_multiply(state.q[:4], turn))
    return State(q, state.v.at[:6].set(0.5 * drawn[3:]), state.time)


def steps_of_command(key: PRNGKeyArray, duration: Array) -> Int[Array, ""]:
    """For how many steps a command holds: an exponential time with a mean of 5 s."""
    return jnp.round(5.0 * jax.random.exponential(key, (), duration.dtype) / duration).astype(int)


def command_after(
    command: Float[Array, "3"], fastest: tuple[float, ...], kept: tuple[float, ...], key: PRNGKeyArray
) -> Float[Array, "3"]:
    """The next command: each number stays with a chance of a half, else is drawn anew, or zero with 1 - `kept`."""
    drawn = jax.random.uniform(key, (3, 3), command.dtype)
    new = jnp.array(fastest, command.dtype) * (2.0 * drawn[0] - 1.0)
    new = jnp.where(drawn[1] < jnp.array(kept, command.dtype), new, 0.0)
    return jnp.where(drawn[2] < 0.5, new, command)


def tracking(
    velocity: Float[Array, "3"], turning: Float[Array, "3"], command: Float[Array, "3"], sigma: float
) -> dict[str, Array]:
    """Terms for following a command, by velocities in the frame of the inertial unit."""
    return {
        "tracking_lin_vel": jnp.exp(-jnp.sum((command[:2] - velocity[:2]) ** 2) / sigma),
        "tracking_ang_vel": jnp.exp(-((command[2] - turning[2]) ** 2) / sigma),
    }


def limits_left(angles: Float[Array, " nu"], low: Float[Array, " nu"], high: Float[Array, " nu"]) -> Float[Array, ""]:
    """Sum of how far angles are outside of limits, in rad."""
    return jnp.sum(jnp.maximum(low - angles, 0.0) + jnp.maximum(angles - high, 0.0))


def require_known_terms(task: str, weights: Iterable[str], known: Iterable[str]) -> None:
    """Raises `ModelError` for a weight of a term that the task does not have."""
    unknown = sorted(set(weights) - set(known))
    if unknown:
        raise ModelError(
            f"{task}: the reward has no term '{unknown[0]}'; weights are of {', '.join(sorted(known))}; a term without "
            "a weight counts nothing."
        )
