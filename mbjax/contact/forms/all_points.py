"""All contact points side by side, between any two bodies of the model."""

from collections.abc import Callable
from typing import ClassVar, Self

from jaxtyping import Array, Float

from ..laws.abstract_law import AbstractContactLaw
from ..laws.law_of_model import LawInputs, calc_contact_law, size_of_response
from ..movers.abstract_mover import AbstractMover
from ..movers.moved_bodies import MovedBodies, find_moved_bodies
from ..newton.contact_hessian import contact_hessian_of_pairs
from .abstract_form import AbstractContactForm, AbstractDenseForm, StepSoFar


class AbstractAllPoints(AbstractContactForm):
    """All points that may touch, side by side."""

    v_AcBc_W: Float[Array, "3 m"]
    law: AbstractContactLaw
    moved: MovedBodies
    slots: None = None
    starts_at_rest: ClassVar[bool] = False

    @classmethod
    def at(cls, step: StepSoFar) -> Self:
        points, terms = step.all_points(), step.terms
        moved = find_moved_bodies(step.model.topology, terms.position, points, terms.locked)
        inputs = LawInputs(points.distance, points.normal_W, points.active, points.parameters)
        return cls(*laws_of(step, inputs, moved), moved)


class AllPoints(AbstractAllPoints, AbstractDenseForm):
    """All points, with a dense Newton matrix: where two moving bodies touch, or constraints couple the bodies."""

    def hessian(self) -> Callable[[Float[Array, "6 m"]], Float[Array, "nv nv"]]:
        return contact_hessian_of_pairs(self.moved)


def laws_of(step: StepSoFar, inputs: LawInputs, moved: AbstractMover) -> tuple[Float[Array, "3 m"], AbstractContactLaw]:
    """Velocities of points at the step's start, and the law of each."""
    v_AcBc_W, w = moved.velocities(step.terms.v), size_of_response(moved.response(step.diagonal))
    return v_AcBc_W, calc_contact_law(step.model, inputs, v_AcBc_W, w)
