"""Cholesky factor A = LᵀL of a small positive definite matrix, written out: no loop, and each row one kernel."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.spatial import safe_sqrt
from mbjax.spatial.component_algebra import concatenate

LARGEST = 6  # rows: the velocities of a free joint


class SmallFactor(NamedTuple):
    """Cholesky factor from the last row to the first: an entry of L⁻ᵀ b, then the row of L before its diagonal."""

    lines: tuple[Float[Array, "k *w"], ...]
    diagonal: tuple[Float[Array, "*w"], ...]


def factor_small(
    A: Float[Array, "n n *w"], b: Float[Array, "n *w"], least: Float[Array, "n *w"] | None = None
) -> SmallFactor:
    """Factors A, and computes L⁻ᵀ b beside it.

    Where the diagonal is infinite row and column are left out, and x is zero. A pivot is no less than `least`, nor
    than eps times the diagonal entry, which rounding loses.
    """
    eps = float(jnp.finfo(A.dtype).eps)
    rows, lines, diagonal = concatenate([b[:, None], A], 1), [], []
    for k in reversed(range(A.shape[0])):
        row = rows[k, : k + 2]
        for line in lines:
            row = row - line[k + 1] * line[: k + 2]
        pivot = jnp.maximum(row[-1], eps * A[k, k])
        root = safe_sqrt(pivot if least is None else jnp.maximum(pivot, least[k]))
        lines.append(row[:-1] / root)  # XLA stores a quotient; a product it would compute anew for each reader
        diagonal.append(root)
    return SmallFactor(tuple(lines), tuple(diagonal))


def eliminate_small(factor: SmallFactor, b: Float[Array, "n ..."]) -> list[Float[Array, "..."]]:
    """Solves Lᵀ y = b for a vector b or rows of one; y runs from the last row to the first."""
    y: list[Array] = []
    for i, root in enumerate(factor.diagonal):
        k = len(b) - 1 - i
        rest = b[k]
        for line, y_m in zip(factor.lines, y, strict=False):
            rest = rest - line[k + 1] * y_m
        y.append(rest / root)
    return y


def solve_small_inward(factor: SmallFactor, b: Float[Array, "n *w"]) -> SmallFactor:
    """Replaces L⁻ᵀ b in the factor by that of another b."""
    y = eliminate_small(factor, b)
    lines = (concatenate([y_k[None], line[1:]], 0) for y_k, line in zip(y, factor.lines, strict=True))
    return SmallFactor(tuple(lines), factor.diagonal)


def solve_small_outward(factor: SmallFactor) -> Float[Array, "n *w"]:
    """Solves A x = b, from the L⁻ᵀ b that the factor holds."""
    x: list[Array] = []
    for line, root in zip(reversed(factor.lines), reversed(factor.diagonal), strict=True):
        rest = line[0]
        for k, x_k in enumerate(x):
            rest = rest - line[k + 1] * x_k
        x.append(rest / root)
    return jnp.stack(x)
