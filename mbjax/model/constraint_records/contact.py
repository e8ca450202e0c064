"""Contact of a point with a fixed surface; `mbjax/constraints/contact.py` has the mathematics."""

from typing import Any, Self

import equinox as eqx
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from ..abstract_constraint import AbstractConstraint, find_bodies, with_static
from ..constraint_numbers import independent_rows, point
from ..element_keys import BodyKey, Numbers
from .common import label_of, set_common


class ContactConstraint(AbstractConstraint):
    """Keeps point P of a body from moving along the normals, directions in the world: nᵀ v_WP = 0.

    λ is the force on the body along each normal, in N; pulling is not excluded. There is no position error, since
    the point may be anywhere when contact begins, and by default no stabilization, as in RBDL.
    """

    body: Any = eqx.field(static=True)
    p_BP: Float[Array, "3"]
    normals: Float[Array, "m 3"]  # normalised where they are used

    def __init__(
        self,
        body: BodyKey,
        p_BP: Numbers,
        normals: Numbers,
        *,
        name: str | None = None,
        v_plus: Numbers = 0.0,
        stabilization_time: ArrayLike | None = None,
        active: bool | ArrayLike = True,
    ) -> None:
        self.name, label = name, label_of("ContactConstraint", name)
        self.body = body
        self.p_BP = point(label, "p_BP", p_BP)
        self.normals = independent_rows(label, "normals", normals, 3, 3)
        set_common(self, label, v_plus, (self.num_rows,), stabilization_time, active)

    @property
    def num_rows(self) -> int:
        return self.normals.shape[0]

    def resolve(self, lookup: Any) -> Self:
        _, body = find_bodies(lookup, 0, self.body, self.label)
        return with_static(self, body=body)
