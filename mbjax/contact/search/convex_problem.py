"""The equation of a discrete step: momentum balance with forces that depend on the velocity at its end.

    (M + diag) vdot + bias = tau + Gᵀ γ(G v⁺) / dt        v⁺ = v + dt vdot

Every row's impulse γ is minus the gradient of a convex function of its velocity, so the equation is that of a
minimum, and its solution unique (Castro et al. 2022, arXiv 2110.10107).

Where deformable bodies touch, the unknown vdot is followed by the accelerations of their nodes beyond the free motion,
dt T a = Jᵀ γ / dt (`nodes/nodes_of_step.py`).
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mbjax.dynamics import ForwardDynamicsTerms, calc_force_at_rest, calc_inverse_dynamics
from mbjax.dynamics.composite_body.mass_matrix_diagonal import calc_mass_matrix_diagonal
from mbjax.execution.arrays import sum_over_axis
from mbjax.linear_algebra import matrix_vector, transposed_matrix_vector
from mbjax.topology import TreeTopology

from ..forms.abstract_form import AbstractContactForm, AbstractDenseForm
from ..forms.choose import matrix_without_contacts
from ..laws.abstract_law import LawBefore
from ..newton.newton_matrix import NewtonMatrix
from ..newton.with_nodes import matrix_with_nodes
from ..nodes.nodes_of_step import NodesOfProblem
from ..rows.rows_of_step import OfNodes, OfRows, OtherRows


class ConvexProblem(eqx.Module):
    """The convex problem whose minimum is the step's acceleration; `contacts` is None where nothing may touch."""

    terms: ForwardDynamicsTerms
    v: Float[Array, " nv"]  # at the start of the step
    time_step: Float[Array, ""]
    others: OtherRows
    contacts: AbstractContactForm | None
    nodes: NodesOfProblem | None = None

    def apart(self, x: Float[Array, " k"]) -> tuple[Float[Array, " nv"], Float[Array, "n 3"]]:
        """The parts of an unknown, or of a force: those of the bodies, and those of the nodes."""
        nv = self.v.shape[0]
        return x[:nv], x[nv:].reshape(-1, 3)

    def with_nodes(self, of_bodies: Float[Array, " nv"], of_nodes: Callable[[NodesOfProblem], Array]) -> Array:
        """What `of_nodes` returns after what is of the bodies, if the problem has nodes."""
        if self.nodes is None:
            return of_bodies
        return jnp.concatenate([of_bodies, of_nodes(self.nodes).reshape(-1)])

    @property
    def start(self) -> Float[Array, " k"]:
        """Velocities whose change is looked for: those of the bodies at the step's start, of nodes in free motion."""
        return self.with_nodes(self.v, lambda nodes: nodes.v_free)

    @property
    def applied(self) -> Float[Array, " k"]:
        """Forces that act at rest; none on nodes, whose free motion has them."""
        return self.with_nodes(calc_force_at_rest(self.terms), lambda nodes: jnp.zeros_like(nodes.v_free))

    @property
    def inertia(self) -> Float[Array, " k"]:
        """The diagonal of M + diag, and of dt T."""
        terms = self.terms
        of_bodies = calc_mass_matrix_diagonal(terms.motion, terms.diagonal, terms.M)
        return self.with_nodes(of_bodies, lambda nodes: nodes.inertia.diagonal())

    @property
    def locked(self) -> Bool[Array, " k"]:
        """Mask of the velocities that cannot change. Contacts do not reach nodes that a wall holds."""
        return self.with_nodes(self.terms.locked, lambda nodes: jnp.zeros(nodes.v_free.shape, bool))

    def newton_matrix(self, topology: TreeTopology) -> NewtonMatrix:
        """The Newton matrix of all rows, which the contacts bring; without contacts, that of the other rows."""
        if self.nodes is not None:
            assert self.contacts is None or isinstance(self.contacts, AbstractDenseForm)
            hessian = None if self.contacts is None else self.contacts.hessian()
            return matrix_with_nodes(topology, self.terms, self.others, hessian, self.nodes)
        if self.contacts is None:
            return matrix_without_contacts(topology, self.terms, self.others)
        return self.contacts.newton_matrix(topology, self.terms, self.others)


def calc_row_motion(problem: ConvexProblem, vdot: Float[Array, " nv"]) -> OfRows:
    """G dv, the change of each row's velocity over the step; linear in vdot."""
    dv, of_nodes = problem.time_step * vdot, None
    if problem.nodes is not None:
        dv, dv_nodes = problem.apart(dv)
        of_nodes = problem.nodes.motion(dv, dv_nodes)
    box, coupled, contacts = problem.others.box, problem.others.coupled, problem.contacts
    return OfRows(
        None if box is None else box.motion(dv),
        None if coupled is None else matrix_vector(coupled.G, dv),
        None if contacts is None else contacts.motion(dv),
        of_nodes,
    )


def calc_impulses(problem: ConvexProblem, motion: OfRows) -> OfRows:
    """Impulses γ of all rows over the step."""
    box, coupled, contacts = problem.others.box, problem.others.coupled, problem.contacts
    return OfRows(
        None if box is None or motion.box is None else box.impulse(motion.box),
        None if coupled is None or motion.coupled is None else coupled.impulse(motion.coupled),
        None if contacts is None or motion.contacts is None else contacts.impulse(motion.contacts),
        None if problem.nodes is None or motion.nodes is None else problem.nodes.impulse(motion.nodes),
    )


