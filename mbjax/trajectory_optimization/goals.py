"""Residuals that costs and constraints are made of: joints, poses, momentum, effort, distances, contact forces.

Each is an equinox module whose numbers are leaves, called with (model, state) or (model, state, effort), and returns an
array. Of states that are pytrees it reads the first `State`. As a cost, the array counts by half its squares; as a
constraint, by its values. A residual `weight * r` costs weight² r·r / 2; `factor=` in place of `weight` is weight².
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from mbjax.contact import signed_distances
from mbjax.dynamics import (
    center_of_mass_position_in_world,
    center_of_mass_translational_velocity_in_world,
    spatial_momentum_in_world_about_point,
)
from mbjax.errors import ModelError
from mbjax.kinematics import (
    jacobian_spatial_velocity,
    jacobian_translational_velocity,
    points_positions,
    relative_transform,
)
from mbjax.model import MultibodyModel
from mbjax.simulation import State
from mbjax.spatial import RigidTransform, pose_log, rotation_log, safe_normalize

from .own_frames import (
    InFrame,
    checked_frame,
    difference_in,
    slopes_of_difference_in,
    slopes_of_velocity_in,
    velocity_in,
)
from .slopes import Slopes
from .states import parts_of
from .weights import weight_of

FrameName = str | int


def state_of(x: Any) -> State:
    """The first `State` of a state that may be a pytree."""
    for part in parts_of(x):
        if isinstance(part, State):
            return part
    raise ModelError(f"goals of a model need a mbjax.State as the state, or in it, got {type(x).__name__}.")


def slopes_of_positions(model: MultibodyModel, in_frame: InFrame, q_goal: Float[Array, " nq"], x: State) -> Slopes:
    """The distance from a configuration with its Jacobian."""
    q_goal = q_goal.astype(x.q.dtype)
    difference = difference_in(model, in_frame, q_goal, x.q)
    return Slopes(difference, by_q=slopes_of_difference_in(model, in_frame, q_goal, difference))


def slopes_of_velocities(model: MultibodyModel, in_frame: InFrame, v_goal: Float[Array, "..."], x: State) -> Slopes:
    """Velocities less others with their Jacobians."""
    by_q, by_v = slopes_of_velocity_in(model, in_frame, x.q, x.v)
    return Slopes(velocity_in(model, in_frame, x.q, x.v) - v_goal, by_q=by_q, by_v=by_v)


class JointGoal(eqx.Module):
    """Distance of the configuration from `q`, along the tangent of `difference_configuration`.

    With `in_frame="own"` the part of a floating body is the twist in its own frame, log(X_goal⁻¹ X).
    """

    q: Float[Array, " nq"]
    weight: Float[Array, "..."]
    in_frame: InFrame = eqx.field(static=True)

    def __init__(
        self, q: ArrayLike, weight: ArrayLike = 1.0, *, factor: ArrayLike | None = None, in_frame: InFrame = "world"
    ):
        self.q, self.weight = jnp.asarray(q, float), weight_of("JointGoal", weight, factor)
        self.in_frame = checked_frame("JointGoal", in_frame)

    def __call__(self, model: MultibodyModel, x: Any, *rest: Any) -> Float[Array, " nv"]:
        state = state_of(x)
        return self.weight * difference_in(model, self.in_frame, self._goal(state), state.q)

    def slopes(self, model: MultibodyModel, state: State, *rest: Any) -> list[Slopes]:
        """The residual and its Jacobians in closed form."""
        return [slopes_of_positions(model, self.in_frame, self._goal(state), state).scaled(self.weight)]

    def _goal(self, state: State) -> Float[Array, " nq"]:
        if self.q.shape != state.q.shape:
            raise ModelError(f"JointGoal: q has shape {self.q.shape}, the model needs {state.q.shape}.")
        return self.q.astype(state.q.dtype)


class VelocityGoal(eqx.Module):
    """Distance of the generalized velocities from `v`, at rest by default.

    With `in_frame="own"` those of a floating body, and their goal, are along its own axes.
    """

    v: Float[Array, "..."]
    weight: Float[Array, "..."]
    in_frame: InFrame = eqx.field(static=True)

    def __init__(
        self,
        v: ArrayLike = 0.0,
        weight: ArrayLike = 1.0,
        *,
        factor: ArrayLike | None = None,
        in_frame: InFrame = "world",
    ):
        self.v, self.weight = jnp.asarray(v, float), weight_of("VelocityGoal", weight, factor)
        self.in_frame = checked_frame("VelocityGoal", in_frame)

    def __call__(self, model: MultibodyModel, x: Any, *rest: Any) -> Float[Array, " nv"]:
        state = state_of(x)
        return self.weight * (velocity_in(model, self.in_frame, state.q, state.v) - self._goal(state))

    def slopes(self, model: MultibodyModel, state: State, *rest: Any) -> list[Slopes]:
        """The residual and its Jacobians in closed form."""
        return [slopes_of_velocities(model, self.in_frame, self._goal(state), state).scaled(self.weight)]

    def _goal(self, state: State) -> Float[Array, "..."]:
        if self.v.shape not in ((), state.v.shape):
            raise ModelError(f"VelocityGoal: v has shape {self.v.shape}, the model needs {state.v.shape} or a number.")
        return self.v


class StateGoal(eqx.Module):
    """Distance of a state from another along its tangent (dq, dv), for a `State`.

    With `in_frame="own"` floating bodies are seen from themselves: the twist log(X_goal⁻¹ X), and the change of the
    velocity along their own axes, each in its own attitude. Those are the numbers of Crocoddyl and Pinocchio.
    """

    goal: State
    weight: Float[Array, "..."]
    in_frame: InFrame = eqx.field(static=True)

    def __init__(
        self, goal: State, weight: ArrayLike = 1.0, *, factor: ArrayLike | None = None, in_frame: InFrame = "world"
    ):
        self.goal, self.weight = goal, weight_of("StateGoal", weight, factor)
        self.in_frame = checked_frame("StateGoal", in_frame)

    def __call__(self, model: MultibodyModel, x: Any, *rest: Any) -> Float[Array, " two_nv"]:
        state, goal = state_of(x), self.goal
        v, v_goal = (velocity_in(model, self.in_frame, at.q, at.v) for at in (state, goal))
        return self.weight * jnp.concatenate([difference_in(model, self.in_frame, goal.q, state.q), v - v_goal])

    def slopes(self, model: MultibodyModel, state: State, *rest: Any) -> list[Slopes]:
        """The residuals of positions and of velocities, and their Jacobians in closed form."""
        v_goal = velocity_in(model, self.in_frame, self.goal.q, self.goal.v)
        of_q = slopes_of_positions(model, self.in_frame, self.goal.q, state)
        of_v = slopes_of_velocities(model, self.in_frame, v_goal, state)
        weights = jnp.broadcast_to(self.weight, (2 * len(v_goal),)).reshape(2, -1)
        return [of_q.scaled(weights[0]), of_v.scaled(weights[1])]


class Effort(eqx.Module):
    """Efforts, less a reference if given; for running costs."""

    weight: Float[Array, "..."]
    reference: Float[Array, "..."]

    def __init__(self, weight: ArrayLike = 1.0, reference: ArrayLike = 0.0, *, factor: ArrayLike | None = None):
        self.weight, self.reference = weight_of("Effort", weight, factor), jnp.asarray(reference, float)

    def __call__(self, model: Any, state: Any, effort: Array, *rest: Any) -> Float[Array, " nu"]:
        return self.weight * (effort - self.reference)

    def slopes(self, model: Any, state: State, effort: Array, *rest: Any) -> list[Slopes]:
        """The residual and its Jacobian, which is diagonal."""
        return [Slopes(effort - self.reference, by_u=jnp.ones_like(effort)).scaled(self.weight)]


class PointGoal(eqx.Module):
    """Distance of a point, fixed in `frame` at p_FP, from p_WP in the world."""

    p_WP: Float[Array, "3"]
    p_FP: Float[Array, "3"]
    weight: Float[Array, "..."]
    frame: FrameName = eqx.field(static=True)

    def __init__(
        self,
        frame: FrameName,
        p_WP: ArrayLike,
        weight: ArrayLike = 1.0,
        p_FP: Any = (0.0, 0.0, 0.0),
        *,
        factor: ArrayLike | None = None,
    ):
        self.frame, self.weight = frame, weight_of("PointGoal", weight, factor)
        self.p_WP, self.p_FP = jnp.asarray(p_WP, float), jnp.asarray(p_FP, float)

    def __call__(self, model: MultibodyModel, x: Any, *rest: Any) -> Float[Array, "3"]:
        state = state_of(x)
        p_WP = points_positions(model, state.q, self.frame, self.p_FP, "world")
        return self.weight * (p_WP - self.p_WP)

    def slopes(self, model: MultibodyModel, state: State, *rest: Any) -> list[Slopes]:
        """The residual and its Jacobian, that of the point's velocity."""
        p_WP = points_positions(model, state.q, self.frame, self.p_FP, "world")
        J = jacobian_translational_velocity(model, state.q, self.frame, self.p_FP, "world", "world")
        return [Slopes(p_WP - self.p_WP, by_q=J).scaled(self.weight)]


