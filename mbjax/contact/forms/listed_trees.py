"""Robots whose bodies may touch each other, in one world on a CPU: a list of the points that overlap."""

from collections.abc import Callable
from typing import Any, ClassVar, Self

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.dynamics import ForwardDynamicsTerms
from mbjax.execution import repeat_turns
from mbjax.linear_algebra import branch_rows, chain
from mbjax.topology import TreeTopology, velocity_parents

from ..laws.abstract_law import AbstractContactLaw
from ..movers.paths_of_list import PathsOfList, paths_of_list
from ..newton.along_branches import matrix_along_branches
from ..newton.newton_matrix import NewtonMatrix
from ..points.contact_list import calc_contact_list
from ..rows.rows_of_step import OfRows, OtherRows
from .abstract_form import AbstractContactForm, StepSoFar
from .listed_points import by_groups, laws_of_list, power_by_groups


class ListedTrees(AbstractContactForm):
    """Points on a list, between any bodies; the Newton matrix is dense only while one of them couples branches."""

    v_AcBc_W: Float[Array, "3 m"]
    law: AbstractContactLaw
    moved: PathsOfList
    slots: None = None
    starts_at_rest: ClassVar[bool] = True

    @classmethod
    def at(cls, step: StepSoFar) -> Self:
        model, terms = step.model, step.terms
        listed, mobods = calc_contact_list(model, terms.position, step.points)
        moved = paths_of_list(model.topology, listed, mobods, jnp.where(terms.locked, 0.0, terms.position.S_T))
        return cls(*laws_of_list(step, listed, moved), moved)

    def by_law(self, function: Callable, *motions: Float[Array, "3 m"]) -> Any:
        return by_groups(self, function, *motions)

    def power_along(self, motion: Float[Array, "3 m"], d: Float[Array, "3 m"]) -> Callable[[Array], Array]:
        return power_by_groups(self, motion, d)

    def newton_matrix(self, topology: TreeTopology, terms: ForwardDynamicsTerms, others: OtherRows) -> NewtonMatrix:
        def along(parents: tuple[int, ...]) -> NewtonMatrix:
            def rows(G: Array) -> Array:
                return branch_rows(parents, self.moved.hessian(G))

            return matrix_along_branches(topology, terms, others, parents, rows)

        dense = along(chain(topology.num_velocities))
        if others.coupled is not None:
            return dense
        by_tree, couples = along(velocity_parents(topology)), self.moved.couples_branches()

        def solve(stiffness: OfRows, b: Array) -> Array:
            x = repeat_turns(1 - couples, lambda _, x: by_tree.solve(stiffness, x), b)
            return repeat_turns(couples, lambda _, x: dense.solve(stiffness, x), x)

        return NewtonMatrix(by_tree.inertia_product, dense.solver, solve)
