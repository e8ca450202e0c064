"""What moves the points of a list in trees: rows of their Jacobian, made anew in each turn of a loop over them."""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mbjax.execution.arrays import repeat_turns
from mbjax.spatial import component_algebra as ca
from mbjax.topology import TreeTopology

from ..points.contact_list import ContactList, column_at
from ..points.runtime_lists import row_at, with_column
from .abstract_mover import AbstractMover
from .contact_jacobian import entries_of_product, velocities_at


class PathsOfList(AbstractMover):
    """What moves the points of a list in trees: a row of the Jacobian for each velocity."""

    count: Int[Array, ""]
    pair: Int[Array, " m"]
    p_TaC_W: Float[Array, "m 3"]
    p_TbC_W: Float[Array, "m 3"]
    S_T: Float[Array, "6 nv"]  # zero where locked
    topology: TreeTopology = eqx.field(static=True)
    mobods: tuple[tuple[int, int], ...] = eqx.field(static=True)  # of A and B, for each pair of shapes

    def each(self, turn: Callable, start: Any) -> Any:
        """Loops over the points that act: `turn(index, carry)`."""
        return repeat_turns(self.count, turn, start)

    def couples_branches(self) -> Int[Array, ""]:
        """1 if a point acts between bodies of which neither is on the other's path from the root, else 0."""
        is_ancestor, (A, B) = self.topology.is_ancestor, np.array(self.mobods, int).T
        couples = jnp.asarray(~(is_ancestor[A, B] | is_ancestor[B, A]), jnp.int32)
        return self.each(lambda index, found: found | row_at(couples, row_at(self.pair, index)), jnp.int32(0))

    def jacobian(self, index: Array) -> Float[Array, "3 nv"]:
        """J of a point, with v_AcBc_W = J v. Velocities that move both bodies have no part."""
        forth, back = (jnp.asarray(x, self.S_T.dtype) for x in moved_by_pairs(self.topology, self.mobods))
        pair = row_at(self.pair, index)
        of_B, of_A = (velocities_at(self.S_T, row_at(p, index)[:, None])[:, 0] for p in (self.p_TbC_W, self.p_TaC_W))
        return row_at(forth, pair) * of_B - row_at(back, pair) * of_A

    def velocities(self, v: Float[Array, " nv"]) -> Float[Array, "3 m"]:
        """Relative velocities J v of the points."""

        def turn(index: Array, found: Array) -> Array:
            return with_column(found, jnp.sum(self.jacobian(index) * v, axis=1), index)

        return self.each(turn, jnp.zeros((3, len(self.pair)), v.dtype))

    def response(self, diagonal: Float[Array, " nv"]) -> Float[Array, "6 m"]:
        """J diag⁻¹ Jᵀ of each point, as symmetric entries."""
        inverse = 1.0 / diagonal

        def turn(index: Array, found: Array) -> Array:
            J = self.jacobian(index)
            return with_column(found, entries_of_product(J, J * inverse), index)

        return self.each(turn, jnp.zeros((6, len(self.pair)), inverse.dtype))

    def generalized(self, gamma: Float[Array, "3 m"]) -> Float[Array, " nv"]:
        """Generalized forces Jᵀ gamma of forces on B at C."""

        def turn(index: Array, total: Array) -> Array:
            return total + ca.sum_products(jnp.unstack(self.jacobian(index)), jnp.unstack(column_at(gamma, index)))

        return self.each(turn, jnp.zeros(self.S_T.shape[1], self.S_T.dtype))

    def hessian(self, G: Float[Array, "6 m"]) -> Float[Array, "nv nv"]:
        """Σ Jᵀ G J of the points' stiffness."""
        nv = self.S_T.shape[1]

        def turn(index: Array, total: Array) -> Array:
            J = self.jacobian(index)
            entries = ca.symmetric_rows(jnp.unstack(column_at(G, index)))
            GJ = jnp.stack([ca.sum_products(row, jnp.unstack(J)) for row in entries])
            return total + ca.sum_products(jnp.unstack(J[:, :, None]), jnp.unstack(GJ[:, None]))

        return self.each(turn, jnp.zeros((nv, nv), self.S_T.dtype))


@functools.lru_cache(maxsize=256)
def moved_by_pairs(topology: TreeTopology, mobods: tuple[tuple[int, int], ...]) -> tuple[np.ndarray, np.ndarray]:
    """Masks (pairs, nv) of the velocities that move B but not A, and A but not B."""
    A, B = np.array(mobods, int).T
    of_A, of_B = topology.moves[:, A].T, topology.moves[:, B].T
    return of_B & ~of_A, of_A & ~of_B


def paths_of_list(
    topology: TreeTopology,
    points: ContactList,
    mobods: tuple[tuple[int, int], ...],
    S_T: Float[Array, "6 nv"],
) -> PathsOfList:
    """What moves the points in trees, between these mobods of each pair."""
    roots = topology.mobod_roots[np.array(mobods)]
    is_within = jnp.asarray(roots[:, 0] == roots[:, 1])
    # of one tree both positions are from one origin: they differ by rounding alone
    p_TaC_W = jnp.where(is_within[points.pair][:, None], points.p_TbC_W, points.p_TaC_W)
    return PathsOfList(points.count, points.pair, p_TaC_W, points.p_TbC_W, S_T, topology, mobods)
