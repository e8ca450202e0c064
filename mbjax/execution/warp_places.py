"""Rules of a warp's kernel for operations that move numbers and compute none."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from .gpu_kernels import NotInKernelError
from .warp_arrays import Constant, WarpArray, assemble, pick, positions_of
from .warp_program import rule
from .warp_text import WarpText


def places(function: Callable) -> Callable:
    """The rule of an operation that only moves numbers: `function` moves their positions."""

    def apply(text: WarpText, equation: Any, inputs: list, **params: Any) -> WarpArray:
        return pick(inputs[0], function(positions_of(inputs[0].shape), equation.outvars[0].aval.shape, params))

    return apply


def spread(x: np.ndarray, shape: tuple, params: dict) -> np.ndarray:
    """Positions of `broadcast_in_dim`."""
    axes = params["broadcast_dimensions"]
    between = [1] * len(shape)
    for axis, size in zip(axes, x.shape, strict=True):
        between[axis] = size
    return np.broadcast_to(x.reshape(between), shape)


rule("broadcast_in_dim")(places(spread))
rule("reshape", "squeeze", "expand_dims")(places(lambda x, shape, _: x.reshape(shape)))
rule("transpose")(places(lambda x, _, params: x.transpose(params["permutation"])))
rule("rev")(places(lambda x, _, params: np.flip(x, params["dimensions"])))
rule("take")(places(lambda x, _, params: np.take(x, params["indices"], params["axis"])))
rule("repeat")(places(lambda x, shape, params: np.broadcast_to(np.expand_dims(x, params["axis"]), shape)))


@rule("slice")
def sliced(
    text: WarpText, equation: Any, inputs: list, *, start_indices: Any, limit_indices: Any, strides: Any, **_: Any
) -> WarpArray:
    """Numbers between constant bounds."""
    steps = strides or (1,) * len(start_indices)
    index = tuple(slice(a, b, c) for a, b, c in zip(start_indices, limit_indices, steps, strict=True))
    return pick(inputs[0], positions_of(inputs[0].shape)[index])


@rule("split")
def split(text: WarpText, equation: Any, inputs: list, *, sizes: Any, axis: int, **_: Any) -> list[WarpArray]:
    """Parts along an axis."""
    parts = np.split(positions_of(inputs[0].shape), np.cumsum(sizes)[:-1], axis)
    return [pick(inputs[0], p) for p in parts]


@rule("unstack")
def unstack(text: WarpText, equation: Any, inputs: list, *, axis: int, **_: Any) -> list[WarpArray]:
    """Arrays along an axis."""
    return [pick(inputs[0], p) for p in np.moveaxis(positions_of(inputs[0].shape), axis, 0)]


def joined(text: WarpText, pieces: list, join: Callable) -> WarpArray:
    """Several arrays as one, as `join` puts their positions together."""
    positions = join([positions_of(x.shape) for x in pieces])
    owners = join([np.full(x.shape, k) for k, x in enumerate(pieces)])
    return assemble(text, pieces, owners, positions)


@rule("stack")
def stack(text: WarpText, equation: Any, inputs: list, *, axis: int, **_: Any) -> WarpArray:
    """Arrays along a new axis."""
    return joined(text, inputs, lambda parts: np.stack(parts, axis))


@rule("concatenate")
def concatenate(text: WarpText, equation: Any, inputs: list, *, dimension: int, **_: Any) -> WarpArray:
    """Arrays one after the other along an axis."""
    return joined(text, inputs, lambda parts: np.concatenate(parts, dimension))


@rule("pad")
def padded(text: WarpText, equation: Any, inputs: list, *, padding_config: Any, **_: Any) -> WarpArray:
    """An array with a number around and between its own."""
    x, filler = inputs
    shape = equation.outvars[0].aval.shape
    owners, positions = np.ones(shape, int), np.zeros(shape, int)
    full = [
        low + high + n + max(n - 1, 0) * inner for (low, high, inner), n in zip(padding_config, x.shape, strict=True)
    ]
    assert tuple(full) == shape, (full, shape)
    where = [low + np.arange(n) * (inner + 1) for (low, _, inner), n in zip(padding_config, x.shape, strict=True)]
    inside = [np.flatnonzero((w >= 0) & (w < n)) for w, n in zip(where, shape, strict=True)]
    target = np.ix_(*(w[i] for w, i in zip(where, inside, strict=True)))
    owners[target], positions[target] = 0, positions_of(x.shape)[np.ix_(*inside)]
    return assemble(text, [x, filler], owners, positions)


@rule("iota")
def counting(text: WarpText, equation: Any, inputs: list, *, dtype: Any, shape: Any, dimension: int, **_: Any) -> Any:
    """Numbers that count along an axis."""
    between = [-1 if k == dimension else 1 for k in range(len(shape))]
    return Constant(np.broadcast_to(np.arange(shape[dimension]).reshape(between), shape).astype(dtype))


@rule("gather")
def gather(text: WarpText, equation: Any, inputs: list, **params: Any) -> WarpArray:
    """Numbers at known indices."""
    x, index = inputs
    if not isinstance(index, Constant):
        raise NotInKernelError("gather")
    params = {k: v for k, v in params.items() if k != "fill_value"}
    with jax.ensure_compile_time_eval():
        found = jax.lax.gather_p.bind(positions_of(x.shape).astype(np.int32), index.array, fill_value=None, **params)
    return pick(x, np.asarray(found))
