"""`fit`: from unknown parameters and logs to a model with error bars."""

import dataclasses
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError, ModelWarning
from mbjax.execution import call_compiled
from mbjax.number_rules import FINITE, checked_numbers
from mbjax.progress import Teller, telling

from .answers import Uncertainty, is_seen, uncertainty_of, unseen_in_words
from .correlated_noise import Scatter, with_correlated_noise
from .fit_result import Fit
from .influence import require_influence
from .log import Log
from .method import Method, MethodWithRows, MethodWithSteps
from .parameters import Parameters, typical_sizes, values_at
from .predictions import correlated_errors
from .problem import AbstractProblem
from .recording import Recording
from .search import Found, Run, Start, evaluated, search
from .solver import DONE, FirstOrder, LevenbergMarquardt
from .system import velocity_labels

Data = Log | Recording
CLEARLY_WORSE = 9.0  # sum of squares in variances of the noise: three deviations
SLOW = 10.0  # friction velocities, below which half a per cent of friction and more depends on its law
EXACT = 1e-9  # rad or m, and their rates: errors of rounding
FEWEST_SLOW = 8  # samples
LARGER = 1.5  # errors of slow samples over those of fast ones


def fit(
    unknown: Parameters,
    logs: Data | Sequence[Data],
    method: Method,
    *,
    solver: LevenbergMarquardt | FirstOrder | None = None,
    held_out: Data | Sequence[Data] = (),
    start: Float[Array, " n"] | None = None,
    progress: bool | None = None,
    unseen: Literal["error", "report"] = "error",
) -> Fit:
    """Fits unknown parameters to logs, with `Predictions` to recordings; the result says what was found, and how well.

    Where the method does not know the noise, it is estimated from what the first fit leaves, channel by channel, and
    the fit goes on with it. `held_out` logs are not fitted; their errors are in the result, by name. A parameter that
    never influences the data is an error that names it, unless `unseen="report"`. A fit that does not converge raises
    nothing: `fit.converged` and `fit.message` say so. `progress` shows a line with the step and its cost; None shows it
    on a terminal and in a notebook.
    """
    require_arguments(unknown, method, unseen)
    with telling("fit", progress) as teller:
        return fitted(unknown, logs, method, solver, held_out, start, unseen, teller)


def fitted(
    unknown: Parameters,
    logs: Data | Sequence[Data],
    method: Method,
    solver: LevenbergMarquardt | FirstOrder | None,
    held_out: Data | Sequence[Data],
    start: Float[Array, " n"] | None,
    unseen: Literal["error", "report"],
    teller: Teller,
) -> Fit:
    """The fit, which tells where it is."""
    logs = as_logs(logs, method)
    held_out = (held_out,) if isinstance(held_out, Log | Recording) else tuple(held_out)
    held_out = as_logs(held_out, method) if held_out else ()
    require_own_names(held_out)
    cleaner = method if isinstance(method, MethodWithRows) and method.can_clean(unknown) else None
    problem = (method if cleaner is None else cleaner.plain).problem(unknown, logs)
    y = problem.initial if start is None else problem.initial.at[: len(unknown)].set(checked_start(unknown, start))
    known = method.known_weights(problem)
    r, J, squares, _ = evaluated(problem, y, np.ones(len(problem.channel_names)) if known is None else known)
    errors = np.sqrt(squares)
    require_finite_start(problem, r, J, errors)
    if unseen == "error":
        require_influence(unknown, J[:, : len(unknown)])
    run = Run(LevenbergMarquardt() if solver is None else solver, problem, [], [])
    found = search(unknown, logs, method, Start(problem, y, errors, known), run, teller)
    return answer(unknown, logs, held_out, method, found, run)


