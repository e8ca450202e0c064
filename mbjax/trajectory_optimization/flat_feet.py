"""Flat feet: six rows that hold a foot in place, the wrench that they bear, and the cone that it must stay in.

Six rows are three contacts of points, so the closed forms of contacts are those of feet. The cone is that of a
rectangle with a friction pyramid at each corner: Caron, Pham and Nakamura 2015, "Stability of surface contacts for
humanoid robots".
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from mbjax.constraints import ConstraintSet
from mbjax.errors import ModelError
from mbjax.number_rules import FINITE, POSITIVE, checked_numbers
from mbjax.spatial import RigidTransform, cross3

from .contact_forces import AbstractForceTerm, friction_numbers
from .scheduled_contacts import ScheduledContacts
from .weights import weight_of

CORNERS = np.array([[-0.5, 0.5], [0.5, 0.5], [-0.5, -0.5]])  # of the rectangle: heel, toe, and the heel's other side
DIRECTIONS = (2, 0, 1), (2, 1), (2,)  # of each corner's rows: axes of F


class FlatFoot(eqx.Module):
    """A rectangle of a body that stands flat: centred at a frame F = X_BF, with the length along x and width along y.

    While it stands, F's axes in the world are the columns of `R_WF`, z the normal of the floor.
    """

    X_BF: RigidTransform
    size: Float[Array, "2"]
    R_WF: Float[Array, "3 3"]
    body: str | int = eqx.field(static=True)
    name: str = eqx.field(static=True)

    def __init__(
        self, name: str, body: str | int, size: ArrayLike, X_BF: RigidTransform | None = None, R_WF: Any = None
    ):
        self.name, self.body, call = name, body, f"FlatFoot '{name}'"
        hint = "It is a length and a width."
        self.size = jnp.asarray(checked_numbers(call, "size", size, POSITIVE, (2,), unit="m", hint=hint), float)
        self.X_BF = RigidTransform.identity() if X_BF is None else X_BF
        R = np.eye(3) if R_WF is None else R_WF
        self.R_WF = jnp.asarray(checked_numbers(call, "R_WF", R, FINITE, (3, 3)), float)

    @property
    def contact_names(self) -> tuple[str, ...]:
        """Names of the contacts that hold the foot; a schedule has a column for each."""
        return tuple(f"{self.name}_{corner}" for corner in ("heel", "toe", "side"))

    @property
    def corners(self) -> Float[Array, "3 3"]:
        """Points of the three contacts, in F."""
        return jnp.concatenate([CORNERS * self.size, jnp.zeros((3, 1))], axis=1)

    def add_to(self, contacts: ConstraintSet, **options: Any) -> ConstraintSet:
        """Adds the foot's contacts to a set: six rows in all, none of which the others imply."""
        for name, corner, directions in zip(self.contact_names, self.corners, DIRECTIONS, strict=True):
            normals = self.R_WF.T[np.array(directions)]
            contacts.add_contact_constraint(self.body, self.X_BF @ corner, normals, name=name, **options)
        return contacts

    def wrench(self, dynamics: ScheduledContacts, force: Float[Array, " rows"]) -> Float[Array, "6"]:
        """Torque about F's origin and force of the floor on the foot, along F's axes, of the forces of all rows."""
        torque, total = jnp.zeros(3, force.dtype), jnp.zeros(3, force.dtype)
        for name, corner, directions in zip(self.contact_names, self.corners, DIRECTIONS, strict=True):
            along = dict(zip(directions, jnp.unstack(force[dynamics.contacts.rows_of(name)]), strict=True))
            f = jnp.stack([along.get(axis, jnp.zeros((), force.dtype)) for axis in range(3)])
            torque, total = torque + cross3(corner.astype(force.dtype), f), total + f
        return jnp.concatenate([torque, total])

    def is_down(self, dynamics: ScheduledContacts, stage: dict[str, Array]) -> Array:
        """Whether the foot stands at a stage."""
        return stage["active"][dynamics.contacts.names.index(self.contact_names[0])]


