"""Pose and motion of frame S of a body B relative to frame P of a body A, for n pairs of frames at once."""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.execution.arrays import take
from mbjax.kinematics import PositionKinematics, VelocityKinematics
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import quaternion_to_matrix
from mbjax.topology import over_directions, sum_velocities_over_path


class FramePair(NamedTuple):
    """Frame P fixed in body A, and frame S fixed in body B; without a quaternion a frame has its body's axes."""

    body_A: int
    quaternion_AP: Float[Array, "4"] | None
    p_AP: Float[Array, "3"]
    body_B: int
    quaternion_BS: Float[Array, "4"] | None
    p_BS: Float[Array, "3"]


class RelativePose(eqx.Module):
    """Poses X_PS, and positions of So from the origins of bodies and mobods; A's refer to A's material at So."""

    R_WP: Float[Array, "3 3 n"]
    R_PS: Float[Array, "3 3 n"]
    p_PS_P: Float[Array, "3 n"]
    p_AoSo_W: Float[Array, "3 n"]
    p_BoSo_W: Float[Array, "3 n"]
    p_MaSo_W: Float[Array, "3 n"]  # from the origin Mo of A's mobod
    p_MbSo_W: Float[Array, "3 n"]
    bodies_A: tuple[int, ...] = eqx.field(static=True)
    bodies_B: tuple[int, ...] = eqx.field(static=True)
    mobods_A: tuple[int, ...] = eqx.field(static=True)
    mobods_B: tuple[int, ...] = eqx.field(static=True)


class RelativeMotion(eqx.Module):
    """Velocity of S measured in P, and acceleration at vdot = 0; at So, expressed in P."""

    w_PS: Float[Array, "3 n"]
    v_PS: Float[Array, "3 n"]
    alpha_PS: Float[Array, "3 n"]
    a_PS: Float[Array, "3 n"]


def calc_relative_pose(model: MultibodyModel, pairs: Sequence[FramePair], position: PositionKinematics) -> RelativePose:
    """Poses X_PS = X_WP⁻¹ X_WS; within one tree no large coordinates are subtracted."""
    bodies_A, bodies_B = tuple(pair.body_A for pair in pairs), tuple(pair.body_B for pair in pairs)
    mobods_A, mobods_B = (tuple(model.topology.body_mobods[b] for b in x) for x in (bodies_A, bodies_B))
    R_WP, p_AoPo_W, p_MaPo_W = place(model, position, bodies_A, [(x.quaternion_AP, x.p_AP) for x in pairs])
    R_WS, p_BoSo_W, p_MbSo_W = place(model, position, bodies_B, [(x.quaternion_BS, x.p_BS) for x in pairs])
    roots = model.topology.mobod_roots
    same_tree = roots[np.asarray(mobods_A)] == roots[np.asarray(mobods_B)]
    same_tree = same_tree.reshape(-1, *(1 for _ in range(model.num_world_axes)))
    within, across = (take(p, mobods_B, 1) - take(p, mobods_A, 1) for p in (position.p_TM_W, position.p_WM))
    p_PS_W = jnp.where(same_tree, within, across) + (p_MbSo_W - p_MaPo_W)
    return RelativePose(
        R_WP,
        ca.matmul(ca.transpose(R_WP), R_WS),
        ca.transposed_matvec(R_WP, p_PS_W),
        p_AoPo_W + p_PS_W,
        p_BoSo_W,
        p_MaPo_W + p_PS_W,
        p_MbSo_W,
        bodies_A,
        bodies_B,
        mobods_A,
        mobods_B,
    )


def place(
    model: MultibodyModel,
    position: PositionKinematics,
    bodies: Sequence[int],
    frames: Sequence[tuple[Array | None, Array]],
) -> tuple[Float[Array, "3 3 n"], Float[Array, "3 n"], Float[Array, "3 n"]]:
    """R_WF, p_BoFo_W and p_MoFo_W of one frame F in each body."""
    R_WM = take(position.R_WM, [model.topology.body_mobods[b] for b in bodies], 2)
    R_WB = ca.matmul(R_WM, take(position.placement.R_MB, bodies, 2))
    p_BoFo_W = ca.matvec(R_WB, stack_columns([p for _, p in frames]))
    p_MoFo_W = ca.matvec(R_WM, take(position.placement.p_MB, bodies, 1)) + p_BoFo_W
    if all(quaternion is None for quaternion, _ in frames):
        return R_WB, p_BoFo_W, p_MoFo_W
    identity = jnp.concatenate([1.0 + model.zeros(1), model.zeros(3)])
    quaternions = stack_columns([identity if quaternion is None else quaternion for quaternion, _ in frames])
    return ca.matmul(R_WB, ca.over_columns(quaternion_to_matrix, quaternions)), p_BoFo_W, p_MoFo_W


def calc_pair_motion(
    model: MultibodyModel,
    pose: RelativePose,
    position: PositionKinematics,
    velocity: VelocityKinematics,
    v: Float[Array, " nv"],
) -> RelativeMotion:
    """Velocity and acceleration of S in P, with time derivatives taken in P:

    w_PS = w_WS - w_WP                    v_PS = v_WS - v_WP
    alpha_PS = alpha_WS - alpha_WP - w_WP x w_PS
    a_PS = a_WS - a_WP - 2 w_WP x v_PS
    """
    topology = model.topology
    A_WM_T = sum_velocities_over_path(topology, ca.scale(velocity.Sdot_T, over_directions(topology, v)))
    w_WA, v_WA, alpha_WA, a_WA = point_motion(position, velocity, A_WM_T, pose.mobods_A, pose.p_MaSo_W)
    w_WB, v_WB, alpha_WB, a_WB = point_motion(position, velocity, A_WM_T, pose.mobods_B, pose.p_MbSo_W)
    w_PS, v_PS = w_WB - w_WA, v_WB - v_WA
    alpha_PS = alpha_WB - alpha_WA - ca.cross(w_WA, w_PS)
    a_PS = a_WB - a_WA - 2.0 * ca.cross(w_WA, v_PS)
    return RelativeMotion(*(ca.transposed_matvec(pose.R_WP, x) for x in (w_PS, v_PS, alpha_PS, a_PS)))


def point_motion(
    position: PositionKinematics,
    velocity: VelocityKinematics,
    A_WM_T: Float[Array, "6 nm"],
    mobods: Sequence[int],
    p_MQ_W: Float[Array, "3 n"],
) -> tuple[Array, Array, Array, Array]:
    """Angular velocity w, v_WQ, alpha and a_WQ at a point Q of each mobod, in W."""
    V_T, A_T, v_WMo = take(velocity.V_WM_T, mobods, 1), take(A_WM_T, mobods, 1), take(velocity.v_WMo, mobods, 1)
    w, alpha = V_T[:3], A_T[:3]
    a_WMo = A_T[3:] + ca.cross(alpha, take(position.p_TM_W, mobods, 1)) + ca.cross(w, v_WMo)
    v_MQ = ca.cross(w, p_MQ_W)
    return w, v_WMo + v_MQ, alpha, a_WMo + ca.cross(alpha, p_MQ_W) + ca.cross(w, v_MQ)


def stack_columns(columns: Sequence[Array], axis: int = 1) -> Array:
    """Stacks arrays with `axis` component axes along a new axis; axes of worlds after it may be shared or not."""
    return ca.concatenate([jnp.expand_dims(x, axis) for x in columns], axis)
