"""Dynamics with contacts that are made and broken at given steps: legs that stand and swing.

Contacts are rigid constraints of a bound `ConstraintSet`. Which of them act is data of each step, so that a gait is an
array, not a program. Where one begins, an impulse first stops it.
"""

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from mbjax.constraints import (
    BoundConstraintSet,
    ContactDerivatives,
    are_contacts,
    constrained_forward_dynamics,
    constraint_impulses,
    contact_impulse_derivatives,
    contact_motion_derivatives,
)
from mbjax.errors import ModelError
from mbjax.execution import called_if
from mbjax.kinematics import integrate_configuration
from mbjax.model import MultibodyModel
from mbjax.number_rules import as_traced_numbers, is_known, shown
from mbjax.simulation import State, actuation_matrix

from .linearization import Linearization, differentiate_steps, linearize_move, replace_chosen
from .problem import actuator_limits


def velocity_after_impact(
    model: MultibodyModel, contacts: BoundConstraintSet, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> Float[Array, " nv"]:
    """Velocities after the impulse that stops all active contacts."""
    return constraint_impulses(model, contacts, q, v).v


class StepMotion(NamedTuple):
    """The velocity after the impulse of a step, and accelerations and contact forces from there on; or derivatives."""

    v: Any  # an array; None as the derivative by efforts
    vdot: Float[Array, "..."]
    force: Float[Array, "..."]


class MotionSlopes(NamedTuple):
    """A step's motion and its derivatives by the tangent dq, by v and by the effort, of which the impulse is none."""

    motion: StepMotion
    by_q: StepMotion
    by_v: StepMotion
    by_u: StepMotion


class ScheduledContacts(eqx.Module):
    """Dynamics under the contacts of each step; use `contact_schedule(active)` as the problem's `stages`.

    (M vdot + C v = B u + gravity, springs, damping + Gᵀ λ, with the rows G of active contacts held), then a
    semi-implicit Euler step. Before the first step of a contact its point's velocity is set to zero by an impulse.
    The model's effort limits hold without `efforts=`.
    """

    contacts: BoundConstraintSet
    needs_stage: ClassVar[bool] = True

    def __check_init__(self):
        if not isinstance(self.contacts, BoundConstraintSet):
            raise ModelError(
                f"ScheduledContacts: contacts must be a set bound to the model, ConstraintSet.bind(model), got "
                f"{type(self.contacts).__name__}."
            )

    def __call__(self, model: MultibodyModel, state: State, effort: Array, stage: dict[str, Array]) -> State:
        return self.moved(model, state, self.motion(model, state, effort, stage))

    def motion(self, model: MultibodyModel, state: State, effort: Array, stage: dict[str, Array]) -> StepMotion:
        """What happens in a step: an impulse if contacts begin, then accelerations and contact forces."""
        v = self.velocity_after_impulse(model, state, stage)
        return StepMotion(v, *self.solve(model, State(state.q, v, state.time), effort, stage))

    def moved(self, model: MultibodyModel, state: State, motion: StepMotion) -> State:
        """The state after a step of this motion."""
        dt = model.time_step
        v = motion.v + dt * motion.vdot
        return State(integrate_configuration(model, state.q, dt * v), v, state.time + dt)

    def solve(
        self, model: MultibodyModel, state: State, effort: Array, stage: dict[str, Array]
    ) -> tuple[Float[Array, " nv"], Float[Array, " nc"]]:
        """Accelerations and contact forces λ, zero where a contact is not active."""
        tau = jnp.sum(actuation_matrix(model) * effort, axis=1)  # no product of matrices: a rollout is one kernel
        found = constrained_forward_dynamics(model, self.acting(stage), state.q, state.v, tau, force_elements=True)
        return found.vdot, found.force

    def velocity_after_impulse(
        self, model: MultibodyModel, state: State, stage: dict[str, Array]
    ) -> Float[Array, " nv"]:
        """Velocities after the impulse that stops contacts which begin with this step."""

        begins = jnp.any(stage["begins"])
        return called_if(begins, velocity_after_impact, (model, self.acting(stage), state.q, state.v), state.v)

    def motion_slopes(
        self, model: MultibodyModel, states: State, efforts: Float[Array, "steps nu"], stages: dict[str, Array]
    ) -> MotionSlopes | None:
        """The motions of many steps at once with their derivatives; None with other constraints than contacts.

        With the impulse v⁺(q, v), accelerations and forces are functions of (q, v⁺, u).
        """
        if not are_contacts(self.contacts):
            return None
        B, v, nv = actuation_matrix(model), states.v, model.num_velocities
        one = jnp.broadcast_to(jnp.eye(nv, dtype=model.dtype), (len(v), nv, nv))

        def impulse(q: Array, v: Array, stage: dict[str, Array]) -> tuple[Array, Array, Array]:
            of = contact_impulse_derivatives(model, self.acting(stage), q, v)
            return v + of.result.vdot, of.x_q, jnp.eye(nv, dtype=model.dtype) + of.x_v

        def driven(q: Array, v: Array, effort: Array, stage: dict[str, Array]) -> ContactDerivatives:
            return contact_motion_derivatives(model, self.acting(stage), q, v, B @ effort)

        def chained(v_q: Array, v_v: Array, x: tuple) -> tuple:
            return x[0] + x[1] @ v_q, x[1] @ v_v, x[2] + x[3] @ v_q, x[3] @ v_v

        begins = jnp.any(stages["begins"], axis=1)
        v, v_q, v_v = replace_chosen(impulse, begins, (states.q, v, stages), (v, jnp.zeros_like(one), one))
        of = jax.vmap(driven)(states.q, v, efforts, stages)
        assert of.x_tau is not None
        assert of.force_tau is not None
        slopes = of.x_q, of.x_v, of.force_q, of.force_v
        slopes = replace_chosen(chained, begins, (v_q, v_v, slopes), slopes)
        motion = StepMotion(v, of.result.vdot, of.result.multipliers)
        by_u = StepMotion(None, of.x_tau @ B, of.force_tau @ B)
        return MotionSlopes(motion, StepMotion(v_q, slopes[0], slopes[2]), StepMotion(v_v, slopes[1], slopes[3]), by_u)

    def linearize(
        self,
        model: MultibodyModel,
        states: State,
        efforts: Float[Array, "steps nu"],
        stages: dict[str, Array],
        motions: MotionSlopes | None = None,
    ) -> Linearization:
        """A and B of many steps at once by closed forms; other constraints than contacts are differentiated.

        With the impulse v⁺(q, v) and the acceleration vdot(q, v⁺, u), the new velocity is w = v⁺ + dt vdot.
        """
        motions = self.motion_slopes(model, states, efforts, stages) if motions is None else motions
        if motions is None:
            return differentiate_steps(lambda *args: self(model, *args), model, states, efforts, stages)
        dt = model.time_step
        motion, by_q, by_v, by_u = motions
        w, W_q, W_v = (x.v + dt * x.vdot for x in (motion, by_q, by_v))
        return jax.vmap(linearize_move, (None, 0, 0, 0, 0, 0))(model, states.q, w, W_q, W_v, dt * by_u.vdot)

    def acting(self, stage: dict[str, Array]) -> BoundConstraintSet:
        """The contacts, with those of a stage active."""
        return self.contacts.with_active(self.named(stage["active"]))

    def active_rows(self, stage: dict[str, Array]) -> Bool[Array, " rows"]:
        """Which rows act at a stage."""
        rows = [(self.contacts.rows_of(name), active) for name, active in self.named(stage["active"]).items()]
        return jnp.concatenate([jnp.broadcast_to(active, (r.stop - r.start,)) for r, active in rows])

    def named(self, active: Bool[Array, " contacts"]) -> dict[str, Array]:
        """What is active, by the constraints' names."""
        names = self.contacts.names
        if jnp.shape(active) != (len(names),):
            raise ModelError(
                f"ScheduledContacts: a stage has active= of shape {jnp.shape(active)}, the set {len(names)} contacts "
                f"({', '.join(names)}); give contact_schedule a column for each of them, in this order."
            )
        return {name: active[i] for i, name in enumerate(names)}

    def effort_limits(self, model: MultibodyModel) -> tuple[Float[Array, " nu"], Float[Array, " nu"]] | None:
        """Limits of the actuators; None where they have none."""
        return actuator_limits(model)

    def effort_names(self, model: MultibodyModel) -> tuple[str, ...]:
        """Names of the actuators."""
        return model.actuator_names


def contact_schedule(active: ArrayLike) -> dict[str, Bool[Array, "steps_and_end contacts"]]:
    """Stages of a gait from which contacts are active at each of num_steps + 1 steps; those of step 0 do not begin.

    `active` has a row for each step and a column for each of `contacts.names`, in that order; a `FlatFoot` has three
    contacts. Raises `ModelError` unless it has two axes.
    """
    numbers = as_traced_numbers(active)
    if numbers is None or (is_known(numbers) and not np.all(np.isin(np.asarray(numbers), (0.0, 1.0)))):
        raise ModelError(
            f"contact_schedule: active must be of truth values, or of zeros and ones, got {shown(active)}."
        )
    acting = numbers.astype(bool)
    if acting.ndim != 2:
        raise ModelError(
            f"contact_schedule: active must be (num_steps + 1, contacts), a row for each step, got {acting.shape}."
        )
    begins = acting[1:] & ~acting[:-1]
    return {"active": acting, "begins": jnp.concatenate([jnp.zeros_like(acting[:1]), begins])}
