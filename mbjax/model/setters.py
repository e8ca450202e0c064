"""Reads and sets numbers of a model by an element's name. A setter returns a new model; nothing recompiles."""

import dataclasses
import warnings

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from mbjax.errors import ModelError, ModelWarning
from mbjax.execution import of_one_model, takes_model_first
from mbjax.number_rules import is_known
from mbjax.spatial import (
    RigidTransform,
    SpatialInertia,
    UnitInertia,
    matrix_to_quaternion,
    quaternion_to_matrix,
)

from .leaf_setting import checked_pose, require_in_order, require_moving, set_rows
from .missing_actuators import missing_actuators
from .model_layout import JointInfo
from .multibody_model import MultibodyModel
from .poses import PoseLike


@of_one_model
def mass(model: MultibodyModel, body: str | int) -> Float[Array, ""]:
    """Mass of a body in kg."""
    return model.parameters.body_mass[_body_row(model, body)]


@takes_model_first
def set_mass(model: MultibodyModel, body: str | int, mass: ArrayLike) -> MultibodyModel:
    """Sets a body's mass, in kg; the unit inertia stays, so moments of inertia scale with the mass."""
    call = f"set_mass('{model.body(body).name}')"
    return set_rows(model, call, "body_mass", _body_row(model, body), mass)


@takes_model_first
def set_masses(model: MultibodyModel, masses: ArrayLike) -> MultibodyModel:
    """Sets the masses of all bodies but the world, in kg, in declaration order, or one for all; unit inertias stay."""
    hint = (
        "The world has no mass; the others are "
        + ", ".join(model.body_names[1:9])
        + (", …" if len(model.body_names) > 9 else "")
        + "."
    )
    return set_rows(model, "set_masses", "body_mass", slice(None), masses, is_repeated=True, hint=hint)


@of_one_model
def center_of_mass_in_body_frame(model: MultibodyModel, body: str | int) -> Float[Array, "3"]:
    """Centre of mass p_BoBcm_B of a body, in m."""
    return model.parameters.body_com[_body_row(model, body)]


@takes_model_first
def set_center_of_mass_in_body_frame(model: MultibodyModel, body: str | int, p_BoBcm_B: ArrayLike) -> MultibodyModel:
    """Sets a body's centre of mass, in m; the inertia about the body's origin stays as it is."""
    call = f"set_center_of_mass_in_body_frame('{model.body(body).name}')"
    return set_rows(model, call, "body_com", _body_row(model, body), p_BoBcm_B)


@of_one_model
def set_center_of_mass_in_body_frame_and_preserve_central_inertia(
    model: MultibodyModel, body: str | int, p_BoBcm_B: ArrayLike
) -> MultibodyModel:
    """Sets a body's centre of mass, in m; the inertia about it stays, so the one about the body's origin changes."""
    old = spatial_inertia_in_body_frame(model, body)
    central = old.unit_inertia.shift_to_center_of_mass(old.com)
    call = f"set_center_of_mass_in_body_frame_and_preserve_central_inertia('{model.body(body).name}')"
    row = _body_row(model, body)
    model = set_rows(model, call, "body_com", row, p_BoBcm_B)
    about_origin = central.shift_from_center_of_mass(-model.parameters.body_com[row])
    return set_rows(model, call, "body_unit_inertia", row, about_origin.moments_products())


@of_one_model
def spatial_inertia_in_body_frame(model: MultibodyModel, body: str | int) -> SpatialInertia:
    """Spatial inertia M_BBo_B: mass, centre of mass and unit inertia about the body's origin."""
    row, parameters = _body_row(model, body), model.parameters
    G = UnitInertia.from_moments_products(parameters.body_unit_inertia[row])
    return SpatialInertia(parameters.body_mass[row], parameters.body_com[row], G, skip_validity_check=True)


@takes_model_first
def set_spatial_inertia_in_body_frame(
    model: MultibodyModel, body: str | int, M_BBo_B: SpatialInertia
) -> MultibodyModel:
    """Sets a body's mass, centre of mass and unit inertia; one that no body can have is kept, with a warning."""
    row, call = _body_row(model, body), f"set_spatial_inertia_in_body_frame('{model.body(body).name}')"
    if not isinstance(M_BBo_B, SpatialInertia):
        raise ModelError(f"{call}: expected a mbjax.SpatialInertia, got {type(M_BBo_B).__name__}.")
    six = M_BBo_B.unit_inertia.moments_products()
    for name, value in (("body_mass", M_BBo_B.mass), ("body_com", M_BBo_B.com), ("body_unit_inertia", six)):
        model = set_rows(model, call, name, row, value)
    failure = M_BBo_B.physical_validity_report() if is_known(M_BBo_B) else None
    if failure is not None:
        warnings.warn(f"{call}: the spatial inertia is not physical: {failure}", ModelWarning, stacklevel=2)
    return model


