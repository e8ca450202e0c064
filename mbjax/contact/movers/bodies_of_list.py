"""What moves the points of a list among free bodies: the rows of their Jacobian, of two bodies each."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from mbjax.execution.arrays import repeat_turns
from mbjax.spatial import component_algebra as ca
from mbjax.topology import TreeTopology

from ..points.contact_list import ContactList, column_at
from ..points.runtime_lists import add_row, row_at, with_column, with_row
from .abstract_mover import AbstractMover
from .body_blocks import BodyBlocks, body_blocks, from_blocks, in_blocks, with_still
from .contact_jacobian import entries_of_product, velocities_at


class BodiesOfList(AbstractMover):
    """What moves the points of a list among free bodies: two bodies each, the later one first, t where none moves."""

    count: Int[Array, ""]
    bodies: Int[Array, "m 2"]
    J: Float[Array, "m 2 3 s"]  # v_AcBc_W is the sum over both bodies of J v; zero where locked, and where none moves
    topology: TreeTopology = eqx.field(static=True)

    num_world_axes = 0

    @property
    def blocks(self) -> BodyBlocks:
        """The bodies' velocities."""
        return body_blocks(self.topology)

    def each(self, turn: Callable, start: Any) -> Any:
        """Loops over the points that act: `turn(index, carry)`."""
        return repeat_turns(self.count, turn, start)

    def apart(self, index: Array, function: Callable, *args: Any) -> Any:
        """Calls `function(*args)`."""
        return function(*args)

    def worlds(self, like: Array) -> tuple[int, ...]:
        """Shape of the worlds: there is one."""
        return ()

    def if_both_move(self, low: Array, turn: Callable, carry: Any) -> Any:
        """`turn(carry)` where the earlier body of a point moves, else the carry."""
        return repeat_turns((low < self.blocks.count).astype(jnp.int32), lambda _, carry: turn(carry), carry)

    def each_couple(self, turn: Callable, start: Any) -> Any:
        """Loops over the points between bodies that move, the later one first: `turn(high, low, carry)`."""

        def of_point(index: Array, carry: Any) -> Any:
            high, low = jnp.unstack(row_at(self.bodies, index))
            return self.if_both_move(low, lambda carry: turn(high, low, carry), carry)

        return self.each(of_point, start)

    def velocities(self, v: Float[Array, " nv"]) -> Float[Array, "3 m"]:
        """Relative velocities J v of the points."""
        in_order = with_still(in_blocks(self.blocks, v))

        def turn(index: Array, found: Array) -> Array:
            bodies, J = row_at((self.bodies, self.J), index)
            of_bodies = [jnp.sum(J[side] * row_at(in_order, bodies[side]), axis=1) for side in (0, 1)]
            return with_column(found, of_bodies[0] + of_bodies[1], index)

        return self.each(turn, jnp.zeros((3, len(self.bodies)), v.dtype))

    def response(self, diagonal: Float[Array, " nv"]) -> Float[Array, "6 m"]:
        """J diag⁻¹ Jᵀ of each point, as symmetric entries."""
        inverse = 1.0 / diagonal
        in_order = with_still(in_blocks(self.blocks, inverse))

        def turn(index: Array, found: Array) -> Array:
            bodies, J = row_at((self.bodies, self.J), index)
            each = [entries_of_product(J[side], J[side] * row_at(in_order, bodies[side])) for side in (0, 1)]
            return with_column(found, each[0] + each[1], index)

        return self.each(turn, jnp.zeros((6, len(self.bodies)), inverse.dtype))

    def generalized(self, gamma: Float[Array, "3 m"]) -> Float[Array, " nv"]:
        """Generalized forces Jᵀ gamma of forces on B at C."""

        def turn(index: Array, total: Array) -> Array:
            (bodies, J), f = row_at((self.bodies, self.J), index), column_at(gamma, index)
            for side in (0, 1):
                total = add_row(total, ca.sum_products(jnp.unstack(J[side]), jnp.unstack(f)), bodies[side])
            return total

        t, size = self.blocks.velocities.shape
        return from_blocks(self.blocks, self.each(turn, jnp.zeros((t + 1, size), gamma.dtype))[:-1])


def bodies_of_list(
    topology: TreeTopology,
    points: ContactList,
    mobods: tuple[tuple[int, int], ...],
    S_T: Float[Array, "6 nv"],
) -> BodiesOfList:
    """What moves the points among free bodies, between these mobods of each pair."""
    blocks = body_blocks(topology)
    of_mobods, t, m = blocks.of_mobods, blocks.count, len(points.pair)
    sides = [(of_mobods[a], of_mobods[b]) for a, b in mobods]
    is_b_first = [a == t or t > b > a for a, b in sides]
    in_order = [(b, a) if first else (a, b) for (a, b), first in zip(sides, is_b_first, strict=True)]
    table, first_is_b = jnp.asarray(in_order, jnp.int32), jnp.asarray(is_b_first)
    of_bodies = jnp.stack([with_still(in_blocks(blocks, x)) for x in jnp.unstack(S_T)])

    def turn(index: Array, carry: tuple) -> tuple:
        bodies, J = carry
        pair, *p = row_at((points.pair, points.p_TbC_W, points.p_TaC_W), index)
        own, is_b = row_at((table, first_is_b), pair)
        each = []
        for side in (0, 1):
            is_of_b = is_b if side == 0 else ~is_b
            S = lax.dynamic_index_in_dim(of_bodies, own[side], 1, False, allow_negative_indices=False)
            velocities = velocities_at(S, jnp.where(is_of_b, *p)[:, None])[:, 0]
            each.append(jnp.where(is_of_b, velocities, -velocities))
        return with_row(bodies, own, index), with_row(J, jnp.stack(each), index)

    start = jnp.zeros((m, 2), jnp.int32), jnp.zeros((m, 2, 3, of_bodies.shape[2]), S_T.dtype)
    bodies, J = repeat_turns(points.count, turn, start)
    return BodiesOfList(points.count, bodies, J, topology)
