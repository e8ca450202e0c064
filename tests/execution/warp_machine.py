"""A machine that runs the text of a kernel as a GPU would: every instruction on the 32 lanes of a warp at once.

It stops where lanes read or write shared memory that another lane has written since the last barrier, where an address
is outside of what belongs to the kernel, and where lanes would go different ways.
"""

import re
from collections.abc import Callable, Sequence

import numpy as np

LANES = np.arange(32)
TYPES = {
    "f32": np.float32, "f64": np.float64, "s32": np.int32, "u32": np.uint32, "s64": np.int64, "u64": np.uint64,
    "b32": np.uint32, "b64": np.uint64, "pred": np.bool_, "u8": np.uint8,
}  # fmt: skip
REGISTERS = {
    "f": np.float32, "d": np.float64, "r": np.int32, "l": np.int64, "u": np.uint32, "p": np.bool_, "a": np.uint64,
    "b": np.uint32,
}  # fmt: skip
COMPARISONS: dict[str, Callable] = {
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: (x < y) | (x > y),
    "neu": lambda x, y: x != y,
    "nan": lambda x, y: np.isnan(x) | np.isnan(y),
}
ARITHMETIC: dict[str, Callable] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "mad": lambda x, y, z: x * y + z,
    "fma": lambda x, y, z: (x.astype(np.longdouble) * y + z).astype(x.dtype),
    "copysign": lambda x, y: np.copysign(y, x),
    "not": lambda x: ~x,
    "neg": lambda x: -x,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
}
SEGMENT = 1 << 32  # every array begins at a multiple of this


