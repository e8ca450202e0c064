"""Contact of two facing features of convex shapes: its point, direction and distance, with derivatives.

Let w(n) = b(n) - a(n) lead from a point of A's feature to one of B's. The direction n of contact is perpendicular to
all tangents of both features, and w has no component along the remaining directions:

    n . t = 0 for each tangent t,        e . w(n) = 0 for each direction e perpendicular to n and the tangents.

Projection solves the first equations exactly, and Newton's method solves the second. A Newton step at the solution,
with its matrix held fixed, has the derivative of the implicit function.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_divide, safe_normalize, safe_sqrt

from .choices import dot_columns, sign_of
from .convex_shapes import ConvexShape, tangents_of

STEPS_WITH_DERIVATIVES = 2  # the second step makes second derivatives right


class Features(NamedTuple):
    """A feature of A and one of B: identified near the farthest points, with their numbers of tangents."""

    near_A: Int[Array, "3 *n"]
    near_B: Int[Array, "3 *n"]
    tangents_A: Int[Array, "*hn"]
    tangents_B: Int[Array, "*hn"]


class ConvexPair(NamedTuple):
    """Two shapes with their cores, and X_AB with an axis for features or directions ahead of that of the pairs."""

    A: ConvexShape
    B: ConvexShape
    core_A: Array
    core_B: Array
    R: Float[Array, "3 3 1 *n"]
    p: Float[Array, "3 1 *n"]

    def in_B(self, direction: Float[Array, "3 h *n"]) -> Float[Array, "3 h *n"]:
        """The opposite direction, expressed in B."""
        return -ca.transposed_matvec(self.R, direction)

    def near(
        self, direction: Float[Array, "3 *n"], towards: Float[Array, "3 *n"]
    ) -> tuple[Int[Array, "3 *n"], Int[Array, "3 *n"]]:
        """Features of A and of B near their farthest points, those towards a point first."""
        near_A = self.A.near(self.core_A, direction, towards)
        towards_B = ca.transposed_matvec(self.R, towards[:, None] - self.p)[:, 0]
        near_B = self.B.near(self.core_B, self.in_B(direction[:, None])[:, 0], towards_B)
        return jnp.broadcast_to(near_A, direction.shape), jnp.broadcast_to(near_B, direction.shape)

    def numbers_of_tangents(self, like: Float[Array, "*n"]) -> tuple[Int[Array, "h *n"], Int[Array, "h *n"]]:
        """Numbers of tangents of A and B for all combinations that can be in contact, most tangents first."""
        most = range(self.A.most_tangents + 1), range(self.B.most_tangents + 1)
        numbers = sorted(((a, b) for a in most[0] for b in most[1] if a + b <= 2), key=lambda ab: -sum(ab))
        column = np.array(numbers, np.int32).T.reshape(2, -1, *(1,) * like.ndim)
        a, b = jnp.broadcast_to(column, (2, len(numbers), *like.shape))
        return a, b


class Facing(NamedTuple):
    """Two features seen along n: the gap w from A's point to B's, A's point, and their tangents, in A."""

    gap: Float[Array, "3 h *n"]
    point: Float[Array, "3 h *n"]
    tangents: tuple[Float[Array, "3 h *n"], Float[Array, "3 h *n"]]


def farthest_points(pair: ConvexPair, direction: Float[Array, "3 h *n"]) -> tuple[Array, Array]:
    """Farthest point of A along a direction, and of B against it, both in A."""
    along = jax.vmap(lambda n: pair.A.support(pair.core_A, n), 1, 1)
    against = jax.vmap(lambda n: pair.B.support(pair.core_B, n), 1, 1)
    return along(direction), pair.p + ca.matvec(pair.R, against(pair.in_B(direction)))


def facing(pair: ConvexPair, direction: Float[Array, "3 h *n"], features: Features) -> Facing:
    """The two features as seen along a direction."""
    a, (a_1, a_2) = pair.A.feature(pair.core_A, features.near_A, features.tangents_A, direction)
    b, tangents_B = pair.B.feature(pair.core_B, features.near_B, features.tangents_B, pair.in_B(direction))
    b_1, b_2 = (ca.matvec(pair.R, t) for t in tangents_B)
    first = jnp.where(features.tangents_A > 0, a_1, b_1)
    second = jnp.where(features.tangents_A > 1, a_2, jnp.where(features.tangents_A > 0, b_1, b_2))
    shape = direction.shape
    a = jnp.broadcast_to(a, shape)
    return Facing(
        pair.p + ca.matvec(pair.R, b) - a, a, (jnp.broadcast_to(first, shape), jnp.broadcast_to(second, shape))
    )


class Slope(NamedTuple):
    """A direction perpendicular to the tangents, the directions it can turn in, and gradient and Hessian of s there."""

    direction: Float[Array, "3 h *n"]
    turns: tuple[Float[Array, "3 h *n"], Float[Array, "3 h *n"]]
    gradient: tuple[Float[Array, "h *n"], Float[Array, "h *n"]]
    matrix: tuple[Float[Array, "h *n"], Float[Array, "h *n"], Float[Array, "h *n"]]  # xx, xy, yy


