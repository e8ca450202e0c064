"""Numbers of a model, read and replaced by name. A setter returns a new model; nothing recompiles."""

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from mbjax.errors import ModelError
from mbjax.spatial import (
    RigidTransform,
    SpatialInertia,
    UnitInertia,
    matrix_to_quaternion,
    quaternion_to_matrix,
)

from .model_layout import JointInfo
from .multibody_model import MultibodyModel
from .poses import PoseLike, as_traced_pose


def mass(model: MultibodyModel, body: str | int) -> Float[Array, ""]:
    """Mass of a body in kg."""
    return model.parameters.body_mass[_body_row(model, body)]


def set_mass(model: MultibodyModel, body: str | int, mass: ArrayLike) -> MultibodyModel:
    """Another mass; the unit inertia stays, so moments of inertia scale with the mass."""
    return _set_row(model, "body_mass", _body_row(model, body), mass)


def set_masses(model: MultibodyModel, masses: ArrayLike) -> MultibodyModel:
    """Masses of all bodies but the world, in declaration order; unit inertias stay."""
    return _set_row(model, "body_mass", slice(None), masses)


def center_of_mass_in_body_frame(model: MultibodyModel, body: str | int) -> Float[Array, "3"]:
    """p_BoBcm_B in m."""
    return model.parameters.body_com[_body_row(model, body)]


def set_center_of_mass_in_body_frame(model: MultibodyModel, body: str | int, p_BoBcm_B: ArrayLike) -> MultibodyModel:
    """Another centre of mass; the inertia about the body's origin stays as it is."""
    return _set_row(model, "body_com", _body_row(model, body), p_BoBcm_B)


def set_center_of_mass_in_body_frame_and_preserve_central_inertia(
    model: MultibodyModel, body: str | int, p_BoBcm_B: ArrayLike
) -> MultibodyModel:
    """Another centre of mass; the inertia about it stays, the one about the origin follows."""
    old = spatial_inertia_in_body_frame(model, body)
    central = old.unit_inertia.shift_to_center_of_mass(old.com)
    com = jnp.asarray(p_BoBcm_B, model.dtype)
    new = SpatialInertia(old.mass, com, central.shift_from_center_of_mass(-com), skip_validity_check=True)
    return set_spatial_inertia_in_body_frame(model, body, new)


def spatial_inertia_in_body_frame(model: MultibodyModel, body: str | int) -> SpatialInertia:
    """M_BBo_B: mass, centre of mass and unit inertia about the body's origin."""
    row, parameters = _body_row(model, body), model.parameters
    G = UnitInertia.from_moments_products(parameters.body_unit_inertia[row])
    return SpatialInertia(parameters.body_mass[row], parameters.body_com[row], G, skip_validity_check=True)


def set_spatial_inertia_in_body_frame(
    model: MultibodyModel, body: str | int, M_BBo_B: SpatialInertia
) -> MultibodyModel:
    """Another mass, centre of mass and unit inertia."""
    row = _body_row(model, body)
    model = _set_row(model, "body_mass", row, M_BBo_B.mass)
    model = _set_row(model, "body_com", row, M_BBo_B.com)
    return _set_row(model, "body_unit_inertia", row, M_BBo_B.unit_inertia.moments_products())


def frame_pose(model: MultibodyModel, frame: str | int) -> RigidTransform:
    """X_PF of an offset frame in the frame it is fixed to."""
    row, parameters = _frame_row(model, frame), model.parameters
    return RigidTransform(quaternion_to_matrix(parameters.frame_quaternion[row]), parameters.frame_translation[row])


def set_frame_pose(model: MultibodyModel, frame: str | int, X_PF: PoseLike) -> MultibodyModel:
    """Another place for an offset frame: a joint's frames are named `{joint}_parent` and `{joint}_child`."""
    row = _frame_row(model, frame)
    X_PF = as_traced_pose(f"set_frame_pose('{frame}'): X_PF", X_PF, model.dtype)
    model = _set_row(model, "frame_quaternion", row, matrix_to_quaternion(X_PF.rotation))
    return _set_row(model, "frame_translation", row, X_PF.translation)


def set_joint_axis(model: MultibodyModel, joint: str | int, axis: ArrayLike) -> MultibodyModel:
    """Another axis, in F and M; its length does not matter."""
    index = model.joint(joint).index
    if index not in model.layout.axis_joints:
        raise ModelError(f"set_joint_axis: joint '{model.joint(joint).name}' ({model.joint(joint).kind}) has no axis.")
    return _set_row(model, "joint_axis", model.layout.axis_joints.index(index), axis)


def set_joint_damping(model: MultibodyModel, joint: str | int, damping: ArrayLike) -> MultibodyModel:
    """Viscous damping per velocity, in N m s/rad or N s/m."""
    return _set_row(model, "joint_damping", model.joint(joint).all_v, damping)


def set_joint_friction(model: MultibodyModel, joint: str | int, friction: ArrayLike) -> MultibodyModel:
    """Coulomb friction per velocity, in N m or N.

    A joint that had none gets its rows in the step with this: another program, once.
    """
    info = model.joint(joint)
    if not any_traced(friction) and np.any(np.asarray(friction) < 0.0):
        raise ModelError(f"set_joint_friction: joint '{info.name}' must have friction >= 0, got {friction}.")
    model = _with_joint(model, dataclasses.replace(info, has_friction=True))
    return _set_row(model, "joint_friction", info.all_v, friction)


