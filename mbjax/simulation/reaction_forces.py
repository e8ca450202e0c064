"""Reaction forces of joints on their child bodies: Newton–Euler for each body, summed over the bodies carried."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from mbjax.execution.arrays import dot_with_mask, take
from mbjax.forces import calc_masses_and_centers
from mbjax.kinematics import PositionKinematics, calc_body_offsets, calc_body_poses
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca


def calc_reaction_forces(
    model: MultibodyModel,
    position: PositionKinematics,
    V_WB_W: Float[Array, "6 nb"],
    A_WB_W: Float[Array, "6 nb"],
    F_applied_Bo_W: Float[Array, "nb 6"],
) -> Float[Array, "joints 6"]:
    """Force F_CJc_Jc of every joint on its child body C at its frame Jc, in Jc; torque (N m), then force (N).

    It sums, over the bodies that the joint carries, the force their motion requires less the force applied to them.
    Along a motion that the joint allows it is the joint's generalized force, including actuation and dissipation.
    """
    joints, groups = model.layout.joints, find_carried_groups(model)
    if not joints:
        return jnp.zeros((0, 6), model.dtype)
    p_WG, p_GBo = place_groups(model, position)
    F_Bo = calc_forces_of_motion(model, position, V_WB_W, A_WB_W) - F_applied_Bo_W.T
    F_G = dot_with_mask(jnp.concatenate([F_Bo[:3] + ca.cross(p_GBo, F_Bo[3:]), F_Bo[3:]]), groups.is_member, 1)

    children, frames = np.array([j.child_body for j in joints]), [j.child_frame for j in joints]
    R_WC = take(calc_body_poses(model, position)[0], children, 2)
    R_WJc = ca.matmul(R_WC, take(position.placement.R_BF, frames, 2))
    p_GJc = take(p_GBo, children, 1) + ca.matvec(R_WC, take(position.placement.p_BF, frames, 1))  # the child's G

    p_JcG = take(p_WG, groups.member, 1) - take(p_WG, children[groups.joint], 1) - take(p_GJc, groups.joint, 1)
    F_Jc = jnp.concatenate([F_G[:3] + ca.cross(p_JcG, F_G[3:]), F_G[3:]])
    F_Jc = dot_with_mask(F_Jc, groups.joint[:, None] == np.arange(len(joints)), 1)
    return jnp.concatenate([ca.transposed_matvec(R_WJc, F_Jc[:3]), ca.transposed_matvec(R_WJc, F_Jc[3:])]).T


def calc_forces_of_motion(
    model: MultibodyModel, position: PositionKinematics, V_WB_W: Float[Array, "6 nb"], A_WB_W: Float[Array, "6 nb"]
) -> Float[Array, "6 nb"]:
    """Spatial force that each body's motion requires, about Bo in W, by the formula of `calc_inverse_dynamics`."""
    mass, p_BoBcm_W, _ = calc_masses_and_centers(model, position)
    G_BBo_B = model.parameters.body_unit_inertia.T
    G_BBo_B = jnp.concatenate([jnp.zeros((6, 1), G_BBo_B.dtype), G_BBo_B], axis=-1)  # the world has no inertia
    inertia = mass[None, None] * ca.re_express_symmetric(
        calc_body_poses(model, position)[0], ca.symmetric_matrix(G_BBo_B)
    )
    s, w, alpha, a_Bo = mass[None] * p_BoBcm_W, V_WB_W[:3], A_WB_W[:3], A_WB_W[3:]
    f = mass[None] * a_Bo + ca.cross(alpha, s) + ca.cross(w, ca.cross(w, s))
    t = ca.matvec(inertia, alpha) + ca.cross(s, a_Bo) + ca.cross(w, ca.matvec(inertia, w))
    return jnp.concatenate([t, f])


def place_groups(
    model: MultibodyModel, position: PositionKinematics
) -> tuple[Float[Array, "3 nb"], Float[Array, "3 nb"]]:
    """Positions p_WG and p_GBo_W per body: G is the origin of its tree, or its own origin if fixed to the world.

    Moments about a nearby point keep their digits far from the world's origin.
    """
    mobods = np.array(model.topology.body_mobods)
    is_anchored = mobods == 0
    p_TBo = take(position.p_TM_W, mobods, 1) + calc_body_offsets(model, position)
    p_WT = take(position.p_WM, model.topology.mobod_roots[mobods], 1)
    return jnp.where(is_anchored, p_TBo, p_WT), jnp.where(is_anchored, 0.0, p_TBo)


class CarriedGroups(NamedTuple):
    """The bodies that each joint carries, in groups that share one point G; one row per joint and group."""

    joint: Int[np.ndarray, " rows"]
    member: Int[np.ndarray, " rows"]  # a body of the group
    is_member: Bool[np.ndarray, "nb rows"]


def find_carried_groups(model: MultibodyModel) -> CarriedGroups:
    """Groups carried by each joint: one within a tree; for a weld to the world, each body it fixes and tree on them."""
    bodies, rows = model.layout.bodies, {}
    for body in bodies[1:]:
        root = int(model.topology.mobod_roots[body.mobod_index])
        group = (root, 0 if root else body.index)
        joint = body.inboard_joint
        while joint is not None:
            rows.setdefault((joint.index, group), []).append(body.index)
            joint = bodies[joint.parent_body].inboard_joint
    is_member = np.zeros((len(bodies), len(rows)), bool)
    for row, members in enumerate(rows.values()):
        is_member[members, row] = True
    joint = np.array([joint for joint, _ in rows], int)
    return CarriedGroups(joint, np.array([members[0] for members in rows.values()], int), is_member)
