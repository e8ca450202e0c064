"""Low vertices of a polyhedron, on which it rests on a plane."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from mbjax.spatial import safe_sqrt

SLOPE = 10.0  # a vertex is passed over if it is higher than a tenth of the width that it adds
NARROW = 1e-6  # distance, relative to the farthest vertex, below which two points count as one


def lowest_vertices(
    vertices: Float[Array, "3 m n *w"],
) -> tuple[list[Float[Array, "3 n *w"]], list[Bool[Array, "n *w"]]]:
    """Four low vertices that span a wide area, and flags of those that exist; heights are along z."""
    masks, valid = low_and_wide(*jnp.unstack(lax.stop_gradient(vertices)))
    return [jnp.sum(jnp.where(mask, vertices, 0.0), axis=1) for mask in masks], valid


def low_and_wide(
    x: Float[Array, "m n *w"], y: Float[Array, "m n *w"], z: Float[Array, "m n *w"]
) -> tuple[list[Bool[Array, "m n *w"]], list[Bool[Array, "n *w"]]]:
    """Masks of the lowest vertex, the farthest from it, and the farthest on each side of their line; and validity.

    Of vertices that are equally low within rounding, as on a face, the first is taken, so that a small turn does not
    change the choice.
    """
    extent = jnp.max(jnp.abs(x) + jnp.abs(y) + jnp.abs(z), axis=0)
    rounding = 64.0 * float(jnp.finfo(z.dtype).eps) * extent
    first = first_of(z <= jnp.min(z, axis=0) + rounding)
    x, y, z = (c - jnp.sum(jnp.where(first, c, 0.0), axis=0) for c in (x, y, z))
    far = safe_sqrt(x * x + y * y)
    second = first_of_largest(far - SLOPE * z, SLOPE * rounding)
    line_x, line_y = (jnp.sum(jnp.where(second, c, 0.0), axis=0) for c in (x, y))
    width = safe_sqrt(line_x * line_x + line_y * line_y)
    beside = (line_x * y - line_y * x) / jnp.where(width > 0.0, width, 1.0)
    scores = [far - SLOPE * z, beside - SLOPE * z, -beside - SLOPE * z]
    limit = NARROW * jnp.max(far, axis=0)
    valid = [jnp.ones(limit.shape, bool), *(jnp.max(score, axis=0) > limit for score in scores)]
    return [first, second, *(first_of_largest(score, SLOPE * rounding) for score in scores[1:])], valid


def first_of_largest(x: Float[Array, "m n *w"], rounding: Float[Array, "n *w"]) -> Bool[Array, "m n *w"]:
    """Mask of the largest entry along the first axis, the first of those that are equal within rounding."""
    return first_of(x >= jnp.max(x, axis=0) - rounding)


def first_of(x: Bool[Array, "m n *w"]) -> Bool[Array, "m n *w"]:
    """Mask of the first true entry along the first axis."""
    places = jnp.arange(x.shape[0]).reshape(-1, *(1,) * (x.ndim - 1))
    return places == jnp.min(jnp.where(x, places, x.shape[0]), axis=0)
