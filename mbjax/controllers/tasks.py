"""What a controller shall do, each as an acceleration asked of a part of the robot.

A task is a function of model and state. It returns the Jacobian J of a velocity y = J v, the bias J̇ v, and the
acceleration asked for, ẏ_d + Kd (y_d - y) + Kp e. `operational_space` takes one, `whole_body` weighs several.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from mbjax.dynamics import (
    bias_center_of_mass_translational_acceleration,
    center_of_mass_position_in_world,
    jacobian_center_of_mass_translational_velocity,
    spatial_momentum_in_world_about_point,
)
from mbjax.errors import ModelError
from mbjax.kinematics import (
    bias_spatial_acceleration,
    difference_configuration,
    integrate_configuration,
    jacobian_spatial_velocity,
    relative_transform,
)
from mbjax.model import MultibodyModel, as_coordinates
from mbjax.model.poses import PoseLike, as_traced_pose
from mbjax.number_rules import FINITE, NOT_NEGATIVE, NumberRule, checked_numbers
from mbjax.simulation import State
from mbjax.spatial import RigidTransform, rotation_log


class TaskMotion(NamedTuple):
    """The acceleration `wanted` of rows whose acceleration is J vdot + bias."""

    J: Float[Array, "rows nv"]
    bias: Float[Array, " rows"]
    wanted: Float[Array, " rows"]


def feedback(task: Any, acceleration: Any, velocity: Array, error: Array) -> Array:
    """Acceleration asked for by a task whose gains are numbers or one for each row."""
    return acceleration + task.damping * velocity + task.stiffness * error


def checked_rows(
    call: str, what: str, value: ArrayLike, size: int, rule: NumberRule = NOT_NEGATIVE
) -> Float[Array, "..."]:
    """A gain or weight of a task, or a reference by the rule `FINITE`: a number, or one for each of its rows."""
    return jnp.asarray(checked_numbers(call, what, value, rule, (size,), is_repeated=True), float)


class FrameTask(eqx.Module):
    """Moves a frame F to X_WF, with the spatial velocity V_WF_W and acceleration A_WF_W, rotation first.

    `axes` are the rows that count, in the world: 0 to 2 turn about x, y, z, 3 to 5 move along them. `stiffness` in 1/s²
    and `damping` in 1/s are numbers or (6,), rotation first, whatever the `axes`; `weight`, a number or one for each of
    the `axes`, counts in `whole_body` control only. The error is a rotation vector in the world, then a translation.
    V_WF_W and A_WF_W are numbers or (6,) too. Raises `ModelError` for gains, weights and axes that are none.
    """

    X_WF: RigidTransform
    V_WF_W: Float[Array, "..."]
    A_WF_W: Float[Array, "..."]
    stiffness: Float[Array, "..."]
    damping: Float[Array, "..."]
    weight: Float[Array, "..."]
    frame: str | int = eqx.field(static=True)
    axes: tuple[int, ...] = eqx.field(static=True)

    def __init__(
        self,
        frame: str | int,
        X_WF: PoseLike,
        V_WF_W: ArrayLike = 0.0,
        A_WF_W: ArrayLike = 0.0,
        *,
        stiffness: ArrayLike = 100.0,
        damping: ArrayLike = 20.0,
        weight: ArrayLike = 1.0,
        axes: tuple[int, ...] = (0, 1, 2, 3, 4, 5),
    ):
        call = f"FrameTask('{frame}')"
        self.frame, self.X_WF, self.axes = frame, as_traced_pose(f"{call}: X_WF", X_WF), tuple(axes)
        self.V_WF_W = checked_rows(call, "V_WF_W", V_WF_W, 6, FINITE)
        self.A_WF_W = checked_rows(call, "A_WF_W", A_WF_W, 6, FINITE)
        self.stiffness = checked_rows(call, "stiffness", stiffness, 6)
        self.damping = checked_rows(call, "damping", damping, 6)
        self.weight = checked_rows(call, "weight", weight, len(self.axes))
        if not self.axes or len(set(self.axes)) < len(self.axes) or not set(self.axes) <= set(range(6)):
            raise ModelError(f"{call}: axes must be different numbers from 0 to 5, got {self.axes}.")

    def __call__(self, model: MultibodyModel, state: State) -> TaskMotion:
        zero, rows = jnp.zeros(3, model.dtype), jnp.array(self.axes)
        J = jacobian_spatial_velocity(model, state.q, self.frame, zero, "world", "world")
        bias = bias_spatial_acceleration(model, state.q, state.v, self.frame, zero, "world", "world")
        error = pose_error(model, state.q, self.frame, self.X_WF)
        wanted = feedback(self, self.A_WF_W, self.V_WF_W - J @ state.v, error)
        return TaskMotion(J[rows], bias[rows], wanted[rows])


def pose_error(model: MultibodyModel, q: Array, frame: str | int, X_WF_d: RigidTransform) -> Float[Array, "6"]:
    """From a frame's pose to the desired one: the rotation vector in the world, in rad, then the translation, in m."""
    X_WF = relative_transform(model, q, "world", frame)
    turn = rotation_log(X_WF_d.rotation @ X_WF.rotation.T)
    return jnp.concatenate([turn, X_WF_d.translation - X_WF.translation])


