"""Viscous damping and regularised Coulomb friction in the joints of a continuous plant.

A discrete step has friction as rows of its problem instead: `mbjax.simulation.joint_friction_rows`.
"""

from collections.abc import Callable

from jaxtyping import Array, Float

from mbjax.array_types import Velocities
from mbjax.execution.arrays import one_by_one
from mbjax.model import MultibodyModel, all_joint_velocities, sum_joint_coefficients
from mbjax.spatial import safe_sqrt


def calc_dissipation_coefficient(
    model: MultibodyModel, v: Velocities, friction: Float[Array, " nd"] | None = None
) -> Float[Array, " nv"]:
    """Coefficient c with tau = -c v: damping d, plus f / sqrt(v² + v_s²), a friction f sign(v) when |v| >> v_s.

    Below the friction velocity v_s the joint creeps under a load instead of sticking. The coefficients of joints that
    mimic are added to their leader's. Without `friction`, the model's is used.
    """
    return sum_joint_coefficients(model, of_all_joints(of_each, model, v, friction))


def calc_joint_dissipation(model: MultibodyModel, v: Velocities) -> Float[Array, " nv"]:
    """Generalized forces tau = -c(v) v of damping and friction, in N m or N."""
    if model.topology.followers:
        return -calc_dissipation_coefficient(model, v) * v
    return of_all_joints(torque_of_each, model, v, None)


def of_all_joints(
    function: Callable, model: MultibodyModel, v: Velocities, friction: Float[Array, " nd"] | None
) -> Float[Array, " nd"]:
    """Applies `function` to the speed and the parameters of each direction."""
    parameters, v = model.parameters, all_joint_velocities(model, v)
    friction = parameters.joint_friction if friction is None else friction
    least = parameters.friction_velocity if v.ndim == 1 else parameters.friction_velocity[None]  # an axis of worlds
    return one_by_one(function, v, friction, parameters.joint_damping, least)


def of_each(v: Array, friction: Array, damping: Array, friction_velocity: Array) -> Array:
    """Dissipation coefficient c of one direction."""
    return damping + friction / safe_sqrt(v * v + friction_velocity * friction_velocity)


def torque_of_each(v: Array, friction: Array, damping: Array, friction_velocity: Array) -> Array:
    """Dissipation force tau = -c v of one direction."""
    return -of_each(v, friction, damping, friction_velocity) * v
