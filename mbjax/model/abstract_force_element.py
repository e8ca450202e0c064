"""The contract of a force element: what a law that turns motion into force must answer."""

import abc
from typing import Any

import equinox as eqx


class AbstractForceElement(eqx.Module):
    """Subclass in pure JAX: numbers are leaves, names are static and resolved at finalize.

    `resolve(plant)` returns the element with its names turned into indices.
    `forces(model, position, velocity, q, v)` returns `MultibodyForces`. Also where a joint mimics another,
    `mbjax.joint_positions` and `joint_velocities` read its coordinates, and `add_in_one_force` acts on it.
    `potential_energy(model, position, q)` returns J, zero for laws without one.
    """

    @abc.abstractmethod
    def resolve(self, plant: Any) -> "AbstractForceElement": ...

    @abc.abstractmethod
    def forces(self, model: Any, position: Any, velocity: Any, q: Any, v: Any) -> Any: ...

    @abc.abstractmethod
    def potential_energy(self, model: Any, position: Any, q: Any) -> Any: ...
