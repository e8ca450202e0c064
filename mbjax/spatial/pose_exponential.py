"""The exponential of SE(3) and its logarithm: poses as six numbers.

Equations: Murray, Li and Sastry, "A Mathematical Introduction to Robotic Manipulation" (1994), (2.36) and appendix A;
Pinocchio calls them `exp6` and `log6`, with the translation first.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .rigid_transform import RigidTransform
from .rotation import rodrigues, rotation_exp, rotation_log, skew
from .safe_math import dot_along, one_minus_cos_over_x2_of_square, sin_over_x_of_square, x_minus_sin_over_x3_of_square
from .small_matrices import cross3, small_matmul, small_matvec


def pose_exp(twist: Float[Array, "*batch 6"]) -> RigidTransform:
    """Pose X_AB that B has after it moved from A for one second along a constant twist; analytic everywhere.

    The twist V_AB_B has the angular velocity first, in rad/s, then the velocity of B's origin, in m/s, both in B. So
    R_AB = exp([w]x) and p_AoBo_A = V(w) v with V = 1 + (1 - cos x)/x² [w]x + (x - sin x)/x³ [w]x² and x = |w|.
    """
    w, v = twist[..., :3], twist[..., 3:]
    return RigidTransform(rotation_exp(w), small_matvec(displacement_matrix(w), v))


def pose_log(X_AB: RigidTransform) -> Float[Array, "*batch 6"]:
    """Twist (6,), rotation first, of which `pose_exp` is X_AB, with a rotation of at most pi.

    At a rotation by pi the derivative is the limit from below, as that of `rotation_log`.
    """
    w = rotation_log(X_AB.rotation)
    return jnp.concatenate([w, small_matvec(inverse_displacement_matrix(w), X_AB.translation)], -1)


def displacement_matrix(w: Float[Array, "*batch 3"]) -> Float[Array, "*batch 3 3"]:
    """V(w), by which a constant velocity of the moving frame's origin becomes its displacement."""
    squared = dot_along(w, w, -1)
    return rodrigues(w, one_minus_cos_over_x2_of_square(squared), x_minus_sin_over_x3_of_square(squared))


def inverse_displacement_matrix(w: Float[Array, "*batch 3"]) -> Float[Array, "*batch 3 3"]:
    """The inverse of V(w) = 1 - [w]x / 2 + (1 - (x/2) cot(x/2))/x² [w]x², for |w| = x below 2 pi."""
    factor = inverse_displacement_factor(dot_along(w, w, -1))
    return rodrigues(w, jnp.full_like(factor, -0.5), factor)


def inverse_displacement_factor(squared: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """(1 - (x/2) cot(x/2))/x² of the square x².

    With h = x/2 it is ((1 - cos h)/h² - (h - sin h)/h³) / (4 sin(h)/h), which does not cancel.
    """
    squared = 0.25 * squared
    difference = one_minus_cos_over_x2_of_square(squared) - x_minus_sin_over_x3_of_square(squared)
    return 0.25 * difference / sin_over_x_of_square(squared)


def slopes_of_pose_log(twist: Float[Array, "6"]) -> Float[Array, "6 6"]:
    """Derivative of the twist `pose_log(X_AB)` as B turns by dθ about A's axes and its origin moves by dp in A.

    Of w it is V(w)⁻¹ dθ, and of v = V(w)⁻¹ p it is V(w)⁻¹ dp + D V(w)⁻¹ dθ, with the derivative D of V(w)⁻¹ p by w:
    [p]x / 2 - f ([w x p]x + [w]x [p]x) + 2 f' (w x (w x p)) wᵀ, where f is the last factor in V⁻¹.
    """
    w, p = twist[:3], small_matvec(displacement_matrix(twist[:3]), twist[3:])
    V_inverse, w_p = inverse_displacement_matrix(w), cross3(w, p)
    squared = dot_along(w, w, -1)
    f, df = jax.jvp(inverse_displacement_factor, (squared,), (jnp.ones_like(squared),))
    D = 0.5 * skew(p) - f * (skew(w_p) + small_matmul(skew(w), skew(p)))
    D = D + 2.0 * df * cross3(w, w_p)[:, None] * w
    upper = jnp.concatenate([V_inverse, jnp.zeros_like(V_inverse)], axis=1)
    return jnp.concatenate([upper, jnp.concatenate([small_matmul(D, V_inverse), V_inverse], axis=1)])