def answer(
    unknown: Parameters,
    logs: tuple[Data, ...],
    held_out: tuple[Data, ...],
    method: Method,
    found: Found,
    run: Run,
) -> Fit:
    """The result: values with standard deviations, correlations, errors by channel, and words."""
    y, problem, n = found.y, found.problem, len(unknown)
    theta = y[:n]
    freedom = max(1, problem.num_data - found.J.shape[1])
    chi = float(found.r @ found.r) / freedom
    whole, scatter = uncertainty_and_scatter(unknown, method, found, 1.0 if found.noise_is_known else chi)
    D = np.asarray(call_compiled(slopes_of_values, unknown, theta), float)
    null = np.linalg.qr(D @ whole.null_space[:n])[0] if whole.null_space.shape[1] else np.zeros((n, 0))
    return Fit(
        unknown=unknown,
        theta=theta,
        extra=np.asarray(y[n:], float),
        covariance=D @ whole.covariance[:n, :n] @ D.T,
        null_space=null,
        covariance_of_theta=whole.covariance[:n, :n],
        null_space_of_theta=whole.null_space[:n],
        unseen=unseen_in_words(null, unknown.names, unknown.units, typical_sizes(unknown)),
        condition_number=whole.condition_number,
        rank=whole.rank,
        errors=dict(zip(problem.channel_names, found.errors, strict=True)),
        held_out_errors={log.name: errors_of(method, unknown, log, theta, found.weights) for log in held_out},
        noise=dict(zip(problem.channel_names, 1.0 / found.weights, strict=True)),
        samples=dict(zip(problem.channel_names, (round(float(x)) for x in scatter.samples), strict=True)),
        effective_samples=dict(zip(problem.channel_names, map(float, scatter.effective), strict=True)),
        advice=(
            *slow_friction(unknown, found, scatter, problem.channel_names),
            *long_steps(unknown, method, found, whole, is_seen(null, typical_sizes(unknown))),
            *noisy_starts(method, found),
            *correlated_errors(problem, y, found.weights),
        ),
        chi_squared=chi,
        num_data=problem.num_data,
        converged=found.message == DONE,
        message=sentence(found.message, run, found.r),
        costs=tuple(run.costs),
        iterates=tuple(run.iterates),
        logs=logs,
        held_out=held_out,
        method=method,
    )


def uncertainty_and_scatter(
    unknown: Parameters, method: Method, found: Found, variance: float
) -> tuple[Uncertainty, Scatter]:
    """Uncertainty of all unknowns, and what the errors are like in time."""
    dtype = np.dtype(found.y.dtype)
    if not isinstance(method, MethodWithRows):
        white = uncertainty_of(found.J, variance, dtype)
        each = found.problem.samples_of_channels
        return white, Scatter(white.covariance, each, each, [])
    white = uncertainty_of(found.J, 1.0, dtype)
    scatter = with_correlated_noise(method, unknown, found, white)
    return dataclasses.replace(white, covariance=scatter.covariance), scatter


def slow_friction(unknown: Parameters, found: Found, scatter: Scatter, names: Sequence[str]) -> tuple[str, ...]:
    """Sentences on joints whose errors are much larger where they hardly move: friction near rest is another there."""
    model = unknown.base.model
    if (
        not scatter.errors
        or "joint_friction" not in unknown.kind_names()
        or any(log.effort_filter is not None for log in found.logs)
    ):
        return ()
    limit = SLOW * float(model.parameters.friction_velocity)
    labels, said = velocity_labels(model), []
    for c, name in enumerate(names):
        parts = []
        for (z, kept), log in zip(scatter.errors, found.logs, strict=True):
            v = np.abs(np.asarray(log.v, float))[:, labels.index(name)]
            parts.append(np.stack([z[:, c] ** 2, v <= limit, kept[:, c] > 0.0]))
        squares, slow, kept = np.concatenate(parts, 1)
        slow, fast = squares[(slow * kept) > 0.0], squares[((1.0 - slow) * kept) > 0.0]
        if len(slow) >= FEWEST_SLOW and len(fast) and slow.mean() > LARGER**2 * fast.mean():
            said.append(
                f"Errors of '{name}' are {np.sqrt(slow.mean() / fast.mean()):.1f} times as large where it moves by "
                f"less than {limit:g} rad/s or m/s: its friction near rest is not the model's. Leave them out by "
                f"Torques(slowest={limit:g}), or fit 'friction_velocity:world' or 'stribeck:{name}'."
            )
    return tuple(said)


def long_steps(
    unknown: Parameters, method: Method, found: Found, whole: Uncertainty, seen: np.ndarray
) -> tuple[str, ...]:
    """A sentence, and a warning, on the numbers that half the step would move by more than their deviations."""
    refined = method.refined(found.problem, found.y) if isinstance(method, MethodWithSteps) else None
    if refined is None:
        return ()
    r, J, _, _ = evaluated(refined, found.y, found.weights)
    if r[-1] ** 2 > found.r[-1] ** 2 + CLEARLY_WORSE:  # what no number can make up for: the log is of these steps
        return ()
    move = np.linalg.lstsq(J, found.r - r, rcond=1e-8)[0][: len(unknown)]
    deviation = np.sqrt(np.maximum(np.diag(whole.covariance)[: len(unknown)], np.finfo(float).tiny))
    ratio = np.where(seen, np.abs(move) / deviation, 0.0)
    worst = int(np.argmax(ratio))
    if ratio[worst] <= 1.0:
        return ()
    others = int(np.sum(ratio > 1.0)) - 1
    words = (
        f"Half the step would move {unknown.names[worst]} by {ratio[worst]:.2g} of its deviations"
        f"{f', and {others} more by more than theirs' if others else ''}: the steps are too long for these error bars. "
        "Fit Trajectories(continuous=True), or give more substeps=."
    )
    warnings.warn(words, ModelWarning, stacklevel=5)
    return (words,)


