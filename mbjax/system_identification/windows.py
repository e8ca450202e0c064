"""Logs cut into windows of equal length for multiple shooting: each starts at a measured state."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.model import MultibodyModel

from .log import EVEN, Log


class Windows(eqx.Module):
    """Windows of all logs: where each starts, what drives it, and what was measured at the end of each sample.

    The last window of a log overlaps the one before where the length does not divide; `counts` says which samples are
    there for the first time.
    """

    q0: Float[Array, "windows nq"]
    v0: Float[Array, "windows nv"]
    actuation: Float[Array, "windows samples nu"]
    external: Float[Array, "windows samples nv"]
    q: Float[Array, "windows samples nq"]
    v: Float[Array, "windows samples nv"]
    counts: Float[Array, "windows samples"]
    substeps: int = eqx.field(static=True)  # steps of the model between samples

    @property
    def num_windows(self) -> int:
        return self.q0.shape[0]

    @property
    def num_samples(self) -> int:
        return self.q.shape[1]


def cut(model: MultibodyModel, logs: Sequence[Log], horizon: int | None) -> Windows:
    """Cuts logs into windows of `horizon` samples, the whole of the shortest log if None."""
    shortest = min(len(log) for log in logs) - 1
    horizon = shortest if horizon is None else horizon
    if not 1 <= horizon <= shortest:
        raise ModelError(f"Trajectories(horizon={horizon}): the shortest log has {shortest} steps.")
    substeps = {substeps_of(model, log) for log in logs}
    if len(substeps) > 1:
        raise ModelError("Trajectories: the logs have different periods; resample them to one.")
    parts: dict[str, list] = {name: [] for name in ("q0", "v0", "actuation", "external", "q", "v", "counts")}
    for log in logs:
        starts, steps = list(range(0, len(log) - horizon, horizon)), len(log) - 1
        if starts[-1] + horizon < steps:
            starts.append(steps - horizon)
        for i, start in enumerate(starts):
            inputs, measured = slice(start, start + horizon), slice(start + 1, start + horizon + 1)
            first = 0 if i == 0 else max(0, starts[i - 1] + horizon - start)
            values = (log.q[start], log.v[start], log.actuation[inputs], log.external[inputs], log.q[measured])
            counts = (np.arange(horizon) >= first).astype(float)
            for name, value in zip(parts, (*values, log.v[measured], counts), strict=True):
                parts[name].append(value)
    arrays = {name: jnp.asarray(np.stack(values), model.dtype) for name, values in parts.items()}
    return Windows(**arrays, substeps=substeps.pop())


def substeps_of(model: MultibodyModel, log: Log) -> int:
    """Steps of the model between two samples of a log; raises `ModelError` where there is no whole number."""
    gaps = np.diff(np.asarray(log.time, float))
    if np.ptp(gaps) > EVEN * gaps.mean():
        raise ModelError(
            f"Trajectories: log '{log.name}' has uneven times, and steps are even. Use si.resample, or si.read_log, "
            "which resamples unless told otherwise."
        )
    if not model.is_discrete:
        raise ModelError("Trajectories needs a discrete model, whose step it fits: load it with a time_step.")
    dt, period = float(model.time_step), log.period
    count = round(period / dt)
    if count < 1 or abs(count * dt - period) > 1e-3 * period:
        raise ModelError(
            f"Trajectories: log '{log.name}' has a sample every {period:g} s, which is no multiple of the model's "
            f"time_step of {dt:g} s. Resample the log, or load the model with time_step={period:g}."
        )
    return count
