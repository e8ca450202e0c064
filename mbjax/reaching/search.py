"""Levenberg–Marquardt within limits, from a guess and then from other starts, as a state that advances step by step.

    minimize 1/2 Σ (w r(q))²   subject to   lower <= h(q) <= upper,   q within its limits

Limits are held exactly: coordinates at a limit that the step would leave through it are fixed, and the step ends at the
limits (Bertsekas' projected Newton method). Hard rows are in an augmented Lagrangian (Nocedal & Wright, chapter 17),
whose multipliers change when its minimum is near. The damping is proportional to the residual (Sugihara 2011), so that
steps become Newton's as the goal is reached, times a factor that follows the success of steps.

Everything is one state, so that a start needs no program of its own, and so that a lane of a batch that is done takes
the next task (`lanes.py`).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from mbjax.linear_algebra import eliminate_positive_definite
from mbjax.model import locked_velocities

from .tangent import drawn_start, limits_in_tangent, move
from .task import Evaluation, Task, evaluate

LEAST_DAMPING, FIRST_DAMPING, MOST_DAMPING = 1e-8, 1.0, 1e6
FIRST_PENALTY, MOST_PENALTY = 1e2, 1e6
SOLVED = 0.02  # the gradient relative to its parts, below which multipliers change
STALLED = 3  # steps without progress after which they change as well
DOWN = 0.5  # factor of the damping after a step that lowers the merit
NUDGE = 0.2  # rad or m, from side to side: an escape where no coordinate is at a limit
PASSES = 2  # of a step: coordinates that come to a limit are fixed between two
PATIENCE = 4  # steps that lower the merit by less than a part in a thousand, before a start counts as stuck
CLOSING_PATIENCE = 30  # the same from the best start to the last digit, where the gradient is rounding alone
ROUNDING = 64.0  # of the gradient, in rounding units of its parts, and of hard rows, in those of 1 m or rad
LONGEST_STEP = 3.0  # rad or m, of any coordinate


class Settings(NamedTuple):
    """Numbers that a user chooses; none needs a new program."""

    tolerance: Float[Array, ""]  # of residuals without weights, and of hard rows
    step_tolerance: Float[Array, ""]
    max_iterations: Int[Array, ""]  # of one start
    starts: Int[Array, ""]
    escapes: Int[Array, ""]  # of one start, from a minimum that does not reach the goals
    draw: Float[Array, " nv"]  # numbers in [0, 1) that all starts are drawn from


class Search(NamedTuple):
    """State between two steps."""

    q: Float[Array, " nq"]
    rows: Evaluation
    multipliers: Float[Array, " h"]
    penalty: Float[Array, ""]
    damping: Float[Array, ""]
    violation: Float[Array, ""]  # of hard rows when the multipliers last changed
    unmet: Int[Array, ""]  # changes of multipliers, one after another, that did not halve the violation
    merit: Float[Array, ""]
    trial: Float[Array, " nq"]
    is_new: Bool[Array, ""]  # the trial is a start, taken whatever its merit
    is_taken: Bool[Array, ""]  # whether the last trial became q
    stalled: Int[Array, ""]  # steps without progress
    iterations: Int[Array, ""]  # of this start
    total: Int[Array, ""]
    start: Int[Array, ""]
    escapes: Int[Array, ""]  # of this start
    best_q: Float[Array, " nq"]
    best_score: Float[Array, ""]
    best_start: Int[Array, ""]
    is_settled: Bool[Array, ""]  # the start ended at a minimum rather than at max_iterations
    step: Float[Array, " nv"]  # from q to the trial
    curvature: Float[Array, "nv nv"]  # of residuals, from how their slopes changed along steps
    is_closing: Bool[Array, ""]  # no start is left: from the best one to the last digit
    is_done: Bool[Array, ""]


def begin(task: Task, guess: Float[Array, " nq"]) -> Search:
    """The state before the first evaluation."""
    shapes = jax.eval_shape(lambda: evaluate(task, guess))
    rows = Evaluation(*(jnp.zeros(x.shape, x.dtype) for x in shapes))
    zero, count = jnp.zeros((), guess.dtype), jnp.zeros((), jnp.int32)
    still = jnp.zeros(task.model.num_velocities, guess.dtype)
    q = move(task.model, jnp.clip(guess, *task.limits), still)  # which makes quaternions unit
    return Search(
        q=q,
        rows=rows,
        multipliers=jnp.zeros_like(rows.hard),
        penalty=zero + FIRST_PENALTY,
        damping=zero + FIRST_DAMPING,
        violation=zero + jnp.inf,
        unmet=count,
        merit=zero + jnp.inf,
        trial=q,
        is_new=jnp.array(True),
        is_taken=jnp.array(True),
        stalled=count,
        iterations=count,
        total=count,
        start=count,
        escapes=count,
        best_q=q,
        best_score=zero + jnp.inf,
        best_start=count,
        is_settled=jnp.array(False),
        step=still,
        curvature=jnp.zeros((task.model.num_velocities,) * 2, q.dtype),
        is_closing=jnp.array(False),
        is_done=jnp.array(False),
    )


def advance(task: Task, settings: Settings, guess: Float[Array, " nq"], search: Search) -> Search:
    """Evaluates the trial, takes or refuses it, and proposes the next."""
    rows = evaluate(task, search.trial)
    taken = with_trial(search, rows)
    updated = with_multipliers(task, taken) if task.has_hard_rows else taken
    proposed, is_short = with_proposal(task, settings, updated)
    return with_next_start(task, settings, guess, proposed, is_short)


def with_trial(search: Search, rows: Evaluation) -> Search:
    """Takes the trial where it lowers the merit, and changes the damping by how much it does."""
    merit = merit_of(rows, search.multipliers, search.penalty)
    eps = float(jnp.finfo(merit.dtype).eps)
    most = search.merit * jnp.where(search.is_closing, 1.0 + 16.0 * eps, 1.0)
    is_taken = search.is_new | (merit < most)
    is_little = ~search.is_new & ~(merit < 0.999 * search.merit)
    damping = jnp.where(is_taken, DOWN * search.damping, 8.0 * search.damping)
    damping = jnp.where(search.is_new, FIRST_DAMPING, jnp.clip(damping, LEAST_DAMPING, MOST_DAMPING))
    return search._replace(
        q=jnp.where(is_taken, search.trial, search.q),
        rows=Evaluation(*(jnp.where(is_taken, new, old) for new, old in zip(rows, search.rows, strict=True))),
        merit=jnp.where(is_taken, jnp.where(jnp.isfinite(merit), merit, jnp.inf), search.merit),
        damping=damping,
        is_taken=is_taken,
        stalled=jnp.where(search.is_new, 0, jnp.where(is_little, search.stalled + 1, 0)),
        iterations=search.iterations + 1,
        total=search.total + 1,
        curvature=jnp.where(search.is_new, 0.0, jnp.where(is_taken, updated_curvature(search, rows), search.curvature)),
    )


def updated_curvature(search: Search, rows: Evaluation) -> Float[Array, "nv nv"]:
    """Σ r ∇²r after a step, by the secant update of NL2SOL (Dennis, Gay and Welsch 1981)."""
    old, d, S = search.rows, search.step, search.curvature
    soft = rows.weight * rows.weight * rows.value
    hard = search.penalty * excess_of(rows, search.multipliers, search.penalty)
    bent = jnp.sum((rows.J - old.J) * soft[:, None], 0) + jnp.sum((rows.G - old.G) * hard[:, None], 0)
    y = gradient_of(rows, search.multipliers, search.penalty) - gradient_of(old, search.multipliers, search.penalty)
    along, Sd = jnp.sum(y * d), jnp.sum(S * d[None], 1)
    is_sound = along > 0.0
    one_over = 1.0 / jnp.where(is_sound, along, 1.0)
    dSd = jnp.sum(d * Sd)
    size = jnp.where(dSd != 0.0, jnp.abs(jnp.sum(d * bent)) / jnp.where(dSd != 0.0, jnp.abs(dSd), 1.0), 1.0)
    size = jnp.minimum(size, 1.0)
    miss = bent - size * Sd
    new = size * S + (miss[:, None] * y[None] + y[:, None] * miss[None]) * one_over
    new = new - jnp.sum(miss * d) * one_over * one_over * y[:, None] * y[None]
    return jnp.where(is_sound & jnp.isfinite(jnp.sum(new)), new, S)


def merit_of(rows: Evaluation, multipliers: Array, penalty: Array) -> Float[Array, ""]:
    """Augmented Lagrangian, without its constant."""
    soft = rows.weight * rows.value
    excess = excess_of(rows, multipliers, penalty)
    return 0.5 * jnp.sum(soft * soft) + 0.5 * penalty * jnp.sum(excess * excess)


def excess_of(rows: Evaluation, multipliers: Array, penalty: Array) -> Float[Array, " h"]:
    """How far h + y / μ is from its bounds."""
    shifted = rows.hard + multipliers / penalty
    return shifted - jnp.clip(shifted, rows.lower, rows.upper)


def violation_of(rows: Evaluation) -> Float[Array, ""]:
    """Largest distance of a hard row from its bounds."""
    return jnp.max(jnp.abs(rows.hard - jnp.clip(rows.hard, rows.lower, rows.upper)), initial=0.0)


def with_multipliers(task: Task, search: Search) -> Search:
    """Changes the multipliers near the minimum for the present ones; raises the penalty if that did too little."""
    violation = violation_of(search.rows)
    soft, hard = gradient_parts(search.rows, search.multipliers, search.penalty)
    is_free = free_coordinates(task, search.q, soft + hard)
    whole, parts = (jnp.sum(jnp.where(is_free, x * x, 0.0)) for x in (soft + hard, jnp.abs(soft) + jnp.abs(hard)))
    is_solved = (whole <= SOLVED**2 * parts) | (search.stalled >= STALLED)
    is_time = is_solved & search.is_taken & ~search.is_new
    raised = jnp.minimum(10.0 * search.penalty, MOST_PENALTY)
    is_less = violation <= 0.5 * search.violation
    excess = excess_of(search.rows, search.multipliers, search.penalty)
    multipliers = jnp.where(is_time, search.penalty * excess, search.multipliers)
    penalty = jnp.where(is_time & (violation > 0.25 * search.violation), raised, search.penalty)
    is_restart = search.is_new
    multipliers = jnp.where(is_restart, 0.0, multipliers)
    penalty = jnp.where(is_restart, FIRST_PENALTY, penalty)
    return search._replace(
        multipliers=multipliers,
        penalty=penalty,
        violation=jnp.where(is_restart, jnp.inf, jnp.where(is_time, violation, search.violation)),
        unmet=jnp.where(is_restart, 0, jnp.where(is_time, jnp.where(is_less, 0, search.unmet + 1), search.unmet)),
        merit=merit_of(search.rows, multipliers, penalty),
    )


def gradient_of(rows: Evaluation, multipliers: Array, penalty: Array) -> Float[Array, " nv"]:
    """Gradient of the augmented Lagrangian along tangent coordinates."""
    soft, hard = gradient_parts(rows, multipliers, penalty)
    return soft + hard


def gradient_parts(rows: Evaluation, multipliers: Array, penalty: Array) -> tuple[Array, Array]:
    """Gradient of the goals, and of the hard rows' part."""
    soft = rows.weight * rows.weight * rows.value
    hard = penalty * excess_of(rows, multipliers, penalty)
    return jnp.sum(rows.J * soft[:, None], 0), jnp.sum(rows.G * hard[:, None], 0)


