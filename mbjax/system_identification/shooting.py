"""One window of multiple shooting: where it starts, a sample's steps, and what sensors would measure."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.kinematics import difference_configuration, integrate_configuration
from mbjax.simulation import Inputs, State, actuation_matrix_pseudoinverse, step

from .system import System
from .windows import Windows


def start_of(system: System, window: Windows, shift: Array) -> State:
    """The state that a window starts at: the measured one, less the sensors' errors, plus the shift."""
    model, sensors = system.model, system.sensors
    nv = model.num_velocities
    q = integrate_configuration(model, window.q0, -sensors.position_bias)
    v = window.v0 - sensors.velocity_bias
    if shift.shape[0]:
        q, v = integrate_configuration(model, q, shift[:nv]), v + shift[nv:]
    return State(q, v, jnp.zeros((), model.dtype))


def inputs_of_steps(window: Windows, hold: str, substeps: int) -> tuple[Array, Array]:
    """Actuation and external forces of each step of a window: (samples, substeps, n).

    They are those of the sample that a step begins after, or on the line to the next, at the middle of the step.
    """
    place = (jnp.arange(substeps, dtype=window.v.dtype) + 0.5) / substeps * (1.0 if hold == "linear" else 0.0)

    def between(x: Float[Array, "samples_and_1 n"]) -> Float[Array, "samples substeps n"]:
        return x[:-1, None] + place[:, None] * (x[1:, None] - x[:-1, None])

    return between(window.actuation), between(window.external)


def take_step(system: System, state: State, inputs: tuple[Array, Array]) -> State:
    """The state one step later, under inputs that are held."""
    model, sensors = system.model, system.sensors
    actuation, external = inputs
    driven = np.array(model.layout.velocities_of_actuators, int)
    shares = actuation_matrix_pseudoinverse(model) @ sensors.effort_bias  # as a log shares a joint's effort
    true = (actuation - shares) / sensors.effort_gain[driven]
    state, _ = step(model, state, Inputs(actuation=true, applied_generalized_force=external))
    return state


def take_sample(system: System, state: State, inputs: tuple[Array, Array]) -> State:
    """The state one sample later, after a step for each row of the inputs."""
    if inputs[0].shape[0] == 1:
        return take_step(system, state, (inputs[0][0], inputs[1][0]))
    return jax.lax.scan(lambda state, held: (take_step(system, state, held), None), state, inputs)[0]


def with_shorter_steps(system: System, factor: float) -> System:
    """The system with a time step so many times shorter."""
    if factor == 1.0:
        return system
    model = eqx.tree_at(lambda m: m.parameters.time_step, system.model, system.model.time_step / factor)
    return dataclasses.replace(system, model=model)


def measurement_error(system: System, q: Array, v: Array, q_measured: Array, v_measured: Array) -> Float[Array, "2nv"]:
    """What sensors would measure, less what was measured: positions along v, then velocities."""
    sensors = system.sensors
    seen = integrate_configuration(system.model, q, sensors.position_bias)
    position = difference_configuration(system.model, q_measured, seen)
    return jnp.concatenate([position, v + sensors.velocity_bias - v_measured])
