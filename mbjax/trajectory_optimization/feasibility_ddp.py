"""Differential dynamic programming by multiple shooting: trajectories may have gaps, which close on the way.

Mastalli et al. 2020, "Crocoddyl: an efficient and versatile framework for multi-contact optimal control" (FDDP), with
the limits on efforts of Tassa et al. 2014. Each iteration solves the linear-quadratic model by a Riccati recursion and
rolls the dynamics out under its feedback; a step of length a leaves the part 1 - a of every gap.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from mbjax.errors import ModelError
from mbjax.execution import as_one_kernel
from mbjax.number_rules import NOT_NEGATIVE, POSITIVE

from .abstract_solver import ABOVE_ONE, AbstractSolver, Found, require_solver_numbers
from .curvature import Curvature, calc_curvature
from .expansion import Expansion, at, effort_slopes_of, expand, running_terms, terminal_terms, total_cost, value_of
from .multipliers import Penalties, values_along, violations_along
from .parallel_riccati import solve_riccati_in_parallel
from .problem import Problem
from .riccati import Feedback, solve_riccati
from .solution import History, Outcome, with_entry
from .states import difference_states, move_state

ACCEPTED = 0.1  # part of the expected decrease that a step must give
ACCEPTED_INCREASE = 2.0  # times the expected increase that a step may cost while it closes gaps
SMALLEST_SLOPE = 1e-12  # a model with less slope is taken as it is
LENGTH_OF_TRUST = 0.5  # regularization falls after longer steps ...
LENGTH_OF_DOUBT = 0.01  # ... and rises after shorter ones
PARTS = 1.0, 0.25, 0.0625, 0.0  # of the curvature, of which the first is taken whose model is convex
ROUNDING = 1e4  # a decrease below this times the rounding of the cost cannot be seen in a line search


class FeasibilityDDP(AbstractSolver):
    """Multiple-shooting DDP with gaps (FDDP) and box limits on efforts.

    It ends when the model, after a step that was taken, expects to lower the cost by less than `tolerance` times
    1 + |cost|, with all gaps below `gap_tolerance`. Where no step length lowers the cost until regularization alone has
    made the expected decrease so small, as at a kink of the cost, it ends without descent. With `parallel` the Riccati
    recursion takes O(log num_steps) sweeps over all steps, with the same result; efforts must then be without limits.
    Constraints need `AugmentedLagrangian` around it, which `solve` adds by itself.

    `hessian` is that of Gauss and Newton, or "exact", with second derivatives of steps and residuals: searches then end
    with Newton's quadratic convergence, for iterations that take longer, and longer to compile. Where the exact model
    is not convex, a part of what Gauss and Newton leave out is taken, or none of it.
    """

    max_iterations: int = 200
    tolerance: float = 1e-9
    gap_tolerance: float = 1e-9
    num_lengths: int = 10
    parallel: bool = False  # whether Riccati recursions are associative scans: for long horizons on a GPU
    smallest_regularization: float = 1e-9
    largest_regularization: float = 1e9
    regularization_factor: float = 10.0
    hessian: Literal["gauss_newton", "exact"] = eqx.field(static=True, default="gauss_newton")

    def __check_init__(self):
        if self.hessian not in ("gauss_newton", "exact"):
            raise ModelError(f"FeasibilityDDP: hessian must be 'gauss_newton' or 'exact', got {self.hessian!r}.")
        require_solver_numbers(
            self,
            ("max_iterations", "num_lengths"),
            tolerance=NOT_NEGATIVE,
            gap_tolerance=NOT_NEGATIVE,
            smallest_regularization=NOT_NEGATIVE,
            largest_regularization=POSITIVE,
            regularization_factor=ABOVE_ONE,
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
        """Searches from a trajectory, which may have gaps, for one that minimizes cost and penalties."""
        if self.parallel and problem.low is not None:
            raise ModelError(
                "FeasibilityDDP(parallel=True) needs efforts without limits: load actuators without effort limits and "
                "give the problem no efforts=, or make constraints of the limits."
            )
        efforts = clipped(problem, efforts)
        before = jax.tree.map(lambda x: x[:-1], states)
        first = jax.eval_shape(lambda: self.start_of_search(problem, states, efforts, before, penalties))
        expansion, curvature, feedback = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), first)
        dtype = efforts.dtype
        nothing = jnp.zeros((), dtype)
        s = Search(
            Attempt(states, efforts, before, nothing, nothing, jnp.asarray(True)),
            expansion,
            curvature,
            feedback,
            nothing,
            nothing,
            jnp.asarray(jnp.inf, dtype),
            jnp.asarray(self.smallest_regularization, dtype),
            jnp.asarray(Outcome.RUNNING),
            history,
        )
        last = jnp.minimum(history.count + self.max_iterations, history.cost.shape[0])

        def is_running(s: Search) -> Array:
            return (s.outcome == Outcome.RUNNING) & (s.history.count < last)

        def iterate(s: Search) -> Search:
            return self.iterate(problem, s, penalties, s.history.count == history.count, callback)

        s = jax.lax.while_loop(is_running, iterate, s)
        outcome = jnp.where(s.outcome == Outcome.RUNNING, Outcome.MAX_ITERATIONS, s.outcome)
        last_states, efforts, e, V_x = s.attempt.states, s.attempt.efforts, s.expansion, s.feedback.V_x
        slopes = effort_slopes_of(e)
        cost = e.cost if penalties is None else None
        return Found(last_states, efforts, s.feedback.K, V_x, slopes, e.A, e.B, penalties, outcome, s.history, cost)

    def iterate(
        self, problem: Problem, s: "Search", penalties: Penalties | None, is_first: Array, callback: Callable | None
    ) -> "Search":
        """One iteration: a rollout along the last feedback, an expansion about it, and the next feedback.

        The first iteration takes the guess as it is. So the program has each part once.
        """
        dtype, eps = s.attempt.efforts.dtype, jnp.finfo(s.attempt.efforts.dtype).eps
        attempt = search_along(problem, s, penalties, is_first, self.num_lengths)
        taken, a = attempt.accepted, attempt.length
        e, curvature = jax.lax.cond(
            taken,
            lambda: self.expanded(problem, attempt.states, attempt.efforts, attempt.reached, penalties),
            lambda: (s.expansion, s.curvature),
        )
        regularization = jnp.where(is_first, s.regularization, self.next_regularization(s.regularization, taken, a))
        bounded = jnp.minimum(regularization, self.largest_regularization)
        is_limited = ~is_behind_gap(e, self.closed_gap(eps)) | ~taken
        feedback = self.feedback(problem, attempt.efforts, e, curvature, bounded, is_limited)
        first, second = expected_change(e, feedback)
        gap = largest_gap(e)
        decrease, size = jnp.abs(first + 0.5 * second), 1.0 + jnp.abs(e.cost)
        is_closed = gap <= self.closed_gap(eps)
        small = feedback.is_convex & is_closed & (decrease <= jnp.maximum(self.tolerance, 20 * eps) * size)
        is_finite = jnp.isfinite(e.cost) & jnp.isfinite(gap)
        promised = jnp.where(taken, jnp.where(feedback.is_convex, decrease, jnp.inf), s.promised)
        rounding = promised <= ROUNDING * eps * size
        # after a failed line search the model expects less only because of more regularization
        stuck = jnp.where(rounding & is_closed, Outcome.CONVERGED, Outcome.NO_DESCENT)
        is_stuck = (regularization > self.largest_regularization) | (small & ~taken)
        outcome = jnp.where(is_stuck, stuck, Outcome.RUNNING)
        outcome = jnp.where(small & taken, Outcome.CONVERGED, jnp.where(is_finite, outcome, Outcome.NOT_FINITE))
        entry = {
            "cost": e.cost,
            "gap": gap,
            "expected": first + 0.5 * second,
            "step_length": jnp.where(is_first, jnp.nan, jnp.where(taken, a, 0.0)),
            "regularization": regularization,
            "violation": largest_violation(problem, attempt.states, attempt.efforts),
        }
        if callback is not None:
            jax.debug.callback(callback, s.history.count, entry)
        history = with_entry(s.history, **entry)
        return Search(
            attempt, e, curvature, feedback, first, second, promised, regularization.astype(dtype), outcome, history
        )

    def start_of_search(
        self, problem: Problem, states: Any, efforts: Array, reached: Any, penalties: Penalties | None
    ) -> tuple[Expansion, Curvature | None, Feedback]:
        """Expansion and feedback about a trajectory."""
        e, curvature = self.expanded(problem, states, efforts, reached, penalties)
        is_limited = jnp.ones(len(efforts), bool)
        return e, curvature, self.feedback(problem, efforts, e, curvature, jnp.zeros((), efforts.dtype), is_limited)

    def closed_gap(self, eps: Any) -> Float[Array, ""]:
        """The largest gap that counts as closed, in a precision of this rounding."""
        return jnp.maximum(self.gap_tolerance, 200 * eps)

    def expanded(
        self, problem: Problem, states: Any, efforts: Array, reached: Any, penalties: Penalties | None
    ) -> tuple[Expansion, Curvature | None]:
        """The expansion about a trajectory, and its curvature if Hessians are to be exact."""
        e = expand(problem, states, efforts, reached, penalties)
        return e, calc_curvature(problem, states, efforts, e, penalties) if self.hessian == "exact" else None

    def feedback(
        self,
        problem: Problem,
        efforts: Float[Array, "steps nu"],
        e: Expansion,
        curvature: Curvature | None,
        regularization: Float[Array, ""],
        is_limited: Bool[Array, " steps"],
    ) -> Feedback:
        """The feedback of the model with as much of the curvature as leaves it convex, within limits at some steps.

        An effort at its limit has no feedback, without which a rollout strays behind an open gap: there, limits only
        cut off what the rollout asks for (as in Crocoddyl), until a line search fails.
        """
        room = room_of(problem, efforts)
        if room is not None:
            low, high = room
            room = jnp.where(is_limited[:, None], low, -jnp.inf), jnp.where(is_limited[:, None], high, jnp.inf)

        def solved(e: Expansion) -> Feedback:
            if self.parallel:
                return solve_riccati_in_parallel(e, regularization)
            return solve_riccati(e, regularization, room)

        if curvature is None:
            return solved(e)
        parts = jnp.array(PARTS, efforts.dtype)

        def turn(carry: tuple[Array, Feedback]) -> tuple[Array, Feedback]:
            return carry[0] + 1, solved(curvature.added_to(e, parts[carry[0]]))

        def is_open(carry: tuple[Array, Feedback]) -> Array:
            return ~carry[1].is_convex & (carry[0] < len(PARTS))

        nothing = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), jax.eval_shape(solved, e))
        return jax.lax.while_loop(is_open, turn, (jnp.asarray(0), nothing))[1]

    def next_regularization(self, regularization: Array, taken: Array, a: Array) -> Float[Array, ""]:
        """More of it after steps that failed or were short, less after long ones."""
        factor = self.regularization_factor
        lower = jnp.where(a > LENGTH_OF_TRUST, regularization / factor, regularization)
        rises = ~taken | (a <= LENGTH_OF_DOUBT)
        return jnp.maximum(jnp.where(rises, regularization * factor, lower), self.smallest_regularization)


class Attempt(NamedTuple):
    """A trajectory, what each of its steps reaches, and whether the line search took it."""

    states: Any
    efforts: Float[Array, "steps nu"]
    reached: Any
    cost: Float[Array, ""]
    length: Float[Array, ""]
    accepted: Array


class Search(NamedTuple):
    """What iterations carry on: the trajectory, its expansion and feedback, and the decrease that the model expects."""

    attempt: Attempt
    expansion: Expansion
    curvature: Curvature | None  # where Hessians are exact
    feedback: Feedback
    first: Float[Array, ""]
    second: Float[Array, ""]
    promised: Float[Array, ""]  # the decrease expected when the last step had been taken, before regularization grew
    regularization: Float[Array, ""]
    outcome: Array
    history: History


def clipped(problem: Problem, efforts: Float[Array, "steps nu"]) -> Float[Array, "steps nu"]:
    """Efforts within their limits."""
    return efforts if problem.low is None else jnp.clip(efforts, problem.low, problem.high)


def room_of(problem: Problem, efforts: Float[Array, "steps nu"]) -> tuple[Array, Array] | None:
    """How far each effort may fall and rise; None without limits."""
    if problem.low is None:
        return None
    low, high = limits_along(problem, efforts)
    return low - efforts, high - efforts


def gaps_of(e: Expansion) -> Float[Array, "steps_and_end ndx"]:
    """Gaps at all states, that at the start first."""
    return jnp.concatenate([e.gap_at_start[None], e.gaps])


def is_behind_gap(e: Expansion, largest: Float[Array, ""]) -> Bool[Array, " steps"]:
    """Whether a gap between earlier steps is open, so that a rollout arrives elsewhere than planned."""
    opens = (jnp.max(jnp.abs(e.gaps), axis=1) > largest).astype(jnp.int32)
    return jnp.cumsum(opens) - opens > 0


def largest_gap(e: Expansion) -> Float[Array, ""]:
    """Largest entry of all gaps."""
    return jnp.max(jnp.abs(gaps_of(e)))


def largest_violation(problem: Problem, states: Any, efforts: Array) -> Float[Array, ""]:
    """Largest distance of a constraint from its bounds; zero without constraints."""
    distances = violations_along(problem, values_along(problem, states, efforts))
    return (
        jnp.max(jnp.stack([jnp.max(d, initial=0.0) for d in distances])) if distances else jnp.zeros((), efforts.dtype)
    )


def along_gaps(feedback: Feedback, gaps: Float[Array, "steps_and_end ndx"]) -> Float[Array, "steps_and_end ndx"]:
    """V_xx times the gap of each state, as one sum: small products of matrices are library calls, one a state."""
    return jnp.sum(feedback.V_xx * gaps[:, None], axis=2)


def expected_change(e: Expansion, feedback: Feedback) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """First and second order of the model's decrease, a d1 + a² d2 / 2, with the part of the gaps."""
    gaps = gaps_of(e)
    pushed = along_gaps(feedback, gaps)
    first = feedback.first_order - jnp.sum((feedback.V_x + pushed) * gaps)
    return first, -feedback.second_order + jnp.sum(gaps * pushed)