def free_coordinates(task: Task, q: Array, gradient: Array) -> Bool[Array, " nv"]:
    """Coordinates that are neither locked nor at a limit that the descent would leave through."""
    low, high = limits_in_tangent(task.model, task.limits, q)
    is_fixed = ((low >= 0.0) & (gradient >= 0.0)) | ((high <= 0.0) & (gradient <= 0.0))
    return ~(is_fixed | locked_velocities(task.model))


def with_proposal(task: Task, settings: Settings, search: Search) -> tuple[Search, Bool[Array, ""]]:
    """The next trial by a damped Gauss–Newton step, and whether it would be short."""
    rows, model = search.rows, task.model
    gradient = gradient_of(rows, search.multipliers, search.penalty)
    is_free = free_coordinates(task, search.q, gradient)
    free = jnp.where(is_free, 1.0, 0.0).astype(search.q.dtype)
    J = rows.J * rows.weight[:, None] * free
    H = gram_matrix(J)
    if task.has_hard_rows:
        is_active = excess_of(rows, search.multipliers, search.penalty) != 0.0
        G = jnp.where(is_active[:, None], rows.G, 0.0) * free
        H = H + search.penalty * gram_matrix(G)
    nv = model.num_velocities
    eye = jnp.eye(nv, dtype=H.dtype)
    size = jnp.max(jnp.where(eye > 0.0, H, 0.0))
    eps = float(jnp.finfo(H.dtype).eps)
    soft = rows.weight * rows.value
    scale = 2.0 * search.merit if task.has_hard_rows else jnp.sum(soft * soft)
    damping = search.damping * jnp.minimum(scale, size) + 8.0 * eps * size
    H = H + jnp.where(search.is_closing, search.curvature, 0.0)
    damping = jnp.where(damping > 0.0, damping, 1.0)
    low, high = limits_in_tangent(model, task.limits, search.q)
    d = step_within(H + eye * damping, gradient, is_free, low, high, settings)
    trial = jnp.clip(move(model, search.q, d), *task.limits)
    is_short = jnp.max(jnp.abs(d), initial=0.0) <= settings.step_tolerance
    return search._replace(trial=trial, step=d, is_new=jnp.array(False)), is_short


