"""What solvers return: the plan, and a report that says in words how the search ended."""

from enum import IntEnum
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from mbjax.errors import ModelError
from mbjax.number_rules import is_known


class Outcome(IntEnum):
    """How a search ended; `OUTCOME_TEXTS` has the sentences."""

    RUNNING = 0
    CONVERGED = 1
    MAX_ITERATIONS = 2
    NO_DESCENT = 3
    NOT_FINITE = 4
    CONSTRAINTS_VIOLATED = 5


OUTCOME_TEXTS = {
    Outcome.RUNNING: "the search has not ended",
    Outcome.CONVERGED: "converged",
    Outcome.MAX_ITERATIONS: "stopped at the largest number of iterations; give the solver a larger max_iterations, "
    "or a better guess",
    Outcome.NO_DESCENT: "no step length lowers the cost, whatever the regularization; check that the costs are "
    "smooth and scaled alike",
    Outcome.NOT_FINITE: "a cost or a state is not finite",
    Outcome.CONSTRAINTS_VIOLATED: "the constraints are not met, and larger weights do not help: they, or the goal, may "
    "be out of reach",
}


class History(eqx.Module):
    """One entry for each iteration, NaN where there was none."""

    cost: Float[Array, "*batch iterations"]
    gap: Float[Array, "*batch iterations"]
    expected: Float[Array, "*batch iterations"]
    step_length: Float[Array, "*batch iterations"]
    regularization: Float[Array, "*batch iterations"]
    violation: Float[Array, "*batch iterations"]
    count: Int[Array, "*batch"]


def empty_history(length: int, dtype: Any) -> History:
    """A history without entries."""
    nothing = jnp.full(length, jnp.nan, dtype)
    return History(nothing, nothing, nothing, nothing, nothing, nothing, jnp.zeros((), jnp.int32))


def with_entry(history: History, **values: Array) -> History:
    """The history with one more entry."""
    k = history.count
    fields = {name: getattr(history, name).at[k].set(value) for name, value in values.items()}
    kept = {name: getattr(history, name) for name in HISTORY_FIELDS if name not in fields}
    return History(**fields, **kept, count=k + 1)


HISTORY_FIELDS = ("cost", "gap", "expected", "step_length", "regularization", "violation")


class Report(eqx.Module):
    """How the search ended: `outcome` in words by `print`, and what it saw on the way."""

    outcome: Int[Array, "*batch"]
    cost: Float[Array, "*batch"]
    gap: Float[Array, "*batch"]  # largest difference between a state and what the step before gives
    violation: Float[Array, "*batch"]  # largest distance of a constraint from its bounds
    worst_constraint: Int[Array, "*batch"]
    worst_step: Int[Array, "*batch"]
    history: History
    stationarity: Float[Array, "*batch"]  # largest derivative of cost and penalties by an effort not held at its limit
    constraint_names: tuple[str, ...] = eqx.field(static=True)
    is_through_sharp_contact: bool = eqx.field(static=True, default=False)  # whose derivatives see no contact ahead

    @property
    def converged(self) -> Bool[Array, "*batch"]:
        """Whether the search converged, with gaps closed and constraints met."""
        return self.outcome == Outcome.CONVERGED

    @property
    def iterations(self) -> Int[Array, "*batch"]:
        """Number of iterations."""
        return self.history.count

    def table(self) -> str:
        """The search of one problem as a table, a line for each iteration."""
        if not is_known(self.outcome) or np.ndim(self.outcome):
            raise ModelError(
                "table: it shows one search that has ended; take one of a batch by "
                "jax.tree.map(lambda x: x[0], plan.report)."
            )
        columns = {name: np.asarray(getattr(self.history, name)) for name in HISTORY_FIELDS}
        rows = [line_of({name: column[k] for name, column in columns.items()}, k) for k in range(int(self.iterations))]
        return "\n".join([TITLE_OF_TABLE, *rows])

    def __str__(self) -> str:
        if not is_known(self.outcome):
            return "Report of a search that is being traced"
        if np.ndim(self.outcome):
            return text_of_batch(self)
        return text_of_one(self)


