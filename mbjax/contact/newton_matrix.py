"""The matrix of the step's equation, H = M + diag + Gᵀ S G with S = -dγ/d(G v): its factor.

Rows that act on single velocities, and contacts with what does not move, keep the tree's sparsity: such a contact adds
to the inertia of one body, and articulated bodies solve the system. Other rows, and joints that mimic, fill H.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.dynamics import (
    ArticulatedInertia,
    calc_articulated_factor,
    calc_mass_matrix_product,
    shift_inertia,
    solve_with_factor,
)
from mbjax.dynamics.mass_matrix import calc_mass_matrix
from mbjax.linear_algebra import (
    chain,
    factor_branches,
    matrix_vector,
    solve_branches,
    sum_of_outer,
)
from mbjax.spatial import component_algebra as ca
from mbjax.topology import TreeTopology, dot_with_mask

from .contact_rows import ContactRows, MovedBodies
from .convex_problem import ConvexProblem, OfRows

Product = Callable[[Float[Array, " nv"]], Float[Array, " nv"]]


class NewtonMatrix(NamedTuple):
    """x → (M + diag) x, and by the motion of the rows the solver b → H⁻¹ b."""

    inertia_product: Product
    solver: Callable[[OfRows], Product]


def newton_matrix(topology: TreeTopology, problem: ConvexProblem) -> NewtonMatrix:
    """In the form that the problem's rows allow."""
    contacts = problem.contacts
    if topology.followers or problem.coupled is not None or (contacts is not None and contacts.moved is None):
        return dense_matrix(topology, problem)
    return matrix_in_tree(topology, problem)


def matrix_in_tree(topology: TreeTopology, problem: ConvexProblem) -> NewtonMatrix:
    """By articulated bodies."""
    terms = problem.terms

    def inertia_product(x: Array) -> Array:
        product = calc_mass_matrix_product(topology, terms.motion, x) + terms.diagonal * x
        return jnp.where(terms.locked, 0.0, product)

    def solver(motion: OfRows) -> Product:
        diagonal, added = terms.diagonal + calc_box_slopes(problem, motion), None
        if problem.contacts is not None and problem.contacts.moved is not None and motion.contacts is not None:
            stiffness = problem.contacts.stiffness(motion.contacts)
            added = calc_added_inertia(problem.contacts.moved, stiffness, len(topology.parents))
        factor = calc_articulated_factor(topology, terms.position, terms.inertia_W, diagonal, terms.locked, added)
        return lambda b: solve_with_factor(topology, factor, b)

    return NewtonMatrix(inertia_product, solver)


def calc_added_inertia(moved: MovedBodies, G: Float[Array, "3 3 m"], num_mobods: int) -> ArticulatedInertia:
    """What stiffness at points, times a velocity change an impulse, adds to the mobods' inertias about their Mo."""
    zero = jnp.zeros_like(G)
    parts = shift_inertia(ArticulatedInertia(zero, zero, G), moved.p_MC_W)
    rows = ca.concatenate([part.reshape(9, *part.shape[2:]) for part in parts], 0)
    rows = dot_with_mask(rows, np.array(moved.mobods)[:, None] == np.arange(num_mobods), 1)
    return ArticulatedInertia(*(rows[k : k + 9].reshape(3, 3, *rows.shape[1:]) for k in (0, 9, 18)))


def dense_matrix(topology: TreeTopology, problem: ConvexProblem) -> NewtonMatrix:
    """By Cholesky's factor of the whole matrix.

    What rows add is positive semidefinite, so no pivot is less than that of M alone, however stiff the rows: rounding
    would make it negative where a light body is squeezed by a heavy one.
    """
    terms = problem.terms
    n = terms.tau.shape[0]
    free = ~terms.locked
    both_free = free[:, None] & free[None]
    M = jnp.where(both_free, calc_mass_matrix(topology, terms.position, terms.inertia_W, terms.diagonal), 0.0)
    of_locked = jnp.where(free, 0.0, 1.0)
    least = 1.0 / factor_branches(chain(n), M + on_diagonal(of_locked))[0].one_over_D

    def solver(motion: OfRows) -> Product:
        slopes = on_diagonal(calc_box_slopes(problem, motion))
        if problem.coupled is not None:
            columns = problem.coupled.G
            slopes = slopes + sum_of_outer(columns * problem.coupled.stiffness[:, None], columns)
        if problem.contacts is not None and motion.contacts is not None:
            slopes = slopes + calc_contact_hessian(problem.contacts, problem.contacts.stiffness(motion.contacts))
        H = jnp.where(both_free, M + slopes, on_diagonal(of_locked))
        factor = factor_branches(chain(n), H, least=least)[0]
        return lambda b: solve_branches(chain(n), factor, b)

    return NewtonMatrix(lambda x: matrix_vector(M, x), solver)


def calc_box_slopes(problem: ConvexProblem, motion: OfRows) -> Float[Array, " nv"]:
    """The diagonal that rows of single velocities add."""
    if problem.box is None or motion.box is None:
        return jnp.zeros_like(problem.v)
    return problem.box.generalized(problem.box.times_gains(problem.box.slope(motion.box)), problem.v.shape[0])


def calc_contact_hessian(contacts: ContactRows, G: Float[Array, "3 3 m"]) -> Float[Array, "nv nv"]:
    """Σ Jᵀ G J over the points."""
    J = contacts.J
    x, y, z = (G[:, k, :, None] * J[k][None] for k in range(3))
    GJ = x + y + z
    GJ, J = (rows.reshape(3 * rows.shape[1], *rows.shape[2:]) for rows in (GJ, J))
    return sum_of_outer(GJ, J)


def on_diagonal(x: Float[Array, "n *w"]) -> Float[Array, "n n *w"]:
    """The diagonal matrix of x."""
    own = np.eye(x.shape[0], dtype=bool).reshape(x.shape[0], -1, *(1 for _ in x.shape[1:]))
    return jnp.where(own, x[None], 0.0)
