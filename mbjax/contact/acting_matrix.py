"""The Newton matrix of free bodies that touch each other, by blocks: a block for each two bodies that do.

Bodies are eliminated from the last to the first. Eliminating one couples those before it that it touches: so which
blocks there are follows from the list of contacts that act, and work follows the blocks.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from mbjax.dynamics.composite_body.mass_matrix import calc_composite_forces
from mbjax.dynamics.records.inertia_about_origin import shift_inertia_to_T
from mbjax.execution import repeat_turns
from mbjax.linear_algebra import SmallFactor, eliminate_small, factor_small, solve_small_outward
from mbjax.spatial import component_algebra as ca
from mbjax.topology import TreeTopology

from .acting_contacts import ActingRows, at_pair
from .body_blocks import BodyBlocks, in_blocks
from .contact_hessian import inertia_between_points, inertia_of_points, times_composite, times_inertia_between
from .convex_problem import ConvexProblem
from .listed_contacts import column_at
from .listed_rows import ListedBodies
from .runtime_lists import add_row, list_of, row_at, sum_in_order, with_row


class Neighbours(NamedTuple):
    """The bodies before each that are coupled with it when it is eliminated, first in a list, and how many."""

    bodies: Int[Array, "t t"]
    count: Int[Array, " t"]


def block_of(high: Array, low: Array) -> Array:
    """The place of a block of two bodies, high > low, below the diagonal."""
    return high * (high - 1) // 2 + low


def calc_own_blocks(
    topology: TreeTopology, problem: ConvexProblem, blocks: BodyBlocks
) -> tuple[Float[Array, "t s s"], Float[Array, "t s"]]:
    """Blocks of M + diag on the diagonal, and the pivots of each alone; a velocity that is locked has a 1."""
    terms = problem.terms
    inertia_T = shift_inertia_to_T(terms.position, terms.inertia_W)
    S = [in_blocks(blocks, x) for x in jnp.unstack(terms.position.S_T)]
    F = [in_blocks(blocks, x) for x in jnp.unstack(calc_composite_forces(topology, terms.position, inertia_T))]
    M = ca.sum_products([x[:, :, None] for x in S], [x[:, None] for x in F])
    own = np.eye(M.shape[1], dtype=bool).reshape(1, *M.shape[1:3], *(1,) * (M.ndim - 3))
    M = M + jnp.where(own, in_blocks(blocks, terms.diagonal)[:, None], 0.0)
    free = in_blocks(blocks, ~terms.locked)
    M = jnp.where(free[:, :, None] & free[:, None], M, own.astype(M.dtype))
    of_rows = jnp.moveaxis(M, 0, 2)
    roots = factor_small(of_rows, jnp.zeros_like(of_rows[0])).diagonal
    return M, jnp.stack([x * x for x in reversed(roots)], axis=1)


def calc_neighbours(rows: ActingRows | ListedBodies) -> Neighbours:
    """The neighbours of all bodies, with those that come by eliminating others."""
    t, is_one_world = len(rows.blocks.velocities), rows.num_world_axes == 0

    def touch(high: Array, low: Array, touches: Array) -> Array:
        return lax.dynamic_update_slice(touches, jnp.ones((1, 1), bool), (high, low), allow_negative_indices=False)

    touches = rows.each_couple(touch, jnp.zeros((t, t), bool))

    def eliminate(k: Array, carry: tuple) -> tuple:
        touches, lists, counts = carry
        body = t - 1 - k
        row = row_at(touches, body)
        before, count = list_of(row, is_one_world)

        def couple(j: Array, touches: Array) -> Array:
            other = row_at(before, j)
            return with_row(touches, (row & (jnp.arange(t, dtype=jnp.int32) < other)) | row_at(touches, other), other)

        touches = repeat_turns(count, couple, touches)
        return touches, with_row(lists, before, body), with_row(counts, count, body)

    nothing = jnp.zeros((t, t), jnp.int32), jnp.zeros(t, jnp.int32)
    return Neighbours(*repeat_turns(np.int32(t), eliminate, (touches, *nothing))[1:])


def inertias_of_pairs(p: Float[Array, "2 3 n k"], G: Float[Array, "6 n k"]) -> tuple[Array, Array, Array]:
    """What pairs' stiffness adds to the inertias of their two bodies, and their coupling, negative."""
    of_bodies = [sum_in_order(inertia_of_points(x, G), 2) for x in p]
    return of_bodies[0], of_bodies[1], -sum_in_order(inertia_between_points(p[0], p[1], G), 2)