def require_feet(call: str, dynamics: ScheduledContacts, feet: FlatFoot | Sequence[FlatFoot]) -> tuple[FlatFoot, ...]:
    """The feet as a tuple, after a check that their contacts are those of the dynamics."""
    feet = (feet,) if isinstance(feet, FlatFoot) else tuple(feet)
    for foot in feet:
        missing = [name for name in foot.contact_names if name not in dynamics.contacts.names]
        if missing:
            raise ModelError(
                f"{call}: the dynamics have no contacts {missing} of the foot '{foot.name}'; add them by "
                f"FlatFoot.add_to before the set is bound. There are {list(dynamics.contacts.names)}."
            )
    return feet


class WrenchCone(AbstractForceTerm):
    """Seventeen numbers of each foot, all above zero while the floor can bear its wrench; for `at="running"`.

    The normal force; friction; the centre of pressure within the rectangle; and the torque about the normal that a
    friction pyramid at each corner can give. An inactive foot has `margin`, which is positive.
    """

    dynamics: ScheduledContacts
    feet: tuple[FlatFoot, ...]
    coefficient: Float[Array, "..."]
    margin: Float[Array, ""]

    def __init__(
        self,
        dynamics: ScheduledContacts,
        feet: FlatFoot | Sequence[FlatFoot],
        coefficient: ArrayLike,
        margin: ArrayLike = 1.0,
    ):
        self.dynamics, self.feet = dynamics, require_feet("WrenchCone", dynamics, feet)
        self.coefficient, self.margin = friction_numbers("WrenchCone", coefficient, margin)

    def of_force(self, force: Float[Array, " rows"], stage: dict[str, Array]) -> Float[Array, " seventeen_feet"]:
        values = [
            jnp.where(
                foot.is_down(self.dynamics, stage),
                wrench_margins(foot.wrench(self.dynamics, force), foot.size, self.coefficient),
                self.margin,
            )
            for foot in self.feet
        ]
        return jnp.concatenate(values)


def wrench_margins(
    wrench: Float[Array, "6"], size: Float[Array, "2"], coefficient: Float[Array, ""]
) -> Float[Array, "17"]:
    """What is left of the cone's bounds, in N and N m: linear in the wrench (Caron et al. 2015, proposition 4)."""
    x, y, z, f_x, f_y, n = wrench
    mu, (X, Y) = coefficient, 0.5 * size
    friction = [mu * n - f_x, mu * n + f_x, mu * n - f_y, mu * n + f_y]
    pressure = [Y * n - x, Y * n + x, X * n - y, X * n + y]
    bound = mu * (X + Y) * n
    turning = []
    for s in (-1.0, 1.0):
        for t in (-1.0, 1.0):
            turning += [
                bound + z - s * (Y * f_x - mu * x) - t * (X * f_y - mu * y),
                bound - z - s * (Y * f_x + mu * x) - t * (X * f_y + mu * y),
            ]
    return jnp.stack([n, *friction, *pressure, *turning])


class CenterOfPressure(AbstractForceTerm):
    """Torques of a foot's floor about a point p_FP of its rectangle, in N m: zero where the pressure's centre is there.

    A residual for running costs, linear in forces and smooth where the foot bears nothing; zero of an inactive foot.
    """

    dynamics: ScheduledContacts
    foot: FlatFoot
    p_FP: Float[Array, "2"]
    weight: Float[Array, "..."]

    def __init__(
        self,
        dynamics: ScheduledContacts,
        foot: FlatFoot,
        p_FP: Any = (0.0, 0.0),
        weight: ArrayLike = 1.0,
        *,
        factor: ArrayLike | None = None,
    ):
        (self.foot,) = require_feet("CenterOfPressure", dynamics, foot)
        self.dynamics, self.p_FP = dynamics, jnp.asarray(p_FP, float)
        self.weight = weight_of("CenterOfPressure", weight, factor)

    def of_force(self, force: Float[Array, " rows"], stage: dict[str, Array]) -> Float[Array, "2"]:
        torque_x, torque_y, _, _, _, n = self.foot.wrench(self.dynamics, force)
        off = jnp.stack([torque_x - self.p_FP[1] * n, torque_y + self.p_FP[0] * n])
        return self.weight * jnp.where(self.foot.is_down(self.dynamics, stage), off, 0.0)
