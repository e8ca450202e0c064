"""The continuous plant: ẋ = f(x, u)."""

import dataclasses
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from mbjax.dynamics import (
    ForwardDynamicsTerms,
    calc_forward_dynamics,
    calc_reflected_inertia,
    calc_tree_motion,
    spread_over_velocities,
)
from mbjax.forces import calc_joint_dissipation, calc_mobod_forces, calc_passive_forces_on_tree
from mbjax.kinematics import calc_position_kinematics, velocity_to_qdot
from mbjax.model import MultibodyModel, locked_velocities

from .actuation import calc_actuator_law, saturate
from .applied_forces import calc_input_forces
from .ports import Inputs, as_inputs
from .state import State, as_state


class Acceleration(eqx.Module):
    """vdot, the net actuation, and the equation of motion they solve."""

    vdot: Float[Array, " nv"]
    u: Float[Array, " nu"]
    terms: ForwardDynamicsTerms


def time_derivatives(
    model: MultibodyModel, state: State, inputs: Any = None
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """(qdot, vdot) of the continuous plant, all its forces taken now."""
    state = as_state(model, state)
    return velocity_to_qdot(model, state.q, state.v), calc_acceleration_now(model, state, as_inputs(model, inputs)).vdot


def calc_acceleration_now(model: MultibodyModel, state: State, inputs: Inputs) -> Acceleration:
    """The motion of the continuous plant, everything explicit."""
    terms = calc_explicit_terms(model, state, inputs)
    u = saturate(calc_actuator_law(model, inputs, state.q, state.v, None).u_0, model.parameters.effort_limit)
    tau = terms.tau + spread_over_velocities(model, u) + calc_joint_dissipation(model, state.v)
    terms = replace_tau(terms, tau, terms.diagonal)
    return Acceleration(calc_forward_dynamics(model.topology, terms), u, terms)


def calc_explicit_terms(model: MultibodyModel, state: State, inputs: Inputs) -> ForwardDynamicsTerms:
    """The equation of motion with gravity, force elements and applied forces; no actuation or dissipation."""
    position = calc_position_kinematics(model, state.q)
    motion = calc_tree_motion(model, position, state.q, state.v)
    assert motion.velocity is not None
    assert motion.v is not None
    tau, F_T = calc_passive_forces_on_tree(model, position, motion.velocity, state.q, state.v)
    applied = calc_input_forces(model, position, inputs)
    if applied is not None:
        tau = tau + applied.generalized
        F_T = F_T + calc_mobod_forces(model, position, applied.body)
    return ForwardDynamicsTerms(
        position,
        motion.inertia_W,
        motion.velocity,
        motion.v,
        tau,
        F_T,
        calc_reflected_inertia(model),
        locked_velocities(model),
    )


def replace_tau(
    terms: ForwardDynamicsTerms, tau: Float[Array, " nv"], diagonal: Float[Array, " nv"]
) -> ForwardDynamicsTerms:
    """The same equation with other generalized forces and another diagonal."""
    return dataclasses.replace(terms, tau=tau, diagonal=diagonal)
