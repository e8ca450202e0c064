"""Whole-body control: efforts and contact forces that come nearest to several tasks, within friction and limits."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from mbjax.constraints import bound_constraints
from mbjax.dynamics import inverse_dynamics, mass_matrix
from mbjax.errors import ModelError
from mbjax.execution import call_compiled, require_one_model
from mbjax.model import MultibodyModel, locked_velocities, missing_actuators
from mbjax.number_rules import NOT_NEGATIVE, checked_numbers
from mbjax.simulation import State, actuation_matrix
from mbjax.simulation.state import as_state

from .contact_points import ContactPoints
from .driven_frames import driven_directions
from .quadratic_program import QuadraticProgram, solve_quadratic_program
from .tasks import TaskMotion

Task = Callable[[MultibodyModel, State], TaskMotion]
STANDARD_GRAVITY = 9.81  # m/s²


class WholeBody(eqx.Module):
    """Efforts u, the accelerations vdot that they give, forces f_W at the points, in N; NaN if not `converged`."""

    effort: Float[Array, "*batch nu"]
    vdot: Float[Array, "*batch nv"]
    contact_forces: Float[Array, "*batch points 3"]
    converged: Bool[Array, "*batch"]


class Weights(eqx.Module):
    """What holds contacts, how fast they are brought to rest, in 1/s, and how small efforts and forces are kept.

    The latter two are of efforts and forces in units of the robot's weight, see `force_unit`.
    """

    contact: Float[Array, ""]
    contact_damping: Float[Array, ""]
    acceleration: Float[Array, ""]
    effort: Float[Array, ""]
    force: Float[Array, ""]


def whole_body(
    model: MultibodyModel,
    state: State,
    tasks: Sequence[Task],
    contacts: ContactPoints | None = None,
    active: Any = None,
    *,
    contact_weight: Any = 1e4,
    contact_damping: Any = 50.0,
    acceleration_weight: Any = 1e-4,
    effort_weight: Any = 0.1,
    force_weight: Any = 0.1,
) -> WholeBody:
    """Efforts, accelerations and contact forces that come nearest to what the tasks ask for.

    Minimizes Σ w |J vdot + J̇ v - a|² / 2 of the tasks, with little of vdot, u / W and f / W, subject to

    M vdot + h = B u + Σ J_cᵀ f,    f within its friction pyramid,    |u| <= effort limits

    (Herzog et al. 2016, "Momentum control with hierarchical inverse dynamics"; Kuindersma et al. 2016, section 4).
    Points that are in contact are kept there, J_c vdot + J̇_c v = -k v_c, by `contact_weight`, so that redundant ones
    do no harm; those that are not bear no force. `active` (points,) says which are, all by default: a row of a contact
    schedule. The last three weights say how little, the latter two of efforts and forces in units of the robot's weight
    W, so that they mean the same for heavy robots and for light ones: 9.81 m/s² times the mass of the trees that have
    actuators, whatever gravity is. By default they take about a thousandth of its weight off a robot whose centre of
    mass shall rest at a task weight of 1, and less at a larger one. All are numbers of at least 0. Any model with
    actuators will do, also with a floating base, passive joints, joints that mimic, and locked joints; not one with
    constraints. Derivatives are those of the optimum, with the active limits held. Needs qpax:
    pip install "mbjax[control]".
    """
    require_model("whole_body", model)
    state = as_state(model, state)
    if not isinstance(tasks, list | tuple) or not tasks or not all(callable(task) for task in tasks):
        came = f"[{', '.join(type(task).__name__ for task in tasks)}]" if isinstance(tasks, list | tuple) else ""
        raise ModelError(
            "whole_body: tasks must be a list of controllers.FrameTask and the like, even of one, got "
            f"{came or type(tasks).__name__}."
        )
    contacts = ContactPoints([]) if contacts is None else contacts
    if not isinstance(contacts, ContactPoints):
        raise ModelError(
            "whole_body: contacts must be controllers.ContactPoints([...]) with a frame for each point, got "
            f"{type(contacts).__name__}."
        )
    count = len(contacts.frames)
    active = jnp.ones(count, bool) if active is None else jnp.asarray(active)
    if active.shape != (count,) or active.dtype != bool:
        raise ModelError(
            f"whole_body: active has shape {active.shape} and type {active.dtype}; give ({count},) truth values."
        )
    given = {
        "contact_weight": contact_weight,
        "contact_damping": contact_damping,
        "acceleration_weight": acceleration_weight,
        "effort_weight": effort_weight,
        "force_weight": force_weight,
    }
    numbers = (checked_numbers("whole_body", what, value, NOT_NEGATIVE) for what, value in given.items())
    weights = Weights(*(jnp.asarray(number, model.dtype) for number in numbers))
    return call_compiled(solve_whole_body, model, state, tuple(tasks), contacts, active, weights)


def require_model(call: str, model: MultibodyModel) -> None:
    """Raises `ModelError` for a model without actuators, or with constraints, whose forces the program lacks."""
    require_one_model(model, call)
    if not model.num_actuators:
        raise ModelError(f"{call}: there is nothing to drive.{missing_actuators(model)}")
    if model.constraints:
        names = ", ".join(f"'{name}'" for name in bound_constraints(model).names)
        raise ModelError(
            f"{call}: the model has the constraints {names}, whose forces the program does not have. Take "
            "trajectory_optimization.mpc_step or controllers.mppi_step."
        )


def solve_whole_body(
    model: MultibodyModel, state: State, tasks: tuple, contacts: ContactPoints, active: Array, weights: Weights
) -> WholeBody:
    """The program of one state, solved."""
    program = whole_body_program(model, state, tasks, contacts, active, weights)
    found = solve_quadratic_program(program)
    nv, nu = model.num_velocities, model.num_actuators
    vdot, u, f = jnp.split(found.x, [nv, nv + nu])
    return WholeBody(u, vdot, jnp.where(active[:, None], f.reshape(-1, 3), 0.0), found.converged)


def whole_body_program(
    model: MultibodyModel, state: State, tasks: tuple, contacts: ContactPoints, active: Array, weights: Weights
) -> QuadraticProgram:
    """The quadratic program in x = (vdot, u, f)."""
    nv, nu, count = model.num_velocities, model.num_actuators, len(contacts.frames)
    J_c, bias_c = contact_motion(model, state, contacts)
    H, g = task_costs(model, state, tasks)
    held = jnp.where(active, weights.contact, 0.0)
    wanted = -bias_c - weights.contact_damping * (J_c @ state.v)
    H = H + jnp.einsum("c,cik,cil->kl", held, J_c, J_c) + weights.acceleration * jnp.eye(nv, dtype=model.dtype)
    g = g - jnp.einsum("c,cik,ci->k", held, J_c, wanted)
    small = jnp.concatenate([jnp.full(nu, weights.effort), jnp.full(3 * count, weights.force)])
    small = small / force_unit(model) ** 2
    Q = jnp.zeros((nv + len(small), nv + len(small)), model.dtype).at[:nv, :nv].set(H)
    Q = Q.at[jnp.arange(nv, len(Q)), jnp.arange(nv, len(Q))].set(small)
    q = jnp.concatenate([g, jnp.zeros_like(small)])
    acting = jnp.where(active[:, None, None], J_c, 0.0)
    return QuadraticProgram(Q, q, *motion_rows(model, state, acting), *limit_rows(model, contacts, active))


def force_unit(model: MultibodyModel) -> Float[Array, ""]:
    """The weight W on Earth, in N, of the trees that have an actuator; 1 where they have no mass.

    Gravity is that of Earth whatever the model's is, as efforts accelerate a robot as much where it weighs nothing.
    """
    roots = np.asarray(model.topology.mobod_roots)
    driven = np.unique(roots[model.topology.velocity_mobods[driven_directions(model)]])
    bodies = np.isin(roots[list(model.topology.body_mobods[1:])], driven)  # all but the world
    mass = jnp.sum(jnp.where(bodies, model.parameters.body_mass, 0.0))
    return STANDARD_GRAVITY * jnp.where(mass > 0.0, mass, 1.0 / STANDARD_GRAVITY)


def contact_motion(model: MultibodyModel, state: State, contacts: ContactPoints) -> tuple[Array, Array]:
    """Jacobians and biases of the points, (points, 3, nv) and (points, 3)."""
    if not contacts.frames:
        return jnp.zeros((0, 3, model.num_velocities), model.dtype), jnp.zeros((0, 3), model.dtype)
    return contacts.motion(model, state)


def task_costs(model: MultibodyModel, state: State, tasks: tuple) -> tuple[Array, Array]:
    """Hessian and gradient at zero of the tasks' costs, by vdot."""
    nv = model.num_velocities
    H, g = jnp.zeros((nv, nv), model.dtype), jnp.zeros(nv, model.dtype)
    for task in tasks:
        J, bias, wanted = task(model, state)
        weight = jnp.broadcast_to(getattr(task, "weight", jnp.ones((), model.dtype)), wanted.shape)
        weighted = weight[:, None] * J
        H, g = H + J.T @ weighted, g + weighted.T @ (bias - wanted)
    return H, g


