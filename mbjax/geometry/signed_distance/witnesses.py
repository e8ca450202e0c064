"""The interface of pair functions: their arguments, and the witness points and normals that they return."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mbjax.spatial import component_algebra as ca


class Witnesses(NamedTuple):
    """k candidate points of each of n pairs of shapes A and B, in the frame of A; w are worlds, if any."""

    distance: Float[Array, "k n *w"]  # signed, in m; negative where the shapes overlap
    normal: Float[Array, "3 k n *w"]  # nhat_BA: unit, out of B towards A
    point: Float[Array, "3 k n *w"]  # Ca on the surface of A, in m; Cb = Ca - distance * normal
    valid: Bool[Array, "k n *w"]  # False: no point here; its other numbers are finite
    degenerate: Bool[Array, "n *w"]  # the normal is not unique and a fixed one was chosen


class PairFunction(NamedTuple):
    """A `function(size_A, size_B, R_AB, p_AB) -> Witnesses` for pairs of two kinds, and its number of points.

    Sizes are (s, n *w) in the order of the shape's numbers; a Convex has its vertices (3, m, n *w) instead. `nearest`
    is a cheaper or more exact function that gives the nearest points only; None takes the smallest distance of all
    points instead.
    """

    function: Callable[..., Witnesses]
    num_points: int
    nearest: Callable[..., Witnesses] | None = None


def make_witnesses(
    distances: Sequence[Float[Array, "n *w"]],
    normals: Sequence[Float[Array, "3 n *w"]],
    points: Sequence[Float[Array, "3 n *w"]],
    valid: Sequence[Bool[Array, "n *w"] | bool] | None = None,
    degenerate: Bool[Array, "n *w"] | bool = False,
) -> Witnesses:
    """Makes witnesses from one entry per point; arrays are broadcast to a common shape."""
    k = len(distances)
    shape = jnp.broadcast_shapes(*(d.shape for d in distances), *(x.shape[1:] for x in (*normals, *points)))

    def repeated(x: Array | bool) -> Array:
        x = jnp.asarray(x)
        return x if x.shape == shape else jnp.broadcast_to(x, shape)

    def vectors(parts: Sequence[Array]) -> Array:
        return jnp.stack([jnp.broadcast_to(x, (3, *shape)) for x in parts], axis=1)

    return Witnesses(
        jnp.stack([repeated(d) for d in distances]),
        vectors(normals),
        vectors(points),
        jnp.stack([repeated(v) for v in ([True] * k if valid is None else valid)]),
        repeated(degenerate),
    )


def swap(witnesses: Witnesses, R_BA: Float[Array, "3 3 n *w"], p_BA: Float[Array, "3 n *w"]) -> Witnesses:
    """The witnesses of (B, A), in B's frame, from those of (A, B) in A's, and the pose X_BA."""
    R, p = R_BA[:, :, None], p_BA[:, None]
    point_B = witnesses.point - ca.scale(witnesses.normal, witnesses.distance)
    return witnesses._replace(
        normal=-ca.matvec(R, witnesses.normal),
        point=p + ca.matvec(R, point_B),
    )
