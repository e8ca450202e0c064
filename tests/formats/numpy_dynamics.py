"""Equations of motion in NumPy, body by body from the definition: what a written file must keep, without a compiler.

Only pose, hinge map and its rate of joints without an axis are asked of mbjax.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import mbjax
from mbjax.joints import JOINT_KINDS
from mbjax.model import all_joint_positions, all_joint_velocities, direction_ratios


class Motion(NamedTuple):
    """Of a frame in W: rotation, position, Jacobian (6, nd), velocity, and the acceleration of zero vdot."""

    R: np.ndarray
    p: np.ndarray
    J: np.ndarray
    V: np.ndarray
    A: np.ndarray

    def moved(self, R: np.ndarray, p: np.ndarray) -> "Motion":
        """A frame fixed in this one at (R, p)."""
        p_W = self.R @ p
        (w, v), (alpha, a) = np.split(self.V, 2), np.split(self.A, 2)
        J = np.concatenate([self.J[:3], self.J[3:] - skew(p_W) @ self.J[:3]])
        V = np.concatenate([w, v + np.cross(w, p_W)])
        A = np.concatenate([alpha, a + np.cross(alpha, p_W) + np.cross(w, np.cross(w, p_W))])
        return Motion(self.R @ R, self.p + p_W, J, V, A)


class Dynamics(NamedTuple):
    """M, the Coriolis bias, gravity's forces, forces of dampers and joint springs, and poses of the bodies by name."""

    M: np.ndarray
    bias: np.ndarray
    gravity: np.ndarray
    passive: np.ndarray
    poses: dict[str, np.ndarray]


def skew(p: np.ndarray) -> np.ndarray:
    return np.cross(np.eye(3), p).T * -1.0


def rotation(quaternion: np.ndarray) -> np.ndarray:
    w, x, y, z = quaternion / np.linalg.norm(quaternion)
    u = np.array([x, y, z])
    return np.eye(3) + 2.0 * w * skew(u) + 2.0 * skew(u) @ skew(u)


def dynamics(model: mbjax.MultibodyModel, q: np.ndarray, v: np.ndarray) -> Dynamics:
    """All of it at one state."""
    p, layout, topology = jax.tree.map(np.asarray, model.parameters), model.layout, model.topology
    all_q, all_v = q, v
    if topology.followers:
        all_q, all_v = (np.asarray(f(model, x)) for f, x in ((all_joint_positions, q), (all_joint_velocities, v)))
    nd = topology.num_directions
    rows = {frame: row for row, frame in enumerate(layout.offset_frames)}

    def in_body(frame: int) -> tuple[np.ndarray, np.ndarray]:
        info = layout.frames[frame]
        if info.parent is None:
            return np.eye(3), np.zeros(3)
        R, t = in_body(info.parent)
        row = rows[frame]
        return R @ rotation(p.frame_quaternion[row]), t + R @ p.frame_translation[row]

    @functools.cache
    def motion(body: int) -> Motion:
        joint = layout.bodies[body].inboard_joint
        if joint is None:
            return Motion(np.eye(3), np.zeros(3), np.zeros((6, nd)), np.zeros(6), np.zeros(6))
        F = motion(joint.parent_body).moved(*in_body(joint.parent_frame))
        R_BM, p_BM = in_body(joint.child_frame)
        M = moved_by_joint(F, joint, p, layout, all_q[joint.all_q], all_v[joint.all_v])
        return M.moved(R_BM.T, -R_BM.T @ p_BM)

    M, bias, gravity = np.zeros((nd, nd)), np.zeros(nd), np.zeros(nd)
    poses = {}
    for body in layout.bodies[1:]:
        i, B = body.index - 1, motion(body.index)
        poses[body.scoped_name] = np.concatenate([B.R, B.p[:, None]], axis=1)
        cm = B.moved(np.eye(3), p.body_com[i])
        xx, yy, zz, xy, xz, yz = p.body_unit_inertia[i]
        G = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        c, mass = p.body_com[i], p.body_mass[i]
        inertia = mass * B.R @ (G - c @ c * np.eye(3) + np.outer(c, c)) @ B.R.T
        w = cm.V[:3]
        M += cm.J[:3].T @ inertia @ cm.J[:3] + mass * cm.J[3:].T @ cm.J[3:]
        torque = inertia @ cm.A[:3] + np.cross(w, inertia @ w)
        bias += cm.J[:3].T @ torque + mass * cm.J[3:].T @ cm.A[3:]
        gravity += layout.gravity_enabled[body.model_instance] * mass * cm.J[3:].T @ p.gravity
    armature = np.array(p.joint_armature)
    for actuator in layout.actuators:
        at = layout.joints[actuator.joint].all_v_start
        armature[at] += p.rotor_inertia[actuator.index] * p.gear_ratio[actuator.index] ** 2
    passive = -p.joint_damping * all_v
    for element in model.force_elements:
        if isinstance(element, mbjax.RevoluteSpring | mbjax.PrismaticSpring):
            joint = layout.joints[element.joint]
            nominal = getattr(element, "nominal_angle", getattr(element, "nominal_position", None))
            passive[joint.all_v_start] += float(element.stiffness) * (float(nominal) - all_q[joint.all_q_start])
    E = np.zeros((nd, model.num_velocities))
    ratios = np.asarray(direction_ratios(model)) if topology.followers else np.ones(nd)
    E[np.arange(nd), topology.velocities_of_directions] = ratios
    return Dynamics(E.T @ (M + np.diag(armature)) @ E, E.T @ bias, E.T @ gravity, E.T @ passive, poses)


def moved_by_joint(F: Motion, joint, p, layout, q: np.ndarray, v: np.ndarray) -> Motion:
    """The motion of frame M of a joint, from that of F."""
    cls = JOINT_KINDS[joint.kind]
    if cls.num_velocities == 0:
        return F
    if cls.has_axis:
        axis = p.joint_axis[layout.axis_joints.index(joint.index)]
        axis = axis / np.linalg.norm(axis)
        pitch = p.screw_pitch[layout.screw_joints.index(joint.index)] if cls.has_pitch else 0.0
        advance = 1.0 if joint.kind == "prismatic" else pitch / (2.0 * np.pi)
        half = 0.5 * q[0] * (joint.kind != "prismatic")
        R_FM, p_FM = rotation(np.array([np.cos(half), *(np.sin(half) * axis)])), advance * q[0] * axis
        H = np.concatenate([axis * (joint.kind != "prismatic"), advance * axis])[:, None]
        Hdot = np.zeros((6, 1))
    else:
        at, rate, none = jnp.asarray(q[:, None]), jnp.asarray(v[:, None]), (jnp.zeros((3, 1)), jnp.zeros(1))
        R_FM, p_FM = (np.asarray(x)[..., 0] for x in cls.pose(at, *none))
        H, changing = np.asarray(cls.hinge_map(at, *none))[..., 0], cls.hinge_map_rate(at, rate)
        Hdot = np.zeros_like(H) if changing is None else np.asarray(changing)[..., 0]
    turn = np.kron(np.eye(2), F.R)
    carried = F.moved(np.eye(3), p_FM)
    J = np.array(carried.J)
    J[:, joint.all_v] += turn @ H
    V_FM, A_FM = turn @ H @ v, turn @ Hdot @ v
    w = F.V[:3]
    coriolis = np.concatenate([np.cross(w, V_FM[:3]), 2.0 * np.cross(w, V_FM[3:])])
    return Motion(F.R @ R_FM, carried.p, J, carried.V + V_FM, carried.A + A_FM + coriolis)
