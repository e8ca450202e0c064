"""Free bodies that touch each other, in one world on a CPU: a list of the points that overlap."""

from collections.abc import Callable
from typing import Any, ClassVar, Self

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.dynamics import ForwardDynamicsTerms
from mbjax.spatial import component_algebra as ca
from mbjax.topology import TreeTopology

from ..laws.abstract_law import AbstractContactLaw
from ..movers.bodies_of_list import BodiesOfList, bodies_of_list
from ..newton.by_blocks import block_of, matrix_of_blocks, products_of
from ..newton.newton_matrix import NewtonMatrix
from ..points.contact_list import calc_contact_list, column_at
from ..points.runtime_lists import add_row, row_at
from ..rows.rows_of_step import OtherRows
from .abstract_form import AbstractContactForm, StepSoFar
from .listed_points import by_groups, laws_of_list, power_by_groups


class ListedBodies(AbstractContactForm):
    """Points on a list, between free bodies, with a Newton matrix of blocks: the work follows what touches."""

    v_AcBc_W: Float[Array, "3 m"]
    law: AbstractContactLaw
    moved: BodiesOfList
    slots: None = None
    starts_at_rest: ClassVar[bool] = True

    @classmethod
    def at(cls, step: StepSoFar) -> Self:
        model, terms = step.model, step.terms
        listed, mobods = calc_contact_list(model, terms.position, step.points)
        moved = bodies_of_list(model.topology, listed, mobods, jnp.where(terms.locked, 0.0, terms.position.S_T))
        return cls(*laws_of_list(step, listed, moved), moved)

    def by_law(self, function: Callable, *motions: Float[Array, "3 m"]) -> Any:
        return by_groups(self, function, *motions)

    def power_along(self, motion: Float[Array, "3 m"], d: Float[Array, "3 m"]) -> Callable[[Array], Array]:
        return power_by_groups(self, motion, d)

    def newton_matrix(self, topology: TreeTopology, terms: ForwardDynamicsTerms, others: OtherRows) -> NewtonMatrix:
        return matrix_of_blocks(topology, terms, others, self.moved, self.add_to_blocks)

    def add_to_blocks(
        self, own: Float[Array, "t s s"], below: Float[Array, "b s s"], G: Float[Array, "6 m"]
    ) -> tuple[Float[Array, "t s s"], Float[Array, "b s s"]]:
        """Adds the points' stiffness G one by one, as Jᵀ G J."""
        moved = self.moved

        def turn(index: Array, carry: tuple) -> tuple:
            own, below = carry
            bodies, J = row_at((moved.bodies, moved.J), index)
            entries = ca.symmetric_rows(jnp.unstack(column_at(G, index)))
            GJ = [jnp.stack([ca.sum_products(row, jnp.unstack(x)) for row in entries]) for x in J]
            for side in (0, 1):
                own = add_row(own, products_of(J[side], GJ[side]), bodies[side])
            high, low = jnp.unstack(bodies)

            def couple(below: Array) -> Array:
                return add_row(below, products_of(J[0], GJ[1]), block_of(high, low))

            return own, moved.if_both_move(low, couple, below)

        own, below = moved.each(turn, (jnp.concatenate([own, jnp.zeros_like(own[:1])]), below))
        return own[:-1], below
