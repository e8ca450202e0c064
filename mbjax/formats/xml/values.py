"""Reads numbers and poses from attributes; errors name element, attribute, line, value and what was expected."""

import itertools
import math
import re
from collections.abc import Iterable
from typing import overload

import numpy as np

from mbjax.errors import ParseError
from mbjax.model import REPAIRED, near_matches
from mbjax.spatial import RigidTransform

from ..notes.load_notes import LoadNotes
from .tree import XmlElement

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?|[+-]?nan", re.IGNORECASE | re.ASCII)


MAX_TEXT_LENGTH = 4096
MAX_NAMES_COMPARED = 2000


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence that suggests names like one that was not found; its length is bounded, whatever the file holds."""
    names = [other[:100] for other in itertools.islice(known, MAX_NAMES_COMPARED)]
    return near_matches(name[:100], names)


def required_text(element: XmlElement, attribute: str) -> str:
    """Text of an attribute, stripped; a `ParseError` when it is missing, empty or absurdly long."""
    value = element.attributes.get(attribute)
    if value is None:
        raise element.error(f"{element.label} has no attribute '{attribute}'; write {attribute}=\"…\".")
    if not value.strip():
        raise element.error(f"{element.label}: attribute '{attribute}' is empty; give it a value.")
    if len(value) > MAX_TEXT_LENGTH:
        raise element.error(
            f"<{element.tag}>: attribute '{attribute}' has {len(value)} characters; at most {MAX_TEXT_LENGTH} are read."
        )
    return value.strip()


@overload
def numbers(
    element: XmlElement,
    attribute: str,
    count: int | tuple[int, ...],
    default: np.ndarray,
    *,
    allow_infinite: bool = False,
    surplus: LoadNotes | None = None,
) -> np.ndarray: ...
@overload
def numbers(
    element: XmlElement,
    attribute: str,
    count: int | tuple[int, ...],
    default: None = None,
    *,
    allow_infinite: bool = False,
    surplus: LoadNotes | None = None,
) -> np.ndarray | None: ...
def numbers(
    element: XmlElement,
    attribute: str,
    count: int | tuple[int, ...],
    default: np.ndarray | None = None,
    *,
    allow_infinite: bool = False,
    surplus: LoadNotes | None = None,
) -> np.ndarray | None:
    """`count` numbers (or one of several counts), separated by blanks; `default` without the attribute.

    Too few numbers are a `ParseError`, and so are too many, unless `surplus` gives notes: then the first ones are read
    and the rest is reported. Shapes have notes, as a plant of Drake reads shapes only where it has geometry at all.
    """
    text = element.attributes.get(attribute)
    if text is None:
        return default
    counts = (count,) if isinstance(count, int) else count
    words = text.split()
    if surplus is not None and len(words) > max(counts):
        words = _without_surplus(element, attribute, words, max(counts), surplus)
    return numbers_of(element, attribute, text, words, counts, allow_infinite)


def numbers_of(
    element: XmlElement, what: str, text: str, words: list[str], counts: tuple[int, ...], allow_infinite: bool
) -> np.ndarray:
    """The numbers that the words of a text are, refused unless there are as many as expected."""
    expected = " or ".join(str(c) for c in counts) + (" number" if counts == (1,) else " numbers")
    if len(words) not in counts:
        comma = " Separate them by blanks, not by commas." if "," in text else ""
        raise bad_value(element, what, text, f"{expected} expected, got {len(words)}.{comma}")
    return np.array([_number(element, what, text, word, expected, allow_infinite) for word in words])


def _without_surplus(element: XmlElement, attribute: str, words: list[str], count: int, notes: LoadNotes) -> list[str]:
    text, read = shortened(element.attributes[attribute]), f"the first {count} read"
    message = f'{attribute}="{text}" has {len(words)} numbers where {count} are expected: {read}'
    notes.add(REPAIRED, element.label, message, element.place)
    notes.warn("shapes with too many numbers, of which the first are read", f"{element.label} (line {element.line})")
    return words[:count]


def text_number(element: XmlElement, default: float | None = None) -> float:
    """The one finite number that is the element's text; `default` where the text is empty."""
    if not element.text and default is not None:
        return default
    return _number(element, "text", element.text, element.text, "a number", allow_infinite=False)


