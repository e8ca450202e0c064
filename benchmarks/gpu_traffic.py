"""Kernels and memory traffic of a program that XLA compiled for a GPU, from its text.

A kernel reads its operands and writes its results, of what it slices only the slice; what it repeats in a loop of its
own is in its caches and not counted. Loops count as often as they turn.
"""

import dataclasses
import math
import re
from collections.abc import Iterator

BYTES = {"pred": 1, "s8": 1, "u8": 1, "s32": 4, "u32": 4, "f32": 4, "s64": 8, "u64": 8, "f64": 8}
ARRAY = re.compile(rf"({'|'.join(BYTES)})\[([\d,]*)\]")
COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{$")
INSTRUCTION = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = (\(.*?\)|\S+) ([\w\-]+)\((.*)$")
NO_KERNELS = {
    "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "while", "conditional", "call", "after-all",
    "partition-id",
}  # fmt: skip
READS_PART = {"slice", "dynamic-slice", "gather"}


@dataclasses.dataclass(frozen=True)
class Instruction:
    """One line; `rest` is what follows the name of the operation."""

    name: str
    shape: str
    operation: str
    rest: str
    is_root: bool

    @property
    def operands(self) -> list[str]:
        return re.findall(r"%([\w.\-]+)", self.rest.split("), ")[0])

    def called(self, how: str) -> str:
        found = re.search(rf"{how}=%?([\w.\-]+)", self.rest)
        assert found, self
        return found.group(1)


@dataclasses.dataclass(frozen=True)
class Traffic:
    """Of one run of the program."""

    kernels: int
    num_bytes: int


def traffic(text: str) -> Traffic:
    """Of a compiled program, by its `as_text()`."""
    computations, entry = parse(text)
    launched = list(kernels(computations, entry, 1))
    return Traffic(sum(times for _, times in launched), sum(size * times for size, times in launched))


def parse(text: str) -> tuple[dict[str, list[Instruction]], str]:
    """The computations, and the name of the one that is run."""
    found: dict[str, list[Instruction]] = {}
    current, entry = None, ""
    for line in text.splitlines():
        if start := COMPUTATION.match(line):
            current = found.setdefault(start.group(2), [])
            entry = start.group(2) if start.group(1) else entry
        elif line.startswith("}"):
            current = None
        elif current is not None and (parts := INSTRUCTION.match(line)):
            root, name, shape, operation, rest = parts.groups()
            current.append(Instruction(name, shape, operation, rest, bool(root)))
    return found, entry


def kernels(computations: dict[str, list[Instruction]], name: str, times: int) -> Iterator[tuple[int, int]]:
    """The bytes of each kernel, and how often it runs."""
    shapes = {x.name: x.shape for x in computations[name]}
    for x in computations[name]:
        match x.operation:
            case "while":
                turns = re.search(r'"known_trip_count":\{"n":"(\d+)"\}', x.rest)
                assert turns, f"a loop that ends by its numbers: {x}"
                yield from kernels(computations, x.called("body"), times * int(turns.group(1)))
            case "call":
                yield from kernels(computations, x.called("to_apply"), times)
            case "fusion":
                yield bytes_of_fusion(computations[x.called("calls")]), times
            case operation if operation not in NO_KERNELS:
                yield sum(map(num_bytes, [x.shape, *(shapes.get(y, "") for y in x.operands)])), times


def bytes_of_fusion(body: list[Instruction]) -> int:
    """What it reads of its parameters and what it writes."""
    named = {x.name: x for x in body}
    root = next(x for x in body if x.is_root)
    written = [named[y] for y in root.operands] if root.operation == "tuple" else [root]
    total = sum(num_bytes(named[x.operands[1]].shape if is_update(x) else x.shape) for x in written)
    for x in (x for x in body if x.operation == "parameter"):
        users = [y for y in body if x.name in y.operands]
        in_place = [y for y in users if is_update(y) and y.operands[0] == x.name]
        parts = [y for y in users if y.operation in READS_PART]
        of_parts = sum(num_bytes(y.shape) for y in parts)
        total += min(of_parts, num_bytes(x.shape)) if len(parts) + len(in_place) == len(users) else num_bytes(x.shape)
    return total


def is_update(x: Instruction) -> bool:
    """Whether it writes into a part of its first operand."""
    return x.operation == "dynamic-update-slice"


def num_bytes(shape: str) -> int:
    """Of all arrays in it."""
    return sum(BYTES[t] * math.prod(int(n) for n in dims.split(",") if n) for t, dims in ARRAY.findall(shape))
