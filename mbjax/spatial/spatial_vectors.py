"""Spatial velocity, acceleration, force and momentum as plain (6,) arrays, rotation part first.

V_WB_E = [w_WB_E, v_WBo_E], A_WB_E = [alpha_WB_E, a_WBo_E], F_Bo_E = [t_Bo_E, f_E],
L_Bo_E = [h_Bo_E, l_E]; all parts of one call are expressed in the same frame E. Formulas are
those of Drake's multibody/math (Jain 2010, chapter 1). Leading axes broadcast.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .small_matrices import align_leading_axes, cross3, small_matvec

Vector3 = Float[Array, "... 3"]
Vector6 = Float[Array, "... 6"]


def _join(rotational: Array, translational: Array) -> Array:
    shape = jnp.broadcast_shapes(rotational.shape, translational.shape)
    parts = [jnp.broadcast_to(part, shape) for part in (rotational, translational)]
    return jnp.concatenate(parts, axis=-1)


def _add_to_part(part: Array, increment: Array) -> Array:
    part, increment = align_leading_axes(part, increment, 1, 1)
    return part + increment


def cross_motion(V: Vector6, W: Vector6) -> Vector6:
    """V x W: rate of the motion vector W, fixed in a frame that moves with V.

    [w x W_rot, w x W_tran + v x W_rot]  (Featherstone 2008, eq. 2.31)
    """
    w, v = V[..., :3], V[..., 3:]
    rotational = cross3(w, W[..., :3])
    return _join(rotational, cross3(w, W[..., 3:]) + cross3(v, W[..., :3]))


def cross_force(V: Vector6, F: Vector6) -> Vector6:
    """V x* F: rate of the force vector F, fixed in a frame that moves with V; -(V x)^T F.

    [w x t + v x f, w x f]  (Featherstone 2008, eq. 2.32)
    """
    w, v = V[..., :3], V[..., 3:]
    rotational = cross3(w, F[..., :3]) + cross3(v, F[..., 3:])
    return _join(rotational, cross3(w, F[..., 3:]))


def shift_spatial_velocity(V_WA_E: Vector6, p_AB_E: Vector3) -> Vector6:
    """Velocity V_WB_E of a frame B fixed to A, offset by p_AoBo_E: v_B = v_A + w x p."""
    w, v = V_WA_E[..., :3], V_WA_E[..., 3:]
    return _join(w, _add_to_part(v, cross3(w, p_AB_E)))


def shift_spatial_acceleration(A_WA_E: Vector6, p_AB_E: Vector3, w_WA_E: Vector3) -> Vector6:
    """Acceleration A_WB_E of a frame B fixed to A: a_B = a_A + alpha x p + w x (w x p)."""
    alpha, a = A_WA_E[..., :3], A_WA_E[..., 3:]
    centripetal = cross3(w_WA_E, cross3(w_WA_E, p_AB_E))
    return _join(alpha, _add_to_part(_add_to_part(a, cross3(alpha, p_AB_E)), centripetal))


def shift_spatial_force(F_A_E: Vector6, p_AB_E: Vector3) -> Vector6:
    """Shifts a spatial force from point A to point B: t_B = t_A - p_AB x f."""
    t, f = F_A_E[..., :3], F_A_E[..., 3:]
    return _join(_add_to_part(t, -cross3(p_AB_E, f)), f)


def shift_spatial_momentum(L_A_E: Vector6, p_AB_E: Vector3) -> Vector6:
    """Shifts a spatial momentum from point A to point B: h_B = h_A - p_AB x l."""
    return shift_spatial_force(L_A_E, p_AB_E)


def compose_spatial_velocity(V_WP_E: Vector6, p_PB_E: Vector3, V_PB_E: Vector6) -> Vector6:
    """Velocity V_WB_E of a frame B that moves in P with V_PB_E; p_PB_E runs from Po to Bo.

    V_WB = shift(V_WP, p_PB) + V_PB  (Drake's ComposeWithMovingFrameVelocity)
    """
    return _add_to_part(shift_spatial_velocity(V_WP_E, p_PB_E), V_PB_E)


def compose_spatial_acceleration(
    A_WP_E: Vector6, p_PB_E: Vector3, w_WP_E: Vector3, V_PB_E: Vector6, A_PB_E: Vector6
) -> Vector6:
    """Acceleration A_WB_E of a frame B that moves in P with V_PB_E and A_PB_E, both measured in P.

    A_WB = shift(A_WP, p_PB, w_WP) + A_PB + [w_WP x w_PB, 2 w_WP x v_PB]
    (Drake's ComposeWithMovingFrameAcceleration)
    """
    w_PB, v_PB = V_PB_E[..., :3], V_PB_E[..., 3:]
    coupling = _join(cross3(w_WP_E, w_PB), 2.0 * cross3(w_WP_E, v_PB))
    A_shifted = shift_spatial_acceleration(A_WP_E, p_PB_E, w_WP_E)
    return _add_to_part(_add_to_part(A_shifted, A_PB_E), coupling)


def re_express(R_AE: Float[Array, "... 3 3"], V_E: Vector6) -> Vector6:
    """Re-expresses a spatial vector of any kind from E in A: both parts are multiplied by R_AE."""
    return _join(small_matvec(R_AE, V_E[..., :3]), small_matvec(R_AE, V_E[..., 3:]))
