"""Viscous damping and regularised Coulomb friction in the joints, of the continuous plant.

In the discrete step friction is a row of its problem: `mbjax.simulation.joint_friction_rows`.
"""

from collections.abc import Callable

from jaxtyping import Array, Float

from mbjax.array_types import Velocities
from mbjax.execution import one_by_one
from mbjax.model import MultibodyModel, all_joint_velocities, sum_joint_coefficients
from mbjax.spatial import safe_sqrt


def calc_dissipation_coefficient(
    model: MultibodyModel, v: Velocities, friction: Float[Array, " nd"] | None = None
) -> Float[Array, " nv"]:
    """c with tau = -c v: damping d, plus friction f / sqrt(v² + v_s²), which is f sign(v) when |v| >> v_s.

    Below the friction velocity v_s the joint creeps under a load instead of sticking. Joints that mimic add theirs.
    Without `friction`, the model's.
    """
    return sum_joint_coefficients(model, of_all_joints(of_each, model, v, friction))


def calc_joint_dissipation(model: MultibodyModel, v: Velocities) -> Float[Array, " nv"]:
    """tau = -c(v) v."""
    if model.topology.followers:
        return -calc_dissipation_coefficient(model, v) * v
    return of_all_joints(torque_of_each, model, v, None)


def of_all_joints(
    function: Callable, model: MultibodyModel, v: Velocities, friction: Float[Array, " nd"] | None
) -> Float[Array, " nd"]:
    """`function` of the speed and the parameters of each direction."""
    parameters, v = model.parameters, all_joint_velocities(model, v)
    friction = parameters.joint_friction if friction is None else friction
    return one_by_one(function, v, friction, parameters.joint_damping, parameters.friction_velocity)


def of_each(v: Array, friction: Array, damping: Array, friction_velocity: Array) -> Array:
    """c of one direction."""
    return damping + friction / safe_sqrt(v * v + friction_velocity * friction_velocity)


def torque_of_each(v: Array, friction: Array, damping: Array, friction_velocity: Array) -> Array:
    """Its tau."""
    return -of_each(v, friction, damping, friction_velocity) * v
