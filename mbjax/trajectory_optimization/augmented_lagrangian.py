"""The method of multipliers: constraints become penalties of a solver without constraints.

Each constraint l <= g <= u adds weight/2 |s - clip(s, l, u)|² with s = g + multiplier / weight. After each search the
multipliers become weight (s - clip(s, l, u)), and the weight grows while violations fall too slowly (Bertsekas 1996).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.number_rules import NOT_NEGATIVE, POSITIVE

from .abstract_solver import ABOVE_ONE, AbstractSolver, Found, require_solver_numbers
from .feasibility_ddp import FeasibilityDDP, largest_violation
from .multipliers import Penalties, no_penalties, updated, values_along
from .problem import Problem
from .solution import History, Outcome


class AugmentedLagrangian(AbstractSolver):
    """Constraints around another solver; ends when every constraint is within `tolerance` of its bounds.

    The solver inside limits that: where it stops while it expects to lower the cost by `inner.tolerance` (1 + |cost|),
    constraints stay off by up to the root of twice that over `largest_weight`, 4e-9 by default. For a smaller
    `tolerance` make the inner one smaller too: `AugmentedLagrangian(FeasibilityDDP(tolerance=1e-15), tolerance=1e-9)`.
    """

    inner: AbstractSolver = FeasibilityDDP()
    takes_constraints = True
    max_iterations: int = 500
    max_rounds: int = 30
    tolerance: float = 1e-6
    first_weight: float = 10.0
    largest_weight: float = 1e8
    weight_factor: float = 10.0
    wanted_fall: float = 0.25  # of the violation from round to round; else the weight grows

    def __check_init__(self):
        require_solver_numbers(
            self,
            ("max_iterations", "max_rounds"),
            tolerance=NOT_NEGATIVE,
            first_weight=POSITIVE,
            largest_weight=POSITIVE,
            weight_factor=ABOVE_ONE,
            wanted_fall=NOT_NEGATIVE,
        )

    def search(
        self,
        problem: Problem,
        states: Any,
        efforts: Float[Array, "steps nu"],
        penalties: Penalties | None,
        history: History,
        callback: Callable | None,
    ) -> Found:
        """Searches, updates multipliers, and searches again until the constraints are met."""
        if penalties is None:
            penalties = no_penalties(problem, states, efforts, self.first_weight)
        if penalties is None:
            return self.inner.search(problem, states, efforts, None, history, callback)

        def look(states: Any, efforts: Array, penalties: Penalties, history: History) -> Found:
            return self.inner.search(problem, states, efforts, penalties, history, callback)

        shapes = jax.eval_shape(look, states, efforts, penalties, history)
        nothing = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
        nothing = eqx.tree_at(
            lambda f: (f.states, f.efforts, f.penalties, f.history), nothing, (states, efforts, penalties, history)
        )
        violation = jnp.asarray(jnp.inf, efforts.dtype)
        last = jnp.minimum(self.max_iterations, history.cost.shape[0])

        def is_running(r: Round) -> Array:
            return (r.outcome == Outcome.RUNNING) & (r.count < self.max_rounds)

        def turn(r: Round) -> Round:
            assert r.found.penalties is not None
            found = look(r.found.states, r.found.efforts, r.found.penalties, r.found.history)
            violation = largest_violation(problem, found.states, found.efforts)
            met, ended = violation <= self.tolerance, found.outcome != Outcome.MAX_ITERATIONS
            assert found.penalties is not None
            values = values_along(problem, found.states, found.efforts)
            weight = found.penalties.weight
            slow = violation > self.wanted_fall * r.violation
            grown = jnp.where(slow, weight * self.weight_factor, weight)
            penalties = updated(problem, found.penalties, values, jnp.minimum(grown, self.largest_weight))
            hopeless = slow & (grown > self.largest_weight) & ~met
            spent = found.history.count >= last
            outcome = jnp.select(
                [met & ended, found.outcome == Outcome.NOT_FINITE, hopeless, spent],
                [found.outcome, found.outcome, Outcome.CONSTRAINTS_VIOLATED, Outcome.MAX_ITERATIONS],
                Outcome.RUNNING,
            ).astype(found.outcome.dtype)
            found = eqx.tree_at(lambda f: f.penalties, found, penalties)
            return Round(found, violation, outcome, r.count + 1)

        r = jax.lax.while_loop(
            is_running, turn, Round(nothing, violation, jnp.asarray(Outcome.RUNNING), jnp.zeros((), jnp.int32))
        )
        met = r.violation <= self.tolerance
        at_end = jnp.where(met, Outcome.MAX_ITERATIONS, Outcome.CONSTRAINTS_VIOLATED)
        outcome = jnp.where(r.outcome == Outcome.RUNNING, at_end, r.outcome)
        return eqx.tree_at(lambda f: f.outcome, r.found, outcome)


class Round(NamedTuple):
    """What rounds carry on."""

    found: Found
    violation: Float[Array, ""]
    outcome: Array
    count: Array
