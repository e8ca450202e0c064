"""Signed distances of a sphere B from other shapes A but half-spaces, by the distance of its centre from A."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.spatial import component_algebra as ca

from .ellipsoid import distance_from_ellipsoid
from .point_distance import (
    PointDistance,
    distance_from_box,
    distance_from_cylinder,
    distance_from_point,
    distance_from_segment,
)
from .witnesses import PairFunction, Witnesses, make_witnesses


def sphere_sphere(
    size_A: Float[Array, "1 n *w"],
    size_B: Float[Array, "1 n *w"],
    R_AB: Float[Array, "3 3 n *w"],
    p_AB: Float[Array, "3 n *w"],
) -> Witnesses:
    """Witness of two spheres: along the line of centres, or along Ax where these coincide."""
    del R_AB
    return ball_witnesses(distance_from_point(p_AB), p_AB, size_B[0], core_radius=size_A[0])


def capsule_sphere(
    size_A: Float[Array, "2 n *w"],
    size_B: Float[Array, "1 n *w"],
    R_AB: Float[Array, "3 3 n *w"],
    p_AB: Float[Array, "3 n *w"],
) -> Witnesses:
    """Witness of a capsule and a sphere, from the nearest point of the capsule's axis."""
    del R_AB
    radius, length = jnp.unstack(size_A)
    return ball_witnesses(distance_from_segment(0.5 * length, p_AB), p_AB, size_B[0], core_radius=radius)


def box_sphere(
    size_A: Float[Array, "3 n *w"],
    size_B: Float[Array, "1 n *w"],
    R_AB: Float[Array, "3 3 n *w"],
    p_AB: Float[Array, "3 n *w"],
) -> Witnesses:
    """Witness of a box and a sphere, from the box's nearest point, or its nearest face if the centre is inside."""
    del R_AB
    return ball_witnesses(distance_from_box(0.5 * size_A, p_AB), p_AB, size_B[0])


def cylinder_sphere(
    size_A: Float[Array, "2 n *w"],
    size_B: Float[Array, "1 n *w"],
    R_AB: Float[Array, "3 3 n *w"],
    p_AB: Float[Array, "3 n *w"],
) -> Witnesses:
    """Witness of a cylinder and a sphere, from the nearest point of the side, an end or a rim."""
    del R_AB
    return ball_witnesses(distance_from_cylinder(size_A, p_AB), p_AB, size_B[0])


def ellipsoid_sphere(
    size_A: Float[Array, "3 n *w"],
    size_B: Float[Array, "1 n *w"],
    R_AB: Float[Array, "3 3 n *w"],
    p_AB: Float[Array, "3 n *w"],
) -> Witnesses:
    """Witness of an ellipsoid and a sphere, from the ellipsoid's nearest point."""
    del R_AB
    return ball_witnesses(distance_from_ellipsoid(size_A, p_AB), p_AB, size_B[0])


def ball_witnesses(
    core: PointDistance,
    center: Float[Array, "3 n *w"],
    radius: Float[Array, "n *w"],
    core_radius: Float[Array, "n *w"] | float = 0.0,
) -> Witnesses:
    """Witness of a ball B about `center` and a shape A that consists of all points within `core_radius` of a core."""
    point = center - ca.scale(core.normal, core.distance - core_radius)
    return make_witnesses([core.distance - core_radius - radius], [-core.normal], [point], degenerate=core.degenerate)


SPHERE_PAIRS: dict[tuple[str, str], PairFunction] = {
    ("Sphere", "Sphere"): PairFunction(sphere_sphere, 1),
    ("Capsule", "Sphere"): PairFunction(capsule_sphere, 1),
    ("Box", "Sphere"): PairFunction(box_sphere, 1),
    ("Cylinder", "Sphere"): PairFunction(cylinder_sphere, 1),
    ("Ellipsoid", "Sphere"): PairFunction(ellipsoid_sphere, 1),
}
