"""Signed distances from a half-space: points of the other shape and their heights along the normal Az."""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_sqrt

from .choices import flags_of_largest, rounding, sign_of
from .cylinder import lowest_points_of_cylinder
from .lowest_vertices import lowest_vertices
from .witnesses import PairFunction, Witnesses, make_witnesses


def half_space_sphere(
    size_A: Float[Array, "0 n *w"],
    size_B: Float[Array, "1 n *w"],
    R_AB: Float[Array, "3 3 n *w"],
    p_AB: Float[Array, "3 n *w"],
) -> Witnesses:
    """Witness at the lowest point of the sphere."""
    del size_A, R_AB
    return above([p_AB], size_B[0])


def half_space_capsule(
    size_A: Float[Array, "0 n *w"],
    size_B: Float[Array, "2 n *w"],
    R_AB: Float[Array, "3 3 n *w"],
    p_AB: Float[Array, "3 n *w"],
) -> Witnesses:
    """Witnesses at the lowest points of the capsule's caps."""
    del size_A
    radius, length = jnp.unstack(size_B)
    half_axis = ca.scale(jnp.unstack(R_AB, axis=1)[2], 0.5 * length)
    return above([p_AB + half_axis, p_AB - half_axis], radius)


def half_space_box(
    size_A: Float[Array, "0 n *w"],
    size_B: Float[Array, "3 n *w"],
    R_AB: Float[Array, "3 3 n *w"],
    p_AB: Float[Array, "3 n *w"],
) -> Witnesses:
    """Witnesses at the four corners of the box's face whose centre is lowest.

    Where the face changes, the corners that leave are as high as those that join; of faces as low within rounding it is
    the first.
    """
    del size_A
    u, v, w = (ca.scale(axis, 0.5 * x) for axis, x in zip(jnp.unstack(R_AB, axis=1), jnp.unstack(size_B), strict=True))
    is_u, is_v, is_w = flags_of_largest([jnp.abs(x[2]) for x in (u, v, w)], rounding(*jnp.unstack(size_B)))
    down = jnp.where(is_u, u, jnp.where(is_v, v, w))
    side, other = jnp.where(is_u, v, u), jnp.where(is_w, v, w)
    center = p_AB - ca.scale(down, sign_of(down[2]))
    return above([center + side + other, center + side - other, center - side + other, center - side - other])


def half_space_cylinder(
    size_A: Float[Array, "0 n *w"],
    size_B: Float[Array, "2 n *w"],
    R_AB: Float[Array, "3 3 n *w"],
    p_AB: Float[Array, "3 n *w"],
) -> Witnesses:
    """Witnesses at the lowest point of each rim, and at three points of the end on which the cylinder stands."""
    del size_A
    return above([p_AB + x for x in lowest_points_of_cylinder(size_B, R_AB)])


def half_space_ellipsoid(
    size_A: Float[Array, "0 n *w"],
    size_B: Float[Array, "3 n *w"],
    R_AB: Float[Array, "3 3 n *w"],
    p_AB: Float[Array, "3 n *w"],
) -> Witnesses:
    """Witness at the ellipsoid's lowest point, D² n / |D n| for the semi-axes D and the downward direction n."""
    del size_A
    stretched = -size_B * jnp.unstack(R_AB)[2]
    x_B = ca.scale(size_B * stretched, 1.0 / safe_sqrt(ca.dot(stretched, stretched)))
    return above([p_AB + ca.matvec(R_AB, x_B)])


def half_space_convex(
    size_A: Float[Array, "0 n *w"],
    size_B: Float[Array, "3 m n *w"],
    R_AB: Float[Array, "3 3 n *w"],
    p_AB: Float[Array, "3 n *w"],
) -> Witnesses:
    """Witnesses at the lowest vertex, and at up to three more that are low and far apart."""
    del size_A
    vertices = p_AB[:, None] + ca.matvec(R_AB[:, :, None], size_B)
    points, valid = lowest_vertices(vertices)
    return above(points, valid=valid)


def above(
    centers: Sequence[Float[Array, "3 n *w"]],
    radius: Float[Array, "n *w"] | float = 0.0,
    valid: Sequence[Bool[Array, "n *w"]] | None = None,
) -> Witnesses:
    """Witnesses at the points of the plane z = 0 below balls about the `centers`."""
    coordinates = [jnp.unstack(center) for center in centers]
    zero = jnp.zeros_like(coordinates[0][2])
    normal = jnp.stack([zero, zero, zero - 1.0])
    return make_witnesses(
        [z - radius for _, _, z in coordinates],
        [normal] * len(coordinates),
        [jnp.stack([x, y, jnp.zeros_like(z)]) for x, y, z in coordinates],
        valid,
    )


HALF_SPACE_PAIRS: dict[tuple[str, str], PairFunction] = {
    ("HalfSpace", "Sphere"): PairFunction(half_space_sphere, 1),
    ("HalfSpace", "Capsule"): PairFunction(half_space_capsule, 2),
    ("HalfSpace", "Box"): PairFunction(half_space_box, 4),
    ("HalfSpace", "Cylinder"): PairFunction(half_space_cylinder, 5),
    ("HalfSpace", "Ellipsoid"): PairFunction(half_space_ellipsoid, 1),
    ("HalfSpace", "Convex"): PairFunction(half_space_convex, 4),
}
