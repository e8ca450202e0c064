"""A massless bushing between frames of two bodies: three springs and dampers for angles, three for distances."""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.array_types import Matrix3, Vector3
from mbjax.kinematics import PositionKinematics, calc_frame_pose
from mbjax.kinematics.frames import FramePose, calc_offset, calc_point_velocity
from mbjax.model import AbstractForceElement, MultibodyModel
from mbjax.model.element_keys import FrameKey, Numbers
from mbjax.spatial import (
    angular_velocity_to_rpy_rates_matrix,
    matrix_to_quaternion,
    matrix_to_rpy,
    quaternion_to_matrix,
)
from mbjax.spatial import component_algebra as ca

from .checked_numbers import checked_element_numbers
from .multibody_forces import MultibodyForces

GIMBAL_LOCK_COSINE = 0.008  # Drake's: a pitch with a smaller cosine counts as 90°


class BushingPose(NamedTuple):
    """Poses of frames A and C, the roll-pitch-yaw angles of C in A, and p_AoCo in W and in the halfway frame B."""

    A: FramePose
    C: FramePose
    rpy: Vector3
    R_WB: Matrix3
    p_AoCo_W: Vector3
    p_AoCo_B: Vector3


class LinearBushingRollPitchYaw(AbstractForceElement):
    """Connects frames A and C by gimbal torques tau and a force f, which acts halfway between Ao and Co.

    tau = -k012 rpy - d012 d(rpy)/dt with R_AC = Rz(yaw) Ry(pitch) Rx(roll), torque on C t_A = Nᵀ tau;
    f_B = -kxyz p_AoCo_B - dxyz dp/dt with B halfway between A and C, f on C and -f on A, as in Drake.
    Within 0.46° of pitch ±90°, where Drake raises, a torque is NaN (and zero where tau is). Yaw and roll jump
    at ±180°.
    """

    torque_stiffness_constants: Float[Array, "3"]  # N m/rad
    torque_damping_constants: Float[Array, "3"]  # N m s/rad
    force_stiffness_constants: Float[Array, "3"]  # N/m
    force_damping_constants: Float[Array, "3"]  # N s/m
    frame_A: Any = eqx.field(static=True)
    frame_C: Any = eqx.field(static=True)

    def __init__(
        self,
        frame_A: FrameKey,
        frame_C: FrameKey,
        torque_stiffness_constants: Numbers,
        torque_damping_constants: Numbers,
        force_stiffness_constants: Numbers,
        force_damping_constants: Numbers,
    ):
        def checked(what: str, value: Any) -> Array:
            return checked_element_numbers("LinearBushingRollPitchYaw", what, value, size=3)

        self.frame_A, self.frame_C = frame_A, frame_C
        self.torque_stiffness_constants = checked("torque_stiffness_constants", torque_stiffness_constants)
        self.torque_damping_constants = checked("torque_damping_constants", torque_damping_constants)
        self.force_stiffness_constants = checked("force_stiffness_constants", force_stiffness_constants)
        self.force_damping_constants = checked("force_damping_constants", force_damping_constants)

    def resolve(self, plant):
        A, C = (plant.frame(frame, "LinearBushingRollPitchYaw").index for frame in (self.frame_A, self.frame_C))
        return LinearBushingRollPitchYaw(
            A,
            C,
            self.torque_stiffness_constants,
            self.torque_damping_constants,
            self.force_stiffness_constants,
            self.force_damping_constants,
        )

    def forces(self, model, position, velocity, q, v):
        del q
        pose = self.pose(model, position)
        A, C, p_W = pose.A, pose.C, pose.p_AoCo_W
        V_WA = calc_point_velocity(velocity, A.mobod, A.p_MF_W)
        V_WC = calc_point_velocity(velocity, C.mobod, C.p_MF_W)
        w_AC_W = V_WC[:3] - V_WA[:3]
        v_ACo_W = V_WC[3:] - V_WA[3:] - ca.cross(V_WA[:3], p_W)
        pdot_B = ca.transposed_matvec(pose.R_WB, v_ACo_W - 0.5 * ca.cross(w_AC_W, p_W))
        f_B = -(self.force_stiffness_constants * pose.p_AoCo_B + self.force_damping_constants * pdot_B)
        t_A = self.torque_on_C(pose.rpy, ca.transposed_matvec(A.R_WF, w_AC_W))
        t_W, f_W = ca.matvec(A.R_WF, t_A), ca.matvec(pose.R_WB, f_B)
        body = jnp.zeros((model.num_bodies, 6), v.dtype)
        for frame, sign, to_middle in ((self.frame_C, 1.0, -0.5 * p_W), (self.frame_A, -1.0, 0.5 * p_W)):
            index, p_BoFo_W = offset_in_body(model, position, frame)
            F_Bo_W = jnp.concatenate([t_W + ca.cross(p_BoFo_W + to_middle, f_W), f_W])
            body = body.at[index].add(sign * F_Bo_W)
        return MultibodyForces(jnp.zeros_like(v), body)

    def potential_energy(self, model, position, q):
        """Potential energy ½ k012 rpy² + ½ kxyz p_AoCo_B², in J; Drake offers none.

        It is the energy of the spring forces where kx = ky = kz. Elsewhere they are not quite conservative, and the
        power that they lose or gain counts as non-conservative.
        """
        del q
        pose = self.pose(model, position)
        angles = jnp.sum(self.torque_stiffness_constants * pose.rpy**2)
        return 0.5 * (angles + jnp.sum(self.force_stiffness_constants * pose.p_AoCo_B**2))

    def pose(self, model: MultibodyModel, position: PositionKinematics) -> BushingPose:
        """Relative pose of the frames A and C."""
        A, C = calc_frame_pose(model, position, self.frame_A), calc_frame_pose(model, position, self.frame_C)
        R_AC = ca.matmul(A.R_WF.T, C.R_WF)
        q_AC = matrix_to_quaternion(R_AC)  # w >= 0, so the sum with the identity never vanishes
        R_WB = ca.matmul(A.R_WF, quaternion_to_matrix(q_AC.at[0].add(1.0)))
        p_AoCo_W = calc_offset(model, position, A, C.mobod, C.p_MF_W)
        return BushingPose(A, C, matrix_to_rpy(R_AC), R_WB, p_AoCo_W, ca.transposed_matvec(R_WB, p_AoCo_W))

    def torque_on_C(self, rpy: Vector3, w_AC_A: Vector3) -> Vector3:
        """Torque t_A = Nᵀ tau on C, with d(rpy)/dt = N w_AC_A, so that t · w_AC = tau · d(rpy)/dt."""
        N = angular_velocity_to_rpy_rates_matrix(rpy)
        tau = -(self.torque_stiffness_constants * rpy + self.torque_damping_constants * ca.matvec(N, w_AC_A))
        undefined = (jnp.abs(jnp.cos(rpy[1])) < GIMBAL_LOCK_COSINE) & jnp.any(tau != 0.0)
        return ca.transposed_matvec(N, tau) * jnp.where(undefined, jnp.nan, jnp.ones_like(rpy))


def offset_in_body(model: MultibodyModel, position: PositionKinematics, frame: int) -> tuple[int, Vector3]:
    """Body of a frame F, and the offset p_BoFo_W of F in it."""
    body = model.topology.frame_bodies[frame]
    placement, R_WM = position.placement, position.R_WM[..., model.topology.body_mobods[body]]
    return body, ca.matvec(R_WM, ca.matvec(placement.R_MB[..., body], placement.p_BF[:, frame]))
