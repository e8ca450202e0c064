"""The Newton matrix of many small trees that touch each other, by blocks: a block for each two trees that do.

The blocks are eliminated from the last tree to the first. Eliminating one couples those before it that it touches, so
which blocks there are follows from the list of contacts that act, and work follows the blocks.
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

from .acting_contacts import (
    Acting,
    ActingPlan,
    ActingRows,
    add_row,
    in_blocks,
    list_of,
    row_at,
    spread_signs,
    sum_in_order,
    with_row,
)
from .contact_hessian import inertia_between_points, inertia_of_points, times_composite, times_inertia_between
from .convex_problem import ConvexProblem


class Neighbours(NamedTuple):
    """The trees before each tree that are coupled with it when it is eliminated, first in a list, and how many."""

    trees: Int[Array, "t t"]
    count: Int[Array, " t"]


def block_of(high: Array, low: Array) -> Array:
    """The place of a block of two trees, high > low, below the diagonal."""
    return high * (high - 1) // 2 + low


def calc_own_blocks(
    topology: TreeTopology, problem: ConvexProblem, plan: ActingPlan
) -> tuple[Float[Array, "t s s"], Float[Array, "t s"]]:
    """Blocks of M + diag on the diagonal, and the pivots of each alone; a velocity that is locked has a 1."""
    terms = problem.terms
    inertia_T = shift_inertia_to_T(terms.position, terms.inertia_W)
    S = [in_blocks(plan, x) for x in jnp.unstack(terms.position.S_T)]
    F = [in_blocks(plan, x) for x in jnp.unstack(calc_composite_forces(topology, terms.position, inertia_T))]
    products = ca.sum_products([x[:, :, None] for x in S], [x[:, None] for x in F])
    inboard = np.pad(topology.moves[:, topology.velocity_mobods], ((0, 1), (0, 1)))
    inboard = inboard[plan.velocities[:, :, None], plan.velocities[:, None]]
    outboard, own = np.swapaxes(inboard, 1, 2) & ~inboard, np.eye(inboard.shape[1], dtype=bool)[None]
    inboard, outboard, own = (x.reshape(*x.shape, *(1,) * (products.ndim - 3)) for x in (inboard, outboard, own))
    M = jnp.where(inboard, products, 0.0) + jnp.where(outboard, jnp.swapaxes(products, 1, 2), 0.0)
    M = M + jnp.where(own, in_blocks(plan, terms.diagonal)[:, None], 0.0)
    free = in_blocks(plan, ~terms.locked)
    M = jnp.where(free[:, :, None] & free[:, None], M, jnp.where(own, 1.0, 0.0).astype(M.dtype))
    of_rows = jnp.moveaxis(M, 0, 2)
    roots = factor_small(of_rows, jnp.zeros_like(of_rows[0])).diagonal
    return M, jnp.moveaxis(jnp.stack([x * x for x in reversed(roots)]), 1, 0)


def calc_neighbours(acting: Acting, num_trees: int, num_world_axes: int) -> Neighbours:
    """The neighbours of all trees, with those that come by eliminating others."""
    t = num_trees
    start = jnp.zeros((t + 1, t + 1), bool)

    def touch(k: Array, touches: Array) -> Array:
        trees = row_at(acting.trees, k)
        high, low = jnp.max(trees), jnp.min(trees)
        where = jnp.where(high < t, high, t), jnp.where(high < t, low, t)  # the last row is for the world
        return lax.dynamic_update_slice(touches, jnp.ones((1, 1), bool), where, allow_negative_indices=False)

    touches = repeat_turns(acting.count, touch, start)

    def eliminate(k: Array, carry: tuple) -> tuple:
        touches, lists, counts = carry
        tree = t - 1 - k
        row = row_at(touches, tree)
        before, count = list_of(row, num_world_axes == 0)

        def couple(j: Array, touches: Array) -> Array:
            other = row_at(before, j)
            return with_row(touches, (row & (jnp.arange(t + 1) < other)) | row_at(touches, other), other)

        touches = repeat_turns(count, couple, touches)
        return touches, with_row(lists, before[:t], tree), with_row(counts, count, tree)

    nothing = jnp.zeros((t, t), jnp.int32), jnp.zeros(t, jnp.int32)
    _, lists, counts = repeat_turns(np.int32(t), eliminate, (touches, *nothing))
    return Neighbours(lists, counts)


def pair_blocks(S_T: tuple, signs: Array, p: Array, G: Array) -> tuple[Array, Array, Array]:
    """What a pair's stiffness adds to the blocks of its two trees, and to that between them (first tree's rows)."""
    S = [spread_signs(sign, S) * S for sign, S in zip(signs, S_T, strict=True)]
    own = []
    for S_side, p_side in zip(S, p, strict=True):
        C = sum_in_order(inertia_of_points(p_side, G), 1)
        own.append(products_of(S_side, times_composite(C[:, None], S_side)))
    between = sum_in_order(inertia_between_points(p[0], p[1], G), 1)
    return own[0], own[1], products_of(S[0], times_inertia_between(between[:, None], S[1]))


def products_of(S: Float[Array, "6 s"], F: Float[Array, "6 s"]) -> Float[Array, "s s"]:
    """Entries S_i · F_j."""
    return ca.sum_products(jnp.unstack(S[:, :, None]), jnp.unstack(F[:, None]))


def calc_blocks(
    rows: ActingRows, own: Float[Array, "t s s"], G: Float[Array, "n 6 k"]
) -> tuple[Float[Array, "t+1 s s"], Float[Array, "b s s"]]:
    """Blocks on and below the diagonal of H; the last of either is for what never moves."""
    acting, t = rows.acting, own.shape[0]

    def turn(blocks: tuple, index: Array, _: Array, G: Array) -> tuple:
        diagonal, below = blocks
        trees, signs, p = (row_at(x, index) for x in (acting.trees, acting.signs, acting.p_TC_W))
        S_T = tuple(row_at(acting.S_T, trees[side]) for side in (0, 1))
        first, second, between = rows.apart(index, pair_blocks_in_order, trees, S_T, signs, p, G)
        diagonal = add_row(add_row(diagonal, first, trees[0]), second, trees[1])
        high, low = jnp.max(trees), jnp.min(trees)
        place = jnp.where(high < t, block_of(high, low), below.shape[0] - 1)
        return diagonal, add_row(below, between, place)

    nothing = jnp.zeros((t * (t - 1) // 2 + 1, *own.shape[1:]), own.dtype)
    return rows.each(turn, (jnp.concatenate([own, jnp.zeros_like(own[:1])]), nothing), G)


def pair_blocks_in_order(trees: Array, S_T: tuple, signs: Array, p: Array, G: Array) -> tuple[Array, Array, Array]:
    """`pair_blocks`, with the block between the trees given by the rows of the later one."""
    first, second, between = pair_blocks(S_T, signs, p, G)
    return first, second, jnp.where(trees[0] > trees[1], between, jnp.swapaxes(between, 0, 1))


def solve_blocks(
    rows: ActingRows,
    neighbours: Neighbours,
    diagonal: Float[Array, "t+1 s s"],
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
        diagonal, below, b, factors = carry
        tree = t - 1 - k
        own = row_at(diagonal, tree), row_at(b, tree), row_at(least, tree)
        packed = rows.apart(k, factored, *own)
        factors = with_row(factors, packed, tree)
        before, count = row_at(neighbours.trees, tree), row_at(neighbours.count, tree)

        def to_panel(i: Array, carry: tuple) -> tuple:
            below, b = carry
            other = row_at(before, i)
            place = block_of(tree, other)
            P, rest = rows.apart(i, panel, packed, row_at(below, place), row_at(b, other))
            return with_row(below, P, place), with_row(b, rest, other)

        below, b = repeat_turns(count, to_panel, (below, b))

        def to_row(i: Array, carry: tuple) -> tuple:
            diagonal, below = carry
            high = row_at(before, i)
            P = row_at(below, block_of(tree, high))
            diagonal = with_row(diagonal, rows.apart(i, update, row_at(diagonal, high), P, P), high)

            def to_block(j: Array, below: Array) -> Array:
                low = row_at(before, j)
                place, Q = block_of(high, low), row_at(below, block_of(tree, low))
                return with_row(below, rows.apart(j, update, row_at(below, place), P, Q), place)

            return diagonal, repeat_turns(i, to_block, below)

        diagonal, below = repeat_turns(count, to_row, (diagonal, below))
        return diagonal, below, b, factors

    def substituted(packed: Array, beyond: Array) -> Array:
        factor = as_factor(packed)
        lines = [
            ca.concatenate([line[:1] - y, line[1:]], 0) for line, y in zip(factor.lines, beyond[:, None], strict=True)
        ]
        return solve_small_outward(SmallFactor(tuple(lines), factor.diagonal))

    def along(total: Array, P: Array, x: Array) -> Array:
        return total + sum_in_order(P * x[None], 1)

    def substitute(tree: Array, carry: tuple) -> tuple:
        x, below, factors = carry
        before = row_at(neighbours.trees, tree)

        def collect(i: Array, total: Array) -> Array:
            other = row_at(before, i)
            return rows.apart(i, along, total, row_at(below, block_of(tree, other)), row_at(x, other))

        total = repeat_turns(row_at(neighbours.count, tree), collect, jnp.zeros_like(x[0]))
        return with_row(x, rows.apart(tree, substituted, row_at(factors, tree), total), tree), below, factors

    worlds = b.shape[2:]
    factors = jnp.zeros((t, s * (s + 1) // 2 + s, *worlds), b.dtype)
    _, below, _, factors = repeat_turns(np.int32(t), eliminate, (diagonal, below, b, factors))
    return repeat_turns(np.int32(t), substitute, (jnp.zeros_like(b), below, factors))[0]
