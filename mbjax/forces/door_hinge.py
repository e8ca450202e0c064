"""Torques of a door's hinge: spring, catch and friction, smoothed by tanh curves."""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.model import AbstractForceElement, joint_positions, joint_velocities
from mbjax.model.element_keys import JointKey
from mbjax.spatial import safe_divide

from .checked_numbers import checked_element_numbers
from .joint_springs import resolved_joint, torque_on_joint


class DoorHingeConfig(eqx.Module):
    """Parameters of a `DoorHinge`; the defaults are Drake's, of a dishwasher door. Torques in N m."""

    spring_zero_angle_rad: Any = -1.5  # rad, outward from the closed position
    spring_constant: Any = 1.5  # N m/rad
    dynamic_friction_torque: Any = 3.0
    static_friction_torque: Any = 2.0
    viscous_friction: Any = 1.0  # N m s/rad
    catch_width: Any = 0.02  # rad, from closed at q = 0; 0 for no catch
    catch_torque: Any = 15.0
    motion_threshold: Any = 0.001  # rad/s at which friction reaches about half; 0 for viscous friction only


class Curves(NamedTuple):
    """s = tanh(x / t), its derivative times t, and its second derivative times -t²."""

    step: Array
    singlet: Array
    doublet: Array


class DoorHinge(AbstractForceElement):
    """A revolute joint's spring, catch and friction torque, closed at q = 0 and opening to q > 0, in N m.

    tau = -k_ts (q - qs0) + k_c doublet(qc0/2, q - qc0/2) - k_df s(v0, v) - k_sf doublet(v0, v) - k_vf v
    with v0 = `motion_threshold` and qc0 = `catch_width` (Drake's DoorHinge).
    """

    config: DoorHingeConfig
    joint: Any = eqx.field(static=True)

    def __init__(self, joint: JointKey, config: DoorHingeConfig | None = None):
        self.joint = joint
        given = DoorHingeConfig() if config is None else config
        numbers = {
            name: checked_element_numbers(
                "DoorHinge", name, value, signed=name in ("spring_zero_angle_rad", "catch_torque")
            )
            for name, value in vars(given).items()
        }
        self.config = DoorHingeConfig(**numbers)

    def resolve(self, plant):
        return DoorHinge(resolved_joint(self, plant, "revolute"), self.config)

    def forces(self, model, position, velocity, q, v):
        del position, velocity
        angle, rate = joint_positions(model, q, self.joint)[0], joint_velocities(model, v, self.joint)[0]
        return torque_on_joint(model, self.joint, self.hinge_torque(angle, rate))

    def potential_energy(self, model, position, q):
        del position
        return self.hinge_stored_energy(joint_positions(model, q, self.joint)[0])

    def hinge_torque(self, angle: Float[Array, ""], angular_rate: Float[Array, ""]) -> Float[Array, ""]:
        """Torque of spring, catch and friction together, in N m."""
        return self.hinge_spring_torque(angle) + self.hinge_frictional_torque(angular_rate)

    def hinge_spring_torque(self, angle: Float[Array, ""]) -> Float[Array, ""]:
        """Torque of spring and catch, which depends on the angle alone, in N m."""
        c = self.config
        half_width = 0.5 * c.catch_width
        catch = c.catch_torque * curves(half_width, angle - half_width).doublet
        return catch - c.spring_constant * (angle - c.spring_zero_angle_rad)

    def hinge_frictional_torque(self, angular_rate: Float[Array, ""]) -> Float[Array, ""]:
        """Torque of dynamic, static and viscous friction, in N m; of viscous friction alone without a threshold.

        Drake 1.51 adds the latter with a sign that drives the door.
        """
        c = self.config
        step, _, doublet = curves(c.motion_threshold, angular_rate)
        friction = c.dynamic_friction_torque * step + c.static_friction_torque * doublet
        return -(friction + c.viscous_friction * angular_rate)

    def hinge_stored_energy(self, angle: Float[Array, ""]) -> Float[Array, ""]:
        """Energy of spring and catch in J: the work done against them from the closed door, q = 0."""
        c = self.config
        half_width, zero = 0.5 * c.catch_width, c.spring_zero_angle_rad
        lumps = curves(half_width, angle - half_width).singlet - curves(half_width, -half_width).singlet
        return 0.5 * c.spring_constant * ((angle - zero) ** 2 - zero**2) + c.catch_torque * half_width * lumps


def curves(t: Float[Array, ""], x: Float[Array, ""]) -> Curves:
    """Smooth approximations of sign(x) and its peaks, of width t; flat for t = 0."""
    step = jnp.tanh(safe_divide(x, t))
    singlet = 1.0 - step * step
    return Curves(step, singlet, 2.0 * step * singlet)
