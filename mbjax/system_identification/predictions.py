"""Fits of signals of any kind: those that a function of yours predicts from the model, less the recorded ones."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.execution import call_compiled

from .losses import Loss, as_loss, noise_square
from .parameters import Parameters
from .problem import AbstractProblem, Channels, Evaluated, Rows, canonical_rows
from .recording import Recording
from .solver import evaluate

CORRELATED = 0.2  # of errors from sample to sample, above which it is said
CLEAR = 4.0  # standard deviations of the correlation of independent errors
EXACT = 1e-3  # errors in standard deviations of the noise, below which they are rounding
Predict = Callable[..., Float[Array, "steps channels *numbers"]]


@dataclasses.dataclass(frozen=True)
class Predictions:
    """Fits recordings: what `predict(model, recording)` returns less `recording.values`, of which it has the shape.

    `predict` is a function of JAX that simulates the model as it likes, deformable bodies included, and returns what
    would be measured: positions of nodes, points in a picture, forces. `noise` is the standard deviation of all
    channels, or one for each; None estimates those of each channel from what is left, and fits again. Steps and
    whatever else `predict` takes for granted count as right: what they are wrong by is in no deviation. Errors count as
    independent of each other. Where they are correlated in time, deviations are too small, and a fit says so.
    """

    predict: Predict
    noise: float | Sequence[float] | None = None
    loss: "str | Loss" = "least_squares"

    def problem(self, unknown: Parameters, logs: Sequence[Any]) -> "PredictionProblem":
        """The least-squares problem of these recordings."""
        dtype = unknown.initial.dtype
        recordings = tuple(  # without their names, so that a program serves all recordings of a length
            dataclasses.replace(recording, values=recording.values.astype(dtype), name="")
            for recording in as_recordings(logs)
        )
        return PredictionProblem(
            unknown.initial, len(unknown), unknown, recordings, self.predict, as_loss(self.loss), recordings[0].names
        )

    def known_weights(self, problem: AbstractProblem) -> Float[np.ndarray, " channels"] | None:
        """One over the noises that were given."""
        if self.noise is None:
            return None
        count = len(problem.channel_names)
        noise = np.asarray(self.noise, float)
        if noise.shape not in ((), (count,)) or not np.all((noise > 0.0) & np.isfinite(noise)):
            raise ModelError(
                f"Predictions(noise={self.noise}): it must be a standard deviation > 0 of all channels, or one for "
                f"each of the {count}."
            )
        return 1.0 / np.broadcast_to(noise, (count,))

    def prediction(self, unknown: Parameters, theta: Array, log: Recording) -> tuple[tuple[str, ...], Array, Array]:
        """Names of signals, and measured and predicted ones of one recording, for plots."""
        problem = self.problem(unknown, (log,))
        predicted = call_compiled(predicted_values, problem, theta)
        count = log.values[0, 0].size
        names = log.names if count == 1 else tuple(f"{name}, {k}" for name in log.names for k in range(count))
        return names, log.values.reshape(len(log), -1), predicted.reshape(len(log), -1)


class PredictionProblem(AbstractProblem):
    """Residuals of all recordings, as rows of one number of each channel; the Jacobian takes a pass a parameter."""

    initial: Float[Array, " unknowns"]
    num_parameters: int = eqx.field(static=True)
    unknown: Parameters
    recordings: tuple[Recording, ...]
    predict: Predict = eqx.field(static=True)
    loss: Loss = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)

    def predicted(self, y: Array, recording: Recording) -> Float[Array, "steps channels *numbers"]:
        """What would be measured; raises `ModelError` if its shape is not that of what was."""
        found = jnp.asarray(self.predict(self.unknown.model(y), recording))
        if found.shape != recording.values.shape:
            raise ModelError(
                f"Predictions: predict returns an array of shape {found.shape} for a recording whose values have shape "
                f"{recording.values.shape}: a row a sample, then a channel, then its numbers if there are many."
            )
        return found.astype(recording.values.dtype)

    def errors(self, y: Float[Array, " unknowns"]) -> Float[Array, "rows channels"]:
        """Predicted less measured signals; zero where nothing was seen."""
        parts = []
        for recording in self.recordings:
            predicted, seen = self.predicted(y, recording), recording.is_seen
            parts.append(by_channel(jnp.where(seen, predicted - jnp.where(seen, recording.values, 0.0), 0.0)))
        return jnp.concatenate(parts)

    @property
    def counts(self) -> Float[Array, "rows channels"]:
        """Ones where there are data."""
        seen = [by_channel(recording.is_seen) for recording in self.recordings]
        return jnp.concatenate(seen).astype(self.initial.dtype)

    def scaled(self, errors: Float[Array, "rows channels"], y: Array, weights: Array) -> Float[Array, " residuals"]:
        """Residuals in standard deviations, and those of priors."""
        r = self.loss.apply(errors * weights) * self.counts
        return jnp.concatenate([r.reshape(-1), self.unknown.prior_residuals(y)])

    def residuals(self, y: Array, weights: Array) -> Array:
        return self.scaled(self.errors(y), y, weights)

    def rows(self, y: Array, weights: Array) -> Rows:
        return self.rows_and_errors(y, weights)[:2]

    def rows_and_errors(self, y: Array, weights: Array) -> tuple[Array, Array, Array]:
        """Residuals, their Jacobian and errors, from one simulation."""

        def residual(y: Array) -> tuple[Array, Array]:
            errors = self.errors(y)
            return self.scaled(errors, y, weights), errors

        r, push, errors = jax.linearize(residual, y, has_aux=True)
        return r, jax.vmap(push, out_axes=1)(jnp.eye(y.shape[0], dtype=y.dtype)), errors

    def evaluate(self, y: Array, weights: Array) -> Evaluated:
        r, J, errors = self.rows_and_errors(y, weights)
        return *canonical_rows(r, J), self.channels(errors)

    def channels(self, errors: Float[Array, "rows channels"]) -> Channels:
        """Mean squared errors of channels, and their noise."""
        counts = self.counts
        squares = jnp.sum(errors**2, 0) / jnp.sum(counts, 0)
        noise = noise_square(errors, counts) if self.loss.is_robust else squares
        return Channels(squares, noise, self.correlation(errors, counts) / jnp.where(squares > 0.0, squares, 1.0))

    def correlation(self, errors: Array, counts: Array) -> Float[Array, " channels"]:
        """Mean product of each error of a channel with the next in time, of those that were seen."""
        products = pairs = jnp.zeros(len(self.names), errors.dtype)
        first = 0
        for recording in self.recordings:
            steps, rows = len(recording), recording.values[:, 0].size
            e, seen = (x[first : first + rows].reshape(steps, -1, x.shape[1]) for x in (errors, counts))
            products, pairs = products + jnp.sum(e[1:] * e[:-1], (0, 1)), pairs + jnp.sum(seen[1:] * seen[:-1], (0, 1))
            first += rows
        return products / jnp.maximum(pairs, 1.0)

    def channel_squares(self, y: Array) -> Array:
        return self.channels(self.errors(y)).squares

    @property
    def channel_names(self) -> tuple[str, ...]:
        return self.names

    @property
    def num_data(self) -> int:
        return int(self.samples_of_channels.sum())

    @property
    def samples_of_channels(self) -> Float[np.ndarray, " channels"]:
        return np.sum(np.asarray(self.counts, float), 0)


def correlated_errors(problem: Any, y: Array, weights: Float[np.ndarray, " channels"]) -> tuple[str, ...]:
    """Sentences on channels whose errors are like those of the sample before, which deviations do not know."""
    if not isinstance(problem, PredictionProblem):
        return ()
    channels = evaluate(problem, y, jnp.asarray(weights, y.dtype))[2]
    if channels.correlation is None:
        return ()
    sizes = np.sqrt(np.asarray(channels.squares, float)) * weights
    said = []
    for name, size, found in zip(problem.names, sizes, np.asarray(channels.correlation, float), strict=True):
        clear = CLEAR / np.sqrt(max(1.0, float(problem.samples_of_channels[problem.names.index(name)])))
        if size > EXACT and found > max(CORRELATED, clear):
            factor = np.sqrt((1.0 + found) / max(1.0 - found, clear**2))
            said.append(
                f"Errors of '{name}' are correlated with those of the sample before by {found:.2f}, and deviations "
                f"count them as independent: they may be up to {factor:.1f} times too small."
            )
    return tuple(said)


def by_channel(values: Array) -> Array:
    """An array of samples, channels and numbers as rows with a number of each channel."""
    parts = values.reshape(*values.shape[:2], -1)
    return jnp.moveaxis(parts, 1, 2).reshape(-1, values.shape[1])


def predicted_values(problem: PredictionProblem, y: Array) -> Array:
    """What the first recording would have measured."""
    return problem.predicted(y, problem.recordings[0])


def as_recordings(logs: Sequence[Any]) -> tuple[Recording, ...]:
    """Recordings of the same channels; raises `ModelError` for anything else."""
    for log in logs:
        if not isinstance(log, Recording):
            raise ModelError(f"Predictions fits recordings, from si.make_recording; got {type(log).__name__}.")
        if log.names != logs[0].names or log.values.shape[2:] != logs[0].values.shape[2:]:
            raise ModelError(
                f"Predictions: recording '{log.name}' has channels {log.names}, '{logs[0].name}' has {logs[0].names}, "
                "or other numbers in each; recordings that are fitted together have the same."
            )
    return tuple(logs)
