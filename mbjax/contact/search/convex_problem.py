"""The equation of a discrete step: momentum balance with forces that depend on the velocity at its end.

    (M + diag) vdot + bias = tau + Gᵀ γ(G v⁺) / dt        v⁺ = v + dt vdot

Every row's impulse γ is minus the gradient of a convex function of its velocity, so the equation is that of a
minimum, and its solution unique (Castro et al. 2022, arXiv 2110.10107).
"""

import dataclasses
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.dynamics import ForwardDynamicsTerms, calc_inverse_dynamics
from mbjax.execution.arrays import sum_over_axis
from mbjax.linear_algebra import matrix_vector, transposed_matrix_vector
from mbjax.topology import TreeTopology

from ..forms.abstract_form import AbstractContactForm
from ..forms.choose import matrix_without_contacts
from ..newton.newton_matrix import NewtonMatrix
from ..rows.rows_of_step import OfRows, OtherRows


class ConvexProblem(eqx.Module):
    """The convex problem whose minimum is the step's acceleration; `contacts` is None where nothing may touch."""

    terms: ForwardDynamicsTerms
    v: Float[Array, " nv"]  # at the start of the step
    time_step: Float[Array, ""]
    others: OtherRows
    contacts: AbstractContactForm | None

    def newton_matrix(self, topology: TreeTopology) -> NewtonMatrix:
        """The Newton matrix of all rows, which the contacts bring; without contacts, that of the other rows."""
        if self.contacts is None:
            return matrix_without_contacts(topology, self.terms, self.others)
        return self.contacts.newton_matrix(topology, self.terms, self.others)


def calc_row_motion(problem: ConvexProblem, vdot: Float[Array, " nv"]) -> OfRows:
    """G dv, the change of each row's velocity over the step; linear in vdot."""
    dv = problem.time_step * vdot
    box, coupled, contacts = problem.others.box, problem.others.coupled, problem.contacts
    return OfRows(
        None if box is None else box.motion(dv),
        None if coupled is None else matrix_vector(coupled.G, dv),
        None if contacts is None else contacts.motion(dv),
    )


def calc_impulses(problem: ConvexProblem, motion: OfRows) -> OfRows:
    """Impulses γ of all rows over the step."""
    box, coupled, contacts = problem.others.box, problem.others.coupled, problem.contacts
    return OfRows(
        None if box is None or motion.box is None else box.impulse(motion.box),
        None if coupled is None or motion.coupled is None else coupled.impulse(motion.coupled),
        None if contacts is None or motion.contacts is None else contacts.impulse(motion.contacts),
    )


def calc_stiffness(problem: ConvexProblem, motion: OfRows) -> OfRows:
    """-dγ / d motion, where it depends on the motion: one number of a box row, six of a contact."""
    box, contacts = problem.others.box, problem.contacts
    return OfRows(
        None if box is None or motion.box is None else box.slope(motion.box),
        None,
        None if contacts is None or motion.contacts is None else contacts.stiffness(motion.contacts),
    )


def calc_laws_at_start(problem: ConvexProblem, motion: OfRows) -> list[tuple[OfRows, OfRows]]:
    """Impulses and stiffness as if all contacts would stick; beside them those by law where contacts start at rest."""
    contacts, others = problem.contacts, dataclasses.replace(problem, contacts=None)
    impulses, stiffness = calc_impulses(others, motion), calc_stiffness(others, motion)
    if contacts is None or motion.contacts is None:
        return [(impulses, stiffness)]
    if contacts.starts_at_rest:
        of_contacts = contacts.both_laws(motion.contacts)
    else:
        of_contacts = (contacts.sticking_law(motion.contacts),)
    return [
        (dataclasses.replace(impulses, contacts=impulse), dataclasses.replace(stiffness, contacts=of_points))
        for impulse, of_points in of_contacts
    ]


def calc_row_forces(problem: ConvexProblem, impulses: OfRows) -> Float[Array, " nv"]:
    """Generalized forces Gᵀ γ / dt of all rows."""
    total = jnp.zeros((), problem.v.dtype)
    box, coupled, contacts = problem.others.box, problem.others.coupled, problem.contacts
    if box is not None and impulses.box is not None:
        total = total + box.generalized(impulses.box, problem.v.shape[0])
    if coupled is not None and impulses.coupled is not None:
        total = total + transposed_matrix_vector(coupled.G, impulses.coupled)
    if contacts is not None and impulses.contacts is not None:
        total = total + contacts.generalized(impulses.contacts)
    return total / problem.time_step


def row_power_along(problem: ConvexProblem, motion: OfRows, d: OfRows) -> Callable[[Array], Float[Array, "2"]]:
    """s → x · Gᵀ γ(motion + s d) / dt and its derivative, where d = dt G x is the motion of the rows along x."""
    box, coupled, contacts = problem.others.box, problem.others.coupled, problem.contacts
    of_contacts = None
    if contacts is not None and motion.contacts is not None and d.contacts is not None:
        of_contacts = contacts.power_along(motion.contacts, d.contacts)

    def power(s: Array) -> Float[Array, "2"]:
        total = jnp.zeros((2, *(1,) * s.ndim), problem.v.dtype)
        if box is not None and motion.box is not None and d.box is not None:
            at = motion.box + s * d.box
            total = total + sum_over_axis(jnp.stack([box.impulse(at) * d.box, -box.slope(at) * d.box * d.box]), 1)
        if coupled is not None and motion.coupled is not None and d.coupled is not None:
            impulse = coupled.impulse(motion.coupled + s * d.coupled)
            rate = -coupled.stiffness * d.coupled * d.coupled
            total = total + sum_over_axis(jnp.stack([impulse * d.coupled, rate]), 1)
        if of_contacts is not None:
            total = total + sum_over_axis(of_contacts(s), 1)
        return total / (problem.time_step * problem.time_step)

    return power


def calc_problem_residual(
    topology: TreeTopology, problem: ConvexProblem, vdot: Float[Array, " nv"]
) -> Float[Array, " nv"]:
    """Residual at vdot: forces required less forces that act; a locked velocity has the equation vdot = 0."""
    terms = problem.terms
    free = jnp.where(terms.locked, 0.0, vdot)
    required = calc_inverse_dynamics(terms.motion, free, terms.F_applied_T) + terms.diagonal * free
    motion = calc_row_motion(problem, free)
    return jnp.where(
        terms.locked, vdot, required - terms.tau - calc_row_forces(problem, calc_impulses(problem, motion))
    )
