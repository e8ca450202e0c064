"""Dynamics with contacts that are made and broken at given steps: legs that stand and swing.

Contacts are rigid constraints of a bound `ConstraintSet`. Which of them act is data of each step, so that a gait is an
array, not a program. Where one begins, an impulse first stops it.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from mbjax.constraints import (
    BoundConstraintSet,
    are_contacts,
    constrained_forward_dynamics,
    constraint_impulses,
    contact_impulse_derivatives,
    contact_motion_derivatives,
)
from mbjax.errors import ModelError
from mbjax.kinematics import integrate_configuration
from mbjax.model import MultibodyModel
from mbjax.simulation import State, actuation_matrix

from .linearization import Linearization, differentiate_steps, linearize_move, replace_chosen


class ScheduledContacts(eqx.Module):
    """Dynamics under the contacts of each step; use `contact_schedule(active)` as the problem's `stages`.

    (M vdot + C v = B u + gravity, springs, damping + Gᵀ λ, with the rows G of active contacts held), then a
    semi-implicit Euler step. Before the first step of a contact its point's velocity is set to zero by an impulse.
    """

    contacts: BoundConstraintSet

    def __call__(self, model: MultibodyModel, state: State, effort: Array, stage: dict[str, Array]) -> State:
        v = self.velocity_after_impulse(model, state, stage)
        vdot, _ = self.solve(model, State(state.q, v, state.time), effort, stage)
        dt = model.time_step
        v = v + dt * vdot
        return State(integrate_configuration(model, state.q, dt * v), v, state.time + dt)

    def solve(
        self, model: MultibodyModel, state: State, effort: Array, stage: dict[str, Array]
    ) -> tuple[Float[Array, " nv"], Float[Array, " nc"]]:
        """Accelerations and contact forces λ, zero where a contact is not active."""
        tau = actuation_matrix(model) @ effort
        found = constrained_forward_dynamics(model, self.acting(stage), state.q, state.v, tau, force_elements=True)
        return found.vdot, found.force

    def velocity_after_impulse(
        self, model: MultibodyModel, state: State, stage: dict[str, Array]
    ) -> Float[Array, " nv"]:
        """Velocities after the impulse that stops contacts which begin with this step."""

        def stopped() -> Float[Array, " nv"]:
            return constraint_impulses(model, self.acting(stage), state.q, state.v).v

        return jax.lax.cond(jnp.any(stage["begins"]), stopped, lambda: state.v)

    def linearize(
        self, model: MultibodyModel, states: State, efforts: Float[Array, "steps nu"], stages: dict[str, Array]
    ) -> Linearization:
        """A and B of many steps at once by closed forms; other constraints than contacts are differentiated.

        With the impulse v⁺(q, v) and the acceleration vdot(q, v⁺, u), the new velocity is w = v⁺ + dt vdot.
        """
        if not are_contacts(self.contacts):
            return differentiate_steps(lambda *args: self(model, *args), model, states, efforts, stages)
        v, by_q = states.v, jnp.zeros((*states.v.shape, model.num_velocities), model.dtype)
        one = jnp.eye(model.num_velocities, dtype=model.dtype)
        by_v = jnp.broadcast_to(one, by_q.shape)

        def impulse(q: Array, v: Array, stage: dict[str, Array]) -> tuple[Array, Array, Array]:
            of = contact_impulse_derivatives(model, self.acting(stage), q, v)
            return v + of.result.vdot, of.x_q, one + of.x_v

        begins = jnp.any(stages["begins"], axis=1)
        v, by_q, by_v = replace_chosen(impulse, begins, (states.q, states.v, stages), (v, by_q, by_v))
        driven = jax.vmap(self.linearize_driven, (None, 0, 0, 0, 0, 0))
        return driven(model, State(states.q, v, states.time), efforts, stages, by_q, by_v)

    def linearize_driven(
        self, model: MultibodyModel, state: State, effort: Array, stage: dict[str, Array], by_q: Array, by_v: Array
    ) -> Linearization:
        """A and B of a step from the velocity after the impulse, whose derivatives are `by_q` and `by_v`."""
        dt, B = model.time_step, actuation_matrix(model)
        of = contact_motion_derivatives(model, self.acting(stage), state.q, state.v, B @ effort)
        assert of.x_tau is not None
        W_q, W_v = dt * of.x_q + by_q + dt * of.x_v @ by_q, by_v + dt * of.x_v @ by_v
        return linearize_move(model, state.q, state.v + dt * of.result.vdot, W_q, W_v, dt * of.x_tau @ B)

    def acting(self, stage: dict[str, Array]) -> BoundConstraintSet:
        """The contacts, with those of a stage active."""
        return self.contacts.with_active(self.named(stage["active"]))

    def active_rows(self, stage: dict[str, Array]) -> Bool[Array, " rows"]:
        """Which rows act at a stage."""
        rows = [self.contacts.rows_of(name) for name in self.contacts.names]
        return jnp.concatenate([jnp.broadcast_to(stage["active"][i], (r.stop - r.start,)) for i, r in enumerate(rows)])

    def named(self, active: Bool[Array, " contacts"]) -> dict[str, Array]:
        """What is active, by the constraints' names."""
        return {name: active[i] for i, name in enumerate(self.contacts.names)}


def contact_schedule(active: ArrayLike) -> dict[str, Bool[Array, "steps_and_end contacts"]]:
    """Stages of a gait from which contacts are active at each of num_steps + 1 steps; those of step 0 do not begin."""
    active = jnp.asarray(active, bool)
    if active.ndim != 2:
        raise ModelError(
            f"contact_schedule: active must be (num_steps + 1, contacts), a row for each step, got {active.shape}."
        )
    begins = active[1:] & ~active[:-1]
    return {"active": active, "begins": jnp.concatenate([jnp.zeros_like(active[:1]), begins])}
