"""Reads joint states as ROS 2 records them: `sensor_msgs/msg/JointState` in CDR, the encoding of DDS (OMG 2008)."""

import struct
from typing import Any

from mbjax.errors import ModelError

JOINT_STATE = "sensor_msgs/msg/JointState"


class CdrReader:
    """Numbers and text from CDR: each number at a multiple of its size, counted after the four bytes of the head."""

    def __init__(self, data: bytes):
        self.data, self.place = data, 4
        self.order = "<" if data[1] & 1 else ">"

    def numbers(self, kind: str, count: int) -> tuple:
        """`count` numbers of a kind of `struct`."""
        size = struct.calcsize(kind)
        self.place += (4 - self.place) % size if count else 0
        start, self.place = self.place, self.place + size * count
        return struct.unpack_from(f"{self.order}{count}{kind}", self.data, start)

    def text(self) -> str:
        """Its length with a closing zero, then its bytes."""
        (length,) = self.numbers("I", 1)
        start, self.place = self.place, self.place + length
        return self.data[start : self.place].rstrip(b"\0").decode()

    def doubles(self) -> list[float]:
        """Their count, then the numbers."""
        (count,) = self.numbers("I", 1)
        return list(self.numbers("d", count))


def read_joint_state(data: bytes) -> dict[str, Any]:
    """Names, positions, velocities and efforts of one message."""
    try:
        reader = CdrReader(data)
        reader.numbers("I", 2)  # the stamp
        reader.text()  # the frame
        (count,) = reader.numbers("I", 1)
        names = [reader.text() for _ in range(count)]
        return {"name": names} | {signal: reader.doubles() for signal in ("position", "velocity", "effort")}
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ModelError(f"a message of {JOINT_STATE} is cut short or no CDR: {error}.") from None
