"""The equation of a discrete step: momentum balance with forces that depend on the velocity at its end.

    (M + diag) vdot + bias = tau + Gᵀ γ(G v⁺) / dt        v⁺ = v + dt vdot

Every row's impulse γ is minus the gradient of a convex function of its velocity, so the equation is that of a
minimum, and its solution unique (Castro et al. 2022, arXiv 2110.10107).
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.dynamics import ForwardDynamicsTerms, calc_inverse_dynamics
from mbjax.linear_algebra import matrix_vector, transposed_matrix_vector
from mbjax.topology import TreeTopology

from .box_rows import BoxRows
from .contact_rows import ContactRows


class CoupledRows(eqx.Module):
    """impulse = start - stiffness G dv with dv = dt vdot: rows of constraints, near-rigid or springs."""

    G: Float[Array, "nc nv"]
    start: Float[Array, " nc"]
    stiffness: Float[Array, " nc"]

    def impulse(self, dv: Float[Array, " nv"]) -> Float[Array, " nc"]:
        return self.start - self.stiffness * matrix_vector(self.G, dv)


class ConvexProblem(eqx.Module):
    """What the step's acceleration is found from; a kind of rows that is not there is None."""

    terms: ForwardDynamicsTerms
    v: Float[Array, " nv"]  # at the start of the step
    time_step: Float[Array, ""]
    box: BoxRows | None
    coupled: CoupledRows | None
    contacts: ContactRows | None

    @property
    def is_coupled(self) -> bool:
        """Whether rows connect velocities that the tree does not."""
        return self.coupled is not None or self.contacts is not None


class Impulses(eqx.Module):
    """Of all rows, over the step."""

    box: Float[Array, " k"] | None
    coupled: Float[Array, " nc"] | None
    contacts: Float[Array, "3 m"] | None


def calc_impulses(problem: ConvexProblem, vdot: Float[Array, " nv"]) -> Impulses:
    """γ of each kind of rows."""
    dv = problem.time_step * vdot
    box, coupled, contacts = problem.box, problem.coupled, problem.contacts
    return Impulses(
        None if box is None else box.impulse(dv),
        None if coupled is None else coupled.impulse(dv),
        None if contacts is None else contacts.law.impulse(contacts.velocities(problem.v + dv)),
    )


def calc_row_forces(problem: ConvexProblem, vdot: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """Gᵀ γ / dt, the generalized force of all rows."""
    impulses = calc_impulses(problem, vdot)
    total = jnp.zeros_like(vdot)
    if problem.box is not None and impulses.box is not None:
        total = total + problem.box.generalized(impulses.box, vdot.shape[0])
    if problem.coupled is not None and impulses.coupled is not None:
        total = total + transposed_matrix_vector(problem.coupled.G, impulses.coupled)
    if problem.contacts is not None and impulses.contacts is not None:
        total = total + problem.contacts.generalized(impulses.contacts)
    return total / problem.time_step


def calc_residual(topology: TreeTopology, problem: ConvexProblem, vdot: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """What vdot takes less what acts; a locked velocity has the equation vdot = 0."""
    terms = problem.terms
    free = jnp.where(terms.locked, 0.0, vdot)
    required = calc_inverse_dynamics(topology, terms.motion, free, terms.F_applied_T) + terms.diagonal * free
    return jnp.where(terms.locked, vdot, required - terms.tau - calc_row_forces(problem, free))
