"""How well a policy walks at commanded velocities, and how often it falls."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from mbjax.errors import ModelError
from mbjax.model import MultibodyModel
from mbjax.randomization import Distribution, randomize
from mbjax.simulation import State
from mbjax.spatial import safe_norm

from .environment import EnvState
from .tasks.quadruped import QuadrupedVelocity, trunk_motion

SETTLING = 1.0  # s, the time that a robot has to get up to speed


class VelocityTracking(eqx.Module):
    """How robots followed their commands after the first second, up to a fall; leading axis commands.

    `velocity_error` is the mean length of the trunk's horizontal velocity minus the commanded one, in its frame, in
    m/s, over all steps; `stride_error` the same of velocities averaged over a period of the trot, and `turning_error`
    the mean size of the error of turning, averaged so, in rad/s. They are NaN for a robot that fell in that second.
    `states` are the ways of the first robots, for `mbjax.show`: leading axes commands and steps.
    """

    command: Float[Array, "commands 3"]
    velocity_error: Float[Array, " commands"]
    stride_error: Float[Array, " commands"]
    turning_error: Float[Array, " commands"]
    fell: Bool[Array, " commands"]
    states: State

    def __str__(self) -> str:
        errors = (self.velocity_error, self.stride_error, self.turning_error)
        found = [float(jnp.nanmean(x)) for x in errors] + [100.0 * float(jnp.mean(self.fell)), self.fell.size]
        return "{:.3f} m/s at every step, {:.3f} m/s over strides, {:.3f} rad/s; {:.1f} % of {} fell".format(*found)


def velocity_commands(environment: QuadrupedVelocity, key: PRNGKeyArray, number: int) -> Float[Array, "number 3"]:
    """Commands between plus and minus `environment.fastest`, evenly."""
    fastest = jnp.array(environment.fastest, environment.model.dtype)
    return fastest * jax.random.uniform(key, (number, 3), fastest.dtype, -1.0, 1.0)


def evaluate_velocity(
    environment: QuadrupedVelocity,
    policy: Callable[[Array], Array],
    commands: Float[Array, "commands 3"],
    key: PRNGKeyArray,
    seconds: float = 20.0,
    shown: int = 4,
    distributions: Mapping[str, Distribution] | None = None,
) -> VelocityTracking:
    """Walks at each command from standing for some time, with the pushes and the noise of the environment.

    `policy` maps an observation to an action, without exploration; a module of equinox may be traced. With
    `distributions` each command has a robot of its own, drawn as by `mbjax.randomize`.
    """
    environment = dataclasses.replace(environment, changing=0.0)
    commands, steps = jnp.asarray(commands, environment.model.dtype), steps_of(environment, seconds)
    models, axes = environment.model, None
    if distributions:
        key, key_models = jax.random.split(key)
        models, axes = randomize(environment.model, key_models, len(commands), distributions)
    robots = models, axes
    return tracking_of(environment, commands, *walked(environment, robots, policy, commands, key, steps, shown))


@eqx.filter_jit
def walked(
    environment: QuadrupedVelocity,
    robots: tuple[MultibodyModel, Any],
    policy: Any,
    commands: Array,
    key: PRNGKeyArray,
    steps: int,
    shown: int,
) -> tuple[Array, Array, State]:
    """Velocities and who stands, leading axes steps and commands, and states of the first robots, in one program.

    `robots` are the models and their axes of commands.
    """
    models, axes = robots

    def for_all(function: Callable) -> Callable:
        """The function of an environment for each robot."""
        of_model = jax.vmap(lambda model, *x: function(environment.with_model(model), *x), (axes, 0, 0))
        return lambda *x: of_model(models, *x)

    def started(env: QuadrupedVelocity, key: PRNGKeyArray, command: Array) -> EnvState:
        state = env.reset(key)
        memory = dataclasses.replace(state.memory, command=command)
        return dataclasses.replace(state, memory=memory, observation=env.observe(state.physics, memory, state.key))

    states = for_all(started)(jax.random.split(key, len(commands)), commands)

    def one_step(carry: tuple, _: None) -> tuple[tuple, tuple]:
        states, stands = carry
        actions = jax.vmap(policy)(states.observation)
        after = for_all(lambda env, state, action: env.step(state, action))(states, actions)
        stands &= ~after.done
        first = jax.tree.map(lambda x: x[:shown], after.physics)
        return (after, stands), (jax.vmap(planar_velocity)(after.physics), stands, first)

    start = states, jnp.ones(len(commands), bool)
    return jax.lax.scan(one_step, start, None, steps)[1]


def steps_of(environment: QuadrupedVelocity, seconds: float) -> int:
    """Steps of the environment in this time; raises `ModelError` where none remain after the first second."""
    duration = environment.substeps * float(environment.model.time_step)
    if not seconds > SETTLING + environment.period:
        raise ModelError(
            f"evaluate_velocity: seconds must be more than {SETTLING + environment.period}, as the first "
            f"{SETTLING} s and one stride do not count; got {seconds}."
        )
    return round(seconds / duration)


def planar_velocity(state: State) -> Float[Array, "3"]:
    """Forward and sideward velocity and turning rate of the trunk, in its frame."""
    _, omega_B, velocity_B = trunk_motion(state)
    return jnp.stack([velocity_B[0], velocity_B[1], omega_B[2]])


def tracking_of(
    environment: QuadrupedVelocity,
    commands: Float[Array, "commands 3"],
    velocities: Float[Array, "steps commands 3"],
    stands: Bool[Array, "steps commands"],
    states: State,
) -> VelocityTracking:
    """Errors of the velocities where a robot has not fallen; `states` has leading axes steps and commands."""
    duration = environment.substeps * environment.model.time_step
    settled = jnp.arange(1, len(velocities) + 1, dtype=velocities.dtype)[:, None] * duration > SETTLING
    stride = round(environment.period / (environment.substeps * float(environment.model.time_step)))
    sums = jnp.cumsum(jnp.where(stands[..., None], velocities - commands, 0.0), axis=0)
    sums = jnp.concatenate([jnp.zeros_like(sums[:1]), sums])
    means = (sums[stride:] - sums[:-stride]) / stride

    def mean(errors: Array, counts: Array) -> Array:
        return jnp.sum(jnp.where(counts, errors, 0.0), axis=0) / jnp.sum(counts, axis=0, dtype=errors.dtype)

    at_steps = mean(safe_norm((velocities - commands)[..., :2]), stands & settled)
    over_strides = stands[stride - 1 :] & settled[: len(means)]
    return VelocityTracking(
        commands,
        at_steps,
        mean(safe_norm(means[..., :2]), over_strides),
        mean(jnp.abs(means[..., 2]), over_strides),
        ~stands[-1],
        jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1), states),
    )
