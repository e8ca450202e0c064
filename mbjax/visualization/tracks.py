"""Converts trajectories in any accepted form to tracks: NumPy arrays of one world each."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from mbjax.errors import ModelError
from mbjax.model import MultibodyModel
from mbjax.number_rules import shown
from mbjax.simulation import Inputs, NodeState, State
from mbjax.simulation.state import nodes_at_rest

# Number of axes of inputs in one world at one time; 1 for others.
NATURAL_AXES = {"applied_spatial_forces": 2, "node_forces": 2}


@dataclasses.dataclass(frozen=True)
class Track:
    """One world over T times: `q` (T, nq), `v` (T, nv), `time` (T,) in s, and `u` (T or T-1, nu) if known.

    `nodes` of deformable bodies, (T, n, 3), are None in a model without any.
    """

    label: str | None
    time: np.ndarray
    q: np.ndarray
    v: np.ndarray
    u: np.ndarray | None
    nodes: NodeState | None = None

    @property
    def num_frames(self) -> int:
        return len(self.time)

    def at(self, frames: np.ndarray) -> State:
        """States at these frames, stacked."""
        nodes = jax.tree.map(lambda x: jnp.asarray(x[frames]), self.nodes)
        return State(jnp.asarray(self.q[frames]), jnp.asarray(self.v[frames]), jnp.asarray(self.time[frames]), nodes)


def require_model(call: str, model: Any) -> None:
    """Raises `ModelError` for anything but a model in its place, such as a trajectory."""
    if not isinstance(model, MultibodyModel):
        raise ModelError(f"{call}: the first argument must be the model, got {type(model).__name__}.")


def as_tracks(call: str, model: MultibodyModel, trajectory: Any) -> list[Track]:
    """Converts a trajectory to the tracks to draw, in order, each checked.

    `trajectory` has q, v and time, like a `Trajectory` or a `State`: for one time, for many, or with a leading axis of
    worlds. Or it has such `states`, like a plan of `mbjax.trajectory_optimization`, and perhaps `efforts`. It may also
    be a list of these, or a dict by label.
    """
    if isinstance(trajectory, Mapping):
        named = [(str(label), each) for label, each in trajectory.items()]
    elif isinstance(trajectory, Sequence) and not (hasattr(trajectory, "q") or hasattr(trajectory, "states")):
        named = [(None, each) for each in trajectory]
    else:
        named = [(None, trajectory)]
    tracks = [track for label, each in named for track in _worlds(call, model, label, each)]
    if not tracks:
        raise ModelError(f"{call}: there is no trajectory to show. Give what rollout or simulate returned.")
    return tracks


def _worlds(call: str, model: MultibodyModel, label: str | None, trajectory: Any) -> list[Track]:
    states = trajectory if hasattr(trajectory, "q") else getattr(trajectory, "states", trajectory)
    if not all(hasattr(states, name) for name in ("q", "v", "time")):
        raise ModelError(
            f"{call}: a trajectory needs q, v and time, and a value of type {type(trajectory).__name__} lacks some of "
            "them. Give what rollout or simulate returned, a State, a plan, or a list or dict of these."
        )
    q, v, time = (np.asarray(x) for x in (states.q, states.v, states.time))
    effort = getattr(trajectory, "net_actuation", getattr(trajectory, "efforts", None))
    u = None if effort is None else np.asarray(effort)
    if q.ndim == 1:
        q, v, time = q[None], v[None], time.reshape(1)
        u = None
    if q.ndim == 2:
        q, v, u = q[None], v[None], None if u is None else u[None]
    time = np.broadcast_to(time, q.shape[:-1]) if time.shape in (q.shape[:-1], q.shape[1:2]) else time
    expected = (*q.shape[:2], model.num_positions), (*q.shape[:2], model.num_velocities), q.shape[:2]
    if q.ndim != 3 or (q.shape, v.shape, time.shape) != expected:
        raise ModelError(
            f"{call}: the trajectory has q of shape {np.shape(states.q)}, v {np.shape(states.v)} and time "
            f"{np.shape(states.time)}; this model needs (T, {model.num_positions}), (T, {model.num_velocities}) "
            "and (T,), or one more leading axis for several worlds. Is it a trajectory of another model?"
        )
    nodes = _nodes(call, model, getattr(states, "nodes", None), q.shape[:2])
    return [
        Track(label, time[w], q[w], v[w], None if u is None else u[w], jax.tree.map(lambda x, w=w: x[w], nodes))
        for w in range(len(q))
    ]


def _nodes(call: str, model: MultibodyModel, nodes: Any, worlds_and_times: tuple[int, ...]) -> NodeState | None:
    """Nodes (W, T, n, 3) of a trajectory's deformable bodies; they are at rest where a trajectory has none."""
    if model.deformables is None:
        if nodes is not None:
            raise ModelError(
                f"{call}: the trajectory has nodes of deformable bodies, and this model has none. Is it a trajectory "
                "of another model?"
            )
        return None
    if nodes is None:
        nodes = nodes_at_rest(model)
        return jax.tree.map(lambda x: np.broadcast_to(np.asarray(x), (*worlds_and_times, *x.shape)), nodes)
    count = model.deformables.mesh.num_nodes
    expected, found = (*worlds_and_times, count, 3), {}
    for name in ("position", "velocity"):
        array = np.asarray(getattr(nodes, name))
        missing = len(expected) - array.ndim
        if array.shape != expected[missing:] or expected[:missing] != (1,) * missing:
            raise ModelError(
                f"{call}: the trajectory's nodes.{name} has shape {array.shape}; this model has {count} nodes, so that "
                f"its q of {worlds_and_times} worlds and times needs {expected}. Is it a trajectory of another model?"
            )
        found[name] = array.reshape(expected)
    return NodeState(**found)


