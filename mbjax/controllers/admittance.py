"""Admittance: a measured wrench moves the reference of a position controller as it would a mass on a spring."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.linear_algebra import solve
from mbjax.spatial import RigidTransform, rotation_exp, rotation_log

from .actuated_trees import gain_matrix


class AdmittanceState(eqx.Module):
    """Pose X_WC that a position controller shall follow, and its twist V_WC_W (6,), rotation first."""

    X_WC: RigidTransform
    V_WC_W: Float[Array, "6"]

    def __init__(self, X_WC: RigidTransform, V_WC_W: ArrayLike | None = None):
        self.X_WC = X_WC
        self.V_WC_W = jnp.zeros(6, X_WC.translation.dtype) if V_WC_W is None else jnp.asarray(V_WC_W)


def admittance_step(
    state: AdmittanceState, X_WD: RigidTransform, F_W: Any, *, inertia: Any, damping: Any, stiffness: Any, dt: Any
) -> AdmittanceState:
    """The compliant pose a time `dt` later, in s, under the wrench F_W (6,) measured on the frame, torque first.

    M V̇ + D V + K e = F_W, with e from the desired pose X_WD to X_WC: a rotation vector in the world, then a translation
    (Siciliano et al. 2009, "Robotics", section 9.3). The step is implicit, so stable at any dt:
    (M + dt D + dt² K) V' = M V + dt (F_W - K e), and the pose moves by dt V'. The three gains are numbers, (6,) or
    (6, 6). It knows no model: give X_WC to inverse kinematics, `computed_torque` or `operational_space`.
    """
    dtype = state.X_WC.translation.dtype
    M, D, K = (
        gain_matrix(name, gain, 6, dtype)
        for name, gain in (("inertia", inertia), ("damping", damping), ("stiffness", stiffness))
    )
    F_W, dt = jnp.asarray(F_W, dtype), jnp.asarray(dt, dtype)
    if F_W.shape != (6,):
        raise ModelError(f"admittance_step: F_W has shape {F_W.shape}; a wrench is (6,), torque first.")
    e = pose_difference(X_WD, state.X_WC)
    V = solve(M + dt * D + dt**2 * K, M @ state.V_WC_W + dt * (F_W - K @ e))
    R_WC = rotation_exp(dt * V[:3]) @ state.X_WC.rotation
    return AdmittanceState(RigidTransform(R_WC, state.X_WC.translation + dt * V[3:]), V)


def pose_difference(X_WA: RigidTransform, X_WB: RigidTransform) -> Float[Array, "6"]:
    """From A to B in the world: a rotation vector, in rad, then a translation, in m."""
    turn: Array = rotation_log(X_WB.rotation @ X_WA.rotation.T)
    return jnp.concatenate([turn, X_WB.translation - X_WA.translation])
