"""Dynamics with contacts that are made and broken at given steps: legs that stand and swing.

Contacts are rigid constraints of a bound `ConstraintSet`. Which of them act is data of each step, so that a gait is an
array, not a program. Where one begins, an impulse first stops it.
"""

import equinox as eqx
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from mbjax.constraints import BoundConstraintSet, constrained_forward_dynamics, constraint_impulses
from mbjax.errors import ModelError
from mbjax.forces import force_elements_contribution
from mbjax.kinematics import integrate_configuration
from mbjax.model import MultibodyModel
from mbjax.simulation import State, actuation_matrix


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
        acting = self.contacts.with_active(self.named(stage["active"]))
        tau = actuation_matrix(model) @ effort
        forces = force_elements_contribution(model, state.q, state.v)
        found = constrained_forward_dynamics(model, acting, state.q, state.v, tau, forces)
        return found.vdot, found.force

    def velocity_after_impulse(
        self, model: MultibodyModel, state: State, stage: dict[str, Array]
    ) -> Float[Array, " nv"]:
        """Velocities after the impulse that stops contacts which begin with this step."""
        begins = stage["begins"]
        acting = self.contacts.with_active(self.named(stage["active"]))
        v, _ = constraint_impulses(model, acting, state.q, state.v)
        return jnp.where(jnp.any(begins), v, state.v)

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


class FrictionCone(eqx.Module):
    """n and μ² n² - t·t of each contact's force in a scheduled step: both are above zero within the cone.

    Of contacts with three rows, whose first normal is the surface's and whose others span it. Use it by
    `at_least(FrictionCone(dynamics, 0.8), at="running")`. An inactive contact has `margin`, which is positive.
    """

    dynamics: ScheduledContacts
    coefficient: Float[Array, "..."]
    margin: Float[Array, ""]

    def __init__(self, dynamics: ScheduledContacts, coefficient: ArrayLike, margin: ArrayLike = 1.0):
        self.dynamics = dynamics
        self.coefficient, self.margin = jnp.asarray(coefficient, float), jnp.asarray(margin, float)

    def __call__(
        self, model: MultibodyModel, state: State, effort: Array, stage: dict[str, Array]
    ) -> Float[Array, " two_contacts"]:
        names = self.dynamics.contacts.names
        _, force = self.dynamics.solve(model, state, effort, stage)
        if force.shape[0] != 3 * len(names):
            raise ModelError(
                f"FrictionCone: {len(names)} contacts have {force.shape[0]} rows; each needs three: a normal of the "
                "surface and two directions in it."
            )
        normal, *tangents = jnp.moveaxis(force.reshape(-1, 3), 1, 0)
        cone = (self.coefficient * normal) ** 2 - tangents[0] ** 2 - tangents[1] ** 2
        return jnp.ravel(jnp.where(stage["active"], jnp.stack([normal, cone]), self.margin))
