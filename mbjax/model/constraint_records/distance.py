"""Two points a given distance apart. `mbjax/constraints/distance.py` has the mathematics."""

from typing import Any, Self

import equinox as eqx
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from mbjax.errors import ModelError

from ..abstract_constraint import AbstractConstraint, find_bodies, with_static
from ..constraint_numbers import as_constraint_numbers, finite_numbers, point
from ..element_keys import BodyKey, Numbers
from .common import STABILIZATION_TIME, label_of, set_common


class DistanceConstraint(AbstractConstraint):
    """Keeps points P of body A and Q of body B `distance` apart: |p_PQ| - distance = 0, one row in m.

    With a finite `stiffness` (N/m) it has no row but is a spring and damper (N s/m) along the line.
    """

    body_A: Any = eqx.field(static=True)
    body_B: Any = eqx.field(static=True)
    is_rigid: bool = eqx.field(static=True)
    p_AP: Float[Array, "3"]
    p_BQ: Float[Array, "3"]
    distance: Float[Array, ""]
    stiffness: Float[Array, ""]
    damping: Float[Array, ""]

    def __init__(
        self,
        body_A: BodyKey,
        p_AP: Numbers,
        body_B: BodyKey,
        p_BQ: Numbers,
        distance: ArrayLike,
        stiffness: ArrayLike = np.inf,
        damping: ArrayLike = 0.0,
        *,
        name: str | None = None,
        v_plus: Numbers = 0.0,
        stabilization_time: ArrayLike | None = STABILIZATION_TIME,
        active: bool | ArrayLike = True,
    ) -> None:
        self.name, label = name, label_of("DistanceConstraint", name)
        self.body_A, self.body_B = body_A, body_B
        self.p_AP, self.p_BQ = point(label, "p_AP", p_AP), point(label, "p_BQ", p_BQ)
        self.distance = finite_numbers(label, "distance", distance)
        self.is_rigid = bool(np.all(as_constraint_numbers(stiffness) == np.inf))
        self.stiffness = (
            as_constraint_numbers(stiffness) if self.is_rigid else finite_numbers(label, "stiffness", stiffness)
        )
        self.damping = finite_numbers(label, "damping", damping)
        if not self.distance > 0.0:
            raise ModelError(
                f"{label}: distance must be > 0 m, got {distance!r}. To hold two points together use a BallConstraint."
            )
        if not self.stiffness > 0.0 or not self.damping >= 0.0:
            raise ModelError(f"{label}: stiffness must be > 0 and damping >= 0, got {stiffness!r} and {damping!r}.")
        if self.is_rigid and self.damping > 0.0:
            raise ModelError(f"{label}: a rigid constraint has no damping; give a finite stiffness too, or damping 0.")
        set_common(self, label, v_plus, (self.num_rows,), stabilization_time, active)

    @property
    def num_rows(self) -> int:
        return int(self.is_rigid)

    def resolve(self, lookup: Any) -> Self:
        A, B = find_bodies(lookup, self.body_A, self.body_B, self.label)
        return with_static(self, body_A=A, body_B=B)
