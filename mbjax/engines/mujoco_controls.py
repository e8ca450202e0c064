"""Controls of MuJoCo, `ctrl`, as inputs of the model that was read from the same MJCF file."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.execution import of_one_model
from mbjax.model import Control, MultibodyModel, as_array
from mbjax.simulation.ports import Inputs


@of_one_model
def inputs_from_mujoco(model: MultibodyModel, ctrl: Float[Array, " nctrl"]) -> Inputs:
    """Inputs that do what `ctrl` does in MuJoCo, for a model from MJCF: one number for each actuator of the file.

    Controls are clipped to their ranges, as there. Of motors they become actuation, of position and velocity actuators
    desired states, tracked with the gains of the file, which are on whatever the control is. Numbers of actuators that
    were left out on loading are not looked at. A model of several MJCF files takes their controls one after the other.
    """
    controls = [(a.index, a.model_instance, a.control) for a in model.layout.actuators if a.control is not None]
    starts, size = starts_of(controls)
    if not controls:
        raise ModelError(
            "inputs_from_mujoco: no actuator of the model comes from an MJCF file; give Inputs(actuation)."
        )
    ctrl = as_array("ctrl", ctrl, 1, model.dtype)
    if ctrl.shape != (size,):
        raise ModelError(
            f"inputs_from_mujoco: ctrl has shape {ctrl.shape}, the actuators of the file have ({size},). Use jax.vmap "
            "for a batch."
        )
    where = np.array([index for index, _, _ in controls], int)
    known = [control for _, _, control in controls]

    def numbers(field: str) -> Array:
        return jnp.asarray([getattr(control, field) for control in known], model.dtype)

    chosen = ctrl[np.array([starts[instance] + control.index for _, instance, control in controls], int)]
    # `where` keeps the derivative at the bounds, which clip would halve.
    chosen = jnp.where(chosen > numbers("upper"), numbers("upper"), chosen)
    chosen = jnp.where(chosen < numbers("lower"), numbers("lower"), chosen)
    zeros = jnp.zeros(model.num_actuators, model.dtype)
    actuation = zeros.at[where].set(numbers("effort") * chosen + numbers("constant"))
    if not any(control.is_tracking for control in known):
        return Inputs(actuation=actuation)
    position, velocity = (zeros.at[where].set(numbers(what) * chosen) for what in ("position", "velocity"))
    if {a.model_instance for a in model.layout.actuators} == set(starts):
        return Inputs(actuation=actuation, desired_state=jnp.concatenate([position, velocity]))
    desired = {}  # the controllers of other files stay off
    for instance in starts:
        places = np.array(model.model_instance(instance).u, int)
        if any(control.is_tracking for _, owner, control in controls if owner == instance):
            desired[instance] = jnp.concatenate([position[places], velocity[places]])
    return Inputs(actuation=actuation, instance_desired_state=desired)


def starts_of(controls: list[tuple[int, int, Control]]) -> tuple[dict[int, int], int]:
    """Where the controls of each model instance start, and how many there are."""
    starts: dict[int, int] = {}
    size = 0
    for _, instance, control in controls:
        if instance not in starts:
            starts[instance] = size
            size += control.count
    return starts, size
