"""Numbers, words and poses of SDFormat, which holds them in the text of elements."""

import math

import numpy as np

from mbjax.errors import ParseError
from mbjax.spatial import RigidTransform

from ..xml.tree import XmlElement
from ..xml.values import MAX_TEXT_LENGTH, bad_value, numbers_of, rotation_from_quaternion, rotation_from_rpy

TRUE, FALSE = ("true", "1"), ("false", "0")


def text_of(element: XmlElement) -> str:
    """The text of an element, which must have some."""
    if not element.text:
        raise element.error(f"{element.label} is empty; write a value between its tags.")
    if len(element.text) > MAX_TEXT_LENGTH:
        raise element.error(f"<{element.tag}> has {len(element.text)} characters; at most {MAX_TEXT_LENGTH} are read.")
    return element.text


def required_child(parent: XmlElement, tag: str) -> XmlElement:
    """The one child with this tag."""
    child = parent.only(tag)
    if child is None:
        raise parent.error(f"{parent.label} has no <{tag}>; add one.")
    return child


def child_text(parent: XmlElement, tag: str, default: str | None = None) -> str:
    """The text of a child; `default` without the child, an error where there is none."""
    child = parent.only(tag) if default is not None else required_child(parent, tag)
    if child is None:
        assert default is not None
        return default
    return text_of(child)


def text_numbers(element: XmlElement, counts: int | tuple[int, ...], *, allow_infinite: bool = False) -> np.ndarray:
    """The numbers that are the text of an element."""
    counts = (counts,) if isinstance(counts, int) else counts
    text = text_of(element)
    return numbers_of(element, "text", text, text.split(), counts, allow_infinite)


def child_numbers(parent: XmlElement, tag: str, count: int, default: np.ndarray | None = None) -> np.ndarray:
    """The numbers of a child; `default` without the child, an error where there is none."""
    child = required_child(parent, tag) if default is None else parent.only(tag)
    if child is None:
        assert default is not None
        return default
    return text_numbers(child, count)


def child_number(
    parent: XmlElement,
    tag: str,
    default: float | None = None,
    *,
    lowest: float = -math.inf,
    allow_infinite: bool = False,
) -> float:
    """The one number of a child, at least `lowest`; `default` without the child, an error where there is none."""
    child = required_child(parent, tag) if default is None else parent.only(tag)
    if child is None:
        assert default is not None
        return default
    value = float(text_numbers(child, 1, allow_infinite=allow_infinite)[0])
    if value < lowest:
        raise bad_value(child, "text", child.text, f"at least {lowest:g} expected.")
    return value


def child_flag(parent: XmlElement, tag: str, default: bool = False) -> bool:
    """Whether a child says true; `default` without the child."""
    child = parent.only(tag)
    return default if child is None else flag(child, text_of(child))


def flag(element: XmlElement, text: str) -> bool:
    """The truth value that a word is."""
    word = text.strip().lower()
    if word not in (*TRUE, *FALSE):
        raise bad_value(element, "text", text, "true or false expected.")
    return word in TRUE


def raw_pose(holder: XmlElement) -> tuple[RigidTransform, str]:
    """The numbers of the child <pose>, and the name of the frame they are relative to, empty where none is named."""
    element = holder.only("pose")
    if element is None:
        return identity(), ""
    relative_to = element.attributes.get("relative_to", element.attributes.get("frame", "")).strip()
    return pose_numbers(element), relative_to


def pose_numbers(element: XmlElement) -> RigidTransform:
    """Position, and angles of roll, pitch and yaw or a quaternion; identity where the element is empty."""
    if not element.text:
        return identity()
    form = element.attributes.get("rotation_format", "euler_rpy").strip()
    degrees = flag(element, element.attributes.get("degrees", "false"))
    if form not in ("euler_rpy", "quat_xyzw"):
        raise bad_value(element, "rotation_format", form, "euler_rpy or quat_xyzw expected.")
    values = text_numbers(element, 6 if form == "euler_rpy" else 7)
    if form == "euler_rpy":
        return RigidTransform(rotation_from_rpy(np.deg2rad(values[3:]) if degrees else values[3:]), values[:3])
    if degrees:
        raise element.error(f'{element.label}: degrees="true" has no meaning for a quaternion; remove it.')
    largest = float(np.abs(values[3:]).max())
    if largest < 1e-8:
        raise bad_value(element, "text", element.text, "a quaternion other than zero expected.")
    scaled = values[3:] / largest
    return RigidTransform(rotation_from_quaternion(*(scaled / np.linalg.norm(scaled))), values[:3])


def identity() -> RigidTransform:
    return RigidTransform(np.eye(3), np.zeros(3))


def product(X_AB: RigidTransform, X_BC: RigidTransform) -> RigidTransform:
    """X_AC in double precision, whatever JAX's is."""
    R_AB, p_AB = np.asarray(X_AB.rotation), np.asarray(X_AB.translation)
    with np.errstate(over="ignore", invalid="ignore"):
        return RigidTransform(R_AB @ np.asarray(X_BC.rotation), R_AB @ np.asarray(X_BC.translation) + p_AB)


def inverse(X_AB: RigidTransform) -> RigidTransform:
    """X_BA in double precision."""
    R_BA = np.asarray(X_AB.rotation).T
    with np.errstate(over="ignore", invalid="ignore"):
        return RigidTransform(R_BA, -R_BA @ np.asarray(X_AB.translation))


def unit_vector(element: XmlElement, values: np.ndarray) -> np.ndarray:
    """The direction of three numbers, which must have one."""
    largest = float(np.abs(values).max())
    if largest < 1e-10:
        raise no_direction(element)
    return values / largest / np.linalg.norm(values / largest)


def no_direction(element: XmlElement) -> ParseError:
    return bad_value(element, "text", element.text, 'a vector other than zero expected, like "0 0 1".')
