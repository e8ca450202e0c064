"""A recording: signals of any kind that were measured along one run, such as points on a body that a camera saw."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from mbjax.errors import ModelError

INSTEAD = "fit what a function of yours simulates with si.Predictions"  # where the nodes of deformable bodies move


class Recording(eqx.Module):
    """Measured signals of one run, a row a sample; `Predictions` fits them.

    Each channel has a name and a noise of its own, and one number a sample or more, such as the three coordinates of a
    point. NaN stands for what was not seen. `inputs` is anything that the prediction of this run needs beside the
    model: its start, its efforts.
    """

    time: Float[Array, " steps"]  # s
    values: Float[Array, "steps channels *numbers"]
    inputs: Any = None
    names: tuple[str, ...] = eqx.field(static=True, default=())
    name: str = eqx.field(static=True, default="recording")

    def __len__(self) -> int:
        return self.time.shape[0]

    @property
    def is_seen(self) -> Bool[Array, "steps channels *numbers"]:
        """False where a number was not measured."""
        return jnp.isfinite(self.values)

    def __str__(self) -> str:
        sizes = " x ".join(map(str, self.values.shape[1:]))
        return f"Recording '{self.name}': {len(self)} samples of {sizes} numbers, channels {', '.join(self.names)}"


def make_recording(
    time: Any, values: Any, *, names: Sequence[str] | None = None, inputs: Any = None, name: str = "recording"
) -> Recording:
    """A recording from an array with a row for each sample, then a channel, then the channel's numbers if many.

    Channels are named by their place where `names` are not given.
    """
    time, values = np.asarray(time, float), np.asarray(values, float)
    if values.ndim < 2 or time.shape != values.shape[:1] or not values.size:
        raise ModelError(
            f"{name}: values have shape {values.shape} and times {time.shape}; expected (samples, channels, …), with a "
            "row for each time."
        )
    if not np.all(np.isfinite(time)) or np.any(np.diff(time) <= 0.0):
        row = int(np.argmin(np.where(np.isfinite(np.diff(time)), np.diff(time), -np.inf)))
        raise ModelError(
            f"{name}: times must grow, but rows {row} and {row + 1} are at {time[row]:g} and {time[row + 1]:g} s."
        )
    if np.any(np.isinf(values)):
        place = tuple(int(i) for i in np.argwhere(np.isinf(values))[0])
        raise ModelError(f"{name}: values{list(place)} is infinite; NaN stands for what was not seen.")
    names = tuple(map(str, range(values.shape[1]))) if names is None else tuple(names)
    if len(names) != values.shape[1] or len(set(names)) != len(names):
        raise ModelError(f"{name}: names are {names}, expected {values.shape[1]} that differ, one for each channel.")
    unseen = np.flatnonzero(np.all(np.isnan(values), axis=(0, *range(2, values.ndim))))
    if unseen.size:
        raise ModelError(f"{name}: channel '{names[unseen[0]]}' was never seen, all its values are NaN; leave it out.")
    return Recording(jnp.asarray(time), jnp.asarray(values), inputs, names, name)
