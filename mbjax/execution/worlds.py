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
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import ShapedArray, Tracer
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir, partial_eval

from .chunks import Searching, run_at_once, run_in_chunks, size_of_chunk
from .compiled_calls import Flattened, compiled_whole, flatten, is_array, is_traced
from .cpu_kernel import lower_as_one_kernel, lowered, without_sharding
from .gpu_kernels import are_interpreted, are_on
from .manual_axes import of_many_worlds, varying_alike, varying_as
from .several_devices import is_shared_out, lower_in_shares

NO_MESH = jax.sharding.AbstractMesh((), ())


def for_worlds(function: Callable, *args: Any, several: int = 1, finds: bool = False) -> Any:
    """Returns `function(*args)`; arrays among the arguments may be batched by `vmap` and differentiated.

    Outside `jax.jit` the call is compiled too, once per function, shapes and static parts of the arguments. Chunks are
    `several` times smaller, for a function whose results have many numbers a world.

    With `finds`, the function returns three things: its results; what it found by iterating, numbers that no derivative
    passes through; and its search, all the numbers that an iteration starts from, with `is_unfinished()`. It takes
    what was found as the keyword `found`. Derivatives are those of `function(*args, found=found)`, which does not
    iterate again; `found` is kept between the passes, beside the arguments. `found` may also be a `ResumedSearch`: the
    function then goes on with that search. If its search is None, every chunk of worlds waits for its slowest world.
    """
    leaves, flat = flatten(function, *jax.tree.flatten(args))
    if not finds and not is_traced(leaves):
        return compiled_whole(replace(flat, function=Traced(function, several)) if leaves else flat)(*leaves)
    arguments, worlds = tuple(without_sharding(jax.typeof(x)) for x in leaves), worlds_of_each(leaves)
    has_worlds = any(worlds) and not finds
    if has_worlds:
        arguments = as_in_chunk(arguments, worlds, several)
    out, out_treedef = results_of(flat, arguments, has_worlds, jax.dtypes.canonicalize_dtype(float))
    function, given = flat, None
    if finds:
        out_treedef, found, search = out_treedef.children()
        of_search, out = out[len(out) - search.num_leaves :], out[: len(out) - search.num_leaves]
        function = Searching(flat, search, of_search)
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

# The primitive `for_worlds_p`. Its parameters:
#   function    maps arrays to a list of arrays
#   out         shape and type of each result, of one world
#   worlds      number of worlds, or None where the function is not batched
#   batched     per argument, whether it has the worlds, as its first axis
#   summed      per result, whether it is the sum over the worlds: the cotangent of an argument that they share
#   num_linear  how many of the last arguments the function is linear in: tangents or cotangents
#   moving      which arguments those tangents belong to; each has its own worlds where its tangent has
#   pull_back   the transpose: from the other arguments and cotangents of the results to cotangents of the linear ones
#   several     how many tangents or cotangents are run at one point: each number of the function becomes so many
#   unshared    per argument, whether each of several worlds needs its own copy: its cotangent is a result
#   given       the function that takes what it found, its last results, as last arguments; None if it does not search

for_worlds_p = Primitive("for_worlds")
for_worlds_p.multiple_results = True


def evaluate_worlds(*args: Any, **params: Any) -> list:
    """Runs the primitive outside `jit`: compiled all the same, unless `jax.disable_jit` is on."""
    if jax.config.jax_disable_jit:  # pyright: ignore[reportAttributeAccessIssue]
        return run_at_once(*args, **params)
    return compiled(tuple(params.items()))(*args)


@functools.lru_cache(maxsize=1024)
def compiled(params: tuple) -> Callable:
    """Compiles the primitive with these parameters as a program of its own."""
    return jax.jit(lambda *args: for_worlds_p.bind(*args, **dict(params)))


def abstract_results(
    *args: Any, out: Sequence, worlds: int | None, batched: Sequence[bool], summed: Sequence[bool], **_: Any
) -> list:
    """Shapes and types of the primitive's results."""
    if worlds is not None:
        of_worlds = list(itertools.compress(args, batched))
        out = [x if s else of_many_worlds(x, worlds, of_worlds) for x, s in zip(out, summed, strict=True)]
    return varying_as(args, out)


