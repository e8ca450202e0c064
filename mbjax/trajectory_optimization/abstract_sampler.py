"""The contract of solvers that search by samples, and the search that they share."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.number_rules import NOT_NEGATIVE, checked_numbers

from .abstract_solver import AbstractSolver, Found, require_solver_numbers
from .effort_feedback import found_at_efforts
from .multipliers import Penalties
from .problem import Problem
from .sampling import SampledPlan, Samples, draw_samples, within_limits
from .solution import History, Outcome, with_entry


class AbstractSampler(AbstractSolver):
    """A method that moves a plan by what samples about it cost."""

    deviation: eqx.AbstractVar[Any]
    tolerance: eqx.AbstractVar[float]
    patience: eqx.AbstractVar[int]
    seed: eqx.AbstractVar[int]
    samples: eqx.AbstractVar[int]
    knots: eqx.AbstractVar[int | None]

    def __check_init__(self):
        require_solver_numbers(self, ("max_iterations", "patience"), tolerance=NOT_NEGATIVE)
        call, shape = type(self).__name__, np.shape(self.deviation)
        checked_numbers(call, "deviation", self.deviation, NOT_NEGATIVE, shape)

    @abstractmethod
    def turn(self, plan: SampledPlan, drawn: Samples) -> SampledPlan:
        """The next plan."""

    def search(
        self,
        problem: Problem,
        states: Any,
        efforts: Float[Array, "steps nu"],
        penalties: Penalties | None,
        history: History,
        callback: Callable | None,
    ) -> Found:
        """Turns until `patience` of them have not lowered the cost by `tolerance` (1 + |cost|); states are not used."""
        key, plan = jax.random.key(self.seed), self.first_plan(problem, efforts)

        def iterate(s: SamplingSearch) -> SamplingSearch:
            of_turn = jax.random.fold_in(key, s.history.count)
            drawn = draw_samples(problem, s.plan, of_turn, self.samples, self.knots, penalties)
            plan, least = self.turn(s.plan, drawn), jnp.min(drawn.costs)
            fall = s.best.cost - least
            found = SampledPlan(drawn.best, plan.deviation, least)
            best = jax.tree.map(lambda new, old: jnp.where(fall > 0.0, new, old), found, s.best)
            since = jnp.where(fall > self.tolerance * (1.0 + jnp.abs(least)), 0, s.since + 1)
            entry = {"cost": best.cost, "gap": jnp.zeros_like(least), "expected": jnp.maximum(fall, 0.0)}
            if callback is not None:
                jax.debug.callback(callback, s.history.count, entry)
            outcome = jnp.where(since >= self.patience, Outcome.CONVERGED, Outcome.RUNNING)
            outcome = jnp.where(jnp.isfinite(best.cost), outcome, Outcome.NOT_FINITE)
            return SamplingSearch(plan, best, since, outcome, with_entry(s.history, **entry))

        last = jnp.minimum(history.count + self.max_iterations, history.cost.shape[0])
        start = SamplingSearch(plan, plan, jnp.zeros((), jnp.int32), jnp.asarray(Outcome.RUNNING), history)
        s = jax.lax.while_loop(lambda s: (s.outcome == Outcome.RUNNING) & (s.history.count < last), iterate, start)
        outcome = jnp.where(s.outcome == Outcome.RUNNING, Outcome.MAX_ITERATIONS, s.outcome)
        return found_at_efforts(problem, s.best.efforts, penalties, outcome, s.history)

    def first_plan(self, problem: Problem, efforts: Float[Array, "steps nu"]) -> SampledPlan:
        """The guess as a plan of unknown cost."""
        deviation = jnp.asarray(self.deviation, efforts.dtype)
        if deviation.shape not in ((), efforts.shape[1:], efforts.shape):
            raise ModelError(
                f"{type(self).__name__}: deviation has shape {deviation.shape}; give a number, {efforts.shape[1:]} or "
                f"{efforts.shape}."
            )
        cost = jnp.asarray(jnp.inf, efforts.dtype)
        return SampledPlan(within_limits(problem, efforts), jnp.broadcast_to(deviation, efforts.shape), cost)


class SamplingSearch(NamedTuple):
    """State of a search by samples between two turns."""

    plan: SampledPlan
    best: SampledPlan  # the cheapest efforts so far
    since: Array  # turns since the cost last fell
    outcome: Array
    history: History
