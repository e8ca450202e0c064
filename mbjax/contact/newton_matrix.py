"""The matrix of the step's equation, H = M + diag + Gᵀ S G with S = -dγ/d(G v): its factor.

Rows that act on single velocities, and contacts with what does not move, keep the tree's sparsity: such a contact adds
to the inertia of one body. Other rows, and joints that mimic, fill H.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.dynamics import (
    ArticulatedInertia,
    calc_mass_matrix_product,
    factor_articulated_bodies,
    solve_with_factor,
)
from mbjax.dynamics.inertia_about_origin import shift_inertia_to_T
from mbjax.dynamics.mass_matrix import calc_mass_matrix
from mbjax.linear_algebra import (
    Parents,
    branch_rows,
    chain,
    factor_branch_rows,
    matrix_vector,
    own_places,
    paths,
    solve_branch_rows,
    solve_branches,
    sum_of_outer,
)
from mbjax.spatial import component_algebra as ca
from mbjax.topology import TreeTopology, dot_with_mask, velocity_parents

from .contact_hessian import (
    contact_hessian_in_tree,
    contact_hessian_of_jacobian,
    contact_hessian_of_pairs,
    inertia_of_points,
)
from .contact_jacobian import ContactJacobian
from .convex_problem import ConvexProblem, OfRows
from .moved_bodies import MovedBodies, over_slots, summed_kinds

DEEPEST = 10  # velocities along a path: above, articulated bodies are at least as fast (measured at 8, 11 and 24)

Product = Callable[[Float[Array, " nv"]], Float[Array, " nv"]]


class NewtonMatrix(NamedTuple):
    """x → (M + diag) x; by the stiffness of the rows, the solver b → H⁻¹ b, and H⁻¹ b at once."""

    inertia_product: Product
    solver: Callable[[OfRows], Product]
    solve: Callable[[OfRows, Float[Array, " nv"]], Float[Array, " nv"]]


def newton_matrix(topology: TreeTopology, problem: ConvexProblem) -> NewtonMatrix:
    """In the form that the problem's rows allow."""
    if topology.followers or problem.coupled is not None or not contacts_keep_the_tree(problem):
        return matrix_of_branches(topology, problem, chain(topology.num_velocities))
    parents = velocity_parents(topology)
    if paths(parents).ancestors.shape[1] > DEEPEST:
        return articulated_matrix(topology, problem)
    return matrix_of_branches(topology, problem, parents)


def contacts_keep_the_tree(problem: ConvexProblem) -> bool:
    """Whether one body alone moves at each point."""
    if problem.contacts is None:
        return True
    moved = problem.contacts.moved
    return isinstance(moved, MovedBodies) and moved.paths.is_single


def articulated_matrix(topology: TreeTopology, problem: ConvexProblem) -> NewtonMatrix:
    """By articulated bodies."""
    terms = problem.terms

    def inertia_product(x: Array) -> Array:
        product = calc_mass_matrix_product(topology, terms.position, terms.inertia_W, x) + terms.diagonal * x
        return jnp.where(terms.locked, 0.0, product)

    def factor_by(stiffness: OfRows, b: Array | None) -> tuple:
        diagonal, added = terms.diagonal + calc_box_diagonal(problem, stiffness), None
        if problem.contacts is not None and stiffness.contacts is not None:
            assert isinstance(problem.contacts.moved, MovedBodies)
            added = calc_added_inertia(problem.contacts.moved, stiffness.contacts)
        of_terms = terms.position, terms.inertia_W, diagonal, terms.locked, b
        return factor_articulated_bodies(topology, *of_terms, added, base_together=True)

    def solver(stiffness: OfRows) -> Product:
        factor, _ = factor_by(stiffness, None)
        return lambda b: solve_with_factor(topology, factor, b)

    return NewtonMatrix(inertia_product, solver, lambda stiffness, b: factor_by(stiffness, b)[1])


