"""Signed distance of any two convex shapes, with their contact points.

`convex_search` finds the direction of largest separation, and the features that touch along it, without gradient.
`convex_contact` then computes with derivatives where these features touch. Derivatives hold fixed which vertices,
edges, faces, rims or smooth surfaces are in contact, while these turn and move with their bodies. Flat pieces that lie
on one another give up to four more points (`flat_contact`).
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_norm

from .choices import dot_columns
from .convex_contact import ConvexPair, Features, farthest_points, touch
from .convex_search import Found, separating_features
from .convex_shapes import CONVEX_SHAPES, ConvexShape
from .flat_contact import Disc, Piece, flat_contact, length_of, make_piece
from .nearest_corners import DIRECTION_ROUNDING
from .witnesses import Witnesses

SAME_POINT = 0.01  # distance, relative to the smaller piece, within which a flat contact's point duplicates the deepest
ASTRAY = 1e-4  # difference, relative to the shapes' size, between features' distance and separation beyond which ...
TURNED = 0.9999  # ... or cosine of the angle between their directions below which features do not say where they touch
AS_DEEP = 0.01  # relative depth that a flat contact's point may lack and still replace the deepest point


def num_points(kind_A: str, kind_B: str) -> int:
    """Number of points that `convex_convex` gives for two kinds of shapes."""
    return (1, 3, 5)[min(CONVEX_SHAPES[kind].most_tangents for kind in (kind_A, kind_B))]


def convex_convex(
    kind_A: str, kind_B: str, size_A: Array, size_B: Array, R_AB: Array, p_AB: Array, flat: bool = True
) -> Witnesses:
    """Witnesses of two convex shapes; sizes are as in `PairFunction`. `flat=False` gives the deepest point alone."""
    n = jnp.broadcast_shapes(
        R_AB.shape[2:],
        p_AB.shape[1:],
        *(x.shape[2 if kind == "Convex" else 1 :] for kind, x in ((kind_A, size_A), (kind_B, size_B))),
    )
    R, p = jnp.broadcast_to(R_AB, (3, 3, *n)), jnp.broadcast_to(p_AB, (3, *n))
    A, B = CONVEX_SHAPES[kind_A], CONVEX_SHAPES[kind_B]
    core_A, core_B = A.core(size_A), B.core(size_B)
    margin_A, margin_B = (jnp.broadcast_to(x, n) for x in (A.margin(size_A), B.margin(size_B)))
    numbers = core_A, core_B, R[:, :, None], p[:, None]
    found, size, is_rivalled = separating_features(ConvexPair(A, B, *lax.stop_gradient(numbers)))
    n_AB, distance, point = touch_or_support(ConvexPair(A, B, *numbers), found, size)
    valid = jnp.ones_like(distance, bool)
    if flat and num_points(kind_A, kind_B) > 1:
        of_A = piece_of(A, core_A, n_AB)
        of_B = moved_piece(R, p, *piece_of(B, core_B, -ca.transposed_matvec(R, n_AB)))
        pieces = make_piece(*of_A, n_AB), make_piece(*of_B, n_AB)
        smaller = lax.stop_gradient(jnp.minimum(length_of(pieces[0]) + margin_A, length_of(pieces[1]) + margin_B))
        distance, point, valid = with_flat_contact(pieces, n_AB, smaller, distance, point, num_points(kind_A, kind_B))
    k = distance.shape[0]
    on_surface = point + (ca.scale(n_AB, margin_A))[:, None]
    return Witnesses(distance - margin_A - margin_B, jnp.stack([-n_AB] * k, axis=1), on_surface, valid, is_rivalled)


def touch_or_support(
    pair: ConvexPair, found: Found, size: Float[Array, "*n"]
) -> tuple[Float[Array, "3 *n"], Float[Array, "1 *n"], Float[Array, "3 1 *n"]]:
    """Direction, core distance and point on A's core where the features touch, or else at the farthest points.

    Features that are parallel but for rounding, as an edge along a cylinder's end, do not say where they touch, and
    Newton's method goes astray. The direction and separation of the search are right all the same. With the direction
    and the farthest points held, their distance has the derivative of the largest separation.
    """
    direction = lax.stop_gradient(found.direction)[:, None]
    in_row = Features(*found.features[:2], *(count[None] for count in found.features[2:]))
    touching = touch(pair, direction, in_row)
    normal, distance = lax.stop_gradient(touching[:2])
    goes_astray = (jnp.abs(distance - found.separation) > ASTRAY * size) | (dot_columns(normal, direction) < TURNED)
    a, b = farthest_points(pair, direction)
    held = direction, dot_columns(direction, b - a), a
    normal, distance, point = (jnp.where(goes_astray, x, y) for x, y in zip(held, touching, strict=True))
    return normal[:, 0], distance, point


def piece_of(
    shape: ConvexShape, core: Array, direction: Float[Array, "3 *n"]
) -> tuple[Float[Array, "3 4 *n"], Int[Array, "*n"], Disc | None]:
    """The piece that a shape shows along a direction: points, dimension, and the disc of a cylinder's end."""
    points, dimension = shape.facing(core, direction)
    if shape is not CONVEX_SHAPES["Cylinder"]:
        return points, dimension, None
    zero = jnp.zeros_like(direction[0])
    axis = jnp.stack([zero, zero, zero + 1.0])
    return points, dimension, Disc(0.5 * (points[:, 0] + points[:, 2]), axis, core[0])


