"""Arrays in a kernel in which a warp computes a world: where their numbers are, and how they get where they are needed.

The first axis of an array is taken apart into rows; the others together lie on the lanes, 32 numbers a register. So
components and columns are registers of their own, and stacking and indexing them costs nothing.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .gpu_kernels import NotInKernelError
from .warp_text import LANES, TYPES, WIDTHS, Memory, WarpText, literal

FEW_PIECES = 3  # for more, numbers are put together in memory


def kind_of(dtype: Any) -> str:
    """The type of PTX for a type of NumPy."""
    try:
        return TYPES[np.dtype(dtype).name]
    except KeyError:
        raise NotInKernelError from None


@dataclass(eq=False)
class Rows:
    """Numbers in registers: a list for each row, a register for each 32 of its numbers; of one number, all lanes'."""

    shape: tuple[int, ...]
    kind: str
    rows: list[list[str]]
    copies: dict[str, tuple] = field(default_factory=dict)


@dataclass(eq=False)
class Stored:
    """Numbers in memory at addresses in bytes, all of them moved by the number of bytes in a register, if any."""

    shape: tuple[int, ...]
    kind: str
    memory: Memory
    addresses: np.ndarray
    moved_by: str | None = None
    copies: dict[str, tuple] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.memory.views.add(self)


@dataclass(eq=False)
class Picked:
    """Numbers of `Rows`, at positions counted row by row, that no register has in this order."""

    shape: tuple[int, ...]
    source: Rows
    positions: np.ndarray
    copies: dict[str, tuple] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """Type of the numbers."""
        return self.source.kind


@dataclass(eq=False)
class Constant:
    """Known numbers."""

    array: np.ndarray
    copies: dict[str, tuple] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.array.shape

    @property
    def kind(self) -> str:
        """Type of the numbers."""
        return kind_of(self.array.dtype)


WarpArray = Rows | Stored | Picked | Constant


def row_length(shape: Sequence[int]) -> int:
    """How many numbers lie on the lanes."""
    return math.prod(shape[1:]) if len(shape) > 1 else math.prod(shape)


def num_rows(shape: Sequence[int]) -> int:
    """How many rows an array is taken apart into."""
    return shape[0] if len(shape) > 1 else 1


