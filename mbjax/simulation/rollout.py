"""Rollouts of many steps: a scan that carries the state alone, checkpointed for reverse mode."""

import dataclasses
import functools
import math
import operator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mbjax.errors import ModelError
from mbjax.execution import as_one_kernel, is_traced, keeps_found
from mbjax.execution.arrays import scan
from mbjax.kinematics import placed
from mbjax.model import MultibodyModel, summary_of
from mbjax.number_rules import as_numbers, as_traced_numbers, is_known, shown

from .idle_controllers import warn_of_idle_controllers
from .ports import AppliedSpatialForces, Inputs, as_inputs, require_controllers, require_numbers
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
        steps = checked_steps(num_steps)
        if not callable(inputs):
            require_axis_of_steps(inputs, steps)
        return None, steps
    if inputs is None or callable(inputs):
        raise ModelError("rollout: give num_steps, or inputs with a leading axis of steps.")
    if not isinstance(inputs, Inputs):
        require_numbers(inputs)
        if jnp.ndim(inputs) == 0:
            raise ModelError(
                f"rollout: the inputs are one number, {shown(inputs)}, without a leading axis of steps. If it is the "
                "number of steps, name it: num_steps=."
            )
        inputs = Inputs(actuation=inputs)
    require_axis_of_steps(inputs, num_steps)
    inputs = jax.tree.map(jnp.asarray, inputs, is_leaf=lambda x: isinstance(x, list | tuple))
    shapes = {field.name: field.shape for field in fields_with_numbers(inputs)}
    lengths = {shape[:1] for shape in shapes.values()}
    if len(lengths) != 1 or () in lengths:
        came = ", ".join(f"inputs.{name} of shape {shape}" for name, shape in shapes.items()) or "no arrays"
        raise ModelError(
            f"rollout: without num_steps all inputs need the same leading axis of steps, got {came}. Pass num_steps "
            "to hold inputs constant."
        )
    return inputs, lengths.pop()[0]


class FieldWithNumbers(NamedTuple):
    """A field of `Inputs`, its shape, and how many axes it has in one step."""

    name: str
    shape: tuple[int, ...]
    num_axes: int


def fields_with_numbers(inputs: Inputs) -> list[FieldWithNumbers]:
    """The fields that are given, those of instances and of spatial forces one by one."""
    found: list[tuple[str, Any, int]] = [
        (name, getattr(inputs, name), 1) for name in ("actuation", "desired_state", "applied_generalized_force")
    ]
    for name in ("instance_actuation", "instance_desired_state"):
        found += [(f"{name}[{key!r}]", value, 1) for key, value in (getattr(inputs, name) or {}).items()]
    if isinstance(inputs.applied_spatial_forces, AppliedSpatialForces):
        forces = inputs.applied_spatial_forces
        found += [(f"applied_spatial_forces.{name}", getattr(forces, name), 2) for name in ("F_Bq_W", "p_BoBq_B")]
    found.append(("node_forces", inputs.node_forces, 2))
    return [FieldWithNumbers(name, shape_of(name, x), num_axes) for name, x, num_axes in found if x is not None]


def shape_of(name: str, value: Any) -> tuple[int, ...]:
    """The shape of a field of the inputs, which may be a list."""
    numbers = value if hasattr(value, "shape") else as_numbers(value) if is_known(value) else as_traced_numbers(value)
    if numbers is None:
        raise ModelError(f"rollout: inputs.{name} must be an array of numbers, got {shown(value)}.")
    return numbers.shape


def require_axis_of_steps(inputs: Any, num_steps: int | None) -> None:
    """Raises `ModelError` for inputs that lack the axis of steps, or have one beside `num_steps`.

    The rows are checked step by step, but their shape alone would not tell what is wrong.
    """
    if not isinstance(inputs, Inputs):
        require_numbers(inputs)
        inputs = Inputs(actuation=inputs)
    for name, shape, num_axes in fields_with_numbers(inputs):
        if num_steps is None and len(shape) == num_axes:
            raise ModelError(
                f"rollout: inputs.{name} has shape {shape} and no axis of steps. Pass num_steps to hold all inputs "
                "over so many steps, or repeat it for each step: jnp.tile or jnp.broadcast_to."
            )
        if num_steps is not None and len(shape) == num_axes + 1:
            raise ModelError(
                f"rollout: inputs.{name} has shape {shape}, but with num_steps one row of shape {shape[1:]} is held "
                "over all steps. Leave num_steps out to give each step its row."
            )


def as_whole_number(value: Any) -> int | None:
    """The value as an int, or None if it is none; truth values are none."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def checked_steps(num_steps: Any) -> int:
    """The number of steps, checked to be a known whole number of at least 0."""
    steps = as_whole_number(num_steps)
    if steps is None or steps < 0:
        traced = "" if is_known(num_steps) else " It decides the program: with jax.jit name it in static_argnums."
        raise ModelError(f"rollout: num_steps must be at least 0 and a whole number, got {shown(num_steps)}.{traced}")
    return steps


def checkpoint_interval(checkpoint: Any, steps: int) -> int | None:
    """Number of steps between kept states; None keeps all states."""
    if checkpoint is None:
        return None
    if isinstance(checkpoint, str) and checkpoint == "sqrt":
        return max(1, math.isqrt(steps))
    every = as_whole_number(checkpoint)
    if every is None or every < 1:
        raise ModelError(
            f"rollout: checkpoint must be None, 'sqrt' or a whole number of steps >= 1, got {shown(checkpoint)}."
        )
    return every