def batch_worlds(args: Sequence, dims: Sequence, **params: Any) -> tuple[list, list]:
    """Batching rule of `for_worlds_p`: adds a first axis of worlds, or merges one more with the axis there is."""
    worlds, batched, summed, unshared = (params.pop(k) for k in ("worlds", "batched", "summed", "unshared"))
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    args = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)]
    new = [d is not None for d in dims]
    if worlds is None:
        first_linear = len(args) - params["num_linear"]
        if params["num_linear"] and not any(new[:first_linear]):
            params |= {"batched": batched, "summed": summed, "unshared": unshared}
            return batch_tangents(args, new, size, **params)
        of_own_tangents = [i for k, i in enumerate(params["moving"]) if new[first_linear + k]]
        for i in range(len(args)):
            if (unshared[i] or i in of_own_tangents) and not new[i]:
                args[i], new[i] = jnp.broadcast_to(args[i], (size, *args[i].shape)), True
        params |= {"worlds": size, "batched": tuple(new), "summed": summed, "unshared": unshared}
        out = for_worlds_p.bind(*args, **params)
        return out, [0] * len(out)
    apart = any(summed)  # sums are over the inner worlds alone: taken outside, from results per world
    flags = [is_new or was or apart for is_new, was in zip(new, batched, strict=True)]
    for k, i in enumerate(params["moving"]):
        flags[i] |= flags[len(args) - params["num_linear"] + k]
    for i, x in enumerate(args):
        if flags[i]:
            inner = x.shape[new[i] + batched[i] :]
            x = x if new[i] else x[None]
            x = x if batched[i] else x[:, None]
            args[i] = jnp.broadcast_to(x, (size, worlds, *inner)).reshape(size * worlds, *inner)
    params |= {"worlds": size * worlds, "batched": tuple(flags), "summed": (False,) * len(summed), "unshared": unshared}
    out = [y.reshape(size, worlds, *y.shape[1:]) for y in for_worlds_p.bind(*args, **params)]
    return [jnp.sum(y, axis=1) if s else y for y, s in zip(out, summed, strict=True)], [0] * len(out)


def batch_tangents(args: Sequence, new: Sequence[bool], size: int, **params: Any) -> tuple[list, list]:
    """Runs several tangents or cotangents at one point, as Jacobians do: what depends on the point is computed once."""
    first_linear = len(args) - params["num_linear"]
    axes = tuple(0 if is_new else None for is_new in new)
    summed = tuple(not is_new for is_new in new[first_linear:])
    cotangent_axes = (*axes[:first_linear], *(0 for _ in params["out"]))
    changed = {
        "function": OfSeveral(params["function"], axes, (False,) * len(params["out"])),
        "pull_back": params["pull_back"] and OfSeveral(params["pull_back"], cotangent_axes, summed),
        "out": tuple(ShapedArray((size, *x.shape), x.dtype) for x in params["out"]),
        "several": params["several"] * size,
    }
    results = for_worlds_p.bind(*args, worlds=None, **(params | changed))
    return results, [0] * len(results)


@dataclass(frozen=True)
class OfSeveral:
    """A function under `vmap`, with some of its results summed."""

    function: Callable
    in_axes: tuple
    summed: tuple[bool, ...]

    def __call__(self, *args: Any) -> list:
        results = jax.vmap(lambda *x: tuple(self.function(*x)), in_axes=self.in_axes)(*args)
        return [jnp.sum(y, axis=0) if s else y for y, s in zip(results, self.summed, strict=True)]


def differentiate_worlds(primals: Sequence, tangents: Sequence, **params: Any) -> tuple:
    """Forward-mode rule of `for_worlds_p`: the tangent map is linear, and runs over the worlds as the function does."""
    out = for_worlds_p.bind(*primals, **params)
    moving = [i for i, t in enumerate(tangents) if type(t) is not ad.Zero]
    first_linear = len(primals) - params["num_linear"]
    if moving[0] >= first_linear:  # linear in all that moves: the function is its own derivative
        args = [*primals[:first_linear], *map(ad.instantiate_zeros, tangents[first_linear:])]
        return out, for_worlds_p.bind(*args, **params)

    function, given, batched, unshared = (params[k] for k in ("function", "given", "batched", "unshared"))
    num_results = len(out)
    if given is not None:
        function, num_results = given, len(out) - given.count
        primals = [*primals, *out[num_results:]]
        batched = (*batched, *(params["worlds"] is not None for _ in range(given.count)))
        unshared = (*unshared, *(False for _ in range(given.count)))
    # counts and flags have no tangents, nor has what was found
    moves = [is_inexact(x) and i < num_results for i, x in enumerate(params["out"])]
    wanted = tuple(moves[:num_results])
    changed = {
        "out": tuple(x for x, m in zip(params["out"], moves, strict=True) if m),
        "summed": tuple(s for s, m in zip(params["summed"], moves, strict=True) if m),
        "function": PushForward(function, tuple(moving), wanted),
        "given": None,
        "pull_back": PullBack(function, tuple(moving), wanted, len(primals)),
        "num_linear": len(moving),
        "moving": tuple(moving),
        "batched": (*batched, *(batched[i] for i in moving)),
        "unshared": (*unshared, *(unshared[i] for i in moving)),
    }
    found = iter(for_worlds_p.bind(*primals, *(tangents[i] for i in moving), **(params | changed)))
    return out, [
        next(found) if m else ad.Zero(jax.typeof(y).to_tangent_aval()) for y, m in zip(out, moves, strict=True)
    ]


