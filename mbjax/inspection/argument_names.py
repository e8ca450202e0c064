"""Names of the numbers of any argument: elements of a model, coordinates of a state, paths of everything else."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mbjax.model import MultibodyModel, entry_names
from mbjax.parameters import switches

COORDINATES = {"q": "position_names", "v": "velocity_names", "actuation": "actuation_names"}


def is_model(x: Any) -> bool:
    """Whether x is a model; for `is_leaf` of `jax.tree` functions."""
    return isinstance(x, MultibodyModel)


def only_model(x: Any) -> MultibodyModel | None:
    """The one model in a tree; None if there are none or several."""
    found = [part for part in jax.tree.leaves(x, is_leaf=is_model) if is_model(part)]
    return found[0] if len(found) == 1 else None


def names_and_use(x: Any, model: MultibodyModel | None = None) -> tuple[list[str], np.ndarray]:
    """A name for each number of x, in the order in which its leaves are flattened, and whether it may be changed.

    Numbers that are not finite and a model's switches may not. `model` names the coordinates of states and inputs.
    """
    model = only_model(x) if model is None else model
    names: list[str] = []
    use: list[np.ndarray] = []
    for path, part in jax.tree_util.tree_leaves_with_path(x, is_leaf=is_model):
        if is_model(part):
            leaves = jax.tree_util.tree_leaves_with_path(part)
            for (inner, leaf), is_switch in zip(leaves, jax.tree.leaves(switches(part)), strict=True):
                names += entry_names(part, inner, np.shape(leaf))
                use.append(_may_change(leaf) & (not is_switch))
        else:
            names += _names_of_leaf(path, part, model)
            use.append(_may_change(part))
    return names, np.concatenate(use) if use else np.zeros(0, bool)


def _may_change(leaf: Any) -> np.ndarray:
    if not jnp.issubdtype(jnp.result_type(leaf), jnp.floating):
        return np.zeros(np.size(leaf), bool)
    return np.isfinite(np.asarray(leaf)).ravel()


def _names_of_leaf(path: Any, leaf: Any, model: MultibodyModel | None) -> list[str]:
    """Names by path and index, or by coordinate where the last axis is that of the model's coordinates."""
    label, shape = jax.tree_util.keystr(path), np.shape(leaf)
    field = getattr(path[-1], "name", "") if path else ""
    coordinates = getattr(model, COORDINATES[field])() if model is not None and field in COORDINATES else []
    label = label.removeprefix(".") or "x"
    if not shape:
        return [label]
    if len(coordinates) == shape[-1]:
        places = [f"[{', '.join(map(str, index))}]" if index else "" for index in np.ndindex(*shape[:-1])]
        return [f"{label}{place} of '{coordinate}'" for place in places for coordinate in coordinates]
    return [f"{label}[{', '.join(map(str, index))}]" for index in np.ndindex(*shape)]
