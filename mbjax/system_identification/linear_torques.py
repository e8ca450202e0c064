"""Fits of efforts where all unknowns enter linearly through the regressor: data are compressed once, by QR.

    effort = Y(q, v, vdot) pi(theta) + bias;     [Y 1 effort] = Q R  for each measured velocity,
so that an iteration costs nothing per sample (Golub and Van Loan 2013, section 5.3). Columns of Y whose numbers do not
depend on theta are part of the effort.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from mbjax.dynamics import inverse_dynamics
from mbjax.execution import call_compiled
from mbjax.forces import PrismaticSpring, RevoluteSpring
from mbjax.linear_algebra import triangular_factor
from mbjax.model import MultibodyModel

from .effort_filter import EffortFilter, blocks_of, filtered_rows, noise_gain_of
from .log import Log, bare
from .parameters import Parameters
from .problem import AbstractProblem, Rows
from .regressor import linear_parameters, regressor

LINEAR_KINDS = frozenset(
    [
        "mass",
        "center_of_mass",
        "inertia",
        "joint_friction",
        "joint_damping",
        "armature",
        "rotor_inertia",
        "gear_ratio",
        "spring_stiffness",
        "spring_position",
        "effort_bias",
    ]
)


class LinearTorques(AbstractProblem):
    """Residuals R [pi(theta), bias] - z of each velocity, with at most as many rows as pi has numbers."""

    initial: Float[Array, " unknowns"]
    num_parameters: int = eqx.field(static=True)
    unknown: Parameters
    R: Float[Array, "measured rows columns"]  # the last column is z, of the data
    samples: Float[Array, " measured"]  # how many rows are data
    noise_gain: Float[Array, ""]  # of the filter of efforts
    measured: tuple[int, ...] = eqx.field(static=True)  # velocities
    columns: tuple[int, ...] = eqx.field(static=True)  # numbers in pi that depend on theta
    labels: tuple[str, ...] = eqx.field(static=True)  # of the measured velocities

    def errors(self, y: Float[Array, " unknowns"]) -> Float[Array, "measured rows"]:
        """Compressed errors, in N m or N."""
        return jnp.einsum("jrc,jc->jr", self.R, numbers_at(self.unknown, y, self.columns, self.measured))

    def residuals(self, y: Array, weights: Array) -> Array:
        r = self.errors(y) * weights[:, None]
        return jnp.concatenate([r.reshape(-1), self.unknown.prior_residuals(y)])

    def rows(self, y: Array, weights: Array) -> Rows:
        def residuals(y: Array) -> Array:
            return self.residuals(y, weights)

        return residuals(y), jax.jacfwd(residuals)(y)

    def channel_squares(self, y: Array) -> Array:
        return jnp.sum(self.errors(y) ** 2, -1) / jnp.maximum(self.samples, 1.0)

    @property
    def channel_names(self) -> tuple[str, ...]:
        return self.labels

    @property
    def num_data(self) -> int:
        return int(np.sum(np.asarray(self.samples)))


def make_linear_torques(
    unknown: Parameters,
    logs: Sequence[Log],
    projectors: tuple[Array, ...] | None,
    measured: tuple[int, ...],
    labels: tuple[str, ...],
) -> LinearTorques:
    """Compresses the data of all logs."""
    model = unknown.base.model
    columns = changing_columns(unknown)
    width = len(columns) + 2
    R = jnp.zeros((len(measured), width, width), model.dtype)
    samples = jnp.zeros(len(measured), model.dtype)
    for i, log in enumerate(logs):
        for rows, counts in rows_of_log(model, log, None if projectors is None else projectors[i], measured, columns):
            R, samples = add_rows(R, samples, rows, counts)
    return LinearTorques(
        unknown.initial, len(unknown), unknown, R, samples, noise_gain_of(logs), measured, columns, labels
    )


def linear_rows(
    unknown: Parameters, theta: Array, log: Log, projector: Array | None, measured: tuple[int, ...], with_slopes: bool
) -> tuple[Float[np.ndarray, "rows measured"], Float[np.ndarray, "rows measured n"] | None, np.ndarray]:
    """Errors of one log's rows at theta, their slopes if wanted, and ones where they are data."""
    model, columns = unknown.base.model, changing_columns(unknown)
    numbers = np.asarray(call_compiled(numbers_at, unknown, theta, columns, measured), float)
    slopes = np.asarray(call_compiled(slopes_of_numbers, unknown, theta, columns, measured), float)
    errors, J, counts = [], [], []
    for rows, kept in rows_of_log(model, log, projector, measured, columns):
        block = np.asarray(rows, float)
        errors.append(np.einsum("tjc,jc->tj", block, numbers))
        counts.append(np.asarray(kept, float))
        if with_slopes:
            J.append(np.einsum("tjc,jcn->tjn", block, slopes, optimize=True))
    last = int(blocks_of(len(log), log.effort_filter).is_row.sum())  # the last block may reach beyond the log
    slopes = np.concatenate(J)[:last] if with_slopes else None
    return np.concatenate(errors)[:last], slopes, np.concatenate(counts)[:last]


