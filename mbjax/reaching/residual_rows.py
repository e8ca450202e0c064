"""Residuals of goals with their Jacobians along tangent coordinates, in closed form where the goal is a frame's.

Any other residual is differentiated in forward mode.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.dynamics import center_of_mass_position_in_world, jacobian_center_of_mass_translational_velocity
from mbjax.errors import ModelError
from mbjax.kinematics import (
    PositionKinematics,
    calc_frame_pose,
    calc_point_jacobian,
    is_velocity_equal_to_qdot,
)
from mbjax.kinematics.frames import calc_offset
from mbjax.model import MultibodyModel
from mbjax.simulation import State
from mbjax.spatial import (
    RigidTransform,
    pose_log,
    rotation_log,
    safe_norm,
    safe_normalize,
    skew,
    slopes_of_pose_log,
)
from mbjax.trajectory_optimization import (
    CenterOfMass,
    CenterOfMassVelocity,
    FrameVelocity,
    JointGoal,
    LookAt,
    Momentum,
    PointGoal,
    PoseGoal,
    RelativePose,
    VelocityGoal,
)

from .tangent import columns_in_tangent, move


class Rows(NamedTuple):
    """Residuals without their weights, and the Jacobian along tangent coordinates."""

    value: Float[Array, " m"]
    J: Float[Array, "m nv"]


def rows_of(goal: Any, model: MultibodyModel, q: Float[Array, " nq"], position: PositionKinematics) -> Rows:
    """A goal's residual without its weight, with its Jacobian."""
    if isinstance(goal, JointGoal) and is_velocity_equal_to_qdot(model):
        return Rows(q - goal.q.astype(q.dtype), jnp.eye(model.num_velocities, dtype=q.dtype))
    closed_form = CLOSED_FORMS.get(type(goal))
    if closed_form is None:
        return rows_by_differentiation(goal, model, q)
    value, J = closed_form(goal, model, q, position)
    T = columns_in_tangent(model, q)
    return Rows(value, J if T is None else J @ T)


def size_of(goal: Any, model: MultibodyModel, q: Float[Array, " nq"]) -> int:
    """Number of rows of a goal."""
    if type(goal) in SIZES:
        return SIZES[type(goal)]
    if isinstance(goal, JointGoal):
        return model.num_velocities
    v = jnp.zeros(model.num_velocities, q.dtype)
    return jax.eval_shape(lambda: jnp.ravel(unweighted(goal)(model, State(q, v)))).size


def require_shapes(name: str, goal: Any, model: MultibodyModel) -> None:
    """Raises with the goal's name where its numbers are not those of one goal."""
    shapes = {"p_WP": (3,), "p_FP": (3,), "p_WT": (3,), "axis_F": (3,), "p_WCcm": (3,), "q": (model.num_positions,)}
    found = {field: getattr(goal, field, None) for field in shapes}
    for field in ("X_WF", "X_AF"):
        X = getattr(goal, field, None)
        if X is not None:
            if not isinstance(X, RigidTransform):
                raise ModelError(f"goal '{name}': {field} must be a mbjax.RigidTransform, got {type(X).__name__}.")
            found |= {f"{field}.rotation": X.rotation, f"{field}.translation": X.translation}
            shapes |= {f"{field}.rotation": (3, 3), f"{field}.translation": (3,)}
    for field, value in found.items():
        if type(goal) in GOALS and value is not None and jnp.shape(value) != shapes[field]:
            raise ModelError(
                f"goal '{name}': {field} must have shape {shapes[field]}, got {jnp.shape(value)}; for many goals use "
                "jax.vmap."
            )
    field, rows = VELOCITIES.get(type(goal), ("", 0))
    if field and jnp.shape(getattr(goal, field)) not in ((), (rows or model.num_velocities,)):
        raise ModelError(
            f"goal '{name}': {field} must be a number or have shape ({rows or model.num_velocities},), got "
            f"{jnp.shape(getattr(goal, field))}; for many goals use jax.vmap."
        )
    size = SIZES.get(type(goal), model.num_velocities)
    weight = getattr(goal, "weight", None)
    if type(goal) in GOALS and weight is not None and jnp.shape(weight) not in ((), (1,), (size,)):
        raise ModelError(f"goal '{name}': weight must be a number or have shape ({size},), got {jnp.shape(weight)}.")