def pick(x: WarpArray, positions: np.ndarray) -> WarpArray:
    """The array of the numbers of x at positions, counted row by row."""
    shape = positions.shape
    match x:
        case Constant():
            return Constant(x.array.ravel()[positions])
        case Stored():
            return Stored(shape, x.kind, x.memory, x.addresses.ravel()[positions], x.moved_by)
        case Picked():
            return pick(x.source, x.positions.ravel()[positions])
    old, new = row_length(x.shape), row_length(shape)
    if positions.size == 0:
        return Rows(shape, x.kind, [[] for _ in range(num_rows(shape))])
    found = []
    for row in positions.reshape(num_rows(shape), new):
        first = int(row[0])
        if old == 1 and np.all(row == first):
            found.append(x.rows[first] * math.ceil(new / LANES))
        elif first % old == 0 and new == old and np.array_equal(row, np.arange(first, first + new)):
            found.append(x.rows[first // old])
        else:
            return Picked(shape, x, positions)
    return Rows(shape, x.kind, found)


def positions_of(shape: Sequence[int]) -> np.ndarray:
    """The positions of an array's own numbers."""
    return np.arange(math.prod(shape)).reshape(shape)


def in_registers(text: WarpText, x: WarpArray) -> Rows:
    """The same array in registers."""
    return x if isinstance(x, Rows) else copy_of(text, x, "registers", loaded)


def copy_of(text: WarpText, x: Any, where: str, make: Callable) -> Any:
    """A copy of an array that was made in this block of code or one around it; makes it if it was not."""
    scope, found = x.copies.get(where, (None, None))
    if not any(scope is known for known in text.scopes):
        found = make(text, x)
        x.copies[where] = text.scopes[-1], found
    return found


def loaded(text: WarpText, x: Stored | Picked | Constant) -> Rows:
    """Brings an array into registers."""
    length, found = row_length(x.shape), []
    for row in positions_of(x.shape).reshape(num_rows(x.shape), length):
        found.append([of_lanes(text, x, row[k : k + LANES]) for k in range(0, length, LANES)])
    return Rows(x.shape, x.kind, found)


def of_lanes(text: WarpText, x: WarpArray, places: np.ndarray) -> str:
    """A register with the numbers of x at up to 32 places, each on its lane; -1 where any number will do."""
    match x:
        case Stored():
            return read(text, x.memory, x.kind, filled(x.addresses.ravel(), places, x.memory), x.moved_by)
        case Constant():
            return constant(text, x.kind, filled(x.array.ravel(), places, None))
        case Picked():
            places = np.where(places < 0, -1, x.positions.ravel()[places])
            return of_lanes(text, x.source, places)
    length, wanted = row_length(x.shape), places >= 0
    row, place = np.divmod(places, length)
    chunk, lane = np.divmod(place, LANES)
    if np.ptp(row[wanted]) or np.ptp(chunk[wanted]):
        home = in_memory(text, x)
        return read(text, home.memory, x.kind, filled(home.addresses.ravel(), places, home.memory), None)
    register = x.rows[row[wanted][0]][chunk[wanted][0]]
    is_for_all = places.size == 1  # what is one number is on all lanes
    if length == 1 or (not is_for_all and np.array_equal(lane[wanted], np.flatnonzero(wanted))):
        return register
    return shuffled(text, register, x.kind, continued(lane, wanted))


def filled(values: np.ndarray, places: np.ndarray, memory: Memory | None) -> np.ndarray:
    """The values at places; where any will do, addresses that continue the others, or copies of one."""
    wanted = places >= 0
    found = np.where(wanted, values[places], values[places[wanted][0]])
    if memory is None or wanted.all():
        return found
    further = continued(np.where(wanted, values[places], 0), wanted)
    end = memory.start + memory.size - values.itemsize
    return further if memory.size and further.min() >= memory.start and further.max() <= end else found


def continued(x: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Whole numbers of which some are wanted; the others continue their steps if these are equal."""
    at = np.flatnonzero(wanted)
    steps = np.diff(x[at]) / np.diff(at)
    if steps.size and np.ptp(steps):
        return np.where(wanted, x, x[at[0]])
    step = int(steps[0]) if steps.size else 0
    return x[at[0]] + step * (np.arange(x.size) - at[0])


def constant(text: WarpText, kind: str, part: np.ndarray) -> str:
    """Known numbers, as a literal if all are equal."""
    bits = part.astype(np.uint32) if kind == "pred" else part
    if np.all(bits.view(f"u{bits.itemsize}") == bits.view(f"u{bits.itemsize}")[0]):
        if kind != "pred":
            return literal(part[0], kind)
        return text.at_start(("truth", bool(part[0])), f"setp.{'eq' if part[0] else 'ne'}.u32 {{}}, 0, 0;", "pred")
    memory = Memory("global", text.address_of_table(bits), is_constant=True)
    return read(text, memory, kind, np.arange(part.size) * bits.itemsize, None)


def read(text: WarpText, memory: Memory, kind: str, addresses: np.ndarray, moved_by: str | None) -> str:
    """Reads up to 32 numbers at addresses, one each lane."""
    where, lanes = address(text, memory, addresses, moved_by)
    if not memory.is_constant:
        text.will_read(memory.space, *stretch(memory, WIDTHS[kind], addresses, moved_by))
    suffix = ".nc" if memory.is_constant else ""
    result = text.register("u32" if kind == "pred" else kind)
    text.line(f"{lanes}ld.{memory.space}{suffix}.{memory.truth if kind == 'pred' else kind} {result}, [{where}];")
    return result if kind != "pred" else text.compute("setp.ne.u32", "pred", result, "0")


def write(
    text: WarpText, memory: Memory, kind: str, addresses: np.ndarray, register: str, moved_by: str | None = None
) -> None:
    """Writes up to 32 numbers to addresses, each lane one."""
    where, lanes = address(text, memory, addresses, moved_by)
    width = WIDTHS[kind]
    if kind == "pred":
        register, kind = text.compute("selp.u32", "u32", "1", "0", register), memory.truth
    elif not register.startswith("%"):
        register = text.compute(f"mov.{kind}", kind, register)
    if addresses.size == 1:
        lanes = f"@{text.is_below(1)} "
    if memory.text is not None or memory.space == "shared":
        text.will_write(memory.space, *stretch(memory, width, addresses, moved_by))
    text.line(f"{lanes}st.{memory.space}.{kind} [{where}], {register};")


def stretch(memory: Memory, width: int, addresses: np.ndarray, moved_by: str | None) -> tuple[int, int]:
    """First and last byte that may be met; all of the memory if the addresses move."""
    if moved_by is not None:
        return memory.start, memory.start + memory.size
    return int(addresses.min()), int(addresses.max()) + width


def address(text: WarpText, memory: Memory, addresses: np.ndarray, moved_by: str | None) -> tuple[str, str]:
    """How a lane writes its address, and the mark of the lanes that have one."""
    kind = "u32" if memory.space == "shared" else "u64"
    start, lanes = int(addresses[0]), ""
    steps = np.diff(addresses)
    register = text.base_of(memory)
    if steps.size and np.any(steps):
        if addresses.size < LANES:
            lanes = f"@{text.is_below(addresses.size)} "
        if np.ptp(steps) == 0 and steps[0] > 0:
            register = text.lanes_from(register, int(steps[0]), kind)
        else:
            start = int(addresses.min())
            register = text.lanes_by_table(register, addresses - start, kind)
    if moved_by is not None:
        by = (
            moved_by
            if kind == "u32"
            else text.known(("wide", moved_by), lambda: text.compute("cvt.u64.u32", "u64", moved_by))
        )
        register = text.known(("moved", register, by), lambda: text.compute(f"add.{kind}", kind, register, by))
    return f"{register}+{start}" if start >= 0 else f"{register}{start}", lanes


def shuffled(text: WarpText, register: str, kind: str, lanes: np.ndarray) -> str:
    """Numbers of one register, taken from other lanes."""
    if not register.startswith("%"):
        return register
    key = "shuffled", register, lanes.tobytes()
    return text.known(key, lambda: shuffle(text, register, kind, lanes))


def shuffle(text: WarpText, register: str, kind: str, lanes: np.ndarray) -> str:
    """Moves numbers between lanes, in pieces of 32 bits."""
    steps = np.diff(lanes)
    if not np.any(steps):
        source = str(int(lanes[0]))
    elif np.ptp(steps) == 0:
        step, first = int(steps[0]), int(lanes[0])
        line = f"mad.lo.s32 {{}}, {text.lane()}, {step}, {first};"
        source = text.at_start(("lane", step, first), line, "s32")
    else:
        table = text.lanes_by_table("", lanes.astype(np.int64), "u32")
        source = table
    return move_lanes(text, register, kind, "idx", source)


def move_lanes(text: WarpText, register: str, kind: str, mode: str, source: str) -> str:
    """One shuffle instruction for each 32 bits of the numbers."""

    def one(x: str) -> str:
        result = text.register("b32")
        text.line(f"shfl.sync.{mode}.b32 {result}, {x}, {source}, 31, 0xffffffff;")
        return result

    if kind == "pred":
        truth = one(text.compute("selp.u32", "u32", "1", "0", register))
        return text.compute("setp.ne.u32", "pred", truth, "0")
    if WIDTHS[kind] == 4:
        return text.compute("mov.b32", kind, one(text.compute("mov.b32", "b32", register)))
    low, high = text.register("b32"), text.register("b32")
    text.line(f"mov.b64 {{{low}, {high}}}, {register};")
    return text.compute("mov.b64", kind, f"{{{one(low)}, {one(high)}}}")


def in_memory(text: WarpText, x: WarpArray) -> Stored:
    """The same array in memory, one number after the other; where it is already, at any addresses."""
    if isinstance(x, Stored):
        return x
    return copy_of(text, x, "memory", copied)


def copied(text: WarpText, x: WarpArray) -> Stored:
    """A copy of an array in shared memory of its own, one number after the other."""
    rows, width = in_registers(text, x), WIDTHS[x.kind]
    memory = text.reserve(math.prod(x.shape) * width)
    addresses = memory.start + width * positions_of(x.shape)
    put(text, memory, addresses, rows)
    return Stored(x.shape, x.kind, memory, addresses)


def put(text: WarpText, memory: Memory, addresses: np.ndarray, x: Rows, moved_by: str | None = None) -> None:
    """Writes an array's numbers to addresses."""
    length = row_length(x.shape)
    for registers, row in zip(x.rows, addresses.reshape(num_rows(x.shape), length), strict=True):
        for k, register in enumerate(registers):
            write(text, memory, x.kind, row[k * LANES : (k + 1) * LANES], register, moved_by)


def assemble(text: WarpText, pieces: Sequence[WarpArray], owners: np.ndarray, positions: np.ndarray) -> WarpArray:
    """The array whose numbers belong to the pieces `owners`, at `positions` in them."""
    shape, kind = owners.shape, pieces[0].kind
    if all(isinstance(x, Constant) for x in pieces):
        flat = [x.array.ravel() for x in pieces]  # pyright: ignore[reportAttributeAccessIssue]
        out = np.empty(owners.shape, flat[0].dtype)
        for k, x in enumerate(flat):
            out[owners == k] = x[positions[owners == k]]
        return Constant(out)
    if all(isinstance(x, Stored) and x.memory is pieces[0].memory and x.moved_by is None for x in pieces):  # pyright: ignore
        out = np.empty(owners.shape, int)
        for k, x in enumerate(pieces):
            out[owners == k] = x.addresses.ravel()[positions[owners == k]]  # pyright: ignore
        return Stored(shape, kind, pieces[0].memory, out)  # pyright: ignore
    length, found = row_length(shape), []
    table = zip(owners.reshape(num_rows(shape), length), positions.reshape(num_rows(shape), length), strict=True)
    for own, place in table:
        row = []
        for k in range(0, length, LANES):
            part, where = own[k : k + LANES], place[k : k + LANES]
            changes = np.flatnonzero(np.diff(part))
            if len(changes) >= FEW_PIECES:
                return assembled_in_memory(text, pieces, owners, positions)
            register = None
            for end in [*(changes + 1).tolist(), part.size][::-1]:
                # the piece that ends last comes first; each earlier one replaces the lanes below its end
                own_part = part == part[end - 1]
                new = of_lanes(text, pieces[part[end - 1]], np.where(own_part, where, -1))
                register = new if register is None else select(text, kind, text.is_below(end), new, register)
            row.append(register)
        found.append(row)
    return Rows(shape, kind, found)


def assembled_in_memory(
    text: WarpText, pieces: Sequence[WarpArray], owners: np.ndarray, positions: np.ndarray
) -> Stored:
    """The same, each piece written into its place."""
    kind, width = pieces[0].kind, WIDTHS[pieces[0].kind]
    memory = text.reserve(owners.size * width)
    addresses = memory.start + width * positions_of(owners.shape)
    for k, piece in enumerate(pieces):
        chosen, there = positions[owners == k], addresses[owners == k]
        size = math.prod(piece.shape)
        if chosen.size == size and np.unique(chosen).size == size:
            there = there[np.argsort(chosen)].reshape(piece.shape)
        else:  # some of its numbers are nowhere, or at several places
            piece = pick(piece, chosen)
        put(text, memory, there, in_registers(text, piece))
    return Stored(owners.shape, kind, memory, addresses)


def select(text: WarpText, kind: str, where: str | None, x: str, y: str) -> str:
    """x on the lanes where a predicate holds, else y."""
    if where is None or x == y:
        return x
    if kind != "pred":
        return text.compute(f"selp.{kind}", kind, x, y, where)
    both = text.compute("and.pred", "pred", x, where)
    rest = text.compute("and.pred", "pred", y, text.compute("not.pred", "pred", where))
    return text.compute("or.pred", "pred", both, rest)
