"""Linear springs in joints with one degree of freedom."""

from typing import Any

import equinox as eqx
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.model import AbstractForceElement, joint_positions
from mbjax.model.element_keys import JointKey

from .checked_numbers import checked_element_numbers
from .multibody_forces import MultibodyForces, add_in_one_force


class RevoluteSpring(AbstractForceElement):
    """Spring in a revolute joint: tau = stiffness (nominal_angle - q), in N m."""

    nominal_angle: Float[Array, ""]
    stiffness: Float[Array, ""]
    joint: Any = eqx.field(static=True)

    def __init__(self, joint: JointKey, nominal_angle: ArrayLike, stiffness: ArrayLike):
        self.joint = joint
        self.nominal_angle = checked_element_numbers("RevoluteSpring", "nominal_angle", nominal_angle, signed=True)
        self.stiffness = checked_element_numbers("RevoluteSpring", "stiffness", stiffness)

    def resolve(self, plant):
        return RevoluteSpring(resolved_joint(self, plant, "revolute"), self.nominal_angle, self.stiffness)

    def forces(self, model, position, velocity, q, v):
        del position, velocity, v
        return spring_forces(model, self.joint, self.nominal_angle, self.stiffness, q)

    def potential_energy(self, model, position, q):
        del position
        return spring_energy(model, self.joint, self.nominal_angle, self.stiffness, q)


class PrismaticSpring(AbstractForceElement):
    """Spring in a prismatic joint: tau = stiffness (nominal_position - q), in N."""

    nominal_position: Float[Array, ""]
    stiffness: Float[Array, ""]
    joint: Any = eqx.field(static=True)

    def __init__(self, joint: JointKey, nominal_position: ArrayLike, stiffness: ArrayLike):
        self.joint = joint
        self.nominal_position = checked_element_numbers(
            "PrismaticSpring", "nominal_position", nominal_position, signed=True
        )
        self.stiffness = checked_element_numbers("PrismaticSpring", "stiffness", stiffness)

    def resolve(self, plant):
        return PrismaticSpring(resolved_joint(self, plant, "prismatic"), self.nominal_position, self.stiffness)

    def forces(self, model, position, velocity, q, v):
        del position, velocity, v
        return spring_forces(model, self.joint, self.nominal_position, self.stiffness, q)

    def potential_energy(self, model, position, q):
        del position
        return spring_energy(model, self.joint, self.nominal_position, self.stiffness, q)


def resolved_joint(spring: Any, plant: Any, kind: str) -> int:
    """Index of the element's joint; raises unless the joint is of the given kind."""
    joint = plant.joint(spring.joint, type(spring).__name__)
    if joint.kind != kind:
        raise ModelError(f"{type(spring).__name__}: joint '{joint.name}' is {joint.kind}, it must be {kind}.")
    return joint.index


def spring_forces(model: Any, joint: int, nominal: Array, stiffness: Array, q: Array) -> MultibodyForces:
    """Force of a spring in one joint, by Hooke's law."""
    return torque_on_joint(model, joint, stiffness * (nominal - joint_positions(model, q, joint)[0]))


def torque_on_joint(model: Any, joint: int, tau: Array) -> MultibodyForces:
    """Forces that are `tau` along the one velocity of a joint, in N m or N, and none on the bodies."""
    return add_in_one_force(model, MultibodyForces.zero(model), joint, 0, tau)


def spring_energy(model: Any, joint: int, nominal: Array, stiffness: Array, q: Array) -> Array:
    """Energy stored in a joint's spring, in J."""
    return 0.5 * stiffness * (nominal - joint_positions(model, q, joint)[0]) ** 2
