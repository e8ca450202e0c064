"""Joint actuators: feed-forward effort, PD tracking of a desired state, effort limits."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.model import MultibodyModel
from mbjax.topology import take

from .ports import Inputs


class ActuatorLaw(NamedTuple):
    """u = u_0 - k dv per actuator, for a velocity change dv over the step: what an implicit step solves with."""

    u_0: Float[Array, " nu"]
    k: Float[Array, " nu"]


def calc_actuator_law(
    model: MultibodyModel,
    inputs: Inputs,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    dt: Float[Array, ""] | None,
) -> ActuatorLaw:
    """Kp (qd - q) + Kd (vd - v) + u_ff, at the end of the step: q + dt (v + dv) and v + dv.

    With dt None the law is taken now, with k = 0.
    """
    nu, parameters = model.num_actuators, model.parameters
    u_0 = jnp.zeros(nu, model.dtype) if inputs.actuation is None else inputs.actuation
    k = jnp.zeros(nu, model.dtype)
    if inputs.desired_state is None:
        return ActuatorLaw(u_0, k)
    q_u, v_u = take(q, actuated_positions(model)), take(v, list(model.layout.velocities_of_actuators))
    qd, vd = inputs.desired_state[:nu], inputs.desired_state[nu:]
    kp, kd = parameters.proportional_gain, parameters.derivative_gain
    if dt is not None:
        q_u = q_u + dt * v_u
        k = kd + dt * kp
    return ActuatorLaw(u_0 + kp * (qd - q_u) + kd * (vd - v_u), k)


def saturate(u: Float[Array, " nu"], limit: Float[Array, " nu"]) -> Float[Array, " nu"]:
    """u held within +-limit; at the limit itself the derivative is that of the inside."""
    return jnp.where(u > limit, limit, jnp.where(u < -limit, -limit, u))


def actuated_positions(model: MultibodyModel) -> list[int]:
    """The position each actuator's joint has."""
    return [model.layout.joints[a.joint].q_start for a in model.layout.actuators]


def actuation_matrix(model: MultibodyModel) -> Float[Array, "nv nu"]:
    """B with tau = B u: a one where an actuator drives a velocity."""
    B = np.zeros((model.num_velocities, model.num_actuators))
    B[list(model.layout.velocities_of_actuators), np.arange(model.num_actuators)] = 1.0
    return jnp.asarray(B, model.dtype)
