"""Many worlds: `for_worlds` runs a function of one world for as many as `jax.vmap` asks for, with derivatives.

`vmap` alone puts the batch first, and every intermediate array of all worlds then passes through memory.
`for_worlds` puts the worlds last, so that each number of a vector is a contiguous run of worlds. On a CPU it takes
them in chunks whose intermediate arrays stay in the cache. Its value is that of the plain function. Its
derivatives, of any order, are JAX's own derivatives of that function, run in the same layout.

A function given to `for_worlds` has arrays with components first, then bodies, and works whether or not a last
axis of worlds follows. If it does, arrays that all worlds share end in an axis of size one.
"""

import contextvars
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
from jax.core import ShapedArray, Tracer
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ..calls.compiled_calls import Flattened, compiled_whole, flatten, is_array, is_traced
from ..targets.cpu_kernel import without_sharding
from ..targets.manual_axes import varying_alike
from .chunks import Given, Searching, are_few, size_of_chunk
from .worlds_primitive import for_worlds_p

NO_MESH = jax.sharding.AbstractMesh((), ())


def for_worlds(function: Callable, *args: Any, several: int = 1, finds: bool = False, each_alone: bool = False) -> Any:
    """Returns `function(*args)`; arrays among the arguments may be batched by `vmap` and differentiated.

    Outside `jax.jit` the call is compiled too, once per function, shapes and static parts of the arguments. Chunks are
    `several` times smaller, for a function whose results have many numbers a world.

    With `finds`, the function returns three things: its results; what it found by iterating, numbers that no derivative
    passes through; and its search, all the numbers that an iteration starts from, with `is_unfinished()`. It takes
    what was found as the keyword `found`. Derivatives are those of `function(*args, found=found)`, which does not
    iterate again; `found` is kept between the passes, beside the arguments. `found` may also be a `ResumedSearch`: the
    function then goes on with that search. If its search is None, every chunk of worlds waits for its slowest world.
    With `each_alone`, a CPU runs its worlds one by one in one kernel, as pays where work differs between worlds.
    """
    leaves, flat = flatten(function, *jax.tree.flatten(args))
    if not finds and not is_traced(leaves):
        return compiled_whole(replace(flat, function=Traced(function, several)) if leaves else flat)(*leaves)
    arguments, worlds = tuple(without_sharding(jax.typeof(x)) for x in leaves), worlds_of_each(leaves)
    has_worlds = any(worlds) and not finds and not is_one_by_one(max(worlds), arguments, several)
    if has_worlds:
        arguments = as_in_chunk(arguments, worlds, several)
    out, out_treedef = results_of(flat, arguments, has_worlds, jax.dtypes.canonicalize_dtype(float))
    function, given = flat, None
    if finds:
        out_treedef, found, search = out_treedef.children()
        of_search, out = out[len(out) - search.num_leaves :], out[: len(out) - search.num_leaves]
        function = Searching(flat, search, of_search, each_alone)
        given = Given(flat, found) if found.num_leaves else None
    results = for_worlds_p.bind(
        *varying_alike(leaves),
        function=function,
        out=out,
        worlds=None,
        batched=(False,) * len(leaves),
        summed=(False,) * len(out),
        num_linear=0,
        moving=(),
        pull_back=None,
        unshared=(False,) * len(leaves),
        several=several,
        given=given,
    )
    return jax.tree.unflatten(out_treedef, results[: out_treedef.num_leaves])


@dataclass(frozen=True)
class Traced:
    """A call of `for_worlds` that is compiled as a whole where it is made outside `jax.jit`."""

    function: Callable
    several: int

    def __call__(self, *args: Any) -> Any:
        return for_worlds(self.function, *args, several=self.several)


def is_one_by_one(worlds: int, arguments: Sequence[ShapedArray], several: int) -> bool:
    """Whether so many worlds will be run one by one: the function is then traced for one."""
    return jax.default_backend() == "cpu" and are_few(worlds, arguments, several)


def as_in_chunk(arguments: Sequence[ShapedArray], worlds: Sequence[int], several: int) -> tuple[ShapedArray, ...]:
    """Shapes that `run_at_once` will call a function with, from those of one world, so that it is not traced again.

    They are right under one `vmap`; under several, over different arguments, the batch is larger.
    """
    size = max(worlds)
    if jax.default_backend() == "cpu":
        size = size_of_chunk(size, arguments, several)
    return tuple(ShapedArray((*x.shape, size if w else 1), x.dtype) for x, w in zip(arguments, worlds, strict=True))


@functools.lru_cache(maxsize=4096)
def results_of(
    flat: Flattened, arguments: tuple, has_worlds: bool, default_dtype: Any
) -> tuple[tuple[ShapedArray, ...], Any]:
    """Shapes and types of one world's results, and the tree they form."""
    del default_dtype  # the types depend on it
    with jax.sharding.use_abstract_mesh(NO_MESH):  # as where the function is lowered, which then finds it traced
        out, treedef = jax.tree.flatten(jax.eval_shape(compiled_whole(flat), *arguments))
    return tuple(ShapedArray(x.shape[: x.ndim - has_worlds], x.dtype) for x in out), treedef


def each_world(function: Callable, num_world_axes: int, *args: Any) -> Any:
    """Applies a function of one world to every world, for code inside `for_worlds` that knows of one only."""
    if num_world_axes == 0:
        return function(*args)
    arrays, static = eqx.partition(args, is_array)
    leaves, treedef = jax.tree.flatten(arrays)
    shared = [x.shape[-1] == 1 for x in leaves]
    leaves = [x[..., 0] if s else x for x, s in zip(leaves, shared, strict=True)]

    def flat(*leaves: Any) -> Any:
        return function(*eqx.combine(jax.tree.unflatten(treedef, leaves), static))

    if all(shared):
        return jax.tree.map(lambda y: y[..., None], flat(*leaves))
    return jax.vmap(flat, in_axes=[None if s else -1 for s in shared], out_axes=-1)(*leaves)


def is_batched(tree: Any) -> bool:
    """Whether `vmap` is known to run over any of the arrays; inside a `jit` or a loop under `vmap` it is not known."""
    return any(worlds_of_each(jax.tree.leaves(tree)))


def worlds_of_each(leaves: Iterable) -> list[int]:
    """Number of worlds that `vmap` is known to run each array over; 0 where it is not."""
    token = _worlds_seen.set(seen := [])
    found = []
    try:
        for x in leaves:
            seen.clear()
            if isinstance(x, Tracer):
                is_batched_p.bind(x)
            found.append(math.prod(seen) if seen else 0)
    finally:
        _worlds_seen.reset(token)
    return found


_worlds_seen: contextvars.ContextVar[list | None] = contextvars.ContextVar("worlds_seen", default=None)
is_batched_p = Primitive("is_batched")
is_batched_p.def_impl(lambda x: x)
is_batched_p.def_abstract_eval(lambda x: x)
ad.primitive_jvps[is_batched_p] = lambda x, dx: (is_batched_p.bind(x[0]), dx[0])


def see_batched(args: Sequence, dims: Sequence) -> tuple:
    """Batching rule of `is_batched_p`: notes the size of the batch, then asks an outer `vmap`."""
    seen = _worlds_seen.get()
    if seen is not None:  # else `vmap` batches a function that was traced, and had asked, before
        seen.append(args[0].shape[dims[0]])
        is_batched_p.bind(args[0])
    return args[0], dims[0]


batching.primitive_batchers[is_batched_p] = see_batched
mlir.register_lowering(is_batched_p, lambda _, x: [x])