TITLE_OF_TABLE = "iteration             cost       gap  expected      step  regular.  violation"
LINES_OF_A_PAGE = 20


def line_of(entry: dict[str, Any], iteration: int) -> str:
    """One iteration in numbers below `TITLE_OF_TABLE`; what a solver does not know is a dash."""

    def number(name: str, width: int, digits: int) -> str:
        value = float(entry.get(name, np.nan))
        return f"{'–' if np.isnan(value) else f'{value:.{digits}g}':>{width}}"

    others = (
        ("gap", 10, 2),
        ("expected", 10, 2),
        ("step_length", 10, 3),
        ("regularization", 10, 1),
        ("violation", 11, 2),
    )
    return f"{iteration:9d}{number('cost', 17, 9)}" + "".join(number(*column) for column in others)


def print_iteration(iteration: Any, entry: dict[str, Any]) -> None:
    """Prints an iteration as a line of a table while a search runs: `solve(problem, callback=print_iteration)`."""
    if int(iteration) % LINES_OF_A_PAGE == 0:
        print(TITLE_OF_TABLE)
    print(line_of(entry, int(iteration)), flush=True)


def text_of_batch(report: Report) -> str:
    """How many problems ended in which way."""
    outcomes, iterations = np.asarray(report.outcome).ravel(), np.asarray(report.iterations).ravel()
    lines = [
        f"{len(outcomes)} problems, {np.median(iterations):.0f} iterations in the median, {iterations.max()} at most"
    ]
    for code in Outcome:
        number = int(np.sum(outcomes == code))
        if number:
            lines.append(f"  {number}: {OUTCOME_TEXTS[code]}")
    return "\n".join([*lines, *sharp_contact_lines(report)])


def sharp_contact_lines(report: Report) -> list[str]:
    """What a minimum is where derivatives see only the contacts that a plan already makes."""
    if not report.is_through_sharp_contact:
        return []
    return [
        "  contact is sharp: derivatives see only contacts that a plan makes already, so a minimum is local and may",
        "  lie on the floor; trajectory_optimization.solve_through_contact also finds contacts to make and to break",
    ]


def text_of_one(report: Report) -> str:
    """The outcome as a sentence, the numbers at the end, and the constraint that is farthest from its bounds."""
    code = Outcome(int(report.outcome))
    lines = [
        f"{OUTCOME_TEXTS[code]} ({int(report.iterations)} iteration{'' if report.iterations == 1 else 's'})",
        f"  cost {float(report.cost):.9g}, largest gap {float(report.gap):.2g}, largest slope by an effort "
        f"{float(report.stationarity):.2g}",
    ]
    if report.constraint_names and float(report.violation) > 0.0:
        name = report.constraint_names[int(report.worst_constraint)]
        lines.append(
            f"  constraint '{name}' is {float(report.violation):.3g} off its bounds at step {int(report.worst_step)}"
        )
    return "\n".join([*lines, *sharp_contact_lines(report)])


class Solution(eqx.Module):
    """A plan: states at num_steps + 1 times, efforts and feedback gains between them, and how they were found.

    Close to the plan, effort[k] - gains[k] @ dx is optimal to first order, with dx the tangent from states[k] to the
    state that is met (`difference_states`). `costates` are the derivatives of the cost to go by the tangents of the
    states. `multipliers` are those of the constraints by name, (num_steps + 1, size).
    """

    states: Any
    efforts: Float[Array, "*batch steps nu"]
    gains: Float[Array, "*batch steps nu ndx"]
    costates: Float[Array, "*batch steps_and_end ndx"]
    multipliers: dict[str, Float[Array, "*batch steps_and_end size"]]
    cost: Float[Array, "*batch"]
    report: Report
    weight: Float[Array, "*batch"]  # that of the augmented Lagrangian, for warm starts

    def __str__(self) -> str:
        return f"Plan of {jax.tree.leaves(self.efforts)[0].shape[-2]} steps: {self.report}"
