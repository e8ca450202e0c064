"""The deepest contact points of each world, as many as the plant's `max_contacts`."""

from collections.abc import Callable
from typing import ClassVar, Self

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from mbjax.model import MultibodyModel

from ..laws.abstract_law import AbstractContactLaw
from ..laws.law_of_model import LawInputs
from ..movers.contact_jacobian import ContactJacobian, calc_contact_jacobian, choose_slots
from ..movers.moved_bodies import find_moved_bodies
from ..newton.contact_hessian import contact_hessian_of_jacobian
from ..points.point_records import ContactPoints
from .abstract_form import AbstractDenseForm, StepSoFar
from .all_points import laws_of


class DeepestPoints(AbstractDenseForm):
    """Points that each world chooses, so that their bodies differ from world to world; all points without a bound.

    A Jacobian says what moves them. It also sums what one velocity does along several directions where joints mimic
    others, whose products matter.
    """

    v_AcBc_W: Float[Array, "3 m"]
    law: AbstractContactLaw
    moved: ContactJacobian
    slots: Int[Array, " m"] | None = None
    starts_at_rest: ClassVar[bool] = False

    @classmethod
    def at(cls, step: StepSoFar) -> Self:
        points, terms = step.all_points(), step.terms
        bodies = find_moved_bodies(step.model.topology, terms.position, points, terms.locked)
        inputs = LawInputs(points.distance, points.normal_W, points.active, points.parameters)
        slots = find_deepest(step.model, points)
        moved = calc_contact_jacobian(bodies, slots)
        if slots is not None:
            normal_W = choose_slots(inputs.normal_W, slots, 1)
            of_points = inputs.distance, inputs.active, inputs.parameters
            distance, active, parameters = jax.tree.map(lambda x: choose_slots(x, slots, 0), of_points)
            inputs = LawInputs(distance, normal_W, active, parameters)
        return cls(*laws_of(step, inputs, moved), moved, slots)

    def hessian(self) -> Callable[[Float[Array, "6 m"]], Float[Array, "nv nv"]]:
        return contact_hessian_of_jacobian(self.moved)


def find_deepest(model: MultibodyModel, points: ContactPoints) -> Int[Array, " k"] | None:
    """Indices of each world's `max_contacts` deepest points; None for all points."""
    count = model.layout.contact.max_contacts
    if count is None or count >= len(points.pairs):
        return None
    return jnp.argsort(jnp.where(points.active, points.distance, jnp.inf), axis=0)[:count]
