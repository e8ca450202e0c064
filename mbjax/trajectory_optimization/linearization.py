"""Linearization of a step, or of a continuous plant, along a whole trajectory in one batched call.

Closed forms give the matrices where actuation drives the model and only its joints resist, with limits and friction:
derivatives of inverse or forward dynamics. With constraints, contact or tracking, the model itself is differentiated.
"""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mbjax.contact import join_rows
from mbjax.dynamics import (
    InverseDynamicsDerivatives,
    forward_dynamics_derivatives,
    inverse_dynamics_derivatives,
    mass_matrix,
)
from mbjax.errors import ModelError
from mbjax.execution import call_compiled, require_one_model
from mbjax.forces import MultibodyForces, calc_dissipation_coefficient
from mbjax.kinematics import difference_configuration, integrate_configuration, is_velocity_equal_to_qdot
from mbjax.linear_algebra import solve_each
from mbjax.model import MultibodyModel, locked_velocities
from mbjax.simulation import Inputs, State, actuation_matrix, step, time_derivatives
from mbjax.simulation.joint_friction_rows import calc_friction_without_rows, calc_joint_friction_rows
from mbjax.simulation.joint_limit_rows import calc_joint_limit_rows
from mbjax.simulation.state import as_state, require_rigid_bodies_alone

from .states import difference_states, move_state
from .tangents import moved_along, slopes_of_move


class Wrenches(NamedTuple):
    """Spatial forces on bodies at their origins, what turns with the bodies, and generalized forces of unit efforts."""

    forces: MultibodyForces
    by_q: Float[Array, "*steps nv nv"]  # derivative of the generalized forces as bodies turn the forces with them
    by_effort: Float[Array, "*steps nv k"]


class Linearization(eqx.Module):
    """Matrices A (…, 2nv, 2nv) and B (…, 2nv, nu) of a model about states and efforts.

    Discrete models: dx[n+1] = A dx[n] + B du[n]. Continuous models: d(dx)/dt = A dx + B du. Tangents are dx = (dq, dv)
    with dq that of `integrate_configuration`, taken at the state after a step for its result. Unpacks as `A, B`.
    """

    A: Float[Array, "*steps ndx ndx"]
    B: Float[Array, "*steps ndx nu"]

    def __iter__(self):
        return iter((self.A, self.B))


def linearize(model: MultibodyModel, states: Any, efforts: Any) -> Linearization:
    """Linearizes the model about one state and effort, or about all steps of a trajectory at once.

    `states` is a `State`, or a `Trajectory` or plan with one more state than there are steps. `efforts` are (nu,), or
    (steps, nu) with as many states; `Inputs` too, of which `actuation` is what B is with respect to. `ModelError` for a
    model with deformable bodies, whose nodes are no part of the matrices.
    """
    require_one_model(model)
    require_rigid_bodies_alone(model, "linearize")
    if not isinstance(states, State):
        states = State(states.q, states.v, states.time)
    inputs = efforts if isinstance(efforts, Inputs) else Inputs(actuation=jnp.asarray(efforts, model.dtype))
    actuation = inputs.actuation
    if actuation is None:
        actuation = jnp.zeros((*jnp.shape(states.v)[:-1], model.num_actuators), model.dtype)
        inputs = with_actuation(inputs, actuation)
    if jnp.ndim(states.q) == 1:
        one = jax.tree.map(lambda x: jnp.asarray(x)[None], (states, inputs))
        return jax.tree.map(lambda x: x[0], call_compiled(linearize_steps, model, *one))
    steps, count = jnp.shape(actuation)[0], jnp.shape(states.q)[0]
    if count not in (steps, steps + 1):
        raise ModelError(
            f"linearize: {count} states and {steps} efforts; give as many states as efforts, or one more at the end."
        )
    return call_compiled(linearize_steps, model, jax.tree.map(lambda x: x[:steps], states), inputs)


def linearize_steps(
    model: MultibodyModel, states: State, inputs: Inputs, w: Float[Array, "steps nv"] | None = None
) -> Linearization:
    """Linearizes about many states, by closed forms where there are any, else by differentiating the model.

    `w` are the velocities after each step, where they are known.
    """
    states = jax.vmap(as_state, (None, 0))(model, states)
    if has_closed_form(model, inputs) and model.is_discrete:
        if w is None:
            w = jax.vmap(lambda state, given: step(model, state, given)[0].v)(states, inputs)
        return linearize_joint_steps(model, states, inputs, w)
    if has_closed_form(model, inputs):
        one = linearize_rates
    elif model.is_discrete:
        one = differentiate_model_step
    else:
        one = differentiate_rates
    return jax.vmap(one, (None, 0, 0))(model, states, inputs)