@of_one_model
def frame_pose(model: MultibodyModel, frame: str | int) -> RigidTransform:
    """Pose X_PF of an offset frame in the frame it is fixed to."""
    row, parameters = _frame_row(model, frame), model.parameters
    return RigidTransform(quaternion_to_matrix(parameters.frame_quaternion[row]), parameters.frame_translation[row])


@takes_model_first
def set_frame_pose(model: MultibodyModel, frame: str | int, X_PF: PoseLike) -> MultibodyModel:
    """Sets the pose X_PF of an offset frame; a joint's frames are named `{joint}_parent` and `{joint}_child`."""
    row, call = _frame_row(model, frame), f"set_frame_pose('{model.frame(frame).name}')"
    X_PF = checked_pose(call, "X_PF", X_PF)
    model = set_rows(
        model, call, "frame_quaternion", row, matrix_to_quaternion(jnp.asarray(X_PF.rotation, model.dtype))
    )
    return set_rows(model, call, "frame_translation", row, X_PF.translation)


@takes_model_first
def set_joint_axis(model: MultibodyModel, joint: str | int, axis: ArrayLike) -> MultibodyModel:
    """Sets a joint's axis, in F and M; its length does not matter."""
    info = model.joint(joint)
    if info.index not in model.layout.axis_joints:
        raise ModelError(f"set_joint_axis: joint '{info.name}' ({info.kind}) has no axis.")
    row = model.layout.axis_joints.index(info.index)
    return set_rows(model, f"set_joint_axis('{info.name}')", "joint_axis", row, axis)


@takes_model_first
def set_joint_damping(model: MultibodyModel, joint: str | int, damping: ArrayLike) -> MultibodyModel:
    """Sets a joint's viscous damping, per velocity, in N m s/rad or N s/m."""
    info = model.joint(joint)
    call = f"set_joint_damping('{info.name}')"
    require_moving(info, call, "damping")
    return set_rows(model, call, "joint_damping", info.all_v, damping, is_repeated=True)


@takes_model_first
def set_joint_friction(model: MultibodyModel, joint: str | int, friction: ArrayLike) -> MultibodyModel:
    """Sets a joint's Coulomb friction, per velocity, in N m or N.

    A joint without friction before gets rows in the discrete step: the next step compiles once more.
    """
    info = model.joint(joint)
    call = f"set_joint_friction('{info.name}')"
    require_moving(info, call, "friction")
    model = set_rows(model, call, "joint_friction", info.all_v, friction, is_repeated=True)
    return _with_joint(model, dataclasses.replace(info, has_friction=True))


@takes_model_first
def set_joint_armature(model: MultibodyModel, joint: str | int, armature: ArrayLike) -> MultibodyModel:
    """Inertia on the diagonal of the mass matrix per velocity, in kg m² or kg; rotors of actuators add to it."""
    info = model.joint(joint)
    call = f"set_joint_armature('{info.name}')"
    require_moving(info, call, "armature")
    return set_rows(model, call, "joint_armature", info.all_v, armature, is_repeated=True)


@takes_model_first
def set_position_limits(model: MultibodyModel, joint: str | int, lower: ArrayLike, upper: ArrayLike) -> MultibodyModel:
    """Sets the limits of a joint's positions, in rad or m; infinite ones do not act.

    A joint without limits before gets rows in the discrete step: the next step compiles once more. A step enforces
    limits of joints with one degree of freedom; those of others bound random states and inverse kinematics only, which
    a `ModelWarning` says.
    """
    info = model.joint(joint)
    call = f"set_position_limits('{info.name}')"
    require_moving(info, call, "position limits")
    for name, value in (("position_lower_limits", lower), ("position_upper_limits", upper)):
        model = set_rows(model, call, name, info.all_q, value, is_repeated=True)
    require_in_order(call, "limit", lower, upper)
    if len(info.position_suffixes) > 1 and any(is_known(x) and np.isfinite(x).any() for x in (lower, upper)):
        message = (
            f"{call}: the limits are kept for random states and inverse kinematics, not enforced in a step: no force "
            f"keeps a joint with several degrees of freedom ({info.kind}) within them."
        )
        warnings.warn(message, ModelWarning, stacklevel=3)
    return _with_joint(model, dataclasses.replace(info, has_position_limits=True))


