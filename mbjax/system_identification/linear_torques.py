"""Fits of efforts where all unknowns enter linearly through the regressor: data are compressed once, by QR.

    effort = Y(q, v, vdot) pi(theta) + bias;     [Y 1 effort] = Q R  for each measured velocity,
so that an iteration costs nothing per sample (Golub and Van Loan 2013, section 5.3). Columns of Y whose numbers do not
depend on theta are part of the effort.
"""

from collections.abc import Sequence
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

from .log import Log
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
CHUNK = 256  # samples whose regressors are in memory together


class LinearTorques(AbstractProblem):
    """Residuals R [pi(theta), bias] - z of each velocity, with at most as many rows as pi has numbers."""

    initial: Float[Array, " unknowns"]
    num_parameters: int = eqx.field(static=True)
    unknown: Parameters
    R: Float[Array, "measured rows columns"]  # the last column is z, of the data
    samples: int = eqx.field(static=True)
    measured: tuple[int, ...] = eqx.field(static=True)  # velocities
    columns: tuple[int, ...] = eqx.field(static=True)  # numbers in pi that depend on theta
    labels: tuple[str, ...] = eqx.field(static=True)  # of the measured velocities

    def errors(self, y: Float[Array, " unknowns"]) -> Float[Array, "measured rows"]:
        """Compressed errors, in N m or N."""
        system = self.unknown.system(y)
        pi = linear_parameters(system.model)[np.array(self.columns, int)]
        bias = system.sensors.effort_bias[np.array(self.measured)][:, None]
        numbers = jnp.concatenate([jnp.broadcast_to(pi, (bias.shape[0], pi.shape[0])), bias, -jnp.ones_like(bias)], -1)
        return jnp.einsum("jrc,jc->jr", self.R, numbers)

    def residuals(self, y: Array, weights: Array) -> Array:
        r = self.errors(y) * weights[:, None]
        return jnp.concatenate([r.reshape(-1), self.unknown.prior_residuals(y)])

    def rows(self, y: Array, weights: Array) -> Rows:
        def residuals(y: Array) -> Array:
            return self.residuals(y, weights)

        return residuals(y), jax.jacfwd(residuals)(y)

    def channel_squares(self, y: Array) -> Array:
        return jnp.sum(self.errors(y) ** 2, -1) / self.samples

    @property
    def channel_names(self) -> tuple[str, ...]:
        return self.labels

    @property
    def num_data(self) -> int:
        return len(self.measured) * self.samples


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
    R = None
    for i, log in enumerate(logs):
        R = compress_log(model, log, None if projectors is None else projectors[i], measured, columns, R)
    assert R is not None
    samples = sum(len(log) for log in logs)
    return LinearTorques(unknown.initial, len(unknown), unknown, R, samples, measured, columns, labels)


def changing_columns(unknown: Parameters) -> tuple[int, ...]:
    """Places in pi of the numbers that depend on theta: those that differ where all of theta differs."""
    with jax.ensure_compile_time_eval():  # a problem may be made under vmap, of many noises
        pi, other = (np.asarray(call_compiled(pi_at, unknown, unknown.initial + by)) for by in (0.0, 0.3))
    return tuple(int(i) for i in np.flatnonzero(pi != other))


def pi_at(unknown: Parameters, theta: Float[Array, " n"]) -> Float[Array, " parameters"]:
    """Linear parameters of the model at theta."""
    return linear_parameters(unknown.system(theta).model)


def compress_log(
    model: MultibodyModel,
    log: Log,
    projector: Array | None,
    measured: tuple[int, ...],
    columns: tuple[int, ...],
    R: Array | None,
) -> Array:
    """R of the rows [Y 1 target] of each velocity, chunk by chunk, on top of those of earlier logs."""
    if R is None:
        R = jnp.zeros((len(measured), len(columns) + 2, len(columns) + 2), model.dtype)
    steps, log, projector = len(log), *jax.tree.map(on_host, (log, projector))
    for start in range(0, steps, CHUNK):
        index = np.arange(start, start + CHUNK)
        keep = jnp.asarray(index < steps, model.dtype)
        part = jax.tree.map(lambda x, index=index: x[np.minimum(index, steps - 1)], log)
        P = None if projector is None else projector[np.minimum(index, steps - 1)]
        R = add_chunk(model, part, P, keep, R, measured, columns)
    return R


def on_host(x: Array) -> Any:
    """As NumPy's array, of which parts are taken faster, unless it is being traced: logs may differ under vmap."""
    return x if isinstance(x, Tracer) else np.asarray(x)


@eqx.filter_jit
def add_chunk(
    model: MultibodyModel,
    log: Log,
    projector: Array | None,
    keep: Array,
    R: Array,
    measured: tuple[int, ...],
    columns: tuple[int, ...],
) -> Array:
    """R with the rows of one chunk added; rows that are not to be kept are zero."""
    few, pi = np.array(columns, int), linear_parameters(model)
    known = pi.at[few].set(0.0)

    def of_one(q: Array, v: Array, vdot: Array, effort: Array, external: Array) -> Array:
        Y = regressor(model, q, v, vdot)
        rest = Y @ known + rest_of(model, q, v, vdot, Y)
        ones = jnp.ones((Y.shape[0], 1), Y.dtype)
        return jnp.concatenate([Y[:, few], ones, (effort + external - rest)[:, None]], -1)

    rows = jax.vmap(of_one)(log.q, log.v, log.vdot, log.effort, log.external) * keep[:, None, None]
    if projector is not None:
        rows = jnp.einsum("tij,tjc->tic", projector, rows)
    stacked = jnp.concatenate([R, jnp.swapaxes(rows[:, np.array(measured)], 0, 1)], 1)
    return jax.vmap(triangular_factor)(stacked)


def rest_of(model: MultibodyModel, q: Array, v: Array, vdot: Array, Y: Array) -> Float[Array, " nv"]:
    """Forces that the regressor has no columns for: those of force elements other than springs in joints."""
    if all(isinstance(element, RevoluteSpring | PrismaticSpring) for element in model.force_elements):
        return jnp.zeros_like(v)
    return inverse_dynamics(model, q, v, vdot, force_elements=True) - Y @ linear_parameters(model)
