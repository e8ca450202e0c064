"""One semi-implicit step of the discrete plant."""

import functools
from typing import Any

from mbjax.contact import ConvexSearch, ConvexSolution, are_worlds_alone
from mbjax.errors import ModelError
from mbjax.execution import ResumedSearch, call_compiled, require_one_model
from mbjax.kinematics import for_worlds_of, integrate_configuration
from mbjax.model import MultibodyModel, without_unread_geometry

from .deformable_step import advance_nodes
from .discrete_acceleration import calc_discrete_acceleration
from .idle_controllers import warn_of_idle_controllers
from .output_ports import calc_outputs
from .ports import Inputs, Outputs, as_inputs
from .state import State, as_state
from .time_derivatives import Acceleration


def step(model: MultibodyModel, state: State, inputs: Any = None) -> tuple[State, Outputs]:
    """Advances the state by the model's `time_step`; returns x[n+1] and the output ports after the step.

    v+ = v + dt vdot,  q+ = q (+) dt v+, with damping, friction and PD control taken at v+ and q+. Ports that depend on
    forces are sampled in the step, and the others are those of x[n+1]. A compiled function computes only the ports that
    it reads.
    """
    require_discrete(model)
    state = as_state(model, state)
    warn_of_idle_controllers("step", model, inputs)
    return call_compiled(_step, model, state, as_inputs(model, inputs))


def _step(model: MultibodyModel, state: State, inputs: Inputs) -> tuple[State, Outputs]:
    model = without_unread_geometry(model)
    after, acceleration = advance(model, state, inputs)
    return after, calc_outputs(model, after, state, inputs, acceleration)


def next_state(model: MultibodyModel, state: State, inputs: Any = None) -> State:
    """The state that `step` leads to, where nobody reads output ports.

    Bodies that touch each other then need not look at all points of contact: on a CPU each world has a list of its own.
    """
    require_discrete(model)
    state = as_state(model, state)
    warn_of_idle_controllers("step", model, inputs)
    return call_compiled(_next_state, model, state, as_inputs(model, inputs))


def _next_state(model: MultibodyModel, state: State, inputs: Inputs) -> State:
    return advance(model, state, inputs, reads_contacts=False)[0]


def advance(
    model: MultibodyModel, state: State, inputs: Inputs, reads_contacts: bool = True
) -> tuple[State, Acceleration]:
    """The next state, and the acceleration that leads to it.

    A step whose contact forces are not read need not look at all contacts.
    """
    function, each_alone = _advance if reads_contacts else _advance_alone, are_worlds_alone(model, reads_contacts)
    return for_worlds_of(function, without_unread_geometry(model), state, inputs, finds=True, each_alone=each_alone)


def _advance(
    model: MultibodyModel,
    state: State,
    inputs: Inputs,
    found: ConvexSolution | ResumedSearch | None = None,
    reads_contacts: bool = True,
) -> tuple[tuple[State, Acceleration], ConvexSolution | None, ConvexSearch | None]:
    dt = model.time_step
    acceleration, found, search = calc_discrete_acceleration(model, state, inputs, found, reads_contacts)
    v = state.v + dt * acceleration.vdot
    nodes = None
    if acceleration.nodes is not None and state.nodes is not None:
        nodes = advance_nodes(model, state.nodes, acceleration.nodes.v)
    after = State(integrate_configuration(model, state.q, dt * v), v, state.time + dt, nodes)
    return (after, acceleration), found, search


_advance_alone = functools.partial(_advance, reads_contacts=False)


def require_discrete(model: MultibodyModel) -> None:
    """Raises `ModelError` for a continuous model, which has no step to take."""
    require_one_model(model)
    if not model.is_discrete:
        raise ModelError(
            "step needs a discrete model, but its time_step is 0. Build or load it with time_step=0.001 "
            "(seconds), or integrate the continuous one with mbjax.simulate."
        )