class PoseGoal(eqx.Module):
    """Difference of a frame's pose from X_WF: rotation vector in the world, then translation (6,).

    With `in_frame="own"` it is the twist log(X_goal⁻¹ X) of `pose_log`, rotation first, in the goal's own frame: a
    screw that leads straight from the goal to the frame (`log6` elsewhere).
    """

    X_WF: RigidTransform
    weight: Float[Array, "..."]
    frame: FrameName = eqx.field(static=True)
    in_frame: InFrame = eqx.field(static=True)

    def __init__(
        self,
        frame: FrameName,
        X_WF: RigidTransform,
        weight: ArrayLike = 1.0,
        *,
        factor: ArrayLike | None = None,
        in_frame: InFrame = "world",
    ):
        self.frame, self.X_WF, self.weight = frame, X_WF, weight_of("PoseGoal", weight, factor)
        self.in_frame = checked_frame("PoseGoal", in_frame)

    def __call__(self, model: MultibodyModel, x: Any, *rest: Any) -> Float[Array, "6"]:
        X_WF = relative_transform(model, state_of(x).q, "world", self.frame)
        if self.in_frame == "own":
            return self.weight * pose_log(self.X_WF.inverse() @ X_WF)
        turn = rotation_log(X_WF.rotation @ self.X_WF.rotation.T)
        return self.weight * jnp.concatenate([turn, X_WF.translation - self.X_WF.translation])


