"""Trajectories that a live view plays: where each is at a time, and the inputs that act there."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from mbjax.model import MultibodyModel
from mbjax.simulation import State

from ..tracks import as_tracks, inputs_at, one_each


class Recording:
    """One trajectory or several over one another, each with its own times; given as `animate` takes them."""

    def __init__(self, call: str, model: MultibodyModel, trajectory: Any, inputs: Any) -> None:
        self.tracks = as_tracks(call, model, trajectory)
        self.inputs = one_each(call, "inputs", inputs, trajectory, self.tracks)
        self.start = min(float(track.time[0]) for track in self.tracks)
        self.end = max(float(track.time[-1]) for track in self.tracks)

    def positions(self, time: float) -> np.ndarray:
        """Positions (worlds, nq) of every trajectory at the recorded time that is nearest."""
        return np.stack([track.q[frame] for track, frame in zip(self.tracks, self._frames(time), strict=True)])

    def nodes(self, time: float) -> np.ndarray | None:
        """Nodes (worlds, n, 3) of deformable bodies at the recorded times that are nearest; None without any."""
        frames = zip(self.tracks, self._frames(time), strict=True)
        found = [np.asarray(track.nodes.position[frame]) for track, frame in frames if track.nodes is not None]
        return np.stack(found) if found else None

    def state(self, time: float) -> State:
        """The state of the first trajectory at the recorded time that is nearest."""
        return jax.tree.map(lambda x: x[0], self.tracks[0].at(np.array(self._frames(time)[:1])))

    def inputs_of_first(self, time: float) -> Any:
        """The inputs that act on the first trajectory then."""
        frames = np.array(self._frames(time)[:1])
        return jax.tree.map(lambda x: x[0], inputs_at("Viewer", self.tracks[0], self.inputs[0], frames))

    def after(self, time: float, elapsed: float) -> float:
        """The time to show `elapsed` seconds later; after the end it starts again."""
        return min(time + elapsed, self.end) if time < self.end else self.start

    def _frames(self, time: float) -> list[int]:
        return [int(np.argmin(np.abs(track.time - time))) for track in self.tracks]
