"""Fits of motions: trajectories that the model's discrete step makes, contact included, by multiple shooting."""

import dataclasses
from collections.abc import Sequence
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.execution import call_compiled
from mbjax.kinematics import difference_configuration, integrate_configuration
from mbjax.model import MultibodyModel
from mbjax.number_rules import POSITIVE, checked_numbers
from mbjax.simulation import State, actuation_matrix, actuation_matrix_pseudoinverse
from mbjax.simulation.state import require_rigid_bodies_alone

from .kind_table import DRIVE_KINDS
from .log import Log
from .losses import Loss, as_loss, noise_square
from .parameters import Parameters
from .problem import AbstractProblem, Channels, Evaluated, Rows, canonical_rows, fewer_rows
from .recording import INSTEAD
from .sensitivities import trajectory_and_sensitivities
from .shooting import inputs_of_steps, measurement_error, start_of, take_sample, with_shorter_steps
from .system import velocity_labels
from .windows import Windows, cut

NOT_GIVEN = 1e-5  # part of a log's largest effort; less is rounding


@dataclasses.dataclass(frozen=True)
class Trajectories:
    """Fits positions and velocities: those of `step` from the start of each window, less the measured ones.

    `horizon` is the number of samples in a window; None takes each log whole. Windows start at `"measured"` states, or
    at states that are `"fitted"` as well, within the noise of what was measured there. `position_noise` and
    `velocity_noise` are standard deviations, in rad or m and per s, of which both are given or neither; None estimates
    those of each channel from what is left, and fits again.
    `substeps` is the number of steps between two samples, with steps of that length; None takes the model's time step.
    Actuation is that of the last sample, or with `hold="linear"` on the line to the next. `continuous=True` fits the
    continuous motion that ever shorter steps approach: what the steps lack is extrapolated from runs with four and
    eight times as many (Richardson), at the price of simulating, not of derivatives. Otherwise a fit says where half
    the step would move a number by more than its deviation.
    `jacobian` is `"forward"`, one pass for each unknown along the motion, or `"steps"`: every step by itself, backwards
    and at once, then products of matrices; `"auto"` takes what is cheaper.
    """

    horizon: int | None = None
    initial: Literal["measured", "fitted"] = "measured"
    position_noise: float | None = None
    velocity_noise: float | None = None
    loss: "str | Loss" = "least_squares"
    jacobian: Literal["auto", "forward", "steps"] = "auto"
    substeps: int | None = None
    hold: Literal["zero", "linear"] = "zero"
    continuous: bool = False

    def problem(self, unknown: Parameters, logs: Sequence[Log]) -> "ShootingProblem":
        """The least-squares problem of these logs."""
        model, loss = unknown.base.model, as_loss(self.loss)
        require_rigid_bodies_alone(model, "Trajectories", INSTEAD)
        if self.initial not in ("measured", "fitted"):
            raise ModelError(f"Trajectories: initial must be 'measured' or 'fitted', got {self.initial!r}.")
        require_simulated(unknown)
        if self.hold not in ("zero", "linear"):
            raise ModelError(f"Trajectories: hold must be 'zero' or 'linear', got {self.hold!r}.")
        if self.jacobian not in ("auto", "forward", "steps"):
            raise ModelError(f"Trajectories: jacobian must be 'auto', 'forward' or 'steps', got {self.jacobian!r}.")
        if "time_step" in unknown.kind_names() and (self.substeps is not None or self.continuous):
            raise ModelError(
                "Trajectories: 'time_step:world' cannot be unknown where substeps or continuous=True set the steps."
            )
        require_drives(model, logs)
        windows = cut(model, logs, self.horizon, self.substeps)
        local = 2 * model.num_velocities if self.initial == "fitted" else 0
        y = jnp.concatenate([unknown.initial, jnp.zeros(local * windows.num_windows, model.dtype)])
        by_steps = self.jacobian == "steps"
        if self.jacobian == "auto":
            by_steps = len(unknown) + local > 2 * model.num_velocities
        labels = velocity_labels(model)
        names = tuple(f"{label} position" for label in labels) + tuple(f"{label} velocity" for label in labels)
        return ShootingProblem(y, len(unknown), unknown, windows, local, by_steps, loss, names, self.hold)

    def known_weights(self, problem: AbstractProblem) -> Float[np.ndarray, " channels"] | None:
        """One over the noises that were given."""
        given = {"position_noise": self.position_noise, "velocity_noise": self.velocity_noise}
        missing = [name for name, noise in given.items() if noise is None]
        if len(missing) == 1:
            raise ModelError(
                "Trajectories: give both position_noise and velocity_noise, or neither; with one alone both would be "
                "estimated."
            )
        if missing:
            return None
        noises = [checked_numbers("Trajectories", name, noise, POSITIVE) for name, noise in given.items()]
        return 1.0 / np.repeat(noises, len(problem.channel_names) // 2)

    def corrected(self, problem: "ShootingProblem", y: Array) -> "ShootingProblem":
        """The problem whose errors near y are those of the continuous motion, if that is what is fitted."""
        return with_gain(problem, call_compiled(gain_of, problem, y, CONTINUOUS)) if self.continuous else problem

    def refined(self, problem: "ShootingProblem", y: Array) -> "ShootingProblem | None":
        """The problem whose errors near y are those of half the step; None where steps do not matter."""
        return None if self.continuous else with_gain(problem, call_compiled(gain_of, problem, y, HALF_STEP))

    def growth(self, problem: "ShootingProblem", y: Array, weights: Float[np.ndarray, " channels"]) -> float:
        """Errors in the last quarter of windows that start at measured states over those in the first; 1 for others."""
        quarter = problem.windows.num_samples // 4
        if self.initial == "fitted" or not quarter:
            return 1.0
        squares = (np.asarray(call_compiled(errors_of_windows, problem, y), float) * weights) ** 2
        counts = np.asarray(problem.windows.counts, float)[..., None]
        first, last = (
            np.sum((squares * counts)[:, part]) / max(1.0, np.sum(counts[:, part]))
            for part in (slice(0, quarter), slice(-quarter, None))
        )
        return float(np.sqrt(last / first)) if first > 0.0 else 1.0

    def prediction(self, unknown: Parameters, theta: Array, log: Log) -> tuple[tuple[str, ...], Array, Array]:
        """Names of channels, and measured and predicted signals: positions along v from the first, and velocities."""
        problem = dataclasses.replace(self, initial="measured").problem(unknown, (log,))
        errors, measured = call_compiled(errors_and_measured, self.corrected(problem, theta), theta)
        is_first = np.asarray(problem.windows.counts).reshape(-1) > 0.0  # windows may overlap
        return problem.names, measured[is_first], (errors + measured)[is_first]


def require_simulated(unknown: Parameters) -> None:
    """Raises `ModelError` for unknowns that do not act on simulated motions."""
    kinds = unknown.kind_names()
    if "delay" in kinds:
        raise ModelError(
            "Trajectories: 'delay:effort' does not act on simulated motions. Fit it with Torques, or shift a "
            "signal by read_log(time_offsets={'effort': seconds}), and take it out of the parameters."
        )
    of_drives = sorted(kinds & {kind.name for kind in DRIVE_KINDS})
    if of_drives:
        raise ModelError(
            f"Trajectories: '{of_drives[0]}' does not act on simulated motions, for models have no such friction. Fit "
            "it with Torques, and take it out of the parameters."
        )


def require_drives(model: MultibodyModel, logs: Sequence[Log]) -> None:
    """Raises `ModelError` where efforts were logged that no actuator can give, so that steps would lack them.

    A log whose actuation is not that of its efforts was given its own.
    """
    B, shares = (np.asarray(f(model), float) for f in (actuation_matrix, actuation_matrix_pseudoinverse))
    for log in logs:
        effort, actuation = np.asarray(log.effort, float), np.asarray(log.actuation, float)
        smallest = NOT_GIVEN * float(np.abs(effort).max(initial=0.0))
        lacking = np.abs(effort - effort @ shares.T @ B.T).max(0, initial=0.0)
        if not np.any(lacking > smallest) or np.abs(actuation - effort @ shares.T).max(initial=0.0) > smallest:
            continue
        names = [name for name, x in zip(velocity_labels(model), lacking, strict=True) if x > smallest]
        shown = ", ".join(f"'{name}'" for name in names[:6]) + (f" and {len(names) - 6} more" if names[6:] else "")
        raise ModelError(
            f"Trajectories: log '{log.name}' has efforts of {shown}, up to {lacking.max():.3g} N m or N, which no "
            "actuator of the model can give, so that the simulated motion would lack them. Add actuators there with "
            "MultibodyPlant.add_joint_actuator, or give what acts there as external=, and zero as effort=, to "
            "si.make_log."
        )


class ShootingProblem(AbstractProblem):
    """Residuals of all windows; unknowns are theta and, if starts are fitted, their shifts along v and in v."""

    initial: Float[Array, " unknowns"]
    num_parameters: int = eqx.field(static=True)
    unknown: Parameters
    windows: Windows
    local: int = eqx.field(static=True)  # unknowns of each window
    by_steps: bool = eqx.field(static=True)
    loss: Loss = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    hold: str = eqx.field(static=True)

    def split(self, y: Float[Array, " unknowns"]) -> tuple[Array, Float[Array, "windows local"]]:
        """theta, and the shifts of each window's start."""
        return y[: self.num_parameters], y[self.num_parameters :].reshape(self.windows.num_windows, self.local)

    def errors_of_window(self, theta: Array, shift: Array, window: Windows) -> Float[Array, "samples 2nv"]:
        """Predicted less measured positions (along v) and velocities of one window."""
        q, v = self.motion(theta, shift, window)
        system = self.unknown.system(theta)
        return jax.vmap(lambda *x: measurement_error(system, *x))(q, v, window.q, window.v)

    def motion(self, theta: Array, shift: Array, window: Windows, refined: int = 1) -> tuple[Array, Array]:
        """Positions and velocities at the samples of one window, by `refined` times as many steps."""
        system = with_shorter_steps(self.unknown.system(theta), self.windows.factor * refined)

        def one_sample(state: State, inputs: tuple[Array, Array]) -> tuple[State, tuple[Array, Array]]:
            state = take_sample(system, state, inputs)
            return state, (state.q, state.v)

        inputs = inputs_of_steps(window, self.hold, self.windows.substeps * refined)
        return jax.lax.scan(one_sample, start_of(system, window, shift), inputs)[1]

    def scaled(self, errors: Array, shift: Array, counts: Array, weights: Array) -> Float[Array, " rows"]:
        """Residuals of one window: its errors, and the shift of its start, in standard deviations."""
        r = self.loss.apply(errors * weights) * counts[:, None]
        return jnp.concatenate([r.reshape(-1), shift * weights[: self.local]])

    def residuals(self, y: Array, weights: Array) -> Array:
        theta, shifts = self.split(y)

        def of_window(shift: Array, window: Windows) -> Array:
            return self.scaled(self.errors_of_window(theta, shift, window), shift, window.counts, weights)

        r = jax.vmap(of_window)(shifts, self.windows)
        return jnp.concatenate([r.reshape(-1), self.unknown.prior_residuals(y[: self.num_parameters])])

    def rows(self, y: Array, weights: Array) -> Rows:
        return self.rows_and_channels(y, weights)[:2]

    def evaluate(self, y: Array, weights: Array) -> Evaluated:
        r, J, channels = self.rows_and_channels(y, weights)
        return *canonical_rows(r, J), channels

    def rows_and_channels(self, y: Array, weights: Array) -> tuple[Array, Array, Channels]:
        """Rows of all windows, and the errors of channels, from one simulation."""
        theta, shifts = self.split(y)

        def of_window(item: tuple[Array, Windows]) -> tuple[Array, Array, Array]:
            shift, window = item
            both = self.by_single_steps if self.by_steps else self.by_forward_mode
            r, J, errors = both(theta, shift, window, weights)
            return *fewer_rows(r, J), errors

        items = shifts, self.windows
        r, J, errors = jax.lax.map(of_window, items) if self.by_steps else jax.vmap(of_window)(items)
        J = self.placed(J)
        r, J = fewer_rows(r.reshape(-1), J)
        prior = self.unknown.prior_residuals
        J_prior = jnp.pad(jax.jacfwd(prior)(theta), ((0, 0), (0, y.shape[0] - self.num_parameters)))
        return jnp.concatenate([r, prior(theta)]), jnp.concatenate([J, J_prior]), self.channels(errors)

    def channels(self, errors: Float[Array, "windows samples 2nv"]) -> Channels:
        """Mean squared errors of channels, and their noise."""
        counts = self.windows.counts[..., None]
        squares = jnp.sum(errors**2 * counts, (0, 1)) / jnp.sum(counts)
        if not self.loss.is_robust:
            return Channels(squares, squares)
        flat = errors.reshape(-1, errors.shape[-1])
        return Channels(squares, noise_square(flat, jnp.broadcast_to(counts, errors.shape).reshape(flat.shape)))

    def placed(self, J: Float[Array, "windows rows own"]) -> Float[Array, "all_rows unknowns"]:
        """Jacobians of windows, by theta and their own shifts, as one by all unknowns."""
        count, rows, _ = J.shape
        by_theta, by_shift = J[..., : self.num_parameters], J[..., self.num_parameters :]
        spread = jnp.einsum("wrs,wu->wrus", by_shift, jnp.eye(count, dtype=J.dtype))
        return jnp.concatenate([by_theta, spread.reshape(count, rows, count * self.local)], -1).reshape(
            count * rows, -1
        )

    def by_forward_mode(
        self, theta: Array, shift: Array, window: Windows, weights: Array
    ) -> tuple[Array, Array, Array]:
        """Residuals, Jacobian and errors of one window: a pass along it for each unknown."""

        def residual(own: Array) -> tuple[Array, Array]:
            theta, shift = own[: self.num_parameters], own[self.num_parameters :]
            errors = self.errors_of_window(theta, shift, window)
            return self.scaled(errors, shift, window.counts, weights), errors

        own = jnp.concatenate([theta, shift])
        r, push, errors = jax.linearize(residual, own, has_aux=True)
        return r, jax.vmap(push, out_axes=1)(jnp.eye(own.shape[0], dtype=own.dtype)), errors

    def by_single_steps(
        self, theta: Array, shift: Array, window: Windows, weights: Array
    ) -> tuple[Array, Array, Array]:
        """Residuals, Jacobian and errors of one window: all its steps at once, then products of matrices."""
        inputs = inputs_of_steps(window, self.hold, self.windows.substeps)
        errors, J = trajectory_and_sensitivities(self.unknown, theta, shift, window, inputs, self.windows.factor)
        flat, push = jax.vjp(lambda e: self.loss.apply(e * weights) * window.counts[:, None], errors)
        slope = push(jnp.ones_like(flat))[0]  # each residual depends on its own error
        start = jnp.concatenate([jnp.zeros((self.local, theta.shape[0])), jnp.diag(weights[: self.local])], 1)
        r = jnp.concatenate([flat.reshape(-1), shift * weights[: self.local]])
        J = (slope[..., None] * J).reshape(flat.size, -1)
        return r, jnp.concatenate([J, start.astype(J.dtype)]) if self.local else J, errors

    def errors(self, y: Array) -> Float[Array, "windows samples 2nv"]:
        """Predicted less measured positions (along v) and velocities of all windows."""
        theta, shifts = self.split(y)
        return jax.vmap(lambda s, w: self.errors_of_window(theta, s, w))(shifts, self.windows)

    def channel_squares(self, y: Array) -> Array:
        return self.channels(self.errors(y)).squares

    @property
    def channel_names(self) -> tuple[str, ...]:
        return self.names

    @property
    def num_data(self) -> int:
        return int(np.sum(np.asarray(self.windows.counts))) * len(self.names) + self.local * self.windows.num_windows

    @property
    def samples_of_channels(self) -> Float[np.ndarray, " channels"]:
        return np.full(len(self.names), float(np.sum(np.asarray(self.windows.counts))))


HALF_STEP = ((2, 1.0),)
CONTINUOUS = ((4, -1.0), (8, 2.0))  # extrapolated to steps of no length (Richardson)


def gain_of(problem: ShootingProblem, y: Array, terms: tuple[tuple[int, float], ...]) -> tuple[Array, Array]:
    """What better motions differ by in all windows: in positions, along the velocities, and in velocities.

    It is the sum of what motions with so many times as many steps differ by, each times its factor.
    """
    theta, shifts = problem.split(y)
    difference = jax.vmap(lambda a, b: difference_configuration(problem.unknown.base.model, a, b))

    def of_window(shift: Array, window: Windows) -> tuple[Array, Array]:
        q, v = problem.motion(theta, shift, window)
        moved, faster = jnp.zeros_like(v), jnp.zeros_like(v)
        for refined, factor in terms:
            q_fine, v_fine = problem.motion(theta, shift, window, refined)
            moved, faster = moved + factor * difference(q, q_fine), faster + factor * (v_fine - v)
        return moved, faster

    return jax.vmap(of_window)(shifts, problem.windows)


def errors_of_windows(problem: ShootingProblem, y: Array) -> Float[Array, "windows samples 2nv"]:
    """Predicted less measured positions (along v) and velocities of all windows."""
    return problem.errors(y)


def with_gain(problem: ShootingProblem, gain: tuple[Array, Array]) -> ShootingProblem:
    """The problem with the gain taken off what was measured: its errors are those of the better motion."""
    model, windows = problem.unknown.base.model, problem.windows
    q = jax.vmap(jax.vmap(lambda q, d: integrate_configuration(model, q, -d)))(windows.q, gain[0])
    better = dataclasses.replace(windows, q=q, v=windows.v - gain[1])
    return dataclasses.replace(problem, windows=better)


def errors_and_measured(problem: ShootingProblem, theta: Array) -> tuple[Array, Array]:
    """Errors and measured signals of all samples: positions along v from the first, and velocities."""
    model, windows = problem.unknown.base.model, problem.windows
    q = windows.q.reshape(-1, windows.q.shape[-1])
    moved = jax.vmap(lambda x: difference_configuration(model, windows.q0[0], x))(q)
    measured = jnp.concatenate([moved, windows.v.reshape(moved.shape)], -1)
    return problem.errors(theta).reshape(measured.shape), measured
