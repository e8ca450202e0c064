"""The discrete plant's acceleration: joint dissipation and PD tracking implicit, efforts within their limits."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from mbjax.dynamics import (
    ForwardDynamicsTerms,
    calc_articulated_factor,
    calc_forward_dynamics,
    calc_inverse_dynamics,
    solve_with_factor,
    spread_over_velocities,
)
from mbjax.forces import calc_dissipation_coefficient
from mbjax.model import MultibodyModel
from mbjax.worlds import each_world

from .actuation import ActuatorLaw, actuated, calc_actuator_law, is_actuated, is_tracking, saturate
from .ports import Inputs
from .state import State
from .time_derivatives import Acceleration, calc_explicit_terms, replace_tau

MAX_SATURATION_ROUNDS = 20
NUM_BISECTIONS = 30


def calc_discrete_acceleration(model: MultibodyModel, state: State, inputs: Inputs) -> Acceleration:
    """vdot with which the next step's velocity is v + dt vdot, and the net actuation.

    (M + dt C + dt (Kd + dt Kp)) vdot = tau(q, v) - C v + u_0

    Dissipation C and the gains act on the new velocity, so stiff ones stay stable. Efforts stay within their limits;
    which actuators are at a limit is found first and held fixed in derivatives.
    """
    terms = calc_explicit_terms(model, state, inputs)
    law = calc_actuator_law(model, inputs, state.q, state.v, model.time_step)
    at_limit = each_world(find_actuators_at_limit, model.num_world_axes, model, terms, law, inputs)
    return Acceleration(*solve_step(model, terms, law, at_limit))


def solve_step(
    model: MultibodyModel,
    terms: ForwardDynamicsTerms,
    law: ActuatorLaw,
    at_limit: Float[Array, " nu"],
) -> tuple[Float[Array, " nv"], Float[Array, " nu"]]:
    """vdot and net actuation, with `at_limit` -1 or 1 for actuators at a limit and 0 for the others."""
    law = hold_at_limit(law, at_limit, model.parameters.effort_limit)
    vdot = calc_forward_dynamics(model.topology, add_implicit_terms(model, terms, law))
    return vdot, law.u_0 - law.k * model.time_step * actuated(model, vdot)


def add_implicit_terms(model: MultibodyModel, terms: ForwardDynamicsTerms, law: ActuatorLaw) -> ForwardDynamicsTerms:
    """The equation with dissipation and actuation at the end of the step."""
    c = calc_dissipation_coefficient(model, terms.v)
    tau = terms.tau - c * terms.v + spread_over_velocities(model, law.u_0)
    diagonal = terms.diagonal + model.time_step * (c + spread_over_velocities(model, law.k))
    return replace_tau(terms, tau, diagonal)


def hold_at_limit(law: ActuatorLaw, at_limit: Float[Array, " nu"], effort_limit: Float[Array, " nu"]) -> ActuatorLaw:
    """The law with a constant effort where an actuator is at a limit."""
    held = at_limit != 0.0
    limit = jnp.where(held, effort_limit, 0.0)  # an infinite limit is never held, and must not meet a zero
    return ActuatorLaw(jnp.where(held, at_limit * limit, law.u_0), jnp.where(held, 0.0, law.k))


def find_actuators_at_limit(
    model: MultibodyModel, terms: ForwardDynamicsTerms, law: ActuatorLaw, inputs: Inputs
) -> Float[Array, " nu"]:
    """Which efforts end at a limit: -1, 0 or 1 each. Found without gradient.

    Solves A a = b + B saturate(u_0 - k dt a), the gradient of a convex function, piecewise linear in a, by
    Newton's method with an exact line search. Where nothing saturates the first round is the last.
    Locked velocities are out of it: their a is zero.
    """
    limit = model.parameters.effort_limit
    if model.num_actuators == 0 or not is_actuated(inputs):
        return jnp.zeros_like(limit)
    model, terms, law = lax.stop_gradient((model, terms, law))
    if not is_tracking(inputs):
        return beyond(law.u_0, limit)
    topology, dt = model.topology, model.time_step
    no_effort = ActuatorLaw(jnp.zeros_like(law.u_0), jnp.zeros_like(law.k))
    b = add_implicit_terms(model, terms, no_effort).tau - calc_inverse_dynamics(
        topology, terms.motion, None, terms.F_applied_T
    )

    def effort(a: Array) -> Array:
        return law.u_0 - law.k * dt * actuated(model, a)

    def update(search: _Search) -> _Search:
        at_limit = jnp.where(search.rounds == 0, 0.0, beyond(effort(search.a), limit))
        held = hold_at_limit(law, at_limit, limit)
        diagonal = add_implicit_terms(model, terms, held).diagonal
        factor = calc_articulated_factor(topology, terms.position, terms.inertia_W, diagonal, terms.locked)
        a = solve_with_factor(topology, factor, b + spread_over_velocities(model, held.u_0))
        Aa = b + spread_over_velocities(model, held.u_0 - held.k * dt * actuated(model, a))
        settled = jnp.all(beyond(effort(a), limit) == at_limit)
        direction, A_direction = a - search.a, Aa - search.Aa

        def slope(t: Array) -> Array:
            u = saturate(effort(search.a + t * direction), limit)
            return jnp.sum(direction * (search.Aa + t * A_direction - b - spread_over_velocities(model, u)))

        t = jnp.where(settled | (search.rounds == 0), 1.0, find_root_of_rising(slope, a.dtype))
        return _Search(search.rounds + 1, search.a + t * direction, search.Aa + t * A_direction, settled)

    def unsettled(search: _Search) -> Array:
        return (search.rounds < MAX_SATURATION_ROUNDS) & ~search.settled

    start = _Search(jnp.zeros((), jnp.int32), jnp.zeros_like(b), jnp.zeros_like(b), jnp.zeros((), bool))
    return beyond(effort(lax.while_loop(unsettled, update, start).a), limit)


class _Search(NamedTuple):
    """Where the search for saturated actuators is: acceleration a, A a, and whether it has ended."""

    rounds: Int[Array, ""]
    a: Float[Array, " nv"]
    Aa: Float[Array, " nv"]
    settled: Bool[Array, ""]


def find_root_of_rising(slope: Callable[[Array], Array], dtype: Any) -> Float[Array, ""]:
    """t in [0, 1] where a rising function crosses zero, or 1 if it stays below; by bisection."""

    def halve(_: int, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = 0.5 * (low + high)
        below = slope(middle) < 0.0
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    zero, one = jnp.zeros((), dtype), jnp.ones((), dtype)
    low, _ = lax.fori_loop(0, NUM_BISECTIONS, halve, (zero, one))
    return jnp.where(slope(one) <= 0.0, one, low)


def beyond(u: Float[Array, " nu"], limit: Float[Array, " nu"]) -> Float[Array, " nu"]:
    """1 above the limit, -1 below its negative, else 0."""
    above: Bool[Array, " nu"] = u > limit
    return above.astype(u.dtype) - (u < -limit).astype(u.dtype)