def differentiate_model_step(model: MultibodyModel, state: State, inputs: Inputs) -> Linearization:
    """A and B of a step with rows of any kind, by differentiating it."""
    return differentiate_step(lambda x, u: step(model, x, with_actuation(inputs, u))[0], model, state, inputs)


def has_closed_form(model: MultibodyModel, inputs: Inputs) -> bool:
    """Whether actuation alone drives the model, and nothing but its joints resists: no constraints, no contact."""
    others = model.constraints, model.layout.contact.pairs, model.topology.followers
    return not any(others) and is_actuation_alone(inputs)


def is_actuation_alone(inputs: Inputs) -> bool:
    """Whether no input is given but the actuation of the whole plant."""
    fields = {field.name: getattr(inputs, field.name) for field in dataclasses.fields(inputs)}
    return all(value is None or value == {} for name, value in fields.items() if name != "actuation")


def with_actuation(inputs: Inputs, u: Array) -> Inputs:
    """The inputs with another actuation."""
    return dataclasses.replace(inputs, actuation=u)


def calc_effort_slopes(model: MultibodyModel, u: Any) -> Float[Array, "nv nu"]:
    """Derivative of the generalized forces by the efforts: zero where an effort is beyond its limit."""
    return jnp.where(jnp.abs(u) <= model.parameters.effort_limit, actuation_matrix(model), 0.0)


def linearize_rates(model: MultibodyModel, state: State, inputs: Inputs) -> Linearization:
    """Closed form of a continuous plant: derivatives of forward dynamics."""
    nv, limit = model.num_velocities, model.parameters.effort_limit
    tau = actuation_matrix(model) @ jnp.clip(inputs.actuation, -limit, limit)
    of = forward_dynamics_derivatives(model, state.q, state.v, tau, force_elements=True)
    upper = jnp.concatenate([turn_of_rates(model, state), jnp.eye(nv, dtype=model.dtype)], axis=1)
    du = of.dtau @ calc_effort_slopes(model, inputs.actuation)
    lower = jnp.concatenate([of.dq, of.dv], axis=1)
    return Linearization(jnp.concatenate([upper, lower]), jnp.concatenate([jnp.zeros_like(du), du]))


def linearize_joint_steps(
    model: MultibodyModel,
    states: State,
    inputs: Inputs,
    w: Float[Array, "steps nv"],
    wrenches: Wrenches | None = None,
) -> Linearization:
    """Closed form of steps, from the derivatives of inverse dynamics at their accelerations.

    The new velocity w solves dt ID(q, v, (w - v)/dt) + dt c(v) w - γ(q, v, w, diag M) = dt B u, with c the dissipation
    and γ the impulses of limits and friction in the joints, a function of each joint's own numbers. So

    (M + dt c - γ_w) dw = (M - dt ID_v - dt c_v w + γ_v) dv - (dt ID_q - γ_q) dq + dt B du.

    Wrenches on bodies are forces of the inverse dynamics; B has their columns behind those of joint actuators.
    """
    vdot = (w - states.v) / model.time_step
    forces = None if wrenches is None else wrenches.forces

    def differentiated(state: State, vdot: Array, forces: MultibodyForces | None) -> InverseDynamicsDerivatives:
        return inverse_dynamics_derivatives(model, state.q, state.v, vdot, forces, force_elements=True)

    of = jax.vmap(differentiated)(states, vdot, forces)
    rows = None
    if model.layout.limited_joints or model.layout.frictional_directions:
        rows = jax.vmap(differentiate_joint_rows, (None, 0, 0, 0, 0))(model, states.q, states.v, w, of.dvdot)
        rows = rows._replace(by_q=rows.by_q + calc_changes_of_stiffness(model, states.q, rows.by_M))
    equations = jax.vmap(equation_of_step, (None, 0, 0, 0, 0, 0, 0))
    W = solve_each(*equations(model, states, inputs.actuation, w, of, rows, wrenches))
    return jax.vmap(linearize_joint_step, (None, 0, 0, 0))(model, states.q, w, W)


class RowSlopes(NamedTuple):
    """Derivatives of the impulses of limits and friction in the joints, γ(q, v, w, diag M), each joint by its own."""

    by_q: Float[Array, "*steps nv nv"]
    by_v: Float[Array, "*steps nv"]
    by_w: Float[Array, "*steps nv"]
    by_M: Float[Array, "*steps nv"]


