"""Steps whose lengths are unknown: free final times, and grids that are fine where much happens."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.model import MultibodyModel, set_time_step
from mbjax.number_rules import is_known
from mbjax.simulation import Inputs, State, step
from mbjax.spatial import safe_sqrt

from .linearization import Linearization, differentiate_steps, has_closed_form, linearize_joint_steps
from .states import difference_states
from .weights import weight_of


class FreeSteps(eqx.Module):
    """The model's steps, each as long as the last effort says, in s; the others are those of the actuators.

    Lengths are within `shortest` and `longest`, numbers or (num_steps,); where both are equal they are given. So
    `FreeSteps(lengths, lengths)` has steps of different lengths, and `FreeSteps(0.01, 0.05)` with the running cost
    `Duration()` a free final time. Limits of efforts hold without `efforts=`.
    """

    shortest: Float[Array, "*steps"]
    longest: Float[Array, "*steps"]

    def __init__(self, shortest: ArrayLike, longest: ArrayLike):
        self.shortest, self.longest = jnp.asarray(shortest, float), jnp.asarray(longest, float)
        if is_known(self.shortest, self.longest):
            low, high = np.broadcast_arrays(np.asarray(self.shortest), np.asarray(self.longest))
            wrong = np.argwhere(~((low > 0.0) & (low <= high) & np.isfinite(high)))
            if len(wrong):
                where = tuple(int(i) for i in wrong[0])
                raise ModelError(
                    f"FreeSteps: a step must take more than 0 s and a known longest time; step {list(where)} has "
                    f"from {low[where]} to {high[where]} s."
                )

    def __call__(self, model: MultibodyModel, state: State, effort: Float[Array, " nu"], *stage: Any) -> State:
        return step(set_time_step(model, effort[-1]), state, effort[:-1])[0]

    def step_length(self, model: MultibodyModel, effort: Float[Array, " nu"]) -> Float[Array, ""]:
        """Length of a step, in s."""
        return effort[-1]

    def effort_limits(self, model: MultibodyModel) -> tuple[Float[Array, "*steps nu"], Float[Array, "*steps nu"]]:
        """Limits of the actuators, then of the lengths."""
        limit = model.parameters.effort_limit
        return joined_limits(-limit, self.shortest), joined_limits(limit, self.longest)

    def effort_names(self, model: MultibodyModel) -> tuple[str, ...]:
        """Names of the actuators, then of the length."""
        return (*model.actuator_names, "step length")

    def linearize(
        self,
        model: MultibodyModel,
        states: State,
        efforts: Float[Array, "steps nu"],
        *stages: Any,
        reached: State | None = None,
    ) -> Linearization:
        """A and B of many steps at once: closed forms where joints alone resist, and one derivative by the length."""
        if not has_closed_form(model, Inputs(actuation=efforts[:, :-1])):
            return differentiate_steps(lambda *args: self(model, *args), model, states, efforts, None)
        if reached is None:
            reached = jax.vmap(lambda state, effort: self(model, state, effort))(states, efforts)

        def one(state: State, effort: Array, after: State) -> Linearization:
            timed = set_time_step(model, effort[-1])
            alone = jax.tree.map(lambda x: x[None], (state, Inputs(actuation=effort[:-1]), after.v))
            of = jax.tree.map(lambda x: x[0], linearize_joint_steps(timed, *alone))

            def moved(length: Array) -> Array:
                return difference_states(model, after, self(model, state, effort.at[-1].set(length)))

            _, by_length = jax.jvp(moved, (effort[-1],), (jnp.ones_like(effort[-1]),))
            return Linearization(of.A, jnp.concatenate([of.B, by_length[:, None]], axis=1))

        return jax.vmap(one)(states, efforts, reached)


def joined_limits(of_actuators: Float[Array, " nu"], of_length: Float[Array, "*steps"]) -> Float[Array, "*steps all"]:
    """Limits of actuators with that of the length behind them, for all steps or for each."""
    length = jnp.asarray(of_length, of_actuators.dtype)[..., None]
    return jnp.concatenate([jnp.broadcast_to(of_actuators, (*length.shape[:-1], len(of_actuators))), length], axis=-1)


class Duration(eqx.Module):
    """The time that a plan takes: `factor` times the length of each step, in s; a running cost with `FreeSteps`.

    The residual is the root of twice that, so that its square has the slope and a curvature as well.
    """

    weight: Float[Array, ""]
    needs_effort: ClassVar[bool] = True
    needs_dynamics: ClassVar[type] = FreeSteps

    def __init__(self, factor: ArrayLike = 1.0):
        self.weight = weight_of("Duration", 1.0, factor)

    def __call__(self, model: Any, state: Any, effort: Float[Array, " nu"], *stage: Any) -> Float[Array, "1"]:
        return self.weight * safe_sqrt(2.0 * effort[-1:])
