"""The filter of efforts: a low-pass without delay for measured and predicted efforts alike, then decimation.

    row_k = s_k sum_i h_i sqrt(w_(kd+i)) (predicted - measured)_(kd+i),      s_k² = sum_i h_i² / sum_i h_i² w_(kd+i)
h are the filter's taps, w the samples' weights, d the decimation. Both sides of tau = Y pi pass the same filter, so
that it biases nothing, whatever its cutoff (parallel filtering: Gautier 1997; Khalil and Dombre 2002, section 12.6.5).
Samples that are no data have weight zero on both sides, which leaves the equation true, as normalized convolution does
(Knutsson and Westin 1993); s keeps the noise of all rows alike. More rows would repeat what these say.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from mbjax.errors import ModelError
from mbjax.spatial import safe_sqrt

from .signals import low_pass

PASSED = 0.8  # cutoff in parts of half the decimated rate
LEAST_SHARE = 0.1  # of a row's taps that fall on data; rows with less are left out
SMALLEST_TAP = 1e-4  # of the largest
CHUNK = 256  # samples that are worked on together


class EffortFilter(eqx.Module):
    """Taps of the filter, from the farthest before to the farthest behind, and how many samples make one row."""

    taps: Float[Array, " taps"]
    decimation: int = eqx.field(static=True)
    cutoff: float = eqx.field(static=True)  # Hz

    @property
    def reach(self) -> int:
        """Samples on either side that a row depends on."""
        return self.taps.shape[0] // 2

    @property
    def noise_gain(self) -> Float[Array, ""]:
        """Standard deviation of filtered white noise over that of the noise."""
        return safe_sqrt(jnp.sum(self.taps**2))


def make_effort_filter(period: float, cutoff: float, dtype: np.dtype) -> EffortFilter:
    """The filter with the response of `low_pass` at this cutoff in Hz."""
    half = int(np.ceil(4.0 / (period * cutoff))) + 8
    impulse = np.zeros((2 * half + 1, 1))
    impulse[half] = 1.0
    taps = low_pass(impulse, period, cutoff)[:, 0]
    reach = int(np.flatnonzero(np.abs(taps) > SMALLEST_TAP * taps.max())[-1]) - half
    decimation = max(1, int(PASSED * 0.5 / (period * cutoff)))
    return EffortFilter(jnp.asarray(taps[half - reach : half + reach + 1], dtype), decimation, cutoff)


@dataclasses.dataclass(frozen=True)
class Blocks:
    """How the samples of a log are worked on block by block: which they are, and which rows each block makes."""

    samples: Int[np.ndarray, "blocks window"]  # held at the ends of the log
    is_sample: Bool[np.ndarray, "blocks window"]
    is_row: Bool[np.ndarray, "blocks rows"]


def blocks_of(steps: int, effort_filter: EffortFilter | None, chunk: int = CHUNK) -> Blocks:
    """Blocks of equal size; with a filter each reaches into its neighbours, with a row every `decimation` samples."""
    if effort_filter is None:
        apart, rows, reach = 1, chunk, 0
    else:
        apart, reach = effort_filter.decimation, effort_filter.reach
        rows = -(-max(chunk, 4 * reach) // apart)
    starts = np.arange(0, steps, rows * apart)
    index = starts[:, None] - reach + np.arange((rows - 1) * apart + 2 * reach + 1)
    centers = starts[:, None] + apart * np.arange(rows)
    return Blocks(np.clip(index, 0, steps - 1), (index >= 0) & (index < steps), centers < steps)


def filtered_rows(
    x: Float[Array, "window nv ..."],
    weight: Float[Array, "window nv"],
    is_row: Float[Array, " rows"],
    effort_filter: EffortFilter | None,
    shares: Float[Array, "window nv"] | None = None,
) -> tuple[Float[Array, "rows nv ..."], Float[Array, "rows nv"]]:
    """Rows of one block of samples, and one where a row counts as data; rows that do not are zero.

    Where samples have lost a part of their noise, `shares` are what is left of its square, and rows count as much.
    """
    more = (1,) * (x.ndim - 2)
    x = x * safe_sqrt(weight).reshape(*weight.shape, *more)
    if effort_filter is None:
        counts = (weight > 0.0).astype(x.dtype) * is_row[:, None]
        return x * counts.reshape(*counts.shape, *more), counts if shares is None else counts * shares
    taps, apart = effort_filter.taps, effort_filter.decimation
    place = np.arange(x.shape[0]) - apart * np.arange(is_row.shape[0])[:, None]
    inside = (place >= 0) & (place < taps.shape[0])
    T = jnp.where(inside, taps[np.clip(place, 0, taps.shape[0] - 1)], 0.0)  # (rows, window)
    share = (T * T) @ weight / jnp.sum(taps * taps)
    counts = (share >= LEAST_SHARE) & (is_row[:, None] > 0.0)
    scale = jnp.where(counts, 1.0 / safe_sqrt(jnp.where(counts, share, 1.0)), 0.0)
    rows = jnp.tensordot(T, x, 1)
    left = counts.astype(x.dtype)
    if shares is not None:
        left = jnp.where(counts, (T * T) @ (weight * shares) / jnp.sum(taps * taps) * scale**2, 0.0)
    return rows * scale.reshape(*scale.shape, *more), left


def filtered_log(
    x: Float[Array, "steps nv ..."],
    weight: Float[Array, "steps nv"],
    effort_filter: EffortFilter | None,
    shares: Float[Array, "steps nv"] | None = None,
) -> tuple[Float[Array, "rows nv ..."], Float[Array, "rows nv"]]:
    """Rows of all samples of a log, and one where a row counts as data."""
    steps = x.shape[0]
    if effort_filter is None:
        return filtered_rows(x, weight, jnp.ones(steps, x.dtype), None, shares)
    blocks = blocks_of(steps, effort_filter)

    def of_block(index: Array, is_sample: Array, is_row: Array) -> tuple[Array, Array]:
        part = None if shares is None else shares[index]
        return filtered_rows(x[index], weight[index] * is_sample[:, None], is_row, effort_filter, part)

    masks = (jnp.asarray(mask, x.dtype) for mask in (blocks.is_sample, blocks.is_row))
    rows, counts = jax.vmap(of_block)(jnp.asarray(blocks.samples), *masks)
    last = int(blocks.is_row.sum())
    return tuple(y.reshape(-1, *y.shape[2:])[:last] for y in (rows, counts))  # pyright: ignore[reportReturnType]


def noise_gain_of(logs: Sequence[Any]) -> Float[Array, ""]:
    """Noise of the logs' rows over that of their samples; raises `ModelError` where logs have different filters."""
    kinds = {None if f is None else (f.cutoff, f.decimation, f.reach) for f in (log.effort_filter for log in logs)}
    if len(kinds) > 1:
        told = ", ".join(
            f"'{log.name}' {'none' if log.effort_filter is None else f'{log.effort_filter.cutoff:g} Hz'}"
            for log in logs
        )
        raise ModelError(
            f"Torques: the efforts of the logs go through different filters: {told}. Read all of them with one cutoff "
            "and one period."
        )
    first = logs[0].effort_filter if logs else None
    return jnp.ones(()) if first is None else first.noise_gain