def number(
    element: XmlElement,
    attribute: str,
    default: float,
    *,
    lowest: float = -math.inf,
    allow_infinite: bool = False,
    surplus: LoadNotes | None = None,
) -> float:
    """Number of an attribute, at least `lowest`; `default` without the attribute."""
    values = numbers(element, attribute, 1, allow_infinite=allow_infinite, surplus=surplus)
    if values is None:
        return default
    value = float(values[0])
    if value < lowest:
        raise bad_value(element, attribute, element.attributes[attribute], f"at least {lowest:g} expected.")
    return value


def required_number(
    element: XmlElement, attribute: str, *, lowest: float = -math.inf, surplus: LoadNotes | None = None
) -> float:
    """Number of an attribute that must be present."""
    required_text(element, attribute)
    return number(element, attribute, math.nan, lowest=lowest, surplus=surplus)


def required_numbers(
    element: XmlElement, attribute: str, count: int, *, surplus: LoadNotes | None = None
) -> np.ndarray:
    """`count` numbers of an attribute that must be present."""
    required_text(element, attribute)
    values = numbers(element, attribute, count, surplus=surplus)
    assert values is not None
    return values


def origin_pose(parent: XmlElement, surplus: LoadNotes | None = None) -> RigidTransform:
    """Pose of the child <origin>; identity without one."""
    origin = parent.only("origin")
    return RigidTransform(np.eye(3), np.zeros(3)) if origin is None else pose(origin, surplus)


def pose(element: XmlElement, surplus: LoadNotes | None = None) -> RigidTransform:
    """Pose from the attributes xyz and rpy or quat_xyzw (URDF 1.2)."""
    translation = numbers(element, "xyz", 3, np.zeros(3), surplus=surplus)
    quaternion = numbers(element, "quat_xyzw", 4, surplus=surplus)
    if quaternion is None:
        rpy = numbers(element, "rpy", 3, np.zeros(3), surplus=surplus)
        return RigidTransform(rotation_from_rpy(rpy), translation)
    if "rpy" in element.attributes:
        raise element.error(f"{element.label} has both 'rpy' and 'quat_xyzw'; keep one.")
    largest = float(np.abs(quaternion).max())
    if largest < 1e-8:
        raise bad_value(element, "quat_xyzw", element.attributes["quat_xyzw"], "a quaternion other than zero expected.")
    quaternion = quaternion / largest  # or squares might overflow
    return RigidTransform(rotation_from_quaternion(*(quaternion / np.linalg.norm(quaternion))), translation)


def rotation_from_rpy(rpy: np.ndarray) -> np.ndarray:
    """Rotation matrix Rz(yaw) Ry(pitch) Rx(roll), in double precision whatever JAX's default is."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def rotation_from_quaternion(x: float, y: float, z: float, w: float) -> np.ndarray:
    """Rotation matrix of a unit quaternion."""
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def shortest_rotation_from_z(direction: np.ndarray) -> np.ndarray:
    """The matrix that turns z into a unit vector the shortest way."""
    x, y, z = direction
    if z < -1.0 + 1e-12:
        return np.diag([1.0, -1.0, -1.0])
    skew = np.array([[0.0, 0.0, x], [0.0, 0.0, y], [-x, -y, 0.0]])
    return np.eye(3) + skew + skew @ skew / (1.0 + z)


def shortened(text: str, length: int = 60) -> str:
    return text if len(text) <= length else f"{text[:length]}… ({len(text)} characters)"


def _number(element: XmlElement, attribute: str, text: str, word: str, expected: str, allow_infinite: bool) -> float:
    if len(word) > 400 or not NUMBER.fullmatch(word):
        xacro = " This is a xacro expression: expand it first, or load it with xacro_arguments={}."
        hint = xacro if "${" in text else ""
        raise bad_value(element, attribute, text, f"'{shortened(word)}' is not a number; {expected} expected.{hint}")
    value = float(word)
    if math.isnan(value) or (math.isinf(value) and not allow_infinite):
        raise bad_value(element, attribute, text, f"{expected} expected, and finite.")
    return value


def bad_value(element: XmlElement, attribute: str, text: str, expected: str) -> ParseError:
    """The error for a value that is not what it should be."""
    return element.error(f'{element.label}: {attribute}="{shortened(text)}": {expected}')
