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
from mbjax.dynamics.mass_matrix import calc_mass_matrix
from mbjax.forces import calc_dissipation_coefficient
from mbjax.model import MultibodyModel
from mbjax.worlds import each_world

from .actuation import ActuatorLaw, actuated, calc_actuator_law, is_actuated, is_tracking, saturate
from .constraint_rows import ConstraintRows, calc_rows_of_step, solve_with_rows
from .ports import Inputs
from .state import State
from .time_derivatives import Acceleration, calc_explicit_terms, replace_tau

MAX_SATURATION_ROUNDS = 20
NUM_BISECTIONS = 30


def calc_discrete_acceleration(model: MultibodyModel, state: State, inputs: Inputs) -> Acceleration:
    """vdot with which the next step's velocity is v + dt vdot, and the net actuation.

    (M + dt C + dt (Kd + dt Kp)) vdot = tau(q, v) - C v + u_0 + Gᵀ λ,     G vdot + R λ = rhs

    Dissipation C and the gains act on the new velocity, so stiff ones stay stable; so do the constraints, see
    `constraint_rows`. Efforts stay within their limits; which actuators are at a limit is found first and held fixed
    in derivatives.
    """
    terms = calc_explicit_terms(model, state, inputs)
    law = calc_actuator_law(model, inputs, state.q, state.v, model.time_step)
    rows = calc_rows(model, terms, state)
    at_limit = each_world(find_actuators_at_limit, model.num_world_axes, model, terms, law, inputs, rows)
    return solve_step(model, terms, law, at_limit, rows)


def calc_rows(model: MultibodyModel, terms: ForwardDynamicsTerms, state: State) -> ConstraintRows | None:
    """What the constraints add; None where there are none. Rigid rows are scaled by M with dissipation alone."""
    if not model.constraints:
        return None
    M = calc_mass_matrix(model.topology, terms.position, terms.inertia_W, terms.diagonal)
    dissipation = model.time_step * calc_dissipation_coefficient(model, terms.v)
    diagonal = jnp.moveaxis(jnp.diagonal(M), -1, 0) + dissipation
    return calc_rows_of_step(model, terms, diagonal, state.q, state.v)


def solve_step(
    model: MultibodyModel,
    terms: ForwardDynamicsTerms,
    law: ActuatorLaw,
    at_limit: Float[Array, " nu"],
    rows: ConstraintRows | None,
) -> Acceleration:
    """The acceleration with `at_limit` -1 or 1 for actuators at a limit and 0 for the others."""
    law = hold_at_limit(law, at_limit, model.parameters.effort_limit)
    terms = add_implicit_terms(model, terms, law)
    if rows is None:
        vdot, multipliers = calc_forward_dynamics(model.topology, terms), model.zeros(0)
    else:
        vdot, multipliers = solve_with_rows(model, terms, rows)
    return Acceleration(vdot, law.u_0 - law.k * model.time_step * actuated(model, vdot), multipliers)


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
    model: MultibodyModel,
    terms: ForwardDynamicsTerms,
    law: ActuatorLaw,
    inputs: Inputs,
    rows: ConstraintRows | None,
) -> Float[Array, " nu"]:
    """Which efforts end at a limit: -1, 0 or 1 each. Found without gradient.

    Solves A a = b + B saturate(u_0 - k dt a), constraint rows included, the gradient of a convex function, piecewise
    linear in a, by Newton's method with an exact line search. Where nothing saturates the first round is the last.
    Locked velocities are out of it: their a is zero.
    """
    limit = model.parameters.effort_limit
    if model.num_actuators == 0 or not is_actuated(inputs):
        return jnp.zeros_like(limit)
    model, terms, law, rows = lax.stop_gradient((model, terms, law, rows))
    if not is_tracking(inputs):
        return beyond(law.u_0, limit)
    accelerate = accelerations_of_laws(model, terms, rows)

    def effort(law: ActuatorLaw, a: Array) -> Array:
        return law.u_0 - law.k * model.time_step * actuated(model, a)

    def update(search: _Search) -> _Search:
        at_limit = jnp.where(search.rounds == 0, 0.0, beyond(effort(law, search.a), limit))
        held = hold_at_limit(law, at_limit, limit)
        a = accelerate(held)
        u = effort(held, a)
        settled = jnp.all(beyond(effort(law, a), limit) == at_limit)
        a_direction, u_direction = a - search.a, u - search.u

        def slope(t: Array) -> Array:
            gap = search.u + t * u_direction - saturate(effort(law, search.a + t * a_direction), limit)
            return jnp.sum(actuated(model, a_direction) * gap)

        t = jnp.where(settled | (search.rounds == 0), 1.0, find_root_of_rising(slope, a.dtype))
        return _Search(search.rounds + 1, search.a + t * a_direction, search.u + t * u_direction, settled)

    def unsettled(search: _Search) -> Array:
        return (search.rounds < MAX_SATURATION_ROUNDS) & ~search.settled

    start = _Search(jnp.zeros((), jnp.int32), jnp.zeros_like(terms.tau), jnp.zeros_like(limit), jnp.zeros((), bool))
    return beyond(effort(law, lax.while_loop(unsettled, update, start).a), limit)


def accelerations_of_laws(
    model: MultibodyModel, terms: ForwardDynamicsTerms, rows: ConstraintRows | None
) -> Callable[[ActuatorLaw], Float[Array, " nv"]]:
    """vdot as a function of the actuators' law alone; not to be differentiated."""
    if rows is not None:
        return lambda law: solve_with_rows(model, add_implicit_terms(model, terms, law), rows)[0]
    topology = model.topology
    bias = calc_inverse_dynamics(topology, terms.motion, None, terms.F_applied_T)

    def accelerate(law: ActuatorLaw) -> Array:
        implicit = add_implicit_terms(model, terms, law)
        factor = calc_articulated_factor(topology, terms.position, terms.inertia_W, implicit.diagonal, terms.locked)
        return solve_with_factor(topology, factor, implicit.tau - bias)

    return accelerate


class _Search(NamedTuple):
    """Where the search for saturated actuators is: acceleration a, the efforts it takes, and whether it has ended."""

    rounds: Int[Array, ""]
    a: Float[Array, " nv"]
    u: Float[Array, " nu"]
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