def rows_by_differentiation(function: Any, model: MultibodyModel, q: Float[Array, " nq"]) -> Rows:
    """Any residual, by forward mode."""
    bare = unweighted(function)
    v = jnp.zeros(model.num_velocities, q.dtype)

    def value(d: Array) -> Array:
        return jnp.atleast_1d(bare(model, State(move(model, q, d), v))).reshape(-1)

    return Rows(value(v), jax.jacfwd(value)(v))


def unweighted(goal: Any) -> Any:
    """The goal with weight one, if it has one."""
    if not isinstance(goal, eqx.Module) or getattr(goal, "weight", None) is None:
        return goal
    weighted: Any = goal
    return eqx.tree_at(lambda each: each.weight, weighted, jnp.ones_like(weighted.weight))


def weight_of(goal: Any, size: int, dtype: Any) -> Float[Array, " m"]:
    """The weight of each row of a goal."""
    return jnp.broadcast_to(jnp.asarray(getattr(goal, "weight", 1.0), dtype), (size,))


def relative_rows(
    model: MultibodyModel, position: PositionKinematics, frame: Any, of: Any, p_FP: Array | None
) -> tuple[Array, Array, Array]:
    """R_AF, p_AP and the Jacobian of V_AP_A, of a point P of a frame measured and expressed in frame A."""
    A, F = calc_frame_pose(model, position, of), calc_frame_pose(model, position, frame)
    p_MP_W = F.p_MF_W if p_FP is None else F.p_MF_W + F.R_WF @ p_FP
    p_AP_W = calc_offset(model, position, A, F.mobod, p_MP_W)
    J = calc_point_jacobian(model, position, F.mobod, p_MP_W)
    if A.mobod != 0:
        J = J - calc_point_jacobian(model, position, A.mobod, A.p_MF_W + p_AP_W)
    turned = [jnp.sum(A.R_WF[:, :, None] * half[:, None, :], 0) for half in (J[:3], J[3:])]
    return product(A.R_WF.T, F.R_WF), jnp.sum(A.R_WF * p_AP_W[:, None], 0), jnp.concatenate(turned)


def product(A: Float[Array, "m k"], B: Float[Array, "k n"]) -> Float[Array, "m n"]:
    """A B as a sum, which is part of a larger kernel."""
    return jnp.sum(A[:, :, None] * B[None], 1)


def turn_rows(R: Float[Array, "3 3"], goal: Float[Array, "3 3"], J: Array) -> tuple[Array, Array]:
    """Rotation vector r of R goalᵀ and its Jacobian J_l⁻¹(r) J, J that of the angular velocity."""
    r = rotation_log(product(R, goal.T))
    square = jnp.sum(r * r)
    is_small = square < 1e-4
    s = jnp.where(is_small, 1.0, square)
    angle = safe_norm(jnp.where(is_small, jnp.array([1.0, 0.0, 0.0], r.dtype), r))
    closed = (1.0 - 0.5 * angle * jnp.cos(0.5 * angle) / jnp.sin(0.5 * angle)) / s
    factor = jnp.where(is_small, 1.0 / 12.0 + square / 720.0 + square * square / 30240.0, closed)
    K = skew(r)
    inverse = jnp.eye(3, dtype=r.dtype) - 0.5 * K + factor * product(K, K)
    return r, product(inverse, J)


def pose_rows(goal: PoseGoal, model: MultibodyModel, q: Array, position: PositionKinematics) -> tuple[Array, Array]:
    if goal.in_frame == "own":
        return twist_rows(model, position, goal.frame, goal.X_WF)
    return frame_rows(model, position, goal.frame, "world", goal.X_WF)


