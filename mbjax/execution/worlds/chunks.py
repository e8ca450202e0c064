"""Runs a function of many worlds: with the worlds on the last axis, and on a CPU chunk by chunk.

Where the function iterates, a chunk would take as long as its slowest world. It leaves its slow worlds to a late turn
instead, which goes on with those of several chunks together. A CPU takes few worlds one by one, in one kernel: to start
the many kernels of a chunk would take longer than to run them, and to compile them several times as long.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import ShapedArray
from jaxtyping import Array, Bool, Float, Int

from ..calls.compiled_calls import Flattened, compiled_whole
from ..targets.manual_axes import repeat_turns
from .transposition import worlds_first, worlds_last

CHUNK = 96  # worlds, up to a third more where that fits the batch better
SEARCHING_CHUNK = 128  # worlds of functions that search: for fewer, their many kernels start longer than they run
SMALLEST_CHUNK = 32  # worlds, where each has several tangents or many numbers
VECTOR = 8  # worlds; the rest of a chunk of another size is computed one by one, without vector instructions
ARRAY_BYTES = 5 << 21  # bytes of one argument in a chunk: trees of more than 1000 bodies have smaller chunks
FEW_NUMBERS = 1 << 13  # of all worlds in one argument: 8 worlds of a humanoid, 16 of a quadruped, 128 of a cart-pole
FEWEST_NUMBERS = 1 << 6  # of one world in an argument, where it has less
CHUNKS_A_LATE_TURN = 4  # each chunk may leave a quarter of its worlds to the late turn


def run_at_once(
    *args: Any,
    function: Callable,
    worlds: int | None,
    batched: Sequence[bool],
    summed: Sequence[bool],
    out: Sequence[ShapedArray],
    chunk: jax.Array | None = None,
    **_: Any,
) -> list:
    """Runs all worlds at once: last axis for `function`, first axis outside. `chunk` is the index in a rolled loop."""
    if worlds is None:
        return function(*args)
    if worlds == 0:
        return [jnp.zeros(x.shape if s else (0, *x.shape), x.dtype) for x, s in zip(out, summed, strict=True)]

    def computed(*inputs: Array) -> list:
        results = function(*inputs)
        return [
            jnp.sum(y, axis=-1) if s else jnp.broadcast_to(y, (*y.shape[:-1], worlds))
            for y, s in zip(results, summed, strict=True)
        ]

    of_worlds = iter(stored(chunk, [worlds_last(x) for x, b in zip(args, batched, strict=True) if b]))
    inputs = [next(of_worlds) if b else x[..., None] for x, b in zip(args, batched, strict=True)]
    results = computed(*inputs) if chunk is None else compiled_apart(chunk, computed, *inputs)
    return [y if s else worlds_first(y) for y, s in zip(results, summed, strict=True)]


def run_one_by_one(
    *args: Array,
    function: Callable,
    worlds: int,
    batched: Sequence[bool],
    summed: Sequence[bool],
    out: Sequence[ShapedArray],
    **_: Any,
) -> list:
    """Runs a function of one world for each of them, in a loop that is to be one kernel."""

    def turn(world: Array, found: list) -> list:
        results = function(*(world_at(x, world) if b else x for x, b in zip(args, batched, strict=True)))
        return [x + y if s else with_rows(x, y[None], world) for x, y, s in zip(found, results, summed, strict=True)]

    none = [jnp.zeros(x.shape if s else (worlds, *x.shape), x.dtype) for x, s in zip(out, summed, strict=True)]
    return repeat_turns(np.int32(worlds), turn, none)


def world_at(x: Float[Array, "n ..."], index: Array) -> Float[Array, "..."]:
    """What one of n worlds has of x."""
    return lax.dynamic_index_in_dim(x, index, 0, False, allow_negative_indices=False)


def are_few(worlds: int, arguments: Iterable[ShapedArray], several: int) -> bool:
    """Whether a CPU runs so many worlds about as fast one by one; a world's own tangents count little: measured."""
    numbers = worlds * max(largest_of(arguments), FEWEST_NUMBERS)
    return numbers * math.cbrt(several) <= FEW_NUMBERS


def largest_of(arguments: Iterable[ShapedArray]) -> int:
    """Count of the numbers in the largest argument of one world."""
    return max((math.prod(x.shape) for x in arguments if jnp.issubdtype(x.dtype, jnp.floating)), default=1)