def calc_slope(pair: ConvexPair, direction: Float[Array, "3 h *n"], features: Features) -> Slope:
    """Gradient and Hessian of s(n) = n . w(n) for these features; the Hessian has no derivative."""
    first, second = facing(pair, direction, features).tangents
    count = features.tangents_A + features.tangents_B
    along = safe_normalize(first, 0)
    across = safe_normalize(ca.cross(first, second), 0)
    across = ca.scale(across, lax.stop_gradient(sign_of(dot_columns(across, direction))))
    projected = safe_normalize(direction - ca.scale(along, dot_columns(along, direction)), 0)
    n = jnp.where(count == 0, direction, jnp.where(count == 1, projected, across))
    e_x, e_y = tangents_of(lax.stop_gradient(n))
    e_x = jnp.where(count == 1, ca.cross(n, along), e_x)
    gap = facing(pair, n, features).gap

    frozen = lax.stop_gradient((n, e_x, e_y))
    held = pair._replace(**{k: lax.stop_gradient(getattr(pair, k)) for k in ("core_A", "core_B", "R", "p")})
    changes = [jax.jvp(lambda n: facing(held, n, features).gap, (frozen[0],), (e,))[1] for e in frozen[1:]]
    s = lax.stop_gradient(dot_columns(n, gap))
    xx, xy, yy = (
        dot_columns(frozen[1], changes[0]) - s,
        dot_columns(frozen[1], changes[1]),
        dot_columns(frozen[2], changes[1]) - s,
    )
    is_free = count == 0
    beside = gap - ca.scale(n, dot_columns(n, gap))
    gradient = jnp.where(count < 2, dot_columns(e_x, beside), 0.0), jnp.where(is_free, dot_columns(e_y, beside), 0.0)
    return Slope(n, (e_x, e_y), gradient, (xx, jnp.where(is_free, xy, 0.0), jnp.where(is_free, yy, xx)))


def climb(
    pair: ConvexPair, direction: Float[Array, "3 h *n"], features: Features, reach: Float[Array, "*n"]
) -> Float[Array, "3 h *n"]:
    """A Newton step towards a larger s, turning by at most `reach`; the zero vector where features cannot touch.

    The step uses |H| = (H² + |det H| 1) / (tr(H² + |det H| 1))^½ in place of H, so it is uphill whatever the curvature.
    """
    shape = jnp.broadcast_shapes(direction.shape, (3, *features.tangents_A.shape))
    n, (e_x, e_y), (g_x, g_y), (xx, xy, yy) = calc_slope(pair, jnp.broadcast_to(direction, shape), features)
    determinant = jnp.abs(xx * yy - xy * xy)
    square = xx * xx + xy * xy + determinant, xy * (xx + yy), yy * yy + xy * xy + determinant
    trace = safe_sqrt(square[0] + square[2])
    xx, xy, yy = (safe_divide(x, trace) for x in square)
    x, y = solve_symmetric((xx, xy, yy), (g_x, g_y))
    length = safe_sqrt(x * x + y * y)
    factor = jnp.where(length > reach, safe_divide(reach, length), 1.0)
    return safe_normalize(n + ca.scale(e_x, x * factor) + ca.scale(e_y, y * factor), 0)


def solve_symmetric(matrix: tuple[Array, Array, Array], right: tuple[Array, Array]) -> tuple[Array, Array]:
    """Solution H⁻¹ g of a symmetric 2x2 system."""
    xx, xy, yy = matrix
    determinant = xx * yy - xy * xy
    return safe_divide(yy * right[0] - xy * right[1], determinant), safe_divide(
        xx * right[1] - xy * right[0], determinant
    )


def touch(
    pair: ConvexPair, direction: Float[Array, "3 1 *n"], features: Features
) -> tuple[Float[Array, "3 1 *n"], Float[Array, "1 *n"], Float[Array, "3 1 *n"]]:
    """Direction, core distance and point on A's core, with derivatives, refined from a direction without them."""
    n = lax.stop_gradient(direction)
    for _ in range(STEPS_WITH_DERIVATIVES):
        n, (e_x, e_y), gradient, matrix = calc_slope(pair, n, features)
        x, y = solve_symmetric(lax.stop_gradient(matrix), gradient)
        n = safe_normalize(n - ca.scale(e_x, x) - ca.scale(e_y, y), 0)
    return n, *crossing(pair, n, features)


def crossing(
    pair: ConvexPair, n: Float[Array, "3 h *n"], features: Features
) -> tuple[Float[Array, "h *n"], Float[Array, "3 h *n"]]:
    """Distance of two features along n, and the point of A's feature where they meet, which may lie beyond its ends."""
    gap, point, (first, second) = facing(pair, n, features)
    distance = dot_columns(n, gap)
    beside = gap - ca.scale(n, distance)
    across = ca.cross(first, second)
    area = dot_columns(across, across)
    count = features.tangents_A + features.tangents_B
    of_first = jnp.where(
        count == 1,
        safe_divide(dot_columns(beside, first), dot_columns(first, first)),
        safe_divide(dot_columns(ca.cross(beside, second), across), area),
    )
    of_second = safe_divide(dot_columns(ca.cross(first, beside), across), area)
    point = point + ca.scale(first, jnp.where(features.tangents_A > 0, of_first, 0.0))
    return distance, point + ca.scale(second, jnp.where(features.tangents_A > 1, of_second, 0.0))
