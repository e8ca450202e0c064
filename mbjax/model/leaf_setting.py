"""Sets numbers in a model's leaves: checked where they are known, cast to the leaf's type; nothing recompiles."""

from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from mbjax.errors import ModelError
from mbjax.execution import require_one_model
from mbjax.number_rules import as_numbers, checked_numbers, is_known, shown
from mbjax.spatial import RigidTransform

from .leaf_rules import COLLISION_RULES, PARAMETER_RULES
from .model_layout import JointInfo
from .multibody_model import MultibodyModel
from .poses import PoseLike, as_rigid_transform, as_traced_pose


def set_rows(
    model: MultibodyModel,
    call: str,
    name: str,
    rows: Any,
    value: ArrayLike,
    *,
    of: Literal["parameters", "collision", "others"] = "parameters",
    is_repeated: bool = False,
    hint: str = "",
) -> MultibodyModel:
    """The model with numbers replaced in some rows of a leaf of `parameters`, `collision` or `collision.others`.

    `value` has the rows' shape, or may be one number with `is_repeated`. Raises `ModelError` for numbers that break
    the leaf's rule.
    """
    require_one_model(model, call)
    array = getattr(section(model, of), name)
    leaf = (PARAMETER_RULES if of == "parameters" else COLLISION_RULES)[name]
    shape = np.empty(array.shape, bool)[rows].shape
    numbers = checked_numbers(
        call, leaf.what, value, leaf.rule, shape, unit=leaf.unit, is_repeated=is_repeated, hint=hint or leaf.hint
    )
    new = array.at[rows].set(jnp.asarray(numbers, array.dtype))
    return eqx.tree_at(lambda m: getattr(section(m, of), name), model, new)


def section(model: MultibodyModel, name: Literal["parameters", "collision", "others"]) -> Any:
    """The part of a model that holds a leaf; "others" are the collision geometries that touch nothing."""
    return model.collision.others if name == "others" else getattr(model, name)


def require_moving(joint: JointInfo, call: str, what: str) -> None:
    """Refuses a weld, which has none of the numbers that a setter sets; `what` names these."""
    if joint.kind == "weld":
        raise ModelError(f"{call}: joint '{joint.name}' is a weld and has no {what}.")


def require_in_order(call: str, what: str, lower: Any, upper: Any) -> None:
    """Refuses a lower number above an upper one, where both are known."""
    if is_known(lower, upper):
        low, high = as_numbers(lower), as_numbers(upper)
        if low is not None and high is not None and np.any(low > high):
            raise ModelError(
                f"{call}: the lower {what} {shown(lower)} is above the upper {what} {shown(upper)}; exchange them."
            )


def checked_pose(call: str, what: str, X: PoseLike) -> RigidTransform:
    """Checks a pose in any form that the builder takes; only the shapes of a traced one."""
    label = f"{call}: {what}"
    return as_rigid_transform(label, X) if is_known(X) else as_traced_pose(label, X)


def truth_value(model: MultibodyModel, call: str, what: str, value: Any) -> Array:
    """Checks one truth value and returns it as an array: True, False, 1, 0 or a traced number."""
    require_one_model(model, call)
    known = is_known(value)
    numbers = as_numbers(value) if known else jnp.asarray(value)
    if numbers is None or numbers.shape != () or (known and numbers not in (0.0, 1.0)):
        came = shown(value) if numbers is None or numbers.shape == () else f"shape {numbers.shape}"
        raise ModelError(
            f"{call}: {what} must be one truth value, True or False, got {came}. Use jax.vmap for a batch of worlds."
        )
    return jnp.asarray(numbers)