def twist_rows(
    model: MultibodyModel, position: PositionKinematics, frame: Any, X_WG: RigidTransform
) -> tuple[Array, Array]:
    """Twist log(X_GF) from the goal G to the frame F, in G, and its Jacobian."""
    R, p, J = relative_rows(model, position, frame, "world", None)
    R_GW = X_WG.rotation.astype(R.dtype).T
    p_GF = jnp.sum(R_GW * (p - X_WG.translation.astype(R.dtype)), 1)
    twist = pose_log(RigidTransform(product(R_GW, R), p_GF))
    J_G = jnp.concatenate([product(R_GW, J[:3]), product(R_GW, J[3:])])
    return twist, product(slopes_of_pose_log(twist), J_G)


def relative_pose_rows(
    goal: RelativePose, model: MultibodyModel, q: Array, position: PositionKinematics
) -> tuple[Array, Array]:
    return frame_rows(model, position, goal.frame, goal.of, goal.X_AF)


def frame_rows(
    model: MultibodyModel, position: PositionKinematics, frame: Any, of: Any, X_AG: Any
) -> tuple[Array, Array]:
    """Difference of X_AF from X_AG, and its Jacobian."""
    R, p, J = relative_rows(model, position, frame, of, None)
    r, J_turn = turn_rows(R, X_AG.rotation.astype(R.dtype), J[:3])
    return jnp.concatenate([r, p - X_AG.translation.astype(R.dtype)]), jnp.concatenate([J_turn, J[3:]])


def point_rows(goal: PointGoal, model: MultibodyModel, q: Array, position: PositionKinematics) -> tuple[Array, Array]:
    _, p, J = relative_rows(model, position, goal.frame, "world", goal.p_FP.astype(q.dtype))
    return p - goal.p_WP.astype(q.dtype), J[3:]


def look_at_rows(goal: LookAt, model: MultibodyModel, q: Array, position: PositionKinematics) -> tuple[Array, Array]:
    """With a the axis and u the direction, at distance l: d(a - u) = w x a + (1 - u uᵀ) dp / l."""
    R, p, J = relative_rows(model, position, goal.frame, "world", goal.p_FP.astype(q.dtype))
    a = jnp.sum(R * safe_normalize(goal.axis_F.astype(q.dtype)), 1)
    to_target = goal.p_WT.astype(q.dtype) - p
    u = safe_normalize(to_target)
    across = jnp.eye(3, dtype=q.dtype) - u[:, None] * u
    least = jnp.asarray(float(jnp.finfo(q.dtype).eps), q.dtype)
    return a - u, product(-skew(a), J[:3]) + product(across, J[3:]) / jnp.maximum(safe_norm(to_target), least)


def center_of_mass_rows(
    goal: CenterOfMass, model: MultibodyModel, q: Array, position: PositionKinematics
) -> tuple[Array, Array]:
    value = center_of_mass_position_in_world(model, q) - goal.p_WCcm.astype(q.dtype)
    return value, jacobian_center_of_mass_translational_velocity(model, q)


CLOSED_FORMS: dict[type, Any] = {
    PoseGoal: pose_rows,
    RelativePose: relative_pose_rows,
    PointGoal: point_rows,
    LookAt: look_at_rows,
    CenterOfMass: center_of_mass_rows,
}
SIZES: dict[type, int] = {PoseGoal: 6, RelativePose: 6, PointGoal: 3, LookAt: 3, CenterOfMass: 3}
GOALS = (*SIZES, JointGoal)
VELOCITIES: dict[type, tuple[str, int]] = {  # where their reference stands, and its rows, 0 for one a velocity
    FrameVelocity: ("V_WF", 6),
    CenterOfMassVelocity: ("v_WCcm", 3),
    Momentum: ("L_WCcm", 6),
    VelocityGoal: ("v", 0),
}