def differentiate_joint_rows(
    model: MultibodyModel,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    w: Float[Array, " nv"],
    M: Float[Array, "nv nv"],
) -> RowSlopes:
    """Derivatives of the joint rows' impulses, without the change of diag(M) with q."""

    def impulses(dq: Array, v: Array, w: Array, diagonal: Array) -> Array:
        diagonal = diagonal + model.time_step * calc_dissipation_of_step(model, v)
        limits = calc_joint_limit_rows(model, integrate_configuration(model, q, dq), v, diagonal)
        rows = join_rows([limits, calc_joint_friction_rows(model, v, diagonal)])
        assert rows is not None
        return rows.generalized(rows.impulse(rows.motion(w - v)), len(v))

    zero, one = jnp.zeros_like(v), jnp.ones_like(v)
    given = zero, v, w, jnp.diagonal(M)
    slopes = [jax.jvp(impulses, given, tuple(one if i == k else zero for i in range(4)))[1] for k in range(4)]
    return RowSlopes(jnp.diag(slopes[0]), *slopes[1:])


def calc_changes_of_stiffness(
    model: MultibodyModel, q: Float[Array, "steps nq"], by_M: Float[Array, "steps nv"]
) -> Float[Array, "steps nv nv"]:
    """Derivatives by q of rows through their stiffness, in proportion to diag(M): computed only where a row acts."""
    nv = model.num_velocities

    def change(q: Array) -> Array:
        def diagonal(dq: Array) -> Array:
            return jnp.diagonal(mass_matrix(model, integrate_configuration(model, q, dq)))

        return jax.jacfwd(diagonal)(jnp.zeros(nv, model.dtype))

    return jax.lax.cond(
        jnp.any(by_M != 0.0),
        lambda: by_M[..., None] * jax.vmap(change)(q),
        lambda: jnp.zeros((*by_M.shape, nv), by_M.dtype),
    )


def equation_of_step(
    model: MultibodyModel,
    state: State,
    u: Any,
    w: Float[Array, " nv"],
    of: InverseDynamicsDerivatives,
    rows: RowSlopes | None,
    wrenches: Wrenches | None = None,
) -> tuple[Float[Array, "nv nv"], Float[Array, "nv n"]]:
    """Derivatives of the equation that one step's new velocity w solves: by w, and less those by (dq, dv, du)."""
    v, dt, nv, M = state.v, model.time_step, model.num_velocities, of.dvdot
    one = jnp.eye(nv, dtype=model.dtype)
    c, c_v = jax.jvp(lambda v: calc_dissipation_of_step(model, v), (v,), (jnp.ones_like(v),))
    felt, felt_v = jax.jvp(lambda v: calc_dissipation_coefficient(model, v), (v,), (jnp.ones_like(v),))
    ID_v = of.dv - jnp.diag(felt + felt_v * v)  # without the dissipation that inverse dynamics felt at v
    H = M + jnp.diag(dt * c)
    by_q, by_v = -dt * of.dq, M - dt * ID_v - jnp.diag(dt * c_v * w)
    if rows is not None:
        H, by_q, by_v = H - jnp.diag(rows.by_w), by_q + rows.by_q, by_v + jnp.diag(rows.by_v)
    by_u = dt * calc_effort_slopes(model, u)
    if wrenches is not None:
        by_q, by_u = by_q + dt * wrenches.by_q, jnp.concatenate([by_u, dt * wrenches.by_effort], axis=1)
    locked = locked_velocities(model)
    H = jnp.where(locked[:, None] | locked[None], one, H)
    right = jnp.concatenate([by_q, by_v, by_u], axis=1)
    return H, jnp.where(locked[:, None], 0.0, right)


def linearize_joint_step(
    model: MultibodyModel, q: Float[Array, " nq"], w: Float[Array, " nv"], W: Float[Array, "nv n"]
) -> Linearization:
    """A and B of one step from the derivatives of its new velocity w by (dq, dv, du)."""
    nv, locked = model.num_velocities, locked_velocities(model)
    return linearize_move(model, q, w, W[:, :nv], jnp.where(locked, 0.0, W[:, nv : 2 * nv]), W[:, 2 * nv :])


def linearize_move(
    model: MultibodyModel,
    q: Float[Array, " nq"],
    w: Float[Array, " nv"],
    W_q: Float[Array, "nv nv"],
    W_v: Float[Array, "nv nv"],
    W_u: Float[Array, "nv nu"],
) -> Linearization:
    """A and B of a step to the velocity w and the configuration that dt w leads to, from the derivatives of w."""
    dt, nv = model.time_step, model.num_velocities
    W = jnp.concatenate([W_q, W_v, W_u], axis=1)
    P = moved_along(model, dt * w, dt * W)
    P = jnp.concatenate([P[:, :nv] + slopes_of_move(model, dt * w), P[:, nv:]], axis=1)
    AB = jnp.concatenate([P, W])
    return Linearization(AB[:, : 2 * nv], AB[:, 2 * nv :])


