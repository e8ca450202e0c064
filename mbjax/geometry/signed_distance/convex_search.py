"""The direction of largest separation of two convex shapes, by their farthest points alone, without gradient.

The signed distance is the largest over unit directions n of  n . p_AB - h_A(n) - h_B(-n),  h being the reach along a
direction. Where the shapes are apart that is a concave problem, which the algorithm of Gilbert, Johnson and Keerthi
(1988) solves. Where they overlap, B is first moved away along the best direction known, so that they are apart: the
direction found then separates at least as well, and is the start of the next round.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from mbjax.spatial import component_algebra as ca
from mbjax.spatial.safe_math import safe_divide, safe_normalize

from .convex_shapes import direction_tolerance
from .frozen_choice import chosen, first_largest

ROUNDS = 4
ITERATIONS = 8
CLEARANCE = 0.02  # of the smaller shape's reach, by which shapes that overlap are moved apart
DISTINCT = 0.99  # cosine of directions that differ
EDGES = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
FACES = ((0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3))


class Pair(NamedTuple):
    """The farthest points of A along n and of B along -n, each in its own frame, and from the one to the other in A."""

    a: Float[Array, "3 *n"]
    b: Float[Array, "3 *n"]
    gap: Float[Array, "3 *n"]


Supports = Callable[[Array], Pair]  # of a direction n


class Simplex(NamedTuple):
    """Four such pairs; the gaps, so weighted, give the nearest point of B - A."""

    pairs: Pair
    weights: Float[Array, "4 *n"]


def separating_direction(
    supports: Supports, starts: Float[Array, "3 m *n"], reach: Float[Array, "*n"]
) -> tuple[Float[Array, "3 *n"], Simplex, Bool[Array, "*n"]]:
    """Unit direction from A to B, the support points that go with it, and whether another one separates as well.

    `starts` are directions to try first; those of length zero are left out.
    """
    is_direction = jnp.sum(starts * starts, axis=0) > 0.5
    of_start = jax.vmap(functools.partial(separation, supports), in_axes=1)
    separations = jnp.where(is_direction, of_start(starts), -jnp.inf)
    index, best = first_largest(separations)
    direction = chosen(index, starts, axis=1)
    clearance = CLEARANCE * reach
    pairs = Pair(*(jnp.stack([x] * 4, axis=1) for x in supports(direction)))
    simplex = Simplex(pairs, jnp.zeros_like(pairs.gap[0]).at[0].set(1.0))
    for _ in range(ROUNDS):
        shift = ca.scale(direction, jnp.where(best > clearance, 0.0, clearance - best))
        found, simplex = nearest_direction(supports, simplex, shift)
        reached = separation(supports, found)
        direction = jnp.where(reached >= best, found, direction)
        best = jnp.maximum(reached, best)
    is_other = jnp.sum(starts * direction[:, None], axis=0) < DISTINCT
    has_rival = jnp.any(is_other & (separations > best - direction_tolerance(best.dtype) * reach), axis=0)
    return direction, simplex, has_rival


def separation(supports: Supports, direction: Float[Array, "3 *n"]) -> Float[Array, "*n"]:
    """n . (b - a)."""
    return ca.dot(direction, supports(direction).gap)


def nearest_direction(
    supports: Supports, simplex: Simplex, shift: Float[Array, "3 *n"]
) -> tuple[Float[Array, "3 *n"], Simplex]:
    """Direction between the nearest points of A and of B shifted, from a simplex of an earlier shift."""

    def nearest(simplex: Simplex) -> Array:
        return safe_normalize(jnp.sum(simplex.pairs.gap * simplex.weights[None], axis=1) + shift, 0)

    def improve(_: int, simplex: Simplex) -> Simplex:
        new = supports(nearest(simplex))
        slot = first_largest(-simplex.weights)[0]
        is_slot = lax.broadcasted_iota(jnp.int32, simplex.weights.shape, 0) == slot
        pairs = Pair(*(jnp.where(is_slot, x[:, None], old) for x, old in zip(new, simplex.pairs, strict=True)))
        return Simplex(pairs, nearest_weights(pairs.gap + shift[:, None]))

    simplex = Simplex(simplex.pairs, nearest_weights(simplex.pairs.gap + shift[:, None]))
    simplex = lax.fori_loop(0, ITERATIONS, improve, simplex)
    return nearest(simplex), simplex


def nearest_weights(points: Float[Array, "3 4 *n"]) -> Float[Array, "4 *n"]:
    """Weights of the point nearest to the origin on the edges and faces of a tetrahedron that does not contain it."""
    gram = jnp.sum(points[:, :, None] * points[:, None], axis=0)
    candidates = [on_edge(gram, *edge) for edge in EDGES] + [on_face(gram, *face) for face in FACES]
    nearest = (jnp.sum(points * weights[None], axis=1) for weights, _ in candidates)
    possible = (is_inside for _, is_inside in candidates)
    squared = [jnp.where(ok, ca.dot(x, x), jnp.inf) for x, ok in zip(nearest, possible, strict=True)]
    return chosen(first_largest(-jnp.stack(squared))[0], jnp.stack([weights for weights, _ in candidates]))


def on_edge(gram: Float[Array, "4 4 *n"], i: int, j: int) -> tuple[Float[Array, "4 *n"], Bool[Array, "*n"]]:
    """Weights of the nearest point between two corners."""
    along = gram[i, i] - gram[i, j]
    t = jnp.clip(safe_divide(along, along + gram[j, j] - gram[i, j]), 0.0, 1.0)
    return weights_of({i: 1.0 - t, j: t}), jnp.ones_like(t, bool)


def on_face(gram: Float[Array, "4 4 *n"], i: int, j: int, k: int) -> tuple[Float[Array, "4 *n"], Bool[Array, "*n"]]:
    """Weights of the nearest point of the plane of three corners, and whether it lies between them."""
    jj = gram[j, j] - 2.0 * gram[i, j] + gram[i, i]
    kk = gram[k, k] - 2.0 * gram[i, k] + gram[i, i]
    jk = gram[j, k] - gram[i, j] - gram[i, k] + gram[i, i]
    j_i, k_i = gram[i, i] - gram[i, j], gram[i, i] - gram[i, k]
    area = jj * kk - jk * jk
    u = safe_divide(kk * j_i - jk * k_i, area)
    v = safe_divide(jj * k_i - jk * j_i, area)
    return weights_of({i: 1.0 - u - v, j: u, k: v}), (area > 0.0) & (u > 0.0) & (v > 0.0) & (u + v < 1.0)


def weights_of(parts: dict[int, Float[Array, "*n"]]) -> Float[Array, "4 *n"]:
    """Of four corners, those not named having none."""
    zero = jnp.zeros_like(next(iter(parts.values())))
    return jnp.stack([parts.get(k, zero) for k in range(4)])