def motion_rows(model: MultibodyModel, state: State, J_c: Array) -> tuple[Array, Array]:
    """A and b of M vdot - B u - J_cᵀ f = -h; locked velocities have vdot = 0 in its place."""
    nv = model.num_velocities
    h = inverse_dynamics(model, state.q, state.v, jnp.zeros(nv, model.dtype), force_elements=True)
    forces = -jnp.concatenate([actuation_matrix(model), J_c.reshape(-1, nv).T], axis=1)
    A = jnp.concatenate([mass_matrix(model, state.q), forces], axis=1)
    locked = locked_velocities(model)
    A = jnp.where(locked[:, None], jnp.eye(nv, A.shape[1], dtype=A.dtype), A)
    return A, jnp.where(locked, 0.0, -h)


def limit_rows(model: MultibodyModel, contacts: ContactPoints, active: Array) -> tuple[Array, Array]:
    """G and h of efforts within limits, and of forces within friction pyramids where there is contact."""
    nv, nu, count = model.num_velocities, model.num_actuators, len(contacts.frames)
    size = nv + nu + 3 * count
    limit = model.parameters.effort_limit
    bounded = jnp.isfinite(limit)
    of_u = jnp.where(bounded[:, None], jnp.eye(nu, size, nv, dtype=model.dtype), 0.0)
    most = jnp.where(bounded, limit, 1.0)
    same = jnp.eye(count, dtype=model.dtype)
    of_f = same[:, None, :, None] * contacts.pyramids().astype(model.dtype)[:, :, None, :]
    of_f = jnp.concatenate([jnp.zeros((5 * count, nv + nu), model.dtype), of_f.reshape(5 * count, 3 * count)], axis=1)
    room = jnp.repeat(jnp.where(active, 0.0, 1.0).astype(model.dtype), 5)  # a force that acts on nothing tends to zero
    return jnp.concatenate([of_u, -of_u, of_f]), jnp.concatenate([most, most, room])
