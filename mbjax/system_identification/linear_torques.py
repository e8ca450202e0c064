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

from .contact_projection import Projection, channels_of
from .effort_filter import EffortFilter, blocks_of, filtered_rows, noise_gain_of
from .log import Log, bare
from .parameters import Parameters
from .problem import AbstractProblem, Evaluated, Rows, canonical_rows
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
    samples: Float[Array, " measured"]  # how many data there are: rows, or what contacts leave of them
    rows_with_data: Float[Array, " measured"]
    noise_gain: Float[Array, ""]  # of the filter of efforts
    measured: tuple[int, ...] = eqx.field(static=True)  # velocities
    columns: tuple[int, ...] = eqx.field(static=True)  # numbers in pi that depend on theta
    labels: tuple[str, ...] = eqx.field(static=True)  # of the measured velocities
    is_projected: bool = eqx.field(static=True)

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
        return jnp.sum(self.errors(y) ** 2, -1) / jnp.maximum(self.rows_with_data, 1.0)

    def evaluate(self, y: Array, weights: Array) -> Evaluated:
        squares = self.channel_squares(y)
        channels = channels_of(squares, self.rows_with_data, self.samples, squares, is_common=self.is_projected)
        return *canonical_rows(*self.rows(y, weights)), channels

    @property
    def channel_names(self) -> tuple[str, ...]:
        return self.labels

    @property
    def num_data(self) -> int:
        return round(float(np.sum(np.asarray(self.samples, float))))

    @property
    def has_common_noise(self) -> bool:
        return self.is_projected


def make_linear_torques(
    unknown: Parameters,
    logs: Sequence[Log],
    projections: tuple[Projection, ...] | None,
    measured: tuple[int, ...],
    labels: tuple[str, ...],
) -> LinearTorques:
    """Compresses the data of all logs."""
    model = unknown.base.model
    columns = changing_columns(unknown)
    width = len(columns) + 2
    R = jnp.zeros((len(measured), width, width), model.dtype)
    samples = rows_with_data = jnp.zeros(len(measured), model.dtype)
    for i, log in enumerate(logs):
        for rows, counts in rows_of_log(model, log, None if projections is None else projections[i], measured, columns):
            R, samples, rows_with_data = add_rows(R, samples, rows_with_data, rows, counts)
    return LinearTorques(
        unknown.initial, len(unknown), unknown, R, samples, rows_with_data, noise_gain_of(logs), measured, columns,
        labels, projections is not None,
    )  # fmt: skip


def linear_rows(
    unknown: Parameters,
    theta: Array,
    log: Log,
    projection: Projection | None,
    measured: tuple[int, ...],
    with_slopes: bool,
) -> tuple[Float[np.ndarray, "rows measured"], Float[np.ndarray, "rows measured n"] | None, np.ndarray]:
    """Errors of one log's rows at theta, their slopes if wanted, and ones where they are data."""
    model, columns = unknown.base.model, changing_columns(unknown)
    numbers = np.asarray(call_compiled(numbers_at, unknown, theta, columns, measured), float)
    slopes = np.asarray(call_compiled(slopes_of_numbers, unknown, theta, columns, measured), float)
    errors, J, counts = [], [], []
    for rows, kept in rows_of_log(model, log, projection, measured, columns):
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
    model: MultibodyModel, log: Log, projection: Projection | None, measured: tuple[int, ...], columns: tuple[int, ...]
) -> Iterator[tuple[Float[Array, "rows measured columns"], Float[Array, "rows measured"]]]:
    """Rows [Y 1 target] of a log, weighted and filtered, block by block, and ones where they are data."""
    blocks = blocks_of(len(log), log.effort_filter)
    weights = log.weights[:, np.array(measured)] if projection is None else projection.is_data
    effort_filter = log.effort_filter
    log, projection, weights = jax.tree.map(on_host, (bare(log), projection, weights))
    for index, is_sample, is_row in zip(blocks.samples, blocks.is_sample, blocks.is_row, strict=True):
        part, projected = jax.tree.map(lambda x, index=index: x[index], (log, projection))
        weight: Any = weights[index] * np.asarray(is_sample[:, None], model.dtype)
        rows: Any = np.asarray(is_row, model.dtype)
        yield rows_of_block(model, part, projected, weight, rows, effort_filter, measured, columns)


def on_host(x: Array) -> Any:
    """As NumPy's array, of which parts are taken faster, unless it is being traced: logs may differ under vmap."""
    return x if isinstance(x, Tracer) else np.asarray(x)


@eqx.filter_jit
def rows_of_block(
    model: MultibodyModel,
    log: Log,
    projection: Projection | None,
    weight: Float[Array, "window measured"],
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

    rows = jax.vmap(of_one)(log.q, log.v, log.vdot, log.effort, log.external)[:, np.array(measured)]
    if projection is None:
        return filtered_rows(rows, weight, is_row, effort_filter)
    return filtered_rows(projection(rows), weight, is_row, effort_filter, projection.shares)


@jax.jit
def add_rows(
    R: Float[Array, "measured columns columns"], samples: Array, rows_with_data: Array, rows: Array, counts: Array
) -> tuple[Array, Array, Array]:
    """R and the numbers of data and of rows with data, with the rows of one block added."""
    stacked = jnp.concatenate([R, jnp.swapaxes(rows, 0, 1)], 1)
    new = jnp.sum(counts, 0), jnp.sum((counts > 0.0).astype(counts.dtype), 0)
    return jax.vmap(triangular_factor)(stacked), samples + new[0], rows_with_data + new[1]


def rest_of(model: MultibodyModel, q: Array, v: Array, vdot: Array, Y: Array) -> Float[Array, " nv"]:
    """Forces that the regressor has no columns for: those of force elements other than springs in joints."""
    if all(isinstance(element, RevoluteSpring | PrismaticSpring) for element in model.force_elements):
        return jnp.zeros_like(v)
    return inverse_dynamics(model, q, v, vdot, force_elements=True) - Y @ linear_parameters(model)