class CenterOfMassTask(eqx.Module):
    """Moves the centre of mass of the whole model to p_WCcm, with a velocity and an acceleration, in the world.

    `stiffness` in 1/s², `damping` in 1/s and `weight` are numbers or (3,); the `weight` counts in `whole_body` control
    only. Raises `ModelError` for others.
    """

    p_WCcm: Float[Array, "3"]
    v_WCcm: Float[Array, "..."]
    a_WCcm: Float[Array, "..."]
    stiffness: Float[Array, "..."]
    damping: Float[Array, "..."]
    weight: Float[Array, "..."]

    def __init__(
        self,
        p_WCcm: ArrayLike,
        v_WCcm: ArrayLike = 0.0,
        a_WCcm: ArrayLike = 0.0,
        *,
        stiffness: ArrayLike = 100.0,
        damping: ArrayLike = 20.0,
        weight: ArrayLike = 1.0,
    ):
        self.p_WCcm = jnp.asarray(checked_numbers("CenterOfMassTask", "p_WCcm", p_WCcm, FINITE, (3,), unit="m"), float)
        self.v_WCcm = checked_rows("CenterOfMassTask", "v_WCcm", v_WCcm, 3, FINITE)
        self.a_WCcm = checked_rows("CenterOfMassTask", "a_WCcm", a_WCcm, 3, FINITE)
        self.stiffness = checked_rows("CenterOfMassTask", "stiffness", stiffness, 3)
        self.damping = checked_rows("CenterOfMassTask", "damping", damping, 3)
        self.weight = checked_rows("CenterOfMassTask", "weight", weight, 3)

    def __call__(self, model: MultibodyModel, state: State) -> TaskMotion:
        J = jacobian_center_of_mass_translational_velocity(model, state.q)
        bias = bias_center_of_mass_translational_acceleration(model, state.q, state.v)
        error = self.p_WCcm - center_of_mass_position_in_world(model, state.q)
        return TaskMotion(J, bias, feedback(self, self.a_WCcm, self.v_WCcm - J @ state.v, error))


class PostureTask(eqx.Module):
    """Moves the configuration to q (nq,), with velocities and accelerations, along its tangent.

    `v`, `vdot`, `stiffness` in 1/s², `damping` in 1/s and `weight` are numbers or (nv,), which is checked where the
    model is known; the `weight` counts in `whole_body` control only.
    """

    q: Float[Array, " nq"]
    v: Float[Array, "..."]
    vdot: Float[Array, "..."]
    stiffness: Float[Array, "..."]
    damping: Float[Array, "..."]
    weight: Float[Array, "..."]

    def __init__(
        self,
        q: ArrayLike,
        v: ArrayLike = 0.0,
        vdot: ArrayLike = 0.0,
        *,
        stiffness: ArrayLike = 100.0,
        damping: ArrayLike = 20.0,
        weight: ArrayLike = 1.0,
    ):
        self.q, self.v = jnp.asarray(q, float), jnp.asarray(v, float)
        self.vdot, self.weight = jnp.asarray(vdot, float), jnp.asarray(weight, float)
        self.stiffness, self.damping = jnp.asarray(stiffness, float), jnp.asarray(damping, float)

    def __call__(self, model: MultibodyModel, state: State) -> TaskMotion:
        nv = model.num_velocities
        for what in ("stiffness", "damping", "weight"):
            checked_rows("PostureTask", what, getattr(self, what), nv)
        for what in ("v", "vdot"):
            checked_rows("PostureTask", what, getattr(self, what), nv, FINITE)
        q = as_coordinates("PostureTask: q", self.q, model.num_positions, model.dtype)
        error = difference_configuration(model, state.q, q)
        wanted = feedback(self, self.vdot, self.v - state.v, error)
        return TaskMotion(jnp.eye(nv, dtype=model.dtype), jnp.zeros(nv, model.dtype), wanted)


class MomentumTask(eqx.Module):
    """Brings the spatial momentum about the centre of mass to L_WCcm_W (6,), angular part first, at `damping` 1/s.

    h = A(q) v with the centroidal momentum matrix A (Orin, Goswami and Lee 2013, "Centroidal dynamics of a humanoid
    robot"). `rate` is the rate of change asked for besides, in N m, then N. All are numbers or (6,). Raises
    `ModelError` for others.
    """

    L_WCcm_W: Float[Array, "..."]
    rate: Float[Array, "..."]
    damping: Float[Array, "..."]
    weight: Float[Array, "..."]

    def __init__(
        self, L_WCcm_W: ArrayLike = 0.0, rate: ArrayLike = 0.0, *, damping: ArrayLike = 20.0, weight: ArrayLike = 1.0
    ):
        self.L_WCcm_W = checked_rows("MomentumTask", "L_WCcm_W", L_WCcm_W, 6, FINITE)
        self.rate = checked_rows("MomentumTask", "rate", rate, 6, FINITE)
        self.damping = checked_rows("MomentumTask", "damping", damping, 6)
        self.weight = checked_rows("MomentumTask", "weight", weight, 6)

    def __call__(self, model: MultibodyModel, state: State) -> TaskMotion:
        def momentum(q: Array, v: Array) -> Array:
            return spatial_momentum_in_world_about_point(model, q, v, center_of_mass_position_in_world(model, q))

        def later(time: Array) -> Array:
            return momentum(integrate_configuration(model, state.q, time * state.v), state.v)

        time = jnp.zeros((), model.dtype)
        h, bias = jax.jvp(later, (time,), (jnp.ones_like(time),))
        A = jax.vmap(lambda v: momentum(state.q, v), out_axes=1)(jnp.eye(model.num_velocities, dtype=model.dtype))
        return TaskMotion(A, bias, self.rate + self.damping * (self.L_WCcm_W - h))
