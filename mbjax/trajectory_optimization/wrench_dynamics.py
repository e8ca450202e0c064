"""Dynamics of bodies that actuators push themselves: drones, flying arms, boats, satellites."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.forces import MultibodyForces
from mbjax.model import MultibodyModel
from mbjax.simulation import Inputs, State, WrenchActuators, step
from mbjax.spatial import small_matmul

from .linearization import Linearization, Wrenches, differentiate_steps, has_closed_form, linearize_joint_steps


class WithWrenches(eqx.Module):
    """The model's steps under its joint actuators and, behind them in the efforts, wrenches on its bodies.

    `Problem(model, start, …, dynamics=WithWrenches(actuators))`; the limits of both hold without `efforts=`.
    """

    actuators: WrenchActuators

    def __call__(self, model: MultibodyModel, state: State, effort: Array, *stage: Any) -> State:
        return step(model, state, self.inputs(model, state, effort))[0]

    def inputs(self, model: MultibodyModel, state: State, effort: Float[Array, " nu"]) -> Inputs:
        """`Inputs` of a step under an effort of the plan."""
        count = model.num_actuators
        actuation = effort[:count] if count else None
        return self.actuators.inputs(model, state, effort[count:], actuation)

    def effort_limits(self, model: MultibodyModel) -> tuple[Float[Array, " nu"], Float[Array, " nu"]]:
        """Lowest and highest efforts, joint actuators first."""
        limit, own = model.parameters.effort_limit, self.actuators
        low, high = (bound.astype(limit.dtype) for bound in (own.low, own.high))
        return jnp.concatenate([-limit, low]), jnp.concatenate([limit, high])

    def effort_names(self, model: MultibodyModel) -> tuple[str, ...]:
        """Names of the efforts, joint actuators first."""
        return (*model.actuator_names, *self.actuators.names)

    def linearize(
        self,
        model: MultibodyModel,
        states: State,
        efforts: Float[Array, "steps nu"],
        *stages: Any,
        reached: State | None = None,
    ) -> Linearization:
        """A and B of many steps at once, by closed forms where joints alone resist; `reached` is what steps give."""
        count = model.num_actuators
        inputs = Inputs(actuation=efforts[:, :count])
        if not has_closed_form(model, inputs):
            return differentiate_steps(lambda *args: self(model, *args), model, states, efforts, None)
        if reached is None:
            reached = jax.vmap(lambda state, effort: self(model, state, effort))(states, efforts)
        wrenches = jax.vmap(self.wrenches, (None, 0, 0))(model, states.q, efforts[:, count:])
        return linearize_joint_steps(model, states, inputs, reached.v, wrenches)

    def wrenches(self, model: MultibodyModel, q: Float[Array, " nq"], efforts: Float[Array, " k"]) -> Wrenches:
        """Wrenches at one step. As a body turns by dθ, its torque and force change by dθ x t and dθ x f."""
        own = self.actuators
        F_W = own.spatial_forces(model, q, efforts).F_Bq_W.astype(q.dtype)
        jacobians, nv = own.jacobians(model, q), model.num_velocities
        by_q, body = jnp.zeros((nv, nv), q.dtype), jnp.zeros((model.num_bodies, 6), q.dtype)
        for name, J in jacobians.items():
            F = sum((F_W[k] for k, other in enumerate(own.bodies) if other == name), jnp.zeros(6, q.dtype))
            turning = jnp.concatenate([jnp.cross(J[:3], half[:, None], axis=0) for half in (F[:3], F[3:])])
            by_q, body = by_q + small_matmul(J.T, turning), body.at[model.body_index(name)].add(F)
        is_inside = (efforts >= own.low) & (efforts <= own.high)
        by_effort = jnp.where(is_inside, own.matrix(model, q), 0.0)
        return Wrenches(MultibodyForces(jnp.zeros(nv, q.dtype), body), by_q, by_effort)