def search_along(
    problem: Problem, s: Search, penalties: Penalties | None, is_first: Array, num_lengths: int
) -> Attempt:
    """Tries lengths 1, 1/2, 1/4, … until the cost falls by a part of what the model expects.

    The first iteration only evaluates the guess, at length 0. Without a convex model nothing is tried.
    """
    e, gaps, gap = s.expansion, gaps_of(s.expansion), largest_gap(s.expansion)
    pushed = along_gaps(s.feedback, gaps)

    def turn(carry: tuple[Attempt, Array]) -> tuple[Attempt, Array]:
        attempt, i = carry
        a = attempt.length
        states, efforts, reached, cost = roll_out(problem, s, a, is_first, penalties)
        moved = jax.vmap(lambda x, y: difference_states(problem.model, x, y))(states, s.attempt.states)
        shift = -jnp.sum(pushed * moved)
        slope, curvature = s.first + shift, s.second - 2.0 * shift
        expected, decrease = a * (slope + 0.5 * a * curvature), e.cost - cost
        descends = (jnp.abs(slope) < SMALLEST_SLOPE) | (decrease > ACCEPTED * expected)
        closes = (gap > 0.0) & (decrease > ACCEPTED_INCREASE * expected)
        accepted = is_first | (jnp.where(expected >= 0.0, descends, closes) & jnp.isfinite(cost))
        return Attempt(states, efforts, reached, cost, jnp.where(accepted, a, 0.5 * a), accepted), i + 1

    length = jnp.where(is_first, 0.0, 1.0).astype(s.first.dtype)
    start = s.attempt._replace(length=length, accepted=jnp.asarray(False))
    count = jnp.where(is_first | s.feedback.is_convex, 0, num_lengths)
    attempt, _ = jax.lax.while_loop(lambda c: ~c[0].accepted & (c[1] < num_lengths), turn, (start, count))
    kept = s.attempt._replace(length=jnp.zeros_like(length), accepted=jnp.asarray(False))
    return jax.tree.map(lambda new, old: jnp.where(attempt.accepted, new, old), attempt, kept)


