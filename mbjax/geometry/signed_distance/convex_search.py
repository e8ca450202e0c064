"""Search for the direction of largest separation of two convex shapes and their touching features, without gradient.

The signed distance is the largest over unit directions n of

    s(n) = n . (b(n) - a(n)),      with a, b the farthest points of A along n and of B along -n.

Rounds of Newton's method climb from the best of several starting directions. Each step tries all combinations of
features near the farthest points, as if the features had no ends, and keeps the direction with the largest s. Steps are
judged by s itself, so a step never separates less, and the result is exact once the features are right. On an edge or a
face several vertices are equally far. The search tries those nearest to the point where the features cross, as a climb
could otherwise end where they cross beside the edge.

A round begins with the direction between the nearest points (`nearest_on_simplex`). Where the shapes are apart s is
concave, so this direction is reached from any start. Overlapping shapes are first moved apart along the best direction
known, so that the direction found separates at least as well. Their s has several maxima. Unless the overlap is
shallow, they climb from three directions, one after another, while finished pairs wait.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from mbjax.execution import traced_for
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_norm, safe_normalize

from .choices import chosen_columns, dot_columns, index_of_largest, rounding
from .convex_contact import ConvexPair, Features, climb, crossing, farthest_points
from .nearest_on_simplex import gap_along, nearest_direction

ROUNDS = 5  # largest number of rounds from each start
CERTAIN = 1e-4  # gap, relative to the shapes' size, between nearest points and separation that ends a climb
NUM_STARTS = 3
SHALLOW = 0.005  # overlap, relative to the shapes' size, below which one start suffices
APART = 0.8  # largest cosine of the angle between two starts
CLIMBS = 2  # Newton steps in each round
LARGEST_TURN = 0.5  # largest turn of a step, in rad
CLEARANCE = 0.02  # gap, relative to the shapes' size, to which overlapping shapes are moved apart
DIAGONALS = (
    (0, 1, 1),
    (0, 1, -1),
    (1, 0, 1),
    (1, 0, -1),
    (1, 1, 0),
    (1, -1, 0),
    (1, 1, 1),
    (1, 1, -1),
    (1, -1, 1),
    (-1, 1, 1),
)
DISTINCT = 0.99  # cosine below which two directions count as different


class Found(NamedTuple):
    """A direction from A to B, the separation along it, and the features that touch along it."""

    direction: Float[Array, "3 *n"]
    separation: Float[Array, "*n"]
    features: Features


class ConvexShapeSearch(NamedTuple):
    """State of a search: best result, this climb's result, gaps of its simplex, its rounds, and completed climbs."""

    best: Found
    found: Found
    gaps: Float[Array, "3 4 *n"]
    num_rounds: Int[Array, "*n"]
    num_climbs: Int[Array, "*n"]
    is_done: Bool[Array, "*n"]


def separation(pair: ConvexPair, direction: Float[Array, "3 *hn"]) -> Float[Array, "*hn"]:
    """Separation s(n); -inf where the direction is zero."""
    a, b = farthest_points(pair, direction)
    is_direction = dot_columns(direction, direction) > 0.5
    return jnp.where(is_direction, dot_columns(direction, b - a), -jnp.inf)


