"""Rollouts of many steps: a scan that carries the state alone, checkpointed for reverse mode."""

import dataclasses
import functools
import math
import operator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mbjax.errors import ModelError
from mbjax.execution import as_one_kernel, is_traced, keeps_found
from mbjax.execution.arrays import scan
from mbjax.kinematics import placed
from mbjax.model import MultibodyModel, summary_of
from mbjax.number_rules import is_known, shown

from .idle_controllers import warn_of_idle_controllers
from .ports import Inputs, as_inputs, require_controllers, require_numbers
from .state import NodeState, State, as_state
from .step import advance, require_discrete


class Trajectory(eqx.Module):
    """States at T + 1 times, including the initial one, and quantities sampled in the T steps between them."""

    q: Float[Array, "*batch steps+1 nq"]
    v: Float[Array, "*batch steps+1 nv"]
    time: Float[Array, "*batch steps+1"]
    generalized_acceleration: Float[Array, "*batch steps nv"]
    net_actuation: Float[Array, "*batch steps nu"]
    constraint_forces: Float[Array, "*batch steps nc"]  # λ, as in `Outputs`
    nodes: NodeState | None = None  # of deformable bodies
    deformables_converged: Bool[Array, "*batch steps bodies"] | None = None  # as in `Outputs`

    def __str__(self) -> str:
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        nodes, converged = fields.pop("nodes"), fields.pop("deformables_converged")
        if nodes is not None:
            fields["deformables_converged"] = converged
            fields |= {"nodes.position": nodes.position, "nodes.velocity": nodes.velocity}
        return summary_of("Trajectory, by name: mbjax.describe(model, trajectory)", fields)

    @property
    def final_state(self) -> State:
        """The last state of each world."""
        nodes = jax.tree.map(lambda x: x[..., -1, :, :], self.nodes)
        return State(self.q[..., -1, :], self.v[..., -1, :], self.time[..., -1], nodes)


def rollout(
    model: MultibodyModel,
    state: State,
    inputs: Any = None,
    num_steps: int | None = None,
    *,
    checkpoint: int | str | None = None,
) -> Trajectory:
    """Rolls out many steps from `state` under `inputs`.

    Without `num_steps` every array in `inputs` (an `Inputs` or a bare actuation array) has a leading axis of
    steps. With `num_steps` the inputs are held constant, or are a function `inputs(state)` called at each step.

    Reverse mode keeps the states and the solver's solutions, and recomputes the rest of each step. `checkpoint=k` keeps
    every k-th state only. `"sqrt"` chooses k so that the gradient's memory grows with the square root of the steps.
    """
    require_discrete(model)
    state = as_state(model, state)
    warn_of_idle_controllers("rollout", model, inputs)
    per_step, steps = split_inputs(inputs, num_steps)
    if per_step is not None:
        require_controllers(model, per_step)
    every = checkpoint_interval(checkpoint, steps)
    require_axis_of_steps(inputs, num_steps)
    if not callable(inputs):
        held = as_inputs(model, inputs) if per_step is None else None
        return take_steps(placed(model, state, held, per_step), state, held, per_step, steps, every)
    if is_traced(jax.tree.leaves((model, state))):
        return take_steps(placed(model, state), state, inputs, per_step, steps, every)
    # A function may read values that change between calls, so it is compiled only where the caller says so.
    return take_each_step(model, state, inputs, per_step, steps, every)


def take_each_step(
    model: MultibodyModel, state: State, held: Any, per_step: Any, steps: int, every: int | None
) -> Trajectory:
    """Steps under the inputs `per_step` or, if None, under `held`: constant inputs or a function of the state."""
    model = placed(model, state, held, per_step)

    @functools.partial(jax.checkpoint, policy=keeps_found)
    def one_step(state: State, step_inputs: Any) -> tuple[State, tuple]:
        chosen = held if per_step is None else step_inputs
        applied = as_inputs(model, chosen(state) if callable(chosen) else chosen)
        after, sampled = advance(model, state, applied, reads_contacts=False)
        found = None if sampled.nodes is None else sampled.nodes.converged
        return after, (after.q, after.v, after.time, after.nodes, sampled.vdot, sampled.u, sampled.multipliers, found)

    _, (q, v, time, nodes, vdot, u, multipliers, found) = scan_in_chunks(one_step, state, per_step, steps, every)
    return Trajectory(
        jnp.concatenate([state.q[None], q]),
        jnp.concatenate([state.v[None], v]),
        jnp.concatenate([state.time[None], time]),
        vdot,
        u,
        multipliers,
        jax.tree.map(lambda first, later: jnp.concatenate([first[None], later]), state.nodes, nodes),
        found,
    )


