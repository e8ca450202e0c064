"""Lower bounds on the distance of two shapes, from their bounding spheres."""

from collections.abc import Callable

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_sqrt


def gap_between(
    kind_A: str, kind_B: str, size_A: Array, size_B: Array, R_AB: Float[Array, "3 3 n *w"], p_AB: Float[Array, "3 n *w"]
) -> Float[Array, "n *w"]:
    """Gap between the bounding spheres of each pair, a lower bound on the distance of shapes apart; without gradient.

    Sizes are as in `PairFunction`. Shapes overlap only where the gap is negative. For a half-space, the gap is that
    between its plane and the other shape's sphere.
    """
    size_A, size_B, R_AB, p_AB = lax.stop_gradient((size_A, size_B, R_AB, p_AB))
    if kind_A == "HalfSpace":
        centre_B, radius_B = bounding_sphere(kind_B, size_B)
        return (p_AB + ca.matvec(R_AB, centre_B))[2] - radius_B
    centre_A, radius_A = bounding_sphere(kind_A, size_A)
    if kind_B == "HalfSpace":
        return ca.transposed_matvec(R_AB, centre_A - p_AB)[2] - radius_A
    centre_B, radius_B = bounding_sphere(kind_B, size_B)
    return length_from(p_AB + ca.matvec(R_AB, centre_B) - centre_A) - radius_A - radius_B


def bounding_sphere(kind: str, size: Array) -> tuple[Float[Array, "3 n *w"], Float[Array, "n *w"]]:
    """Centre, in the shape's frame, and radius of a bounding sphere."""
    if kind == "Convex":
        centre = 0.5 * (jnp.max(size, axis=1) + jnp.min(size, axis=1))
        return centre, jnp.max(length_from(size - centre[:, None]), axis=0)
    return jnp.zeros((3, *size.shape[1:]), size.dtype), RADII[kind](size)


def length_from(x: Float[Array, "3 *n"]) -> Float[Array, "*n"]:
    """Length |x|."""
    return safe_sqrt(ca.dot(x, x))


RADII: dict[str, Callable[[Float[Array, "s n *w"]], Float[Array, "n *w"]]] = {
    "Sphere": lambda size: size[0],
    "Box": lambda size: 0.5 * length_from(size),
    "Capsule": lambda size: size[0] + 0.5 * size[1],
    "Cylinder": lambda size: safe_sqrt(size[0] * size[0] + 0.25 * size[1] * size[1]),
    "Ellipsoid": lambda size: jnp.max(size, axis=0),
}