def gram_matrix(J: Float[Array, "m nv"]) -> Float[Array, "nv nv"]:
    """Jᵀ J, row by row, as part of a kernel."""

    def add(k: Array, H: Array) -> Array:
        row = lax.dynamic_index_in_dim(J, k, 0, False)
        return H + row[:, None] * row[None]

    if J.shape[0] == 0:
        return jnp.zeros((J.shape[1],) * 2, J.dtype)
    return lax.fori_loop(0, J.shape[0], add, jnp.zeros((J.shape[1],) * 2, J.dtype))


def step_within(
    H: Array, gradient: Array, is_free: Array, low: Array, high: Array, settings: Settings
) -> Float[Array, " nv"]:
    """Minimum of the quadratic model on the free coordinates; those that come to a limit stay there, the rest again."""
    eye = jnp.eye(H.shape[0], dtype=H.dtype)
    eps = float(jnp.finfo(H.dtype).eps)

    def solved(_: Array, carry: tuple) -> tuple:
        d, is_free = carry
        is_open = is_free[:, None] & is_free[None]
        fixed = jnp.where(is_free, 0.0, d)
        right = -gradient - jnp.sum(H * fixed[None], 1)
        A = jnp.where(is_open, H, eye * jnp.max(H * eye))
        free = eliminate_positive_definite(A, jnp.where(is_free, right, 0.0))
        d = jnp.where(is_free, free, fixed)
        longest = jnp.max(jnp.abs(d), initial=0.0)
        d = jnp.where(jnp.isfinite(longest), d * jnp.minimum(1.0, LONGEST_STEP / jnp.maximum(longest, eps)), 0.0)
        clipped = jnp.clip(d, low, high)
        return clipped, is_free & (clipped == d)

    return lax.fori_loop(0, PASSES, solved, (jnp.zeros_like(gradient), is_free))[0]


