"""Factors A = Lᵀ D L of a symmetric matrix with the sparsity of a tree, without fill-in (Featherstone 2008, §8.5).

Node k of the tree couples with its ancestors only. Rows are kept by depth: entry j of row k belongs to the ancestor
of node k at depth j. From the tips inward each node eliminates itself, so the work is nodes times depth squared; a
chain is a dense matrix. One loop body serves every node, and rows, columns and right-hand sides may be followed by an
axis of worlds. Updates for ancestors wait by depth too: nodes are numbered depth first, so no other node of a depth is
met before the ancestor that its updates are for.
"""

import functools
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from mbjax.execution import on_gpu
from mbjax.execution.arrays import compiled_apart, scan, sum_over_first

from .dense_factor import solve_dense
from .dense_on_gpu import pivots_in_blocks, solve_in_blocks
from .small_factor import LARGEST, factor_small, solve_small_outward

SMALLEST_IN_BLOCKS = 24  # rows of a dense matrix: with fewer, less time is gained than compiling a second block takes

Parents = tuple[int, ...]  # of nodes 1..n, depth first; 0 is no parent


class BranchFactor(NamedTuple):
    """L by depth, without the ones on its diagonal, and the inverse of D, zero where a node was left out."""

    L: Float[Array, "n depth *w"]
    one_over_D: Float[Array, "n *w"]

    @property
    def kept(self) -> Bool[Array, "n *w"]:
        return self.one_over_D != 0.0


class Paths(NamedTuple):
    """Depth of each node, and its ancestors by depth, which are those at depths less than its own."""

    depth: np.ndarray  # (n,)
    ancestors: np.ndarray  # (n, depth); the node itself at its own depth and beyond
    inboard: np.ndarray  # (n, depth) whether there is an ancestor


def chain(size: int) -> Parents:
    """Parents of a chain of nodes: the tree of a dense matrix."""
    return tuple(range(size))


@functools.lru_cache(maxsize=256)
def paths(parents: Parents) -> Paths:
    """Depths and ancestors of all nodes."""
    lines: list[list[int]] = []
    for node, parent in enumerate(parents):
        lines.append([*(lines[parent - 1] if parent else []), node])
    size = max(map(len, lines), default=0)
    depth = np.array([len(line) - 1 for line in lines], np.int32)  # a type that both precisions leave as it is
    ancestors = np.array([line + line[-1:] * (size - len(line)) for line in lines], np.int32).reshape(len(lines), size)
    return Paths(depth, ancestors, np.arange(size) < depth[:, None])


def trunk_of(parents: Parents) -> int:
    """Length of the trunk: the first nodes that are each the only child of the one before, with all others beyond."""
    return next((k for k in range(len(parents)) if parents[k] != k or parents.count(k) > 1), len(parents))


def own_places(parents: Parents, num_world_axes: int = 0) -> np.ndarray:
    """Mask of the diagonal among rows by depth."""
    depth, ancestors, _ = paths(parents)
    own = np.arange(ancestors.shape[1]) == depth[:, None]
    return own.reshape(*own.shape, *(1,) * num_world_axes)


def branch_rows(parents: Parents, A: Float[Array, "n n *w"]) -> Float[Array, "n depth *w"]:
    """Rows of A by depth: the entries of a node's ancestors, then its own; those that follow are arbitrary."""
    ancestors = paths(parents).ancestors
    n, worlds = len(parents), A.shape[2:]
    places = (np.arange(n)[:, None] * n + ancestors).ravel()
    return A.reshape(n * n, *worlds)[places].reshape(*ancestors.shape, *worlds)


def factor_branches(
    parents: Parents,
    A: Float[Array, "n n *w"],
    B: Float[Array, "n r *w"] | None = None,
    smallest: Float[Array, "n *w"] | None = None,
    least: Float[Array, "n *w"] | None = None,
) -> tuple[BranchFactor, Float[Array, "n r *w"]]:
    """Factors A, and computes L⁻ᵀ B on the way.

    A node whose pivot is `smallest` or less is left out, as if its row and column were not there. `smallest` says how
    far rounding may have moved a diagonal entry; where a row is taken from others by large multiples, as after a small
    pivot, its own grows as their rounding does. Pivots are raised to `least` where rounding has made them less.
    """
    return factor_branch_rows(parents, branch_rows(parents, A), B, smallest, least)


