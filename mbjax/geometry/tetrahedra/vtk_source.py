"""Words and numbers of a legacy VTK file: ASCII or big-endian bytes after a header that is text in both."""

import functools
import re
import warnings
from typing import NoReturn

import numpy as np
from jaxtyping import Int

from mbjax.errors import ParseError

# The names of types in a file, and the bytes of a number; vtkIdType is written as int.
NUMBER_TYPES = {
    "char": "i1", "signed_char": "i1", "unsigned_char": "u1", "short": ">i2", "unsigned_short": ">u2", "int": ">i4",
    "unsigned_int": ">u4", "long": ">i8", "unsigned_long": ">u8", "vtkidtype": ">i4", "vtktypeint64": ">i8",
    "vtktypeuint64": ">u8", "float": ">f4", "double": ">f8",
}  # fmt: skip
SPACE = b" \t\n\v\f\r"
IS_SPACE = np.isin(np.arange(256), np.frombuffer(SPACE, np.uint8))
WORD = re.compile(rb"[^ \t\n\v\f\r]+")
COUNT = re.compile(r"\d{1,18}")
FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE)
INTEGER = re.compile(r"[+-]?\d{1,20}")
SATURATED = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max])  # what larger integers are read as
LONGEST_SHOWN = 40


class VtkSource:
    """The bytes of a file and how far they are read; errors name the line, or the byte where numbers are binary."""

    def __init__(self, data: bytes, file: str):
        self.data = data
        self.file = file
        self.is_binary = False
        self.position = 0
        self.begin = 0  # of the numbers read last

    @functools.cached_property
    def starts(self) -> Int[np.ndarray, " words"]:
        """Where each word of the file starts."""
        is_solid = ~IS_SPACE[np.frombuffer(self.data, np.uint8)]
        is_start = is_solid.copy()
        is_start[1:] &= ~is_solid[:-1]
        return np.flatnonzero(is_start)

    def fail(self, message: str, position: int | None = None) -> NoReturn:
        """Raises ParseError with the place."""
        position = self.position if position is None else position
        if self.is_binary:
            raise ParseError(f"byte {position}: {message}.", file=self.file)
        raise ParseError(f"{message}.", file=self.file, line=self.line_of(position))

    def line_of(self, position: int) -> int:
        """The number of the line that a byte is on, from 1."""
        return self.data.count(b"\n", 0, position) + 1

    def line_of_number(self, begin: int, index: int) -> int | None:
        """The line of one of the numbers that begin at a byte; None where they are binary."""
        if self.is_binary:
            return None
        word = int(np.searchsorted(self.starts, begin)) + index
        return self.line_of(int(self.starts[min(word, len(self.starts) - 1)]))

    def line(self) -> str:
        """What is left of the current line."""
        end = self.data.find(b"\n", self.position)
        end = len(self.data) if end < 0 else end
        text = self.data[self.position : end]
        self.position = min(end + 1, len(self.data))
        return text.decode("utf-8", "replace").rstrip("\r")

    def word(self, what: str) -> str:
        """The next word, which must be there."""
        found = WORD.search(self.data, self.position)
        if found is None:
            self.fail(f"the file ends where {what} is expected; it may be truncated", len(self.data))
        self.position = found.end()
        return found.group().decode("utf-8", "replace")

    def next_word(self) -> str | None:
        """The next word without going past it; None at the end of the file."""
        found = WORD.search(self.data, self.position)
        return None if found is None else found.group().decode("utf-8", "replace")

    def count(self, what: str) -> int:
        """The next word as a number that counts something."""
        word = self.word(what)
        if COUNT.fullmatch(word) is None:
            self.fail(f"{what} is {shown(word)}; expected a number that counts, from 0", self.position - 1)
        return int(word)

    def type(self, what: str) -> str:
        """The next word as the name of a type of numbers."""
        word = self.word(f"the type of {what}").lower()
        if word not in NUMBER_TYPES:
            self.fail(
                f"{what} are of type {shown(word)}, which is not read; convert them to one of "
                f"{', '.join(NUMBER_TYPES)}",
                self.position - 1,
            )
        return word

    def numbers(self, count: int, type_name: str, what: str) -> np.ndarray:
        """That many numbers, which start in the next line where they are binary."""
        stored = np.dtype(NUMBER_TYPES[type_name])
        if self.is_binary:
            self.line()
            return self.binary_numbers(count, stored, what)
        return self.written_numbers(count, stored, what)

    def binary_numbers(self, count: int, stored: np.dtype, what: str) -> np.ndarray:
        left = len(self.data) - self.position
        if count * stored.itemsize > left:
            self.fail(
                f"{what} are {count} numbers of {stored.itemsize} bytes, but {left} bytes are left; the file may be "
                "truncated"
            )
        self.begin = self.position
        values = np.frombuffer(self.data, stored, count, self.position)
        self.position += count * stored.itemsize
        return values.astype(stored.newbyteorder("="))

    def written_numbers(self, count: int, stored: np.dtype, what: str) -> np.ndarray:
        first = int(np.searchsorted(self.starts, self.position))
        left = len(self.starts) - first
        if count > left:
            self.fail(f"{what} are {count} numbers, but {left} words are left; the file may be truncated")
        if not count:
            return np.zeros(0, stored.newbyteorder("="))
        begin = self.begin = int(self.starts[first])
        end = int(self.starts[first + count]) if count < left else len(self.data)
        values = self.parsed(begin, end, count, stored, what)
        self.position = begin + len(self.data[begin:end].rstrip(SPACE))
        if stored.kind != "f":
            limits = np.iinfo(stored)
            outside = np.flatnonzero((values < limits.min) | (values > limits.max))
            if len(outside):
                place = int(self.starts[first + int(outside[0])])
                self.fail(f"{what} are of type {stored.name}, which cannot hold {values[outside[0]]}", place)
        with np.errstate(over="ignore"):  # to infinity, which is looked at where it matters
            return values.astype(stored.newbyteorder("="))

    def parsed(self, begin: int, end: int, count: int, stored: np.dtype, what: str) -> np.ndarray:
        """Written numbers as float64, int64 or Python's integers; the first word that is none is an error."""
        wanted, pattern = (float, FLOAT) if stored.kind == "f" else (np.int64, INTEGER)
        text = self.data[begin:end]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # where words are no numbers, which is looked at below
            try:
                values = np.fromstring(text, wanted, sep=" ")
            except ValueError:
                values = np.zeros(0)
        if len(values) == count and (stored.kind == "f" or not np.isin(values, SATURATED).any()):
            return values
        for found in WORD.finditer(text):
            word = found.group().decode("utf-8", "replace")
            if pattern.fullmatch(word) is None:
                kind = "a number" if stored.kind == "f" else "a whole number"
                words = f"{what} are {count} numbers, but one of them is {shown(word)}, not {kind}"
                self.fail(words, begin + found.start())
        exact, kept = (float, float) if stored.kind == "f" else (int, object)
        return np.array([exact(word) for word in text.split()], kept)


def shown(word: str) -> str:
    """A word of a file for a message."""
    return repr(word if len(word) <= LONGEST_SHOWN else word[:LONGEST_SHOWN] + "…")