def calc_stiffness(problem: ConvexProblem, motion: OfRows) -> OfRows:
    """-dγ / d motion, where it depends on the motion: one number of a box row, six of a contact."""
    box, contacts = problem.others.box, problem.contacts
    return OfRows(
        None if box is None or motion.box is None else box.slope(motion.box),
        None,
        None if contacts is None or motion.contacts is None else contacts.stiffness(motion.contacts),
        None if problem.nodes is None or motion.nodes is None else problem.nodes.stiffness(motion.nodes),
    )


class LinearLaws(NamedTuple):
    """Impulses and stiffness of all rows at one motion: γ - S x is the linear law of a motion x further."""

    impulses: OfRows
    stiffness: OfRows

    def of_points(self) -> "LinearLaws":
        """The laws of which an iteration reads the impulses: those of contacts, of bodies and of nodes."""
        nodes = self.impulses.nodes
        points = OfRows(None, None, self.impulses.contacts, None if nodes is None else OfNodes(nodes.contacts, None))
        return LinearLaws(points, self.stiffness)


def calc_linear_laws(problem: ConvexProblem, motion: OfRows, before: LinearLaws, change: OfRows) -> LinearLaws:
    """The laws of a search's iteration at this motion, from those of the one before and the change since.

    The impulses and the stiffness of box and coupled rows are exact. The stiffness of contacts has the direction of
    friction that the laws before predict (`AbstractContactLaw.linear_law`).
    """
    contacts, nodes = problem.contacts, problem.nodes
    others = dataclasses.replace(problem, contacts=None, nodes=None)
    impulses, stiffness = calc_impulses(others, motion), calc_stiffness(others, motion)

    def law_before(of_kind: Callable[[OfRows], Any]) -> LawBefore:
        return LawBefore(of_kind(before.impulses), of_kind(before.stiffness), of_kind(change))

    if contacts is not None and motion.contacts is not None:
        of_points = contacts.linear_law(motion.contacts, law_before(lambda rows: rows.contacts))
        impulses, stiffness = with_both((impulses, stiffness), of_points, "contacts")
    if nodes is not None and motion.nodes is not None:
        of_points = nodes.linear_law(motion.nodes, law_before(lambda rows: rows.nodes and rows.nodes.contacts))
        impulses, stiffness = with_both((impulses, stiffness), of_points, "nodes")
    return LinearLaws(impulses, stiffness)


def with_both(rows: tuple[OfRows, OfRows], of_kind: tuple, kind: str) -> tuple[OfRows, OfRows]:
    """Impulses and stiffness of all rows, with those of one kind in their place."""
    impulses, stiffness = (dataclasses.replace(x, **{kind: y}) for x, y in zip(rows, of_kind, strict=True))
    return impulses, stiffness


def calc_laws_at_start(problem: ConvexProblem, motion: OfRows) -> list[LinearLaws]:
    """The laws as if all contacts would stick; beside them those by law where contacts start at rest."""
    contacts, nodes = problem.contacts, problem.nodes
    others = dataclasses.replace(problem, contacts=None, nodes=None)
    rows = calc_impulses(others, motion), calc_stiffness(others, motion)
    if nodes is not None and motion.nodes is not None:
        rows = with_both(rows, nodes.sticking_law(motion.nodes), "nodes")
    if contacts is None or motion.contacts is None:
        return [LinearLaws(*rows)]
    if contacts.starts_at_rest:
        of_contacts = contacts.both_laws(motion.contacts)
    else:
        of_contacts = (contacts.sticking_law(motion.contacts),)
    return [LinearLaws(*with_both(rows, of_points, "contacts")) for of_points in of_contacts]


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
    if problem.nodes is None or impulses.nodes is None:
        return total / problem.time_step
    on_bodies, on_nodes = problem.nodes.generalized(impulses.nodes)
    return jnp.concatenate([total + on_bodies, on_nodes.reshape(-1)]) / problem.time_step


def row_power_along(problem: ConvexProblem, motion: OfRows, d: OfRows) -> Callable[[Array], Float[Array, "2"]]:
    """s → x · Gᵀ γ(motion + s d) / dt and its derivative, where d = dt G x is the motion of the rows along x."""
    box, coupled, contacts = problem.others.box, problem.others.coupled, problem.contacts
    of_contacts = None
    if contacts is not None and motion.contacts is not None and d.contacts is not None:
        of_contacts = contacts.power_along(motion.contacts, d.contacts)
    of_nodes = None
    if problem.nodes is not None and motion.nodes is not None and d.nodes is not None:
        of_nodes = problem.nodes.power_along(motion.nodes, d.nodes)

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
        if of_nodes is not None:
            total = total + of_nodes(s)
        return total / (problem.time_step * problem.time_step)

    return power


def calc_problem_residual(
    topology: TreeTopology, problem: ConvexProblem, vdot: Float[Array, " nv"]
) -> Float[Array, " nv"]:
    """Residual at vdot: forces required less forces that act; a locked velocity has the equation vdot = 0."""
    terms, locked = problem.terms, problem.locked
    free = jnp.where(locked, 0.0, vdot)
    of_bodies = free if problem.nodes is None else problem.apart(free)[0]
    required = calc_inverse_dynamics(terms.motion, of_bodies, terms.F_applied_T) + terms.diagonal * of_bodies
    required = problem.with_nodes(required - terms.tau, lambda nodes: nodes.inertia.product(problem.apart(free)[1]))
    motion = calc_row_motion(problem, free)
    return jnp.where(locked, vdot, required - calc_row_forces(problem, calc_impulses(problem, motion)))