@dataclass(frozen=True)
class PushForward:
    """Tangents of the results `wanted` of `function`, from its arguments and the tangents of those `moving`."""

    function: Callable
    moving: tuple[int, ...]
    wanted: tuple[bool, ...]  # of each of its results

    def __call__(self, *args: Any) -> list:
        primals, tangents = list(args[: -len(self.moving)]), list(args[-len(self.moving) :])
        for k, i in enumerate(self.moving):  # worlds may share the one and not the other
            primals[i], tangents[k] = jnp.broadcast_arrays(primals[i], tangents[k])
        moved = tuple(primals[i] for i in self.moving)
        return jax.jvp(of_moving(self.function, self.moving, primals, self.wanted), moved, tuple(tangents))[1]


@dataclass(frozen=True)
class PullBack:
    """Transpose of `PushForward`: cotangents of the arguments `moving`, from all arguments and results' cotangents."""

    function: Callable
    moving: tuple[int, ...]
    wanted: tuple[bool, ...]
    num_args: int

    def __call__(self, *args: Any) -> list:
        primals, cotangents = args[: self.num_args], args[self.num_args :]
        moved = (primals[i] for i in self.moving)
        out, pull = jax.vjp(of_moving(self.function, self.moving, primals, self.wanted), *moved)
        return list(pull([fit(ct, y) for ct, y in zip(cotangents, out, strict=True)]))


def of_moving(function: Callable, moving: Sequence[int], primals: Sequence, wanted: Sequence[bool]) -> Callable:
    """The wanted results of `function` as a function of the arguments `moving`, the others held."""

    def moved(*values: Any) -> list:
        args = list(primals)
        for i, value in zip(moving, values, strict=True):
            args[i] = value
        return [y for y, w in zip(function(*args), wanted, strict=True) if w]

    return moved


def is_inexact(x: Any) -> bool:
    """Whether x is of floats, so that it can have a tangent."""
    return jnp.issubdtype(x.dtype, jnp.inexact)


def fit(cotangent: jax.Array, like: jax.Array) -> jax.Array:
    """Gives a cotangent the worlds of its primal: repeats it, or sums it where all worlds share the primal."""
    if cotangent.shape == like.shape:
        return cotangent
    if cotangent.shape[-1] == 1:
        return jnp.broadcast_to(cotangent, like.shape)
    return jnp.sum(cotangent, axis=-1, keepdims=True)


def transpose_worlds(cotangents: Sequence, *args: Any, **params: Any) -> list:
    """Reverse-mode rule of `for_worlds_p`: cotangents of the linear arguments, summed over worlds that share one.

    Results without a cotangent are left out: nothing goes back through results of a step that a cost does not read.
    """
    batched, first_linear = params["batched"], len(args) - params["num_linear"]
    has_worlds = params["worlds"] is not None
    linear = [(x.aval, is_own) for x, is_own in zip(args[first_linear:], batched[first_linear:], strict=True)]
    function, pull_back, kept = of_results(
        params["function"], params["pull_back"], tuple(type(ct) is not ad.Zero for ct in cotangents)
    )
    cotangents = [ad.instantiate_zeros(ct) for ct, k in zip(cotangents, kept, strict=True) if k]
    results = for_worlds_p.bind(
        *args[:first_linear],
        *cotangents,
        function=pull_back,
        pull_back=function,
        out=tuple(ShapedArray(x.shape[1:] if is_own else x.shape, x.dtype) for x, is_own in linear),
        worlds=params["worlds"],
        batched=(*batched[:first_linear], *(has_worlds and not s for s in itertools.compress(params["summed"], kept))),
        summed=tuple(has_worlds and not is_own for _, is_own in linear),
        num_linear=len(cotangents),
        several=params["several"],
        moving=(),
        unshared=(*(i in params["moving"] for i in range(first_linear)), *(False for _ in cotangents)),
        given=None,
    )
    return [None] * first_linear + results


