"""Viscous damping and regularised Coulomb friction in the joints."""

from jaxtyping import Array, Float

from mbjax.array_types import Velocities
from mbjax.model import MultibodyModel
from mbjax.spatial import safe_sqrt


def calc_dissipation_coefficient(model: MultibodyModel, v: Velocities) -> Float[Array, " nv"]:
    """c with tau = -c v: damping d, plus friction f / sqrt(v² + v_s²), which is f sign(v) when |v| >> v_s.

    Below the friction velocity v_s the joint creeps under a load instead of sticking.
    """
    parameters = model.parameters
    speed = safe_sqrt(v * v + parameters.friction_velocity**2)
    return parameters.joint_damping + parameters.joint_friction / speed


def calc_joint_dissipation(model: MultibodyModel, v: Velocities) -> Float[Array, " nv"]:
    """tau = -c(v) v."""
    return -calc_dissipation_coefficient(model, v) * v
