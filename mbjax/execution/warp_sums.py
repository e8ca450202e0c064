"""Rules of a warp's kernel for operations that combine the numbers along axes: sums, extremes, products of matrices."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .gpu_kernels import NotInKernelError
from .warp_arrays import (
    Constant,
    Picked,
    Rows,
    Stored,
    WarpArray,
    assemble,
    in_memory,
    in_registers,
    move_lanes,
    pick,
    positions_of,
    row_length,
    select,
)
from .warp_numbers import FLOATS, by_numbers, one, zero
from .warp_program import rule
from .warp_text import LANES, WarpText


def combined(text: WarpText, x: WarpArray, positions: np.ndarray, kind: str, combine: Callable) -> WarpArray:
    """Combines numbers along the first axis of `positions`; -1 stands for none."""
    assert positions.shape[0]
    total: WarpArray | None = None
    halves = [pick_some(text, x, p) for p in positions]
    while len(halves) > 1:
        pairs = [
            by_numbers(text, a.shape, kind, [a, b], combine)
            for a, b in zip(halves[0 : len(halves) - 1 : 2], halves[1::2], strict=False)
        ]
        halves = pairs + (halves[-1:] if len(halves) % 2 else [])
    (total,) = halves
    return total


def pick_some(text: WarpText, x: WarpArray, positions: np.ndarray) -> WarpArray:
    """Numbers at positions, and zeros where the position is -1."""
    if (positions >= 0).all():
        return pick(x, positions)
    nothing = Constant(np.zeros((), np.float32 if x.kind == "f32" else np.float64))
    if (positions < 0).all():
        return pick(nothing, np.zeros_like(positions))
    if isinstance(x, Constant):
        return Constant(np.where(positions < 0, 0, x.array.ravel()[positions]))
    home = in_memory(text, x)
    if home.memory.space != "shared" or home.moved_by is not None:
        return assemble(text, [home, nothing], np.where(positions < 0, 1, 0), np.maximum(positions, 0))
    addresses = np.where(positions < 0, 0, home.addresses.ravel()[positions])  # a zero is at address 0
    return Stored(positions.shape, x.kind, home.memory, addresses)


def over_lanes(text: WarpText, x: Rows, kind: str, combine: Callable, neutral: str) -> Rows:
    """Combines all numbers of an array into one: first those on the same lane, then between lanes."""
    length, registers = row_length(x.shape), []
    for row in x.rows:
        for k, register in enumerate(row):
            inside = text.is_below(length - k * LANES)
            if length == 1:
                inside = text.is_below(1)
            registers.append(select(text, kind, inside, register, as_value(text, kind, neutral)))
    while len(registers) > 1:
        odd = registers[-1:] if len(registers) % 2 else []
        registers = [combine(a, b) for a, b in zip(registers[:-1:2], registers[1::2], strict=False)] + odd
    (found,) = registers
    for distance in (16, 8, 4, 2, 1):
        found = combine(found, move_lanes(text, as_value(text, kind, found), kind, "bfly", str(distance)))
    return Rows((), kind, [[found]])


def as_value(text: WarpText, kind: str, x: str) -> str:
    """A neutral number as a register or literal of its kind."""
    if x.startswith("%"):
        return x
    if kind == "pred":
        return text.at_start(("truth", x == "1"), f"setp.{'eq' if x == '1' else 'ne'}.u32 {{}}, 0, 0;", "pred")
    return x if x.startswith("0") and len(x) > 1 else zero(kind) if x == "0" else one(kind)


@rule("sum_over_axis")
def sum_over_axis(text: WarpText, equation: Any, inputs: list, *, axis: int, **_: Any) -> WarpArray:
    """Sums over an axis."""
    return reduced(text, inputs[0], (axis,), "add", "0")


@rule("reduce_sum")
def reduce_sum(text: WarpText, equation: Any, inputs: list, *, axes: Any, **_: Any) -> WarpArray:
    """Sums over axes."""
    return reduced(text, inputs[0], axes, "add", "0")


@rule("reduce_or")
def reduce_or(text: WarpText, equation: Any, inputs: list, *, axes: Any, **_: Any) -> WarpArray:
    """Whether any truth holds along axes."""
    return reduced(text, inputs[0], axes, "or", "0")


@rule("reduce_and")
def reduce_and(text: WarpText, equation: Any, inputs: list, *, axes: Any, **_: Any) -> WarpArray:
    """Whether all truths hold along axes."""
    return reduced(text, inputs[0], axes, "and", "1")


@rule("reduce_max", "reduce_min")
def reduce_extreme(text: WarpText, equation: Any, inputs: list, *, axes: Any, **_: Any) -> WarpArray:
    """The largest or smallest along axes."""
    kind, is_max = inputs[0].kind, equation.primitive.name == "reduce_max"
    neutral = {("f32", True): "0fFF800000", ("f32", False): "0f7F800000"}.get((kind, is_max))
    if neutral is None:
        neutral = "0dFFF0000000000000" if is_max else "0d7FF0000000000000"
    if kind not in FLOATS:
        raise NotInKernelError("reduce_max")
    return reduced(text, inputs[0], axes, "max" if is_max else "min", neutral)


def reduced(text: WarpText, x: WarpArray, axes: Sequence[int], name: str, neutral: str) -> WarpArray:
    """Combines numbers along axes."""
    kind = x.kind
    suffix = ".NaN" if name in ("max", "min") and kind == "f32" else ""

    def combine(a: str, b: str) -> str:
        return text.compute(f"{name}{suffix}.{kind}", kind, a, b)

    axes = tuple(axes)
    if not axes:
        return x
    shape = tuple(n for k, n in enumerate(x.shape) if k not in axes)
    count = math.prod(x.shape[k] for k in axes)
    if count == 0:
        return pick(Rows((), kind, [[as_value(text, kind, neutral)]]), np.zeros(shape, int))
    if math.prod(shape) == 1 and count > 2:
        found = over_lanes(text, in_registers(text, x), kind, combine, neutral)
        return pick(found, np.zeros(shape, int))
    positions = np.moveaxis(positions_of(x.shape), axes, range(len(axes))).reshape(count, *shape)
    if axes != (0,):
        x = in_memory(text, x) if isinstance(x, Rows | Picked) else x
    return combined(text, x, positions, kind, combine)


@rule("dot_with_mask")
def dot_with_mask(
    text: WarpText, equation: Any, inputs: list, *, mask: bytes, shape: tuple[int, int], axis: int, **_: Any
) -> WarpArray:
    """Sums of the columns that a constant matrix of zeros and ones chooses."""
    x, kind, aval = inputs[0], inputs[0].kind, equation.outvars[0].aval
    if not math.prod(x.shape):
        return Constant(np.zeros(aval.shape, aval.dtype))
    chosen = np.unpackbits(np.frombuffer(mask, np.uint8), count=shape[0] * shape[1]).reshape(shape)
    most = max(int(chosen.sum(axis=0).max(initial=0)), 1)
    columns = np.full((most, shape[1]), -1)
    for k, column in enumerate(chosen.T):
        columns[: column.sum(), k] = np.flatnonzero(column)
    positions = np.moveaxis(positions_of(x.shape), axis, -1)
    positions = np.where(columns[:, None] < 0, -1, positions.reshape(-1, shape[0])[:, columns].swapaxes(0, 1))
    positions = positions.reshape(most, *np.delete(x.shape, axis), shape[1])
    positions = np.moveaxis(positions, -1, axis + 1)
    return combined(text, x, positions, kind, lambda a, b: text.compute(f"add.{kind}", kind, a, b))


@rule("dot_general")
def dot_general(text: WarpText, equation: Any, inputs: list, *, dimension_numbers: Any, **_: Any) -> WarpArray:
    """Products of matrices, as sums over the contracted axes."""
    x, y = (in_memory(text, a) if isinstance(a, Rows | Picked) else a for a in inputs)
    (contracted_x, contracted_y), (batch_x, batch_y) = dimension_numbers
    kind, shape = x.kind, equation.outvars[0].aval.shape

    def ordered(a: WarpArray, contracted: Sequence[int], batch: Sequence[int], is_first: bool) -> np.ndarray:
        own = [k for k in range(len(a.shape)) if k not in (*contracted, *batch)]
        positions = positions_of(a.shape).transpose(*contracted, *batch, *own)
        count = math.prod(a.shape[k] for k in contracted)
        positions = positions.reshape(count, *(a.shape[k] for k in (*batch, *own)))
        others = len(shape) - len(batch) - len(own)
        where = -1 if is_first else 1 + len(batch)
        for _ in range(others):
            positions = np.expand_dims(positions, where)
        return np.broadcast_to(positions, (count, *shape))

    products = [
        by_numbers(text, shape, kind, [pick(x, a), pick(y, b)], lambda u, v: text.compute(f"mul.{kind}", kind, u, v))
        for a, b in zip(ordered(x, contracted_x, batch_x, True), ordered(y, contracted_y, batch_y, False), strict=True)
    ]
    total = products[0]
    for product in products[1:]:
        total = by_numbers(text, shape, kind, [total, product], lambda u, v: text.compute(f"add.{kind}", kind, u, v))
    return total
