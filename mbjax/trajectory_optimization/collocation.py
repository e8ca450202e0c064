"""Direct collocation: steps of the continuous plant by implicit rules of Hermite and Simpson, and of trapezoids.

A rule is an equation between the states before and after a step, its defect. `Transcription` takes it as it is, so that
no step is ever solved; solvers that roll out solve it by Newton's method. Efforts are held over a step, as everywhere.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.kinematics import is_velocity_equal_to_qdot
from mbjax.linear_algebra import factor_general, solve, solve_with_factors
from mbjax.model import MultibodyModel
from mbjax.number_rules import POSITIVE, checked_numbers
from mbjax.simulation import Inputs, State, time_derivatives

from .problem import actuator_limits
from .states import difference_states, move_state, tangent_size

MAX_TURNS = 30  # of Newton's method in a step
DERIVATIVES = 2  # of a step that are exact: as many turns of Newton's method are differentiated


class Collocation(eqx.Module):
    """Implicit steps of the model's continuous plant over its time step; use one as a problem's `dynamics`.

    All forces act as in `time_derivatives`: explicit, damping and contact too, and the model's effort limits hold
    without `efforts=`. `time_step`, in s, replaces the model's. `rates(model, state, effort)`, in tangents of the
    state, replaces the model's own, for states that are arrays; give `time_step` then, and `efforts=`, as no limits are
    known.
    """

    rates: Callable | None = None
    time_step: Any = None

    def __check_init__(self):
        if self.time_step is not None:
            checked_numbers(type(self).__name__, "time_step", self.time_step, POSITIVE, unit="s")

    @abstractmethod
    def defect_of_tangent(self, rate: Callable, xi: Float[Array, " ndx"], h: Any) -> Float[Array, " ndx"]:
        """The rule's residual for the tangent xi from the state before to that after; `rate(xi)` is its rate there."""

    def defect(
        self, model: MultibodyModel | None, state: Any, effort: Array, after: Any, *stage: Any
    ) -> Float[Array, " ndx"]:
        """Zero where `after` follows from `state` by the rule."""
        h = self.time_step_of(model)
        xi = difference_states(model, state, after)
        return -self.defect_of_tangent(lambda xi: self.rate_along(model, state, xi, effort, stage), xi, h)

    def __call__(self, model: MultibodyModel | None, state: Any, effort: Array, *stage: Any) -> Any:
        """The state after a step: the defect's zero, by Newton's method, differentiable twice."""
        h = self.time_step_of(model)

        def defect(xi: Array, state: Any, effort: Array) -> Array:
            return self.defect_of_tangent(lambda xi: self.rate_along(model, state, xi, effort, stage), xi, h)

        fixed_state, fixed_effort = jax.lax.stop_gradient((state, effort))
        fixed = jax.lax.stop_gradient

        def turn(carry: tuple) -> tuple:
            xi, _, count = carry
            move = solve(jax.jacfwd(defect)(xi, fixed_state, fixed_effort), defect(xi, fixed_state, fixed_effort))
            size = jnp.max(jnp.abs(move)) / (1.0 + jnp.max(jnp.abs(xi)))
            return xi - move, size, count + 1

        tangent = jnp.zeros(tangent_size(model, state), effort.dtype)
        start = h * self.rate_along(model, fixed_state, tangent, fixed_effort, fixed(stage))
        eps = jnp.finfo(effort.dtype).eps
        xi, _, _ = jax.lax.while_loop(
            lambda c: (c[1] > 100 * eps) & (c[2] < MAX_TURNS),
            lambda c: jax.tree.map(fixed, turn(c)),
            (fixed(start), jnp.asarray(jnp.inf, effort.dtype), 0),
        )
        xi = fixed(xi)
        J = fixed(jax.jacfwd(defect)(xi, fixed_state, fixed_effort))
        factors = factor_general(J)
        for _ in range(DERIVATIVES):
            xi = xi - solve_with_factors(J, factors, defect(xi, state, effort))
        after = move_state(model, state, xi)
        return jax.tree.map(lambda x: later(x, h), after, is_leaf=lambda x: isinstance(x, State))

    def rate_along(
        self, model: MultibodyModel | None, state: Any, xi: Float[Array, " ndx"], effort: Array, stage: tuple
    ) -> Float[Array, " ndx"]:
        """Rate of the tangent from `state` at the state that it leads to."""
        x = move_state(model, state, xi)
        if self.rates is not None:
            return jnp.ravel(self.rates(model, x, effort, *stage))
        if model is None or not isinstance(x, State):
            raise ModelError(
                f"{type(self).__name__}: give rates(model, state, effort); a model's own are for states that are a "
                f"mbjax.State, not {type(x).__name__}."
            )
        _, vdot = time_derivatives(model, x, Inputs(actuation=effort))
        if is_velocity_equal_to_qdot(model):
            return jnp.concatenate([x.v, vdot])
        nv = model.num_velocities
        moving = jnp.concatenate([x.v, jnp.zeros_like(x.v)])

        def tangent(t: Array) -> Array:
            return difference_states(model, state, move_state(model, x, t * moving))[:nv]

        _, dq = jax.jvp(tangent, (jnp.zeros((), x.v.dtype),), (jnp.ones((), x.v.dtype),))
        return jnp.concatenate([dq, vdot])

    def step_length(self, model: MultibodyModel | None, effort: Float[Array, " nu"]) -> Float[Array, ""]:
        """Length of a step, in s, whatever the effort."""
        return jnp.asarray(self.time_step_of(model), effort.dtype)

    def effort_limits(self, model: MultibodyModel | None) -> tuple[Float[Array, " nu"], Float[Array, " nu"]] | None:
        """Limits of the actuators; None where they have none, and with `rates`, whose efforts need not be theirs."""
        return None if model is None or self.rates is not None else actuator_limits(model)

    def effort_names(self, model: MultibodyModel) -> tuple[str, ...]:
        """Names of the actuators."""
        return model.actuator_names

    def time_step_of(self, model: MultibodyModel | None) -> Any:
        """Length of a step, in s."""
        if self.time_step is not None:
            return self.time_step
        if model is None or not model.is_discrete:
            raise ModelError(
                f"{type(self).__name__}: give time_step=, or load the model with one: it is the length of a step."
            )
        return model.time_step


class HermiteSimpson(Collocation):
    """Cubic states over a step, with Simpson's rule: errors of a step's end fall with the fourth power of the step."""

    def defect_of_tangent(self, rate: Callable, xi: Float[Array, " ndx"], h: Any) -> Float[Array, " ndx"]:
        """xi - h/6 (f0 + 4 f_middle + f1), with the cubic's middle at xi/2 + h/8 (f0 - f1)."""
        before, after = rate(jnp.zeros_like(xi)), rate(xi)
        middle = rate(0.5 * xi + h / 8.0 * (before - after))
        return xi - h / 6.0 * (before + 4.0 * middle + after)


class Trapezoid(Collocation):
    """Straight rates over a step: errors fall with the second power of the step."""

    def defect_of_tangent(self, rate: Callable, xi: Float[Array, " ndx"], h: Any) -> Float[Array, " ndx"]:
        """xi - h/2 (f0 + f1)."""
        return xi - 0.5 * h * (rate(jnp.zeros_like(xi)) + rate(xi))


def later(x: Any, h: Any) -> Any:
    """A `State` at the end of the step; an array as it is."""
    return State(x.q, x.v, x.time + h) if isinstance(x, State) else x
