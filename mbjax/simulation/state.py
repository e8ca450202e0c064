"""The state of a model: positions, velocities and time alone."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from wadler_lindig import AbstractDoc, TextDoc

from mbjax.errors import ModelError
from mbjax.execution import of_one_model, require_one_model
from mbjax.model import (
    MultibodyModel,
    as_array,
    as_coordinates,
    find_keyframe,
    short_text,
    summary_html,
    summary_of,
    zero_where_locked,
)


class NodeState(eqx.Module):
    """Positions (n, 3) and velocities (n, 3) of the nodes of all deformable bodies, in the world."""

    position: Float[Array, "*batch n 3"]
    velocity: Float[Array, "*batch n 3"]


class State(eqx.Module):
    """A state: q (nq,), v (nv,) and time in s, which is zero by default, for each world of a batch.

    `nodes` holds the nodes of deformable bodies, and is None in a model without any.

    A time given as a number, or in another dtype than q, becomes an array of q's dtype, so that a compiled function of
    states needs no second program for it. `dataclasses.replace(state, time=1.0)` converts it too; `eqx.tree_at` inserts
    the given value unchanged.
    """

    q: Float[Array, "*batch nq"]
    v: Float[Array, "*batch nv"]
    time: Float[Array, "*batch"]
    nodes: NodeState | None

    def __init__(self, q: Any, v: Any, time: Any = None, nodes: NodeState | None = None):
        self.q = q
        self.v = v
        self.time = time_like(q, time)
        self.nodes = nodes

    def __str__(self) -> str:
        return summary_of("State, by name: mbjax.describe(model, state)", self._fields())

    def _fields(self) -> dict[str, Any]:
        fields = {"q": self.q, "v": self.v, "time": self.time}
        if self.nodes is not None:
            fields |= {"nodes.position": self.nodes.position, "nodes.velocity": self.nodes.velocity}
        return fields

    def __pdoc__(self, **options: Any) -> AbstractDoc:
        """The state's `repr`, by itself and within other records: its numbers in one line."""
        return TextDoc(f"State({', '.join(f'{name}={short_text(value)}' for name, value in self._fields().items())})")

    def _repr_html_(self) -> str:
        return summary_html("State, by name: mbjax.describe(model, state)", self._fields())


def with_coordinates(state: State, q: Any = None, v: Any = None) -> State:
    """The state with other positions or velocities; its time, and nodes of deformable bodies, stay."""
    return State(state.q if q is None else q, state.v if v is None else v, state.time, state.nodes)


def require_rigid_bodies_alone(
    model: MultibodyModel, call: str, instead: str = "write the loss with mbjax.rollout, which jax.grad differentiates"
) -> None:
    """Raises `ModelError` for a model with deformable bodies, whose nodes a caller does not carry along."""
    if model.deformables is not None:
        raise ModelError(
            f"{call}: the model has deformable bodies, whose nodes are no part of what is computed here. Leave them "
            f"out, or {instead}."
        )


def time_like(q: Any, time: Any) -> Any:
    """The time in the dtype of q, or zero if None; unchanged where q or the time is not numeric."""
    is_array = isinstance(q, jax.Array | np.ndarray)
    if not is_array or not jnp.issubdtype(q.dtype, jnp.floating):
        return time
    if time is None:
        return jnp.zeros(q.shape[:-1], q.dtype)
    if isinstance(time, jax.Array | type(q)) and time.dtype == q.dtype and not getattr(time, "weak_type", False):
        return time
    is_number = isinstance(time, int | float | np.number | jax.Array | np.ndarray) and not isinstance(time, bool)
    if not is_number or np.result_type(getattr(time, "dtype", float)).kind not in "iuf":
        return time
    return jnp.asarray(time, q.dtype)


@of_one_model
def default_state(model: MultibodyModel) -> State:
    """The model's default positions, at rest, at time zero."""
    return State(
        model.parameters.default_positions,
        jnp.zeros(model.num_velocities, model.dtype),
        jnp.zeros((), model.dtype),
        nodes_at_rest(model),
    )


def nodes_at_rest(model: MultibodyModel) -> NodeState | None:
    """Nodes of deformable bodies at their reference positions; None without any."""
    if model.deformables is None:
        return None
    X = model.deformables.rest_positions()
    return NodeState(X, jnp.zeros_like(X))


@of_one_model
def keyframe_state(model: MultibodyModel, name: str) -> State:
    """The named state of a file's keyframe or of `plant.add_keyframe`; `model.keyframe_names` has the names."""
    keyframe = find_keyframe(model.keyframes, name)
    return State(keyframe.q, keyframe.v, keyframe.time, nodes_at_rest(model))


def as_state(model: MultibodyModel, state: State) -> State:
    """The state with checked sizes, in the model's dtype as a scan's carry must be, and with locked joints at rest."""
    require_one_model(model)
    require_state(state)
    return State(
        as_coordinates("state.q", state.q, model.num_positions, model.dtype),
        zero_where_locked(model, as_coordinates("state.v", state.v, model.num_velocities, model.dtype)),
        as_time(state.time, model.dtype),
        as_nodes(model, state.nodes),
    )


def as_nodes(model: MultibodyModel, nodes: NodeState | None) -> NodeState | None:
    """The nodes with checked sizes; those of a state without any are at rest."""
    if model.deformables is None:
        if nodes is not None:
            raise ModelError("state.nodes: the model has no deformable bodies. Leave it out.")
        return None
    if nodes is None:
        return nodes_at_rest(model)
    count, found = model.deformables.mesh.num_nodes, {}
    for name in ("position", "velocity"):
        array = as_array(f"state.nodes.{name}", getattr(nodes, name), 3 * count, model.dtype)
        if array.shape != (count, 3):
            batch = " Use jax.vmap for a batch." if array.ndim > 2 else ""
            raise ModelError(f"state.nodes.{name} has shape {array.shape}, the model needs {(count, 3)}.{batch}")
        found[name] = array
    return NodeState(**found)


def as_time(time: Any, dtype: Any) -> Array:
    """The time of one world, in s, as a scalar array."""
    array = as_array("state.time", time, 1, dtype)
    if array.shape != ():
        raise ModelError(f"state.time has shape {array.shape}, one world has (). Use jax.vmap for a batch.")
    return array


def require_state(state: Any, call: str = "") -> None:
    """Raises `ModelError` for anything but a `State`, and says how to obtain one."""
    if isinstance(state, State):
        return
    hint = "make one by mbjax.State(q, v, time) or mbjax.default_state(model)"
    if isinstance(state, tuple) and state and isinstance(state[0], State):
        hint = "mbjax.step returns (state, outputs), take the first"
    elif hasattr(state, "final_state"):
        hint = "take its final_state"
    elif hasattr(state, "state"):
        hint = "take its state"
    place = f"{call}: " if call else ""
    raise ModelError(f"{place}the state must be a mbjax.State, got {type(state).__name__}: {hint}.")
