"""Loops, balls and welds keep two frames together; `mbjax/constraints/loop.py` has the mathematics."""

from typing import Any, Self

import equinox as eqx
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from ..abstract_constraint import AbstractConstraint, find_bodies, with_static
from ..constraint_numbers import constraint_pose, independent_rows, point
from ..element_keys import BodyKey, Numbers, PoseLike
from .common import STABILIZATION_TIME, label_of, set_common


class LoopConstraint(AbstractConstraint):
    """Keeps frame S of the successor body B with frame P of the predecessor A, along 1 to 6 axes given in P.

    An axis (k, 6) has a rotation part, then a translation part. A translation a measures a · p_PS_P, in m. Where
    exactly two axes have a rotation part, and no translation part, the third direction f of S stays aligned with
    P's: axis a measures a · (f_P x f_S), whatever the angle about f, and f_S = -f_P is a zero too. Other rotations
    measure a · φ with φ the rotation vector of R_PS, in rad, at most π. λ acts on B at So, and its opposite on A at
    that point. The axes given at construction decide which rows rotate; later values of the leaf do not.
    """

    predecessor: Any = eqx.field(static=True)
    successor: Any = eqx.field(static=True)
    quaternion_AP: Float[Array, "4"]
    p_AP: Float[Array, "3"]
    quaternion_BS: Float[Array, "4"]
    p_BS: Float[Array, "3"]
    axes: Float[Array, "k 6"]
    rotational_rows: tuple[int, ...] = eqx.field(static=True)
    is_hinge: bool = eqx.field(static=True)  # two rows that keep the third direction aligned

    def __init__(
        self,
        predecessor: BodyKey,
        successor: BodyKey,
        X_AP: PoseLike,
        X_BS: PoseLike,
        axes: Numbers,
        *,
        name: str | None = None,
        v_plus: Numbers = 0.0,
        stabilization_time: ArrayLike | None = STABILIZATION_TIME,
        active: bool | ArrayLike = True,
    ) -> None:
        self.name, label = name, label_of("LoopConstraint", name)
        self.predecessor, self.successor = predecessor, successor
        self.quaternion_AP, self.p_AP = constraint_pose(label, "X_AP", X_AP)
        self.quaternion_BS, self.p_BS = constraint_pose(label, "X_BS", X_BS)
        self.axes = independent_rows(label, "axes", axes, 6, 6)
        rotates, translates = (np.any(part != 0.0, axis=1) for part in (self.axes[:, :3], self.axes[:, 3:]))
        self.rotational_rows = tuple(np.flatnonzero(rotates).tolist())
        self.is_hinge = len(self.rotational_rows) == 2 and not np.any(rotates & translates)
        set_common(self, label, v_plus, (self.num_rows,), stabilization_time, active)

    @property
    def num_rows(self) -> int:
        return self.axes.shape[0]

    def resolve(self, lookup: Any) -> Self:
        A, B = find_bodies(lookup, self.predecessor, self.successor, self.label)
        return with_static(self, predecessor=A, successor=B)


class BallConstraint(AbstractConstraint):
    """Keeps point Q of body B at point P of body A: p_PQ_A = 0, three rows in m.

    Without `p_BQ`, Q is where P is in the model's default configuration.
    """

    body_A: Any = eqx.field(static=True)
    body_B: Any = eqx.field(static=True)
    p_AP: Float[Array, "3"]
    p_BQ: Float[Array, "3"] | None

    def __init__(
        self,
        body_A: BodyKey,
        p_AP: Numbers,
        body_B: BodyKey,
        p_BQ: Numbers | None = None,
        *,
        name: str | None = None,
        v_plus: Numbers = 0.0,
        stabilization_time: ArrayLike | None = STABILIZATION_TIME,
        active: bool | ArrayLike = True,
    ) -> None:
        self.name, label = name, label_of("BallConstraint", name)
        self.body_A, self.body_B = body_A, body_B
        self.p_AP = point(label, "p_AP", p_AP)
        self.p_BQ = None if p_BQ is None else point(label, "p_BQ", p_BQ)
        set_common(self, label, v_plus, (3,), stabilization_time, active)

    @property
    def num_rows(self) -> int:
        return 3

    def resolve(self, lookup: Any) -> Self:
        A, B = find_bodies(lookup, self.body_A, self.body_B, self.label)
        return with_static(self, body_A=A, body_B=B)


class WeldConstraint(AbstractConstraint):
    """Keeps frame Q of body B at frame P of body A: the rotation vector of R_PQ (rad), then p_PQ_P (m), are 0."""

    body_A: Any = eqx.field(static=True)
    body_B: Any = eqx.field(static=True)
    quaternion_AP: Float[Array, "4"]
    p_AP: Float[Array, "3"]
    quaternion_BQ: Float[Array, "4"]
    p_BQ: Float[Array, "3"]

    def __init__(
        self,
        body_A: BodyKey,
        X_AP: PoseLike,
        body_B: BodyKey,
        X_BQ: PoseLike,
        *,
        name: str | None = None,
        v_plus: Numbers = 0.0,
        stabilization_time: ArrayLike | None = STABILIZATION_TIME,
        active: bool | ArrayLike = True,
    ) -> None:
        self.name, label = name, label_of("WeldConstraint", name)
        self.body_A, self.body_B = body_A, body_B
        self.quaternion_AP, self.p_AP = constraint_pose(label, "X_AP", X_AP)
        self.quaternion_BQ, self.p_BQ = constraint_pose(label, "X_BQ", X_BQ)
        set_common(self, label, v_plus, (6,), stabilization_time, active)

    @property
    def num_rows(self) -> int:
        return 6

    def resolve(self, lookup: Any) -> Self:
        A, B = find_bodies(lookup, self.body_A, self.body_B, self.label)
        return with_static(self, body_A=A, body_B=B)