def of_results(function: Callable, pull_back: Callable, kept: tuple[bool, ...]) -> tuple[Callable, Callable, tuple]:
    """Restricts a linear function and its transpose to the results `kept`; a transpose itself keeps all results."""
    match function, pull_back:
        case PushForward(), PullBack():
            of_kept = iter(kept)
            wanted = tuple(w and next(of_kept) for w in function.wanted)
            return replace(function, wanted=wanted), replace(pull_back, wanted=wanted), kept
        case OfSeveral(), OfSeveral():
            inner, inner_pull_back, kept = of_results(function.function, pull_back.function, kept)
            summed = tuple(itertools.compress(function.summed, kept))
            num_args = len(pull_back.in_axes) - len(kept)
            axes = (*pull_back.in_axes[:num_args], *itertools.compress(pull_back.in_axes[num_args:], kept))
            return OfSeveral(inner, function.in_axes, summed), OfSeveral(inner_pull_back, axes, pull_back.summed), kept
        case _:
            return function, pull_back, (True,) * len(kept)


@dataclass(frozen=True)
class OfRead:
    """A function without the results that nothing reads."""

    function: Callable
    is_read: tuple[bool, ...]

    def __call__(self, *args: Any) -> list:
        return list(itertools.compress(self.function(*args), self.is_read))


def without_unread(is_read: Sequence[bool], *of_equation: Any) -> tuple[list[bool], Any]:
    """Rule by which JAX leaves out results that a program does not read; XLA could not within a kernel.

    Linear functions keep all results, as their transposes take a cotangent for each. Searching functions do, too.
    """
    equation = of_equation[-1]  # the only argument up to JAX 0.11; later versions put first which references are read
    params = equation.params
    if not any(is_read):
        return [False] * len(equation.invars), None
    if all(is_read) or params["pull_back"] is not None or isinstance(params["function"], Searching):
        return [True] * len(equation.invars), equation

    def read(x: Sequence) -> tuple:
        return tuple(itertools.compress(x, is_read))

    function = OfRead(params["function"], tuple(is_read))
    fewer = params | {"function": function, "out": read(params["out"]), "summed": read(params["summed"])}
    return [True] * len(equation.invars), equation.replace(outvars=list(read(equation.outvars)), params=fewer)


def keeps_found(primitive: Primitive, *_: Any, **params: Any) -> bool:
    """Policy for `jax.checkpoint`: keeps what was found by iterating, and has all else computed again."""
    return primitive is for_worlds_p and params["given"] is not None


lower_chunks, lower_at_once = lowered(run_in_chunks), lowered(run_at_once)


def by_shares(lower: Callable) -> Callable:
    """Lowers with the given rule on one device; on several, each device runs its share of the worlds."""

    def lower_shares(ctx: Any, *args: Any, **params: Any) -> Any:
        if not params["worlds"] or not is_shared_out(ctx):
            return lower(ctx, *args, **params)
        share = functools.partial(for_worlds_p.bind, **params)
        return lower_in_shares(ctx, share, *(params[k] for k in ("worlds", "batched", "summed", "out")), *args)

    return lower_shares


def lower_worlds_on_cpu(ctx: Any, *args: Any, **params: Any) -> Any:
    """Lowers for a CPU: many worlds in chunks, one world as one kernel."""
    if are_interpreted():
        return lower_worlds_on_gpu(ctx, *args, **params)
    if params["worlds"] is None:
        return lower_as_one_kernel(params["function"], ctx, *args)
    return lower_chunks(ctx, *args, **params)


def lower_worlds_on_gpu(ctx: Any, *args: Any, **params: Any) -> Any:
    """Lowers for a GPU: all worlds at once; one world as a batch of one, where the kernels are on."""
    if params["worlds"] is None and (are_on() or are_interpreted()):
        return lowered(functools.partial(run_only_world, params["function"]))(ctx, *args)
    return lower_at_once(ctx, *args, **params)


def run_only_world(function: Callable, *args: jax.Array) -> list:
    """Runs a function of many worlds on a single one."""
    return [y[..., 0] for y in function(*(x[..., None] for x in args))]


partial_eval.dce_rules[for_worlds_p] = without_unread
for_worlds_p.def_impl(evaluate_worlds)
for_worlds_p.def_abstract_eval(abstract_results)
batching.primitive_batchers[for_worlds_p] = batch_worlds
ad.primitive_jvps[for_worlds_p] = differentiate_worlds
ad.primitive_transposes[for_worlds_p] = transpose_worlds
mlir.register_lowering(for_worlds_p, by_shares(lower_at_once), cacheable=False)
mlir.register_lowering(for_worlds_p, by_shares(lower_worlds_on_cpu), platform="cpu", cacheable=False)
mlir.register_lowering(for_worlds_p, by_shares(lower_worlds_on_gpu), platform="cuda", cacheable=False)