@of_one_model
def controller_gains(
    model: MultibodyModel, actuator: str | int | None = None
) -> tuple[Float[Array, "*nu"], Float[Array, "*nu"]]:
    """PD gains (Kp, Kd) of one or all actuators: N m/rad and N m s/rad, or N/m and N s/m; zero without controller."""
    row = slice(None) if actuator is None else model.actuator(actuator).index
    return model.parameters.proportional_gain[row], model.parameters.derivative_gain[row]


@of_one_model
def has_controller(model: MultibodyModel, actuator: str | int | None = None) -> Bool[Array, "*nu"]:
    """Whether one actuator, or each of all, has a PD controller: a gain that is not zero."""
    kp, kd = controller_gains(model, actuator)
    return (kp != 0.0) | (kd != 0.0)


@takes_model_first
def set_controller_gains(
    model: MultibodyModel, kp: ArrayLike, kd: ArrayLike, actuator: str | int | None = None
) -> MultibodyModel:
    """Sets the PD gains of one actuator, or of all; they act when `Inputs` hold a desired state for them."""
    if not model.num_actuators:
        raise ModelError(f"set_controller_gains: there is nothing to set.{missing_actuators(model)}")
    info = None if actuator is None else model.actuator(actuator)
    row, of = (slice(None), "") if info is None else (info.index, f"('{info.name}')")
    for name, value in (("proportional_gain", kp), ("derivative_gain", kd)):
        model = set_rows(model, f"set_controller_gains{of}", name, row, value, is_repeated=True)
    return model


@takes_model_first
def set_effort_limit(model: MultibodyModel, actuator: str | int, effort_limit: ArrayLike) -> MultibodyModel:
    """Sets the largest effort of an actuator, in N m or N; inf for none."""
    info = model.actuator(actuator)
    return set_rows(model, f"set_effort_limit('{info.name}')", "effort_limit", info.index, effort_limit)


@takes_model_first
def set_rotor_inertia(model: MultibodyModel, actuator: str | int, rotor_inertia: ArrayLike) -> MultibodyModel:
    """Sets the inertia of an actuator's rotor, in kg m² or kg, before the gear."""
    info = model.actuator(actuator)
    return set_rows(model, f"set_rotor_inertia('{info.name}')", "rotor_inertia", info.index, rotor_inertia)


@takes_model_first
def set_gear_ratio(model: MultibodyModel, actuator: str | int, gear_ratio: ArrayLike) -> MultibodyModel:
    """Sets an actuator's gear ratio: rotor turns per joint turn."""
    info = model.actuator(actuator)
    return set_rows(model, f"set_gear_ratio('{info.name}')", "gear_ratio", info.index, gear_ratio)


def set_gravity(model: MultibodyModel, gravity: ArrayLike) -> MultibodyModel:
    """Sets the acceleration of gravity in the world, in m/s²."""
    return set_rows(model, "set_gravity", "gravity", slice(None), gravity)


@takes_model_first
def set_time_step(model: MultibodyModel, time_step: ArrayLike) -> MultibodyModel:
    """Sets the time step of a discrete model, in s."""
    if not model.is_discrete:
        raise ModelError("set_time_step: the model is continuous; build or load it with a time_step > 0.")
    return set_rows(model, "set_time_step", "time_step", ..., time_step)


def _with_joint(model: MultibodyModel, info: JointInfo) -> MultibodyModel:
    """The model with the record of one joint replaced, in its bodies' records too."""
    layout, old = model.layout, model.layout.joints[info.index]
    if old == info:
        return model
    joints = tuple(info if joint is old else joint for joint in layout.joints)
    bodies = tuple(
        dataclasses.replace(body, inboard_joint=info) if body.inboard_joint == old else body for body in layout.bodies
    )
    return dataclasses.replace(model, layout=dataclasses.replace(layout, joints=joints, bodies=bodies))


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
