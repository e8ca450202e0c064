"""Rotation matrices, rotation vectors and roll-pitch-yaw angles.

R_AB maps components in B to components in A. Angles are radians. Leading axes are batch axes.
Quaternion functions live in `quaternion.py` and are re-exported here.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .checked_arrays import as_batch_of
from .quaternion import matrix_to_quaternion as matrix_to_quaternion
from .quaternion import quaternion_conjugate as quaternion_conjugate
from .quaternion import quaternion_exp as quaternion_exp
from .quaternion import quaternion_log as quaternion_log
from .quaternion import quaternion_multiply as quaternion_multiply
from .quaternion import quaternion_rates_matrix as quaternion_rates_matrix
from .quaternion import quaternion_rates_to_angular_velocity_matrix as quaternion_rates_to_angular_velocity_matrix
from .quaternion import quaternion_rotate as quaternion_rotate
from .quaternion import quaternion_to_matrix as quaternion_to_matrix
from .safe_math import cos_and_sinc_of_square, dot_along, safe_arctan2, safe_norm, safe_normalize
from .small_matrices import align_leading_axes, matrix_of_rows


def _matrix(entries: list[Array]) -> Float[Array, "*batch 3 3"]:
    """Matrix of nine entries of equal shape, given row by row."""
    return matrix_of_rows([entries[:3], entries[3:6], entries[6:]])


def skew(p: Float[Array, "*batch 3"]) -> Float[Array, "*batch 3 3"]:
    """Skew matrix [p]x, with [p]x a = p x a."""
    x, y, z = p[..., 0], p[..., 1], p[..., 2]
    zero = jnp.zeros_like(x)
    return _matrix([zero, -z, y, z, zero, -x, -y, x, zero])


def vee(S: Float[Array, "*batch 3 3"]) -> Float[Array, "*batch 3"]:
    """Inverse of `skew`; of a matrix that is not skew it reads the skew part."""
    differences = [S[..., 2, 1] - S[..., 1, 2], S[..., 0, 2] - S[..., 2, 0]]
    differences += [S[..., 1, 0] - S[..., 0, 1]]
    return 0.5 * jnp.stack(differences, axis=-1)


def x_rotation(angle: Float[Array, "*batch"]) -> Float[Array, "*batch 3 3"]:
    """Rotation about the shared x axis."""
    c, s = jnp.cos(angle), jnp.sin(angle)
    zero, one = jnp.zeros_like(c), jnp.ones_like(c)
    return _matrix([one, zero, zero, zero, c, -s, zero, s, c])


def y_rotation(angle: Float[Array, "*batch"]) -> Float[Array, "*batch 3 3"]:
    """Rotation about the shared y axis."""
    c, s = jnp.cos(angle), jnp.sin(angle)
    zero, one = jnp.zeros_like(c), jnp.ones_like(c)
    return _matrix([c, zero, s, zero, one, zero, -s, zero, c])


def z_rotation(angle: Float[Array, "*batch"]) -> Float[Array, "*batch 3 3"]:
    """Rotation about the shared z axis."""
    c, s = jnp.cos(angle), jnp.sin(angle)
    zero, one = jnp.zeros_like(c), jnp.ones_like(c)
    return _matrix([c, -s, zero, s, c, zero, zero, zero, one])


def axis_angle_to_matrix(axis: Float[Array, "... 3"], angle: Float[Array, "..."]) -> Float[Array, "... 3 3"]:
    """Rotation R = 1 + sin(a) [n]x + (1 - cos a) [n]x^2 about n = axis/|axis| (Rodrigues).

    Smooth in the angle everywhere. A zero axis has no direction and gives the identity; builders
    refuse it.
    """
    axis = as_batch_of("axis_angle_to_matrix: axis", axis, 3)
    angle = angle if hasattr(angle, "ndim") else jnp.asarray(angle, axis.dtype)
    axis, angle = align_leading_axes(axis, angle, 1, 0)
    n = safe_normalize(axis)
    return rodrigues(n, jnp.sin(angle), 1.0 - jnp.cos(angle))


def rotation_exp(rotation_vector: Float[Array, "*batch 3"]) -> Float[Array, "*batch 3 3"]:
    """Rotation matrix exp([r]x) of the rotation by |r| radians about r; analytic everywhere."""
    quarter_square = 0.25 * dot_along(rotation_vector, rotation_vector, -1)
    cosine, sinc = cos_and_sinc_of_square(quarter_square)
    return rodrigues(rotation_vector, cosine * sinc, 0.5 * sinc * sinc)


def rotation_log(R_AB: Float[Array, "*batch 3 3"]) -> Float[Array, "*batch 3"]:
    """Rotation vector of angle at most pi with `rotation_exp` of it equal to R_AB.

    At angle pi the derivative is the limit from below; see `quaternion_log`.
    """
    return quaternion_log(matrix_to_quaternion(R_AB))


def rodrigues(r: Array, first: Array, second: Array) -> Float[Array, "... 3 3"]:
    """Matrix 1 + first [r]x + second [r]x^2."""
    x, y, z = r[..., 0], r[..., 1], r[..., 2]
    ax, ay, az = first * x, first * y, first * z
    bx, by, bz = second * x, second * y, second * z
    entries = [1.0 - by * y - bz * z, bx * y - az, bx * z + ay]
    entries += [bx * y + az, 1.0 - bx * x - bz * z, by * z - ax]
    entries += [bx * z - ay, by * z + ax, 1.0 - bx * x - by * y]
    return _matrix(entries)


def rpy_to_matrix(rpy: Float[Array, "*batch 3"]) -> Float[Array, "*batch 3 3"]:
    """Rotation R_AB = Rz(yaw) Ry(pitch) Rx(roll) of rpy = (roll, pitch, yaw): Drake's and URDF's order."""
    c, s = jnp.cos(rpy), jnp.sin(rpy)
    c0, c1, c2 = c[..., 0], c[..., 1], c[..., 2]
    s0, s1, s2 = s[..., 0], s[..., 1], s[..., 2]
    entries = [c2 * c1, c2 * s1 * s0 - s2 * c0, c2 * s1 * c0 + s2 * s0]
    entries += [s2 * c1, s2 * s1 * s0 + c2 * c0, s2 * s1 * c0 - c2 * s0]
    entries += [-s1, c1 * s0, c1 * c0]
    return _matrix(entries)


def rpy_to_quaternion(rpy: Float[Array, "*batch 3"]) -> Float[Array, "*batch 4"]:
    """Unit quaternion of `rpy_to_matrix(rpy)`; smooth, with no choice of sign."""
    c, s = jnp.cos(0.5 * rpy), jnp.sin(0.5 * rpy)
    c0, c1, c2 = c[..., 0], c[..., 1], c[..., 2]
    s0, s1, s2 = s[..., 0], s[..., 1], s[..., 2]
    return jnp.stack(
        [
            c2 * c1 * c0 + s2 * s1 * s0,
            c2 * c1 * s0 - s2 * s1 * c0,
            c2 * s1 * c0 + s2 * c1 * s0,
            s2 * c1 * c0 - c2 * s1 * s0,
        ],
        axis=-1,
    )


def matrix_to_rpy(R_AB: Float[Array, "*batch 3 3"]) -> Float[Array, "*batch 3"]:
    """(roll, pitch, yaw) with `rpy_to_matrix` of it equal to R_AB; pitch within +-pi/2.

    A true singularity sits at pitch = +-pi/2, where only roll - yaw or roll + yaw is determined.
    The angles returned there are Drake's and reproduce R_AB, but derivatives of roll and yaw grow
    like 1/cos(pitch) on approach, and exactly there the undetermined combination gets derivative
    zero. Use quaternions or `rotation_log` for anything differentiated. The method is Mitiguy's
    quaternion form, as in Drake's RollPitchYaw.
    """
    return _rpy(matrix_to_quaternion(R_AB), R_AB)


def quaternion_to_rpy(q_AB: Float[Array, "*batch 4"]) -> Float[Array, "*batch 3"]:
    """(roll, pitch, yaw) of a quaternion; singular at pitch = +-pi/2, see `matrix_to_rpy`."""
    return _rpy(q_AB, quaternion_to_matrix(q_AB))


def _rpy(q: Float[Array, "*batch 4"], R: Float[Array, "*batch 3 3"]) -> Float[Array, "*batch 3"]:
    w, x, y, z = (q[..., i] for i in range(4))
    first_row_and_last_column = [R[..., 0, 0], R[..., 1, 0], R[..., 2, 1], R[..., 2, 2]]
    cos_pitch = safe_norm(jnp.stack(first_row_and_last_column, axis=-1)) * (0.5**0.5)
    pitch = safe_arctan2(-R[..., 2, 0], cos_pitch)
    radius = max(1e-10, float(jnp.finfo(q.dtype).eps))  # 1e-10 is Drake's
    half_sum = safe_arctan2(x + z, w - y, radius)  # (yaw + roll) / 2
    half_difference = safe_arctan2(z - x, w + y, radius)  # (yaw - roll) / 2
    roll = _wrap_to_pi(half_sum - half_difference)
    yaw = _wrap_to_pi(half_sum + half_difference)
    return jnp.stack([roll, pitch, yaw], axis=-1)


def _wrap_to_pi(angle: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Wraps an angle in [-2 pi, 2 pi] to [-pi, pi]; the derivative is one."""
    lowered = jnp.where(angle > jnp.pi, angle - 2.0 * jnp.pi, angle)
    return jnp.where(lowered < -jnp.pi, lowered + 2.0 * jnp.pi, lowered)