def calc_dissipation_of_step(model: MultibodyModel, v: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """Coefficient c of the dissipation that a step takes at its end, but for friction, which has rows."""
    return calc_dissipation_coefficient(model, v, calc_friction_without_rows(model))


def turn_of_rates(model: MultibodyModel, state: State) -> Float[Array, "nv nv"]:
    """Derivative of the rate of a tangent dq by dq itself: zero where velocities are position rates.

    For a free body with angular velocity w in the world it is w x dq, as neighbouring attitudes turn with it.
    """
    nv = model.num_velocities
    if is_velocity_equal_to_qdot(model):
        return jnp.zeros((nv, nv), model.dtype)

    def tangent_after(time: Array, dq: Array) -> Array:
        here = integrate_configuration(model, state.q, time * state.v)
        near = integrate_configuration(model, integrate_configuration(model, state.q, dq), time * state.v)
        return difference_configuration(model, here, near)

    zero = jnp.zeros((), model.dtype)
    return jax.jacfwd(jax.jacfwd(tangent_after, argnums=1))(zero, jnp.zeros(nv, model.dtype))


def differentiate_step(dynamics: Any, model: MultibodyModel | None, x: Any, inputs: Any) -> Linearization:
    """A and B of any discrete dynamics(x, u) by reverse mode, in tangents at x and at the state after."""
    u = inputs.actuation if isinstance(inputs, Inputs) else inputs
    after = jax.lax.stop_gradient(dynamics(x, u))

    def moved(dx: Array, u: Array) -> Array:
        return difference_states(model, after, dynamics(move_state(model, x, dx), u))

    zero = jnp.zeros_like(difference_states(model, after, after))
    return Linearization(*jax.jacrev(moved, argnums=(0, 1))(zero, u))


def differentiate_steps(
    dynamics: Any, model: MultibodyModel | None, states: Any, efforts: Float[Array, "steps nu"], stages: Any
) -> Linearization:
    """A and B of many steps of dynamics(x, u) or dynamics(x, u, stage), by reverse mode."""

    def one(x: Any, u: Array, stage: Any) -> Linearization:
        given = () if stage is None else (stage,)
        return differentiate_step(lambda x, u: dynamics(x, u, *given), model, x, u)

    return jax.vmap(one)(states, efforts, stages)


CHOSEN_AT_ONCE = 8  # steps


def replace_chosen(function: Any, chosen: Bool[Array, " steps"], args: Any, values: Any) -> Any:
    """The values, with those of chosen steps replaced by `function(*args)` of the step; the others cost nothing."""
    steps = chosen.shape[0]
    size = min(CHOSEN_AT_ONCE, steps)
    order = jnp.argsort(~chosen, stable=True)
    order = jnp.concatenate([order, jnp.full(-steps % size, steps)])  # beyond the end: dropped

    def turn(i: Array, values: Any) -> Any:
        places = jax.lax.dynamic_slice(order, (size * i,), (size,))
        new = jax.vmap(function)(*jax.tree.map(lambda x: jnp.take(x, places, axis=0, mode="clip"), args))
        places = jnp.where(jnp.take(chosen, places, mode="clip"), places, steps)
        return jax.tree.map(lambda x, y: x.at[places].set(y, mode="drop"), values, new)

    turns = (jnp.sum(chosen) + size - 1) // size
    return jax.lax.fori_loop(0, turns, turn, values)


def differentiate_rates(model: MultibodyModel, state: State, inputs: Inputs) -> Linearization:
    """A and B of a continuous plant with forces of any kind, by differentiating its accelerations."""

    def acceleration(dx: Array, u: Array) -> Array:
        return time_derivatives(model, move_state(model, state, dx), with_actuation(inputs, u))[1]

    nv = model.num_velocities
    dx, u = jnp.zeros(2 * nv, model.dtype), inputs.actuation
    of_x, of_u = jax.jacrev(acceleration, argnums=(0, 1))(dx, u)
    upper = jnp.concatenate([turn_of_rates(model, state), jnp.eye(nv, dtype=model.dtype)], axis=1)
    B = jnp.concatenate([jnp.zeros_like(of_u), of_u])
    return Linearization(jnp.concatenate([upper, of_x]), B)