def calc_blocks(
    rows: ActingRows | ListedBodies, own: Float[Array, "t s s"], G: Array
) -> tuple[Float[Array, "t s s"], Float[Array, "b s s"]]:
    """Blocks on and below the diagonal of H."""
    t = own.shape[0]
    below = jnp.zeros((t * (t - 1) // 2, *own.shape[1:]), own.dtype)
    if isinstance(rows, ListedBodies):
        return blocks_of_list(rows, own, below, G)
    return blocks_of_acting(rows, own, below, G)


def blocks_of_acting(
    rows: ActingRows, own: Float[Array, "t s s"], below: Float[Array, "b s s"], G: Float[Array, "6 n k"]
) -> tuple[Array, Array]:
    """Adds the contacts of some pairs at a time, by inertias that their stiffness has about the origin."""
    t, size = own.shape[0], np.int32(rows.num_together)

    def turn(first: Array, carry: tuple) -> tuple:
        p = jnp.moveaxis(lax.dynamic_slice_in_dim(rows.p_TC_W, first, int(size)), 0, 2)
        found = rows.apart(first, inertias_of_pairs, p, rows.pairs_from(first, G))

        def add(k: Array, inertias: Array) -> Array:
            bodies = row_at(rows.bodies, first + k)
            for side in (0, 1):
                inertias = add_row(inertias, at_pair(found[side], k), bodies[side])
            return inertias

        def couple(k: Array, below: Array) -> Array:
            high, low = (row_at(rows.bodies, first + k)[side] for side in (0, 1))
            S_high, S_low = (at_pair(rows.S_T, body) for body in (high, low))
            block = rows.apart(k, coupled, at_pair(found[2], k), S_high, S_low)
            return add_row(below, block, block_of(high, low))

        inertias, below = carry
        inertias = repeat_turns(jnp.minimum(rows.count - first, size), add, inertias)
        return inertias, repeat_turns(jnp.minimum(rows.num_coupled - first, size), couple, below)

    nothing = jnp.zeros((t + 1, 21, *rows.worlds(own)), own.dtype)
    inertias, below = rows.several(turn, (nothing, below))
    S = rows.S_T[:, :t]
    added = products_of(S, times_composite(jnp.moveaxis(inertias[:t], 1, 0)[:, :, None], S), 2)
    return own + added, below


def blocks_of_list(
    rows: ListedBodies, own: Float[Array, "t s s"], below: Float[Array, "b s s"], G: Float[Array, "6 m"]
) -> tuple[Array, Array]:
    """Adds the contacts of a list point by point, as Jᵀ G J."""

    def turn(index: Array, carry: tuple) -> tuple:
        own, below = carry
        bodies, J = row_at((rows.bodies, rows.J), index)
        entries = ca.symmetric_rows(jnp.unstack(column_at(G, index)))
        GJ = [jnp.stack([ca.sum_products(row, jnp.unstack(x)) for row in entries]) for x in J]
        for side in (0, 1):
            own = add_row(own, products_of(J[side], GJ[side]), bodies[side])
        high, low = jnp.unstack(bodies)

        def couple(below: Array) -> Array:
            return add_row(below, products_of(J[0], GJ[1]), block_of(high, low))

        return own, rows.if_both_move(low, couple, below)

    own, below = rows.each(turn, (jnp.concatenate([own, jnp.zeros_like(own[:1])]), below))
    return own[:-1], below


def coupled(between: Float[Array, "33"], S_high: Float[Array, "6 s"], S_low: Float[Array, "6 s"]) -> Array:
    """Block of two bodies from their coupling."""
    return products_of(S_high, times_inertia_between(between[:, None], S_low))


def products_of(S: Array, F: Array, axis: int = 1) -> Array:
    """Entries S_i · F_j of vectors along an axis, which two take the place of; components come first."""
    return ca.sum_products(jnp.unstack(jnp.expand_dims(S, axis + 1)), jnp.unstack(jnp.expand_dims(F, axis)))


def solve_blocks(
    rows: ActingRows | ListedBodies,
    neighbours: Neighbours,
    diagonal: Float[Array, "t s s"],
    below: Float[Array, "b s s"],
    b: Float[Array, "t s"],
    least: Float[Array, "t s"],
) -> Float[Array, "t s"]:
    """Solves H x = b by its blocks; a pivot is no less than `least`."""
    t, s = b.shape[:2]

    def factored(block: Array, b: Array, least: Array) -> Array:
        factor = factor_small(block, b, least)
        return ca.concatenate([*factor.lines, jnp.stack(factor.diagonal)], 0)

    def as_factor(packed: Array, y: Array | None = None) -> SmallFactor:
        lines, start = [], 0
        for length in range(s, 0, -1):
            lines.append(packed[start : start + length])
            start += length
        return SmallFactor(tuple(lines), tuple(jnp.unstack(packed[start:])))

    def panel(packed: Array, block: Array, b: Array) -> tuple[Array, Array]:
        factor = as_factor(packed)
        P = jnp.stack(eliminate_small(factor, block))  # from the last row to the first, as are the entries of y
        y = [line[:1] for line in factor.lines]
        return P, b - ca.sum_products(list(jnp.unstack(P)), y)

    def update(block: Array, P: Array, Q: Array) -> Array:
        return block - ca.sum_products(list(jnp.unstack(P[:, :, None])), list(jnp.unstack(Q[:, None])))

    def eliminate(k: Array, carry: tuple) -> tuple:
        diagonal, below, b, factors, panels = carry
        body = t - 1 - k
        own = row_at(diagonal, body), row_at(b, body), row_at(least, body)
        packed = rows.apart(k, factored, *own)
        factors = with_row(factors, packed, body)
        before, count = row_at(neighbours.bodies, body), row_at(neighbours.count, body)

        # Panels have an array of their own: a loop that reads and writes `below` at two places would copy it.
        def to_panel(i: Array, carry: tuple) -> tuple:
            panels, b = carry
            other = row_at(before, i)
            P, rest = rows.apart(i, panel, packed, row_at(below, block_of(body, other)), row_at(b, other))
            return with_row(panels, P, i), with_row(b, rest, other)

        panels, b = repeat_turns(count, to_panel, (panels, b))

        def to_row(i: Array, carry: tuple) -> tuple:
            diagonal, below = carry
            high, P = row_at(before, i), row_at(panels, i)
            diagonal = with_row(diagonal, rows.apart(i, update, row_at(diagonal, high), P, P), high)

            def to_block(j: Array, below: Array) -> Array:
                place = block_of(high, row_at(before, j))
                return with_row(below, rows.apart(j, update, row_at(below, place), P, row_at(panels, j)), place)

            return diagonal, repeat_turns(i, to_block, below)

        def keep(i: Array, below: Array) -> Array:
            return with_row(below, row_at(panels, i), block_of(body, row_at(before, i)))

        diagonal, below = repeat_turns(count, to_row, (diagonal, below))
        return diagonal, repeat_turns(count, keep, below), b, factors, panels

    def substituted(packed: Array, beyond: Array) -> Array:
        factor = as_factor(packed)
        rest = zip(factor.lines, jnp.unstack(beyond[:, None]), strict=True)
        lines = [ca.concatenate([line[:1] - y, line[1:]], 0) for line, y in rest]
        return solve_small_outward(SmallFactor(tuple(lines), factor.diagonal))

    def along(total: Array, P: Array, x: Array) -> Array:
        return total + sum_in_order(P * x[None], 1)

    def substitute(body: Array, carry: tuple) -> tuple:
        x, below, factors = carry
        before = row_at(neighbours.bodies, body)

        def collect(i: Array, total: Array) -> Array:
            other = row_at(before, i)
            return rows.apart(i, along, total, row_at(below, block_of(body, other)), row_at(x, other))

        total = repeat_turns(row_at(neighbours.count, body), collect, jnp.zeros_like(x[0]))
        return with_row(x, rows.apart(body, substituted, row_at(factors, body), total), body), below, factors

    worlds = b.shape[2:]
    factors = jnp.zeros((t, s * (s + 1) // 2 + s, *worlds), b.dtype)
    start = diagonal, below, b, factors, jnp.zeros_like(diagonal)
    _, below, _, factors, _ = repeat_turns(np.int32(t), eliminate, start)
    return repeat_turns(np.int32(t), substitute, (jnp.zeros_like(b), below, factors))[0]