def with_next_start(task: Task, settings: Settings, guess: Array, search: Search, is_short: Bool[Array, ""]) -> Search:
    """Ends a start that reached the goals, or that comes no nearer; and the search, with the last start."""
    rows, tolerance = search.rows, settings.tolerance
    violation = violation_of(rows)
    left = jnp.max(jnp.where(rows.weight != 0.0, jnp.abs(rows.value), 0.0), initial=0.0)
    is_reached = (left <= tolerance) & (violation <= tolerance)
    patience = jnp.where(search.is_closing, CLOSING_PATIENCE, PATIENCE)
    is_unmet = (violation > tolerance) & (search.unmet >= patience)
    is_stalled = (search.stalled >= patience) & (~search.is_closing | is_flat(task, search))
    is_stuck = ((is_short | is_stalled) & (violation <= tolerance)) | is_unmet
    ends = is_reached | is_stuck | (search.iterations >= settings.max_iterations) | ~jnp.isfinite(search.merit)
    soft = rows.weight * rows.value
    score = 0.5 * jnp.sum(soft * soft) + 1e6 * jnp.maximum(violation - tolerance, 0.0)
    score = jnp.where(jnp.isfinite(score), score, jnp.inf)
    is_searching = ends & ~search.is_closing
    is_best = is_searching & (score < search.best_score)
    best_q = jnp.where(is_best, search.q, search.best_q)
    best_start = jnp.where(is_best, search.start, search.best_start)
    escape, can_escape = escape_from(task, settings, search.q)
    escapes = is_searching & ~is_reached & can_escape & (search.escapes < settings.escapes)
    is_last = search.start + 1 >= settings.starts
    starts_anew = is_searching & ~is_reached & ~escapes & ~is_last
    closes = is_searching & ~is_reached & ~escapes & is_last
    goes_back = closes & ~is_best
    start = search.start + jnp.where(starts_anew, 1, 0).astype(jnp.int32)
    trial = jnp.where(starts_anew, start_of(task, settings, guess, start), search.trial)
    trial = jnp.where(escapes, escape, trial)
    return search._replace(
        trial=jnp.where(goes_back, best_q, trial),
        is_new=starts_anew | goes_back | escapes,
        is_closing=search.is_closing | closes,
        is_settled=is_reached | is_stuck,
        is_done=search.is_done | is_reached | (ends & search.is_closing),
        start=start,
        escapes=jnp.where(starts_anew, 0, search.escapes + jnp.where(escapes, 1, 0)).astype(jnp.int32),
        iterations=jnp.where(starts_anew | escapes | closes, 0, search.iterations),
        best_q=best_q,
        best_score=jnp.where(is_best, score, search.best_score),
        best_start=best_start,
    )


