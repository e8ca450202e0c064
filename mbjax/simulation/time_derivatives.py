"""The continuous plant: ẋ = f(x, u), and its live output ports."""

from typing import Any

from jaxtyping import Array, Float

from mbjax.dynamics import (
    ForwardDynamicsTerms,
    calc_forward_dynamics,
    calc_reflected_inertia,
    calc_tree_motion,
    spread_over_velocities,
)
from mbjax.forces import calc_joint_dissipation, calc_mobod_forces, calc_passive_forces_on_tree
from mbjax.kinematics import (
    body_poses_in_world,
    body_spatial_velocities_in_world,
    calc_position_kinematics,
    spatial_accelerations_from_vdot,
    velocity_to_qdot,
)
from mbjax.model import MultibodyModel

from .actuation import calc_actuator_law, saturate
from .ports import Inputs, Outputs, as_inputs, calc_input_forces
from .state import State, as_state


def time_derivatives(
    model: MultibodyModel, state: State, inputs: Any = None
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """(qdot, vdot) of the continuous plant, all its forces taken now."""
    state = as_state(model, state)
    vdot, _ = calc_acceleration_now(model, state, as_inputs(model, inputs))
    return velocity_to_qdot(model, state.q, state.v), vdot


def outputs(model: MultibodyModel, state: State, inputs: Any = None) -> Outputs:
    """All output ports, live: computed from this state and these inputs."""
    state = as_state(model, state)
    vdot, u = calc_acceleration_now(model, state, as_inputs(model, inputs))
    return Outputs(
        vdot,
        u,
        body_poses_in_world(model, state.q),
        body_spatial_velocities_in_world(model, state.q, state.v),
        spatial_accelerations_from_vdot(model, state.q, state.v, vdot),
    )


def calc_acceleration_now(
    model: MultibodyModel, state: State, inputs: Inputs
) -> tuple[Float[Array, " nv"], Float[Array, " nu"]]:
    """vdot and the net actuation, everything explicit."""
    terms = calc_explicit_terms(model, state, inputs)
    u = saturate(calc_actuator_law(model, inputs, state.q, state.v, None).u_0, model.parameters.effort_limit)
    tau = terms.tau + spread_over_velocities(model, u) + calc_joint_dissipation(model, state.v)
    return calc_forward_dynamics(model.topology, replace_tau(terms, tau, terms.diagonal)), u


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
        position, motion.inertia_W, motion.velocity, motion.v, tau, F_T, calc_reflected_inertia(model)
    )


def replace_tau(
    terms: ForwardDynamicsTerms, tau: Float[Array, " nv"], diagonal: Float[Array, " nv"]
) -> ForwardDynamicsTerms:
    """The same equation with other generalized forces and another diagonal."""
    return ForwardDynamicsTerms(
        terms.position, terms.inertia_W, terms.velocity, terms.v, tau, terms.F_applied_T, diagonal
    )
