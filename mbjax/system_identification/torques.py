"""Fits of measured efforts: the efforts that inverse dynamics predicts along the measured motion."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.dynamics import inverse_dynamics
from mbjax.errors import ModelError
from mbjax.execution import call_compiled
from mbjax.kinematics import integrate_configuration
from mbjax.model import MultibodyModel
from mbjax.number_rules import POSITIVE, checked_numbers
from mbjax.simulation.state import require_rigid_bodies_alone

from .contact_projection import Projection, channels_of, contact_projection
from .effort_filter import filtered_log, noise_gain_of
from .linear_torques import LINEAR_KINDS, linear_rows, make_linear_torques
from .log import Log, bare, first_contact_row
from .losses import NORMAL, Loss, as_loss, noise_square
from .parameters import Parameters
from .problem import (
    AbstractProblem,
    Channels,
    Evaluated,
    Rows,
    canonical_rows,
    fewer_rows,
    jacobian_of_samples,
)
from .recording import INSTEAD
from .signals import shifted
from .system import System, velocity_labels


@dataclasses.dataclass(frozen=True)
class Torques:
    """Fits efforts: gain (ID(q, v, vdot) - external forces) + bias = measured effort.

    `noise` is the standard deviation of efforts, one for all or by measured velocity; None estimates it for each from
    what is left, and fits again. `contacts` are bodies that touch something with forces nobody measured: what they
    could do at the bodies' origins, in three translations or with `contact_rows=6` also torques, is projected out of
    the efforts that were measured. Errors of joints are then mixed, so that one noise is estimated for all of them;
    where joints differ in it, give `noise` for each.
    `rows` are names of the velocities whose efforts were measured, all by default; the others are in no sum. `slowest`
    in rad/s or m/s leaves out the efforts of joints that move more slowly, where friction is known least.
    """

    noise: float | Sequence[float] | None = None
    loss: "str | Loss" = "least_squares"
    contacts: tuple[str, ...] = ()
    contact_rows: int = 3
    rows: tuple[str, ...] | None = None
    slowest: float | None = None

    def problem(self, unknown: Parameters, logs: Sequence[Log]) -> AbstractProblem:
        """The least-squares problem of these logs."""
        model, logs = unknown.base.model, self.moving(logs)
        require_rigid_bodies_alone(model, "Torques", INSTEAD)
        measured, labels = self.measured(model)
        projections = self.projections(model, logs)
        if self.is_linear(unknown) and not self.loss_of.is_robust:
            return make_linear_torques(unknown, logs, projections, measured, labels)
        return DirectTorques(
            unknown.initial, len(unknown), unknown, tuple(dataclasses.replace(log, name="") for log in logs),
            projections, noise_gain_of(logs), measured, labels, self.loss_of,
        )  # fmt: skip

    def known_weights(self, problem: Any) -> Float[np.ndarray, " channels"] | None:
        """One over the noise that was given, as the filter of efforts leaves it."""
        noise = self.noise_of(len(problem.channel_names))
        return None if noise is None else 1.0 / (noise * float(problem.noise_gain))

    def noise_of(self, channels: int) -> Float[np.ndarray, " channels"] | None:
        """The noise of each channel's samples that was given; None if it is to be estimated."""
        if self.noise is None:
            return None
        shape = (channels,)
        noise = checked_numbers("Torques", "noise", self.noise, POSITIVE, shape, unit="N m or N", is_repeated=True)
        return np.broadcast_to(np.asarray(noise, float), shape)

    def prediction(self, unknown: Parameters, theta: Array, log: Log) -> tuple[tuple[str, ...], Array, Array]:
        """Names of channels, and measured and predicted signals of one log."""
        (log,) = self.moving((log,))
        projections = self.projections(unknown.base.model, (log,))
        measured, labels = self.measured(unknown.base.model)
        direct = DirectTorques(
            theta,
            len(unknown),
            unknown,
            (dataclasses.replace(log, name=""),),
            projections,
            noise_gain_of((log,)),
            measured,
            labels,
            self.loss_of,
        )
        target, predicted = call_compiled(signals_of, direct, theta)
        return labels, target, predicted

    @property
    def loss_of(self) -> Loss:
        """The loss, which may be given by its name."""
        return as_loss(self.loss)

    def moving(self, logs: Sequence[Log]) -> tuple[Log, ...]:
        """Logs without weights for what moves too slowly."""
        if self.slowest is None:
            return tuple(logs)
        if not self.slowest >= 0.0:
            raise ModelError(f"Torques(slowest={self.slowest}): it must be a speed of 0 or more.")
        return tuple(log.weighted(jnp.abs(log.v) >= self.slowest) for log in logs)

    def is_linear(self, unknown: Parameters) -> bool:
        """Whether all unknowns enter through the regressor and biases."""
        kinds = unknown.kind_names()
        return kinds <= LINEAR_KINDS and not (self.contacts and "effort_bias" in kinds)

    @property
    def plain(self) -> "Torques":
        """The same method by least squares."""
        return dataclasses.replace(self, loss="least_squares")

    def can_clean(self, unknown: Parameters) -> bool:
        """Whether a robust loss may be least squares of cleaned efforts: each sample stands for itself."""
        return self.loss_of.is_robust and not self.contacts and "delay" not in unknown.kind_names()

    def cleaned(self, unknown: Parameters, theta: Array, logs: Sequence[Log]) -> tuple[tuple[Log, ...], np.ndarray]:
        """Logs whose efforts are no farther from the prediction than the loss allows, and the mean slope of its score.

        With e = predicted - measured, of noise s, the efforts are predicted - s score(e / s): least squares of these is
        where the robust loss has its minimum (Huber 1981, section 7.8), also behind a filter, which would smear
        outliers. s is the noise that was given, or comes from the median of |e|.
        """
        measured, loss, logs = np.array(self.measured(unknown.base.model)[0]), self.loss_of, self.moving(logs)
        errors = [np.asarray(call_compiled(raw_errors, unknown, theta, bare(log)), float)[:, measured] for log in logs]
        weights = [np.asarray(log.weights, float)[:, measured] for log in logs]
        e, w = np.concatenate(errors), np.concatenate(weights)
        root = np.sqrt(w)
        if self.noise is None:
            size = [np.abs(root * e)[w[:, k] > 0.0, k] for k in range(len(measured))]
            median = np.array([np.median(x) if x.size else 0.0 for x in size])
            largest = max(float(np.abs(np.asarray(log.effort)).max(initial=0.0)) for log in logs)
            noise = np.maximum(NORMAL * median, 1e-9 * largest + np.finfo(float).tiny)
        else:
            noise = np.broadcast_to(np.asarray(self.noise, float), (len(measured),))
        slope = np.asarray(loss.score_slope(jnp.asarray(root * e / noise)), float)
        mean_slope = np.sum(slope * (w > 0.0), 0) / np.maximum(np.sum(w > 0.0, 0), 1.0)
        found = []
        for log, e, w in zip(logs, errors, weights, strict=True):
            root = np.sqrt(np.where(w > 0.0, w, 1.0))
            allowed = np.asarray(loss.score(jnp.asarray(root * e / noise)), float) * noise / root
            effort = np.asarray(log.effort, float).copy()
            effort[:, measured] += np.where(w > 0.0, e - allowed, 0.0)
            found.append(dataclasses.replace(log, effort=jnp.asarray(effort, log.effort.dtype)))
        return tuple(found), mean_slope

    def rows_of(
        self, unknown: Parameters, theta: Array, log: Log, *, with_slopes: bool = True
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """Errors of one log's rows, their slopes by theta if wanted, and ones where they are data.

        Where contacts are projected out, it is the part of a datum that they leave.
        """
        (log,) = self.moving((log,))
        if not self.is_linear(unknown):
            problem = self.plain.problem(unknown, (log,))
            errors, slopes, counts = (np.asarray(x, float) for x in call_compiled(slopes_of_first_log, problem, theta))
            return errors, slopes, counts
        measured, _ = self.measured(unknown.base.model)
        projections = self.projections(unknown.base.model, (log,))
        return linear_rows(unknown, theta, log, None if projections is None else projections[0], measured, with_slopes)

    def measured(self, model: MultibodyModel) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Velocities whose efforts were measured, and their names."""
        labels = velocity_labels(model)
        if self.rows is not None and not (self.rows and set(self.rows) <= set(labels)):
            raise ModelError(f"Torques(rows={self.rows}): the velocities are {', '.join(labels)}.")
        found = tuple(i for i, label in enumerate(labels) if self.rows is None or label in self.rows)
        return found, tuple(labels[i] for i in found)

    def projections(self, model: MultibodyModel, logs: Sequence[Log]) -> tuple[Projection, ...] | None:
        """What takes unmeasured contact forces out of the measured efforts of each log; None without contacts."""
        first = first_contact_row("Torques", self.contact_rows)
        if not self.contacts:
            return None
        measured, _ = self.measured(model)
        noise = self.noise_of(len(measured))
        parts = np.ones(len(measured)) if noise is None else noise / noise.max()
        return tuple(
            call_compiled(contact_projection, model, log.q, log.weights, tuple(self.contacts), first, measured, parts)
            for log in logs
        )


class DirectTorques(AbstractProblem):
    """Residuals by inverse dynamics at each sample, for all parameters and losses."""

    initial: Float[Array, " unknowns"]
    num_parameters: int = eqx.field(static=True)
    unknown: Parameters
    logs: tuple[Log, ...]
    projections: tuple[Projection, ...] | None
    noise_gain: Float[Array, ""]  # of the filter of efforts
    measured: tuple[int, ...] = eqx.field(static=True)  # velocities
    labels: tuple[str, ...] = eqx.field(static=True)  # of the measured velocities
    loss: Loss = eqx.field(static=True)

    def errors_of_samples(self, y: Float[Array, " unknowns"], i: int) -> Float[Array, "steps measured"]:
        """Predicted less measured efforts of one log, in N m or N, before they are weighted and filtered."""
        log, system = self.logs[i], self.unknown.system(y)
        samples = (log.q, log.v, log.vdot, log.external)
        predicted = jax.vmap(lambda sample: predicted_effort(system, *sample))(samples)
        if self.is_delayed:
            predicted = shifted(predicted, system.sensors.effort_delay / self.period(i))
        return (predicted - log.effort)[:, np.array(self.measured)]

    def errors(self, y: Float[Array, " unknowns"], i: int) -> tuple[Float[Array, "rows measured"], Array]:
        """Weighted and filtered errors of one log without what contacts did, and ones where they are data."""
        return self.rows_of_samples(self.errors_of_samples(y, i), i)

    def rows_of_samples(self, x: Float[Array, "steps measured ..."], i: int) -> tuple[Array, Array]:
        """Rows of one log from errors of its samples, or their slopes: projected, weighted, filtered.

        Beside them are ones where they are data; with contacts, the part of a datum that these leave.
        """
        effort_filter = self.logs[i].effort_filter
        if self.projections is None:
            return filtered_log(x, self.weight(i), effort_filter)
        projection = self.projections[i]
        return filtered_log(projection(x), self.weight(i), effort_filter, projection.shares)

    def weight(self, i: int) -> Float[Array, "steps measured"]:
        """Weights of one log's samples, those that no projection has; a delay leaves out those near the ends."""
        log, projections = self.logs[i], self.projections
        weight = log.weights[:, np.array(self.measured)] if projections is None else projections[i].is_data
        return weight * jnp.asarray(self.inside(i)[:, None], weight.dtype) if self.is_delayed else weight

    @property
    def is_delayed(self) -> bool:
        """Whether the delay of efforts is unknown, so that samples depend on each other."""
        return "delay" in self.unknown.kind_names()

    def period(self, i: int) -> Array:
        time = self.logs[i].time
        return (time[-1] - time[0]) / (time.shape[0] - 1)

    def inside(self, i: int) -> np.ndarray:
        """Samples far enough from the ends that a delayed prediction is inside the log: a twentieth at each end."""
        steps = len(self.logs[i])
        margin = max(2, steps // 20)
        return (np.arange(steps) >= margin) & (np.arange(steps) < steps - margin)

    def residuals(self, y: Array, weights: Array) -> Array:
        scaled = [self.loss.apply(self.errors(y, i)[0] * weights) for i in range(len(self.logs))]
        return jnp.concatenate([*(x.reshape(-1) for x in scaled), self.unknown.prior_residuals(y)])

    def rows(self, y: Array, weights: Array) -> Rows:
        if self.is_delayed:
            r = self.residuals(y, weights)
            return r, jax.jacfwd(lambda y: self.residuals(y, weights))(y)
        parts = [self.rows_of_log(y, weights, i) for i in range(len(self.logs))]
        prior = self.unknown.prior_residuals(y)
        parts.append((prior, jax.jacfwd(self.unknown.prior_residuals)(y)))
        return jnp.concatenate([r for r, _ in parts]), jnp.concatenate([J for _, J in parts])

    def rows_of_log(self, y: Array, weights: Array, i: int) -> Rows:
        """Rows of one log, sample by sample before they are filtered."""
        errors, J, _ = self.slopes_of_log(y, i)
        r, push = jax.vjp(lambda errors: self.loss.apply(errors * weights), errors)
        slope = push(jnp.ones_like(r))[0]  # each residual depends on its own error
        return fewer_rows(r.reshape(-1), (slope[..., None] * J).reshape(-1, J.shape[-1]))

    def slopes_of_log(self, y: Array, i: int) -> tuple[Array, Float[Array, "rows measured unknowns"], Array]:
        """Errors of one log, weighted and filtered, their Jacobian, and ones where they are data."""
        log, places = self.logs[i], np.array(self.measured)
        if self.is_delayed:
            return self.errors(y, i)[0], jax.jacfwd(lambda y: self.errors(y, i)[0])(y), self.errors(y, i)[1]

        def error(y: Array, *sample: Array) -> Array:
            *motion, target = sample
            return (predicted_effort(self.unknown.system(y), *motion) - target)[places]

        both = jacobian_of_samples(error, y.shape[0], len(self.measured))
        errors, J = both(y, log.q, log.v, log.vdot, log.external, log.effort)
        rows, counts = self.rows_of_samples(jnp.concatenate([errors[..., None], J], -1), i)
        return rows[..., 0], rows[..., 1:], counts

    def channel_squares(self, y: Array) -> Array:
        return self.channels(y).squares

    def channels(self, y: Array) -> Channels:
        """Mean squared errors of channels, and their noise."""
        parts = [self.errors(y, i) for i in range(len(self.logs))]
        errors, counts = (jnp.concatenate(list(x)) for x in zip(*parts, strict=True))
        rows = jnp.sum((counts > 0.0).astype(counts.dtype), 0)
        squares = jnp.sum(errors**2, 0) / jnp.maximum(rows, 1.0)
        noise = noise_square(errors, counts) if self.loss.is_robust else squares
        return channels_of(squares, rows, jnp.sum(counts, 0), noise, is_common=self.has_common_noise)

    def evaluate(self, y: Array, weights: Array) -> Evaluated:
        return *canonical_rows(*self.rows(y, weights)), self.channels(y)

    @property
    def channel_names(self) -> tuple[str, ...]:
        return self.labels

    @property
    def num_data(self) -> int:
        counts = (np.asarray(call_compiled(counts_of, self, i), float) for i in range(len(self.logs)))
        return round(float(sum(np.sum(count) for count in counts)))

    @property
    def has_common_noise(self) -> bool:
        return self.projections is not None


def raw_errors(unknown: Parameters, theta: Array, log: Log) -> Float[Array, "steps nv"]:
    """Predicted less measured efforts, sample by sample."""
    system = unknown.system(theta)
    predicted = jax.vmap(lambda *x: predicted_effort(system, *x))(log.q, log.v, log.vdot, log.external)
    return predicted - log.effort


def slopes_of_first_log(problem: DirectTorques, theta: Array) -> tuple[Array, Array, Array]:
    """Errors of the first log's rows, their slopes, and ones where they are data."""
    return problem.slopes_of_log(theta, 0)


def counts_of(problem: DirectTorques, i: int) -> Float[Array, "rows measured"]:
    """Ones where rows of one log are data; with contacts, the part of a datum that these leave."""
    return problem.rows_of_samples(problem.weight(i), i)[1]


def signals_of(problem: DirectTorques, theta: Array) -> tuple[Array, Array]:
    """Measured and predicted efforts of the first log, filtered alike at every sample; NaN where there are no data."""
    log, weight = problem.logs[0], problem.weight(0)
    target, errors = log.effort[:, np.array(problem.measured)], problem.errors_of_samples(theta, 0)
    if problem.projections is not None:
        target, errors = problem.projections[0](target), problem.projections[0](errors)
    predicted = target + errors
    missing = jnp.where(weight > 0.0, 0.0, jnp.nan)
    if log.effort_filter is None:
        return target + missing, predicted + missing
    dense, ones = dataclasses.replace(log.effort_filter, decimation=1), jnp.ones_like(target)
    target, predicted, whole = (filtered_log(x, ones, dense)[0] for x in (target, predicted, ones))
    return target / whole + missing, predicted / whole + missing


def predicted_effort(system: System, q: Array, v: Array, vdot: Array, external: Array) -> Float[Array, " nv"]:
    """Efforts that sensors would measure along a measured motion, in N m or N."""
    sensors = system.sensors
    q = integrate_configuration(system.model, q, -sensors.position_bias)
    v = v - sensors.velocity_bias
    tau = inverse_dynamics(system.model, q, v, vdot, force_elements=True)
    tau = tau + system.drives.efforts(v, system.model.parameters.friction_velocity)
    return sensors.effort_gain * (tau - external) + sensors.effort_bias