class Machine:
    """Runs a kernel, a world after the other."""

    def __init__(self, text: str, num_shared: int) -> None:
        self.num_shared = num_shared
        self.code: list[tuple[str, str, list[str]]] = []
        self.labels: dict[str, int] = {}
        self.parameters: list[str] = re.findall(r"\.param \.u64 (\w+)", text)
        self.tables: dict[str, np.ndarray] = {}
        for line in map(str.strip, text.splitlines()):
            table = re.match(r"\.global .*\.b(\d+) (\w+)\[\d+\] = \{(.*)\};", line)
            if table:
                words = np.array(table[3].split(", "), np.uint64).astype(f"u{int(table[1]) // 8}")
                self.tables[table[2]] = words.view(np.uint8)
            elif line.endswith(":"):
                self.labels[line[:-1]] = len(self.code)
            elif line.endswith(";") and not line.startswith("."):
                guard, line = line.split(" ", 1) if line.startswith("@") else ("", line)
                operation, _, rest = line.rstrip(";").partition(" ")
                operands = re.findall(r"\s*(\{[^}]*\}|\[[^\]]*\]|[^,]+)", rest)
                self.code.append((guard[1:], operation, [x.strip() for x in operands]))

    def run(self, world: int, arrays: Sequence[np.ndarray]) -> None:
        """Runs one world on the bytes of all arrays: arguments, results, and the kernel's own."""
        self.registers: dict[str, np.ndarray] = {
            "%laneid": LANES.astype(np.uint32),
            "%ctaid.x": np.full(32, world, np.uint32),
        }
        self.arrays = [np.full(self.num_shared, 255, np.uint8), *arrays, *self.tables.values()]
        self.starts = {name: SEGMENT * (k + 1) for k, name in enumerate([*self.parameters, *self.tables])}
        self.epoch, self.next = 1, 0
        self.writes, self.reads = (np.zeros((2, self.num_shared // 4 + 2), int) for _ in range(2))
        with np.errstate(all="ignore"):
            while self.code[self.next][1] != "ret":
                self.step(*self.code[self.next])

    def step(self, guard: str, operation: str, operands: list[str]) -> None:
        """Runs one instruction on the lanes that its guard lets pass."""
        self.next += 1
        name, *modifiers = operation.split(".")
        passes = np.ones(32, bool)
        if guard:
            passes = ~self.registers[guard[1:]] if guard[0] == "!" else self.registers[guard]
        match name:
            case "bra":
                assert passes.all() or not passes.any(), ("lanes go different ways", self.next)
                self.next = self.labels[operands[0]] if passes.all() else self.next
            case "bar":
                self.epoch += 1
            case "ld" if modifiers[0] == "param":
                self.registers[operands[0]] = np.full(32, self.starts[operands[1][1:-1]], np.uint64)
            case "ld":
                self.load(modifiers, operands, passes)
            case "st":
                self.store(modifiers, operands, passes)
            case "mov" if operands[0].startswith("{"):
                parts = self.value(operands[1], "b64").view(np.uint32).reshape(32, 2)
                for register, part in zip(operands[0][1:-1].split(", "), parts.T, strict=True):
                    self.registers[register] = part.copy()
            case _:
                self.put(operands[0], self.result(name, modifiers, operands[1:]), passes)

    def put(self, register: str, value: np.ndarray, passes: np.ndarray) -> None:
        """Writes a register on the lanes that pass."""
        dtype = REGISTERS[register[1]]
        value = value.view(dtype) if value.dtype.itemsize == np.dtype(dtype).itemsize else value.astype(dtype)
        old = self.registers.get(register, np.zeros(32, dtype))
        self.registers[register] = np.where(passes, value, old)

    def value(self, x: str, kind: str) -> np.ndarray:
        """An operand on all lanes."""
        if x in self.registers:
            return self.registers[x]
        if x.startswith("{"):
            return np.stack([self.value(y, "b32") for y in x[1:-1].split(", ")], 1).reshape(64).view(np.uint64)
        if x.startswith(("0f", "0d")):
            return np.full(32, np.array(int(x[2:], 16), f"u{len(x) // 2 - 1}").view(TYPES[f"f{4 * len(x) - 8}"]))
        if x == "numbers" or x in self.starts:
            return np.full(32, self.starts.get(x, 0), np.uint64 if x in self.starts else np.uint32)
        return np.full(32, int(x)).astype(TYPES[kind])

    def result(self, name: str, modifiers: list[str], operands: list[str]) -> np.ndarray:
        """The result of an instruction that computes."""
        kind = modifiers[-1]
        if name == "shfl":
            source = self.value(operands[1], "s32").astype(int)
            return self.value(operands[0], "b32")[source & 31 if modifiers[1] == "idx" else LANES ^ source]
        if name == "selp":
            return np.where(
                self.value(operands[2], "pred"), self.value(operands[0], kind), self.value(operands[1], kind)
            )
        if name == "cvt":
            rounding = {"rmi": np.floor, "rzi": np.trunc, "rni": np.rint}.get(modifiers[0], np.asarray)
            return rounding(self.value(operands[0], kind)).astype(TYPES[modifiers[-2]])
        given = [self.value(x, kind) for x in operands]
        if name == "mov":
            return given[0]
        if "wide" in modifiers:
            return given[0].astype(np.uint64) * given[1].astype(np.uint64)
        given = [x.view(TYPES[kind]) if x.dtype.itemsize == np.dtype(TYPES[kind]).itemsize else x for x in given]
        if name == "setp":
            return COMPARISONS[modifiers[0]](*given)
        if name in ("max", "min"):
            with_nan = {"max": np.maximum, "min": np.minimum}
            return (with_nan if "NaN" in modifiers else {"max": np.fmax, "min": np.fmin})[name](*given)
        return ARITHMETIC[name](*given).astype(TYPES[kind])

    def address(self, operand: str, passes: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The bytes of an array that lanes meet, a row a lane; the array; and the lanes."""
        register, offset = re.fullmatch(r"\[(%?\w+)([+-]\d+)?\]", operand).groups()  # pyright: ignore
        place = self.value(register, "u64").astype(np.int64)[passes] + int(offset or 0)
        assert np.ptp(place >> 32) == 0 if place.size else True, "lanes meet different arrays"
        array = self.arrays[int(place[0]) >> 32 if place.size else 0]
        place = (place % SEGMENT)[:, None] + np.arange(width)
        assert place.size == 0 or (place.min() >= 0 and place.max() < array.size), ("outside", operand, self.next)
        return place, array, LANES[passes]

    def load(self, modifiers: list[str], operands: list[str], passes: np.ndarray) -> None:
        """Reads memory; shared memory only if no other lane has written it since the last barrier."""
        kind = modifiers[-1]
        where, array, lanes = self.address(operands[1], passes, np.dtype(TYPES[kind]).itemsize)
        if modifiers[0] == "shared":
            for word in where[:, ::4].T // 4:
                epoch, writer = self.writes[:, word]
                assert not np.any((epoch == self.epoch) & (writer != lanes)), ("no barrier before", operands, self.next)
                one = np.unique(word).size == word.size
                again = (self.reads[0, word] == self.epoch) & (self.reads[1, word] != lanes)
                self.reads[:, word] = np.full(lanes.size, self.epoch), np.where(again | (not one), -1, lanes)
        found = np.zeros(32, REGISTERS[operands[0][1]])
        found[passes] = array[where].copy().view(TYPES[kind])[:, 0]
        self.put(operands[0], found, passes)

    def store(self, modifiers: list[str], operands: list[str], passes: np.ndarray) -> None:
        """Writes memory; shared memory only if no other lane has met it since the last barrier."""
        kind = modifiers[-1]
        where, array, lanes = self.address(operands[0], passes, np.dtype(TYPES[kind]).itemsize)
        assert np.unique(where[:, 0]).size == len(where), ("lanes write the same", operands, self.next)
        if modifiers[0] == "shared":
            for word in where[:, ::4].T // 4:
                for epoch, lane in (self.writes[:, word], self.reads[:, word]):
                    assert not np.any((epoch == self.epoch) & (lane != lanes)), ("no barrier", operands, self.next)
                self.writes[:, word] = np.full(lanes.size, self.epoch), lanes
        value = self.value(operands[1], kind).astype(TYPES[kind])[passes]
        array[where] = value.view(np.uint8).reshape(len(where), -1)
