"""Many worlds at once: how a function of one world is run under `jax.vmap`.

`vmap` alone puts the batch first, and every intermediate array of all worlds then passes through memory.
`for_worlds` puts the worlds last, so that each number of a vector is a contiguous run of worlds, and on a CPU
takes them in chunks whose intermediate arrays stay in the cache. Its value is that of the plain function; its
derivatives, of any order, are JAX's own derivatives of it, run in the same layout.

A function given to `for_worlds` has arrays with components first, then bodies, and works whether or not a last
axis of worlds follows. Where one follows, arrays that all worlds share end in an axis of size one.
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

CHUNK_BYTES = 1024  # of one number for all worlds of a chunk: 256 worlds in float32, 128 in float64


def is_array(x: Any) -> bool:
    """Whether x may have an axis of worlds: NumPy's arrays count."""
    return isinstance(x, jax.Array | np.ndarray)


def for_worlds(function: Callable, *args: Any) -> Any:
    """`function(*args)`, where arrays among the arguments may be batched by `vmap` and differentiated."""
    arrays, static = eqx.partition(args, is_array)
    leaves, treedef = jax.tree.flatten(arrays)
    out_treedef = None

    def flat(*leaves: Any) -> list:
        nonlocal out_treedef
        out, out_treedef = jax.tree.flatten(function(*eqx.combine(jax.tree.unflatten(treedef, leaves), static)))
        return out

    out = jax.eval_shape(flat, *leaves)
    results = for_worlds_p.bind(
        *leaves,
        function=flat,
        out=tuple(ShapedArray(x.shape, x.dtype) for x in out),
        worlds=None,
        batched=(False,) * len(leaves),
        summed=(False,) * len(out),
        num_linear=0,
        moving=(),
        pull_back=None,
        unshared=(False,) * len(leaves),
    )
    assert out_treedef is not None
    return jax.tree.unflatten(out_treedef, results)


def each_world(function: Callable, num_world_axes: int, *args: Any) -> Any:
    """`function` of one world applied to every one, for code inside `for_worlds` that knows of one only."""
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


# The primitive. Its parameters:
#   function    of the arrays, to a list of arrays
#   out         shape and type of each result, of one world
#   worlds      how many, or None for a function not batched
#   batched     per argument, whether it has the worlds, as its first axis
#   summed      per result, whether it is the sum over the worlds: the cotangent of what they share
#   num_linear  how many arguments, the last ones, the function is linear in: tangents or cotangents
#   moving      which arguments those tangents belong to; they have their own worlds where their tangents have
#   pull_back   the transpose: from the other arguments and cotangents of the results to cotangents of the linear ones
#   unshared    per argument, whether each world needs its own if there are several: its cotangent is a result

for_worlds_p = Primitive("for_worlds")
for_worlds_p.multiple_results = True


def run(*args: Any, function: Callable, worlds: int | None, batched: Sequence[bool], summed: Sequence[bool], **_: Any):
    """All worlds at once: last in the arrays that `function` sees, first in those outside."""
    if worlds is None:
        return function(*args)
    inside = [jnp.moveaxis(x, 0, -1) if b else x[..., None] for x, b in zip(args, batched, strict=True)]
    return [
        jnp.sum(y, axis=-1) if s else jnp.moveaxis(jnp.broadcast_to(y, (*y.shape[:-1], worlds)), -1, 0)
        for y, s in zip(function(*inside), summed, strict=True)
    ]


