"""The points of a list under their laws: loops of as many turns as points act.

Laws take `GROUP` points in a turn, as vector instructions do; the last of them may be inactive.
"""

from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from mbjax.execution import repeat_turns

from ..laws.abstract_law import AbstractContactLaw
from ..laws.law_of_model import LawInputs, calc_contact_law, size_of_response
from ..movers.abstract_mover import AbstractMover
from ..points.contact_list import GROUP, ContactList
from .abstract_form import StepSoFar


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


class PointsInList(Protocol):
    """A form whose points are on a list, the first `moved.count` of which act."""

    v_AcBc_W: Float[Array, "3 m"]
    law: AbstractContactLaw
    moved: Any


def by_groups(form: PointsInList, function: Callable, *args: Float[Array, "c m"]) -> Any:
    """`function(law, v, *args)` of the points that act; zero elsewhere."""
    given = form.law, form.v_AcBc_W, *args
    return in_groups(lambda k: function(*group_at(given, k)), form.moved.count, form.v_AcBc_W.shape[1])


def power_by_groups(
    form: PointsInList, motion: Float[Array, "3 m"], d: Float[Array, "3 m"]
) -> Callable[[Array], Float[Array, "2 1"]]:
    """s → d · impulse(motion + s d) and its derivative, summed over all points."""
    line = by_groups(form, lambda law, v, motion, d: law.line(v + motion, d), motion, d)

    def power(s: Array) -> Float[Array, "2 1"]:
        def turn(k: Array, total: Array) -> Array:
            law, of_group = group_at((form.law, line), k)
            return total + jnp.sum(law.power_on(of_group, s), axis=1, keepdims=True)

        return repeat_turns(num_groups(form.moved.count), turn, jnp.zeros((2, 1), motion.dtype))

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
