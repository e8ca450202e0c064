"""One window of multiple shooting: where it starts, a sample's steps, and what sensors would measure."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.kinematics import difference_configuration, integrate_configuration
from mbjax.simulation import Inputs, State, step

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


def take_sample(system: System, state: State, inputs: tuple[Array, Array], substeps: int) -> State:
    """The state one sample later: `substeps` steps under inputs that are held."""
    model, sensors = system.model, system.sensors
    actuation, external = inputs
    driven = list(model.layout.velocities_of_actuators)
    true = (actuation - sensors.effort_bias[np.array(driven, int)]) / sensors.effort_gain[np.array(driven, int)]
    held = Inputs(actuation=true, applied_generalized_force=external)
    for _ in range(substeps):
        state, _ = step(model, state, held)
    return state


def measurement_error(system: System, q: Array, v: Array, q_measured: Array, v_measured: Array) -> Float[Array, "2nv"]:
    """What sensors would measure, less what was measured: positions along v, then velocities."""
    sensors = system.sensors
    seen = integrate_configuration(system.model, q, sensors.position_bias)
    position = difference_configuration(system.model, q_measured, seen)
    return jnp.concatenate([position, v + sensors.velocity_bias - v_measured])
