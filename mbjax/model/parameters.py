"""The numbers of a model: float leaves, every one differentiable and vmappable, none derived from another."""

import equinox as eqx
from jaxtyping import Array, Float


class MultibodyParameters(eqx.Module):
    """Arrays in declaration order: bodies without the world, frames without the bodies' own.

    Coordinates (`nq`, `nv`) are in depth-first order. SI units; angles in rad.
    """

    body_mass: Float[Array, " nb-1"]
    body_com: Float[Array, "nb-1 3"]  # p_BoBcm_B
    body_unit_inertia: Float[Array, "nb-1 6"]  # G_BBo_B: xx, yy, zz, xy, xz, yz, in m²

    frame_quaternion: Float[Array, "frames 4"]  # of R_PF, normalised where it is used
    frame_translation: Float[Array, "frames 3"]  # p_PoFo_P

    joint_axis: Float[Array, "axes 3"]  # of revolute, prismatic and screw joints; normalised where used
    screw_pitch: Float[Array, " screws"]  # m per turn
    joint_damping: Float[Array, " nv"]
    joint_friction: Float[Array, " nv"]  # Coulomb torque or force
    friction_velocity: Float[Array, ""]  # speed at which the smooth law has reached 71 % of it
    velocity_locked: Float[Array, " nv"]  # 1 where a joint is locked, else 0; its derivative is zero

    position_lower_limits: Float[Array, " nq"]
    position_upper_limits: Float[Array, " nq"]
    velocity_lower_limits: Float[Array, " nv"]
    velocity_upper_limits: Float[Array, " nv"]
    acceleration_lower_limits: Float[Array, " nv"]
    acceleration_upper_limits: Float[Array, " nv"]

    effort_limit: Float[Array, " nu"]
    rotor_inertia: Float[Array, " nu"]
    gear_ratio: Float[Array, " nu"]
    proportional_gain: Float[Array, " nu"]
    derivative_gain: Float[Array, " nu"]

    gravity: Float[Array, "3"]  # in the world, m/s²
    default_positions: Float[Array, " nq"]
    time_step: Float[Array, ""]  # s; of a discrete plant