def numbers_at(
    unknown: Parameters, theta: Array, columns: tuple[int, ...], measured: tuple[int, ...]
) -> Float[Array, "measured columns"]:
    """What rows [Y 1 target] are multiplied by for their errors, velocity by velocity."""
    system = unknown.system(theta)
    pi = linear_parameters(system.model)[np.array(columns, int)]
    bias = system.sensors.effort_bias[np.array(measured)][:, None]
    return jnp.concatenate([jnp.broadcast_to(pi, (bias.shape[0], pi.shape[0])), bias, -jnp.ones_like(bias)], -1)


def slopes_of_numbers(
    unknown: Parameters, theta: Array, columns: tuple[int, ...], measured: tuple[int, ...]
) -> Float[Array, "measured columns n"]:
    """Derivatives of these numbers by theta."""
    return jax.jacfwd(lambda theta: numbers_at(unknown, theta, columns, measured))(theta)


def changing_columns(unknown: Parameters) -> tuple[int, ...]:
    """Places in pi of the numbers that depend on theta: those that differ where all of theta differs."""
    with jax.ensure_compile_time_eval():  # a problem may be made under vmap, of many noises
        pi, other = (np.asarray(call_compiled(pi_at, unknown, unknown.initial + by)) for by in (0.0, 0.3))
    return tuple(int(i) for i in np.flatnonzero(pi != other))


def pi_at(unknown: Parameters, theta: Float[Array, " n"]) -> Float[Array, " parameters"]:
    """Linear parameters of the model at theta."""
    return linear_parameters(unknown.system(theta).model)


def rows_of_log(
    model: MultibodyModel, log: Log, projector: Array | None, measured: tuple[int, ...], columns: tuple[int, ...]
) -> Iterator[tuple[Float[Array, "rows measured columns"], Float[Array, "rows measured"]]]:
    """Rows [Y 1 target] of a log, weighted and filtered, block by block, and ones where they are data."""
    blocks = blocks_of(len(log), log.effort_filter)
    weights, effort_filter = log.weights, log.effort_filter
    log, projector, weights = jax.tree.map(on_host, (bare(log), projector, weights))
    for index, is_sample, is_row in zip(blocks.samples, blocks.is_sample, blocks.is_row, strict=True):
        part = jax.tree.map(lambda x, index=index: x[index], log)
        weight: Any = weights[index] * np.asarray(is_sample[:, None], model.dtype)
        rows: Any = np.asarray(is_row, model.dtype)
        P = None if projector is None else projector[index]
        yield rows_of_block(model, part, P, weight, rows, effort_filter, measured, columns)


def on_host(x: Array) -> Any:
    """As NumPy's array, of which parts are taken faster, unless it is being traced: logs may differ under vmap."""
    return x if isinstance(x, Tracer) else np.asarray(x)


@eqx.filter_jit
def rows_of_block(
    model: MultibodyModel,
    log: Log,
    projector: Array | None,
    weight: Float[Array, "window nv"],
    is_row: Float[Array, " rows"],
    effort_filter: EffortFilter | None,
    measured: tuple[int, ...],
    columns: tuple[int, ...],
) -> tuple[Float[Array, "rows measured columns"], Float[Array, "rows measured"]]:
    """Rows [Y 1 target] of one block of samples, and ones where they are data."""
    few, pi = np.array(columns, int), linear_parameters(model)
    known = pi.at[few].set(0.0)

    def of_one(q: Array, v: Array, vdot: Array, effort: Array, external: Array) -> Array:
        Y = regressor(model, q, v, vdot)
        rest = Y @ known + rest_of(model, q, v, vdot, Y)
        ones = jnp.ones((Y.shape[0], 1), Y.dtype)
        return jnp.concatenate([Y[:, few], ones, (effort + external - rest)[:, None]], -1)

    rows = jax.vmap(of_one)(log.q, log.v, log.vdot, log.effort, log.external)
    if projector is not None:
        rows = jnp.einsum("tij,tjc->tic", projector, rows)
    places = np.array(measured)
    return filtered_rows(rows[:, places], weight[:, places], is_row, effort_filter)


@jax.jit
def add_rows(
    R: Float[Array, "measured columns columns"], samples: Array, rows: Array, counts: Array
) -> tuple[Array, Array]:
    """R and the number of data with the rows of one block added."""
    stacked = jnp.concatenate([R, jnp.swapaxes(rows, 0, 1)], 1)
    return jax.vmap(triangular_factor)(stacked), samples + jnp.sum(counts, 0)


def rest_of(model: MultibodyModel, q: Array, v: Array, vdot: Array, Y: Array) -> Float[Array, " nv"]:
    """Forces that the regressor has no columns for: those of force elements other than springs in joints."""
    if all(isinstance(element, RevoluteSpring | PrismaticSpring) for element in model.force_elements):
        return jnp.zeros_like(v)
    return inverse_dynamics(model, q, v, vdot, force_elements=True) - Y @ linear_parameters(model)
