"""Two joints that move in proportion. `mbjax/constraints/coupler.py` has the mathematics."""

from typing import Any, Self

import equinox as eqx
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.joints import JOINT_KINDS

from ..abstract_constraint import AbstractConstraint, find_joint, with_static
from ..constraint_numbers import finite_numbers
from ..element_keys import JointKey, Numbers
from .common import STABILIZATION_TIME, label_of, set_common


class CouplerConstraint(AbstractConstraint):
    """Couples two joints with one degree of freedom: q0 = gear_ratio q1 + offset; λ in N m or N acts along q0."""

    joint0: Any = eqx.field(static=True)
    joint1: Any = eqx.field(static=True)
    gear_ratio: Float[Array, ""]
    offset: Float[Array, ""]

    def __init__(
        self,
        joint0: JointKey,
        joint1: JointKey,
        gear_ratio: ArrayLike = 1.0,
        offset: ArrayLike = 0.0,
        *,
        name: str | None = None,
        v_plus: Numbers = 0.0,
        stabilization_time: ArrayLike | None = STABILIZATION_TIME,
        active: bool | ArrayLike = True,
    ) -> None:
        self.name, label = name, label_of("CouplerConstraint", name)
        self.joint0, self.joint1 = joint0, joint1
        self.gear_ratio = finite_numbers(label, "gear_ratio", gear_ratio)
        self.offset = finite_numbers(label, "offset", offset)
        set_common(self, label, v_plus, (1,), stabilization_time, active)

    @property
    def num_rows(self) -> int:
        return 1

    def resolve(self, lookup: Any) -> Self:
        joint0, joint1 = (find_joint(lookup, joint, self.label) for joint in (self.joint0, self.joint1))
        for joint in (lookup.joint(joint0), lookup.joint(joint1)):
            size = JOINT_KINDS[joint.kind].num_velocities  # also for a joint that mimics
            if size != 1:
                raise ModelError(
                    f"{self.label}: joint '{joint.name}' ({joint.kind}) has {size} degrees of freedom; a coupler takes "
                    "joints with one."
                )
        if joint0 == joint1:
            raise ModelError(f"{self.label}: both joints are '{lookup.joint(joint0).name}'; a coupler needs two.")
        return with_static(self, joint0=joint0, joint1=joint1)
