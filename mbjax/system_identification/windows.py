"""Logs cut into windows of equal length for multiple shooting: each starts at a measured state."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mbjax.errors import ModelError
from mbjax.model import MultibodyModel

from .log import EVEN, SHORT_HOLE, Log


class Windows(eqx.Module):
    """Windows of all logs: where each starts, what drives it, and what was measured at the end of each sample.

    The last window of a log overlaps the one before where the length does not divide; `counts` says which samples are
    there for the first time.
    """

    q0: Float[Array, "windows nq"]
    v0: Float[Array, "windows nv"]
    actuation: Float[Array, "windows samples_and_1 nu"]  # also at the end of the last sample
    external: Float[Array, "windows samples_and_1 nv"]
    q: Float[Array, "windows samples nq"]
    v: Float[Array, "windows samples nv"]
    counts: Float[Array, "windows samples"]
    substeps: int = eqx.field(static=True)  # steps of the model between samples
    factor: float = eqx.field(static=True)  # by which they are shorter than the model's time step

    @property
    def num_windows(self) -> int:
        return self.q0.shape[0]

    @property
    def num_samples(self) -> int:
        return self.q.shape[1]


def cut(model: MultibodyModel, logs: Sequence[Log], horizon: int | None, substeps: int | None = None) -> Windows:
    """Cuts logs into windows of `horizon` samples, the whole of the shortest log if None.

    Samples that were interpolated do not count, no window starts at one, and what follows a hole in a window does not
    count either, for nobody knows what drove the model through it.
    """
    shortest = min(len(log) for log in logs) - 1
    horizon = shortest if horizon is None else horizon
    if not 1 <= horizon <= shortest:
        raise ModelError(f"Trajectories(horizon={horizon}): the shortest log has {shortest} steps.")
    periods = [log.period for log in logs]
    if max(periods) - min(periods) > EVEN * max(periods):
        raise ModelError("Trajectories: the logs have different periods; resample them to one.")
    steps_of_all = [steps_between(model, log, substeps) for log in logs]
    substeps, factor = steps_of_all[0]
    parts: dict[str, list] = {name: [] for name in ("q0", "v0", "actuation", "external", "q", "v", "counts")}
    for log in logs:
        starts, steps = list(range(0, len(log) - horizon, horizon)), len(log) - 1
        if starts[-1] + horizon < steps:
            starts.append(steps - horizon)
        recorded = np.ones(len(log)) if log.recorded is None else np.asarray(log.recorded, float)
        before_hole = reached_from(recorded)
        starts = [start for start in starts if recorded[start] > 0.0] or starts[:1]
        for i, start in enumerate(starts):
            inputs, measured = slice(start, start + horizon + 1), slice(start + 1, start + horizon + 1)
            first = 0 if i == 0 else max(0, starts[i - 1] + horizon - start)
            values = (log.q[start], log.v[start], log.actuation[inputs], log.external[inputs], log.q[measured])
            counts = (np.arange(horizon) >= first) * recorded[measured] * (before_hole[measured] == before_hole[start])
            for name, value in zip(parts, (*values, log.v[measured], counts), strict=True):
                parts[name].append(value)
    arrays = {name: jnp.asarray(np.stack(values), model.dtype) for name, values in parts.items()}
    return Windows(**arrays, substeps=substeps, factor=factor)


def reached_from(recorded: Float[np.ndarray, " steps"]) -> Int[np.ndarray, " steps"]:
    """A number for each stretch of samples that no hole interrupts; single missing samples interrupt nothing."""
    missing = recorded <= 0.0
    run = np.zeros(len(recorded), int)
    for k in np.flatnonzero(missing):
        run[k] = run[k - 1] + 1 if k else 1
    return np.cumsum(run == SHORT_HOLE + 1)


def steps_between(model: MultibodyModel, log: Log, substeps: int | None) -> tuple[int, float]:
    """Steps between two samples of a log, and by what factor they are shorter than the model's time step.

    Raises `ModelError` where the time step does not divide the period, and none are given.
    """
    if substeps is not None and (substeps < 1 or substeps != int(substeps)):
        raise ModelError(f"Trajectories(substeps={substeps}): a number of steps between samples must be 1 or more.")
    gaps = np.diff(np.asarray(log.time, float))
    if np.ptp(gaps) > EVEN * gaps.mean():
        raise ModelError(
            f"Trajectories: log '{log.name}' has uneven times, and steps are even. Use si.resample, or si.read_log, "
            "which resamples unless told otherwise."
        )
    if not model.is_discrete:
        raise ModelError("Trajectories needs a discrete model, whose step it fits: load it with a time_step.")
    dt, period = float(model.time_step), log.period
    if substeps is not None:
        return substeps, dt * substeps / period
    count = round(period / dt)
    if count < 1 or abs(count * dt - period) > 1e-3 * period:
        raise ModelError(
            f"Trajectories: log '{log.name}' has a sample every {period:g} s, which is no multiple of the model's "
            f"time_step of {dt:g} s. Resample the log, load the model with "
            f"time_step={period:g}, or give Trajectories(substeps=…), which sets the step."
        )
    return count, 1.0
