"""`fit`: from unknown parameters and logs to a model with error bars."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.execution import call_compiled
from mbjax.progress import Teller, telling

from .answers import uncertainty_of, unseen_in_words
from .fit_result import Fit
from .influence import require_influence
from .log import Log
from .method import Method
from .parameters import Parameters, values_at
from .problem import AbstractProblem
from .solver import DONE, FirstOrder, LevenbergMarquardt, evaluate
from .weights import anchors, as_array, first_weights, needs_guidance, noise_weights

GUIDES = (1.0, 10.0, 100.0, 1000.0)  # how data weigh, stage by stage
GUIDE_STRENGTH = 0.3  # one over the deviation of unknowns from the start, in these stages
PASSES = 5  # of estimating the noise and fitting with it


def fit(
    unknown: Parameters,
    logs: Log | Sequence[Log],
    method: Method,
    *,
    solver: LevenbergMarquardt | FirstOrder | None = None,
    held_out: Log | Sequence[Log] = (),
    start: Float[Array, " n"] | None = None,
    progress: bool | None = None,
    unseen: Literal["error", "report"] = "error",
) -> Fit:
    """Fits unknown parameters to logs; the result says what was found, how well, and what the data cannot tell.

    Where the method does not know the noise, it is estimated from what the first fit leaves, channel by channel, and
    the fit goes on with it. `held_out` logs are not fitted; their errors are in the result. A parameter that never
    influences the data is an error that names it, unless `unseen="report"`. A fit that does not converge raises
    nothing: `fit.converged` and `fit.message` say so. `progress` shows a line with the step and its cost; None shows it
    on a terminal and in a notebook.
    """
    require_arguments(unknown, method)
    with telling("fit", progress) as teller:
        return fitted(unknown, logs, method, solver, held_out, start, unseen, teller)


def fitted(
    unknown: Parameters,
    logs: Log | Sequence[Log],
    method: Method,
    solver: LevenbergMarquardt | FirstOrder | None,
    held_out: Log | Sequence[Log],
    start: Float[Array, " n"] | None,
    unseen: Literal["error", "report"],
    teller: Teller,
) -> Fit:
    """The fit, which tells where it is."""
    logs, held_out = as_logs(logs), as_logs(held_out) if not isinstance(held_out, tuple) or held_out else ()
    problem = method.problem(unknown, logs)
    y = problem.initial if start is None else problem.initial.at[: len(unknown)].set(start)
    known = method.known_weights(problem)
    weights = np.ones(len(problem.channel_names)) if known is None else known
    r, J, squares = evaluated(problem, y, weights)
    at_start = np.sqrt(squares)
    weights = first_weights(at_start) if known is None else known
    require_finite_start(problem, r, J, at_start)
    if unseen == "error":
        require_influence(unknown, J[:, : len(unknown)])
    solver = LevenbergMarquardt() if solver is None else solver
    run = Run(solver, problem, [], [])
    anchor = anchors(unknown, y)
    if needs_guidance(unknown, problem) and isinstance(solver, LevenbergMarquardt):
        y = run.guide(y, first_weights(at_start), teller)
    if known is None:
        y, message = run.loosely().go(y, as_array(weights, y), teller, "first fit")
        weights = noise_weights(np.sqrt(evaluated(problem, y, weights)[2]), at_start)
    for count in range(1 if known is not None else PASSES):
        y, message = run.go(y, as_array(weights, y), teller, f"fit {count + 1}", anchor)
        left = noise_weights(np.sqrt(evaluated(problem, y, weights)[2]), at_start)
        if known is not None or message != DONE or np.all(np.abs(np.log(left / weights)) < 0.05):
            break
        weights = left
    r, J, squares = evaluated(problem, y, weights)
    found = Found(y, r, J, np.sqrt(squares), weights, known is not None, message)
    return answer(unknown, logs, held_out, method, problem, found, run)


@dataclasses.dataclass(frozen=True)
class Found:
    """Where a fit ended: unknowns, canonical rows there, errors by channel, weights, and how it ended."""

    y: Array
    r: np.ndarray
    J: np.ndarray
    errors: np.ndarray
    weights: np.ndarray
    noise_is_known: bool
    message: str


def evaluated(problem: AbstractProblem, y: Array, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Canonical rows and mean squared errors of channels, as NumPy's arrays."""
    r, J, squares = evaluate(problem, y, as_array(weights, y))
    return np.asarray(r, float), np.asarray(J, float), np.asarray(squares, float)


