"""Broad phase of hydroelastic pairs: surfaces are computed for pairs whose bounding boxes overlap.

Pairs are taken one after another. A branch leaves out those that are apart in every world of a chunk, so that the work
follows what overlaps. On a GPU, whose worlds do not share branches, all pairs are computed side by side.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from mbjax.execution import each_world, traced_for
from mbjax.geometry.hydroelastic import ContactSurface, HydroelasticTopology
from mbjax.geometry.signed_distance.bounding_boxes import bounding_box, gap_along_axes
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca

from .geometry_poses import shape_sizes

REACH = 2.0  # margins; the corner of a box that has grown is the square root of 3 margins away from the box


def calc_near_surfaces(
    calc_surface: Callable[..., ContactSurface],
    num_world_axes: int,
    is_near: Bool[Array, " n"],
    *args: Any,
) -> ContactSurface:
    """Surfaces of n pairs, which come last in all arrays, before worlds; empty ones of pairs that are not near."""

    def of_pairs(*args: Any) -> ContactSurface:
        return each_world(jax.vmap(calc_surface, in_axes=-1, out_axes=-1), num_world_axes, *args)

    def where_near(is_near: Bool[Array, " k"], *args: Any) -> ContactSurface:
        shapes = jax.eval_shape(of_pairs, *args)
        return lax.cond(jnp.any(is_near), of_pairs, lambda *_: no_surfaces(shapes), *args)

    if traced_for().expects_world_threads:
        return of_pairs(*args)
    if is_near.shape[0] == 1:
        return where_near(is_near, *args)
    last = -1 - num_world_axes
    each = jax.tree.map(
        lambda x: jnp.moveaxis(x, last, 0)[..., None, *[slice(None)] * num_world_axes], (is_near, *args)
    )
    found = lax.map(lambda x: where_near(*x), each)
    return jax.tree.map(lambda x: jnp.moveaxis(jnp.squeeze(x, last), 0, last), found)


def no_surfaces(shapes: ContactSurface) -> ContactSurface:
    """Surfaces of these shapes in which nothing touches."""
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    up = zeros.normal_W.at[:, 2].set(1.0)
    ones = jnp.ones_like(zeros.gradient_M), jnp.ones_like(zeros.gradient_N)
    return dataclasses.replace(zeros, normal_W=up, gradient_M=ones[0], gradient_N=ones[1])


def are_pairs_near(
    model: MultibodyModel,
    topologies: Sequence[HydroelasticTopology],
    pairs: Sequence[Sequence[int]],
    R_AB: Float[Array, "3 3 n"],
    p_AB: Float[Array, "3 n"],
) -> Bool[Array, " n"]:
    """Whether the boxes around the shapes of each pair, and their margins, overlap; NaN counts, so that it shows."""
    contact = model.layout.contact
    kinds = [contact.geometries[side[0]].kind for side in pairs]
    margin = sum(topology.margin for topology in topologies)
    if margin > 0.0 and "Convex" in kinds:  # sharp corners grow by more than a few margins
        return jnp.ones(p_AB.shape[1:], bool)
    sizes = [shape_sizes(model, side) for side in pairs]
    for k, topology in enumerate(topologies):
        if topology.surface is not None:  # the box around its vertices is that around two corners
            vertices = np.array(topology.surface.vertices)
            corners = np.stack([vertices.min(axis=0), vertices.max(axis=0)], axis=1)
            kinds[k] = "Convex"
            sizes[k] = jnp.asarray(corners.reshape(3, 2, *[1] * (p_AB.ndim - 1)), model.dtype)
    size_A, size_B, R_AB, p_AB = lax.stop_gradient((*sizes, R_AB, p_AB))
    gap = gap_between_boxes(kinds[0], kinds[1], size_A, size_B, R_AB, p_AB)
    return ~(gap >= REACH * margin)


def gap_between_boxes(
    kind_A: str, kind_B: str, size_A: Array, size_B: Array, R_AB: Float[Array, "3 3 n"], p_AB: Float[Array, "3 n"]
) -> Float[Array, " n"]:
    """A lower bound on the distance of two shapes, of which one may be a half-space."""
    if kind_A == "HalfSpace":
        centre, half = bounding_box(kind_B, size_B)
        return (p_AB + ca.matvec(R_AB, centre))[2] - ca.dot(jnp.abs(R_AB[2]), half)
    if kind_B == "HalfSpace":
        centre, half = bounding_box(kind_A, size_A)
        return ca.transposed_matvec(R_AB, centre - p_AB)[2] - ca.dot(jnp.abs(R_AB[:, 2]), half)
    return gap_along_axes(kind_A, kind_B, size_A, size_B, R_AB, p_AB)