class RelativePose(eqx.Module):
    """Difference of the pose of `frame` in `of` from X_AF: rotation vector, then translation, both in `of` (6,)."""

    X_AF: RigidTransform
    weight: Float[Array, "..."]
    frame: FrameName = eqx.field(static=True)
    of: FrameName = eqx.field(static=True)

    def __init__(
        self,
        frame: FrameName,
        of: FrameName,
        X_AF: RigidTransform,
        weight: ArrayLike = 1.0,
        *,
        factor: ArrayLike | None = None,
    ):
        self.frame, self.of, self.X_AF, self.weight = frame, of, X_AF, weight_of("RelativePose", weight, factor)

    def __call__(self, model: MultibodyModel, x: Any, *rest: Any) -> Float[Array, "6"]:
        X_AF = relative_transform(model, state_of(x).q, self.of, self.frame)
        turn = rotation_log(X_AF.rotation @ self.X_AF.rotation.T)
        return self.weight * jnp.concatenate([turn, X_AF.translation - self.X_AF.translation])


class LookAt(eqx.Module):
    """Difference between an axis of `frame`, through its point p_FP, and the direction from there to p_WT (3,).

    Both are unit vectors in the world; the difference has length 2 sin(angle / 2).
    """

    p_WT: Float[Array, "3"]
    axis_F: Float[Array, "3"]
    p_FP: Float[Array, "3"]
    weight: Float[Array, "..."]
    frame: FrameName = eqx.field(static=True)

    def __init__(
        self,
        frame: FrameName,
        p_WT: ArrayLike,
        axis_F: Any = (0.0, 0.0, 1.0),
        weight: ArrayLike = 1.0,
        p_FP: Any = (0.0, 0.0, 0.0),
        *,
        factor: ArrayLike | None = None,
    ):
        self.frame, self.weight = frame, weight_of("LookAt", weight, factor)
        self.p_WT, self.axis_F = jnp.asarray(p_WT, float), jnp.asarray(axis_F, float)
        self.p_FP = jnp.asarray(p_FP, float)

    def __call__(self, model: MultibodyModel, x: Any, *rest: Any) -> Float[Array, "3"]:
        X_WF = relative_transform(model, state_of(x).q, "world", self.frame)
        axis_W = X_WF.rotation @ safe_normalize(self.axis_F)
        return self.weight * (axis_W - safe_normalize(self.p_WT - X_WF @ self.p_FP))


