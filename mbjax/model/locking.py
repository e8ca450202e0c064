"""Locks and unlocks joints by a number per velocity: locking never recompiles and may differ between worlds."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from mbjax.errors import ModelError
from mbjax.execution import call_compiled, of_one_model, takes_model_first
from mbjax.number_rules import is_known

from .leaf_setting import truth_value
from .mimics import require_own_coordinates
from .model_layout import JointInfo
from .multibody_model import MultibodyModel


@takes_model_first
def lock_joint(model: MultibodyModel, joint: str | int, locked: ArrayLike = True) -> MultibodyModel:
    """Holds a joint where it is: its velocities and accelerations are zero, and its controller is off.

    `locked` may be a traced truth value: one program serves locked and unlocked worlds. Motion jumps with it, so
    derivatives with respect to `locked` are zero. A weld is locked already, and False is refused for one.
    """
    info = model.joint(joint)
    call = f"lock_joint('{info.name}')"
    require_own_coordinates(model, info, call)
    truth = truth_value(model, call, "locked", locked)
    if is_known(locked) and not np.asarray(locked):
        _require_unlockable(info, call)
    array = model.parameters.velocity_locked
    new = array.at[info.v].set(truth.astype(array.dtype))
    return eqx.tree_at(lambda m: m.parameters.velocity_locked, model, new)


@takes_model_first
def unlock_joint(model: MultibodyModel, joint: str | int) -> MultibodyModel:
    """Lets a locked joint move again, from rest."""
    info = model.joint(joint)
    call = f"unlock_joint('{info.name}')"
    require_own_coordinates(model, info, call)
    _require_unlockable(info, call)
    return lock_joint(model, joint, False)


@of_one_model
def is_joint_locked(model: MultibodyModel, joint: str | int) -> Bool[Array, ""]:
    """Whether a joint is locked; a weld always is, and a joint that mimics is if its leader is."""
    info = model.joint(joint)
    mover = info if info.mimics is None else model.mobilizer(int(model.topology.leaders[info.mobod]))
    return jnp.all(locked_velocities(model)[mover.v])


@takes_model_first
def lock_body(model: MultibodyModel, body: str | int, locked: ArrayLike = True) -> MultibodyModel:
    """Holds a floating body where it is, by locking its inboard joint."""
    return lock_joint(model, _floating_joint(model, body, "lock_body").index, locked)


@takes_model_first
def unlock_body(model: MultibodyModel, body: str | int) -> MultibodyModel:
    """Lets a locked floating body move again, from rest."""
    return unlock_joint(model, _floating_joint(model, body, "unlock_body").index)


@of_one_model
def is_body_locked(model: MultibodyModel, body: str | int) -> Bool[Array, ""]:
    """Whether a body is held still relative to its inboard body; the world always is."""
    joint = model.body(body).inboard_joint
    return jnp.ones((), bool) if joint is None else is_joint_locked(model, joint.index)


def locked_velocities(model: MultibodyModel) -> Bool[Array, " nv"]:
    """Mask of the velocities that are held at zero."""
    return model.parameters.velocity_locked > 0.5


def zero_where_locked(model: MultibodyModel, v: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """v with the velocities of locked joints replaced by zero."""
    return call_compiled(zero_where, model.parameters.velocity_locked, v)


def zero_where(locked: Float[Array, " nv"], v: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """v with zeros where `locked` is more than a half."""
    return jnp.where(locked > 0.5, 0.0, v)


def _require_unlockable(joint: JointInfo, call: str) -> None:
    if joint.kind == "weld":
        raise ModelError(f"{call}: a weld cannot move. Connect the bodies by another joint, and lock that.")


def _floating_joint(model: MultibodyModel, body: str | int, call: str) -> JointInfo:
    info = model.body(body)
    joint = info.inboard_joint
    if joint is None or not info.is_floating:
        held = "is the world" if joint is None else f"hangs on joint '{joint.name}' ({joint.kind})"
        raise ModelError(f"{call}: body '{info.name}' {held} and does not float. Use lock_joint and unlock_joint.")
    return joint
