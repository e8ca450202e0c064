"""Free bodies that touch each other, in one world on a CPU: a list of the points that overlap."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.dynamics import ForwardDynamicsTerms
from mbjax.spatial import component_algebra as ca
from mbjax.topology import TreeTopology

from ..movers.bodies_of_list import BodiesOfList, bodies_of_list
from ..newton.by_blocks import block_of, matrix_of_blocks, products_of
from ..newton.newton_matrix import NewtonMatrix
from ..points.contact_list import column_at
from ..points.runtime_lists import add_row, row_at
from ..rows.rows_of_step import OtherRows
from .listed_points import AbstractListedPoints


class ListedBodies(AbstractListedPoints):
    """Points on a list, between free bodies, with a Newton matrix of blocks: the work follows what touches."""

    moved: BodiesOfList
    mover = staticmethod(bodies_of_list)

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
