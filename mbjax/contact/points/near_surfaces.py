"""Broad phase of hydroelastic pairs: which have bounding boxes that overlap."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from mbjax.geometry.hydroelastic import HydroelasticTopology
from mbjax.geometry.signed_distance.bounding_boxes import bounding_box, gap_along_axes
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca

from .geometry_poses import shape_sizes

REACH = 2.0  # margins; the corner of a box that has grown is the square root of 3 margins away from the box


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
