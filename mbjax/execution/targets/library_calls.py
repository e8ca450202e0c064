"""Calls of LAPACK for many matrices, none of which makes XLA's threads wait for each other.

jaxlib 0.10 and 0.11 share a batch of matrices out among XLA's threads, from one of these threads, which then waits.
Where as many such calls run side by side as there are threads (two, on a machine with two cores) each waits for a
thread that waits too, and the program never ends. A batch that is little work stays in the thread that calls, so on
these versions a CPU takes the matrices in turns of no more than that. Later versions share nothing out, and get the
whole batch, as do other devices.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir
from jaxlib.version import __version__ as jaxlib_version
from jaxtyping import Array

from .cpu_kernel import lowered
from .manual_axes import varying_as

SHARES_OUT = tuple(int(x) for x in jaxlib_version.split(".")[:2]) < (0, 12)
LEAST_SHARED_OUT = 200_000  # operations: jaxlib's own limit, below which a batch stays in the thread that calls
MOST_PER_ENTRY = 10  # operations that jaxlib counts, at most, for a matrix of n rows and columns: this times n³

Levels = tuple[tuple[bool, ...], ...]  # of `vmap`, the innermost first: which arguments have an axis, in front


def call_library(function: Callable, *args: Array, right_sides: int | None = None) -> list[Array]:
    """Calls `function(*args)`, a list of arrays found by LAPACK for one matrix, so that batches of it are safe.

    The function is one that stays the same object, as it is a part of the program's key. `right_sides` is the place of
    an argument whose columns are independent right-hand sides, if there is one: where only these are many, they
    become more columns. The call is not differentiated.
    """
    return library_call_p.bind(*args, function=function, levels=(), right_sides=right_sides)


def at_once(function: Callable, levels: Levels) -> Callable:
    """The function of one matrix, for whole batches."""
    for level in levels:
        function = jax.vmap(function, in_axes=tuple(0 if has_axis else None for has_axis in level))
    return function


def in_turns(function: Callable, levels: Levels, most: int) -> Callable:
    """The function of one matrix, for batches in loops: `most` of the innermost batch at once, of others one."""
    for level in levels:
        function, most = loop(function, level, most), 1
    return function


def loop(function: Callable, level: tuple[bool, ...], most: int) -> Callable:
    """Runs a function over the first axis of some of its arguments, in turns of `most`."""

    def run(*args: Array) -> Any:
        def turn(moving: list[Array]) -> Any:
            each = iter(moving)
            return function(*(next(each) if has_axis else x for x, has_axis in zip(args, level, strict=True)))

        moving = [x for x, has_axis in zip(args, level, strict=True) if has_axis]
        return lax.map(turn, moving, batch_size=most if most > 1 else None)

    return run


def matrices_in_one_turn(args: Sequence[Any], levels: Levels) -> int:
    """How many matrices jaxlib certainly handles in the thread that calls."""
    shapes = [x.shape[sum(level[k] for level in levels) :] for k, x in enumerate(args)]
    size = max((n for shape in shapes for n in shape), default=1)
    return max((LEAST_SHARED_OUT - 1) // (MOST_PER_ENTRY * max(size, 1) ** 3), 1)


def run_at_once(*args: Any, function: Callable, levels: Levels, **_: Any) -> list[Array]:
    """Runs the function for whole batches."""
    return at_once(function, levels)(*args)


def run_in_turns(*args: Any, function: Callable, levels: Levels, **_: Any) -> list[Array]:
    """Runs the function for batches in loops, or at once where jaxlib shares nothing out."""
    if not SHARES_OUT:
        return at_once(function, levels)(*args)
    return in_turns(function, levels, matrices_in_one_turn(args, levels))(*args)


def batch_call(
    args: Sequence, dims: Sequence, *, function: Callable, levels: Levels, right_sides: int | None
) -> tuple[list, list]:
    """Batching rule: one level more or, where only the right-hand sides are many, more of them."""
    call = functools.partial(library_call_p.bind, function=function, right_sides=right_sides)
    if right_sides is not None and [k for k, d in enumerate(dims) if d is not None] == [right_sides]:
        b = jnp.moveaxis(args[right_sides], dims[right_sides], -1)
        joined = b.reshape(*b.shape[:-2], -1)
        found = call(*args[:right_sides], joined, *args[right_sides + 1 :], levels=levels)
        return [x.reshape(*x.shape[:-1], *b.shape[-2:]) for x in found], [x.ndim for x in found]
    level = tuple(d is not None for d in dims)
    in_front = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)]
    found = call(*in_front, levels=(*levels, level))
    return found, [0] * len(found)


def shapes_of_call(*args: ShapedArray, function: Callable, levels: Levels, **_: Any) -> list[ShapedArray]:
    """Shapes and types of results."""
    shapes = (jax.ShapeDtypeStruct(x.shape, x.dtype) for x in args)
    found = jax.eval_shape(at_once(function, levels), *shapes)
    return varying_as(args, [ShapedArray(x.shape, x.dtype) for x in found])


@functools.lru_cache(maxsize=1024)
def compiled_call(function: Callable, levels: Levels, right_sides: int | None) -> Callable:
    """The call as a program of its own, for arrays outside of `jax.jit`."""
    return jax.jit(functools.partial(library_call_p.bind, function=function, levels=levels, right_sides=right_sides))


def run_now(*args: Any, function: Callable, levels: Levels, right_sides: int | None) -> list[Array]:
    """Runs the call outside of `jax.jit`."""
    return compiled_call(function, levels, right_sides)(*args)


library_call_p = Primitive("library_call")
library_call_p.multiple_results = True
library_call_p.def_impl(run_now)
library_call_p.def_abstract_eval(shapes_of_call)
batching.primitive_batchers[library_call_p] = batch_call
mlir.register_lowering(library_call_p, lowered(run_at_once))
mlir.register_lowering(library_call_p, lowered(run_in_turns), platform="cpu")