class FrameVelocity(eqx.Module):
    """Spatial velocity of a frame in the world, rotation first, less a reference."""

    V_WF: Float[Array, "..."]
    weight: Float[Array, "..."]
    frame: FrameName = eqx.field(static=True)

    def __init__(
        self, frame: FrameName, V_WF: ArrayLike = 0.0, weight: ArrayLike = 1.0, *, factor: ArrayLike | None = None
    ):
        self.frame, self.V_WF, self.weight = frame, jnp.asarray(V_WF, float), weight_of("FrameVelocity", weight, factor)

    def __call__(self, model: MultibodyModel, x: Any, *rest: Any) -> Float[Array, "6"]:
        state = state_of(x)
        zero = jnp.zeros(3, state.q.dtype)
        J = jacobian_spatial_velocity(model, state.q, self.frame, zero, "world", "world")
        return self.weight * (J @ state.v - self.V_WF)


class CenterOfMass(eqx.Module):
    """Distance of the whole model's centre of mass from p_WCcm."""

    p_WCcm: Float[Array, "3"]
    weight: Float[Array, "..."]

    def __init__(self, p_WCcm: ArrayLike, weight: ArrayLike = 1.0, *, factor: ArrayLike | None = None):
        self.p_WCcm, self.weight = jnp.asarray(p_WCcm, float), weight_of("CenterOfMass", weight, factor)

    def __call__(self, model: MultibodyModel, x: Any, *rest: Any) -> Float[Array, "3"]:
        state = state_of(x)
        return self.weight * (center_of_mass_position_in_world(model, state.q) - self.p_WCcm)


class CenterOfMassVelocity(eqx.Module):
    """Velocity of the whole model's centre of mass, less a reference."""

    v_WCcm: Float[Array, "..."]
    weight: Float[Array, "..."]

    def __init__(self, v_WCcm: ArrayLike = 0.0, weight: ArrayLike = 1.0, *, factor: ArrayLike | None = None):
        self.v_WCcm, self.weight = jnp.asarray(v_WCcm, float), weight_of("CenterOfMassVelocity", weight, factor)

    def __call__(self, model: MultibodyModel, x: Any, *rest: Any) -> Float[Array, "3"]:
        state = state_of(x)
        return self.weight * (center_of_mass_translational_velocity_in_world(model, state.q, state.v) - self.v_WCcm)


class Momentum(eqx.Module):
    """Spatial momentum about the centre of mass, angular part first, less a reference."""

    L_WCcm: Float[Array, "..."]
    weight: Float[Array, "..."]

    def __init__(self, L_WCcm: ArrayLike = 0.0, weight: ArrayLike = 1.0, *, factor: ArrayLike | None = None):
        self.L_WCcm, self.weight = jnp.asarray(L_WCcm, float), weight_of("Momentum", weight, factor)

    def __call__(self, model: MultibodyModel, x: Any, *rest: Any) -> Float[Array, "6"]:
        state = state_of(x)
        p_WCcm = center_of_mass_position_in_world(model, state.q)
        return self.weight * (spatial_momentum_in_world_about_point(model, state.q, state.v, p_WCcm) - self.L_WCcm)


class Clearance(eqx.Module):
    """Signed distances between pairs of collision geometries, in m: for a constraint that keeps them apart."""

    pairs: tuple[tuple[str, str], ...] | None = eqx.field(static=True)

    def __init__(self, pairs: Any = None):
        self.pairs = None if pairs is None else tuple(tuple(pair) for pair in pairs)

    def __call__(self, model: MultibodyModel, x: Any, *rest: Any) -> Float[Array, " pairs"]:
        state = state_of(x)
        if self.pairs is None:
            return signed_distances(model, state.q).distance
        return signed_distances(model, state.q, self.pairs).distance


class Barrier(eqx.Module):
    """Distances of another residual's values from bounds, zero within: as a cost, a quadratic wall."""

    residual: Any
    lower: Float[Array, "..."]
    upper: Float[Array, "..."]
    weight: Float[Array, "..."]

    def __init__(
        self,
        residual: Any,
        lower: ArrayLike,
        upper: ArrayLike,
        weight: ArrayLike = 1.0,
        *,
        factor: ArrayLike | None = None,
    ):
        self.residual, self.weight = residual, weight_of("Barrier", weight, factor)
        self.lower, self.upper = jnp.asarray(lower, float), jnp.asarray(upper, float)

    def __call__(self, model: MultibodyModel, state: Any, *rest: Any) -> Float[Array, " size"]:
        value = self.residual(model, state, *rest)
        return self.weight * (jnp.minimum(value - self.lower, 0.0) + jnp.maximum(value - self.upper, 0.0))