def is_flat(task: Task, search: Search) -> Bool[Array, ""]:
    """Whether the gradient along free coordinates is no more than the rounding of its parts and of the hard rows.

    How little the merit changes says nothing: far from its goals, it is large wherever q is.
    """
    rows = search.rows
    soft = rows.weight * rows.weight * rows.value
    hard = search.penalty * excess_of(rows, search.multipliers, search.penalty)
    parts = jnp.sum(jnp.abs(rows.J * soft[:, None]), 0) + jnp.sum(jnp.abs(rows.G * hard[:, None]), 0)
    rounding = ROUNDING * float(jnp.finfo(parts.dtype).eps)
    left = search.penalty * jnp.minimum(violation_of(rows), rounding)
    of_rows = left * jnp.max(jnp.sum(jnp.abs(rows.G), 0), initial=0.0)
    gradient = gradient_of(rows, search.multipliers, search.penalty)
    slope = jnp.where(free_coordinates(task, search.q, gradient), jnp.abs(gradient), 0.0)
    return jnp.max(slope, initial=0.0) <= rounding * jnp.max(parts, initial=0.0) + of_rows


def escape_from(task: Task, settings: Settings, q: Float[Array, " nq"]) -> tuple[Array, Bool[Array, ""]]:
    """Another place to go on from, after a minimum at q, and whether it is another.

    Coordinates at a limit go to the middle of their range; most minima are due to them. Where none is, all move a
    little, off a singular point where no direction lowers the merit.
    """
    low, high = limits_in_tangent(task.model, task.limits, q)
    is_open = ~locked_velocities(task.model) & (high > low)
    is_held = ((low >= 0.0) | (high <= 0.0)) & is_open & jnp.isfinite(low) & jnp.isfinite(high)
    to_middle = jnp.where(is_held, 0.5 * (jnp.where(is_held, low, 0.0) + jnp.where(is_held, high, 0.0)), 0.0)
    nudge = jnp.where(is_open, NUDGE * (fractions(settings.draw, jnp.ones((), q.dtype)) - 0.5), 0.0)
    moved = move(task.model, q, jnp.where(jnp.any(is_held), to_middle, nudge))
    return jnp.clip(moved, *task.limits), jnp.any(is_open)


def start_of(task: Task, settings: Settings, guess: Array, start: Int[Array, ""]) -> Float[Array, " nq"]:
    """The start of this number, drawn within limits."""
    return drawn_start(task.model, task.limits, guess, fractions(settings.draw, start.astype(guess.dtype)))


def fractions(draw: Float[Array, " nv"], turn: Float[Array, ""]) -> Float[Array, " nv"]:
    """Numbers in [0, 1) that fill the cube evenly, turn by turn: Kronecker's sequence with Roberts' numbers."""
    size = draw.shape[0]
    root = 2.0
    for _ in range(60):
        root = (1.0 + root) ** (1.0 / (size + 1))
    steps = jnp.asarray([root ** -(k + 1) for k in range(size)], draw.dtype)
    place = draw + steps * turn
    return place - jnp.floor(place)


def frozen_if_done(search: Search, new: Search) -> Search:
    """The search itself where it is done."""
    return jax.tree.map(lambda old, new: jnp.where(search.is_done, old, new), search, new)


def run(task: Task, settings: Settings, guess: Float[Array, " nq"]) -> Search:
    """One task to its end."""
    return lax.while_loop(
        lambda search: ~search.is_done, lambda search: advance(task, settings, guess, search), begin(task, guess)
    )


class Found(NamedTuple):
    """What a search ends with."""

    q: Float[Array, " nq"]
    rows: Evaluation
    multipliers: Float[Array, " h"]
    is_settled: Bool[Array, ""]
    iterations: Int[Array, ""]  # of all starts
    start: Int[Array, ""]


def found_by(search: Search) -> Found:
    """The end of a search."""
    multipliers = search.penalty * excess_of(search.rows, search.multipliers, search.penalty)
    return Found(search.q, search.rows, multipliers, search.is_settled, search.total, search.start)
