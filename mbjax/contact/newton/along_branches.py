"""The Newton matrix by factoring it, with entries along the paths of a tree; a chain makes it dense."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.dynamics import ForwardDynamicsTerms
from mbjax.dynamics.composite_body.mass_matrix import calc_mass_matrix
from mbjax.dynamics.records.inertia_about_origin import shift_inertia_to_T
from mbjax.linear_algebra import (
    Parents,
    branch_rows,
    factor_branch_rows,
    matrix_vector,
    own_places,
    pivots_of_rows,
    solve_branch_rows,
    solve_branches,
    sum_of_outer,
)
from mbjax.topology import TreeTopology

from ..rows.rows_of_step import OfRows, OtherRows, calc_box_diagonal
from .newton_matrix import NewtonMatrix, Product

RowsByStiffness = Callable[[Float[Array, "6 m"]], Float[Array, "nv depth"]]


def matrix_along_branches(
    topology: TreeTopology,
    terms: ForwardDynamicsTerms,
    others: OtherRows,
    parents: Parents,
    rows_of_contacts: RowsByStiffness | None,
) -> NewtonMatrix:
    """The Newton matrix by factoring its rows along the branches of a tree, `rows_of_contacts` among them.

    The rows add a positive semidefinite matrix, so no pivot is less than that of M alone, however stiff the rows. The
    factorization enforces that bound, as rounding would make a pivot negative where a heavy body squeezes a light one.
    """
    free = ~terms.locked
    M = mass_matrix_of(topology, terms)
    M = jnp.where(free[:, None] & free[None], M, 0.0)
    rows_of_M = branch_rows(parents, M + on_diagonal(jnp.where(free, 0.0, 1.0)))
    least = pivots_of_rows(parents, rows_of_M)
    is_slope = own_places(parents, free.ndim - 1) & free[:, None]

    def rows(stiffness: OfRows) -> Float[Array, "nv depth"]:
        total = rows_of_M + jnp.where(is_slope, calc_box_diagonal(others, stiffness, terms.v)[:, None], 0.0)
        if others.coupled is not None:
            G = jnp.where(free, others.coupled.G, 0.0)
            total = total + branch_rows(parents, sum_of_outer(G * others.coupled.stiffness[:, None], G))
        if rows_of_contacts is not None and stiffness.contacts is not None:
            total = total + rows_of_contacts(stiffness.contacts)
        return total

    def solver(stiffness: OfRows) -> Product:
        factor, _ = factor_branch_rows(parents, rows(stiffness), least=least)
        return lambda b: solve_branches(parents, factor, b)

    def solve(stiffness: OfRows, b: Array) -> Array:
        return solve_branch_rows(parents, rows(stiffness), b, least)

    return NewtonMatrix(lambda x: matrix_vector(M, x), solver, solve)


def mass_matrix_of(topology: TreeTopology, terms: ForwardDynamicsTerms) -> Float[Array, "nv nv"]:
    """M + diag of the terms."""
    if terms.M is not None:
        return terms.M + on_diagonal(terms.diagonal)
    inertia_T = shift_inertia_to_T(terms.position, terms.inertia_W)
    return calc_mass_matrix(topology, terms.position, inertia_T, terms.diagonal)


def on_diagonal(x: Float[Array, "n *w"]) -> Float[Array, "n n *w"]:
    """The diagonal matrix of x."""
    own = np.eye(x.shape[0], dtype=bool).reshape(x.shape[0], -1, *(1 for _ in x.shape[1:]))
    return jnp.where(own, x[None], 0.0)
