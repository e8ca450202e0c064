"""Residuals that costs and constraints are made of: joints, states, effort, distances, and goals about other goals.

Each is an equinox module whose numbers are leaves, called with (model, state) or (model, state, effort), and returns an
array. Of states that are pytrees it reads the first `State`. As a cost, the array counts by half its squares; as a
constraint, by its values. A residual `weight * r` costs weight² r·r / 2; `factor=` in place of `weight` is weight².
"""

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from mbjax.contact import signed_distances
from mbjax.errors import ModelError
from mbjax.model import MultibodyModel
from mbjax.number_rules import as_numbers, as_traced_numbers, counted, is_known, shown
from mbjax.simulation import State

from .constraints import require_bounds
from .own_frames import (
    InFrame,
    checked_frame,
    difference_in,
    slopes_of_difference_in,
    slopes_of_velocity_in,
    velocity_in,
)
from .problem import call_with_motion
from .slopes import Slopes, slopes_of_goal
from .states import parts_of
from .weights import weight_of


def state_of(x: Any) -> State:
    """The first `State` of a state that may be a pytree."""
    for part in parts_of(x):
        if isinstance(part, State):
            return part
    raise ModelError(f"goals of a model need a mbjax.State as the state, or in it, got {type(x).__name__}.")


def vectors(goal: str, what: str, value: Any, size: int, *, is_repeated: bool = False) -> Float[Array, "..."]:
    """A vector of `size` numbers, or a batch of them; one number for all where `is_repeated`, else a `ModelError`."""
    numbers = as_numbers(value) if is_known(value) else as_traced_numbers(value)
    if numbers is None or not (numbers.shape[-1:] == (size,) or (is_repeated and numbers.shape == ())):
        came = shown(value) if numbers is None else f"shape {numbers.shape}: {shown(value)}"
        raise ModelError(f"{goal}: {what} must be {counted((size,), is_repeated)}, got {came}.")
    return jnp.asarray(numbers, float)


def slopes_of_positions(model: MultibodyModel, in_frame: InFrame, q_goal: Float[Array, " nq"], x: State) -> Slopes:
    """The distance from a configuration with its Jacobian."""
    q_goal = q_goal.astype(x.q.dtype)
    difference = difference_in(model, in_frame, q_goal, x.q)
    return Slopes(difference, by_q=slopes_of_difference_in(model, in_frame, q_goal, difference))


def slopes_of_velocities(model: MultibodyModel, in_frame: InFrame, v_goal: Float[Array, "..."], x: State) -> Slopes:
    """Velocities less others with their Jacobians."""
    by_q, by_v = slopes_of_velocity_in(model, in_frame, x.q, x.v)
    return Slopes(velocity_in(model, in_frame, x.q, x.v) - v_goal, by_q=by_q, by_v=by_v)


class JointGoal(eqx.Module):
    """Distance of the configuration from `q`, along the tangent of `difference_configuration`.

    With `in_frame="own"` the part of a floating body is the twist in its own frame, log(X_goal⁻¹ X).
    """

    q: Float[Array, " nq"]
    weight: Float[Array, "..."]
    in_frame: InFrame = eqx.field(static=True)

    def __init__(
        self, q: ArrayLike, weight: ArrayLike = 1.0, *, factor: ArrayLike | None = None, in_frame: InFrame = "world"
    ):
        self.q, self.weight = jnp.asarray(q, float), weight_of("JointGoal", weight, factor)
        self.in_frame = checked_frame("JointGoal", in_frame)

    def __call__(self, model: MultibodyModel, x: Any, *rest: Any) -> Float[Array, " nv"]:
        state = state_of(x)
        return self.weight * difference_in(model, self.in_frame, self._goal(state), state.q)

    def slopes(self, model: MultibodyModel, state: State, *rest: Any) -> list[Slopes]:
        """The residual and its Jacobians in closed form."""
        return [slopes_of_positions(model, self.in_frame, self._goal(state), state).scaled(self.weight)]

    def _goal(self, state: State) -> Float[Array, " nq"]:
        if self.q.shape != state.q.shape:
            raise ModelError(f"JointGoal: q has shape {self.q.shape}, the model needs {state.q.shape}.")
        return self.q.astype(state.q.dtype)


