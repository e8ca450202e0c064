"""Power of force elements: the part that comes out of their potential energy, and the part that is lost or put in."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.array_types import Positions, Velocities
from mbjax.errors import ModelError
from mbjax.execution import compiled_outside_jit
from mbjax.execution.derivative_rules import varying_alike
from mbjax.kinematics import (
    PositionKinematics,
    VelocityKinematics,
    calc_body_velocities,
    calc_position_kinematics,
    calc_velocity_kinematics,
    velocity_to_qdot,
)
from mbjax.model import AbstractForceElement, MultibodyModel, as_coordinates
from mbjax.number_rules import shown

from .gravity import calc_gravity_potential_energy


class ForceElementPower(NamedTuple):
    """Power in W: minus the rate of the potential energy, and the rest of the forces' power."""

    conservative: Float[Array, ""]
    non_conservative: Float[Array, ""]


@compiled_outside_jit
def conservative_power(model: MultibodyModel, q: Positions, v: Velocities) -> Float[Array, ""]:
    """Power -d/dt `potential_energy` of gravity and all force elements, in W: positive while energy is released."""
    state = calc_state(model, q, v)
    gravity = energy_rate(state, lambda position, q: calc_gravity_potential_energy(model, position))
    return sum((calc_power(model, state, e).conservative for e in model.force_elements), start=-gravity)


@compiled_outside_jit
def non_conservative_power(model: MultibodyModel, q: Positions, v: Velocities) -> Float[Array, ""]:
    """Power of the force elements beyond the conservative one, in W: negative in dampers.

    As in Drake it counts force elements only: no actuation, no joint damping or friction.
    """
    state = calc_state(model, q, v)
    return sum(
        (calc_power(model, state, e).non_conservative for e in model.force_elements), start=jnp.zeros((), model.dtype)
    )


@compiled_outside_jit
def force_element_power(model: MultibodyModel, q: Positions, v: Velocities, index: int) -> ForceElementPower:
    """Conservative and non-conservative power of `model.force_elements[index]`, in W.

    Gravity is not among them; Drake counts it, as its force element 0. Raises `ModelError` for an index that no
    element has.
    """
    number = len(model.force_elements)
    if not isinstance(index, int | np.integer) or not 0 <= index < number:
        came = "an array" if isinstance(index, jax.Array) else shown(index)
        raise ModelError(
            f"force_element_power: there is no force element {came}: the model has {number}, numbered from 0, and "
            "gravity is not among them."
        )
    return calc_power(model, calc_state(model, q, v), model.force_elements[index])


class MovingState(NamedTuple):
    """State q and v with its kinematics, and the rates of what depends on q alone."""

    q: Positions
    v: Velocities
    position: PositionKinematics
    velocity: VelocityKinematics
    qdot: Positions
    position_rate: PositionKinematics


def calc_state(model: MultibodyModel, q: Positions, v: Velocities) -> MovingState:
    """Computes the kinematics at (q, v), and the rate of position kinematics along qdot = N(q) v."""
    q = as_coordinates("q", q, model.num_positions, model.dtype)
    v = as_coordinates("v", v, model.num_velocities, model.dtype)
    q, v = varying_alike((q, v))
    qdot = velocity_to_qdot(model, q, v)
    position, position_rate = jax.jvp(lambda q: calc_position_kinematics(model, q), (q,), (qdot,))
    velocity = calc_velocity_kinematics(model, position, q, v)
    return MovingState(q, v, position, velocity, qdot, position_rate)


def energy_rate(state: MovingState, energy) -> Float[Array, ""]:
    """Rate d/dt of energy(position, q)."""
    return jax.jvp(energy, (state.position, state.q), (state.position_rate, state.qdot))[1]


def calc_power(model: MultibodyModel, state: MovingState, element: AbstractForceElement) -> ForceElementPower:
    """Splits an element's power v · tau + sum V_WBo · F_Bo by the rate of its potential energy."""
    forces = element.forces(model, state.position, state.velocity, state.q, state.v)
    V_WB = calc_body_velocities(model, state.position, state.velocity)
    total = jnp.sum(state.v * forces.generalized) + jnp.sum(V_WB * forces.body.T)
    conservative = -energy_rate(state, lambda position, q: element.potential_energy(model, position, q))
    return ForceElementPower(conservative, total - conservative)