def moved_piece(
    R_AB: Float[Array, "3 3 *n"],
    p_AB: Float[Array, "3 *n"],
    points: Float[Array, "3 4 *n"],
    dimension: Int[Array, "*n"],
    disc: Disc | None,
) -> tuple[Float[Array, "3 4 *n"], Int[Array, "*n"], Disc | None]:
    """The piece of surface transformed from B to A."""
    points = p_AB[:, None] + ca.matvec(R_AB[:, :, None], points)
    if disc is not None:
        disc = Disc(p_AB + ca.matvec(R_AB, disc.centre), ca.matvec(R_AB, disc.axis), disc.radius)
    return points, dimension, disc


def with_flat_contact(
    pieces: tuple[Piece, Piece],
    n_AB: Float[Array, "3 *n"],
    smaller: Float[Array, "*n"],
    distance: Float[Array, "1 *n"],
    point: Float[Array, "3 1 *n"],
    count: int,
) -> tuple[Float[Array, "k *n"], Float[Array, "3 k *n"], Bool[Array, "k *n"]]:
    """Adds the flat contact's points to the deepest point, or replaces it by their first if that is as deep.

    `smaller` is the length of the smaller piece: a can's feet are as far apart on any floor.
    """
    held = lax.stop_gradient((pieces, point, distance))
    (held_A, held_B), deepest, depth = held
    size = jnp.max(safe_norm(held_A.points - deepest, 0) + safe_norm(held_B.points - deepest, 0), axis=0)
    flat = flat_contact(*pieces, n_AB, size, smaller)
    rounding = DIRECTION_ROUNDING * float(jnp.finfo(depth.dtype).eps) * size
    slack = AS_DEEP * jnp.maximum(-depth[0], 0.0) + rounding
    replaces = flat.valid[0] & (lax.stop_gradient(flat.distance[0]) <= depth[0] + slack)
    distance = jnp.where(replaces, flat.distance[0], distance[0])
    point = jnp.where(replaces, flat.point[:, 0], point[:, 0])
    apart = safe_norm(lax.stop_gradient(flat.point - point[:, None]), 0) > jnp.maximum(SAME_POINT * smaller, rounding)
    valid = jnp.concatenate([jnp.ones_like(replaces)[None], flat.valid & apart])
    return (
        jnp.concatenate([distance[None], flat.distance])[:count],
        jnp.concatenate([point[:, None], flat.point], axis=1)[:, :count],
        valid[:count],
    )
