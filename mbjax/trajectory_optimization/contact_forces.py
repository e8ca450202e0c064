"""Costs and constraints of contact forces in scheduled steps: forces themselves, friction cones and pyramids."""

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.model import MultibodyModel
from mbjax.number_rules import NOT_NEGATIVE, POSITIVE, checked_numbers
from mbjax.simulation import State

from .scheduled_contacts import MotionSlopes, ScheduledContacts, StepMotion
from .slopes import Slopes
from .weights import weight_of


class AbstractForceTerm(eqx.Module):
    """A residual, or values of a constraint, of the contact forces of a scheduled step alone: of running steps."""

    dynamics: eqx.AbstractVar[ScheduledContacts]
    needs_effort: ClassVar[bool] = True
    needs_dynamics: ClassVar[type] = ScheduledContacts

    @abc.abstractmethod
    def of_force(self, force: Float[Array, " rows"], stage: dict[str, Array]) -> Float[Array, "_"]:
        """The numbers as a function of the forces of all rows, in N."""

    def __call__(
        self,
        model: MultibodyModel,
        state: State,
        effort: Array,
        stage: dict[str, Array],
        motion: StepMotion | None = None,
    ) -> Float[Array, "_"]:
        """The numbers at a step, whose motion is computed where it is not given.

        Forces are those after the impulse of contacts that begin with the step.
        """
        motion = self.dynamics.motion(model, state, effort, stage) if motion is None else motion
        return self.of_force(motion.force, stage)

    def slopes(
        self, model: MultibodyModel, state: State, effort: Array, stage: dict[str, Array], motion: MotionSlopes | None
    ) -> list[Slopes] | None:
        """The numbers with their Jacobians, by those of the forces; None where these are unknown."""
        if motion is None:
            return None
        of_step, *slopes = motion
        value, change = jax.linearize(lambda force: self.of_force(force, stage), of_step.force)
        return [Slopes(value, *(jax.vmap(change, 1, 1)(of.force) for of in slopes))]


class ContactForce(AbstractForceTerm):
    """Forces of the contacts' rows less a reference, in N; zero of a contact that is not active. For running costs.

    Rows are in the order of the contacts and of the normals of each. The reference is a number or (rows,): say half the
    weight on each normal, so that legs share it.
    """

    dynamics: ScheduledContacts
    reference: Float[Array, "..."]
    weight: Float[Array, "..."]

    def __init__(
        self,
        dynamics: ScheduledContacts,
        reference: ArrayLike = 0.0,
        weight: ArrayLike = 1.0,
        *,
        factor: ArrayLike | None = None,
    ):
        self.dynamics, self.reference = dynamics, jnp.asarray(reference, float)
        self.weight = weight_of("ContactForce", weight, factor)

    def of_force(self, force: Float[Array, " rows"], stage: dict[str, Array]) -> Float[Array, " rows"]:
        if self.reference.shape not in ((), force.shape):
            raise ModelError(
                f"ContactForce: reference has shape {self.reference.shape}; the contacts have {force.shape[0]} rows: "
                f"give a number or {force.shape}."
            )
        return self.weight * jnp.where(self.dynamics.active_rows(stage), force - self.reference, 0.0)


def friction_numbers(
    term: str, coefficient: ArrayLike, margin: ArrayLike
) -> tuple[Float[Array, "..."], Float[Array, ""]]:
    """A coefficient of friction, or one for each contact, and the value of contacts that are not active."""
    shape = jnp.shape(coefficient)[-1:]
    mu = checked_numbers(term, "coefficient", coefficient, NOT_NEGATIVE, shape)
    return jnp.asarray(mu, float), jnp.asarray(checked_numbers(term, "margin", margin, POSITIVE), float)


class FrictionCone(AbstractForceTerm):
    """n and μ² n² - t·t of each contact's force in a scheduled step: both are above zero within the cone.

    Of contacts with three rows, whose first normal is the surface's and whose others span it. Use it by
    `at_least(FrictionCone(dynamics, 0.8), at="running")`. An inactive contact has `margin`, which is positive.
    """

    dynamics: ScheduledContacts
    coefficient: Float[Array, "..."]
    margin: Float[Array, ""]

    def __init__(self, dynamics: ScheduledContacts, coefficient: ArrayLike, margin: ArrayLike = 1.0):
        self.dynamics = dynamics
        self.coefficient, self.margin = friction_numbers("FrictionCone", coefficient, margin)

    def of_force(self, force: Float[Array, " rows"], stage: dict[str, Array]) -> Float[Array, " two_contacts"]:
        normal, *tangents = forces_of_points("FrictionCone", self.dynamics, force)
        cone = (self.coefficient * normal) ** 2 - tangents[0] ** 2 - tangents[1] ** 2
        return jnp.ravel(jnp.where(stage["active"], jnp.stack([normal, cone]), self.margin))


class FrictionPyramid(AbstractForceTerm):
    """n, μ n - t and μ n + t of each contact's force, for both directions t: all above zero within the pyramid.

    It is linear in forces, and touches the cone of `coefficient` μ from outside: take μ/√2 for the pyramid within it.
    Contacts, use and `margin` are as in `FrictionCone`.
    """

    dynamics: ScheduledContacts
    coefficient: Float[Array, "..."]
    margin: Float[Array, ""]

    def __init__(self, dynamics: ScheduledContacts, coefficient: ArrayLike, margin: ArrayLike = 1.0):
        self.dynamics = dynamics
        self.coefficient, self.margin = friction_numbers("FrictionPyramid", coefficient, margin)

    def of_force(self, force: Float[Array, " rows"], stage: dict[str, Array]) -> Float[Array, " five_contacts"]:
        n, s, t = forces_of_points("FrictionPyramid", self.dynamics, force)
        bound = self.coefficient * n
        sides = jnp.stack([n, bound - s, bound + s, bound - t, bound + t])
        return jnp.ravel(jnp.where(stage["active"], sides, self.margin))


def forces_of_points(
    call: str, dynamics: ScheduledContacts, force: Float[Array, " rows"]
) -> Float[Array, "3 contacts"]:
    """Normal force and two tangential forces of each contact, of contacts that have three rows."""
    names = dynamics.contacts.names
    if force.shape[0] != 3 * len(names):
        raise ModelError(
            f"{call}: {len(names)} contacts have {force.shape[0]} rows; each needs three: a normal of the surface and "
            "two directions in it."
        )
    return jnp.moveaxis(force.reshape(-1, 3), 1, 0)
