"""XML elements from Python values, and their text."""

import xml.etree.ElementTree as ElementTree  # writes only; reading is defusedxml's
from typing import Any

from ..records.numbers import numbers_text

Element = ElementTree.Element


def add(parent: Element, tag: str, text: Any = None, /, **attributes: Any) -> Element:
    """A new child; numbers are written with all digits, attributes that are None are left out."""
    element = ElementTree.SubElement(parent, tag, attributes_of(attributes))
    if text is not None:
        element.text = as_text(text)
    return element


def new(tag: str, /, **attributes: Any) -> Element:
    """A root element."""
    return Element(tag, attributes_of(attributes))


def attributes_of(values: dict[str, Any]) -> dict[str, str]:
    return {name: as_text(value) for name, value in values.items() if value is not None}


def as_text(value: Any) -> str:
    """A text as it is, and truth values and numbers as files have them."""
    if isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else numbers_text(value)


def document_text(root: Element) -> str:
    """The text of a file."""
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False) + "\n"
