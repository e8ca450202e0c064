"""All contact points side by side where a single body moves at each: they keep the sparsity of the tree."""

from collections.abc import Callable
from typing import Any, ClassVar, Self

from jaxtyping import Array, Float

from mbjax.dynamics import ForwardDynamicsTerms
from mbjax.topology import TreeTopology, velocity_parents

from ..laws.abstract_law import AbstractContactLaw
from ..movers.moved_bodies import MovedBodies
from ..newton.along_branches import matrix_along_branches
from ..newton.by_articulated_bodies import articulated_matrix
from ..newton.contact_hessian import contact_hessian_in_tree
from ..newton.newton_matrix import NewtonMatrix
from ..rows.rows_of_step import OtherRows
from .abstract_form import AbstractContactForm, StepSoFar
from .all_points import moved_points


class PointsOnDeepTree(AbstractContactForm):
    """All points, one moving body at each, with the Newton matrix by articulated bodies."""

    v_AcBc_W: Float[Array, "3 m"]
    law: AbstractContactLaw
    moved: MovedBodies
    slots: None = None
    starts_at_rest: ClassVar[bool] = False

    @classmethod
    def at(cls, step: StepSoFar) -> Self:
        return cls(*moved_points(step))

    def by_law(self, function: Callable, *motions: Float[Array, "3 m"]) -> Any:
        return function(self.law, self.v_AcBc_W, *motions)

    def power_along(self, motion: Float[Array, "3 m"], d: Float[Array, "3 m"]) -> Callable[[Array], Array]:
        return self.law.power_along(self.v_AcBc_W + motion, d)

    def newton_matrix(self, topology: TreeTopology, terms: ForwardDynamicsTerms, others: OtherRows) -> NewtonMatrix:
        return articulated_matrix(topology, terms, others, self.moved)


class PointsOnTree(AbstractContactForm):
    """All points, one moving body at each, with the Newton matrix factored along the tree's branches."""

    v_AcBc_W: Float[Array, "3 m"]
    law: AbstractContactLaw
    moved: MovedBodies
    slots: None = None
    starts_at_rest: ClassVar[bool] = False

    @classmethod
    def at(cls, step: StepSoFar) -> Self:
        return cls(*moved_points(step))

    def by_law(self, function: Callable, *motions: Float[Array, "3 m"]) -> Any:
        return function(self.law, self.v_AcBc_W, *motions)

    def power_along(self, motion: Float[Array, "3 m"], d: Float[Array, "3 m"]) -> Callable[[Array], Array]:
        return self.law.power_along(self.v_AcBc_W + motion, d)

    def newton_matrix(self, topology: TreeTopology, terms: ForwardDynamicsTerms, others: OtherRows) -> NewtonMatrix:
        parents = velocity_parents(topology)
        return matrix_along_branches(topology, terms, others, parents, contact_hessian_in_tree(self.moved, parents))
