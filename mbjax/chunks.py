"""How a function of many worlds is run: with the worlds last, and on a CPU chunk by chunk."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

CHUNK_BYTES = 1024  # of one number for all worlds of a chunk: 256 worlds in float32, 128 in float64
SMALLEST_CHUNK = 32  # worlds, where each has several tangents


def run(
    *args: Any,
    function: Callable,
    worlds: int | None,
    batched: Sequence[bool],
    summed: Sequence[bool],
    chunk: jax.Array | None = None,
    **_: Any,
):
    """All worlds at once: last in the arrays that `function` sees, first in those outside. `chunk` counts chunks."""
    if worlds is None:
        return function(*args)
    of_worlds = iter(stored(chunk, [jnp.moveaxis(x, 0, -1) for x, b in zip(args, batched, strict=True) if b]))
    results = function(*(next(of_worlds) if b else x[..., None] for x, b in zip(args, batched, strict=True)))
    sums = [jnp.sum(y, axis=-1) for y, s in zip(results, summed, strict=True) if s]
    per_world = [y for y, s in zip(results, summed, strict=True) if not s]
    per_world = stored(chunk, [jnp.broadcast_to(y, (*y.shape[:-1], worlds)) for y in per_world])
    totals, wholes = iter(sums), iter(jnp.moveaxis(y, -1, 0) for y in per_world)
    return [next(totals) if s else next(wholes) for s in summed]


def run_in_chunks(*args: Any, worlds: int | None, **params: Any) -> list:
    """The same chunk by chunk, with the sums gathered up."""
    batched, summed, num_linear = params["batched"], params["summed"], params["num_linear"]
    width = max((x.dtype.itemsize for x in args if jnp.issubdtype(x.dtype, jnp.floating)), default=4)
    size = max(CHUNK_BYTES // (width * params["several"]), SMALLEST_CHUNK)
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

    def run_chunk(sums: list, counted: tuple[jax.Array, list]) -> tuple[list, list]:
        chunk, rest = counted[0], iter(counted[1])
        inputs = (next(rest) if b else x for x, b in zip(args, batched, strict=True))
        results = run(*inputs, worlds=size, chunk=chunk, **params)
        new = iter([y for y, s in zip(results, summed, strict=True) if s])
        return [total + next(new) for total in sums], [y for y, s in zip(results, summed, strict=True) if not s]

    zeros = [jnp.zeros(x.shape, x.dtype) for x, s in zip(params["out"], summed, strict=True) if s]
    sums, parts = lax.scan(run_chunk, zeros, (jnp.arange(chunks), divided))
    totals, wholes = iter(sums), iter(y.reshape(chunks * size, *y.shape[2:])[:worlds] for y in parts)
    return [next(totals) if s else next(wholes) for s in summed]


def compiled_apart(index: jax.Array, function: Callable, *args: Any) -> Any:
    """`function(*args)` in a rolled loop with this index, on a CPU as kernels that do not see the loop.

    XLA's CPU backend fuses arithmetic with what is read and written at the index. Such a kernel loads the index anew
    for each number, and has no vector instructions. Branches are not fused with what surrounds them, and that the
    index is never negative XLA does not know.
    """

    def never(*args: Any) -> Any:
        return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(function, *args))

    def branch(index: jax.Array, *args: Any) -> Any:
        return lax.cond(index >= 0, function, never, *args)

    return lax.platform_dependent(index, *args, cpu=branch, default=lambda _, *args: function(*args))


def stored(index: jax.Array | None, arrays: list) -> list:
    """The arrays, computed before anything else in a rolled loop reads them."""
    return arrays if index is None else compiled_apart(index, lambda *arrays: list(arrays), *arrays)
