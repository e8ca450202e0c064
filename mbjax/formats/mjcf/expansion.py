"""Refuses MJCF files that MuJoCo's compiler would make something huge of: copies, cells, keyframes, user numbers."""

import math
from collections.abc import Mapping, Sequence

from ..files.reading_policy import MAX_CELLS, MAX_KEYFRAMES, MAX_MADE, MAX_MESH_PARAMETER, MAX_USER_NUMBERS
from ..xml.tree import XmlElement

FOUND = "mbjax: found"  # attribute of <model>: the file that was read for it
COPYING = ("replicate", "composite", "flexcomp")  # by their `count`
CUBES = ("", "cube", "skybox")  # types of textures with six faces; cube is the default
LARGEST = {  # numbers by element and attribute; without an element in all that have it
    ("size", "nkey"): (MAX_KEYFRAMES, "keyframes"),
    ("user", "dim"): (MAX_USER_NUMBERS, "numbers"),
    ("numeric", "size"): (MAX_USER_NUMBERS, "numbers"),
    ("flexcomp", "cellcount"): (MAX_USER_NUMBERS, "cells along an axis"),
    ("skin", "subgrid"): (MAX_USER_NUMBERS, "cells along an edge"),
    ("", "actdim"): (MAX_USER_NUMBERS, "activations"),
    ("", "nsample"): (MAX_USER_NUMBERS, "samples"),
}


def refuse_expansion(elements: Sequence[XmlElement], models: Mapping[str, Sequence[XmlElement]]) -> None:
    """Refuses counts by which a small file becomes a huge model; `models` are the files that <model> names."""
    for part in (elements, *models.values()):
        for element in with_all_below(part):
            refuse_numbers(element)
    sizes: dict[str, float] = {}
    for file, part in models.items():  # a file stands after those that it names
        sizes[file] = size_once_copied(part, sizes)
    keys = [x for part in (elements, *models.values()) for x in with_all_below(part) if x.tag == "key"]
    if len(keys) > MAX_KEYFRAMES:
        raise keys[MAX_KEYFRAMES].error(f"<key>: the file has {len(keys)}; at most {MAX_KEYFRAMES} are read.")
    size_once_copied(elements, sizes)


def with_all_below(elements: Sequence[XmlElement]) -> list[XmlElement]:
    """The elements and all inside of them."""
    found = list(elements)
    for element in found:
        found.extend(element.children)
    return found


def size_once_copied(elements: Sequence[XmlElement], sizes: Mapping[str, float]) -> float:
    """Number of elements once copies are made; refuses more than the policy allows that are not written out."""
    files = {
        element.attributes.get("name", ""): element.attributes[FOUND]
        for element in with_all_below(elements)
        if element.tag == "model" and FOUND in element.attributes
    }
    written, made = 0, 0.0
    stack = [(element, 1.0) for element in elements]
    while stack:
        element, factor = stack.pop()
        written += 1
        model = element.attributes.get("model", "") if element.tag == "attach" else ""
        attached = sizes.get(files.get(model, ""), 0.0)
        factor *= copies(element)
        made += factor * (1.0 + attached)
        if made - written > MAX_MADE:
            raise element.error(
                f"<{element.tag}> and others make more than {MAX_MADE} elements by copies; no robot needs that."
            )
        stack.extend((child, factor) for child in element.children)
    return made


def copies(element: XmlElement) -> float:
    """How many copies of its contents an element makes."""
    return math.prod(max(1.0, n) for n in numbers(element, "count")) if element.tag in COPYING else 1.0


def refuse_numbers(element: XmlElement) -> None:
    """Refuses an element that is huge by a number."""
    if cells(element) > MAX_CELLS:
        raise element.error(f"<{element.tag}> has more than {MAX_CELLS} cells; mbjax reads none of that size.")
    limits = {name: limit for (tag, name), limit in LARGEST.items() if tag in ("", element.tag)}
    if element.tag == "size":
        limits |= {name: (MAX_USER_NUMBERS, "numbers") for name in element.attributes if name.startswith("nuser_")}
    if element.tag == "mesh" and "builtin" in element.attributes:
        limits["params"] = MAX_MESH_PARAMETER, "parts"
    for name, (largest, what) in limits.items():
        if any(number > largest for number in numbers(element, name)):
            given = element.attributes[name][:40]
            raise element.error(f'<{element.tag} {name}="{given}">: more than {largest} {what}; mbjax reads no more.')


def cells(element: XmlElement) -> float:
    """Cells of a texture or a heightfield."""
    if element.tag == "hfield":
        return side(element, "nrow") * side(element, "ncol")
    if element.tag == "texture":
        width = side(element, "width")
        is_cube = element.attributes.get("type", "") in CUBES
        return max(6.0 * width * width if is_cube else 0.0, width * side(element, "height"))
    return 0.0


def side(element: XmlElement, name: str) -> float:
    return max((1.0, *numbers(element, name)))


def numbers(element: XmlElement, name: str) -> list[float]:
    """Sizes of the numbers of an attribute; words that are none are left out, since MuJoCo refuses them."""
    found = []
    for word in element.attributes.get(name, "").split():
        try:
            number = abs(float(word))
        except ValueError:
            continue
        found.append(math.inf if math.isnan(number) else number)
    return found
