"""What differs between the bipeds of MuJoCo Playground's joystick tasks: names, weights, and forms of terms."""

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mbjax.model import MultibodyModel

from .joystick import Noise

Pairs = tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True)
class BipedRules:
    """Names of frames, shapes and joints, weights of terms, and how some terms are formed.

    `feet` are frames and `soles` shapes. `upright` is where the torso's z axis should point; None asks for no tilt.
    `hips` are names of joints whose deviation counts by a factor: the first of `hip_factors` at commands of up to 0.1
    m/s to a side, the second at faster ones, or at faster ones to the left if `is_left_alone`. With `steps_at_rest`
    feet earn from steps without a command, though not from their phase at rest.
    """

    home: str
    pelvis: str
    torso: str
    feet: tuple[str, str]
    soles: tuple[str, str]
    hips: tuple[str, ...]
    knees: tuple[str, ...]
    weights: tuple[tuple[str, float], ...]
    fastest: tuple[float, float, float]
    sigma: float
    foot_height: float  # m
    noise: Noise
    ground: str = "floor"
    upright: tuple[float, float, float] | None = None
    pose_weights: tuple[float, ...] = ()  # of a leg's joints
    hip_factors: tuple[float, float] = (0.0, 1.0)
    is_left_alone: bool = False
    steps_at_rest: bool = False
    is_never_negative: bool = False
    forbidden: Pairs = ()  # shapes whose touch ends an episode
    collisions: Pairs = ()  # shapes whose touch costs

    def rows(self, model: MultibodyModel, joints: tuple[str, ...]) -> Int[np.ndarray, " n"]:
        """Places of joints among the actuators."""
        driven = [model.joint(actuator.joint).name for actuator in model.layout.actuators]
        return np.array([driven.index(name) for name in joints])

    def tilt(self, up: Float[Array, "3"]) -> Float[Array, ""]:
        """How far the torso's z axis is from where it should point, squared."""
        if self.upright is None:
            return jnp.sum(up[:2] ** 2)
        return jnp.sum((up - jnp.array(self.upright, up.dtype)) ** 2)

    def hips_left(
        self, model: MultibodyModel, away: Float[Array, " nu"], command: Float[Array, "3"]
    ) -> Float[Array, ""]:
        """Sum of the deviations of hips from home, in rad."""
        sideward = command[1] if self.is_left_alone else jnp.abs(command[1])
        slow, fast = self.hip_factors
        return jnp.where(sideward > 0.1, fast, slow) * jnp.sum(jnp.abs(away[self.rows(model, self.hips)]))


BERKELEY = BipedRules(
    home="home",
    pelvis="imu",
    torso="imu",
    feet=("l_foot", "r_foot"),
    soles=("l_foot1", "r_foot1"),
    hips=("LL_HR", "LL_HAA", "LR_HR", "LR_HAA"),
    knees=("LL_KFE", "LR_KFE"),
    weights=tuple({
        "tracking_lin_vel": 1.0, "tracking_ang_vel": 0.5, "ang_vel_xy": -0.15, "orientation": -1.0,
        "torques": -2.5e-5, "action_rate": -0.01, "feet_air_time": 2.0, "feet_slip": -0.25, "feet_phase": 1.0,
        "termination": -1.0, "joint_deviation_knee": -0.1, "joint_deviation_hip": -0.25, "dof_pos_limits": -1.0,
        "pose": -1.0,
    }.items()),
    fastest=(1.0, 1.0, 1.0),
    sigma=0.5,
    foot_height=0.1,
    noise=Noise(joint_pos=(0.03, 0.03, 0.03, 0.05, 0.08, 0.03) * 2),
    pose_weights=(1.0, 1.0, 0.01, 0.01, 1.0, 1.0),
    is_never_negative=True,
)  # fmt: skip
G1 = BipedRules(
    home="knees_bent",
    pelvis="imu_in_pelvis",
    torso="imu_in_torso",
    feet=("left_foot", "right_foot"),
    soles=("left_foot", "right_foot"),
    hips=("left_hip_roll_joint", "left_hip_yaw_joint", "right_hip_roll_joint", "right_hip_yaw_joint"),
    knees=("left_knee_joint", "right_knee_joint"),
    weights=tuple({
        "tracking_lin_vel": 1.0, "tracking_ang_vel": 0.75, "ang_vel_xy": -0.15, "orientation": -2.0,
        "feet_air_time": 2.0, "feet_slip": -0.25, "feet_phase": 1.0, "stand_still": -1.0, "termination": -100.0,
        "collision": -0.1, "joint_deviation_knee": -0.1, "joint_deviation_hip": -0.25, "dof_pos_limits": -1.0,
        "pose": -0.1,
    }.items()),
    fastest=(1.0, 0.5, 1.0),
    sigma=0.25,
    foot_height=0.15,
    noise=Noise(),
    upright=(0.073, 0.0, 1.0),
    hip_factors=(4.0, 2.0),  # as Playground 0.2 has it: it sums a column of joints times a row of their weights
    is_left_alone=True,
    steps_at_rest=True,
    forbidden=(("right_foot", "left_foot"),),
    collisions=(("left_hand_collision", "left_thigh"), ("right_hand_collision", "right_thigh")),
)  # fmt: skip
