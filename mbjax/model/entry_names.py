"""Names every number of a model in words: `mass of 'forearm'`, `centre of mass of 'forearm', y`."""

from typing import Any

import numpy as np

from .leaf_rules import COLLISION_RULES, PARAMETER_RULES
from .multibody_model import MultibodyModel
from .number_findings import leaf_name, row_names

COMPONENTS = {
    "body_com": ("x", "y", "z"),
    "body_unit_inertia": ("xx", "yy", "zz", "xy", "xz", "yz"),
    "joint_axis": ("x", "y", "z"),
    "frame_translation": ("x", "y", "z"),
    "translation": ("x", "y", "z"),
    "vertices": ("x", "y", "z"),
    "frame_quaternion": ("w", "x", "y", "z"),
    "quaternion": ("w", "x", "y", "z"),
}


def entry_names(model: MultibodyModel, path: Any, shape: tuple[int, ...]) -> list[str]:
    """Names of the entries, in order, of the leaf at this path of the model."""
    fields = [key.name for key in path if hasattr(key, "name")]
    section, name = fields[0], leaf_name(path)
    if section == "collision" and "others" in fields[1:-1]:
        section = "others"
    rules = PARAMETER_RULES if section == "parameters" else COLLISION_RULES
    what, owners = name.replace("_", " "), []
    if section in ("parameters", "collision", "others"):
        what = rules[name].what.replace("_", " ") if name in rules else what
        owners = [f" of {owner}" for owner in row_names(model, section, name)]
    else:
        what = f"{what} of {_element(model, section, path)}"
    if not shape:
        return [what]
    rows = [owners[k] if k < len(owners) else f" [{k}]" for k in range(shape[0])]
    if len(shape) == 1:
        return [f"{what}{row}" for row in rows]
    inner = list(np.ndindex(*shape[1:]))
    known = COMPONENTS.get(name, ())
    ends = [known[i[0]] if len(i) == 1 and len(known) == len(inner) else str(list(i)) for i in inner]
    return [f"{what}{row}, {end}" for row in rows for end in ends]


def _element(model: MultibodyModel, section: str, path: Any) -> str:
    """A force element, constraint or other element, by name or place."""
    index = next((key.idx for key in path if hasattr(key, "idx")), None)
    if index is None:
        return section.replace("_", " ")
    elements = getattr(model, section, ())
    element = elements[index] if index < len(elements) else None
    label = getattr(element, "name", None)
    kind = section.removesuffix("s").replace("_", " ")
    return f"{kind} '{label}'" if label else f"{kind} {index} ({type(element).__name__})"
