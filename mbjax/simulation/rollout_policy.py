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
from mbjax.number_rules import shown

from .ports import Inputs, as_inputs
from .rollout import as_whole_number, checked_steps, checkpoint_interval, scan_in_chunks
from .state import State, as_state
from .step import advance, require_discrete


class PolicyStep(eqx.Module):
    """A step of `rollout_policy`, for `record`: the state before it, what acted in it, and the state after it.

    `memory` is the policy's before the step. `is_active` is false once the world has ended, and `ends` is true in the
    step that ends it. In a world that has ended `state`, `memory` and `after` stay as they are, while `inputs`, the
    acceleration and the forces are those at the rollout's first state, where the policy is defined.
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
    (with the first memory), or a function `restart(state, memory, data) -> (state, memory)`. Worlds are independent. A
    policy need not be defined at the state where a world has ended: from then on it sees the first state and memory.

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
    require_functions(record, until, restart)
    if isinstance(restart, State):
        restart = (as_state(model, restart), memory)
    told = progress if progress is None or callable(progress) else printed_every(checked_interval(progress))
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
    body = functools.partial(one_policy_step, model, options, jax.lax.stop_gradient((state, memory)))
    carry = Carried(state, memory, jnp.array(True), jnp.array(0), jnp.array(0))
    xs = (jnp.arange(options.total), data)
    end, recorded = scan_in_chunks(jax.checkpoint(body, policy=keeps_found), carry, xs, options.total, every)
    return PolicyRollout(end.state, end.memory, recorded, end.num_steps, end.num_ends)


take_policy_steps = as_one_kernel(take_each_policy_step)


def one_policy_step(
    model: MultibodyModel, options: Options, first: tuple[State, Any], carry: Carried, xs: tuple
) -> tuple[Carried, Any]:
    """One step of one world: the policy, the step, whether it ends, and from where it goes on.

    A world that has ended steps from the rollout's `first` state and memory, and the result is dropped: at its own
    state the policy may be undefined, and zero times a derivative that is NaN would be NaN.
    """
    number, data = xs
    if options.progress is not None:
        jax.debug.callback(functools.partial(tell, options.progress, options.total), number, ordered=False)
    stays = options.until is not None and options.restart is None
    state, memory = carry.state, carry.memory
    if stays:
        state, memory = chosen_where(carry.is_active, (state, memory), first)
    chosen = options.policy(state, memory, data)
    if not isinstance(chosen, tuple) or len(chosen) != 2:
        raise ModelError(
            "rollout_policy: the policy must return a pair (inputs, memory), with None as the memory of a policy that "
            f"has none; got {type(chosen).__name__}."
        )
    inputs, memory = as_inputs(model, chosen[0]), chosen[1]
    require_same_memory("the policy", carry.memory, memory)
    after, sampled = advance(model, state, inputs, reads_contacts=False)
    if stays:
        after, memory = chosen_where(carry.is_active, (after, memory), (carry.state, carry.memory))
    ends = jnp.array(False) if options.until is None else truth_of(options.until(after))
    ends &= carry.is_active
    step = PolicyStep(
        carry.state, carry.memory, data, inputs, after, sampled.vdot, sampled.u, sampled.multipliers,
        carry.is_active, ends,
    )  # fmt: skip
    recorded = options.record(step)
    kept, kept_memory, is_active = after, memory, carry.is_active & ~ends
    if options.restart is not None:
        function = options.restart
        anew = restarted(model, memory, function(after, memory, data)) if callable(function) else function
        kept, kept_memory = chosen_where(ends, anew, (after, memory))
        is_active = carry.is_active
    counted = carry.is_active.astype(carry.num_steps.dtype)
    counts = carry.num_steps + counted, carry.num_ends + ends.astype(carry.num_ends.dtype)
    return Carried(kept, kept_memory, is_active, *counts), recorded


def chosen_where(condition: Bool[Array, ""], first: Any, second: Any) -> Any:
    """The first tree where the condition holds, else the second."""
    return jax.tree.map(lambda a, b: jax.lax.select(condition, jnp.asarray(a, b.dtype), b), first, second)


def truth_of(ended: Any) -> Bool[Array, ""]:
    """What `until` returned, as one truth value."""
    if ended is None or jnp.shape(ended) != ():
        came = "None" if ended is None else f"shape {jnp.shape(ended)}"
        raise ModelError(
            f"rollout_policy: until(state) must return one truth value, got {came}. Reduce many by jnp.any or jnp.all."
        )
    return jnp.asarray(ended).astype(bool)


def restarted(model: MultibodyModel, memory: Any, anew: Any) -> tuple[State, Any]:
    """What the function `restart` returned: a checked state, and a memory like the policy's."""
    if not isinstance(anew, tuple) or len(anew) != 2 or not isinstance(anew[0], State):
        raise ModelError(
            "rollout_policy: the function restart(state, memory, data) must return a pair (state, memory), with None "
            f"as the memory of a policy that has none; got {type(anew).__name__}."
        )
    require_same_memory("restart", memory, anew[1])
    return as_state(model, anew[0]), anew[1]


def require_functions(record: Any, until: Any, restart: Any) -> None:
    """Raises `ModelError` for a record, an end or a restart of the wrong kind."""
    if not callable(record):
        raise ModelError(
            f"rollout_policy: record must be a function record(step) of a mbjax.PolicyStep, got {shown(record)}. "
            "To keep nothing give lambda step: None."
        )
    if until is not None and not callable(until):
        raise ModelError(
            f"rollout_policy: until must be a function until(state) -> bool, or None for no end, got {shown(until)}."
        )
    if restart is not None and until is None:
        raise ModelError("rollout_policy: restart= needs until=, which says when a world ends.")
    if not (restart is None or callable(restart) or isinstance(restart, State)):
        raise ModelError(
            "rollout_policy: restart must be a mbjax.State, or a function restart(state, memory, data) -> (state, "
            f"memory), got {shown(restart)}."
        )


def require_same_memory(whose: str, before: Any, after: Any) -> None:
    """Raises `ModelError` for a memory that changes its structure, shapes or types in a step."""
    shapes = [[(x.shape, x.dtype) for x in map(jnp.asarray, jax.tree.leaves(tree))] for tree in (before, after)]
    if jax.tree.structure(before) != jax.tree.structure(after) or shapes[0] != shapes[1]:
        raise ModelError(
            f"rollout_policy: {whose} must return a memory like the one it was given, {shown_tree(before)}; got "
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


def checked_interval(progress: Any) -> int:
    """The number of steps between lines of progress."""
    interval = as_whole_number(progress)
    if interval is None or interval < 1:
        raise ModelError(
            "rollout_policy: progress must be a whole number of steps of at least 1, a function progress(done, total) "
            f"or None, got {shown(progress)}."
        )
    return interval


def printed_every(interval: int) -> Callable[[Any, int], None]:
    """Prints the number of steps done, every so many steps."""

    def tell_some(done: Any, total: int) -> None:
        if done % interval == 0 or done == total:
            print(f"rollout_policy: {done} of {total} steps")

    return tell_some


def tell(progress: Callable[[Any, int], None], total: int, number: Any) -> None:
    """Calls the progress function with the number of steps done, an int."""
    progress(int(number) + 1, total)