def calc_added_inertia(moved: MovedBodies, G: Float[Array, "6 m"]) -> ArticulatedInertia:
    """What stiffness at points, times a velocity change an impulse, adds to the mobods' inertias about their Mo."""
    rows = over_slots(inertia_of_points(moved.p_MC_W, G), moved.mobods)
    rows = dot_with_mask(rows, summed_kinds(moved.mobods)[:, None] == np.arange(len(moved.topology.parents)), 1)
    H = rows[6:15].reshape(3, 3, *rows.shape[1:])
    return ArticulatedInertia(ca.symmetric_matrix(rows[:6]), H, ca.symmetric_matrix(rows[15:]))


def matrix_of_branches(topology: TreeTopology, problem: ConvexProblem, parents: Parents) -> NewtonMatrix:
    """By the factor of the matrix itself, whose entries lie along the paths of a tree; a chain is a dense one.

    What rows add is positive semidefinite, so no pivot is less than that of M alone, however stiff the rows: rounding
    would make it negative where a light body is squeezed by a heavy one.
    """
    terms = problem.terms
    free = ~terms.locked
    M = calc_mass_matrix(topology, terms.position, shift_inertia_to_T(terms.position, terms.inertia_W), terms.diagonal)
    M = jnp.where(free[:, None] & free[None], M, 0.0)
    rows_of_M = branch_rows(parents, M + on_diagonal(jnp.where(free, 0.0, 1.0)))
    least = 1.0 / factor_branch_rows(parents, rows_of_M)[0].one_over_D
    is_slope = own_places(parents, free.ndim - 1) & free[:, None]
    rows_of_contacts = contact_rows_by_stiffness(problem, parents)

    def rows(stiffness: OfRows) -> Float[Array, "nv depth"]:
        total = rows_of_M + jnp.where(is_slope, calc_box_diagonal(problem, stiffness)[:, None], 0.0)
        if problem.coupled is not None:
            G = jnp.where(free, problem.coupled.G, 0.0)
            total = total + branch_rows(parents, sum_of_outer(G * problem.coupled.stiffness[:, None], G))
        if stiffness.contacts is not None:
            total = total + rows_of_contacts(stiffness.contacts)
        return total

    def solver(stiffness: OfRows) -> Product:
        factor, _ = factor_branch_rows(parents, rows(stiffness), least=least)
        return lambda b: solve_branches(parents, factor, b)

    def solve(stiffness: OfRows, b: Array) -> Array:
        return solve_branch_rows(parents, rows(stiffness), b, least)

    return NewtonMatrix(lambda x: matrix_vector(M, x), solver, solve)


def contact_rows_by_stiffness(
    problem: ConvexProblem, parents: Parents
) -> Callable[[Float[Array, "6 m"]], Float[Array, "nv depth"]]:
    """What contacts add, by their stiffness."""
    if problem.contacts is None:
        return lambda G: jnp.zeros((), G.dtype)
    moved = problem.contacts.moved
    if isinstance(moved, ContactJacobian):
        hessian = contact_hessian_of_jacobian(moved)
    elif parents == chain(len(parents)):
        hessian = contact_hessian_of_pairs(moved)
    else:
        return contact_hessian_in_tree(moved, parents)
    return lambda G: branch_rows(parents, hessian(G))


def calc_box_diagonal(problem: ConvexProblem, stiffness: OfRows) -> Float[Array, " nv"]:
    """The diagonal that rows of single velocities add."""
    if problem.box is None or stiffness.box is None:
        return jnp.zeros_like(problem.v)
    return problem.box.generalized(problem.box.times_gains(stiffness.box), problem.v.shape[0])


def on_diagonal(x: Float[Array, "n *w"]) -> Float[Array, "n n *w"]:
    """The diagonal matrix of x."""
    own = np.eye(x.shape[0], dtype=bool).reshape(x.shape[0], -1, *(1 for _ in x.shape[1:]))
    return jnp.where(own, x[None], 0.0)
