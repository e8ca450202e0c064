"""The Newton matrix of free bodies that touch each other, by blocks: a block for each two bodies that do.

Bodies are eliminated from the last to the first. Eliminating one couples those before it that it touches: so which
blocks there are follows from the list of contacts that act, and work follows the blocks.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from mbjax.dynamics import ForwardDynamicsTerms
from mbjax.dynamics.composite_body.mass_matrix import calc_composite_forces
from mbjax.dynamics.records.inertia_about_origin import shift_inertia_to_T
from mbjax.execution.arrays import repeat_turns
from mbjax.linear_algebra import SmallFactor, eliminate_small, factor_small, solve_small_outward
from mbjax.spatial import component_algebra as ca
from mbjax.topology import TreeTopology

from ..movers.body_blocks import BodyBlocks, from_blocks, in_blocks
from ..points.runtime_lists import list_of, row_at, sum_in_order, with_row
from ..rows.rows_of_step import OfRows, OtherRows, calc_box_diagonal
from .newton_matrix import NewtonMatrix, Product


class TouchingBodies(Protocol):
    """Free bodies and the couples of them that touch, found when the program runs."""

    @property
    def blocks(self) -> BodyBlocks:
        """The bodies' velocities."""
        ...

    @property
    def num_world_axes(self) -> int:
        """1 of several worlds side by side, else 0."""
        ...

    def each_couple(self, turn: Callable, start: Any) -> Any:
        """Loops over the couples that touch, the later body first: `turn(high, low, carry)`."""
        ...

    def apart(self, index: Array, function: Callable, *args: Any) -> Any:
        """Calls `function(*args)` in a loop with this index."""
        ...


class Neighbours(NamedTuple):
    """The bodies before each that are coupled with it when it is eliminated, first in a list, and how many."""

    bodies: Int[Array, "t t"]
    count: Int[Array, " t"]


def block_of(high: Array, low: Array) -> Array:
    """The place of a block of two bodies, high > low, below the diagonal."""
    return high * (high - 1) // 2 + low


def matrix_of_blocks(
    topology: TreeTopology,
    terms: ForwardDynamicsTerms,
    others: OtherRows,
    rows: TouchingBodies,
    add_contacts: Callable[[Array, Array, Array], tuple[Array, Array]],
) -> NewtonMatrix:
    """The Newton matrix of free bodies by blocks on and below the diagonal, to which `add_contacts` adds stiffness."""
    bodies = rows.blocks
    M, least = calc_own_blocks(topology, terms, bodies)
    neighbours = calc_neighbours(rows)
    own = np.eye(M.shape[1], dtype=bool).reshape(1, *M.shape[1:3], *(1,) * rows.num_world_axes)
    t = M.shape[0]

    def inertia_product(x: Array) -> Array:
        return from_blocks(bodies, sum_in_order(M * in_blocks(bodies, x)[:, None], 2))

    def solver(stiffness: OfRows) -> Product:
        assert stiffness.contacts is not None
        of_box = in_blocks(bodies, calc_box_diagonal(others, stiffness, terms.v))[:, None]
        diagonal = M + jnp.where(own, of_box, 0.0)
        below = jnp.zeros((t * (t - 1) // 2, *diagonal.shape[1:]), diagonal.dtype)
        matrix = add_contacts(diagonal, below, stiffness.contacts)
        return lambda b: from_blocks(bodies, solve_blocks(rows, neighbours, *matrix, in_blocks(bodies, b), least))

    return NewtonMatrix(inertia_product, solver, lambda stiffness, b: solver(stiffness)(b))


def calc_own_blocks(
    topology: TreeTopology, terms: ForwardDynamicsTerms, blocks: BodyBlocks
) -> tuple[Float[Array, "t s s"], Float[Array, "t s"]]:
    """Blocks of M + diag on the diagonal, and the pivots of each alone; a velocity that is locked has a 1."""
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


def calc_neighbours(rows: TouchingBodies) -> Neighbours:
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


def products_of(S: Array, F: Array, axis: int = 1) -> Array:
    """Entries S_i · F_j of vectors along an axis, which two take the place of; components come first."""
    return ca.sum_products(jnp.unstack(jnp.expand_dims(S, axis + 1)), jnp.unstack(jnp.expand_dims(F, axis)))


def solve_blocks(
    rows: TouchingBodies,
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
