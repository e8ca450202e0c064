"""Joint actuators: feed-forward effort, PD tracking of a desired state, effort limits."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from mbjax.execution import of_one_model
from mbjax.execution.arrays import take
from mbjax.model import (
    MultibodyModel,
    actuator_ratios,
    all_joint_positions,
    all_joint_velocities,
    locked_velocities,
)
from mbjax.spatial import component_algebra as ca

from .ports import Inputs


class ActuatorLaw(NamedTuple):
    """Efforts u = u_0 - k dv of the actuators, linear in the velocity change dv over an implicit step."""

    u_0: Float[Array, " nu"]
    k: Float[Array, " nu"]


def calc_actuator_law(
    model: MultibodyModel,
    inputs: Inputs,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    dt: Float[Array, ""] | None,
) -> ActuatorLaw:
    """Law Kp (qd - q) + Kd (vd - v) + u_ff of each actuator, at the end of the step: q + dt (v + dv) and v + dv.

    With dt None the law is evaluated at the present state, with k = 0. Actuators without a desired state, and those of
    locked joints, give u_ff alone.
    """
    u_ff = calc_feedforward(model, inputs)
    k = jnp.zeros_like(u_ff)
    if not is_tracking(inputs):
        return ActuatorLaw(u_ff, k)
    joints = [model.layout.joints[a.joint] for a in model.layout.actuators]
    q_u = take(all_joint_positions(model, q), [joint.all_q_start for joint in joints], 0)
    v_u = take(all_joint_velocities(model, v), [joint.all_v_start for joint in joints], 0)
    qd, vd, has_target = gather_desired_state(model, inputs)
    is_on = has_target.reshape(-1, *(1,) * model.num_world_axes) & ~actuated(model, locked_velocities(model))
    kp = jnp.where(is_on, model.parameters.proportional_gain, 0.0)
    kd = jnp.where(is_on, model.parameters.derivative_gain, 0.0)
    if dt is not None:
        q_u = q_u + dt * v_u
        k = kd + dt * kp
    return ActuatorLaw(u_ff + kp * (qd - q_u) + kd * (vd - v_u), k)


def calc_feedforward(model: MultibodyModel, inputs: Inputs) -> Float[Array, " nu"]:
    """Feed-forward actuation of the whole plant plus that of the model instances."""
    u = model.zeros(model.num_actuators) if inputs.actuation is None else inputs.actuation
    if not inputs.instance_actuation:
        return u
    return u + spread_over_actuators(model, inputs.instance_actuation)


def is_actuated(inputs: Inputs) -> bool:
    """Whether the inputs give any actuation or desired state."""
    return inputs.actuation is not None or bool(inputs.instance_actuation) or is_tracking(inputs)


def is_tracking(inputs: Inputs) -> bool:
    """Whether the inputs give any desired state."""
    return inputs.desired_state is not None or bool(inputs.instance_desired_state)


def gather_desired_state(
    model: MultibodyModel, inputs: Inputs
) -> tuple[Float[Array, " nu"], Float[Array, " nu"], Bool[np.ndarray, " nu"]]:
    """Desired positions and velocities of the actuated joints, and a mask of those that are given."""
    nu, whole = model.num_actuators, inputs.desired_state
    if whole is not None:
        return whole[:nu], whole[nu:], np.ones(nu, bool)
    given = inputs.instance_desired_state or {}
    halves = {i: jnp.split(x, 2) for i, x in given.items()}
    qd = spread_over_actuators(model, {i: half[0] for i, half in halves.items()})
    vd = spread_over_actuators(model, {i: half[1] for i, half in halves.items()})
    return qd, vd, np.isin([a.model_instance for a in model.layout.actuators], list(given))


def spread_over_actuators(model: MultibodyModel, values: dict) -> Float[Array, " nu"]:
    """Spreads values of some instances' actuators over all actuators; zero for the others."""
    parts = [model.zeros(1), *values.values()]
    where = np.zeros(model.num_actuators, int)
    start = 1
    for i in values:
        actuators = model.model_instance(i).u
        where[actuators] = start + np.arange(len(actuators))
        start += len(actuators)
    return take(ca.concatenate(parts, 0), where, 0)


def saturate(u: Float[Array, " nu"], limit: Float[Array, " nu"]) -> Float[Array, " nu"]:
    """u clipped to +-limit; exactly at the limit the derivative is that of the inside."""
    return jnp.where(u > limit, limit, jnp.where(u < -limit, -limit, u))


def actuated(model: MultibodyModel, x: Float[Array, " nv"]) -> Float[Array, " nu"]:
    """Selects the entries of x at the velocities that actuators drive."""
    return take(x, list(model.layout.velocities_of_actuators), 0)


@of_one_model
def actuation_matrix(model: MultibodyModel) -> Float[Array, "nv nu"]:
    """Matrix B with tau = B u: 1 where an actuator drives a velocity, or the multiplier where its joint mimics."""
    ratios = actuator_ratios(model)
    B = np.zeros((model.num_velocities, model.num_actuators))
    B[list(model.layout.velocities_of_actuators), np.arange(model.num_actuators)] = 1.0
    return jnp.asarray(B, model.dtype) if ratios is None else jnp.asarray(B, model.dtype) * ratios
