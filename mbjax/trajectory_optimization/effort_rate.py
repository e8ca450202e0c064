"""Costs of how fast efforts change: the last effort becomes a part of the state."""

from typing import Any, ClassVar

import equinox as eqx
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.model import MultibodyModel
from mbjax.simulation import State, step

from .problem import actuator_limits
from .weights import weight_of


class WithLastEffort(eqx.Module):
    """Dynamics of a pair (state, last effort): the model's step, after which the effort is the last one.

    `Problem(model, (state, effort_before), …, dynamics=WithLastEffort())`; the model's effort limits hold without
    `efforts=`. Goals read the pair's `State`.
    """

    def __call__(
        self, model: MultibodyModel, pair: tuple[State, Array], effort: Array, *rest: Any
    ) -> tuple[State, Array]:
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], State)):
            raise ModelError(
                "WithLastEffort: the start must be a pair (state, effort before), such as (state, jnp.zeros("
                f"{model.num_actuators})), got {type(pair).__name__}."
            )
        return step(model, pair[0], effort)[0], effort

    def effort_limits(self, model: MultibodyModel) -> tuple[Float[Array, " nu"], Float[Array, " nu"]] | None:
        """Limits of the actuators; None where they have none."""
        return actuator_limits(model)

    def effort_names(self, model: MultibodyModel) -> tuple[str, ...]:
        """Names of the actuators."""
        return model.actuator_names


class EffortRate(eqx.Module):
    """Change of the efforts since the step before; for running costs with `WithLastEffort`."""

    weight: Float[Array, "..."]
    needs_effort: ClassVar[bool] = True
    needs_dynamics: ClassVar[type] = WithLastEffort

    def __init__(self, weight: ArrayLike = 1.0, *, factor: ArrayLike | None = None):
        self.weight = weight_of("EffortRate", weight, factor)

    def __call__(self, model: Any, pair: tuple[State, Array], effort: Array, *rest: Any) -> Float[Array, " nu"]:
        return self.weight * (effort - pair[1])
