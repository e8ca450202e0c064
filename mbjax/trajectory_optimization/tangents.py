"""Derivatives of moves along tangents in closed form: joints that turn in space have 3 x 3 blocks, others ones."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.joints import JOINT_KINDS, AbstractJoint
from mbjax.model import MultibodyModel
from mbjax.spatial import displacement_matrix, inverse_displacement_matrix, rotation_exp, small_matmul

ALL = slice(0, None)


def turning_velocities(model: MultibodyModel) -> tuple[slice, ...]:
    """Where the angular velocities of joints are whose attitude R moves along a rotation vector w to exp([w]x) R."""
    joints = (joint for joint in model.layout.joints if is_turning(joint.kind))
    return tuple(slice(joint.v_start, joint.v_start + 3) for joint in joints)


def is_turning(kind: str) -> bool:
    """Whether joints of a kind integrate by more than the sum of positions and velocities."""
    return JOINT_KINDS[kind].integrate is not AbstractJoint.integrate


def slopes_of_move(model: MultibodyModel, dv: Float[Array, " nv"]) -> Float[Array, "nv nv"]:
    """Derivative of the move from q along dv by q, in tangents at both ends: exp(w) exp(dθ) = exp(R dθ) exp(w)."""
    J = jnp.eye(dv.shape[0], dtype=dv.dtype)
    for part in turning_velocities(model):
        J = with_block(J, part, part, rotation_exp(dv[part]))
    return J


def moved_along(model: MultibodyModel, dv: Float[Array, " nv"], changes: Float[Array, "nv n"]) -> Float[Array, "nv n"]:
    """Tangents after the move integrate_configuration(q, dv) as dv has each of the changes.

    exp(w + dw) = exp(V(w) dw) exp(w), with V of `displacement_matrix`.
    """
    for part in turning_velocities(model):
        changes = with_block(changes, part, ALL, small_matmul(displacement_matrix(dv[part]), changes[part]))
    return changes


def slopes_of_difference(model: MultibodyModel, difference: Float[Array, " nv"]) -> Float[Array, "nv nv"]:
    """Derivative of a difference by the tangent at the second configuration: log(exp(dθ) exp(w)) = w + V(w)⁻¹ dθ."""
    J = jnp.eye(difference.shape[0], dtype=difference.dtype)
    for part in turning_velocities(model):
        J = with_block(J, part, part, inverse_displacement_matrix(difference[part]))
    return J


def with_block(
    matrix: Float[Array, "m n"], rows: slice, columns: slice, block: Float[Array, "i j"]
) -> Float[Array, "m n"]:
    """The matrix with one block replaced, in place and without a scatter."""
    return jax.lax.dynamic_update_slice(matrix, block.astype(matrix.dtype), (rows.start, columns.start))
