"""Rollouts under a policy: with a memory of its own, data for each step, early ends, restarts and what to record."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from mbjax.errors import ModelError
from mbjax.execution import as_one_kernel, is_traced, keeps_found
from mbjax.kinematics import placed
from mbjax.model import MultibodyModel

from .ports import Inputs, as_inputs
from .rollout import checked_steps, checkpoint_interval, scan_in_chunks
from .state import State, as_state
from .step import advance, require_discrete


class PolicyStep(eqx.Module):
    """A step of `rollout_policy`, for `record`: the state before it, what acted in it, and the state after it.

    `memory` is the policy's before the step. `is_active` is false once the world has ended, and `ends` is true in the
    step that ends it.
    """

    state: State
    memory: Any
    data: Any
    inputs: Inputs
    after: State
    generalized_acceleration: Array
    net_actuation: Array
    constraint_forces: Array
    is_active: Bool[Array, ""]
    ends: Bool[Array, ""]


class PolicyRollout(eqx.Module):
    """The result of `rollout_policy`.

    `recorded` is what `record` returned, with a leading axis of steps. `num_steps` counts the steps that the world took
    before it ended, and `num_ends` how often it ended.
    """

    final_state: State
    memory: Any
    recorded: Any
    num_steps: Int[Array, "*batch"]
    num_ends: Int[Array, "*batch"]


class Carried(NamedTuple):
    """What passes from step to step."""

    state: State
    memory: Any
    is_active: Bool[Array, ""]
    num_steps: Int[Array, ""]
    num_ends: Int[Array, ""]


class Options(NamedTuple):
    """The functions of a rollout."""

    policy: Callable
    record: Callable
    until: Callable | None
    restart: Any  # a function, or a pair of `State` and memory, or None
    progress: Callable | None
    total: int


def recorded_after(step: PolicyStep) -> State:
    """The state after a step."""
    return step.after


def rollout_policy(
    model: MultibodyModel,
    state: State,
    policy: Callable[..., Any],
    num_steps: int | None = None,
    *,
    memory: Any = None,
    data: Any = None,
    record: Callable[[PolicyStep], Any] = recorded_after,
    until: Callable[[State], Any] | None = None,
    restart: Any = None,
    checkpoint: int | str | None = None,
    progress: int | Callable[[Any, int], None] | None = None,
) -> PolicyRollout:
    """Rolls out one world under a policy; `vmap` it over states, policies, models or data.

    `inputs, memory = policy(state, memory, data)` is called at each step. `memory` is any tree of arrays that the
    policy carries along: a filter, a recurrent network, a key. `data` has a leading axis of steps: references, pushes,
    or keys by `jax.random.split(key, num_steps)`. `record(step)` says what to keep of each `PolicyStep`; by default the
    state after it.

    A world ends where `until(state)` is true after a step. It then stays as it is, or goes on from `restart`: a `State`
    (with the first memory), or a function `restart(state, memory, data) -> (state, memory)`. Worlds are independent.

    `checkpoint` is as in `rollout`. `progress=k` prints every k steps; a function is called with the number of steps
    done and of all.
    """
    require_discrete(model)
    state = as_state(model, state)
    steps = number_of_steps(num_steps, data)
    if not callable(policy):
        raise ModelError(
            "rollout_policy: the policy must be a function policy(state, memory, data) -> (inputs, memory), got "
            f"{type(policy).__name__}. For inputs that are known beforehand use mbjax.rollout."
        )
    if restart is not None and until is None:
        raise ModelError("rollout_policy: restart= needs until=, which says when a world ends.")
    if isinstance(restart, State):
        restart = (as_state(model, restart), memory)
    told = progress if progress is None or callable(progress) else printed_every(progress)
    options = Options(policy, record, until, restart, told, steps)
    every = checkpoint_interval(checkpoint, steps)
    memory = jax.tree.map(jnp.asarray, memory)
    if told is None and is_traced(jax.tree.leaves((model, state, memory, data))):
        return take_policy_steps(model, state, memory, data, options, every)
    return take_each_policy_step(model, state, memory, data, options, every)


def take_each_policy_step(
    model: MultibodyModel, state: State, memory: Any, data: Any, options: Options, every: int | None
) -> PolicyRollout:
    """All steps of one world, as a scan."""
    model = placed(model, state, memory, data)
    body = functools.partial(one_policy_step, model, options)
    carry = Carried(state, memory, jnp.array(True), jnp.array(0), jnp.array(0))
    xs = (jnp.arange(options.total), data)
    end, recorded = scan_in_chunks(jax.checkpoint(body, policy=keeps_found), carry, xs, options.total, every)
    return PolicyRollout(end.state, end.memory, recorded, end.num_steps, end.num_ends)


take_policy_steps = as_one_kernel(take_each_policy_step)


def one_policy_step(model: MultibodyModel, options: Options, carry: Carried, xs: tuple) -> tuple[Carried, Any]:
    """One step of one world: the policy, the step, whether it ends, and from where it goes on."""
    number, data = xs
    if options.progress is not None:
        jax.debug.callback(functools.partial(tell, options.progress, options.total), number, ordered=False)
    chosen = options.policy(carry.state, carry.memory, data)
    if not isinstance(chosen, tuple) or len(chosen) != 2:
        raise ModelError(
            "rollout_policy: the policy must return a pair (inputs, memory), with None as the memory of a policy that "
            f"has none; got {type(chosen).__name__}."
        )
    inputs, memory = as_inputs(model, chosen[0]), chosen[1]
    require_same_memory(carry.memory, memory)
    after, sampled = advance(model, carry.state, inputs, reads_contacts=False)
    ends = jnp.array(False) if options.until is None else jnp.asarray(options.until(after)).astype(bool)
    ends &= carry.is_active
    if options.until is not None and options.restart is None:  # a world that has ended stays as it is
        after, memory = chosen_where(carry.is_active, (after, memory), (carry.state, carry.memory))
    step = PolicyStep(
        carry.state, carry.memory, data, inputs, after, sampled.vdot, sampled.u, sampled.multipliers,
        carry.is_active, ends,
    )  # fmt: skip
    recorded = options.record(step)
    kept, kept_memory, is_active = after, memory, carry.is_active & ~ends
    if options.restart is not None:
        function = options.restart
        first = function(after, memory, data) if callable(function) else function
        kept, kept_memory = chosen_where(ends, first, (after, memory))
        is_active = carry.is_active
    counted = carry.is_active.astype(carry.num_steps.dtype)
    counts = carry.num_steps + counted, carry.num_ends + ends.astype(carry.num_ends.dtype)
    return Carried(kept, kept_memory, is_active, *counts), recorded


def chosen_where(condition: Bool[Array, ""], first: Any, second: Any) -> Any:
    """The first tree where the condition holds, else the second."""
    return jax.tree.map(lambda a, b: jax.lax.select(condition, jnp.asarray(a, b.dtype), b), first, second)


def require_same_memory(before: Any, after: Any) -> None:
    """Raises `ModelError` for a memory that changes its structure, shapes or types in a step."""
    shapes = [[(x.shape, x.dtype) for x in map(jnp.asarray, jax.tree.leaves(tree))] for tree in (before, after)]
    if jax.tree.structure(before) != jax.tree.structure(after) or shapes[0] != shapes[1]:
        raise ModelError(
            f"rollout_policy: the policy must return a memory like the one it was given, {shown_tree(before)}; got "
            f"{shown_tree(after)}. Give the first one by memory=."
        )


def shown_tree(tree: Any) -> str:
    """A tree with its arrays as types and shapes."""
    return str(jax.tree.map(lambda x: f"{jnp.asarray(x).dtype.name}{list(jnp.shape(x))}", tree))


def number_of_steps(num_steps: int | None, data: Any) -> int:
    """The number of steps, given or that of the data."""
    lengths = {jnp.shape(x)[0] if jnp.ndim(x) else -1 for x in jax.tree.leaves(data)}
    if num_steps is None:
        if len(lengths) != 1 or -1 in lengths:
            raise ModelError("rollout_policy: give num_steps, or data with a leading axis of steps.")
        return lengths.pop()
    steps = checked_steps(num_steps)
    if lengths - {steps}:
        raise ModelError(
            f"rollout_policy: data must have a leading axis of {steps} steps, got lengths {sorted(lengths - {steps})}."
        )
    return steps


def printed_every(interval: int) -> Callable[[Any, int], None]:
    """Prints the number of steps done, every so many steps."""

    def tell_some(done: Any, total: int) -> None:
        if done % interval == 0 or done == total:
            print(f"rollout_policy: {done} of {total} steps")

    return tell_some


def tell(progress: Callable[[Any, int], None], total: int, number: Any) -> None:
    """Calls the progress function with the number of steps done, an int."""
    progress(int(number) + 1, total)