class VelocityGoal(eqx.Module):
    """Distance of the generalized velocities from `v`, at rest by default.

    With `in_frame="own"` those of a floating body, and their goal, are along its own axes.
    """

    v: Float[Array, "..."]
    weight: Float[Array, "..."]
    in_frame: InFrame = eqx.field(static=True)

    def __init__(
        self,
        v: ArrayLike = 0.0,
        weight: ArrayLike = 1.0,
        *,
        factor: ArrayLike | None = None,
        in_frame: InFrame = "world",
    ):
        self.v, self.weight = jnp.asarray(v, float), weight_of("VelocityGoal", weight, factor)
        self.in_frame = checked_frame("VelocityGoal", in_frame)

    def __call__(self, model: MultibodyModel, x: Any, *rest: Any) -> Float[Array, " nv"]:
        state = state_of(x)
        return self.weight * (velocity_in(model, self.in_frame, state.q, state.v) - self._goal(state))

    def slopes(self, model: MultibodyModel, state: State, *rest: Any) -> list[Slopes]:
        """The residual and its Jacobians in closed form."""
        return [slopes_of_velocities(model, self.in_frame, self._goal(state), state).scaled(self.weight)]

    def _goal(self, state: State) -> Float[Array, "..."]:
        if self.v.shape not in ((), state.v.shape):
            raise ModelError(f"VelocityGoal: v has shape {self.v.shape}, the model needs {state.v.shape} or a number.")
        return self.v


class StateGoal(eqx.Module):
    """Distance of a state from another along its tangent (dq, dv), for a `State`.

    With `in_frame="own"` floating bodies are seen from themselves: the twist log(X_goal⁻¹ X), and the change of the
    velocity along their own axes, each in its own attitude. Those are the numbers of Crocoddyl and Pinocchio.
    """

    goal: State
    weight: Float[Array, "..."]
    in_frame: InFrame = eqx.field(static=True)

    def __init__(
        self, goal: State, weight: ArrayLike = 1.0, *, factor: ArrayLike | None = None, in_frame: InFrame = "world"
    ):
        if not isinstance(goal, State):
            raise ModelError(f"StateGoal: the goal must be a mbjax.State, got {type(goal).__name__}.")
        self.goal, self.weight = goal, weight_of("StateGoal", weight, factor)
        self.in_frame = checked_frame("StateGoal", in_frame)

    def __call__(self, model: MultibodyModel, x: Any, *rest: Any) -> Float[Array, " two_nv"]:
        state, goal = state_of(x), self.goal
        v, v_goal = (velocity_in(model, self.in_frame, at.q, at.v) for at in (state, goal))
        return self.weight * jnp.concatenate([difference_in(model, self.in_frame, goal.q, state.q), v - v_goal])

    def slopes(self, model: MultibodyModel, state: State, *rest: Any) -> list[Slopes]:
        """The residuals of positions and of velocities, and their Jacobians in closed form."""
        v_goal = velocity_in(model, self.in_frame, self.goal.q, self.goal.v)
        of_q = slopes_of_positions(model, self.in_frame, self.goal.q, state)
        of_v = slopes_of_velocities(model, self.in_frame, v_goal, state)
        weights = jnp.broadcast_to(self.weight, (2 * len(v_goal),)).reshape(2, -1)
        return [of_q.scaled(weights[0]), of_v.scaled(weights[1])]


class Effort(eqx.Module):
    """Efforts, less a reference if given; for running costs."""

    needs_effort: ClassVar[bool] = True

    weight: Float[Array, "..."]
    reference: Float[Array, "..."]

    def __init__(self, weight: ArrayLike = 1.0, reference: ArrayLike = 0.0, *, factor: ArrayLike | None = None):
        self.weight, self.reference = weight_of("Effort", weight, factor), jnp.asarray(reference, float)

    def __call__(self, model: Any, state: Any, effort: Array, *rest: Any) -> Float[Array, " nu"]:
        return self.weight * (effort - self.reference)

    def slopes(self, model: Any, state: State, effort: Array, *rest: Any) -> list[Slopes]:
        """The residual and its Jacobian, which is diagonal."""
        return [Slopes(effort - self.reference, by_u=jnp.ones_like(effort)).scaled(self.weight)]


