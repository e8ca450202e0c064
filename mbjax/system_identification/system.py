"""What is identified: a model, the friction of its drives beyond the model's, and the sensors that measured it."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.model import MultibodyModel
from mbjax.parameters.named_numbers import unique_names
from mbjax.spatial import safe_sqrt

STRIBECK_VELOCITY = 0.1  # rad/s or m/s


class Sensors(eqx.Module):
    """Errors of measured signals, by velocity: measured = gain x true + bias, and efforts are measured late.

    `position_bias` is along the velocities: q_measured = q (+) bias, which for a revolute joint is a plain sum.
    """

    position_bias: Float[Array, " nv"]  # rad or m
    velocity_bias: Float[Array, " nv"]  # rad/s or m/s
    effort_gain: Float[Array, " nv"]  # a motor constant, if what was logged is a current
    effort_bias: Float[Array, " nv"]  # N m or N
    effort_delay: Float[Array, ""]  # s: what is logged at t was so at t - delay


class Drives(eqx.Module):
    """Friction of drives that models do not have, by velocity: efforts that a motion needs beside inverse dynamics.

    tau = s(v) f_b exp(-(v / v_b)²) + s(v)² f_a + |v| d_a,      s(v) = v / sqrt(v² + v_s²), v_s the model's
    Stribeck's breakaway f_b above Coulomb friction, which fades with the velocity v_b (Armstrong-Hélouvry, Dupont and
    Canudas de Wit 1994), and how much larger Coulomb friction (f_a) and damping (d_a) are forwards than in the mean of
    both directions.
    """

    stribeck: Float[Array, " nv"]  # N m or N
    stribeck_velocity: Float[Array, " nv"]  # rad/s or m/s
    friction_asymmetry: Float[Array, " nv"]  # N m or N
    damping_asymmetry: Float[Array, " nv"]  # N m s/rad or N s/m

    def efforts(self, v: Float[Array, " nv"], friction_velocity: Float[Array, ""]) -> Float[Array, " nv"]:
        """Efforts that this friction needs, in N m or N."""
        sign = v / safe_sqrt(v * v + friction_velocity * friction_velocity)
        breakaway = self.stribeck * jnp.exp(-((v / self.stribeck_velocity) ** 2))
        return sign * (breakaway + sign * self.friction_asymmetry + v * self.damping_asymmetry)


class System(eqx.Module):
    """A model, its drives and its sensors."""

    model: MultibodyModel
    sensors: Sensors
    drives: Drives


def ideal_sensors(model: MultibodyModel) -> Sensors:
    """Sensors that measure what is."""
    zero = jnp.zeros(model.num_velocities, model.dtype)
    return Sensors(zero, zero, 1.0 + zero, zero, jnp.zeros((), model.dtype))


def symmetric_drives(model: MultibodyModel) -> Drives:
    """Drives whose friction is that of the model."""
    zero = jnp.zeros(model.num_velocities, model.dtype)
    return Drives(zero, STRIBECK_VELOCITY + zero, zero, zero)


def velocity_labels(model: MultibodyModel) -> tuple[str, ...]:
    """Names of velocities, without the model instance where that is clear: `elbow`, `trunk_wx`."""
    short = model.velocity_names(add_model_instance_prefix=False, always_add_suffix=False)
    return unique_names(short, model.velocity_names())


def position_labels(model: MultibodyModel) -> tuple[str, ...]:
    """Names of positions, without the model instance where that is clear: `elbow`, `trunk_qw`."""
    short = model.position_names(add_model_instance_prefix=False, always_add_suffix=False)
    return unique_names(short, model.position_names())
