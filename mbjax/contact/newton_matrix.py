"""Solves with the Newton matrix of the discrete step, H = M + diag + Gᵀ S G with S = -dγ/d(G v).

Rows on single velocities keep the tree's sparsity, and so do contacts with bodies that do not move, as such a contact
adds to the inertia of one body. Other rows, and joints that mimic, fill H.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.dynamics import (
    ArticulatedFactor,
    ArticulatedInertia,
    calc_mass_matrix_product,
    factor_articulated_bodies,
    solve_with_factor,
)
from mbjax.dynamics.articulated_body.recursion import articulated_rows, solve_with_inertias
from mbjax.dynamics.composite_body.mass_matrix import calc_mass_matrix
from mbjax.dynamics.records.inertia_about_origin import shift_inertia_to_T
from mbjax.execution import are_world_threads_expected, dot_with_mask, in_kernels, repeat_turns
from mbjax.kinematics import MobodInertia, PositionKinematics
from mbjax.linear_algebra import (
    Parents,
    branch_rows,
    chain,
    factor_branch_rows,
    matrix_vector,
    own_places,
    paths,
    pivots_of_rows,
    solve_branch_rows,
    solve_branches,
    sum_of_outer,
)
from mbjax.spatial import component_algebra as ca
from mbjax.topology import TreeTopology, ends_of_joints, velocity_parents

from .acting_contacts import ActingRows
from .acting_matrix import calc_blocks, calc_neighbours, calc_own_blocks, solve_blocks
from .body_blocks import from_blocks, in_blocks
from .contact_hessian import (
    contact_hessian_in_tree,
    contact_hessian_of_jacobian,
    contact_hessian_of_pairs,
    inertia_of_points,
)
from .contact_jacobian import ContactJacobian
from .contact_rows import ContactRows
from .convex_problem import ConvexProblem, OfRows
from .listed_rows import ListedBodies, ListedPaths, ListedRows
from .moved_bodies import MovedBodies, over_slots, summed_kinds
from .runtime_lists import sum_in_order

DEEPEST = 10  # velocities along a path; beyond it articulated bodies are at least as fast (measured at 8, 11 and 24)

Product = Callable[[Float[Array, " nv"]], Float[Array, " nv"]]


class NewtonMatrix(NamedTuple):
    """Product (M + diag) x; from the rows' stiffness, a reusable solver b → H⁻¹ b, and H⁻¹ b in one pass."""

    inertia_product: Product
    solver: Callable[[OfRows], Product]
    solve: Callable[[OfRows, Float[Array, " nv"]], Float[Array, " nv"]]


def newton_matrix(topology: TreeTopology, problem: ConvexProblem) -> NewtonMatrix:
    """The Newton matrix, in the cheapest form that the problem's rows allow."""
    contacts = problem.contacts
    bodies = contacts.moved if isinstance(contacts, ListedRows) else contacts
    if isinstance(bodies, ActingRows | ListedBodies):
        assert problem.coupled is None
        return matrix_of_bodies(topology, problem, bodies)
    if isinstance(bodies, ListedPaths) and problem.coupled is None:
        return matrix_of_list(topology, problem, bodies)
    if topology.followers or problem.coupled is not None or not contacts_keep_the_tree(problem):
        return matrix_of_branches(topology, problem, chain(topology.num_velocities))
    parents = velocity_parents(topology)
    if paths(parents).ancestors.shape[1] > DEEPEST or are_world_threads_expected():
        return articulated_matrix(topology, problem)
    return matrix_of_branches(topology, problem, parents)


def contacts_keep_the_tree(problem: ConvexProblem) -> bool:
    """Whether the contacts keep the tree's sparsity: a single body moves at each point."""
    if not isinstance(problem.contacts, ContactRows):
        return problem.contacts is None
    moved = problem.contacts.moved
    return isinstance(moved, MovedBodies) and moved.paths.is_single


def matrix_of_bodies(topology: TreeTopology, problem: ConvexProblem, rows: ActingRows | ListedBodies) -> NewtonMatrix:
    """The Newton matrix of free bodies by blocks, of those contacts that act."""
    bodies = rows.blocks
    M, least = calc_own_blocks(topology, problem, bodies)
    neighbours = calc_neighbours(rows)
    own = np.eye(M.shape[1], dtype=bool).reshape(1, *M.shape[1:3], *(1,) * rows.num_world_axes)

    def inertia_product(x: Array) -> Array:
        return from_blocks(bodies, sum_in_order(M * in_blocks(bodies, x)[:, None], 2))

    def solver(stiffness: OfRows) -> Product:
        assert stiffness.contacts is not None
        of_box = in_blocks(bodies, calc_box_diagonal(problem, stiffness))[:, None]
        matrix = calc_blocks(rows, M + jnp.where(own, of_box, 0.0), stiffness.contacts)
        return lambda b: from_blocks(bodies, solve_blocks(rows, neighbours, *matrix, in_blocks(bodies, b), least))

    return NewtonMatrix(inertia_product, solver, lambda stiffness, b: solver(stiffness)(b))


def matrix_of_list(topology: TreeTopology, problem: ConvexProblem, listed: ListedPaths) -> NewtonMatrix:
    """The Newton matrix of trees; it is dense only while a contact that acts couples branches."""
    kinds = velocity_parents(topology), chain(topology.num_velocities)
    by_tree, dense = (matrix_of_branches(topology, problem, parents) for parents in kinds)
    couples = listed.couples_branches()

    def solve(stiffness: OfRows, b: Array) -> Array:
        x = repeat_turns(1 - couples, lambda _, x: by_tree.solve(stiffness, x), b)
        return repeat_turns(couples, lambda _, x: dense.solve(stiffness, x), x)

    return NewtonMatrix(by_tree.inertia_product, dense.solver, solve)