class Clearance(eqx.Module):
    """Signed distances between pairs of collision geometries, in m: for a constraint that keeps them apart."""

    pairs: tuple[tuple[str, str], ...] | None = eqx.field(static=True)

    def __init__(self, pairs: Any = None):
        self.pairs = None if pairs is None else tuple(tuple(pair) for pair in pairs)

    def __call__(self, model: MultibodyModel, x: Any, *rest: Any) -> Float[Array, " pairs"]:
        state = state_of(x)
        if self.pairs is None:
            return signed_distances(model, state.q).distance
        return signed_distances(model, state.q, self.pairs).distance


class Barrier(eqx.Module):
    """Distances of another residual's values from bounds, zero within: as a cost, a quadratic wall."""

    residual: Any
    lower: Float[Array, "..."]
    upper: Float[Array, "..."]
    weight: Float[Array, "..."]

    def __init__(
        self,
        residual: Any,
        lower: ArrayLike,
        upper: ArrayLike,
        weight: ArrayLike = 1.0,
        *,
        factor: ArrayLike | None = None,
    ):
        if not callable(residual):
            raise ModelError(f"Barrier: the first argument must be a residual, got {type(residual).__name__}.")
        self.residual, self.weight = residual, weight_of("Barrier", weight, factor)
        self.lower, self.upper = jnp.asarray(lower, float), jnp.asarray(upper, float)
        require_bounds("Barrier", lower, upper)

    def __call__(self, model: MultibodyModel, state: Any, *rest: Any, motion: Any = None) -> Float[Array, " size"]:
        return self.weight * self._beyond(call_with_motion(self.residual, (model, state, *rest), motion))

    def slopes(self, model: MultibodyModel, state: State, *rest: Any, motion: Any = None) -> list[Slopes] | None:
        """The distances and their Jacobians, those of the residual where it is beyond a bound."""
        found = slopes_of_goal(self.residual, (model, state, *rest), motion)
        if found is None:
            return None
        distance = self._beyond(jnp.concatenate([part.residual for part in found]))
        ends = np.cumsum([len(part.residual) for part in found])[:-1]
        acting = (distance != 0.0).astype(distance.dtype)
        weights = (jnp.broadcast_to(x, distance.shape) for x in (self.weight * distance, self.weight * acting))
        each = zip(found, *(jnp.split(x, ends) for x in weights), strict=True)
        return [part.scaled(weight)._replace(residual=value) for part, value, weight in each]

    def _beyond(self, value: Float[Array, " size"]) -> Float[Array, " size"]:
        return jnp.minimum(value - self.lower, 0.0) + jnp.maximum(value - self.upper, 0.0)


class AtStage(eqx.Module):
    """Residuals of goals that are data of each step: `goals(stage)` makes them from the step's entry of `stages`.

    So references and weights may change from step to step: `AtStage(lambda stage: [PointGoal("foot", stage["foot"])])`.
    It returns one goal or several, whose residuals follow one another.
    """

    goals: Callable
    needs_stage: ClassVar[bool] = True

    def __call__(self, model: MultibodyModel, state: Any, *rest: Any, motion: Any = None) -> Float[Array, " size"]:
        values = [call_with_motion(goal, (model, state, *rest), motion) for goal in self._goals_of(rest)]
        return jnp.concatenate([jnp.ravel(value) for value in values])

    def slopes(self, model: MultibodyModel, state: State, *rest: Any, motion: Any = None) -> list[Slopes] | None:
        """The residuals and their Jacobians in closed form, if all goals have them."""
        found = [slopes_of_goal(goal, (model, state, *rest), motion) for goal in self._goals_of(rest)]
        if any(slopes is None for slopes in found):
            return None
        return [part for slopes in found if slopes is not None for part in slopes]

    def _goals_of(self, rest: tuple) -> tuple:
        if not rest:
            raise ModelError("AtStage: its goals are made of the data of a step; give the Problem stages=.")
        found = self.goals(rest[-1])
        return (found,) if callable(found) else tuple(found)
