"""Text of a GPU kernel in which a warp computes a world: registers, memory and barriers, as lines of PTX.

A warp has 32 threads, its lanes, that run in step. Each world has a warp, and shared memory of its own, where lanes
leave numbers for other lanes. NVIDIA's driver compiles the text (PTX ISA 7.8, for Ampere and newer).
"""

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .gpu_kernels import NotInKernelError

LANES = 32
TYPES = {"float32": "f32", "float64": "f64", "int32": "s32", "int64": "s64", "uint32": "u32", "bool": "pred"}
PREFIXES = {"f32": "f", "f64": "d", "s32": "r", "s64": "l", "u32": "u", "pred": "p", "u64": "a", "b32": "b"}
WIDTHS = {"f32": 4, "f64": 8, "s32": 4, "s64": 8, "u32": 4, "pred": 4}  # bytes in memory; truth is 0 or 1 there
MOST_SHARED = 48 * 1024  # bytes of a block that every GPU gives without asking
FIRST_FREE = 16  # bytes from 0 hold a zero, which stands for terms that a sum does not have


@dataclass(eq=False)
class Memory:
    """A stretch of memory: shared by the lanes, or global. Shared memory is given back when nobody holds it."""

    space: str
    base: str  # the register of its address; empty where addresses are numbers
    start: int = 0
    size: int = 0
    text: "WarpText | None" = None
    truth: str = "u32"  # how truth is stored
    is_constant: bool = False  # nobody writes to it
    views: weakref.WeakSet = field(default_factory=weakref.WeakSet)  # arrays that are read there

    def __del__(self) -> None:
        if self.text is not None:
            self.text.give_back(self.space, self.start, self.size)


@dataclass
class Scope:
    """What was computed in a block of code, and is known in the blocks within: registers and places by their keys."""

    known: dict = field(default_factory=dict)