def articulated_matrix(topology: TreeTopology, problem: ConvexProblem) -> NewtonMatrix:
    """The Newton matrix by articulated bodies, without forming H."""
    terms = problem.terms

    def inertia_product(x: Array) -> Array:
        product = calc_mass_matrix_product(topology, terms.position, terms.inertia_W, x) + terms.diagonal * x
        return jnp.where(terms.locked, 0.0, product)

    contacts = problem.contacts.moved if isinstance(problem.contacts, ContactRows) else None
    assert contacts is None or isinstance(contacts, MovedBodies)

    def added_by(stiffness: OfRows) -> tuple[Array, Array | None]:
        diagonal = terms.diagonal + calc_box_diagonal(problem, stiffness)
        if contacts is None or stiffness.contacts is None:
            return diagonal, None
        return diagonal, over_slots(inertia_of_points(contacts.p_MC_W, stiffness.contacts), contacts.mobods)

    def factor(
        position: PositionKinematics,
        inertia_W: MobodInertia,
        locked: Array,
        diagonal: Array,
        added: Array | None,
        b: Array | None,
    ) -> tuple[ArticulatedFactor, Array | None]:
        of_mobods = None if added is None or contacts is None else inertia_of_mobods(contacts, added)
        inertia = position, inertia_W, diagonal, locked
        return factor_articulated_bodies(topology, *inertia, b, added=of_mobods, base_together=True)

    def solver(stiffness: OfRows) -> Product:
        found, _ = factor(*of_terms, *added_by(stiffness), None)
        return lambda b: solve_with_factor(topology, found, b)

    of_terms = terms.position, terms.inertia_W, terms.locked
    rows = articulated_rows(topology, terms.position, terms.inertia_W)

    def by_recursion(rows: tuple, terms: tuple, diagonal: Array, added: Array | None, b: Array) -> Array:
        (hinge, inertia), (_, _, locked) = rows, terms
        if added is not None and contacts is not None:
            inertia = inertia + inertia_of_directions(contacts, added)
        return solve_with_inertias(topology, hinge, inertia, jnp.where(locked, jnp.inf, diagonal), b)

    def by_matrices(_: tuple, terms: tuple, diagonal: Array, added: Array | None, b: Array) -> Array | None:
        position, inertia_W, locked = terms
        return factor(position, inertia_W, locked, diagonal, added, b)[1]

    def solve(stiffness: OfRows, b: Array) -> Array:
        return in_kernels(by_recursion, by_matrices, rows, of_terms, *added_by(stiffness), b)

    return NewtonMatrix(inertia_product, solver, solve)


def inertia_of_mobods(moved: MovedBodies, added: Float[Array, "21 k"]) -> ArticulatedInertia:
    """Inertias that the points' stiffness (impulse per velocity change) adds to the mobods, about their origins Mo."""
    rows = dot_with_mask(added, summed_kinds(moved.mobods)[:, None] == np.arange(len(moved.topology.parents)), 1)
    H = rows[6:15].reshape(3, 3, *rows.shape[1:])
    return ArticulatedInertia(ca.symmetric_matrix(rows[:6]), H, ca.symmetric_matrix(rows[15:]))


def inertia_of_directions(moved: MovedBodies, added: Float[Array, "21 k"]) -> Float[Array, "nd 21"]:
    """Inertias that the points' stiffness adds to the mobods, as rows at the last direction of each joint."""
    topology = moved.topology
    is_last = ends_of_joints(topology)[1]
    mobods = np.where(is_last, topology.velocity_mobods, -1)
    return jnp.swapaxes(dot_with_mask(added, summed_kinds(moved.mobods)[:, None] == mobods, 1), 0, 1)


def matrix_of_branches(topology: TreeTopology, problem: ConvexProblem, parents: Parents) -> NewtonMatrix:
    """The Newton matrix by factoring H itself, with entries along the paths of a tree; a chain makes it dense.

    The rows add a positive semidefinite matrix, so no pivot is less than that of M alone, however stiff the rows. The
    factorization enforces that bound, as rounding would make a pivot negative where a heavy body squeezes a light one.
    """
    terms = problem.terms
    free = ~terms.locked
    M = calc_mass_matrix(topology, terms.position, shift_inertia_to_T(terms.position, terms.inertia_W), terms.diagonal)
    M = jnp.where(free[:, None] & free[None], M, 0.0)
    rows_of_M = branch_rows(parents, M + on_diagonal(jnp.where(free, 0.0, 1.0)))
    least = pivots_of_rows(parents, rows_of_M)
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
    """Stiffness of the contacts → the branch rows that they add to H."""
    if isinstance(problem.contacts, ListedRows):
        listed = problem.contacts.moved
        assert isinstance(listed, ListedPaths)
        return lambda G: branch_rows(parents, listed.hessian(G))
    if not isinstance(problem.contacts, ContactRows):
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
    """The diagonal that box rows, each on a single velocity, add to H."""
    if problem.box is None or stiffness.box is None:
        return jnp.zeros_like(problem.v)
    return problem.box.generalized(problem.box.times_gains(stiffness.box), problem.v.shape[0])


def on_diagonal(x: Float[Array, "n *w"]) -> Float[Array, "n n *w"]:
    """The diagonal matrix of x."""
    own = np.eye(x.shape[0], dtype=bool).reshape(x.shape[0], -1, *(1 for _ in x.shape[1:]))
    return jnp.where(own, x[None], 0.0)
