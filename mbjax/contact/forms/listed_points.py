"""The points of a list under their laws: loops of as many turns as points act.

Laws take `GROUP` points in a turn, as vector instructions do; the last of them may be inactive.
"""

import abc
from collections.abc import Callable
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from mbjax.execution.arrays import repeat_turns
from mbjax.topology import TreeTopology

from ..laws.abstract_law import AbstractContactLaw
from ..laws.law_of_model import LawInputs, calc_contact_law, size_of_response
from ..movers.abstract_mover import AbstractMover
from ..points.contact_list import GROUP, ContactList, calc_contact_list
from .abstract_form import AbstractContactForm, StepSoFar


def laws_of_list(
    step: StepSoFar, points: ContactList, moved: AbstractMover
) -> tuple[Float[Array, "3 m"], AbstractContactLaw]:
    """Velocities of the points of a list at the step's start, and the law of each."""
    v_AcBc_W, W = moved.velocities(step.terms.v), moved.response(step.diagonal)
    of_points = points.distance, points.normal_W, points.parameters

    def law_of(k: Array) -> AbstractContactLaw:
        (distance, normal_W, parameters), (v, of_group) = group_at(of_points, k, 0), group_at((v_AcBc_W, W), k)
        acts = k * np.int32(GROUP) + jnp.arange(GROUP, dtype=jnp.int32) < points.count
        inputs = LawInputs(distance, normal_W.T, acts, parameters)
        return calc_contact_law(step.model, inputs, v, size_of_response(of_group))

    return v_AcBc_W, in_groups(law_of, points.count, len(points.pair))


class AbstractListedPoints(AbstractContactForm):
    """Points on a list, the first `moved.count` of which act."""

    v_AcBc_W: Float[Array, "3 m"]
    law: AbstractContactLaw
    moved: Any
    slots: None = None
    starts_at_rest: ClassVar[bool] = True

    @classmethod
    def at(cls, step: StepSoFar) -> Self:
        model, terms = step.model, step.terms
        listed, mobods = calc_contact_list(model, terms.position, step.points)
        moved = cls.mover(model.topology, listed, mobods, jnp.where(terms.locked, 0.0, terms.position.S_T))
        return cls(*laws_of_list(step, listed, moved), moved)

    @staticmethod
    @abc.abstractmethod
    def mover(
        topology: TreeTopology, points: ContactList, mobods: tuple[tuple[int, int], ...], S_T: Float[Array, "6 nv"]
    ) -> AbstractMover:
        """What moves the points of a list, where `S_T` is zero for locked velocities."""

    def by_law(self, function: Callable, *motions: Float[Array, "c m"]) -> Any:
        given = self.law, self.v_AcBc_W, *motions
        return in_groups(lambda k: function(*group_at(given, k)), self.moved.count, self.v_AcBc_W.shape[1])

    def power_along(self, motion: Float[Array, "3 m"], d: Float[Array, "3 m"]) -> Callable[[Array], Array]:
        line = self.by_law(lambda law, v, motion, d: law.line(v + motion, d), motion, d)

        def power(s: Array) -> Float[Array, "2 1"]:
            def turn(k: Array, total: Array) -> Array:
                law, of_group = group_at((self.law, line), k)
                return total + jnp.sum(law.power_on(of_group, s), axis=1, keepdims=True)

            return repeat_turns(num_groups(self.moved.count), turn, jnp.zeros((2, 1), motion.dtype))

        return power


def num_groups(count: Int[Array, ""]) -> Array:
    """How many groups have one of the first `count` points."""
    return (count + np.int32(GROUP - 1)) // np.int32(GROUP)


def in_groups(function: Callable, count: Array, m: int) -> Any:
    """Arrays for m points from those of each group, `function(k)`; zero beyond. Numbers that all share stay."""
    shared = function(jnp.int32(0))
    start = jax.tree.map(lambda x: jnp.zeros((*x.shape[:-1], m), x.dtype) if x.ndim else x, shared)

    def turn(k: Array, found: Any) -> Any:
        return jax.tree.map(lambda x, y: with_group(x, y, k) if y.ndim else x, found, function(k))

    return repeat_turns(num_groups(count), turn, start)


def group_at(x: Any, k: Array, axis: int = -1) -> Any:
    """The entries of a group of points along an axis of each array; numbers that all points share stay."""

    def entries(x: Array) -> Array:
        return lax.dynamic_slice_in_dim(x, k * np.int32(GROUP), GROUP, axis % x.ndim, allow_negative_indices=False)

    return jax.tree.map(lambda x: entries(x) if x.ndim else x, x)


def with_group(x: Float[Array, "*c m"], columns: Float[Array, "*c g"], k: Array) -> Float[Array, "*c m"]:
    """Writes the columns of a group."""
    start = k * np.int32(GROUP)
    return lax.dynamic_update_slice_in_dim(x, columns, start, x.ndim - 1, allow_negative_indices=False)
