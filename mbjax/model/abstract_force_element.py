"""Contract of a force element, a law that turns motion into force."""

import abc
from typing import Any

import equinox as eqx


class AbstractForceElement(eqx.Module):
    """Base of force elements; subclass it in pure JAX. Numbers are leaves; names are static and resolved at finalize.

    `resolve(plant)` returns the element with its names turned into indices.
    `forces(model, position, velocity, q, v)` returns `MultibodyForces`. `mbjax.joint_positions` and
    `joint_velocities` read a joint's coordinates, and `add_in_one_force` acts on it, also where it mimics another.
    `potential_energy(model, position, q)` returns the energy in J, zero for laws without one.
    """

    @abc.abstractmethod
    def resolve(self, plant: Any) -> "AbstractForceElement": ...

    @abc.abstractmethod
    def forces(self, model: Any, position: Any, velocity: Any, q: Any, v: Any) -> Any: ...

    @abc.abstractmethod
    def potential_energy(self, model: Any, position: Any, q: Any) -> Any: ...
