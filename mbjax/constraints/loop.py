"""Loops: frame S of one body kept with frame P of another; balls and welds are loops along fixed sets of axes."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.model import BallConstraint, LoopConstraint, WeldConstraint

from .axis_rows import AxisKind
from .relative_motion import FramePair


def loop_frames(loop: LoopConstraint) -> FramePair:
    return FramePair(loop.predecessor, loop.quaternion_AP, loop.p_AP, loop.successor, loop.quaternion_BS, loop.p_BS)


def ball_frames(ball: BallConstraint) -> FramePair:
    assert ball.p_BQ is not None, "the point is filled in when the constraint is bound"
    return FramePair(ball.body_A, None, ball.p_AP, ball.body_B, None, ball.p_BQ)


def weld_frames(weld: WeldConstraint) -> FramePair:
    return FramePair(weld.body_A, weld.quaternion_AP, weld.p_AP, weld.body_B, weld.quaternion_BQ, weld.p_BQ)


def unit_axes(first: int, like: Float[Array, "3"]) -> Float[Array, "6 k"]:
    """The coordinate axes from `first` on; `like` gives the dtype and whether an axis of worlds follows."""
    axes = np.eye(6)[:, first:]
    return jnp.asarray(axes.reshape(*axes.shape, *(1,) * (like.ndim - 1)), like.dtype)


LOOP = AxisKind(
    loop_frames,
    lambda loop: jnp.swapaxes(loop.axes, 0, 1),
    lambda loop: loop.rotational_rows,
    lambda loop: loop.is_hinge,
)
BALL = AxisKind(ball_frames, lambda ball: unit_axes(3, ball.p_AP))
WELD = AxisKind(weld_frames, lambda weld: unit_axes(0, weld.p_AP), lambda weld: (0, 1, 2))