def factor_branch_rows(
    parents: Parents,
    rows: Float[Array, "n depth *w"],
    B: Float[Array, "n r *w"] | None = None,
    smallest: Float[Array, "n *w"] | None = None,
    least: Float[Array, "n *w"] | None = None,
) -> tuple[BranchFactor, Float[Array, "n r *w"]]:
    """`factor_branches` of a matrix that is given by its rows by depth."""
    B = jnp.zeros((len(parents), 0, *rows.shape[2:]), rows.dtype) if B is None else B
    factor, Y, _ = eliminate_nodes(parents, rows, B, smallest, least, 0)
    return factor, Y


def pivots_of_rows(parents: Parents, rows: Float[Array, "n depth *w"]) -> Float[Array, "n *w"]:
    """Pivots D of a matrix that is given by its rows by depth; on a GPU, of a dense one, in one kernel."""

    def in_loops(rows: Array) -> Array:
        return 1.0 / factor_branch_rows(parents, rows)[0].one_over_D

    is_dense = rows.ndim > 2 and parents == chain(len(parents))
    return on_gpu(pivots_in_blocks, in_loops, rows) if is_dense else in_loops(rows)


def eliminate_nodes(
    parents: Parents,
    rows: Float[Array, "n depth *w"],
    B: Float[Array, "n r *w"],
    smallest: Float[Array, "n *w"] | None,
    least: Float[Array, "n *w"] | None,
    first: int,
) -> tuple[BranchFactor, Float[Array, "k r *w"], tuple[Array, Array]]:
    """Eliminates the nodes from `first` on: their factor and L⁻ᵀ B, and the updates to rows and B of those before."""
    size, r = rows.shape[1], B.shape[1]
    worlds = jnp.broadcast_shapes(rows.shape[2:], B.shape[2:])
    nothing = jnp.zeros((size, size, *worlds), rows.dtype), jnp.zeros((size, r, *worlds), rows.dtype)
    if len(parents) == first:
        return BranchFactor(rows[first:], jnp.zeros((0, *worlds), rows.dtype)), B[first:], nothing

    def eliminate(row: Array, y: Array, growth: Array | None, x: tuple) -> tuple:
        own, inboard, own_row, b, smallest, least = x
        row, y = row + own_row, y + b
        smallest = smallest if growth is None else smallest + growth
        pivot = sum_over_first(jnp.where(own, row, 0.0))
        pivot = pivot if least is None else jnp.maximum(pivot, least)
        one_over_D = 1.0 / pivot if smallest is None else jnp.where(pivot <= smallest, 0.0, 1.0 / pivot)
        row = jnp.where(inboard, row, 0.0)
        return row, inboard, smallest, (row * one_over_D, one_over_D, y)

    def step(waiting: tuple[Array, Array, Array | None], x: tuple) -> tuple:
        depth, x = x
        collected = (None if w is None else lax.dynamic_index_in_dim(w, depth, keepdims=False) for w in waiting)
        # `waiting` is changed in place, outside `apart`: what that returns would be copied
        row, inboard, moved, (line, one_over_D, y) = apart(depth, worlds, eliminate, *collected, x)
        *left, growth = waiting
        left, left_b = (jnp.where(inboard[:, None], w, 0.0) for w in left)
        growth = None if growth is None else jnp.where(inboard, growth, 0.0) + line * line * moved
        return (left - line[:, None] * row[None], left_b - line[:, None] * y[None], growth), (line, one_over_D, y)

    depth, _, inboard = paths(parents)
    b, row = (jnp.broadcast_to(x, (*x.shape[:2], *worlds)) for x in (B, rows))
    smallest, least = (None if x is None else jnp.broadcast_to(x, (len(x), *worlds)) for x in (smallest, least))
    masks = as_masks(own_places(parents), worlds), as_masks(inboard, worlds)
    xs = jax.tree.map(lambda x: x[first:], (jnp.asarray(depth), (*masks, row, b, smallest, least)))
    growth = None if smallest is None else jnp.zeros((size, *worlds), rows.dtype)
    (left, left_b, _), (L, one_over_D, Y) = scan(step, (*nothing, growth), xs, reverse=True)
    return BranchFactor(L, one_over_D), Y, (left, left_b)


