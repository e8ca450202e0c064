"""What a form of contact is: the contract that every way to work on contact points in a step fulfils.

A form has m points, each with a law and a velocity, and something that moves them. The search asks it for velocities,
impulses, stiffness and power, and for the Newton matrix that goes with its points. What it does not ask is how they
are stored: a form may hold all points side by side, or a list of those that act.

`choose.py` lists the forms. A new one brings

- `at`: its points with their normals, where they are, and the law of each.
- `moved`: what moves the points. Points of any kind between two bodies are moved by `MovedBodies`, if which bodies
  touch is known when the program is made.
- `by_law` and `power_along`, if its points do not lie side by side: how it goes through them.
- `newton_matrix`: the matrix with its points' stiffness, in the cheapest way that its structure allows.
- a row of `FORMS` that says which models take it.
"""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import equinox as eqx
from jaxtyping import Array, Float, Int

from mbjax.dynamics import ForwardDynamicsTerms
from mbjax.linear_algebra import branch_rows, chain
from mbjax.model import MultibodyModel
from mbjax.topology import TreeTopology

from ..laws.abstract_law import AbstractContactLaw, LawBefore
from ..movers.abstract_mover import AbstractMover
from ..newton.along_branches import matrix_along_branches
from ..newton.newton_matrix import NewtonMatrix
from ..points.contact_points import calc_contact_points
from ..points.point_records import ContactPoints
from ..rows.rows_of_step import OtherRows


class StepSoFar(NamedTuple):
    """What a form is made of: the model, the equation of motion, and how bodies respond to an impulse.

    The response is estimated by the `diagonal` of M with implicit dissipation. `points` are all points that may touch;
    where nobody has computed them, a form finds those that it needs.
    """

    model: MultibodyModel
    terms: ForwardDynamicsTerms
    diagonal: Float[Array, " nv"]
    points: ContactPoints | None = None

    def all_points(self) -> ContactPoints:
        """All points that may touch."""
        return calc_contact_points(self.model, self.terms.position) if self.points is None else self.points


class AbstractContactForm(eqx.Module):
    """m contact points with velocities v_AcBc_W = J v at the step's start, and impulses from those at its end.

    *Motion* is the change J dv of the velocities over the step. Arrays of motion, impulse and stiffness have the shape
    that the form likes, components first, and only the form itself reads them. A form with a `starts_at_rest` begins
    its search at vdot = 0 where that nearly is the solution, as for a pile that rests.
    """

    v_AcBc_W: eqx.AbstractVar[Float[Array, "3 m"]]
    law: eqx.AbstractVar[AbstractContactLaw]
    moved: eqx.AbstractVar[AbstractMover]
    slots: eqx.AbstractVar[Int[Array, " m"] | None]  # its points among all that there may be; None: all, or a list
    starts_at_rest: eqx.AbstractClassVar[bool]

    @classmethod
    @abc.abstractmethod
    def at(cls, step: StepSoFar) -> Self:
        """The form at the step's start."""

    def by_law(self, function: Callable, *motions: Float[Array, "c m"]) -> Any:
        """`function(law, v_AcBc_W, *motions)` of all points side by side; a list does it where points act."""
        return function(self.law, self.v_AcBc_W, *motions)

    def power_along(self, motion: Float[Array, "3 m"], d: Float[Array, "3 m"]) -> Callable[[Array], Array]:
        """s → d · impulse(motion + s d) and its derivative, (2, k): of each point, or summed over several."""
        return self.law.power_along(self.v_AcBc_W + motion, d)

    @abc.abstractmethod
    def newton_matrix(self, topology: TreeTopology, terms: ForwardDynamicsTerms, others: OtherRows) -> NewtonMatrix:
        """The matrix M + diag + Gᵀ S G of all rows, from the stiffness S of these points and of the other rows."""

    def motion(self, dv: Float[Array, " nv"]) -> Float[Array, "3 m"]:
        """Change J dv of the points' relative velocities."""
        return self.moved.velocities(dv)

    def generalized(self, gamma: Float[Array, "3 m"]) -> Float[Array, " nv"]:
        """Generalized impulses Jᵀ gamma."""
        return self.moved.generalized(gamma)

    def impulse(self, motion: Float[Array, "3 m"]) -> Float[Array, "3 m"]:
        """Impulses on B at C once the velocities have changed by `motion`."""
        return self.by_law(lambda law, v, motion: law.impulse(v + motion), motion)

    def stiffness(self, motion: Float[Array, "3 m"]) -> Float[Array, "6 m"]:
        """Stiffness -d impulse / d motion, as the entries of a symmetric matrix."""
        return self.by_law(lambda law, v, motion: law.stiffness(v + motion), motion)

    def linear_law(
        self, motion: Float[Array, "3 m"], before: LawBefore
    ) -> tuple[Float[Array, "3 m"], Float[Array, "6 m"]]:
        """Impulse and stiffness of a search's iteration, with friction's direction by the law of the one before."""
        return self.by_law(lambda law, v, motion, *x: law.linear_law(v + motion, LawBefore(*x)), motion, *before)

    def sticking_law(self, motion: Float[Array, "3 m"]) -> tuple[Float[Array, "3 m"], Float[Array, "6 m"]]:
        """Impulse and stiffness of the linear law of points that stick, from which a search starts."""
        return self.by_law(lambda law, v, motion: law.sticking_law(v + motion), motion)

    def both_laws(self, motion: Float[Array, "3 m"]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Impulse and stiffness of points that stick, and those of the law, at one go."""

        def both(law: AbstractContactLaw, v: Array, motion: Array) -> tuple:
            return law.sticking_law(v + motion), (law.impulse(v + motion), law.stiffness(v + motion))

        return self.by_law(both, motion)


class AbstractDenseForm(AbstractContactForm):
    """A form whose Newton matrix is dense: it brings the contact part of it."""

    @abc.abstractmethod
    def hessian(self) -> Callable[[Float[Array, "6 m"]], Float[Array, "nv nv"]]:
        """Stiffness S → Σ Jᵀ S J, of which the lower triangle is read."""

    def newton_matrix(self, topology: TreeTopology, terms: ForwardDynamicsTerms, others: OtherRows) -> NewtonMatrix:
        parents, hessian = chain(topology.num_velocities), self.hessian()
        return matrix_along_branches(topology, terms, others, parents, lambda G: branch_rows(parents, hessian(G)))
