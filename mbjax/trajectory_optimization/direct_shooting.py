"""Direct shooting: efforts alone are unknown, states follow from them, and an optax optimizer moves the efforts."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.number_rules import NOT_NEGATIVE
from mbjax.optional_packages import imported

from .abstract_solver import AbstractSolver, Found, require_solver_numbers
from .effort_feedback import found_at_efforts
from .expansion import total_cost
from .feasibility_ddp import clipped
from .multipliers import Penalties
from .problem import Problem
from .rolled_out import rolled_out
from .solution import History, Outcome, with_entry


class DirectShooting(AbstractSolver):
    """Gradient descent through the rollout, by an optax optimizer (L-BFGS by default), within the efforts' limits.

    It ends when no entry of the projected gradient is above `tolerance`. States of a guess are not used.
    """

    optimizer: Any = eqx.field(static=True, default=None)
    max_iterations: int = 500
    tolerance: float = 1e-6

    def __check_init__(self):
        require_solver_numbers(self, ("max_iterations",), tolerance=NOT_NEGATIVE)

    def search(
        self,
        problem: Problem,
        states: Any,
        efforts: Float[Array, "steps nu"],
        penalties: Penalties | None,
        history: History,
        callback: Callable | None,
    ) -> Found:
        """Searches for efforts that minimize cost and penalties of their rollout."""
        optimizer = optimizer_of(self.optimizer)
        efforts = clipped(problem, efforts)

        def cost(efforts: Array) -> Array:
            return total_cost(problem, rolled_out(problem, efforts), efforts, penalties)

        def slope(efforts: Array, gradient: Array) -> Array:
            return jnp.max(jnp.abs(clipped(problem, efforts - gradient) - efforts))

        def iterate(s: Descent) -> Descent:
            value, gradient = jax.value_and_grad(cost)(s.efforts)
            largest = slope(s.efforts, gradient)
            entry = {"cost": value, "gap": jnp.zeros_like(value), "expected": largest}
            if callback is not None:
                jax.debug.callback(callback, s.history.count, entry)
            move, state = optimizer.update(gradient, s.state, s.efforts, value=value, grad=gradient, value_fn=cost)
            finite = jnp.isfinite(value) & jnp.all(jnp.isfinite(gradient))
            outcome = jnp.where(largest <= self.tolerance, Outcome.CONVERGED, Outcome.RUNNING)
            outcome = jnp.where(finite, outcome, Outcome.NOT_FINITE)
            moved = clipped(problem, s.efforts + move)
            moved = jnp.where(outcome == Outcome.RUNNING, moved, s.efforts)
            return Descent(moved, state, outcome, with_entry(s.history, **entry))

        last = jnp.minimum(history.count + self.max_iterations, history.cost.shape[0])
        start = Descent(efforts, optimizer.init(efforts), jnp.asarray(Outcome.RUNNING), history)
        s = jax.lax.while_loop(lambda s: (s.outcome == Outcome.RUNNING) & (s.history.count < last), iterate, start)
        outcome = jnp.where(s.outcome == Outcome.RUNNING, Outcome.MAX_ITERATIONS, s.outcome)
        return found_at_efforts(problem, s.efforts, penalties, outcome, s.history)


class Descent(NamedTuple):
    """What iterations carry on."""

    efforts: Float[Array, "steps nu"]
    state: Any
    outcome: Array
    history: History


def optimizer_of(optimizer: Any) -> Any:
    """The given optimizer, or L-BFGS; with the arguments that line searches need."""
    optax = imported("optax", "DirectShooting needs optax", "optimize")
    return optax.with_extra_args_support(optax.lbfgs() if optimizer is None else optimizer)
