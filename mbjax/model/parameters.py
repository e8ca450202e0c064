"""Numbers of a model: float leaves, all differentiable and vmappable, none derived from another."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


class MultibodyParameters(eqx.Module):
    """Numbers of bodies, frames, joints and actuators, in declaration order: no world, no bodies' own frames.

    Coordinates (`nq`, `nv`) are in depth-first order. Arrays over all joints (`njq`, `nd`) have numbers for joints that
    mimic others, too, which have no coordinates. SI units; angles in rad.
    """

    body_mass: Float[Array, " nb-1"]
    body_com: Float[Array, "nb-1 3"]  # p_BoBcm_B
    body_unit_inertia: Float[Array, "nb-1 6"]  # G_BBo_B: xx, yy, zz, xy, xz, yz, in m²

    frame_quaternion: Float[Array, "frames 4"]  # of R_PF, normalised where it is used
    frame_translation: Float[Array, "frames 3"]  # p_PoFo_P

    joint_axis: Float[Array, "axes 3"]  # of revolute, prismatic and screw joints; normalised where used
    screw_pitch: Float[Array, " screws"]  # m per turn
    mimic_multiplier: Float[Array, " mimics"] | None  # by `topology.followers`: q = multiplier q_leader + offset
    mimic_offset: Float[Array, " mimics"] | None  # None: no joint mimics another
    joint_damping: Float[Array, " nd"]
    joint_friction: Float[Array, " nd"]  # Coulomb torque or force
    joint_armature: Float[Array, " nd"]  # added to the diagonal of the mass matrix, in kg m² or kg
    friction_velocity: Float[Array, ""]  # speed at which the smooth law has reached 71 % of it
    velocity_locked: Float[Array, " nv"]  # 1 where a joint is locked, else 0; its derivative is zero

    position_lower_limits: Float[Array, " njq"]
    position_upper_limits: Float[Array, " njq"]
    velocity_lower_limits: Float[Array, " nd"]
    velocity_upper_limits: Float[Array, " nd"]
    acceleration_lower_limits: Float[Array, " nd"]
    acceleration_upper_limits: Float[Array, " nd"]

    effort_limit: Float[Array, " nu"]
    rotor_inertia: Float[Array, " nu"]
    gear_ratio: Float[Array, " nu"]
    proportional_gain: Float[Array, " nu"]
    derivative_gain: Float[Array, " nu"]

    gravity: Float[Array, "3"]  # in the world, m/s²
    default_positions: Float[Array, " nq"]
    time_step: Float[Array, ""]  # s; 0 for a continuous plant


def leaf_of(numbers: np.ndarray, dtype: Any) -> Float[Array, "..."]:
    """A NumPy array as a leaf; NumPy converts it, since JAX would compile a program for every shape."""
    with np.errstate(over="ignore"):  # a limit beyond the dtype becomes infinite: none
        return jnp.asarray(numbers.astype(dtype), dtype=dtype)
