"""Quaternions (w, x, y, z): algebra, exponential and logarithm, kinematics.

A quaternion q_AB and the matrix R_AB it stands for map components in B to components in A. Any
nonzero multiple of q stands for the same rotation, and every function here that reads a rotation
out of q normalises, so derivatives with respect to the four raw numbers are those of the
normalised value. The zero quaternion reads as the identity. Leading axes are batch axes.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .safe_math import (
    angle_over_sine_of_square,
    cos_and_sinc_of_square,
    dot_along,
    repeat_along,
    safe_divide,
)
from .small_matrices import align_leading_axes, cross3, matrix_of_rows


def quaternion_to_matrix(q_AB: Float[Array, "*batch 4"]) -> Float[Array, "*batch 3 3"]:
    """Rotation matrix R_AB of the normalised quaternion."""
    w, x, y, z = jnp.unstack(q_AB, axis=-1)
    two_over_squared_norm = safe_divide(jnp.full_like(w, 2.0), w * w + x * x + y * y + z * z)
    sx, sy, sz = (two_over_squared_norm * component for component in (x, y, z))
    xx, yy, zz = sx * x, sy * y, sz * z
    xy, xz, yz = sx * y, sx * z, sy * z
    wx, wy, wz = sx * w, sy * w, sz * w
    return matrix_of_rows(
        [
            [1.0 - yy - zz, xy - wz, xz + wy],
            [xy + wz, 1.0 - xx - zz, yz - wx],
            [xz - wy, yz + wx, 1.0 - xx - yy],
        ]
    )


def matrix_to_quaternion(R_AB: Float[Array, "*batch 3 3"]) -> Float[Array, "*batch 4"]:
    """Unit quaternion q_AB with w >= 0.

    4 q q^T is linear in R. Its row with the largest diagonal entry (at least 1 for a rotation) is
    normalised, so nothing singular is met at any angle (Shepperd 1978; Drake does the same).
    """
    diagonal_sums, off_diagonal = _four_q_q_transposed(R_AB)
    (d0, d1, d2, d3), (wx, wy, wz, xy, xz, yz) = diagonal_sums, off_diagonal
    rows = matrix_of_rows([[d0, wx, wy, wz], [wx, d1, xy, xz], [wy, xy, d2, yz], [wz, xz, yz, d3]])
    largest = jnp.argmax(jnp.stack(diagonal_sums, axis=-1), axis=-1)
    is_largest = largest[..., None] == jnp.arange(4).reshape((1,) * largest.ndim + (4,))
    row = jnp.sum(jnp.where(is_largest[..., None], rows, 0.0), axis=-2)
    q = row / repeat_along(jnp.sqrt(dot_along(row, row, -1)), 4, -1)
    return jnp.where(q[..., :1] < 0.0, -q, q)


def _four_q_q_transposed(R: Float[Array, "*batch 3 3"]) -> tuple[list[Array], list[Array]]:
    """Entries of 4 q q^T: diagonal (ww, xx, yy, zz), then (wx, wy, wz, xy, xz, yz)."""
    r00, r11, r22 = R[..., 0, 0], R[..., 1, 1], R[..., 2, 2]
    diagonal = [1.0 + r00 + r11 + r22, 1.0 + r00 - r11 - r22]
    diagonal += [1.0 - r00 + r11 - r22, 1.0 - r00 - r11 + r22]
    off_diagonal = [R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0]]
    off_diagonal += [R[..., 1, 0] - R[..., 0, 1], R[..., 0, 1] + R[..., 1, 0]]
    off_diagonal += [R[..., 0, 2] + R[..., 2, 0], R[..., 1, 2] + R[..., 2, 1]]
    return diagonal, off_diagonal


def quaternion_multiply(q_AB: Float[Array, "... 4"], q_BC: Float[Array, "... 4"]) -> Float[Array, "... 4"]:
    """Hamilton product: q_AC = q_AB q_BC. Nothing is normalised."""
    q_AB, q_BC = align_leading_axes(q_AB, q_BC, 1, 1)
    w1, x1, y1, z1 = jnp.unstack(q_AB, axis=-1)
    w2, x2, y2, z2 = jnp.unstack(q_BC, axis=-1)
    return jnp.stack(
        [
            w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2,
            w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
            w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2,
            w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2,
        ],
        axis=-1,
    )


def quaternion_conjugate(q_AB: Float[Array, "*batch 4"]) -> Float[Array, "*batch 4"]:
    """Conjugate (w, -x, -y, -z), the inverse rotation q_BA when q_AB has unit length."""
    return jnp.concatenate([q_AB[..., :1], -q_AB[..., 1:]], axis=-1)


def quaternion_rotate(q_AB: Float[Array, "... 4"], p_B: Float[Array, "... 3"]) -> Float[Array, "... 3"]:
    """Rotates p_A = R_AB p_B; leading axes broadcast, and q is normalised."""
    q_AB, p_B = align_leading_axes(q_AB, p_B, 1, 1)
    w, u = q_AB[..., :1], q_AB[..., 1:]
    squared_norm = dot_along(q_AB, q_AB, -1)[..., None]
    scale = safe_divide(jnp.full_like(w, 2.0), squared_norm)
    u_cross_p = cross3(u, p_B)
    return p_B + scale * (w * u_cross_p + cross3(u, u_cross_p))


def quaternion_exp(rotation_vector: Float[Array, "*batch 3"]) -> Float[Array, "*batch 4"]:
    """Unit quaternion of the rotation by |r| radians about r: (cos |r|/2, sin(|r|/2) r/|r|).

    Analytic everywhere, r = 0 included. Not canonicalised: w < 0 for pi < |r| < 3 pi.
    """
    squared = dot_along(rotation_vector, rotation_vector, -1)[..., None]
    cosine, sinc = cos_and_sinc_of_square(0.25 * squared)
    return jnp.concatenate([cosine, (0.5 * sinc) * rotation_vector], axis=-1)


def quaternion_log(q: Float[Array, "*batch 4"]) -> Float[Array, "*batch 3"]:
    """Rotation vector of angle at most pi, in radians; the same for q, -q and any multiple.

    Smooth at q = +identity and q = -identity. At angle pi the two rotation vectors r and -r stand
    for the same rotation: the value follows the sign of q's vector part if w = 0, and the
    derivative is the limit from below pi.
    """
    scalar, vector = q[..., :1], q[..., 1:]
    is_flipped = scalar < 0.0
    scalar = jnp.where(is_flipped, -scalar, scalar)
    vector = jnp.where(is_flipped, -vector, vector)
    sine_squared = dot_along(vector, vector, -1)[..., None]
    return 2.0 * angle_over_sine_of_square(sine_squared, scalar) * vector


def quaternion_rates_matrix(q_FM: Float[Array, "*batch 4"]) -> Float[Array, "*batch 4 3"]:
    """Matrix Nq(q) in qdot = Nq(q) w_FM_F, with the angular velocity expressed in the outer frame F.

    q is used as it is: for |q| != 1 the columns scale with |q|, as in Drake's MapVelocityToQDot,
    which keeps |q| constant along the motion.
    """
    half = 0.5 * q_FM
    w, x, y, z = jnp.unstack(half, axis=-1)
    return matrix_of_rows([[-x, -y, -z], [w, z, -y], [-z, w, x], [y, -x, w]])


def quaternion_rates_to_angular_velocity_matrix(
    q_FM: Float[Array, "*batch 4"],
) -> Float[Array, "*batch 3 4"]:
    """Left inverse of `quaternion_rates_matrix`: w_FM_F = 4 Nq(q)^T / |q|^2 qdot.

    The part of qdot along q, which only changes |q|, is ignored, as in Drake's MapQDotToVelocity.
    """
    Nq = quaternion_rates_matrix(q_FM)
    squared_norm = dot_along(q_FM, q_FM, -1)
    scale = safe_divide(jnp.full_like(squared_norm, 4.0), squared_norm)
    return scale[..., None, None] * jnp.swapaxes(Nq, -1, -2)
