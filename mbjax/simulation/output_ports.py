"""Computes the output ports: live from a state and inputs, or sampled in a step."""

from typing import Any

from jaxtyping import Array, Float

from mbjax.constraints import calc_constraint_forces
from mbjax.contact import (
    ContactForces,
    ContactResults,
    are_worlds_alone,
    calc_contact_forces_on_bodies,
    calc_contact_results,
)
from mbjax.execution import call_compiled
from mbjax.forces import calc_force_elements
from mbjax.kinematics import (
    PositionKinematics,
    body_poses_and_velocities,
    calc_acceleration_kinematics,
    calc_body_accelerations,
    calc_body_velocities,
    for_worlds_of,
)
from mbjax.model import MultibodyModel, without_unread_geometry

from .applied_forces import calc_input_forces
from .constraint_rows import constraint_rows
from .discrete_acceleration import calc_discrete_acceleration
from .ports import Inputs, Outputs, as_inputs
from .reaction_forces import calc_reaction_forces
from .state import State, as_state
from .time_derivatives import Acceleration, calc_acceleration_now, calc_explicit_terms


def outputs(model: MultibodyModel, state: State, inputs: Any = None) -> Outputs:
    """All output ports, computed live from the given state and inputs.

    In a discrete model, ports that depend on forces equal those that `step` would sample from this state.
    """
    return call_compiled(_outputs, model, as_state(model, state), as_inputs(model, inputs))


def _outputs(model: MultibodyModel, state: State, inputs: Inputs) -> Outputs:
    model = without_unread_geometry(model)
    if model.is_discrete:
        each_alone = are_worlds_alone(model, reads_points=True)
        function = calc_discrete_acceleration
        acceleration = for_worlds_of(function, model, state, inputs, finds=True, each_alone=each_alone)
    else:
        acceleration = for_worlds_of(calc_acceleration_now, model, state, inputs)
    return calc_outputs(model, state, state, inputs, acceleration)


def calc_outputs(
    model: MultibodyModel, reported: State, state: State, inputs: Inputs, acceleration: Acceleration
) -> Outputs:
    """Output ports: kinematic ports of the state `reported`; dynamic ports of `state`, its inputs and acceleration."""
    terms, vdot = calc_explicit_terms(model, state, inputs), acceleration.vdot
    motion = calc_acceleration_kinematics(model, terms.position, terms.velocity, terms.v, vdot)
    A_WB_W = calc_body_accelerations(model, terms.position, terms.velocity, motion)
    V_WB_W = calc_body_velocities(model, terms.position, terms.velocity)
    forces = calc_force_elements(model, terms.position, terms.velocity, state.q, state.v)
    applied = calc_input_forces(model, terms.position, inputs)
    F_Bo_W = forces.body if applied is None else forces.body + applied.body
    of_constraints = calc_constraint_forces(model, constraint_rows(model), terms.position, acceleration.multipliers)
    contact_results, F_contacts = report_contacts(model, terms.position, acceleration.contacts)
    on_bodies = F_Bo_W + of_constraints if F_contacts is None else F_Bo_W + of_constraints + F_contacts
    moved = acceleration.nodes
    if moved is not None and moved.F_Bo_W is not None:
        on_bodies = on_bodies + moved.F_Bo_W
    generalized = (
        model.zeros(model.num_velocities) if acceleration.contacts is None else acceleration.contacts.generalized
    )
    if moved is not None and moved.generalized is not None:
        generalized = generalized + moved.generalized
    X_WB, V_WB_W_reported = body_poses_and_velocities(model, reported.q, reported.v)
    return Outputs(
        reported,
        X_WB,
        V_WB_W_reported,
        A_WB_W.T,
        vdot,
        acceleration.u,
        calc_reaction_forces(model, terms.position, V_WB_W, A_WB_W, on_bodies),
        acceleration.multipliers,
        of_constraints,
        generalized,
        contact_results,
        None if moved is None else moved.converged,
        None if moved is None else moved.contacts,
    )


def report_contacts(
    model: MultibodyModel, position: PositionKinematics, contacts: ContactForces | None
) -> tuple[ContactResults | None, Float[Array, "nb 6"] | None]:
    """The contact port, and the contacts' spatial forces on the bodies; None in a model without contact."""
    if contacts is None:
        return None, None
    F_Bo_W = calc_contact_forces_on_bodies(model, position, contacts.points, contacts.f_Bc_W)
    return calc_contact_results(position, contacts), F_Bo_W.T
