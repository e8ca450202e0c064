"""PD control of joints by the drives that a model has."""

from typing import Any

import jax.numpy as jnp

from mbjax.array_types import Positions
from mbjax.errors import ModelError
from mbjax.execution import require_one_model
from mbjax.execution.arrays import take
from mbjax.model import MultibodyModel, all_joint_positions, all_joint_velocities, missing_actuators
from mbjax.simulation import Inputs
from mbjax.simulation.ports import as_inputs

from .actuated_trees import finite_coordinates, reference


def joint_pd(model: MultibodyModel, q_d: Positions, v_d: Any = None, efforts: Any = None) -> Inputs:
    """Inputs with which the drives follow q_d (nq,) and v_d (nv,), at rest by default, with feed-forward `efforts`.

    u = Kp (q_d - q) + Kd (v_d - v) + efforts, with the gains of `set_controller_gains` or of the file, within the
    effort limits, and implicit in a discrete step, where stiff gains stay stable (Siciliano et al. 2009, section
    8.5.1). The desired positions are picked for each actuator, those of joints that mimic too, so any model will do.
    Raises `ModelError` where no actuator has gains.
    """
    require_one_model(model, "joint_pd")
    if not model.num_actuators:
        raise ModelError(f"joint_pd: there is nothing to drive.{missing_actuators(model)}")
    q_d = finite_coordinates("joint_pd: q_d", q_d, model.num_positions, model.dtype)
    v_d = reference("joint_pd: v_d", model, v_d)
    joints = [model.layout.joints[actuator.joint] for actuator in model.layout.actuators]
    q_u = take(all_joint_positions(model, q_d), [joint.all_q_start for joint in joints], 0)
    v_u = take(all_joint_velocities(model, v_d), [joint.all_v_start for joint in joints], 0)
    return as_inputs(model, Inputs(actuation=efforts, desired_state=jnp.concatenate([q_u, v_u])))
