"""Warns of controllers that nothing tells where to go, so that the joints move as if they had none."""

import warnings
from typing import Any

import jax
import numpy as np

from mbjax.errors import ModelWarning
from mbjax.model import MultibodyModel
from mbjax.number_rules import is_known

from .actuation import is_actuated
from .ports import Inputs


def warn_of_idle_controllers(call: str, model: MultibodyModel, inputs: Any) -> None:
    """Warns where actuators have gains and the inputs give neither a desired state nor any actuation.

    Controllers without a desired state are off. Traced gains, and inputs that are a function, are not checked. The
    warning points at the caller of the function `call`.
    """
    if not model.num_actuators or not (inputs is None or (isinstance(inputs, Inputs) and not is_actuated(inputs))):
        return
    gains = model.parameters.proportional_gain, model.parameters.derivative_gain
    if not is_known(*gains):
        return
    kp, kd = jax.device_get(gains)
    with_gains = np.flatnonzero((kp != 0.0) | (kd != 0.0))
    if not with_gains.size:
        return
    names = ", ".join(f"'{model.actuator_names[k]}'" for k in with_gains[:6]) + (", …" if with_gains.size > 6 else "")
    of_mujoco = any(model.layout.actuators[k].control is not None for k in with_gains)
    as_there = " For what MuJoCo does with ctrl = 0 give mbjax.inputs_from_mujoco(model, ctrl)." if of_mujoco else ""
    warnings.warn(
        f"{call}: actuators {names} have gains, but nothing says where to go, so they are off and their joints are "
        "limp. Give mbjax.Inputs(desired_state=…), positions and then velocities of the actuated joints."
        f"{as_there} If they should be off, give mbjax.Inputs(actuation=…), be it zeros.",
        ModelWarning,
        stacklevel=3,
    )
