"""Signed distance of any two convex shapes, one point a pair.

The direction n of largest separation is found without gradient (`convex_search`). Its condition,

    w(n) = b(n) - a(n)  is parallel to n,      a, b: the farthest points of A along n and of B along -n,

is then solved by Newton's method, the last step of which is differentiated: that is the implicit function theorem.
Which vertices, edges, faces or smooth surfaces are in contact is held; they turn and move with their bodies.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from mbjax.spatial import component_algebra as ca
from mbjax.spatial.safe_math import safe_divide, safe_norm, safe_normalize

from .convex_search import Pair, Supports, separating_direction, separation
from .convex_shapes import CONVEX_SHAPES, Corners, direction_tolerance
from .witnesses import Witnesses, make_witnesses

NEWTON_STEPS = 3
LONGEST_STEP = 0.1  # in rad
CONTACT_STIFFNESS = {"float64": 1e6, "float32": 1e4}  # of edges and faces, relative to the shapes' reach


def convex_convex(kind_A: str, kind_B: str, size_A: Array, size_B: Array, R_AB: Array, p_AB: Array) -> Witnesses:
    """Of two kinds of shapes; sizes as in `PairFunction`."""
    n = jnp.broadcast_shapes(*(x.shape[k:] for x, k in ((R_AB, 2), (p_AB, 1))))
    R, p = jnp.broadcast_to(R_AB, (3, 3, *n)), jnp.broadcast_to(p_AB, (3, *n))
    A, B = CONVEX_SHAPES[kind_A], CONVEX_SHAPES[kind_B]
    core_A, core_B = A.core(size_A), B.core(size_B)
    frozen = lax.stop_gradient((core_A, core_B, R, p))

    def supports(direction: Array) -> Pair:
        a = A.support(frozen[0], direction)
        b = B.support(frozen[1], -ca.transposed_matvec(frozen[2], direction))
        return Pair(jnp.broadcast_to(a, b.shape), b, frozen[3] + ca.matvec(frozen[2], b) - a)

    starts, reach = starting_directions(supports, *frozen[2:])
    n_AB, simplex, has_rival = separating_direction(supports, starts, reach)
    corners_A, corners_B = (Corners(x, simplex.weights) for x in simplex.pairs[:2])
    stiff = CONTACT_STIFFNESS[p.dtype.name] / reach

    def witness(turned: Array, core_A: Array, core_B: Array, R: Array, p: Array) -> tuple[Array, Array, Array]:
        """The direction, turned from the one found, the point on A's core, and from it to that on B's."""
        n = safe_normalize(n_AB + turned, 0)
        turned_B = -ca.transposed_matvec(R - frozen[2], n) - ca.transposed_matvec(frozen[2], turned)
        a = A.moving(core_A, n, turned, corners_A, stiff)
        b = B.moving(core_B, -ca.transposed_matvec(R, n), turned_B, corners_B, stiff)
        return n, a, p + ca.matvec(R, b) - a

    turned = jnp.zeros_like(n_AB)
    for _ in range(NEWTON_STEPS):
        turned = turned + newton_step(witness, turned, frozen, frozen)
    is_worse = separation(supports, n_AB + turned) < separation(supports, n_AB) - direction_tolerance(p.dtype) * reach
    turned = jnp.where(is_worse, 0.0, turned)
    turned = turned + newton_step(witness, turned, frozen, (core_A, core_B, R, p))
    n_AB, point, gap = witness(turned, core_A, core_B, R, p)
    margin_A, margin_B = A.margin(size_A), B.margin(size_B)
    distance = ca.dot(n_AB, gap) - margin_A - margin_B
    on_surface = point + ca.scale(n_AB, jnp.broadcast_to(margin_A, distance.shape))
    return make_witnesses([distance], [-n_AB], [on_surface], degenerate=has_rival)


def newton_step(witness: Callable, turned: Array, frozen: tuple, arguments: tuple) -> Array:
    """How the direction turns next: with tangents t of it, the gap w and the distance f = n . w,

    (t_i . dw/dn t_j - f delta_ij) y_j = -t_i . w.
    """
    turned = lax.stop_gradient(turned)
    n, _, gap = witness(turned, *frozen)
    tangents = tangents_of(n)
    changes = [jax.jvp(lambda x: witness(x, *frozen)[2], (turned,), (t,))[1] for t in tangents]
    (xx, xy), (yx, yy) = ([ca.dot(t, change) for change in changes] for t in tangents)
    distance = ca.dot(n, gap)
    xx, yy = xx - distance, yy - distance
    determinant = lax.stop_gradient(xx * yy - xy * yx)
    w = witness(turned, *arguments)[2]
    right = [-ca.dot(t, w) for t in tangents]
    x = safe_divide(yy * right[0] - xy * right[1], determinant)
    y = safe_divide(xx * right[1] - yx * right[0], determinant)
    step = ca.scale(tangents[0], x) + ca.scale(tangents[1], y)
    length = lax.stop_gradient(safe_norm(step, 0))
    return ca.scale(
        step, jnp.where(length > LONGEST_STEP, safe_divide(jnp.full_like(length, LONGEST_STEP), length), 1.0)
    )


def tangents_of(n: Float[Array, "3 *n"]) -> tuple[Float[Array, "3 *n"], Float[Array, "3 *n"]]:
    """Two unit vectors normal to n and to each other."""
    smallest = jnp.argmin(jnp.abs(n), axis=0)
    axis = jnp.stack([(smallest == k).astype(n.dtype) for k in range(3)])
    first = safe_normalize(ca.cross(n, axis), 0)
    return first, ca.cross(n, first)


def starting_directions(
    supports: Supports, R_AB: Float[Array, "3 3 *n"], p_AB: Float[Array, "3 *n"]
) -> tuple[Float[Array, "3 m *n"], Float[Array, "*n"]]:
    """The axes of both shapes and their products, towards B, and the line of centres; and the smaller shape's reach."""
    identity = [jnp.zeros_like(p_AB).at[k].set(1.0) for k in range(3)]
    axes_B = list(jnp.unstack(R_AB, axis=1))
    products = [safe_normalize(ca.cross(a, b), 0) for a in identity for b in axes_B]
    extents = [(supports(axis), supports(-axis), axis) for axis in (*identity, *axes_B)]
    reach_A = jnp.max(jnp.stack([ca.dot(axis, plus.a - minus.a) for plus, minus, axis in extents[:3]]), axis=0)
    reach_B = jnp.max(jnp.stack([(minus.b - plus.b)[k] for k, (plus, minus, _) in enumerate(extents[3:])]), axis=0)
    smaller = jnp.minimum(reach_A, reach_B)  # zero for the point inside a sphere
    centre = jnp.mean(jnp.stack([plus.gap + minus.gap for plus, minus, _ in extents]), axis=0)
    directions = [side * axis for axis in (*identity, *axes_B, *products) for side in (1.0, -1.0)]
    line = safe_normalize(centre, 0)
    fallback = jnp.where(jnp.sum(line * line, axis=0) == 0.0, identity[0], line)
    return jnp.stack([fallback, *directions], axis=1), 0.5 * jnp.where(
        smaller > 0.0, smaller, jnp.maximum(reach_A, reach_B)
    )
