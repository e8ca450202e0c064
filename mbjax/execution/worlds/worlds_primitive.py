"""Many worlds: the primitive behind `for_worlds`, and how it is batched, differentiated, transposed and lowered.

Its value is that of a function run over the worlds; its parameters are listed below.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, partial_eval

from ..targets.cpu_kernel import is_final, lower_as_one_kernel, lowered
from ..targets.gpu_kernels import are_interpreted, are_on
from ..targets.manual_axes import of_many_worlds, varying_as
from ..targets.platform_rules import register_by_platform
from .chunks import Searching, are_few, run_at_once, run_in_chunks, run_one_by_one, shapes_of_one
from .several_devices import is_shared_out, lower_in_shares

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

    Linear functions keep all results, as their transposes take a cotangent for each. Searching functions do, too, until
    the program is lowered.
    """
    equation = of_equation[-1]  # the only argument up to JAX 0.11; later versions put first which references are read
    params = equation.params
    if not any(is_read):
        return [False] * len(equation.invars), None
    searches_yet = isinstance(params["function"], Searching) and not (is_final() and params["worlds"] is None)
    if all(is_read) or params["pull_back"] is not None or searches_yet:
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
    """Lowers for a CPU: many worlds in chunks, few one by one in one kernel, and so a single one."""
    if are_interpreted():
        return lower_worlds_on_gpu(ctx, *args, **params)
    function = params["function"]
    if params["worlds"] is None:
        return lower_as_one_kernel(function, ctx, *args)
    if not params["worlds"]:
        return lower_chunks(ctx, *args, **params)
    is_each_alone = isinstance(function, Searching) and function.each_alone
    if is_each_alone or are_few(params["worlds"], shapes_of_one(ctx.avals_in, params["batched"]), params["several"]):
        one_by_one, in_chunks = (functools.partial(run, **params) for run in (run_one_by_one, run_in_chunks))
        return lower_as_one_kernel(one_by_one, ctx, *args, default=in_chunks)
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
register_by_platform(
    for_worlds_p, by_shares(lower_at_once), cpu=by_shares(lower_worlds_on_cpu), cuda=by_shares(lower_worlds_on_gpu)
)