def solve_inward(parents: Parents, factor: BranchFactor, b: Float[Array, "n *w"]) -> Float[Array, "n *w"]:
    """Solves Lᵀ y = b, from the tips inward; entries left out keep their right-hand side."""
    if not parents:
        return b

    def eliminate(waiting: Array, collected: Array, x: tuple) -> tuple[Array, Array]:
        inboard, line, b = x
        y = b + collected
        return jnp.where(inboard, waiting, 0.0) - line * y, y

    def step(waiting: Array, x: tuple) -> tuple[Array, Array]:
        depth, x = x
        collected = lax.dynamic_index_in_dim(waiting, depth, keepdims=False)
        return apart(depth, worlds, eliminate, waiting, collected, x)

    worlds = jnp.broadcast_shapes(factor.L.shape[2:], b.shape[1:])
    depth, _, inboard = paths(parents)
    nothing = jnp.zeros((factor.L.shape[1], *worlds), b.dtype)
    xs = jnp.asarray(depth), (as_masks(inboard, worlds), factor.L, b)
    return scan(step, nothing, xs, reverse=True)[1]


def solve_outward(parents: Parents, factor: BranchFactor, z: Float[Array, "n *w"]) -> Float[Array, "n *w"]:
    """Solves L x = z, from the roots outward."""
    return substitute_nodes(parents, factor, z, z[:0])


def substitute_nodes(
    parents: Parents, factor: BranchFactor, z: Float[Array, "k *w"], trunk: Float[Array, "m *w"]
) -> Float[Array, "k *w"]:
    """Solves L x = z for the nodes after the first m, which are a `trunk` of known values."""
    first = len(trunk)
    if len(parents) == first:
        return z

    def substitute(path: Array, x: tuple) -> tuple[Array, Array]:
        inboard, line, z = x
        value = z - (sum_over_first(line * path) if worlds else jnp.sum(line * path))
        return jnp.where(inboard, path, value), value

    def step(path: Array, x: tuple) -> tuple[Array, Array]:
        depth, x = x
        return apart(depth, worlds, substitute, path, x)

    worlds = jnp.broadcast_shapes(factor.L.shape[2:], z.shape[1:])
    depth, _, inboard = paths(parents)
    path = jnp.concatenate([trunk, jnp.zeros((factor.L.shape[1] - first, *worlds), z.dtype)])
    xs = jnp.asarray(depth)[first:], (as_masks(inboard, worlds)[first:], factor.L, z)
    return scan(step, path, xs)[1]


def solve_branches(parents: Parents, factor: BranchFactor, b: Float[Array, "n *w"]) -> Float[Array, "n *w"]:
    """Solves A x = b with the factor; x is zero where a node was left out."""
    return solve_outward(parents, factor, factor.one_over_D * solve_inward(parents, factor, b))


def solve_branch_rows(
    parents: Parents,
    rows: Float[Array, "n depth *w"],
    b: Float[Array, "n *w"],
    least: Float[Array, "n *w"] | None = None,
) -> Float[Array, "n *w"]:
    """Solves A x = b for one b, of a matrix that is given by its rows by depth.

    On a GPU the dense matrices of many worlds are solved in one kernel.
    """
    if rows.ndim > 2 and parents == chain(len(parents)):
        return on_gpu(solve_in_blocks, partial(solve_rows, parents), rows, b, least)
    return solve_rows(parents, rows, b, least)


def solve_rows(
    parents: Parents, rows: Float[Array, "n depth *w"], b: Float[Array, "n *w"], least: Float[Array, "n *w"] | None
) -> Float[Array, "n *w"]:
    """`solve_branch_rows` by loops over the nodes.

    When all nodes beyond a short trunk are eliminated, the rows left for the trunk are a dense matrix.
    """
    trunk = trunk_of(parents)
    if rows.ndim > 2 and SMALLEST_IN_BLOCKS <= trunk == len(parents):
        return solve_dense(rows, b, least)
    trunk = trunk if trunk <= LARGEST else 0
    factor, y, (left, left_b) = eliminate_nodes(parents, rows, b[:, None], None, least, trunk)
    A, b = left[:trunk, :trunk] + rows[:trunk, :trunk], left_b[:trunk, 0] + b[:trunk]
    x = solve_small_outward(factor_small(A, b, least)) if trunk else b
    return jnp.concatenate([x, substitute_nodes(parents, factor, factor.one_over_D * y[:, 0], x)])


def apart(index: Array, worlds: tuple[int, ...], function: Callable, *args: Any) -> Any:
    """Calls `function(*args)` in a loop with this index; for several worlds it is compiled apart from the loop."""
    return compiled_apart(index, function, *args) if worlds else function(*args)


def as_masks(x: Bool[np.ndarray, "n depth"], worlds: tuple[int, ...]) -> Bool[Array, "n depth ..."]:
    """A static mask, with an axis of one world where worlds follow."""
    return jnp.asarray(x.reshape(*x.shape, *(1 for _ in worlds)))
