"""The Newton matrix by articulated bodies, without forming it: the recursion of forward dynamics, as rows on single
velocities add to the diagonal, and contacts with what never moves to the inertias of bodies."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.dynamics import (
    ArticulatedFactor,
    ArticulatedInertia,
    ForwardDynamicsTerms,
    calc_mass_matrix_product,
    factor_articulated_bodies,
    solve_with_factor,
)
from mbjax.dynamics.articulated_body.recursion import articulated_rows, solve_with_inertias
from mbjax.execution import in_kernels
from mbjax.execution.arrays import dot_with_mask
from mbjax.kinematics import MobodInertia, PositionKinematics
from mbjax.spatial import component_algebra as ca
from mbjax.topology import TreeTopology, ends_of_joints

from ..movers.moved_bodies import MovedBodies, over_slots, summed_kinds
from ..rows.rows_of_step import OfRows, OtherRows, calc_box_diagonal
from .contact_hessian import inertia_of_points
from .newton_matrix import NewtonMatrix, Product


def articulated_matrix(
    topology: TreeTopology, terms: ForwardDynamicsTerms, others: OtherRows, contacts: MovedBodies | None
) -> NewtonMatrix:
    """The Newton matrix by articulated bodies, of a step without constraints."""

    def inertia_product(x: Array) -> Array:
        product = calc_mass_matrix_product(topology, terms.position, terms.inertia_W, x) + terms.diagonal * x
        return jnp.where(terms.locked, 0.0, product)

    def added_by(stiffness: OfRows) -> tuple[Array, Array | None]:
        diagonal = terms.diagonal + calc_box_diagonal(others, stiffness, terms.v)
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