take_steps = as_one_kernel(take_each_step)


def scan_in_chunks(body: Any, carry: Any, xs: Any, length: int, every: int | None) -> tuple[Any, Any]:
    """Scans like `lax.scan`, but reverse mode keeps every `every`-th carry and recomputes the rest."""
    if every is None or every >= length:
        return scan(body, carry, xs, length=length)
    chunks, rest = divmod(length, every)

    @jax.checkpoint
    def chunk(carry: Any, xs: Any) -> tuple[Any, Any]:
        return scan(body, carry, xs, length=every)

    full = chunks * every
    head = jax.tree.map(lambda x: x[:full].reshape(chunks, every, *x.shape[1:]), xs)
    carry, ys = scan(chunk, carry, head, length=chunks)
    ys = jax.tree.map(lambda y: y.reshape(full, *y.shape[2:]), ys)
    if rest == 0:
        return carry, ys
    carry, tail = scan(body, carry, jax.tree.map(lambda x: x[full:], xs), length=rest)
    return carry, jax.tree.map(lambda a, b: jnp.concatenate([a, b]), ys, tail)


def split_inputs(inputs: Any, num_steps: int | None) -> tuple[Any, int]:
    """The inputs to scan over, or None where they are not per step, and the number of steps."""
    if num_steps is not None:
        return None, checked_steps(num_steps)
    if inputs is None or callable(inputs):
        raise ModelError("rollout: give num_steps, or inputs with a leading axis of steps.")
    if not isinstance(inputs, Inputs):
        require_numbers(inputs)
        if jnp.ndim(inputs) == 0:
            raise ModelError(
                f"rollout: the inputs are one number, {shown(inputs)}, without a leading axis of steps. If it is the "
                "number of steps, name it: num_steps=."
            )
        inputs = Inputs(actuation=jnp.asarray(inputs))
    lengths = {jnp.shape(x)[:1] for x in jax.tree.leaves(inputs)}
    if len(lengths) != 1 or () in lengths:
        shapes = ", ".join(str(jnp.shape(x)) for x in jax.tree.leaves(inputs)) or "no arrays"
        raise ModelError(
            f"rollout: without num_steps all inputs need the same leading axis of steps, got {shapes}. Pass num_steps "
            "to hold inputs constant."
        )
    return inputs, lengths.pop()[0]


def require_axis_of_steps(inputs: Any, num_steps: int | None) -> None:
    """Raises `ModelError` for actuation or a desired state that lacks the axis of steps, or has one beside `num_steps`.

    The rows are checked step by step, but their shape alone would not tell what is wrong.
    """
    if callable(inputs):
        return
    given = inputs if isinstance(inputs, Inputs) else Inputs(actuation=inputs)
    for name in ("actuation", "desired_state"):
        shape = jnp.shape(getattr(given, name)) if getattr(given, name) is not None else None
        if shape is None or len(shape) == (2 if num_steps is None else 1):
            continue
        if num_steps is None and len(shape) == 1:
            raise ModelError(
                f"rollout: inputs.{name} has shape {shape} and no axis of steps. Pass num_steps to hold it over so "
                "many steps, or give a row for each step."
            )
        if num_steps is not None and len(shape) == 2:
            raise ModelError(
                f"rollout: inputs.{name} has shape {shape}, but with num_steps one row is held over all steps. Leave "
                "num_steps out to give each step its row."
            )


def checked_steps(num_steps: Any) -> int:
    """The number of steps, checked to be a known whole number of at least 0."""
    try:
        steps = -1 if isinstance(num_steps, bool) else operator.index(num_steps)
    except TypeError:
        steps = -1
    if steps < 0:
        traced = "" if is_known(num_steps) else " It decides the program: with jax.jit name it in static_argnums."
        raise ModelError(f"rollout: num_steps must be at least 0 and a whole number, got {shown(num_steps)}.{traced}")
    return steps


def checkpoint_interval(checkpoint: int | str | None, steps: int) -> int | None:
    """Number of steps between kept states; None keeps all states."""
    if checkpoint is None:
        return None
    if checkpoint == "sqrt":
        return max(1, math.isqrt(steps))
    if isinstance(checkpoint, int) and checkpoint >= 1:
        return checkpoint
    raise ModelError(f"rollout: checkpoint must be None, 'sqrt' or a number of steps >= 1, got {checkpoint!r}.")
