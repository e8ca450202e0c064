"""Queries and setters for joints that mimic others, on a finished model."""

from jax.typing import ArrayLike
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.execution import of_one_model, takes_model_first

from .instance_arrays import as_coordinates
from .leaf_setting import set_rows
from .mimic_relations import all_joint_positions, all_joint_velocities
from .model_layout import JointInfo
from .multibody_model import MultibodyModel


@of_one_model
def joint_positions(model: MultibodyModel, q: Float[Array, " nq"], joint: str | int) -> Float[Array, " nqj"]:
    """A joint's own positions, in rad or m: `q[model.joint(joint).q]`, or multiplier q_leader + offset if it mimics."""
    q = as_coordinates("q", q, model.num_positions, model.dtype)
    return all_joint_positions(model, q)[model.joint(joint).all_q]


@of_one_model
def joint_velocities(model: MultibodyModel, v: Float[Array, " nv"], joint: str | int) -> Float[Array, " nvj"]:
    """A joint's own velocities, in rad/s or m/s: `v[model.joint(joint).v]`, or multiplier v_leader if it mimics."""
    v = as_coordinates("v", v, model.num_velocities, model.dtype)
    return all_joint_velocities(model, v)[model.joint(joint).all_v]


@takes_model_first
def set_mimic(model: MultibodyModel, joint: str | int, multiplier: ArrayLike, offset: ArrayLike) -> MultibodyModel:
    """Sets the numbers of a joint that mimics: q = multiplier q_leader + offset, in rad or m."""
    info = model.joint(joint)
    if info.mimics is None:
        raise ModelError(
            f"set_mimic: joint '{info.name}' does not mimic another; say so by plant.add_mimic before finalize."
        )
    row = [mobod for mobod, _ in model.topology.followers].index(info.mobod)
    for name, value in (("mimic_multiplier", multiplier), ("mimic_offset", offset)):
        model = set_rows(model, f"set_mimic('{info.name}')", name, row, value)
    return model


def require_own_coordinates(model: MultibodyModel, joint: JointInfo, call: str) -> None:
    """Refuses a joint that mimics another, and names the joint that has the coordinate."""
    if joint.mimics is not None:
        leader = model.mobilizer(int(model.topology.leaders[joint.mobod]))
        raise ModelError(
            f"{call}: joint '{joint.name}' mimics '{leader.name}' and has no coordinate of its own; use "
            f"'{leader.name}'."
        )