def roll_out(
    problem: Problem, s: Search, a: Float[Array, ""], is_guess: Array, penalties: Penalties | None
) -> tuple[Any, Float[Array, "steps nu"], Any, Float[Array, ""]]:
    """States and efforts under the feedback, with the part 1 - a of every gap left open; what steps reach, and cost.

    With `is_guess` the trajectory stays as it is, and only what its steps reach is new. Costs of problems with dynamics
    of their own are evaluated with the steps, as both may compute the same, like contact forces. On a CPU the rollout
    is one kernel wherever its steps and costs call no library.
    """
    model, e, planned, feedback = problem.model, s.expansion, s.attempt, s.feedback
    before, following = (jax.tree.map(lambda x, part=part: x[part], planned.states) for part in (np.s_[:-1], np.s_[1:]))
    stages = jax.tree.map(lambda x: x[:-1], problem.stages)
    low, high = (None, None) if problem.low is None else limits_along(problem, planned.efforts)

    def one(x: Any, step: tuple) -> tuple:
        planned, following, u, k, K, gap, stage, low, high, index = step
        u = u - a * k - jnp.sum(K * difference_states(model, planned, x), axis=1)
        if low is not None:
            u = jnp.clip(u, low, high)
        motion, reached = problem.motion_and_next_state(x, u, stage)
        after = move_state(model, reached, (a - 1.0) * gap)
        after = jax.tree.map(lambda new, old: jnp.where(is_guess, old, new), after, following)
        cost = None
        if problem.dynamics is not None:
            cost = value_of(running_terms(problem, x, u, stage, index, at(penalties, index), motion))
        return after, (after, u, reached, cost)

    first = jax.tree.map(lambda x: x[0], planned.states)
    start = move_state(model, first, a * e.gap_at_start)
    start = jax.tree.map(lambda new, old: jnp.where(is_guess, old, new), start, first)
    steps = before, following, planned.efforts, feedback.k, feedback.K, e.gaps, stages, low, high
    run = as_one_kernel(lambda start, steps: jax.lax.scan(one, start, steps)[1])
    after, efforts, reached, costs = run(start, (*steps, jnp.arange(problem.num_steps)))
    states = jax.tree.map(lambda x, rest: jnp.concatenate([x[None], rest]), start, after)
    if costs is None:
        return states, efforts, reached, total_cost(problem, states, efforts, penalties)
    last = terminal_terms(problem, jax.tree.map(lambda x: x[-1], states), at(penalties, -1))
    return states, efforts, reached, jnp.sum(costs) + value_of(last)


def limits_along(problem: Problem, efforts: Float[Array, "steps nu"]) -> tuple[Array, Array]:
    """Limits of every step's efforts."""
    assert problem.low is not None
    assert problem.high is not None
    return jnp.broadcast_to(problem.low, efforts.shape), jnp.broadcast_to(problem.high, efforts.shape)
