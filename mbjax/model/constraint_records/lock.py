"""A joint held at a position, or wherever it is. `mbjax/constraints/lock.py` has the mathematics."""

from typing import Any, Self

import equinox as eqx
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from mbjax.errors import ModelError

from ..abstract_constraint import AbstractConstraint, find_joint, with_static
from ..constraint_numbers import finite_numbers
from ..element_keys import JointKey, Numbers
from .common import STABILIZATION_TIME, label_of, set_common


class LockConstraint(AbstractConstraint):
    """Holds a joint, one row per velocity: at `position` if one is given, else wherever it is, at v = 0.

    The rows' error is `difference_configuration` from `position`. Unlike `lock_joint`, which takes the joint
    out of the dynamics, the constraint has a force λ, along the joint's velocities.
    """

    joint: Any = eqx.field(static=True)
    num_velocities: int | None = eqx.field(static=True)  # known once resolved
    position: Float[Array, " nqj"] | None

    def __init__(
        self,
        joint: JointKey,
        position: Numbers | None = None,
        *,
        name: str | None = None,
        v_plus: Numbers = 0.0,
        stabilization_time: ArrayLike | None = STABILIZATION_TIME,
        active: bool | ArrayLike = True,
    ) -> None:
        self.name, label = name, label_of("LockConstraint", name)
        self.joint, self.num_velocities = joint, None
        self.position = None if position is None else finite_numbers(label, "position", position, np.size(position))
        set_common(self, label, v_plus, np.shape(v_plus), stabilization_time, active)

    @property
    def num_rows(self) -> int:
        assert self.num_velocities is not None, "resolve() first"
        return self.num_velocities

    def resolve(self, lookup: Any) -> Self:
        index = find_joint(lookup, self.joint, self.label)
        joint = lookup.joint(index)
        nq, nv = joint.num_positions, joint.num_velocities
        if getattr(joint, "mimics", None) is not None:
            raise ModelError(f"{self.label}: joint '{joint.name}' mimics another; lock the joint it follows.")
        if nv == 0:
            raise ModelError(f"{self.label}: joint '{joint.name}' is a weld and does not move.")
        if self.position is not None and self.position.shape[0] != nq:
            raise ModelError(
                f"{self.label}: joint '{joint.name}' has {nq} positions, got {self.position.shape[0]} numbers."
            )
        if self.position is not None and nq > nv and not np.any(self.position[:4]):
            raise ModelError(
                f"{self.label}: the quaternion of the position of joint '{joint.name}' is zero; give (w, x, y, z)."
            )
        if self.v_plus.shape not in ((), (nv,)):
            raise ModelError(f"{self.label}: v_plus must be 1 or {nv} numbers, got {self.v_plus.shape[0]}.")
        v_plus = np.broadcast_to(self.v_plus, (nv,)).copy()
        return with_static(self, joint=index, num_velocities=nv, v_plus=v_plus)
