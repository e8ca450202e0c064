"""Cartesian impedance: a frame yields as a spring and a damper, and the rest of the arm keeps a posture."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.dynamics import mass_matrix
from mbjax.execution import call_compiled
from mbjax.kinematics import difference_configuration, jacobian_spatial_velocity
from mbjax.model import MultibodyModel, as_array
from mbjax.model.poses import PoseLike, as_traced_pose
from mbjax.simulation import State
from mbjax.spatial import RigidTransform

from .actuated_trees import checked, efforts_of, finite_coordinates, gain_matrix
from .damping_design import damping_matrix
from .driven_frames import require_driven_frame
from .gravity_compensation import holding_force
from .held_inertia import free_columns, held_inertia
from .joint_impedance import damping_or_ratio
from .task_inertia import calc_task_inertia, without_effect
from .tasks import pose_error


class Posture(NamedTuple):
    """Spring and damper towards a configuration, in joints."""

    q: Float[Array, " nq"]
    K: Float[Array, "nv nv"]
    D: Float[Array, "nv nv"]


def cartesian_impedance(
    model: MultibodyModel,
    state: State,
    frame: str | int,
    X_WF_d: PoseLike,
    V_WF_d: Any = 0.0,
    *,
    stiffness: Any,
    damping: Any = None,
    damping_ratio: Any = None,
    posture: Any = None,
    posture_stiffness: Any = 10.0,
    posture_damping: Any = 2.0,
) -> Float[Array, " nu"]:
    """Efforts (nu,) in N m or N with which `frame` yields about the pose X_WF_d as a spring and a damper do.

    B u = g(q) + Jᵀ (K e + D (V_d - V)) + (1 - Jᵀ J̄ᵀ)(K_q (q_0 ⊖ q) - D_q v)

    (Ott 2008, "Cartesian Impedance Control of Redundant and Flexible-Joint Robots"; Hogan 1985).
    Twists and wrenches are (6,) in the world at the frame's origin, rotation first; e is a rotation vector and a
    translation. A wrench F on the frame moves it at rest by K⁻¹ F. K is the `stiffness` in N m/rad, then N/m: a number,
    (6,) or (6, 6). D is the `damping`, or what gives every mode a `damping_ratio`, 1 by default, with the inertia of
    the frame at q. `posture` q_0 (nq,) is what the remaining freedom tends to, without a wrench on the frame, by
    `posture_stiffness` and `posture_damping` of joints. Raises `ModelError` where a joint of the arm has no actuator.
    """
    state = checked("cartesian_impedance", model, state)
    require_driven_frame("cartesian_impedance", model, frame)
    X_WF_d = as_traced_pose("cartesian_impedance: X_WF_d", X_WF_d, model.dtype)
    K = gain_matrix("cartesian_impedance: stiffness", stiffness, 6, model.dtype)
    D, ratio = damping_or_ratio("cartesian_impedance", damping, damping_ratio, 6, model.dtype)
    V_d = as_array("cartesian_impedance: V_WF_d", V_WF_d, 6, model.dtype)
    V_d = jnp.full(6, V_d) if V_d.ndim == 0 else V_d
    V_d = finite_coordinates("cartesian_impedance: V_WF_d", V_d, 6, model.dtype)
    kept = as_posture("cartesian_impedance", model, posture, posture_stiffness, posture_damping)
    return call_compiled(yielding_efforts, model, state, frame, X_WF_d, V_d, K, D, ratio, kept)


def as_posture(call: str, model: MultibodyModel, q: Any, stiffness: Any, damping: Any) -> Posture | None:
    """The posture with its gains as matrices; None if there is none."""
    if q is None:
        return None
    nv, dtype = model.num_velocities, model.dtype
    K = gain_matrix(f"{call}: posture_stiffness", stiffness, nv, dtype)
    D = gain_matrix(f"{call}: posture_damping", damping, nv, dtype)
    return Posture(finite_coordinates(f"{call}: posture", q, model.num_positions, dtype), K, D)


def posture_force(model: MultibodyModel, state: State, posture: Posture) -> Float[Array, " nv"]:
    """Generalized forces of the springs and dampers towards a posture."""
    return posture.K @ difference_configuration(model, state.q, posture.q) - posture.D @ state.v


def yielding_efforts(
    model: MultibodyModel, state: State, frame: Any, X_WF_d: RigidTransform, V_d: Array, K: Array, D: Any,
    ratio: Array, posture: Posture | None,
) -> Float[Array, " nu"]:  # fmt: skip
    """Efforts of Cartesian impedance, from checked arguments."""
    zero = jnp.zeros(3, model.dtype)
    J = free_columns(model, jacobian_spatial_velocity(model, state.q, frame, zero, "world", "world"))
    tau = holding_force(model, state.q)
    if D is None or posture is not None:
        of = calc_task_inertia(held_inertia(model, mass_matrix(model, state.q)), J)
        D = damping_matrix(of.inertia, K, ratio) if D is None else D
        if posture is not None:
            tau = tau + without_effect(J, of, posture_force(model, state, posture))
    F_W = K @ pose_error(model, state.q, frame, X_WF_d) + D @ (V_d - J @ state.v)
    return efforts_of(model, tau + J.T @ F_W)
