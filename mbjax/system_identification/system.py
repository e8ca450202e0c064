"""What is identified: a model and the sensors that measured it."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.model import MultibodyModel
from mbjax.parameters.named_numbers import unique_names


class Sensors(eqx.Module):
    """Errors of measured signals, by velocity: measured = gain x true + bias, and efforts are measured late.

    `position_bias` is along the velocities: q_measured = q (+) bias, which for a revolute joint is a plain sum.
    """

    position_bias: Float[Array, " nv"]  # rad or m
    velocity_bias: Float[Array, " nv"]  # rad/s or m/s
    effort_gain: Float[Array, " nv"]  # a motor constant, if what was logged is a current
    effort_bias: Float[Array, " nv"]  # N m or N
    effort_delay: Float[Array, ""]  # s: what is logged at t was so at t - delay


class System(eqx.Module):
    """A model and its sensors."""

    model: MultibodyModel
    sensors: Sensors


def ideal_sensors(model: MultibodyModel) -> Sensors:
    """Sensors that measure what is."""
    zero = jnp.zeros(model.num_velocities, model.dtype)
    return Sensors(zero, zero, 1.0 + zero, zero, jnp.zeros((), model.dtype))


def velocity_labels(model: MultibodyModel) -> tuple[str, ...]:
    """Names of velocities, without the model instance where that is clear: `elbow`, `trunk_wx`."""
    short = model.velocity_names(add_model_instance_prefix=False, always_add_suffix=False)
    return unique_names(short, model.velocity_names())


def position_labels(model: MultibodyModel) -> tuple[str, ...]:
    """Names of positions, without the model instance where that is clear: `elbow`, `trunk_qw`."""
    short = model.position_names(add_model_instance_prefix=False, always_add_suffix=False)
    return unique_names(short, model.position_names())
