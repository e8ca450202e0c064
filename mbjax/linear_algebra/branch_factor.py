"""A = Lᵀ D L of a symmetric matrix with the sparsity of a tree: no fill-in (Featherstone 2008, §8.5).

Node k of the tree couples with its ancestors only. Rows are kept along paths: entry j of row k belongs to the
j-th ancestor of node k, entry 0 to k itself. From the tips inward each node eliminates itself and hands what
remains to its parent, so the work is nodes times depth squared; a chain is a dense matrix. One loop body serves
every node, and rows, columns and right-hand sides may be followed by an axis of worlds.
"""

import functools
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from mbjax.topology import scan_inward, scan_outward, walk_plan

from .products import outer, sum_over_first

Parents = tuple[int, ...]  # of nodes 1..n, depth first; 0 is no parent


class BranchFactor(NamedTuple):
    """L along paths, with ones on its diagonal, and the inverse of D: zero where a node was left out."""

    L: Float[Array, "n depth *w"]
    one_over_D: Float[Array, "n *w"]

    @property
    def kept(self) -> Bool[Array, "n *w"]:
        return self.one_over_D != 0.0


def chain(size: int) -> Parents:
    """The tree of a dense matrix."""
    return tuple(range(size))


@functools.cache
def paths(parents: Parents) -> tuple[np.ndarray, np.ndarray]:
    """(n, depth) the ancestors of each node, itself first, and whether there are that many."""
    lines: list[list[int]] = []
    for node, parent in enumerate(parents):
        lines.append([node] + (lines[parent - 1] if parent else []))
    depth = max(map(len, lines), default=0)
    ancestors = np.array([line + [0] * (depth - len(line)) for line in lines], int).reshape(len(lines), depth)
    return ancestors, np.arange(depth) < np.array([len(line) for line in lines], int)[:, None]


def rows_along_paths(parents: Parents, A: Float[Array, "n n *w"]) -> Float[Array, "n depth *w"]:
    """Of each row what belongs to the node and its ancestors."""
    ancestors, exists = paths(parents)
    n, worlds = len(parents), A.shape[2:]
    places = (np.arange(n)[:, None] * n + ancestors).ravel()
    rows = A.reshape(n * n, *worlds)[places].reshape(*ancestors.shape, *worlds)
    return jnp.where(exists.reshape(*exists.shape, *(1 for _ in worlds)), rows, 0.0)


def factor_branches(
    parents: Parents,
    A: Float[Array, "n n *w"],
    B: Float[Array, "n r *w"] | None = None,
    smallest: Float[Array, "n *w"] | None = None,
) -> tuple[BranchFactor, Float[Array, "n r *w"]]:
    """The factor of A, and L⁻ᵀ B on the way.

    A node whose pivot is `smallest` or less is left out, as if its row and column were not there.
    """
    n = len(parents)
    B = jnp.zeros((n, 0, *A.shape[2:]), A.dtype) if B is None else B
    rows = rows_along_paths(parents, A)
    depth = rows.shape[1]
    worlds = jnp.broadcast_shapes(A.shape[2:], B.shape[2:])
    if n == 0:
        return BranchFactor(rows, jnp.zeros((0, *worlds), A.dtype)), B
    smallest = jnp.full((n, *(1 for _ in worlds)), -jnp.inf, A.dtype) if smallest is None else smallest

    def step(from_outboard: tuple[Array, Array], x: tuple) -> tuple[tuple[Array, Array], tuple[Array, Array, Array]]:
        remains, right = from_outboard
        own, b, smallest = x
        row, y = own + remains[0], b + right[0]
        one_over_D = jnp.where(row[0] <= smallest, 0.0, 1.0 / row[0])
        line = row * one_over_D
        remains = shift(shift(remains - outer(row, line)), 1)
        return (remains, shift(right - outer(line, y))), (line, one_over_D, y)

    nothing = jnp.zeros((depth, depth, *worlds), A.dtype), jnp.zeros((depth, B.shape[1], *worlds), A.dtype)
    L, one_over_D, Y = scan_inward(walk_plan(parents), step, (rows, B, smallest), nothing)
    return BranchFactor(L, one_over_D), Y


def solve_inward(parents: Parents, factor: BranchFactor, b: Float[Array, "n *w"]) -> Float[Array, "n *w"]:
    """L⁻ᵀ b; entries left out keep their right-hand side."""
    if not parents:
        return b

    def step(right: Array, x: tuple[Array, Array]) -> tuple[Array, Array]:
        line, b = x
        y = b + right[0]
        return shift(right - line * y), y

    worlds = jnp.broadcast_shapes(factor.L.shape[2:], b.shape[1:])
    nothing = jnp.zeros((factor.L.shape[1], *worlds), b.dtype)
    return scan_inward(walk_plan(parents), step, (factor.L, b), nothing)


def solve_outward(parents: Parents, factor: BranchFactor, z: Float[Array, "n *w"]) -> Float[Array, "n *w"]:
    """L⁻¹ z."""
    if not parents:
        return z

    def step(inboard: Array, x: tuple[Array, Array]) -> tuple[Array, Array]:
        line, z = x
        value = z - sum_over_first(line[1:] * inboard[:-1])
        return jnp.concatenate([value[None], inboard[:-1]]), value

    worlds = jnp.broadcast_shapes(factor.L.shape[2:], z.shape[1:])
    nothing = jnp.zeros((factor.L.shape[1], *worlds), z.dtype)
    return scan_outward(walk_plan(parents), step, (factor.L, z), nothing)


def solve_branches(parents: Parents, factor: BranchFactor, b: Float[Array, "n *w"]) -> Float[Array, "n *w"]:
    """x with A x = b; zero where left out."""
    return solve_outward(parents, factor, factor.one_over_D * solve_inward(parents, factor, b))


def shift(x: Float[Array, "..."], axis: int = 0) -> Float[Array, "..."]:
    """One entry nearer to the front; zeros come in at the end."""
    rest = lax.slice_in_dim(x, 1, None, axis=axis)
    return jnp.concatenate([rest, jnp.zeros_like(lax.slice_in_dim(x, 0, 1, axis=axis))], axis)