def separating_features(pair: ConvexPair) -> tuple[Found, Float[Array, "*n"], Bool[Array, "*n"]]:
    """What separates most, the pair's size, and whether another direction separates as much."""
    directions, size = starting_directions(pair)
    separations = separation(pair, directions)
    starts = distinct_starts(directions, separations, rounding(size))
    num_tangents = pair.numbers_of_tangents(size)
    tolerance = rounding(size)

    def corners_at(n: Array) -> Features:
        none = jnp.zeros(size.shape, jnp.int32)
        return Features(*pair.near(n, jnp.zeros_like(n)), none, none)

    def start_at(n: Array) -> tuple[Found, Array]:
        gap = gap_along(pair, n[:, None])
        return Found(n, dot_columns(n, gap[:, 0]), corners_at(n)), jnp.concatenate([gap] * 4, axis=1)

    def climb_further(_: int, carry: tuple[Found, Array]) -> tuple[Found, Array]:
        found, reach = carry
        touching = Features(*found.features[:2], *(count[None] for count in found.features[2:]))
        near = pair.near(found.direction, crossing(pair, found.direction[:, None], touching)[1][:, 0])
        directions = climb(pair, found.direction[:, None], Features(*near, *num_tangents), reach)
        reached = separation(pair, directions)
        index, highest = index_of_largest(reached, tolerance)  # the first has the most tangents
        features = Features(*near, *(chosen_columns(index, count) for count in num_tangents))
        new = Found(chosen_columns(index, directions, axis=1), highest, features)
        is_better = highest >= found.separation - tolerance
        return keep_better(is_better, new, found), jnp.where(
            is_better, jnp.minimum(2.0 * reach, LARGEST_TURN), 0.25 * reach
        )

    def improve(search: ConvexShapeSearch) -> ConvexShapeSearch:
        old, gaps = search.found, search.gaps
        clearance = CLEARANCE * size
        shift = old.direction * jnp.where(old.separation > clearance, 0.0, clearance - old.separation)
        n, most, gaps = nearest_direction(pair, gaps, shift)
        reached = separation(pair, n[:, None])[0]
        found = keep_better(reached > old.separation + tolerance, Found(n, reached, corners_at(n)), old)
        found, _ = lax.fori_loop(0, CLIMBS, climb_further, (found, jnp.full_like(size, LARGEST_TURN)))

        best = keep_better(found.separation >= search.best.separation - tolerance, found, search.best)
        is_highest = most - found.separation - dot_columns(shift, found.direction) < CERTAIN * size
        stays = ~(found.separation > old.separation + tolerance)
        num_rounds = search.num_rounds + 1
        ended = (stays & is_highest) | (num_rounds == ROUNDS)
        num_climbs = search.num_climbs + jnp.where(ended, 1, 0)
        is_done = ended & ((best.separation > -SHALLOW * size) | (num_climbs == NUM_STARTS))
        restarts = ended & ~is_done & ~search.is_done

        def restarted() -> tuple[Found, Array]:
            return keep_better(restarts, start_at(chosen_columns(num_climbs, starts, axis=1)), (found, gaps))

        has_branches = not traced_for().one_kernel
        found, gaps = lax.cond(jnp.any(restarts), restarted, lambda: (found, gaps)) if has_branches else restarted()
        num_rounds = jnp.where(ended, 0, num_rounds)
        return keep_better(
            search.is_done, search, ConvexShapeSearch(best, found, gaps, num_rounds, num_climbs, is_done)
        )

    def unfinished(search: ConvexShapeSearch) -> Array:
        return jnp.any(~search.is_done)

    start, gaps = start_at(starts[:, 0])
    zero = jnp.zeros(size.shape, jnp.int32)
    found = lax.while_loop(unfinished, improve, ConvexShapeSearch(start, start, gaps, zero, zero, zero > 0)).best
    is_other = dot_columns(directions, found.direction[:, None]) < DISTINCT
    rival = jnp.max(jnp.where(is_other, separations, -jnp.inf), axis=0)
    is_rivalled = rival > found.separation - float(jnp.finfo(size.dtype).eps) ** 0.5 * size
    return found, size, is_rivalled


def distinct_starts(
    directions: Float[Array, "3 m *n"], separations: Float[Array, "m *n"], tolerance: Float[Array, "*n"]
) -> Float[Array, "3 k *n"]:
    """The directions of largest separation, each well away from those before it."""
    starts = []
    for _ in range(NUM_STARTS):
        starts.append(chosen_columns(index_of_largest(separations, tolerance)[0], directions, axis=1))
        separations = jnp.where(dot_columns(directions, starts[-1][:, None]) > APART, -jnp.inf, separations)
    return jnp.stack(starts, axis=1)


def keep_better(is_better: Bool[Array, "*n"], new: Any, old: Any) -> Any:
    """The new pytree where it is better, else the old one."""
    return jax.tree.map(lambda x, y: jnp.where(is_better, x, y), new, old)


def starting_directions(pair: ConvexPair) -> tuple[Float[Array, "3 m *n"], Float[Array, "*n"]]:
    """Starting directions, and the pair's size: line of centres, axes of both shapes, their products and diagonals."""
    p = pair.p[:, 0]
    zero, one = jnp.zeros_like(p[0]), jnp.ones_like(p[0])
    identity = [jnp.stack([one if i == k else zero for i in range(3)]) for k in range(3)]
    axes_B = [jnp.broadcast_to(axis[:, 0], p.shape) for axis in jnp.unstack(pair.R, axis=1)]
    products = [safe_normalize(ca.cross(a, b), 0) for a in identity for b in axes_B]
    diagonals = [sum(d * e for d, e in zip(ds, identity, strict=True)) / math.hypot(*ds) for ds in DIAGONALS]
    axes = jnp.stack([*identity, *axes_B, *products, *diagonals], axis=1)
    (a, b), (other_a, other_b) = farthest_points(pair, axes[:, :6]), farthest_points(pair, -axes[:, :6])
    centres = 0.5 * jnp.mean(b + other_b - a - other_a, axis=1)
    line = safe_normalize(centres, 0)
    size = safe_norm(p, 0) + jnp.max(safe_norm(a - other_a, 0) + safe_norm(b - other_b, 0), axis=0)
    line = jnp.where(jnp.sum(line * line, axis=0) == 0.0, identity[0], line)
    return jnp.concatenate([line[:, None], axes, -axes], axis=1), size