def run_in_chunks(*args: Any, worlds: int | None, **params: Any) -> list:
    """The same chunk by chunk, with the sums gathered up."""
    batched, summed, num_linear = params["batched"], params["summed"], params["num_linear"]
    width = max((x.dtype.itemsize for x in args if jnp.issubdtype(x.dtype, jnp.floating)), default=4)
    size = CHUNK_BYTES // width
    if worlds is None or worlds <= size + size // 2:
        return run(*args, worlds=worlds, **params)
    chunks = -(-worlds // size)
    size = -(-worlds // chunks)
    missing = chunks * size - worlds

    def divide(x: jax.Array, is_linear: bool) -> jax.Array:
        if missing:  # the last world again; what is linear gets zeros, which leave the sums as they are
            last = jnp.zeros_like(x[-1:]) if is_linear else x[-1:]
            x = jnp.concatenate([x, jnp.broadcast_to(last, (missing, *x.shape[1:]))])
        return x.reshape(chunks, size, *x.shape[1:])

    first_linear = len(args) - num_linear
    divided = [divide(x, i >= first_linear) for i, x in enumerate(args) if batched[i]]

    def run_chunk(sums: list, chunk: list) -> tuple[list, list]:
        rest = iter(chunk)
        results = run(*(next(rest) if b else x for x, b in zip(args, batched, strict=True)), worlds=size, **params)
        new = iter([y for y, s in zip(results, summed, strict=True) if s])
        return [total + next(new) for total in sums], [y for y, s in zip(results, summed, strict=True) if not s]

    zeros = [jnp.zeros(x.shape, x.dtype) for x, s in zip(params["out"], summed, strict=True) if s]
    sums, parts = lax.scan(run_chunk, zeros, divided)
    totals, wholes = iter(sums), iter(y.reshape(chunks * size, *y.shape[2:])[:worlds] for y in parts)
    return [next(totals) if s else next(wholes) for s in summed]


def abstract_results(*_: Any, out: Sequence, worlds: int | None, summed: Sequence[bool], **__: Any) -> list:
    """Shapes and types of the results."""
    if worlds is None:
        return list(out)
    return [x if s else ShapedArray((worlds, *x.shape), x.dtype) for x, s in zip(out, summed, strict=True)]


def batch(args: Sequence, dims: Sequence, **params: Any) -> tuple[list, list]:
    """The rule of `vmap`: a first axis of worlds, or one more, merged with the one there is."""
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
    """Several tangents, or cotangents, at one point, as in Jacobians: what depends on the point is computed once."""
    function, pull_back, out = (params.pop(k) for k in ("function", "pull_back", "out"))
    first_linear = len(args) - params["num_linear"]
    axes = [0 if is_new else None for is_new in new]

    def of_all(*args: Any) -> list:
        return list(jax.vmap(lambda *x: tuple(function(*x)), in_axes=axes)(*args))

    def pull_back_all(*args: Any) -> list:
        in_axes = [*axes[:first_linear], *(0 for _ in out)]
        results = jax.vmap(lambda *x: tuple(pull_back(*x)), in_axes=in_axes)(*args)
        return [y if a == 0 else jnp.sum(y, axis=0) for y, a in zip(results, axes[first_linear:], strict=True)]

    out = tuple(ShapedArray((size, *x.shape), x.dtype) for x in out)
    results = for_worlds_p.bind(
        *args, function=of_all, pull_back=pull_back and pull_back_all, out=out, worlds=None, **params
    )
    return results, [0] * len(results)


def differentiate(primals: Sequence, tangents: Sequence, **params: Any) -> tuple:
    """The forward rule: the tangent is linear in the tangents, and run over the worlds like the function itself."""
    function, batched, unshared = (params[k] for k in ("function", "batched", "unshared"))
    out = for_worlds_p.bind(*primals, **params)
    moving = [i for i, t in enumerate(tangents) if type(t) is not ad.Zero]
    first_linear = len(primals) - params["num_linear"]
    if moving[0] >= first_linear:  # linear in all that moves: its own derivative
        args = [*primals[:first_linear], *map(ad.instantiate_zeros, tangents[first_linear:])]
        return out, for_worlds_p.bind(*args, **params)

    def at(primals: Sequence) -> Callable:
        def of_moving(*moved: Any) -> list:
            full = dict(enumerate(primals)) | dict(zip(moving, moved, strict=True))
            return list(function(*(full[i] for i in range(len(primals)))))

        return of_moving

    def push_forward(*args: Any) -> list:
        primals, moved = list(args[: -len(moving)]), list(args[-len(moving) :])
        for k, i in enumerate(moving):  # worlds may share the one and not the other
            primals[i], moved[k] = jnp.broadcast_arrays(primals[i], moved[k])
        return jax.jvp(at(primals), tuple(primals[i] for i in moving), tuple(moved))[1]

    def pull_back(*args: Any) -> list:
        primals, cotangents = args[: -len(params["out"])], args[-len(params["out"]) :]
        out, pull = jax.vjp(at(primals), *(primals[i] for i in moving))
        return list(pull([fit(ct, y) for ct, y in zip(cotangents, out, strict=True)]))

    changed = {
        "function": push_forward,
        "pull_back": pull_back,
        "num_linear": len(moving),
        "moving": tuple(moving),
        "batched": (*batched, *(batched[i] for i in moving)),
        "unshared": (*unshared, *(unshared[i] for i in moving)),
    }
    return out, for_worlds_p.bind(*primals, *(tangents[i] for i in moving), **(params | changed))


def fit(cotangent: jax.Array, like: jax.Array) -> jax.Array:
    """The cotangent with the worlds of what it belongs to: repeated, or summed where that is the same in all."""
    if cotangent.shape == like.shape:
        return cotangent
    if cotangent.shape[-1] == 1:
        return jnp.broadcast_to(cotangent, like.shape)
    return jnp.sum(cotangent, axis=-1, keepdims=True)


def transpose(cotangents: Sequence, *args: Any, **params: Any) -> list:
    """The reverse rule: cotangents of the linear arguments; of what all worlds share, the sum over the worlds."""
    batched, first_linear = params["batched"], len(args) - params["num_linear"]
    has_worlds = params["worlds"] is not None
    linear = [(x.aval, is_own) for x, is_own in zip(args[first_linear:], batched[first_linear:], strict=True)]
    results = for_worlds_p.bind(
        *args[:first_linear],
        *map(ad.instantiate_zeros, cotangents),
        function=params["pull_back"],
        pull_back=params["function"],
        out=tuple(ShapedArray(x.shape[1:] if is_own else x.shape, x.dtype) for x, is_own in linear),
        worlds=params["worlds"],
        batched=(*batched[:first_linear], *(has_worlds and not s for s in params["summed"])),
        summed=tuple(has_worlds and not is_own for _, is_own in linear),
        num_linear=len(cotangents),
        moving=(),
        unshared=(*(i in params["moving"] for i in range(first_linear)), *(False for _ in cotangents)),
    )
    return [None] * first_linear + results


for_worlds_p.def_impl(run)
for_worlds_p.def_abstract_eval(abstract_results)
batching.primitive_batchers[for_worlds_p] = batch
ad.primitive_jvps[for_worlds_p] = differentiate
ad.primitive_transposes[for_worlds_p] = transpose
mlir.register_lowering(for_worlds_p, mlir.lower_fun(run, multiple_results=True))
mlir.register_lowering(for_worlds_p, mlir.lower_fun(run_in_chunks, multiple_results=True), platform="cpu")