def set_position_limits(model: MultibodyModel, joint: str | int, lower: ArrayLike, upper: ArrayLike) -> MultibodyModel:
    """Other limits of a joint's positions, in rad or m; infinite ones do not act.

    A joint that had none gets its rows in the step with this: another program, once.
    """
    info = model.joint(joint)
    if not any_traced(lower, upper) and np.any(np.asarray(lower) > np.asarray(upper)):
        raise ModelError(f"set_position_limits: joint '{info.name}' has lower limit {lower} above upper limit {upper}.")
    model = _with_joint(model, dataclasses.replace(info, has_position_limits=True))
    model = _set_row(model, "position_lower_limits", info.all_q, lower)
    return _set_row(model, "position_upper_limits", info.all_q, upper)


def controller_gains(
    model: MultibodyModel, actuator: str | int | None = None
) -> tuple[Float[Array, "*nu"], Float[Array, "*nu"]]:
    """(Kp, Kd) of one actuator, or of all: N m/rad and N m s/rad, or N/m and N s/m; zero without controller."""
    row = slice(None) if actuator is None else model.actuator(actuator).index
    return model.parameters.proportional_gain[row], model.parameters.derivative_gain[row]


def has_controller(model: MultibodyModel, actuator: str | int | None = None) -> Bool[Array, "*nu"]:
    """Whether one actuator, or each, has a PD controller: gains that are not zero."""
    kp, kd = controller_gains(model, actuator)
    return (kp != 0.0) | (kd != 0.0)


def set_controller_gains(
    model: MultibodyModel, kp: ArrayLike, kd: ArrayLike, actuator: str | int | None = None
) -> MultibodyModel:
    """PD gains of one actuator, or of all; they act when `Inputs` hold a desired state for them."""
    row = slice(None) if actuator is None else model.actuator(actuator).index
    return _set_row(_set_row(model, "proportional_gain", row, kp), "derivative_gain", row, kd)


def set_effort_limit(model: MultibodyModel, actuator: str | int, effort_limit: ArrayLike) -> MultibodyModel:
    """Largest effort of an actuator, in N m or N."""
    return _set_row(model, "effort_limit", model.actuator(actuator).index, effort_limit)


def set_rotor_inertia(model: MultibodyModel, actuator: str | int, rotor_inertia: ArrayLike) -> MultibodyModel:
    """Inertia of an actuator's rotor, in kg m² or kg, before the gear."""
    return _set_row(model, "rotor_inertia", model.actuator(actuator).index, rotor_inertia)


def set_gear_ratio(model: MultibodyModel, actuator: str | int, gear_ratio: ArrayLike) -> MultibodyModel:
    """Rotor turns per joint turn."""
    return _set_row(model, "gear_ratio", model.actuator(actuator).index, gear_ratio)


def set_gravity(model: MultibodyModel, gravity: ArrayLike) -> MultibodyModel:
    """The acceleration of gravity in the world, in m/s²."""
    return _set_row(model, "gravity", slice(None), gravity)


def set_time_step(model: MultibodyModel, time_step: ArrayLike) -> MultibodyModel:
    """Another step of a discrete model, in s."""
    if not model.is_discrete:
        raise ModelError("set_time_step: the model is continuous; build or load it with a time_step > 0.")
    return eqx.tree_at(lambda m: m.parameters.time_step, model, jnp.asarray(time_step, model.dtype))


def any_traced(*values: Any) -> bool:
    """Whether the numbers are known only when the program runs."""
    return any(isinstance(x, Tracer) for x in values)


def _with_joint(model: MultibodyModel, info: JointInfo) -> MultibodyModel:
    """The model with another record of one joint, wherever it is held."""
    layout, old = model.layout, model.layout.joints[info.index]
    if old == info:
        return model
    joints = tuple(info if joint is old else joint for joint in layout.joints)
    bodies = tuple(
        dataclasses.replace(body, inboard_joint=info) if body.inboard_joint == old else body for body in layout.bodies
    )
    return dataclasses.replace(model, layout=dataclasses.replace(layout, joints=joints, bodies=bodies))


def _set_row(model: MultibodyModel, name: str, row: Any, value: ArrayLike) -> MultibodyModel:
    array = getattr(model.parameters, name)
    new = array.at[row].set(jnp.asarray(value, array.dtype))
    return eqx.tree_at(lambda m: getattr(m.parameters, name), model, new)


def _body_row(model: MultibodyModel, body: str | int) -> int:
    index = model.body_index(body)
    if index == 0:
        raise ModelError("the world has no mass or inertia.")
    return index - 1


def _frame_row(model: MultibodyModel, frame: str | int) -> int:
    index = model.frame_index(frame)
    if index not in model.layout.offset_frames:
        raise ModelError(
            f"frame '{model.frame_names[index]}' is a body's own frame and cannot be moved; the frames that can "
            "are those added with a pose, a joint's `{joint}_parent` and `{joint}_child` among them."
        )
    return model.layout.offset_frames.index(index)
