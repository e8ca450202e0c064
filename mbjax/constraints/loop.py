"""Loops: frame S of one body kept with frame P of another; a ball and a weld are loops along all axes."""

from collections.abc import Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.model import BallConstraint, LoopConstraint, WeldConstraint
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import (
    one_minus_cos_over_x2_of_square,
    rotation_log,
    safe_normalize,
    sin_over_x_of_square,
    x_minus_sin_over_x3_of_square,
)

from .pair_kind import KindRows, PairKind
from .relative_motion import FramePair, RelativeMotion, stack_columns

Rotation = Literal["free", "aligned", "vector"]  # how rotation is measured


def loop_frames(loop: LoopConstraint) -> FramePair:
    return FramePair(loop.predecessor, loop.quaternion_AP, loop.p_AP, loop.successor, loop.quaternion_BS, loop.p_BS)


def ball_frames(ball: BallConstraint) -> FramePair:
    assert ball.p_BQ is not None, "the point is filled in when the constraint is bound"
    return FramePair(ball.body_A, None, ball.p_AP, ball.body_B, None, ball.p_BQ)


def weld_frames(weld: WeldConstraint) -> FramePair:
    return FramePair(weld.body_A, weld.quaternion_AP, weld.p_AP, weld.body_B, weld.quaternion_BQ, weld.p_BQ)


def loop_variant(loop: LoopConstraint) -> tuple[int, Rotation, tuple[int, ...]]:
    """Number of rows, how rotation is measured, and by which rows."""
    rotation = "aligned" if loop.is_hinge else "vector" if loop.rotational_rows else "free"
    return loop.num_rows, rotation, loop.rotational_rows


def loop_rows(loops: Sequence[LoopConstraint], R_PS: Array, p_PS_P: Array, motion: RelativeMotion | None) -> KindRows:
    """The rows of LoopConstraint."""
    _, rotation, rotational_rows = loop_variant(loops[0])
    axes = stack_columns([jnp.swapaxes(c.axes, 0, 1) for c in loops], 2)
    return measure_pose(axes, rotation, rotational_rows, R_PS, p_PS_P, motion)


def ball_rows(balls: Sequence[Any], R_PS: Array, p_PS_P: Array, motion: RelativeMotion | None) -> KindRows:
    """p_PS_P."""
    return measure_pose(unit_axes(3, p_PS_P), "free", (), R_PS, p_PS_P, motion)


def weld_rows(welds: Sequence[Any], R_PS: Array, p_PS_P: Array, motion: RelativeMotion | None) -> KindRows:
    """The rotation vector of R_PS, then p_PS_P."""
    return measure_pose(unit_axes(0, p_PS_P), "vector", (0, 1, 2), R_PS, p_PS_P, motion)


def unit_axes(first: int, like: Float[Array, "3 n"]) -> Float[Array, "6 k n"]:
    """The coordinate axes from `first` on."""
    axes = np.eye(6)[:, first:]
    return jnp.broadcast_to(
        jnp.asarray(axes, like.dtype).reshape(*axes.shape, *(1,) * (like.ndim - 1)), (*axes.shape, *like.shape[1:])
    )


def measure_pose(
    axes: Float[Array, "6 k n"],
    rotation: Rotation,
    rotational_rows: tuple[int, ...],
    R_PS: Float[Array, "3 3 n"],
    p_PS_P: Float[Array, "3 n"],
    motion: RelativeMotion | None,
) -> KindRows:
    """Translation a · p_PS_P plus what the rotation part of the axes measures."""
    k = axes.shape[1]
    force = axes[3:]
    error = ca.dot(force, ca.spread(p_PS_P, k, 1))
    bias = None if motion is None else ca.dot(force, ca.spread(motion.a_PS, k, 1))
    if rotation == "free":
        return KindRows(error, jnp.zeros_like(force), force, bias)
    if rotation == "aligned":
        i, j = rotational_rows
        turn = measure_alignment(axes[:3], safe_normalize(ca.cross(axes[:3, i], axes[:3, j]), axis=0), R_PS, motion)
    else:
        turn = measure_rotation_vector(axes[:3], R_PS, motion)
    angle, torque, angle_bias = turn
    return KindRows(error + angle, torque, force, None if bias is None or angle_bias is None else bias + angle_bias)


def measure_alignment(
    axes: Float[Array, "3 k n"], f: Float[Array, "3 n"], R_PS: Float[Array, "3 3 n"], motion: RelativeMotion | None
) -> tuple[Array, Array, Array | None]:
    """a · (f x d) with d = R_PS f: error, torque and bias. Written b · d with b = a x f; d turns with S."""
    k = axes.shape[1]
    d = ca.matvec(R_PS, f)
    b, d_k = ca.cross(axes, ca.spread(f, k, 1)), ca.spread(d, k, 1)
    bias = None
    if motion is not None:
        d_rate2 = ca.cross(motion.alpha_PS, d) + ca.cross(motion.w_PS, ca.cross(motion.w_PS, d))
        bias = ca.dot(b, ca.spread(d_rate2, k, 1))
    return ca.dot(b, d_k), ca.cross(d_k, b), bias


def measure_rotation_vector(
    axes: Float[Array, "3 k n"], R_PS: Float[Array, "3 3 n"], motion: RelativeMotion | None
) -> tuple[Array, Array, Array | None]:
    """a · phi with R_PS = exp([phi]x): error, torque and bias, from dphi/dt = J(phi) w."""
    k = axes.shape[1]
    phi = ca.over_columns(lambda R: rotation_log(R.reshape(3, 3)), R_PS.reshape(9, *R_PS.shape[2:]))
    phi_k, bias = ca.spread(phi, k, 1), None
    if motion is not None:
        w = motion.w_PS
        _, w_part = jax.jvp(lambda x: rotation_vector_rate(x, w), (phi,), (rotation_vector_rate(phi, w),))
        bias = ca.dot(axes, ca.spread(rotation_vector_rate(phi, motion.alpha_PS) + w_part, k, 1))
    return ca.dot(axes, phi_k), rotation_vector_rate(-phi_k, axes), bias


def rotation_vector_rate(phi: Float[Array, "3 *n"], w: Float[Array, "3 *n"]) -> Float[Array, "3 *n"]:
    """J w = w - phi x w / 2 + c phi x (phi x w), c = (1 - (a/2) cot(a/2)) / a² with a = |phi|; J(phi)ᵀ = J(-phi).

    The rate of the rotation vector of R for dR/dt = [w]x R (inverse left Jacobian of SO(3); Chirikjian 2012,
    eq. 10.86).
    """
    h2 = 0.25 * ca.dot(phi, phi)  # of half the angle h; c = (sin h - h cos h) / (4 h² sin h)
    c = 0.25 * (one_minus_cos_over_x2_of_square(h2) - x_minus_sin_over_x3_of_square(h2)) / sin_over_x_of_square(h2)
    turned = ca.cross(phi, w)
    return w - 0.5 * turned + ca.scale(ca.cross(phi, turned), c)


LOOP = PairKind(loop_frames, loop_rows, loop_variant)
BALL = PairKind(ball_frames, ball_rows)
WELD = PairKind(weld_frames, weld_rows)