class WarpText:
    """Collects the lines of a kernel; hands out registers, tables of constants and shared memory."""

    def __init__(self, largest_shared: int = 1 << 30) -> None:
        self.largest_shared = largest_shared  # bytes; larger arrays are in global memory, which caches hold
        self.lines: list[str] = []
        self.tables: dict[bytes, str] = {}
        self.counts: dict[str, int] = dict.fromkeys(PREFIXES, 0)
        self.num_labels = 0
        self.scopes = [Scope()]
        self.prologue: list[str] = []  # lines before all others
        self.early: dict[tuple, str] = {}  # registers that they compute
        self.free = {"shared": [(FIRST_FREE, 1 << 30)], "global": [(0, 1 << 30)]}
        self.most = {"shared": FIRST_FREE, "global": 0}  # bytes used
        self.written: list[tuple] = []  # what was written, and read, since the last barrier: (space, start, end)
        self.read: list[tuple] = []

    # Lines and registers

    def line(self, text: str) -> None:
        """Adds a line."""
        self.lines.append(text)

    def register(self, kind: str) -> str:
        """A new register of a type of PTX."""
        self.counts[kind] += 1
        return f"%{PREFIXES[kind]}{self.counts[kind]}"

    def compute(self, operation: str, kind: str, *operands: str) -> str:
        """A new register of `kind` that holds the result of an operation."""
        result = self.register(kind)
        self.line(f"{operation} {result}, {', '.join(operands)};")
        return result

    def label(self) -> str:
        """A new label."""
        self.num_labels += 1
        return f"$L{self.num_labels}"

    # What is known

    def known(self, key: tuple, make: Callable[[], Any]) -> Any:
        """What was made under this key in this block of code or one around it; makes it if it was not."""
        for scope in reversed(self.scopes):
            if key in scope.known:
                return scope.known[key]
        found = self.scopes[-1].known[key] = make()
        return found

    @contextlib.contextmanager
    def block(self) -> Iterator[None]:
        """A block of code that may be run many times or never: what it makes is not known after it."""
        self.barrier()
        self.scopes.append(Scope())
        yield
        self.scopes.pop()
        self.barrier()

    # Memory

    def reserve(self, size: int) -> Memory:
        """Reserves memory of so many bytes."""
        size = -(-size // 8) * 8
        space = "shared" if size <= self.largest_shared else "global"
        free = self.free[space]
        for k, (start, end) in enumerate(free):
            if end - start >= size:
                free[k : k + 1] = [(start + size, end)] if end - start > size else []
                self.most[space] = max(self.most[space], start + size)
                return Memory(space, "" if space == "shared" else self.own_global(), start, size, self)
        raise NotInKernelError

    def own_global(self) -> str:
        """Register of the address of the world's global memory."""
        base = self.at_start(("own global",), "ld.param.u64 {}, [own];", "u64")
        size = self.at_start(("own size",), "mov.u32 {}, OWN_SIZE;", "u32")
        offset = self.at_start(("own offset",), f"mul.wide.u32 {{}}, {self.special('%ctaid.x')}, {size};", "u64")
        return self.at_start(("own",), f"add.u64 {{}}, {base}, {offset};", "u64")

    def give_back(self, space: str, start: int, size: int) -> None:
        """Makes memory free again."""
        merged: list[tuple[int, int]] = []
        for part in sorted([*self.free[space], (start, start + size)]):
            if merged and merged[-1][1] == part[0]:
                merged[-1] = (merged[-1][0], part[1])
            else:
                merged.append(part)
        self.free[space] = merged

    def barrier(self) -> None:
        """Makes what lanes wrote visible to the others, if there is anything."""
        if self.written or self.read or len(self.scopes) > 1:
            self.line("bar.warp.sync 0xffffffff;")
        self.written, self.read = [], []

    def will_read(self, space: str, start: int, end: int) -> None:
        """Puts a barrier before memory is read that lanes may just have written."""
        if overlaps(self.written, space, start, end):
            self.barrier()
        self.read.append((space, start, end))

    def will_write(self, space: str, start: int, end: int) -> None:
        """Puts a barrier before memory is written that lanes may just be reading or writing."""
        if overlaps(self.read, space, start, end) or overlaps(self.written, space, start, end):
            self.barrier()
        self.written.append((space, start, end))

    # Lanes

    def lane(self) -> str:
        """The register of the lane's number."""
        return self.special("%laneid")

    def special(self, name: str) -> str:
        """The register of a value that the hardware has."""
        return self.at_start(("special", name), f"mov.u32 {{}}, {name};", "u32")

    def at_start(self, key: tuple, line: str, kind: str) -> str:
        """A register that is computed before all else, once."""
        if key not in self.early:
            self.early[key] = register = self.register(kind)
            self.prologue.append(line.format(register))
        return self.early[key]

    def is_below(self, count: int) -> str | None:
        """Predicate of the lanes below a count, or None if all are."""
        if count >= LANES:
            return None
        return self.at_start(("below", count), f"setp.lt.u32 {{}}, {self.lane()}, {count};", "pred")

    def lane_times(self, stride: int, kind: str = "u32") -> str:
        """The register of the lane's number times a stride."""
        return self.at_start(("times", stride, kind), self.times(stride, kind), kind)

    def times(self, stride: int, kind: str) -> str:
        """The line that multiplies the lane's number."""
        operation = "mul.lo.u32" if kind == "u32" else "mul.wide.u32"
        return f"{operation} {{}}, {self.lane()}, {stride};"

    def address_of_table(self, values: np.ndarray) -> str:
        """Register of the address of a table of constants in global memory."""
        key = values.dtype.str.encode() + values.tobytes()
        name = self.tables.setdefault(key, f"table{len(self.tables)}")
        return self.at_start(("table", name), f"mov.u64 {{}}, {name};", "u64")

    def base_of(self, memory: Memory) -> str:
        """The register of the address that others are counted from."""
        return memory.base or self.at_start(("shared",), "mov.u32 {}, numbers;", "u32")

    def lanes_from(self, base: str, stride: int, kind: str) -> str:
        """Each lane's address: the base and the lane's number times a stride."""
        times = self.lane_times(stride, kind)
        key = "lanes", base, stride
        if base in self.early.values():
            return self.at_start(key, f"add.{kind} {{}}, {base}, {times};", kind)
        return self.known(key, lambda: self.compute(f"add.{kind}", kind, base, times))

    def lanes_by_table(self, base: str, offsets: np.ndarray, kind: str) -> str:
        """Each lane's own offset, from a table, added to the base if there is one."""
        padded = np.concatenate([offsets, np.full(LANES - offsets.size, offsets[-1])]).astype(np.int32)

        def make() -> str:
            where = self.lanes_from(self.address_of_table(padded), 4, "u64")
            offset = self.register("s32")
            self.line(f"ld.global.nc.s32 {offset}, [{where}];")
            if not base:
                return offset
            if kind == "u64":
                offset = self.compute("cvt.s64.s32", "s64", offset)
            return self.compute(f"add.{'s64' if kind == 'u64' else 's32'}", kind, base, offset)

        return self.known(("by table", base, padded.tobytes()), make)

    # All of it

    def kernel(self, name: str, num_parameters: int) -> str:
        """The whole module."""
        parts = [".version 7.8", ".target sm_80", ".address_size 64"]
        parts += [table_of(name, key) for key, name in self.tables.items()]
        parts.append(".extern .shared .align 16 .b8 numbers[];")
        names = [*(f"parameter{k}" for k in range(num_parameters)), *(["own"] if self.most["global"] else [])]
        parameters = ",\n".join(f"  .param .u64 {x}" for x in names)
        parts.append(f".visible .entry {name}(\n{parameters}\n)\n{{")
        parts += [f".reg .{kind} %{PREFIXES[kind]}<{count + 1}>;" for kind, count in self.counts.items() if count]
        parts += [*self.prologue, *self.lines, "ret;", "}"]
        return "\n".join(parts).replace("OWN_SIZE", str(self.most["global"])) + "\n"


def overlaps(parts: Sequence[tuple], space: str, start: int, end: int) -> bool:
    """Whether a stretch of memory overlaps any of the others."""
    return any(of == space and a < end and start < b for of, a, b in parts)


def table_of(name: str, key: bytes) -> str:
    """Declaration of a table."""
    kind, raw = key[:3].decode(), key[3:]
    words = np.frombuffer(raw, np.uint64 if kind[-1] == "8" else np.uint32)
    return f".global .align 8 .b{words.itemsize * 8} {name}[{words.size}] = {{{', '.join(map(str, words))}}};"


def literal(value: Any, kind: str) -> str:
    """A number as PTX writes it."""
    if kind == "f32":
        return f"0f{np.float32(value).view(np.uint32):08X}"
    if kind == "f64":
        return f"0d{np.float64(value).view(np.uint64):016X}"
    return str(int(value))