def size_of_chunk(worlds: int, arguments: Sequence[ShapedArray], several: int, searches: bool = False) -> int:
    """Number of worlds in a chunk, from the size of one world's arguments: intermediates are about as large."""
    most = SEARCHING_CHUNK if searches else CHUNK
    width = max((x.dtype.itemsize for x in arguments if jnp.issubdtype(x.dtype, jnp.floating)), default=4)
    size = min(most // max(several, 1), ARRAY_BYTES // (max(largest_of(arguments), 1) * width))
    size = max(size - size % VECTOR, SMALLEST_CHUNK)
    if worlds <= size + 3 * size // 4:
        return worlds

    def cost(larger: int) -> int:
        """Worlds in all chunks, times their time: those of the largest chunks take a twelfth longer."""
        return -(-worlds // larger) * larger * (3 * size + larger)

    return min(range(size, size + size // 3 + 1, VECTOR), key=cost)


def run_in_chunks(*args: Any, worlds: int, **params: Any) -> list:
    """Runs all worlds chunk by chunk, and adds up the results that are summed over worlds.

    The last chunk begins within the one before if it has to. It runs first, so that the overlap is overwritten.
    """
    batched, summed, num_linear = params["batched"], params["summed"], params["num_linear"]
    function = params["function"]
    size = size_of_chunk(worlds, shapes_of_one(args, batched), params["several"], isinstance(function, Searching))
    if size == worlds:
        return run_at_once(*args, worlds=worlds, **params)
    chunks = -(-worlds // size)
    if isinstance(function, Searching) and function.search:
        return run_with_late_turns(args, worlds, size, function, batched, params["out"])
    again = chunks * size - worlds  # worlds of the last chunk that the chunk before has too

    def once(x: jax.Array) -> jax.Array:
        """Arguments that sums are linear in, with zeros for worlds met again, so that each world is counted once."""
        zeros = jnp.zeros((again, *x.shape[1:]), x.dtype)
        return jnp.concatenate([x[: -size + again], zeros, x[-size + again :]])

    counted = range(len(args) - num_linear, len(args)) if again and any(summed) else ()
    given = [once(x) if i in counted and batched[i] else x for i, x in enumerate(args)]

    def run_chunk(found: list, chunk: jax.Array) -> tuple[list, None]:
        chunk = of_several_kernels(chunk)
        start = jnp.minimum(chunk * size, worlds - size)
        starts = [chunk * size if i in counted else start for i in range(len(given))]
        inputs = [rows_from(x, at, size) if b else x for x, at, b in zip(given, starts, batched, strict=True)]
        new = run_at_once(*inputs, worlds=size, chunk=chunk, **params)
        return [x + y if s else with_rows(x, y, start) for x, y, s in zip(found, new, summed, strict=True)], None

    empty = [
        jnp.zeros(x.shape if s else (worlds, *x.shape), x.dtype) for x, s in zip(params["out"], summed, strict=True)
    ]
    return lax.scan(run_chunk, empty, jnp.arange(chunks), reverse=True)[0]


def shapes_of_one(args: Sequence, batched: Sequence[bool]) -> list[ShapedArray]:
    """Shapes and types of one world's arguments."""
    return [ShapedArray(x.shape[b:], x.dtype) for x, b in zip(args, batched, strict=True)]


def of_several_kernels(index: Int[Array, ""]) -> Int[Array, ""]:
    """Returns the index of a CPU's loop by way of a sort, which keeps the loop from becoming a single kernel.

    XLA of JAX 0.12 makes one kernel of any loop that it can, for one core to compile. No kernel may sort.
    """
    if jax.__version_info__ < (0, 12):
        return index
    return lax.sort(jnp.stack([index, index + 1]))[0]


def rows_from(x: Float[Array, "n ..."], start: Array, count: int) -> Float[Array, "count ..."]:
    """Reads `count` rows of x from `start`."""
    return lax.dynamic_slice_in_dim(x, start, count, allow_negative_indices=False)


def with_rows(x: Float[Array, "n ..."], rows: Float[Array, "k ..."], start: Array) -> Float[Array, "n ..."]:
    """Writes rows into x from `start`."""
    return lax.dynamic_update_slice_in_dim(x, rows, start, 0, allow_negative_indices=False)


class ResumedSearch(NamedTuple):
    """State that a turn's search starts from, the worlds it is for, and when it ends."""

    search: Any  # the state of each world's search after an earlier turn, as the function returned it
    goes_on: Bool[Array, ""]  # whether to go on from `search` rather than start anew
    wanted: Bool[Array, " w"]  # the other worlds count as finished from the start
    allowed: Int[Array, ""]  # how many worlds may be unfinished when the turn ends


@dataclass(frozen=True)
class Searching:
    """A searching function from the arrays among its arguments to a list: its results, then what it found."""

    function: Flattened
    search_treedef: Any
    search: tuple[ShapedArray, ...]  # shapes of one world's search state between iterations
    each_alone: bool = False  # on a CPU worlds run one by one, in one kernel

    def __call__(self, *leaves: Any) -> list:
        return jax.tree.leaves(compiled_whole(self.function)(*leaves)[:2])

    def turn(self, leaves: Sequence, search: Sequence, *begun: Array) -> tuple[list, list, Array]:
        """Runs some iterations only; returns results, each world's search state, and whether it would go on."""
        begun = ResumedSearch(jax.tree.unflatten(self.search_treedef, search), *begun)
        results, found, came = compiled_whole(self.function)(*leaves, found=begun)
        return jax.tree.leaves((results, found)), jax.tree.leaves(came), came.is_unfinished()


@dataclass(frozen=True)
class Given:
    """A searching function's results from its arrays and what it found, without searching again."""

    function: Flattened
    found_treedef: Any

    @property
    def count(self) -> int:
        """Number of arrays found: the last results of the searching function, the last arguments of this one."""
        return self.found_treedef.num_leaves

    def __call__(self, *leaves: Any) -> list:
        found = jax.tree.unflatten(self.found_treedef, leaves[-self.count :])
        return jax.tree.leaves(compiled_whole(self.function)(*leaves[: -self.count], found=found)[0])


def run_with_late_turns(
    args: Sequence, worlds: int, size: int, function: Searching, batched: Sequence[bool], out: Sequence[ShapedArray]
) -> list:
    """Runs each chunk until few of its worlds are unfinished; these go on together in late turns at the end.

    All turns are one rolled loop. Waiting worlds are kept in the order of their coming, with their search states.
    """
    chunks = -(-worlds // size)
    most_turns = chunks + -(-chunks // CHUNKS_A_LATE_TURN)
    allowed = (most_turns - chunks) * size // chunks
    lanes, ranks = jnp.arange(size), jnp.arange(allowed)

    def computed(*args: Any) -> tuple[list, list, Array]:
        results, search, is_unfinished = function.turn(*args)
        results, search = ([jnp.broadcast_to(y, (*y.shape[:-1], size)) for y in x] for x in (results, search))
        return results, search, is_unfinished

    def has_more(carry: tuple) -> Array:
        t, num_waiting, *_ = carry
        return (t < chunks) | ((t - chunks) * size < num_waiting)

    def run_turn(carry: tuple) -> tuple:
        t, num_waiting, waiting, sources, parts = carry
        is_late, first_waiting = t >= chunks, jnp.maximum(t - chunks, 0) * size
        world, *search = (lax.dynamic_slice_in_dim(x, first_waiting, size, -1) for x in waiting)
        own = t * size + lanes
        wanted = jnp.where(is_late, first_waiting + lanes < num_waiting, own < worlds)
        world = jnp.where(is_late, world, jnp.minimum(own, worlds - 1))
        rows = [x.at[world].get(mode="promise_in_bounds") for x, b in zip(args, batched, strict=True) if b]
        of_worlds = iter(stored(t, [jnp.moveaxis(x, 0, -1) for x in rows]))
        inputs = [next(of_worlds) if b else x[..., None] for x, b in zip(args, batched, strict=True)]
        begun = search, is_late, wanted, jnp.where(is_late, 0, allowed)
        results, search, is_unfinished = compiled_apart(t, computed, inputs, *begun)
        results = [jnp.moveaxis(y, -1, 0) for y in results]
        parts = [lax.dynamic_update_slice_in_dim(x, y, t * size, 0) for x, y in zip(parts, results, strict=True)]

        so_far = jnp.cumsum(is_unfinished & ~is_late)  # lane by lane
        lane = jnp.minimum(jnp.sum(so_far <= ranks[:, None], axis=1), size - 1)  # lanes of unfinished worlds, in order
        left = [x.at[..., lane].get(mode="promise_in_bounds") for x in (world, *search)]
        waiting = [lax.dynamic_update_slice_in_dim(x, y, num_waiting, -1) for x, y in zip(waiting, left, strict=True)]
        source = jnp.where(is_unfinished, chunks * size + num_waiting + so_far - 1, own)
        sources = lax.dynamic_update_slice_in_dim(sources, source, t * size, 0)
        return t + 1, num_waiting + so_far[-1], waiting, sources, parts

    zero, places = jnp.zeros((), lanes.dtype), (most_turns - chunks) * size + allowed
    waiting = [jnp.zeros(places, lanes.dtype), *(jnp.zeros((*x.shape, places), x.dtype) for x in function.search)]
    parts = [jnp.zeros((most_turns * size, *x.shape), x.dtype) for x in out]
    start = (zero, zero, waiting, jnp.zeros(most_turns * size, lanes.dtype), parts)
    *_, sources, parts = lax.while_loop(has_more, run_turn, start)
    return [x.at[sources[:worlds]].get(mode="promise_in_bounds") for x in parts]


def compiled_apart(index: jax.Array, function: Callable, *args: Any) -> Any:
    """Runs `function(*args)` in a rolled loop with this index, on a CPU as kernels that are not fused with the loop.

    XLA's CPU backend fuses arithmetic with what is read and written at the index. Such a kernel loads the index anew
    for each number, and has no vector instructions. A branch is not fused with what surrounds it. This one is always
    taken, but XLA does not know that the index is never negative.
    """

    once = jax.jit(function)  # traced once for both branches

    def never(*args: Any) -> Any:
        return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(once, *args))

    def branch(index: jax.Array, *args: Any) -> Any:
        return lax.cond(index >= 0, once, never, *args)

    return lax.platform_dependent(index, *args, cpu=branch, default=lambda _, *args: once(*args))


def stored(index: jax.Array | None, arrays: list) -> list:
    """Computes the arrays before anything else in a rolled loop reads them."""
    return arrays if index is None else compiled_apart(index, lambda *arrays: list(arrays), *arrays)
