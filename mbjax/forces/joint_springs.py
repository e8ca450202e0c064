"""Linear springs in joints with one degree of freedom."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.model import AbstractForceElement

from .multibody_forces import MultibodyForces


class RevoluteSpring(AbstractForceElement):
    """tau = stiffness (nominal_angle - q) on a revolute joint, in N m."""

    nominal_angle: Float[Array, ""]
    stiffness: Float[Array, ""]
    joint: Any = eqx.field(static=True)

    def __init__(self, joint, nominal_angle, stiffness):
        self.joint = joint
        self.nominal_angle, self.stiffness = checked_spring("RevoluteSpring", nominal_angle, stiffness)

    def resolve(self, plant):
        return RevoluteSpring(resolved_joint(self, plant, "revolute"), self.nominal_angle, self.stiffness)

    def forces(self, model, position, velocity, q, v):
        del position, velocity
        return spring_forces(model, self.joint, self.nominal_angle, self.stiffness, q, v)

    def potential_energy(self, model, position, q):
        del position
        return spring_energy(model, self.joint, self.nominal_angle, self.stiffness, q)


class PrismaticSpring(AbstractForceElement):
    """tau = stiffness (nominal_position - q) on a prismatic joint, in N."""

    nominal_position: Float[Array, ""]
    stiffness: Float[Array, ""]
    joint: Any = eqx.field(static=True)

    def __init__(self, joint, nominal_position, stiffness):
        self.joint = joint
        self.nominal_position, self.stiffness = checked_spring("PrismaticSpring", nominal_position, stiffness)

    def resolve(self, plant):
        return PrismaticSpring(resolved_joint(self, plant, "prismatic"), self.nominal_position, self.stiffness)

    def forces(self, model, position, velocity, q, v):
        del position, velocity
        return spring_forces(model, self.joint, self.nominal_position, self.stiffness, q, v)

    def potential_energy(self, model, position, q):
        del position
        return spring_energy(model, self.joint, self.nominal_position, self.stiffness, q)


def checked_spring(what: str, nominal: float, stiffness: float) -> tuple[Array, Array]:
    """The two numbers as arrays."""
    if not stiffness >= 0.0:
        raise ModelError(f"{what}: stiffness must be at least 0, got {stiffness!r}.")
    return jnp.asarray(nominal, float), jnp.asarray(stiffness, float)


def resolved_joint(spring: Any, plant: Any, kind: str) -> int:
    """The index of the spring's joint."""
    joint = plant.joint(spring.joint, type(spring).__name__)
    if joint.kind != kind:
        raise ModelError(f"{type(spring).__name__}: joint '{joint.name}' is {joint.kind}, it must be {kind}.")
    return joint.index


def spring_forces(model: Any, joint: int, nominal: Array, stiffness: Array, q: Array, v: Array) -> MultibodyForces:
    """The generalized force in its place, and none on the bodies."""
    where = model.joint(joint)
    tau = stiffness * (nominal - q[where.q_start])
    return MultibodyForces(jnp.zeros_like(v).at[where.v_start].add(tau), jnp.zeros((model.num_bodies, 6), v.dtype))


def spring_energy(model: Any, joint: int, nominal: Array, stiffness: Array, q: Array) -> Array:
    """Energy stored, in J."""
    return 0.5 * stiffness * (nominal - q[model.joint(joint).q_start]) ** 2