def rpy_rates_to_angular_velocity_matrix(
    rpy: Float[Array, "*batch 3"],
) -> Float[Array, "*batch 3 3"]:
    """Matrix E(rpy) in w_AB_A = E(rpy) d(rpy)/dt for R_AB = rpy_to_matrix(rpy). Roll does not enter."""
    pitch, yaw = rpy[..., 1], rpy[..., 2]
    cp, sp, cy, sy = jnp.cos(pitch), jnp.sin(pitch), jnp.cos(yaw), jnp.sin(yaw)
    zero, one = jnp.zeros_like(cp), jnp.ones_like(cp)
    return _matrix([cy * cp, -sy, zero, sy * cp, cy, zero, -sp, zero, one])


def angular_velocity_to_rpy_rates_matrix(
    rpy: Float[Array, "*batch 3"],
) -> Float[Array, "*batch 3 3"]:
    """Inverse of `rpy_rates_to_angular_velocity_matrix`: d(rpy)/dt = N(rpy) w_AB_A.

    Singular at cos(pitch) = 0 and not guarded: entries grow like 1/cos(pitch), because no
    finite rate exists there.
    """
    pitch, yaw = rpy[..., 1], rpy[..., 2]
    sp, cy, sy = jnp.sin(pitch), jnp.cos(yaw), jnp.sin(yaw)
    inverse_cp = 1.0 / jnp.cos(pitch)
    zero, one = jnp.zeros_like(sp), jnp.ones_like(sp)
    first_row = [cy * inverse_cp, sy * inverse_cp, zero]
    last_row = [cy * sp * inverse_cp, sy * sp * inverse_cp, one]
    return _matrix([*first_row, -sy, cy, zero, *last_row])
