"""Packs arrays of numbers into one short text that the browser unpacks."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np

TYPES = {"u1": "Uint8", "u2": "Uint16", "u4": "Uint32", "i2": "Int16", "i4": "Int32", "f4": "Float32", "f8": "Float64"}


class PackedArrays:
    """Collects arrays; `text()` returns all of them, deflated and in base64.

    An array is stored column by column, on request as differences. Within a column all first bytes of the numbers come
    before all second bytes, so that numbers that change little yield runs of equal bytes.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._length = 0

    def add(self, values: np.ndarray, dtype: str, *, differences: int = 0) -> dict[str, Any]:
        """Adds an array of any shape; returns the reference to it that `viewer/unpack.js` reads.

        `dtype` is little-endian without its "<", such as "i4". Differences along the first axis are taken `differences`
        times. They are for integers and may overflow, as the sums that undo them overflow back.
        """
        array = np.ascontiguousarray(values).astype(f"<{dtype}")
        columns = int(np.prod(array.shape[1:], dtype=int))
        stored = array.reshape(len(array), columns).T
        for _ in range(differences):
            stored = np.diff(stored, axis=1, prepend=np.zeros((columns, 1), stored.dtype))
        stored = np.ascontiguousarray(stored)
        size = stored.dtype.itemsize
        part = stored.reshape(-1).view(np.uint8).reshape(-1, size).T.tobytes()
        reference = {"at": self._length, "count": stored.size, "type": TYPES[dtype], "columns": columns}
        self._parts.append(part)
        self._length += len(part)
        return {**reference, "differences": differences}

    def text(self) -> str:
        return deflated(b"".join(self._parts))


def deflated(data: bytes) -> str:
    """The bytes in zlib's format, which browsers call "deflate", as base64."""
    return base64.b64encode(zlib.compress(data, 9)).decode("ascii")


def steps_of(values: np.ndarray, step: float) -> np.ndarray:
    """Values rounded to whole numbers of steps."""
    return np.round(np.asarray(values, dtype=np.float64) / step).astype(np.int64)
