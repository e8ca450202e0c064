"""Signed distance of a point from an ellipsoid.

With semi-axes D, the nearest point x has p - x = s D⁻² x for one number s. So x = D² p / (D² + s), and |D⁻¹ x| = 1
determines s >= -min D² (Eberly, Distance from a point to an ellipse, an ellipsoid, or a hyperellipsoid, 2013).
"""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_sqrt
from mbjax.spatial.safe_math import safe_direction

from .choices import flags_of_largest, sign_of
from .point_distance import PointDistance, along_x

NUM_ITERATIONS = 10
NUM_STEPS_WITH_DERIVATIVES = 2  # the second step makes second derivatives right
MIDDLE = 64.0  # half-thickness of the middle plane, in roundings of the shortest semi-axis


def distance_from_ellipsoid(semi_axes: Float[Array, "3 *n"], p: Float[Array, "3 *n"]) -> PointDistance:
    """Signed distance of a point from an ellipsoid with these semi-axes.

    On the middle plane of the shortest axis, where both sides are equally near, p counts as on the positive side.
    """
    semi_axes, p = jnp.broadcast_arrays(semi_axes, p)
    normal, _, degenerate = normal_and_multiplier(semi_axes, p)
    return PointDistance(distance_along_normal(semi_axes, p), normal, degenerate)


@jax.custom_jvp
def distance_along_normal(semi_axes: Float[Array, "3 *n"], p: Float[Array, "3 *n"]) -> Float[Array, "*n"]:
    """Signed distance s |D⁻² x| along the normal at the nearest point."""
    return normal_and_multiplier(semi_axes, p)[1]


@distance_along_normal.defjvp
def differentiate_distance(primals: tuple, tangents: tuple) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    """Tangent normal · (dp - dx), with dx = x dD / D on the surface; the normal's turn adds nothing to first order."""
    semi_axes, p = primals
    semi_axes_dot, p_dot = tangents
    distance = distance_along_normal(semi_axes, p)
    normal, _, _ = normal_and_multiplier(semi_axes, p)
    x = p - ca.scale(normal, distance)
    return distance, ca.dot(normal, p_dot - x * semi_axes_dot / semi_axes)


def normal_and_multiplier(
    semi_axes: Float[Array, "3 *n"], p: Float[Array, "3 *n"]
) -> tuple[Float[Array, "3 *n"], Float[Array, "*n"], Bool[Array, "*n"]]:
    """The normal at the nearest point, the distance along it, and whether the other side is equally near.

    s is found without derivatives. The last Newton steps, from there, have the derivatives of the implicit function.
    """
    frozen_axes, frozen_p = lax.stop_gradient((semi_axes, p))
    is_shortest = jnp.stack(flags_of_largest([-a for a in jnp.unstack(frozen_axes)], 0.0))
    shortest = jnp.min(frozen_axes, axis=0)
    tiny = MIDDLE * float(jnp.finfo(p.dtype).eps) * shortest
    in_middle = is_shortest & (jnp.abs(frozen_p) < tiny)
    moved = jnp.where(in_middle, sign_of(frozen_p, tiny) * tiny, frozen_p)
    gaps = (frozen_axes - shortest) * (frozen_axes + shortest)
    s_above_pole = find_multiplier(frozen_axes, gaps, shortest, moved)

    both_sides = in_middle & (s_above_pole < 4.0 * tiny * shortest)
    p = jnp.where(both_sides, p + (moved - frozen_p), p)
    denominators = gaps + s_above_pole + (semi_axes * semi_axes - frozen_axes * frozen_axes)
    s = s_above_pole - shortest * shortest
    for _ in range(NUM_STEPS_WITH_DERIVATIVES):
        step = multiplier_step(semi_axes * p, denominators)
        s, denominators = s + step, denominators + step
    gradient = p / denominators
    normal, _ = safe_direction(gradient, along_x(s))
    return normal, s * ca.dot(normal, gradient), jnp.any(both_sides, axis=0)


def find_multiplier(
    semi_axes: Float[Array, "3 *n"], gaps: Float[Array, "3 *n"], shortest: Float[Array, "*n"], p: Float[Array, "3 *n"]
) -> Float[Array, "*n"]:
    """s + min D², by Newton's method from below, which is monotonic as no term of |D⁻¹ x|² exceeds one at the start."""
    numerators = jnp.abs(semi_axes * p)
    floor = float(jnp.finfo(p.dtype).eps) * shortest * shortest
    start = jnp.maximum(jnp.max(numerators - gaps, axis=0), floor)

    def improve(_: int, u: Float[Array, "*n"]) -> Float[Array, "*n"]:
        return jnp.maximum(u + multiplier_step(numerators, gaps + u), start)

    return lax.fori_loop(0, NUM_ITERATIONS, improve, start)


def multiplier_step(numerators: Float[Array, "3 *n"], denominators: Float[Array, "3 *n"]) -> Float[Array, "*n"]:
    """Newton step for 1 / |D⁻¹ x| = 1, which is nearly linear in s, with D⁻¹ x = numerators / denominators."""
    ratios = numerators / denominators
    squared = ca.dot(ratios, ratios)
    return squared * (safe_sqrt(squared) - 1.0) / ca.dot(ratios, ratios / denominators)
