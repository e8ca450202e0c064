"""Factors G = C Q by Gram–Schmidt: rows of Q orthogonal, C lower triangular with ones on its diagonal.

Rows that depend on earlier ones have a zero row in Q and a zero column in C. Columns of C are kept from their
diagonal down: entry j of column k belongs to row k + j.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mbjax.execution.arrays import scan

from .products import matrix_vector, outer_rows, sum_over_first, transposed_matrix_vector
from .thresholds import smallest_pivots


class OrthogonalRows(NamedTuple):
    """Factors of G = C_1 C_2 Q, and the inverse squared lengths of the rows of Q, zero for dependent rows."""

    Q: Float[Array, "m n *w"]
    one_over_length2: Float[Array, "m *w"]
    columns: tuple[Float[Array, "m m *w"], Float[Array, "m m *w"]]

    @property
    def kept(self) -> Bool[Array, "m *w"]:
        return self.one_over_length2 != 0.0

    def projection(self, x: Float[Array, "n *w"]) -> Float[Array, "n *w"]:
        """Projects x onto the span of the rows."""
        return transposed_matrix_vector(self.Q, self.one_over_length2 * matrix_vector(self.Q, x))


def factor_rows(G: Float[Array, "m n *w"]) -> OrthogonalRows:
    """Orthogonalizes the rows of G in two passes; the second removes what rounding left over from the first."""
    Q, _, first = orthogonalize(G)
    Q, one_over_length2, second = orthogonalize(Q)
    return OrthogonalRows(Q, one_over_length2, (first, second))


def orthogonalize(G: Float[Array, "m n *w"]) -> tuple[Array, Array, Array]:
    """One pass of modified Gram–Schmidt: each row's direction is removed from all rows that follow."""
    smallest = smallest_pivots(sum_over_first(jnp.swapaxes(G * G, 0, 1)))

    def step(rows: Array, smallest: Array) -> tuple[Array, tuple[Array, Array, Array]]:
        q = rows[0]
        length2 = sum_over_first(q * q)
        one_over_length2 = jnp.where(length2 <= smallest, 0.0, 1.0 / length2)
        column = matrix_vector(rows, q) * one_over_length2
        q = jnp.where(length2 <= smallest, 0.0, q)
        return shift(rows - outer_rows(column, q)), (q, one_over_length2, column)

    return scan(step, G, smallest)[1] if G.shape[0] else (G, smallest, jnp.zeros((0, 0, *G.shape[2:]), G.dtype))


def point_with_products(factor: OrthogonalRows, b: Float[Array, "m *w"]) -> Float[Array, "n *w"]:
    """The shortest x with G x = b in the independent rows."""
    for columns in factor.columns:
        b = solve_lower(columns, b)
    return transposed_matrix_vector(factor.Q, factor.one_over_length2 * b)


def coefficients(factor: OrthogonalRows, f: Float[Array, "n *w"]) -> Float[Array, "m *w"]:
    """Coefficients c with Gᵀ c = f, where f lies in the span of the rows; zero for dependent rows."""
    c = factor.one_over_length2 * matrix_vector(factor.Q, f)
    for columns in reversed(factor.columns):
        c = solve_transposed_lower(columns, c)
    return c


def solve_lower(columns: Float[Array, "m m *w"], b: Float[Array, "m *w"]) -> Float[Array, "m *w"]:
    """Solves C u = b."""
    if b.shape[0] == 0:
        return b

    def step(right: Array, column: Array) -> tuple[Array, Array]:
        return shift(right - column * right[0]), right[0]

    worlds = jnp.broadcast_shapes(columns.shape[2:], b.shape[1:])
    return scan(step, jnp.broadcast_to(b, (b.shape[0], *worlds)), columns)[1]


def solve_transposed_lower(columns: Float[Array, "m m *w"], b: Float[Array, "m *w"]) -> Float[Array, "m *w"]:
    """Solves Cᵀ u = b."""
    if b.shape[0] == 0:
        return b

    def step(following: Array, x: tuple[Array, Array]) -> tuple[Array, Array]:
        column, b = x
        value = b - sum_over_first(column[1:] * following[:-1])
        return jnp.concatenate([value[None], following[:-1]]), value

    worlds = jnp.broadcast_shapes(columns.shape[2:], b.shape[1:])
    return scan(step, jnp.zeros((b.shape[0], *worlds), b.dtype), (columns, b), reverse=True)[1]


def shift(x: Float[Array, "n *rest"]) -> Float[Array, "n *rest"]:
    """Moves entries one place to the front; a zero comes in at the end."""
    return jnp.concatenate([x[1:], jnp.zeros_like(x[:1])])
