"""Viscous damping and regularised Coulomb friction in the joints, of the continuous plant.

In the discrete step friction is a row of its problem: `mbjax.simulation.joint_friction_rows`.
"""

from jaxtyping import Array, Float

from mbjax.array_types import Velocities
from mbjax.model import MultibodyModel, all_joint_velocities, sum_joint_coefficients
from mbjax.spatial import safe_sqrt


def calc_dissipation_coefficient(
    model: MultibodyModel, v: Velocities, friction: Float[Array, " nd"] | None = None
) -> Float[Array, " nv"]:
    """c with tau = -c v: damping d, plus friction f / sqrt(v² + v_s²), which is f sign(v) when |v| >> v_s.

    Below the friction velocity v_s the joint creeps under a load instead of sticking. Joints that mimic add theirs.
    Without `friction`, the model's.
    """
    parameters, v = model.parameters, all_joint_velocities(model, v)
    friction = parameters.joint_friction if friction is None else friction
    speed = safe_sqrt(v * v + parameters.friction_velocity**2)
    return sum_joint_coefficients(model, parameters.joint_damping + friction / speed)


def calc_joint_dissipation(model: MultibodyModel, v: Velocities) -> Float[Array, " nv"]:
    """tau = -c(v) v."""
    return -calc_dissipation_coefficient(model, v) * v
