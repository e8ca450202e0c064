"""Signed distance of two capsules: nearest points of their axes, and the ends of the part where these run together."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.spatial import component_algebra as ca
from mbjax.spatial.safe_math import safe_direction

from .choices import clamp
from .point_distance import along_x
from .witnesses import PairFunction, Witnesses, make_witnesses

PARALLEL_SINE = 0.1  # sine of the angle below which two axes have three points
SAME_SINE = 1e-4  # sine below which the nearest points move to the middle of the part where the axes run together
APART = 0.1  # distance, relative to the radii, within which an end duplicates the nearest points


def capsule_capsule(
    size_A: Float[Array, "2 n *w"],
    size_B: Float[Array, "2 n *w"],
    R_AB: Float[Array, "3 3 n *w"],
    p_AB: Float[Array, "3 n *w"],
) -> Witnesses:
    """Witnesses at the axes' nearest points and, if nearly parallel, at the ends of the part where they run together.

    Where the axes meet, the normal is perpendicular to both, or along Ax if they are parallel.
    """
    (radius_A, length_A), (radius_B, length_B) = jnp.unstack(size_A), jnp.unstack(size_B)
    half_A, half_B = 0.5 * length_A, 0.5 * length_B
    axis_B = jnp.unstack(R_AB, axis=1)[2]
    x, y, cosine = jnp.unstack(axis_B)
    px, py, pz = jnp.unstack(p_AB)
    squared_sine = x * x + y * y
    across = px * x + py * y

    def place_on_A(s: Float[Array, "n *w"]) -> Float[Array, "n *w"]:
        return clamp(pz + cosine * s, half_A)

    def place_on_B(t: Float[Array, "n *w"]) -> Float[Array, "n *w"]:
        return clamp(cosine * (t - pz) - across, half_B)

    ends = [place_on_A(half_B), place_on_A(-half_B)]
    middle = 0.5 * (ends[0] + ends[1])
    crossing = middle + (squared_sine * (pz - middle) - cosine * across) * smooth_inverse(squared_sine, SAME_SINE**2)
    nearest = place_on_A(place_on_B(clamp(crossing, half_A)))

    zero = jnp.zeros_like(squared_sine)
    aside, _ = safe_direction(jnp.stack([-y, x, zero]), along_x(zero))
    radii = radius_A + radius_B
    distances, normals, points, degenerate = [], [], [], []
    for t in (nearest, *ends):
        p_ATs_A = jnp.stack(jnp.broadcast_arrays(zero, zero, t))
        p_BaA = p_ATs_A - p_AB - ca.scale(axis_B, place_on_B(t))
        normal, meets = safe_direction(p_BaA, aside)
        distances.append(ca.dot(normal, p_BaA) - radii)
        normals.append(normal)
        points.append(p_ATs_A - ca.scale(normal, radius_A))
        degenerate.append(meets)
    is_parallel = squared_sine < PARALLEL_SINE**2
    valid = [True, *(is_parallel & (jnp.abs(t - nearest) > APART * radii) for t in ends)]
    return make_witnesses(distances, normals, points, valid, degenerate[0])


def smooth_inverse(x: Float[Array, "*n"], limit: float) -> Float[Array, "*n"]:
    """1/x for x >= `limit`, and below it the tangent line at `limit`."""
    is_regular = x >= limit
    return jnp.where(is_regular, 1.0 / jnp.where(is_regular, x, 1.0), (2.0 - x / limit) / limit)


CAPSULE_PAIRS: dict[tuple[str, str], PairFunction] = {("Capsule", "Capsule"): PairFunction(capsule_capsule, 3)}
