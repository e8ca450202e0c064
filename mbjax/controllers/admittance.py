"""Admittance: a measured wrench moves the reference of a position controller as it would a mass on a spring."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.linear_algebra import solve
from mbjax.model import as_coordinates
from mbjax.model.poses import PoseLike, as_traced_pose
from mbjax.number_rules import POSITIVE, checked_numbers, is_known
from mbjax.spatial import RigidTransform, rotation_exp, rotation_log

from .actuated_trees import gain_matrix


class AdmittanceState(eqx.Module):
    """Pose X_WC that a position controller shall follow, and its twist V_WC_W (6,), rotation first."""

    X_WC: RigidTransform
    V_WC_W: Float[Array, "6"]

    def __init__(self, X_WC: PoseLike, V_WC_W: ArrayLike | None = None):
        self.X_WC = as_traced_pose("AdmittanceState: X_WC", X_WC)
        still = jnp.zeros(6, self.X_WC.translation.dtype)
        self.V_WC_W = still if V_WC_W is None else as_coordinates("AdmittanceState: V_WC_W", V_WC_W, 6, still.dtype)


def admittance_step(
    state: AdmittanceState, X_WD: PoseLike, F_W: Any, *, inertia: Any, damping: Any, stiffness: Any, dt: Any
) -> AdmittanceState:
    """The compliant pose a time `dt` later, in s, under the wrench F_W (6,) measured on the frame, torque first.

    M V̇ + D V + K e = F_W, with e from the desired pose X_WD to X_WC: a rotation vector in the world, then a translation
    (Siciliano et al. 2009, "Robotics", section 9.3). The step is implicit, so stable at any dt:
    (M + dt D + dt² K) V' = M V + dt (F_W - K e), and the pose moves by dt V'. The three gains are numbers, (6,) or
    (6, 6), at least one of which is not zero in each direction. It knows no model: give X_WC to inverse kinematics,
    `computed_torque` or `operational_space`.
    """
    dtype = state.X_WC.translation.dtype
    X_WD = as_traced_pose("admittance_step: X_WD", X_WD, dtype)
    M, D, K = (
        gain_matrix(f"admittance_step: {name}", gain, 6, dtype)
        for name, gain in (("inertia", inertia), ("damping", damping), ("stiffness", stiffness))
    )
    dt = jnp.asarray(checked_numbers("admittance_step", "dt", dt, POSITIVE, unit="s"), dtype)
    F_W = jnp.asarray(F_W, dtype)
    if is_known(M, D, K) and not np.all(np.any(np.asarray(M + D + K) != 0.0, axis=1)):
        raise ModelError(
            "admittance_step: inertia, damping and stiffness are all zero in some direction, so nothing says how the "
            "pose moves under a force; give one of them there."
        )
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
