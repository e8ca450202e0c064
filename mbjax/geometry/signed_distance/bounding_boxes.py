"""Lower bounds on the distance of two shapes along the axes of both, from the boxes around them."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.spatial import component_algebra as ca


def gap_along_axes(
    kind_A: str, kind_B: str, size_A: Array, size_B: Array, R_AB: Float[Array, "3 3 n"], p_AB: Float[Array, "3 n"]
) -> Float[Array, " n"]:
    """The largest gap between the boxes around two shapes along the six axes of the boxes.

    Shapes overlap only where it is negative. Sizes are as in `PairFunction`; half-spaces have no box.
    """
    (centre_A, half_A), (centre_B, half_B) = bounding_box(kind_A, size_A), bounding_box(kind_B, size_B)
    between_A = p_AB + ca.matvec(R_AB, centre_B) - centre_A
    between_B = ca.transposed_matvec(R_AB, between_A)
    R = jnp.abs(R_AB)
    gap_A = jnp.abs(between_A) - half_A - ca.matvec(R, half_B)
    gap_B = jnp.abs(between_B) - half_B - ca.transposed_matvec(R, half_A)
    gaps = [*jnp.unstack(gap_A), *jnp.unstack(gap_B)]
    most = gaps[0]
    for gap in gaps[1:]:
        most = jnp.maximum(most, gap)
    return most


def bounding_box(kind: str, size: Array) -> tuple[Float[Array, "3 n"], Float[Array, "3 n"]]:
    """Centre and half lengths, in the shape's frame, of the box around a shape."""
    if kind == "Convex":
        lowest, highest = jnp.min(size, axis=1), jnp.max(size, axis=1)
        return 0.5 * (highest + lowest), 0.5 * (highest - lowest)
    half = {
        "Sphere": lambda: [size[0]] * 3,
        "Box": lambda: [0.5 * x for x in size],
        "Capsule": lambda: [size[0], size[0], size[0] + 0.5 * size[1]],
        "Cylinder": lambda: [size[0], size[0], 0.5 * size[1]],
        "Ellipsoid": lambda: list(size),
    }[kind]()
    return jnp.zeros((3, *size.shape[1:]), size.dtype), jnp.stack(half)
