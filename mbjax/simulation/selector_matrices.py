"""Selector matrices that pick parts of x = [q, v] and of u, and the pseudoinverse of the actuation matrix."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.execution import takes_model_first
from mbjax.model import MultibodyModel, require_own_coordinates
from mbjax.spatial import safe_divide

from .actuation import actuation_matrix


@takes_model_first
def state_selector_matrix(model: MultibodyModel, joints: Sequence[str | int]) -> Float[Array, "nxs nx"]:
    """Selector S with x_s = S x: positions of the joints in the order given, then their velocities."""
    infos = [model.joint(joint) for joint in joints]
    for info in infos:
        require_own_coordinates(model, info, "state_selector_matrix")
    repeated = [info.name for k, info in enumerate(infos) if info in infos[:k]]
    if repeated:
        raise ModelError(f"state_selector_matrix: joint '{repeated[0]}' is given twice; name every joint once.")
    rows = [i for j in infos for i in range(j.q.start, j.q.stop)]
    rows += [model.num_positions + i for j in infos for i in range(j.v.start, j.v.stop)]
    return selected_rows(model, rows, model.num_positions + model.num_velocities)


def actuator_selector_matrix(
    model: MultibodyModel,
    actuators: Sequence[str | int] | None = None,
    *,
    joints: Sequence[str | int] | None = None,
) -> Float[Array, "nu nus"]:
    """Selector S with u = S u_s, where u_s holds the actuators in the order given, or those of the joints given."""
    if (actuators is None) == (joints is None):
        raise ModelError("actuator_selector_matrix: give either actuators or joints=.")
    if joints is not None:
        actuators = [actuator_of_joint(model, joint) for joint in joints]
    rows = [model.actuator(actuator).index for actuator in actuators or ()]
    return selected_rows(model, rows, model.num_actuators).T


def actuation_matrix_pseudoinverse(model: MultibodyModel) -> Float[Array, "nu nv"]:
    """Moore-Penrose inverse B+ of `actuation_matrix`: actuators of one joint share its force evenly."""
    B = actuation_matrix(model)
    squares = jnp.sum(B * B, axis=1, keepdims=True)
    return safe_divide(B, squares).T


def actuator_of_joint(model: MultibodyModel, joint: str | int) -> int:
    """Index of the only actuator of a joint."""
    info = model.joint(joint)
    found = [a for a in model.layout.actuators if a.joint == info.index]
    if len(found) == 1:
        return found[0].index
    names = ", ".join(f"'{a.name}'" for a in found)
    has = f"has the actuators {names}; select by actuators instead" if found else "has no actuator; leave it out"
    raise ModelError(f"actuator_selector_matrix: joint '{info.name}' {has}.")


def selected_rows(model: MultibodyModel, rows: list[int], size: int) -> Float[Array, "k size"]:
    """Selected rows of the identity matrix."""
    return jnp.asarray(np.eye(size)[rows], model.dtype)