def one_each(call: str, what: str, given: Any, trajectory: Any, tracks: Sequence[Track]) -> list[Any]:
    """The value given for each track: by label, one per trajectory, or one for all.

    For a single trajectory a list of numbers is an array, as `rollout` takes it.
    """
    if isinstance(given, Mapping):
        if not isinstance(trajectory, Mapping):
            raise ModelError(
                f"{call}: {what} must not be a dict, for the trajectories have no labels: give a list, one each, or a "
                "dict of trajectories with the same labels."
            )
        unknown = [label for label in given if str(label) not in {track.label for track in tracks}]
        if unknown:
            raise ModelError(f"{call}: {what} for '{unknown[0]}', but the trajectories are {list(trajectory)}.")
        of_label: dict[str | None, Any] = {str(label): each for label, each in given.items()}
        return [of_label.get(track.label) for track in tracks]
    if len(tracks) == 1 and isinstance(given, (list, tuple)) and given and all(map(is_number, given)):
        return [np.asarray(given)]
    if isinstance(given, (list, tuple)):
        if len(given) != len(tracks):
            raise ModelError(f"{call}: {len(given)} {what} for {len(tracks)} trajectories. Give one each.")
        return list(given)
    return [given] * len(tracks)


def is_number(x: Any) -> bool:
    """Whether it is one number rather than an array, a record or nothing."""
    return isinstance(x, int | float | np.number) or (isinstance(x, np.ndarray | jax.Array) and x.ndim == 0)


def frames_to_show(time: Float[np.ndarray, " T"], frames_per_second: float) -> Int[np.ndarray, " F"]:
    """Indices of about `frames_per_second` frames a second, first and last included; all if there are fewer."""
    if len(time) < 2 or not np.all(np.diff(time) > 0.0):
        return np.arange(len(time))
    count = np.floor((time[-1] - time[0]) * frames_per_second * (1.0 + 1e-6))
    if count >= len(time) - 1:
        return np.arange(len(time))
    wanted = time[0] + np.arange(int(count) + 1) / frames_per_second
    after = np.clip(np.searchsorted(time, wanted), 1, len(time) - 1)
    nearest = np.where(wanted - time[after - 1] < time[after] - wanted, after - 1, after)
    return np.unique(np.concatenate([[0], nearest, [len(time) - 1]]))


def inputs_at(call: str, track: Track, inputs: Any, frames: np.ndarray) -> Inputs:
    """Inputs that act from each frame on, stacked: given as `rollout` takes them, or the recorded efforts.

    The last frame has no step of its own and takes the inputs of the one before.
    """
    if inputs is None:
        if track.u is None or not len(track.u):
            return Inputs()
        return Inputs(actuation=jnp.asarray(track.u[np.minimum(frames, len(track.u) - 1)]))
    if callable(inputs):
        given = jax.vmap(inputs)(track.at(frames))
        return given if isinstance(given, Inputs) else Inputs(actuation=given)
    if not isinstance(inputs, Inputs):
        try:
            inputs = Inputs(actuation=jnp.asarray(inputs))
        except (TypeError, ValueError):
            raise ModelError(
                f"{call}: inputs must be mbjax.Inputs(...), an array of actuation, or a function of the state; got "
                f"{shown(inputs)}."
            ) from None
    extra = {
        np.ndim(leaf) - NATURAL_AXES.get(field.name, 1)
        for field in dataclasses.fields(inputs)
        for leaf in jax.tree.leaves(getattr(inputs, field.name))
    }
    if extra <= {0}:
        return jax.tree.map(lambda x: jnp.broadcast_to(jnp.asarray(x), (len(frames), *np.shape(x))), inputs)
    shapes = sorted({np.shape(leaf) for leaf in jax.tree.leaves(inputs)})
    steps = {shape[:1] for shape in shapes}
    if extra != {1} or not steps <= {(track.num_frames,), (track.num_frames - 1,)}:
        hint = " One number alone has no axis of actuators: give an array (nu,)." if () in steps else ""
        raise ModelError(
            f"{call}: inputs must be held constant or have {track.num_frames - 1} steps, as the trajectory has; got "
            f"arrays of shapes {shapes}.{hint}"
        )
    chosen = np.minimum(frames, min(steps)[0] - 1)
    return jax.tree.map(lambda x: jnp.asarray(x)[chosen], inputs)


@eqx.filter_jit
def of_states(function: Any, model: MultibodyModel, states: State, inputs: Inputs | None = None) -> Any:
    """Maps `function(model, state)` or `(model, state, inputs)` over states; compiles once per function and shape."""
    if inputs is None:
        return jax.vmap(lambda state: function(model, state))(states)
    return jax.vmap(lambda state, inputs: function(model, state, inputs))(states, inputs)