@dataclasses.dataclass
class Run:
    """The iterates of a fit."""

    solver: Any
    problem: AbstractProblem
    costs: list[float]
    iterates: list[np.ndarray]

    def loosely(self) -> "Run":
        """A run that stops where the noise can be told."""
        if not isinstance(self.solver, LevenbergMarquardt):
            return self
        return Run(
            dataclasses.replace(self.solver, rtol=1e-2, atol=1e-2, max_steps=30),
            self.problem,
            self.costs,
            self.iterates,
        )

    def guide(self, y: Array, weights: np.ndarray, teller: Teller) -> Array:
        """Nears the solution in stages: data that weigh more and more against staying near the start.

        Full steps from a start far off can end at inertias near those of a rod or a sheet, from where the way back is
        long; with the stages directions that the data hardly see move late.
        """
        share = weights / np.sqrt(self.problem.num_data)  # errors at the start have a sum of squares of one
        held = jnp.full_like(y, GUIDE_STRENGTH)
        for factor in GUIDES:
            y, _ = self.loosely().go(y, as_array(0.01 * factor * share, y), teller, f"guide {factor:g}", held)
        return y

    def go(
        self, y: Array, weights: Array, teller: Teller, title: str, anchor: Array | float = 0.0
    ) -> tuple[Array, str]:
        """Iterates until the solver is done; returns the unknowns and how it ended."""
        message = ""
        strength = jnp.zeros_like(y) + anchor
        for count, (y_next, cost, done, words) in enumerate(self.solver.steps(self.problem, y, weights, strength)):
            if not math.isfinite(float(cost)):
                message = words or "residuals are not finite"
                break
            y, message = y_next, words
            self.costs.append(float(cost))
            self.iterates.append(np.asarray(y[: self.problem.num_parameters], float))
            teller.say(f"{title}, step {count}, cost {float(cost):.6g}")
            if done:
                break
        return y, message


def answer(
    unknown: Parameters,
    logs: tuple[Log, ...],
    held_out: tuple[Log, ...],
    method: Method,
    problem: AbstractProblem,
    found: Found,
    run: Run,
) -> Fit:
    """The result: values with standard deviations, correlations, errors by channel, and words."""
    y, r, J, weights, message = found.y, found.r, found.J, found.weights, found.message
    theta = y[: len(unknown)]
    freedom = max(1, problem.num_data - J.shape[1])
    chi = float(r @ r) / freedom
    whole = uncertainty_of(J, 1.0 if found.noise_is_known else chi, np.dtype(theta.dtype))
    D = np.asarray(call_compiled(slopes_of_values, unknown, theta), float)
    n = len(unknown)
    null = np.linalg.qr(D @ whole.null_space[:n])[0] if whole.null_space.shape[1] else np.zeros((n, 0))
    covariance = D @ whole.covariance[:n, :n] @ D.T
    errors_held_out = {}
    for log in held_out:
        other = method.problem(unknown, (log,))
        errors = np.sqrt(evaluated(other, other.initial.at[:n].set(theta), weights)[2])
        errors_held_out[log.name] = dict(zip(other.channel_names, errors, strict=True))
    return Fit(
        unknown=unknown,
        theta=theta,
        extra=np.asarray(y[n:], float),
        covariance=covariance,
        null_space=null,
        unseen=unseen_in_words(null, unknown.names, unknown.units, typical_sizes(unknown)),
        condition_number=whole.condition_number,
        rank=whole.rank,
        errors=dict(zip(problem.channel_names, found.errors, strict=True)),
        held_out_errors=errors_held_out,
        noise=dict(zip(problem.channel_names, 1.0 / weights, strict=True)),
        chi_squared=chi,
        num_data=problem.num_data,
        converged=message == DONE,
        message=sentence(message, run, r),
        costs=tuple(run.costs),
        iterates=tuple(run.iterates),
        logs=logs,
        held_out=held_out,
        method=method,
    )


def slopes_of_values(unknown: Parameters, theta: Array) -> Float[Array, "n n"]:
    """Derivatives of values by theta."""
    return jax.jacfwd(lambda theta: values_at(unknown, theta))(theta)


def typical_sizes(unknown: Parameters) -> np.ndarray:
    """The largest starting value of each parameter's element, or its kind's typical change if that is larger."""
    values = np.abs(np.asarray(unknown.values(unknown.initial), float))
    largest: dict[str, float] = {}
    elements = [entry.element for entry in unknown.unknowns]
    for element, value in zip(elements, values, strict=True):
        largest[element] = max(largest.get(element, 0.0), value)
    scales = [0.0 if kind.only_physical else kind.scale for kind in (unknown.kinds[u.kind] for u in unknown.unknowns)]
    return np.maximum([max(largest[e], s) for e, s in zip(elements, scales, strict=True)], 1e-9)


def sentence(message: str, run: Run, r: np.ndarray) -> str:
    """What happened, in one sentence."""
    if message == DONE:
        return f"Converged in {len(run.costs)} steps."
    cost = f"{run.costs[-1]:.4g}" if run.costs else "unknown"
    return f"Not converged: {message or 'no step was taken'}; half the sum of squares is {cost}."


def require_arguments(unknown: Any, method: Any) -> None:
    """Raises `ModelError` for unknowns or a method of another kind, as where arguments are in another order."""
    if not isinstance(unknown, Parameters):
        raise ModelError(f"fit: the first argument must be si.Parameters(model, …), got {type(unknown).__name__}.")
    if not hasattr(method, "problem"):
        came = repr(method) if isinstance(method, str) else type(method).__name__
        raise ModelError(
            f"fit: the method must be si.Torques(), si.Trajectories(horizon=…) or one of your own, got {came}."
        )


def as_logs(logs: Log | Sequence[Log]) -> tuple[Log, ...]:
    """One log or several as a tuple."""
    found = (logs,) if isinstance(logs, Log) else tuple(logs)
    if not found or not all(isinstance(log, Log) for log in found):
        raise ModelError("fit: logs must be one si.Log or several, from si.read_log or si.make_log.")
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
