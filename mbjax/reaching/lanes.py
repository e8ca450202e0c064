"""Many tasks at once: a lane that is done takes the next task, so that none waits for the slowest of its batch."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Float

from mbjax.execution import in_one_kernel, on_cpu

from .search import Found, Search, Settings, advance, begin, found_by, frozen_if_done, run
from .task import Task

LANES = 128
STEPS_A_TURN = 2  # between two looks at which lanes are done


def search_tasks(task: Task, settings: Settings, guess: Float[Array, " nq"]) -> Found:
    """What a task's search ends with; under `vmap`, of a batch of tasks in lanes."""
    numbers, rest = eqx.partition((task, settings, guess), eqx.is_array)
    leaves, treedef = jax.tree.flatten(numbers)

    def restored(leaves: Any) -> tuple[Task, Settings, Array]:
        return eqx.combine(jax.tree.unflatten(treedef, leaves), rest)

    @custom_vmap
    def search(*leaves: Array) -> Found:
        return in_one_kernel(lambda *leaves: found_by(run(*restored(leaves))), *leaves)

    @search.def_vmap
    def in_lanes(size: int, batched: list[bool], *leaves: Array) -> tuple[Found, Any]:
        def one_by_one(*leaves: Array) -> Found:
            return in_one_kernel(lambda *leaves: search_one_by_one(size, batched, leaves, restored), *leaves)

        def side_by_side(*leaves: Array) -> Found:
            return search_in_lanes(size, batched, leaves, restored)

        found = on_cpu(one_by_one, side_by_side, *leaves)
        return found, jax.tree.map(lambda _: True, found)

    return search(*leaves)


def search_one_by_one(size: int, batched: Any, leaves: tuple, restored: Any) -> Found:
    """All tasks of a batch in turn, in a loop that a CPU has as one kernel."""

    def of_task(place: Array) -> tuple:
        return tuple(
            lax.dynamic_index_in_dim(x, place, 0, False) if each else x for x, each in zip(leaves, batched, strict=True)
        )

    def turn(place: Array, found: Found) -> Found:
        one = found_by(run(*restored(of_task(place))))
        return jax.tree.map(lambda all, x: lax.dynamic_update_index_in_dim(all, x, place, 0), found, one)

    shapes = jax.eval_shape(lambda: found_by(begin(*restored(of_task(jnp.int32(0)))[::2])))
    nothing = jax.tree.map(lambda x: jnp.zeros((size, *x.shape), x.dtype), shapes)
    return lax.fori_loop(0, size, turn, nothing)


def search_in_lanes(size: int, batched: Any, leaves: tuple, restored: Any) -> Found:
    """All tasks of a batch; `batched` says which leaves have an axis of tasks."""
    lanes = min(size, LANES)
    axes = tuple(0 if each else None for each in batched)

    def of_tasks(places: Array) -> tuple:
        return tuple(x[places] if each else x for x, each in zip(leaves, batched, strict=True))

    def begun(*leaves: Array) -> Search:
        task, _, guess = restored(leaves)
        return begin(task, guess)

    def stepped(search: Search, *leaves: Array) -> Search:
        task, settings, guess = restored(leaves)
        return frozen_if_done(search, advance(task, settings, guess, search))

    def step_all(search: Search, own: tuple) -> Search:
        return jax.vmap(stepped, (0, *axes))(search, *own)

    def has_more(carry: tuple) -> Array:
        return jnp.any(carry[0] < size)

    def turn(carry: tuple) -> tuple:
        places, following, own, search, found = carry
        search = lax.fori_loop(0, STEPS_A_TURN, lambda _, each: step_all(each, own), search)
        is_done = search.is_done & (places < size)
        to = jnp.where(is_done, places, size)
        found = jax.tree.map(lambda all, x: all.at[to].set(x, mode="drop"), found, jax.vmap(found_by)(search))
        rank = jnp.cumsum(is_done.astype(jnp.int32))
        places = jnp.where(is_done, following + rank - 1, places)
        following = following + rank[-1]
        fresh_leaves = of_tasks(jnp.minimum(places, size - 1))
        begins = is_done & (places < size)
        fresh = jax.vmap(begun, axes)(*fresh_leaves)

        def chosen(new: Array, old: Array) -> Array:
            return jnp.where(begins.reshape(-1, *(1,) * (new.ndim - 1)), new, old)

        search = jax.tree.map(chosen, fresh, search)
        own = tuple(new if each else old for new, old, each in zip(fresh_leaves, own, batched, strict=True))
        return places, following, own, search, found

    places = jnp.arange(lanes, dtype=jnp.int32)
    own = of_tasks(places)
    search = jax.vmap(begun, axes)(*own)
    shapes = jax.eval_shape(jax.vmap(found_by), search)
    found = jax.tree.map(lambda x: jnp.zeros((size, *x.shape[1:]), x.dtype), shapes)
    carry = (places, jnp.asarray(lanes, jnp.int32), own, search, found)
    return lax.while_loop(has_more, turn, carry)[-1]