def noisy_starts(method: Method, found: Found) -> tuple[str, ...]:
    """A sentence where errors grow along windows, as those of starts at noisy states do."""
    growth = method.growth(found.problem, found.y, found.weights) if isinstance(method, MethodWithSteps) else 1.0
    if growth < LARGER or found.errors.max(initial=0.0) < EXACT:
        return ()
    return (
        f"Errors at the ends of windows are {growth:.1f} times those at their starts: the measured states that they "
        "start at are noisy, or the model lacks something. Deviations do not know of it, and numbers may be many of "
        "them off. Use Trajectories(initial='fitted'), or shorter windows.",
    )


def errors_of(method: Method, unknown: Parameters, log: Data, theta: Array, weights: np.ndarray) -> dict[str, float]:
    """Root mean square errors of one log by channel."""
    problem = (method.plain if isinstance(method, MethodWithRows) else method).problem(unknown, (log,))
    y = problem.initial.at[: len(unknown)].set(theta)
    if isinstance(method, MethodWithSteps):
        problem = method.corrected(problem, y)
    squares = evaluated(problem, y, weights)[2]
    return dict(zip(problem.channel_names, np.sqrt(squares), strict=True))


def slopes_of_values(unknown: Parameters, theta: Array) -> Float[Array, "n n"]:
    """Derivatives of values by theta."""
    return jax.jacfwd(lambda theta: values_at(unknown, theta))(theta)


def sentence(message: str, run: Run, r: np.ndarray) -> str:
    """What happened, in one sentence."""
    if message == DONE:
        return f"Converged in {len(run.costs)} steps."
    cost = f"{run.costs[-1]:.4g}" if run.costs else "unknown"
    return f"Not converged: {message or 'no step was taken'}; half the sum of squares is {cost}."


def require_arguments(unknown: Any, method: Any, unseen: str) -> None:
    """Raises `ModelError` for unknowns, a method or a word of another kind, as where arguments are in another order."""
    if not isinstance(unknown, Parameters):
        raise ModelError(f"fit: the first argument must be si.Parameters(model, …), got {type(unknown).__name__}.")
    if not hasattr(method, "problem"):
        came = repr(method) if isinstance(method, str) else type(method).__name__
        raise ModelError(
            f"fit: the method must be si.Torques(), si.Trajectories(horizon=…) or one of your own, got {came}."
        )
    if unseen not in ("error", "report"):
        raise ModelError(f"fit: unseen must be 'error' or 'report', got {unseen!r}.")


def checked_start(unknown: Parameters, start: Any) -> Array:
    """The numbers theta to start from; raises `ModelError` for another shape, or what are no numbers."""
    hint = (
        "They are unconstrained numbers in the order of Parameters.names, such as fit.theta, or "
        "unknown.numbers(model) for the values of a model."
    )
    numbers = checked_numbers("fit", "start", start, FINITE, (len(unknown),), hint=hint)
    return jnp.asarray(numbers, unknown.initial.dtype)


def require_own_names(held_out: tuple[Data, ...]) -> None:
    """Raises `ModelError` where two held-out logs have one name."""
    for name, count in Counter(log.name for log in held_out).items():
        if count > 1:
            raise ModelError(
                f"fit: {count} held-out logs are named '{name}', and their errors are kept by name; give others: "
                "dataclasses.replace(log, name=...)."
            )


def as_logs(logs: Data | Sequence[Data], method: Method) -> tuple[Data, ...]:
    """One log or recording, or several, as a tuple."""
    found = (logs,) if isinstance(logs, Log | Recording) else tuple(logs)
    if not found or not all(isinstance(log, Log | Recording) for log in found):
        raise ModelError(
            "fit: logs must be one si.Log or several, from si.read_log or si.make_log, or recordings from "
            "si.make_recording."
        )
    if isinstance(method, MethodWithRows | MethodWithSteps) and any(isinstance(log, Recording) for log in found):
        raise ModelError(
            f"fit: {type(method).__name__} fits logs of motions, from si.read_log or si.make_log; recordings are "
            "fitted by si.Predictions."
        )
    return found


def require_finite_start(problem: AbstractProblem, r: np.ndarray, J: np.ndarray, at_start: np.ndarray) -> None:
    """Raises `ModelError` where the model at the start gives no finite residuals or derivatives."""
    if np.all(np.isfinite(r)) and np.all(np.isfinite(J)):
        return
    bad = [name for name, x in zip(problem.channel_names, at_start, strict=True) if not np.isfinite(x)]
    what = f"residuals of {', '.join(bad[:6])}" if bad else "derivatives"
    raise ModelError(
        f"fit: {what} are not finite at the start. Shorten the windows, Trajectories(horizon=...), or look at the "
        "model with mbjax.diagnose(unknown.model(unknown.initial), state)."
    )
