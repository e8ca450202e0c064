"""Motions of joint frames along a change of the model, with q held.

Every frame of a joint stays rigid, so that the changes of X_PF and X_FM are two motions. In addition, the hinge map of
a joint changes with its axis and pitch.
"""

import equinox as eqx
from jaxtyping import Array, Float

from mbjax.execution.arrays import take
from mbjax.execution.derivative_rules import with_zeros
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca

from .placement_records import BodyPlacement
from .tree_poses import JointShift, PositionKinematics, calc_joint_kinematics


def calc_joint_shift(
    model: MultibodyModel,
    dmodel: MultibodyModel,
    position: PositionKinematics,
    dplacement: BodyPlacement,
    q: Float[Array, " nq"],
) -> JointShift | None:
    """Tangent of `position.shift` along a change of the model and of the placement that follows from it.

    None where no frame and no joint changes.
    """

    def of_joints(model: MultibodyModel, axis: Array, pitch: Array) -> tuple[Array, Array, Array]:
        placement = eqx.tree_at(lambda p: (p.axis, p.pitch), position.placement, (axis, pitch))
        return calc_joint_kinematics(model, placement, q)

    placement, r = position.placement, position.p_TM_W
    given, moved = (model, placement.axis, placement.pitch), (dmodel, dplacement.axis, dplacement.pitch)
    at_joints, d_joints = eqx.filter_jvp(of_joints, given, moved)
    frames, d_frames = (placement.R_PF, placement.p_PF), (dplacement.R_PF, dplacement.p_PF)
    change = with_zeros((d_frames, d_joints), (frames, at_joints))
    if change is None:
        return None
    (R_FM, p_FM, _), ((dR_PF, dp_PF), (dR_FM, dp_FM, dH_F)) = at_joints, change
    topology, R_WF = model.topology, position.R_WF
    R_WP = take(position.R_WM, topology.parents, 2)
    w, v_Fo = ca.matvec(R_WP, turning(placement.R_PF, dR_PF)), ca.matvec(R_WP, dp_PF)
    inboard = shift_about_T(w, v_Fo, r - ca.matvec(R_WF, p_FM))
    outboard = shift_about_T(ca.matvec(R_WF, turning(R_FM, dR_FM)), ca.matvec(R_WF, dp_FM), r)
    R_of_direction = take(R_WF, topology.velocity_mobods, 2)
    hinge = [ca.matvec(R_of_direction, part) for part in (dH_F[:3], dH_F[3:])]
    return JointShift(inboard, outboard, ca.concatenate(hinge, 0))


def turning(R: Float[Array, "3 3 n"], dR: Float[Array, "3 3 n"]) -> Float[Array, "3 n"]:
    """Angular rate w of a rotation's tangent: dR = [w]x R."""
    columns = [ca.cross(R[:, k], dR[:, k]) for k in range(3)]
    return 0.5 * (columns[0] + columns[1] + columns[2])


def shift_about_T(w: Float[Array, "3 n"], v: Float[Array, "3 n"], r: Float[Array, "3 n"]) -> Float[Array, "6 n"]:
    """Spatial motion about T of a body that turns by w, and whose point at r from T moves by v."""
    return ca.concatenate([w, v + ca.cross(r, w)], 0)
