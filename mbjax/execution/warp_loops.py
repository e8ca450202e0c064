"""Rules of a warp's kernel for loops, branches, and what is read and written at an index that is not known."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from .gpu_kernels import NotInKernelError
from .warp_arrays import (
    Constant,
    Rows,
    Stored,
    WarpArray,
    copied,
    in_memory,
    in_registers,
    kind_of,
    num_rows,
    positions_of,
    put,
    row_length,
)
from .warp_program import INLINED, constant_of, rule, run
from .warp_text import LANES, WIDTHS, WarpText

FEW_REGISTERS = 4  # an array of more stays in memory in a loop


def index_in_bytes(text: WarpText, x: Stored, index: Sequence[WarpArray], sizes: Sequence[int]) -> tuple:
    """The bytes that an index moves addresses by: a constant, and a register if it is not known."""
    constant, moved = np.zeros(len(sizes), int), None
    for axis, (start, size) in enumerate(zip(index, sizes, strict=True)):
        most = x.shape[axis] - size
        if isinstance(start, Constant):
            constant[axis] = min(max(int(start.array), 0), most)
            continue
        if most == 0:
            continue
        steps = np.diff(x.addresses, axis=axis)
        if np.ptp(steps):
            raise NotInKernelError("irregular addresses")
        (register,) = in_registers(text, start).rows[0]
        if start.kind == "s64":
            register = text.compute("cvt.s32.s64", "s32", register)
        elif start.kind != "s32":
            raise NotInKernelError("index")
        register = text.compute("max.s32", "s32", register, "0")
        register = text.compute("min.s32", "s32", register, str(most))
        register = text.compute("mul.lo.s32", "u32", register, str(int(steps.flat[0])))
        moved = register if moved is None else text.compute("add.u32", "u32", moved, register)
    return constant, moved


@rule("dynamic_slice")
def dynamic_slice(text: WarpText, equation: Any, inputs: list, *, slice_sizes: Any, **_: Any) -> WarpArray:
    """Numbers from an index on."""
    x, *index = inputs
    home = regular(text, x)
    constant, moved = index_in_bytes(text, home, index, slice_sizes)
    part = home.addresses[tuple(slice(a, a + n) for a, n in zip(constant, slice_sizes, strict=True))]
    if moved is None:
        return Stored(part.shape, home.kind, home.memory, part)
    return Stored(part.shape, home.kind, home.memory, part, sum_of(text, home.moved_by, moved))


def sum_of(text: WarpText, a: str | None, b: str) -> str:
    """The sum of two registers of bytes."""
    return b if a is None else text.compute("add.u32", "u32", a, b)


def regular(text: WarpText, x: WarpArray) -> Stored:
    """The array in memory, at addresses that rise evenly along each axis."""
    home = in_memory(text, x)
    if all(not np.ptp(np.diff(home.addresses, axis=k)) if n > 1 else True for k, n in enumerate(home.shape)):
        return home
    return copied(text, x)


@rule("dynamic_update_slice")
def dynamic_update_slice(text: WarpText, equation: Any, inputs: list, **_: Any) -> WarpArray:
    """Writes numbers from an index on: in place if nobody else reads the array."""
    x, new, *index = inputs
    inputs.clear()
    home = own_copy(text, x)
    del x
    constant, moved = index_in_bytes(text, home, index, new.shape)
    part = home.addresses[tuple(slice(a, a + n) for a, n in zip(constant, new.shape, strict=True))]
    put(text, home.memory, part, in_registers(text, new), moved)
    return Stored(home.shape, home.kind, home.memory, home.addresses)


def own_copy(text: WarpText, x: WarpArray) -> Stored:
    """The array in shared memory that no other array reads."""
    if isinstance(x, Stored) and x.memory.text is not None and x.moved_by is None and len(x.memory.views) == 1:
        home = x
        if home.addresses.size * WIDTHS[home.kind] <= home.memory.size and is_whole(home):
            return home
    return copied(text, x)


def is_whole(x: Stored) -> bool:
    """Whether x is all of its memory, in order."""
    return np.array_equal(x.addresses, x.memory.start + WIDTHS[x.kind] * positions_of(x.shape))


class Carried:
    """Values that a loop hands on: in registers that stay, or, where they are read at an index, in memory."""

    def __init__(self, text: WarpText, start: Sequence[WarpArray], in_place: Sequence[bool]) -> None:
        self.text, self.values = text, []
        for x, stays in zip(start, in_place, strict=True):
            if stays and math.prod(x.shape):
                home = copied(text, x)
                home.memory.views.discard(home)  # a place, which nobody reads but by `now`
                self.values.append(home)
                continue
            rows = in_registers(text, x)
            kept = [[text.compute(f"mov.{x.kind}", x.kind, r) for r in row] for row in rows.rows]
            self.values.append(Rows(x.shape, x.kind, kept))

    def now(self) -> list[WarpArray]:
        """The values as the body reads them."""
        return [
            Stored(x.shape, x.kind, x.memory, x.addresses) if isinstance(x, Stored) else Rows(x.shape, x.kind, x.rows)
            for x in self.values
        ]

    def hand_on(self, new: list[WarpArray]) -> None:
        """Replaces the values by new ones."""
        text, copies = self.text, []
        for old, x in zip(self.values, new, strict=True):
            copies.append(None if is_same_place(old, x) else in_registers(text, x))
        moves = []
        for old, x in zip(self.values, copies, strict=True):
            if x is None:
                continue
            if isinstance(old, Stored):
                put(text, old.memory, old.addresses, x)
                continue
            for kept, row in zip(old.rows, x.rows, strict=True):
                moves += [(k, r, old.kind) for k, r in zip(kept, row, strict=True) if k != r]
        kept = {k for k, _, _ in moves}
        between = {}
        for _, r, kind in moves:
            if r in kept and r not in between:  # a value that another one replaces is read first
                between[r] = text.compute(f"mov.{kind}", kind, r)
        for k, r, kind in moves:
            text.line(f"mov.{kind} {k}, {between.get(r, r)};")


def is_same_place(x: WarpArray, y: WarpArray) -> bool:
    """Whether two arrays are in memory, at the same addresses."""
    if not isinstance(x, Stored) or not isinstance(y, Stored):
        return False
    return x.memory is y.memory and np.array_equal(x.addresses, y.addresses) and y.moved_by is None


def read_at_index(jaxpr: Any) -> list[bool]:
    """Whether each argument of a program is read or written at an index, in it or in a program that it calls."""
    names = {"dynamic_slice", "dynamic_update_slice", "gather"}
    found = dict.fromkeys(jaxpr.invars, False)
    for e in jaxpr.eqns:
        for k, v in enumerate(e.invars):
            if isinstance(v, Literal) or v not in found:
                continue
            if e.primitive.name in names and k == 0:
                found[v] = True
            elif e.primitive.name in INLINED:
                found[v] |= read_at_index(e.params[INLINED[e.primitive.name]].jaxpr)[k]
    return [found[v] for v in jaxpr.invars]


def kept_for_loop(text: WarpText, x: WarpArray, at_index: bool) -> WarpArray:
    """An array that every turn of a loop reads: in memory if it would take many registers."""
    if isinstance(x, Constant | Stored):
        return x
    registers = num_rows(x.shape) * math.ceil(row_length(x.shape) / LANES)
    if at_index or registers > FEW_REGISTERS:
        home = in_memory(text, x)
        return Stored(home.shape, home.kind, home.memory, home.addresses)
    return in_registers(text, x)


@rule("while")
def while_loop(
    text: WarpText,
    equation: Any,
    inputs: list,
    *,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
    **_: Any,
) -> list[WarpArray]:
    """A loop: each world leaves it when it is done."""
    inner = body_jaxpr.jaxpr
    at_index = read_at_index(inner)
    of_cond = [kept_for_loop(text, x, False) for x in inputs[:cond_nconsts]]
    of_body = inputs[cond_nconsts : cond_nconsts + body_nconsts]
    of_body = [kept_for_loop(text, x, k) for x, k in zip(of_body, at_index, strict=False)]
    carried = Carried(text, inputs[cond_nconsts + body_nconsts :], at_index[body_nconsts:])
    inputs.clear()
    begin, end = text.label(), text.label()
    with text.block():
        text.line(f"{begin}:")
        cond = [constant_of(x) for x in cond_jaxpr.consts]
        (goes_on,) = run(text, cond_jaxpr.jaxpr, cond, [*of_cond, *carried.now()])
        text.line(f"@!{in_registers(text, goes_on).rows[0][0]} bra.uni {end};")
        new = run(text, inner, [constant_of(x) for x in body_jaxpr.consts], [*of_body, *carried.now()])
        carried.hand_on(new)
        del new
        text.barrier()
        text.line(f"bra.uni {begin};")
        text.line(f"{end}:")
    return carried.now()


@rule("scan")
def scan(
    text: WarpText,
    equation: Any,
    inputs: list,
    *,
    jaxpr: ClosedJaxpr,
    length: int,
    reverse: bool,
    num_consts: int,
    num_carry: int,
    **_: Any,
) -> list[WarpArray]:
    """A loop over rows."""
    inner = jaxpr.jaxpr
    at_index = read_at_index(inner)
    consts = [kept_for_loop(text, x, k) for x, k in zip(inputs[:num_consts], at_index, strict=False)]
    rows = [regular(text, x) if math.prod(x.shape) else x for x in inputs[num_consts + num_carry :]]
    carried = Carried(text, inputs[num_consts : num_consts + num_carry], at_index[num_consts : num_consts + num_carry])
    inputs.clear()
    outputs: list = []
    for v in equation.outvars[num_carry:]:
        kind, size = kind_of(v.aval.dtype), math.prod(v.aval.shape)
        if not size or type(v).__name__ == "DropVar":
            outputs.append(Constant(np.zeros(v.aval.shape, v.aval.dtype)))
            continue
        memory = text.reserve(size * WIDTHS[kind])
        addresses = memory.start + WIDTHS[kind] * positions_of(v.aval.shape)
        outputs.append(Stored(v.aval.shape, kind, memory, addresses))
    if length == 0:
        return [*carried.now(), *outputs]
    count = text.compute("mov.s32", "s32", str(length - 1 if reverse else 0))
    begin = text.label()
    with text.block():
        text.line(f"{begin}:")
        given = [row_at(text, x, count) for x in rows]
        consts_of = [constant_of(x) for x in jaxpr.consts]
        new = run(text, inner, consts_of, [*consts, *carried.now(), *given])
        del given
        own = new[num_carry:]
        for x, y in zip(outputs, own, strict=True):
            if isinstance(x, Stored):
                by = text.compute("mul.lo.s32", "u32", count, str(row_length_in_bytes(x)))
                put(text, x.memory, x.addresses[0], in_registers(text, y), by)
        carried.hand_on(new[:num_carry])
        del new, own
        text.barrier()
        text.line(f"add.s32 {count}, {count}, {-1 if reverse else 1};")
        more = text.compute("setp.ge.s32" if reverse else "setp.lt.s32", "pred", count, "0" if reverse else str(length))
        text.line(f"@{more} bra.uni {begin};")
    return [*carried.now(), *outputs]


def row_length_in_bytes(x: Stored) -> int:
    """How many bytes a row takes."""
    return WIDTHS[x.kind] * math.prod(x.shape[1:])


def row_at(text: WarpText, x: WarpArray, count: str) -> WarpArray:
    """The row of an array that a loop has come to."""
    if not isinstance(x, Stored):
        assert not math.prod(x.shape), x.shape
        return Constant(np.zeros(x.shape[1:], np.float32))
    stride = int(x.addresses.flat[0 + math.prod(x.shape[1:])] - x.addresses.flat[0]) if x.shape[0] > 1 else 0
    by = text.compute("mul.lo.s32", "u32", count, str(stride))
    return Stored(x.shape[1:], x.kind, x.memory, x.addresses[0], sum_of(text, x.moved_by, by))


@rule("cond")
def branch(text: WarpText, equation: Any, inputs: list, *, branches: Any, **_: Any) -> list[WarpArray]:
    """One of several programs."""
    index, *arguments = inputs
    if isinstance(index, Constant):
        chosen = branches[min(max(int(index.array), 0), len(branches) - 1)]
        return run(text, chosen.jaxpr, [constant_of(x) for x in chosen.consts], arguments)
    (register,) = in_registers(text, index).rows[0]
    if index.kind != "s32":
        raise NotInKernelError("cond")
    arguments = [kept_for_loop(text, x, False) for x in arguments]
    results = []
    for v in equation.outvars:
        kind = kind_of(v.aval.dtype)
        chunks = math.ceil(row_length(v.aval.shape) / LANES)
        rows = [[text.register(kind) for _ in range(chunks)] for _ in range(num_rows(v.aval.shape))]
        results.append(Rows(v.aval.shape, kind, rows))
    done = text.label()
    for k, chosen in enumerate(branches):
        other = text.label()
        with text.block():
            if k < len(branches) - 1:
                test = "setp.gt.s32" if k == 0 else "setp.ne.s32"
                text.line(f"@{text.compute(test, 'pred', register, str(k))} bra.uni {other};")
            found = run(text, chosen.jaxpr, [constant_of(x) for x in chosen.consts], list(arguments))
            for x, y in zip(results, found, strict=True):
                for kept, row in zip(x.rows, in_registers(text, y).rows, strict=True):
                    for a, b in zip(kept, row, strict=True):
                        text.line(f"mov.{x.kind} {a}, {b};")
            del found
            text.barrier()
            text.line(f"bra.uni {done};")
            text.line(f"{other}:")
    text.line(f"{done}:")
    return results


@rule("platform_index")
def platform_index(text: WarpText, equation: Any, inputs: list, *, platforms: Any, **_: Any) -> Constant:
    """Which of the ways to compute something is that of a GPU; the last one is for any other device."""
    for k, names in enumerate(platforms):
        if names is None or "cuda" in names:
            return Constant(np.asarray(k, np.int32))
    raise NotInKernelError("platform_index")


@rule("custom_linear_solve")
def linear_solve(text: WarpText, equation: Any, inputs: list, *, const_lengths: Any, jaxprs: Any, **_: Any) -> list:
    """The solution as its own function finds it."""
    lengths = list(const_lengths)
    start = sum(lengths[: list(const_lengths._fields).index("solve")])
    consts, b = inputs[start : start + const_lengths.solve], inputs[sum(lengths) :]
    return run(text, jaxprs.solve.jaxpr, [constant_of(x) for x in jaxprs.solve.consts], [*consts, *b])
