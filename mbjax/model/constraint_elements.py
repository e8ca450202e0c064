"""Records of constraints, one class a kind; their mathematics is in `mbjax/constraints`.

A body is given by name, index or element; poses as `RigidTransform`, 4x4 matrix or translation.
"""

from collections.abc import Callable
from typing import Any, Literal, Self

import equinox as eqx
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.joints import JOINT_KINDS

from .abstract_constraint import AbstractConstraint, find_bodies, find_joint, with_static
from .constraint_numbers import (
    as_constraint_numbers,
    constraint_pose,
    finite_numbers,
    independent_rows,
    point,
    stabilization,
    switch,
)
from .element_keys import BodyKey, JointKey, Numbers, PoseLike

STABILIZATION_TIME = 0.1  # s, RBDL's


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
        if self.v_plus.shape not in ((), (nv,)):
            raise ModelError(f"{self.label}: v_plus must be 1 or {nv} numbers, got {self.v_plus.shape[0]}.")
        v_plus = np.broadcast_to(self.v_plus, (nv,)).copy()
        return with_static(self, joint=index, num_velocities=nv, v_plus=v_plus)


class CustomConstraint(AbstractConstraint):
    """Adds `num_rows` equations of one's own, written in JAX; Jacobian and rates are derived from them.

    At level "position", `function(model, q)` is the error, of shape (num_rows,). At level "velocity",
    `function(model, q, v)` is its rate, linear in v, and there is no position error. `parameters`, float arrays
    in any pytree, are passed as a last argument where given. They are leaves; arrays the function closes over are not.
    """

    function: Callable = eqx.field(static=True)
    level: Literal["position", "velocity"] = eqx.field(static=True)
    size: int = eqx.field(static=True)
    parameters: Any

    def __init__(
        self,
        function: Callable[..., Array],
        num_rows: int,
        level: Literal["position", "velocity"] = "position",
        parameters: Any = None,
        *,
        name: str | None = None,
        v_plus: Numbers = 0.0,
        stabilization_time: ArrayLike | None = STABILIZATION_TIME,
        active: bool | ArrayLike = True,
    ) -> None:
        self.name, label = name, label_of("CustomConstraint", name)
        if not callable(function):
            raise ModelError(f"{label}: function must be callable, got {function!r}.")
        if level not in ("position", "velocity"):
            raise ModelError(f"{label}: level must be 'position' or 'velocity', got {level!r}.")
        if not isinstance(num_rows, int) or isinstance(num_rows, bool) or num_rows < 1:
            raise ModelError(f"{label}: num_rows must be a positive integer, got {num_rows!r}.")
        self.function, self.level, self.size, self.parameters = function, level, num_rows, parameters
        set_common(self, label, v_plus, (num_rows,), stabilization_time, active)

    @property
    def num_rows(self) -> int:
        return self.size

    def resolve(self, lookup: Any) -> Self:
        return self


def set_common(
    constraint: Any, label: str, v_plus: Any, shape: tuple[int, ...], stabilization_time: Any, active: Any
) -> None:
    """Sets the fields that every constraint has, in its constructor."""
    constraint.v_plus = finite_numbers(label, "v_plus", v_plus, *shape)
    constraint.stabilization_time = stabilization(label, stabilization_time)
    constraint.active = switch(label, active)


def label_of(kind: str, name: Any) -> str:
    """A constraint's name in messages; `name` must be a non-empty string, or None to be given one."""
    if name is not None and (not isinstance(name, str) or not name):
        raise ModelError(f"{kind}: the name must be a non-empty string, got {name!r}.")
    return kind if name is None else f"{kind} '{name}'"
