"""The search of a fit: passes of estimating the noise, cleaning the logs of outliers and solving, until both stay."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from mbjax.progress import Teller

from .method import Method, MethodWithRows, MethodWithSteps
from .parameters import Parameters
from .problem import AbstractProblem
from .solver import DONE, LevenbergMarquardt, evaluate
from .weights import anchors, as_array, first_weights, needs_guidance, noise_weights

GUIDES = (1.0, 10.0, 100.0, 1000.0)  # how data weigh, stage by stage
GUIDE_STRENGTH = 0.3  # one over the deviation of unknowns from the start, in these stages
PASSES = 5  # of estimating the noise and fitting with it
CORRECTIONS = 2  # of what steps lack of the continuous motion, after the first; each leaves a few per cent of the last
ROBUST_PASSES = 30  # of cleaning as well
SETTLED_EFFORTS = 1e-3  # change of cleaned efforts from pass to pass, in standard deviations


@dataclasses.dataclass(frozen=True)
class Found:
    """Where a search ended: unknowns, canonical rows there, errors by channel, weights, and how it ended.

    `logs` are those whose sum of squares has its minimum there: cleaned ones for a robust loss, of whose score
    `score_slope` is the mean slope by channel.
    """

    y: Array
    r: np.ndarray
    J: np.ndarray
    errors: np.ndarray
    weights: np.ndarray
    noise_is_known: bool
    message: str
    problem: AbstractProblem
    logs: tuple[Any, ...]
    score_slope: np.ndarray


@dataclasses.dataclass(frozen=True)
class Start:
    """Where a search starts: the problem, unknowns, errors by channel there, and weights if the noise is known."""

    problem: AbstractProblem
    y: Array
    errors: np.ndarray
    known_weights: np.ndarray | None


def search(
    unknown: Parameters, logs: tuple[Any, ...], method: Method, start: Start, run: "Run", teller: Teller
) -> Found:
    """Solves, with unknown noise estimated from what is left, and outliers moved to where they may be."""
    problem, y, at_start, known = start.problem, start.y, start.errors, start.known_weights
    weights = first_weights(at_start) if known is None else known
    anchor = anchors(unknown, y)
    cleaner = method if isinstance(method, MethodWithRows) and method.can_clean(unknown) else None
    clean, slope = logs, np.ones(len(at_start))
    if needs_guidance(unknown, problem) and isinstance(run.solver, LevenbergMarquardt):
        y = run.guide(y, first_weights(at_start), teller)
    if known is None or cleaner is not None:
        y, message = run.loosely().go(y, as_array(weights, y), teller, "first fit")
    if cleaner is not None:
        clean, slope = cleaner.cleaned(unknown, y[: len(unknown)], logs)
        run.problem = cleaner.plain.problem(unknown, clean)
    stepper = method if isinstance(method, MethodWithSteps) and method.continuous else None
    if stepper is not None:
        run.problem = stepper.corrected(problem, y)
    if known is None:
        weights = noise_weights(noise_at(run.problem, y, weights), at_start)
    for count in range(ROBUST_PASSES if cleaner is not None else PASSES):
        y, message = run.go(y, as_array(weights, y), teller, f"fit {count + 1}", anchor)
        left = weights if known is not None else noise_weights(noise_at(run.problem, y, weights), at_start)
        before = clean
        if cleaner is not None:
            clean, slope = cleaner.cleaned(unknown, y[: len(unknown)], logs)
        settled = bool(np.all(np.abs(np.log(left / weights)) < 0.05))
        settled = settled and largest_change(before, clean, left) < SETTLED_EFFORTS
        if message != DONE or (settled and (stepper is None or count >= CORRECTIONS)):
            break
        weights = left
        if stepper is not None:
            run.problem = stepper.corrected(problem, y)
        if cleaner is not None:
            run.problem = cleaner.plain.problem(unknown, clean)
    r, J, _, _ = evaluated(run.problem, y, weights)
    errors = evaluated(run.problem if cleaner is None else problem, y, weights)[2]
    return Found(y, r, J, np.sqrt(errors), weights, known is not None, message, run.problem, clean, slope)


def noise_at(problem: AbstractProblem, y: Array, weights: np.ndarray) -> np.ndarray:
    """Noise of the channels as errors at y tell it."""
    return np.sqrt(evaluated(problem, y, weights)[3])


def largest_change(before: Sequence[Any], after: Sequence[Any], weights: np.ndarray) -> float:
    """Root mean square change of efforts, in standard deviations, of the channel where it is largest."""
    if before is after:
        return 0.0
    steps = sum(len(log) for log in after)
    squares = sum(np.sum(np.asarray(b.effort - a.effort, float) ** 2, 0) for b, a in zip(before, after, strict=True))
    return float(np.sqrt(np.max(squares / steps)) * np.max(weights))


def evaluated(problem: AbstractProblem, y: Array, weights: np.ndarray) -> tuple[np.ndarray, ...]:
    """Canonical rows, mean squared errors of channels and squares of their noise, as NumPy's arrays."""
    r, J, channels = evaluate(problem, y, as_array(weights, y))
    return tuple(np.asarray(x, float) for x in (r, J, channels.squares, channels.noise))


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
