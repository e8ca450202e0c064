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

from .linear_torques import LINEAR_KINDS, make_linear_torques
from .log import Log, contact_projectors
from .losses import Loss, as_loss
from .parameters import Parameters
from .problem import AbstractProblem, Rows, fewer_rows, jacobian_of_samples
from .signals import shifted
from .system import System, velocity_labels


@dataclasses.dataclass(frozen=True)
class Torques:
    """Fits efforts: gain (ID(q, v, vdot) - external forces) + bias = measured effort.

    `noise` is the standard deviation of efforts, one for all or by measured velocity; None estimates it for each from
    what is left, and fits again. `contacts` are bodies that touch something with forces nobody measured: what they
    could do at the bodies' origins, in three translations or with `contact_rows=6` also torques, is projected out.
    `rows` are names of the velocities whose efforts were measured, all by default; the others are in no sum.
    """

    noise: float | Sequence[float] | None = None
    loss: "str | Loss" = "least_squares"
    contacts: tuple[str, ...] = ()
    contact_rows: int = 3
    rows: tuple[str, ...] | None = None

    def problem(self, unknown: Parameters, logs: Sequence[Log]) -> AbstractProblem:
        """The least-squares problem of these logs."""
        loss, model = as_loss(self.loss), unknown.base.model
        measured, labels = self.measured(model)
        projectors, kinds = self.projectors(model, logs), unknown.kind_names()
        is_linear = kinds <= LINEAR_KINDS and not (projectors is not None and "effort_bias" in kinds)
        if is_linear and loss.kind == "least_squares":
            return make_linear_torques(unknown, logs, projectors, measured, labels)
        return DirectTorques(unknown.initial, len(unknown), unknown, tuple(logs), projectors, measured, labels, loss)

    def known_weights(self, problem: AbstractProblem) -> Float[np.ndarray, " channels"] | None:
        """One over the noise that was given."""
        if self.noise is None:
            return None
        return 1.0 / np.broadcast_to(np.asarray(self.noise, float), (len(problem.channel_names),))

    def prediction(self, unknown: Parameters, theta: Array, log: Log) -> tuple[tuple[str, ...], Array, Array]:
        """Names of channels, and measured and predicted signals of one log."""
        projectors = self.projectors(unknown.base.model, (log,))
        measured, labels = self.measured(unknown.base.model)
        direct = DirectTorques(theta, len(unknown), unknown, (log,), projectors, measured, labels, as_loss(self.loss))
        errors, target = call_compiled(errors_and_target, direct, theta)
        return labels, target, errors + target

    def measured(self, model: MultibodyModel) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Velocities whose efforts were measured, and their names."""
        labels = velocity_labels(model)
        if self.rows is not None and not (self.rows and set(self.rows) <= set(labels)):
            raise ModelError(f"Torques(rows={self.rows}): the velocities are {', '.join(labels)}.")
        found = tuple(i for i, label in enumerate(labels) if self.rows is None or label in self.rows)
        return found, tuple(labels[i] for i in found)

    def projectors(self, model: MultibodyModel, logs: Sequence[Log]) -> tuple[Float[Array, "steps nv nv"], ...] | None:
        """For each sample the projector 1 - J⁺J on what unmeasured contact forces cannot do; None without contacts."""
        if not self.contacts:
            return None
        first = 0 if self.contact_rows == 6 else 3
        return tuple(call_compiled(contact_projectors, model, log.q, self.contacts, first) for log in logs)


class DirectTorques(AbstractProblem):
    """Residuals by inverse dynamics at each sample, for all parameters and losses."""

    initial: Float[Array, " unknowns"]
    num_parameters: int = eqx.field(static=True)
    unknown: Parameters
    logs: tuple[Log, ...]
    projectors: tuple[Array, ...] | None
    measured: tuple[int, ...] = eqx.field(static=True)  # velocities
    labels: tuple[str, ...] = eqx.field(static=True)  # of the measured velocities
    loss: Loss = eqx.field(static=True)

    def errors(self, y: Float[Array, " unknowns"], i: int) -> Float[Array, "steps measured"]:
        """Predicted less measured efforts of one log, in N m or N."""
        log, system = self.logs[i], self.unknown.system(y)
        samples = (log.q, log.v, log.vdot, log.external, *self.projector(i))
        predicted = jax.vmap(lambda sample: predicted_effort(system, *sample))(samples)
        if self.is_delayed:
            predicted = shifted(predicted, system.sensors.effort_delay / self.period(i))
            predicted = jnp.where(self.inside(i)[:, None], predicted, self.target(i))
        return (predicted - self.target(i))[:, np.array(self.measured)]

    def target(self, i: int) -> Float[Array, "steps nv"]:
        """Measured efforts, projected as the prediction is."""
        log = self.logs[i]
        if self.projectors is None:
            return log.effort
        return jnp.einsum("tij,tj->ti", self.projectors[i], log.effort)

    def projector(self, i: int) -> tuple[Array, ...]:
        return () if self.projectors is None else (self.projectors[i],)

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
        scaled = [self.loss.apply(self.errors(y, i) * weights) for i in range(len(self.logs))]
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
        """Rows of one log, sample by sample."""
        log = self.logs[i]

        def residual(y: Array, *sample: Array) -> Array:
            *motion, target = sample
            error = predicted_effort(self.unknown.system(y), *motion) - target
            return self.loss.apply(error[np.array(self.measured)] * weights)

        both = jacobian_of_samples(residual, y.shape[0], len(self.measured))
        r, J = both(y, log.q, log.v, log.vdot, log.external, *self.projector(i), self.target(i))
        return fewer_rows(r.reshape(-1), J.reshape(-1, J.shape[-1]))

    def channel_squares(self, y: Array) -> Array:
        squares = [jnp.sum(self.errors(y, i) ** 2, 0) for i in range(len(self.logs))]
        return sum(squares[1:], squares[0]) / sum(len(log) for log in self.logs)

    @property
    def channel_names(self) -> tuple[str, ...]:
        return self.labels

    @property
    def num_data(self) -> int:
        return len(self.measured) * sum(len(log) for log in self.logs)


def errors_and_target(problem: DirectTorques, theta: Array) -> tuple[Array, Array]:
    """Errors and measured efforts of the first log."""
    return problem.errors(theta, 0), problem.target(0)[:, np.array(problem.measured)]


def predicted_effort(
    system: System, q: Array, v: Array, vdot: Array, external: Array, projector: Any = None
) -> Float[Array, " nv"]:
    """Efforts that sensors would measure along a measured motion, in N m or N."""
    sensors = system.sensors
    q = integrate_configuration(system.model, q, -sensors.position_bias)
    tau = inverse_dynamics(system.model, q, v - sensors.velocity_bias, vdot, force_elements=True)
    measured = sensors.effort_gain * (tau - external) + sensors.effort_bias
    return measured if projector is None else projector @ measured
