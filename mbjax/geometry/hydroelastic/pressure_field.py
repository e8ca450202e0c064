"""Pressure fields within compliant geometries: vertices and their pressures as functions of lengths and modulus."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from mbjax.geometry.shapes import Convex, Ellipsoid, Shape, shape_lengths
from mbjax.spatial import safe_norm

from .topology import HydroelasticTopology


class PressureField(eqx.Module):
    """Vertices and pressures of a hydroelastic mesh in the frame G of its shape.

    Of a rigid geometry only the vertices matter. A half-space has no vertices: its pressure is `slope` times the depth
    below Gz = 0, and contact begins at a height of `margin`.
    """

    vertices_G: Float[Array, "vertices 3"]
    pressure: Float[Array, " vertices"]  # Pa
    slope: Float[Array, ""]  # Pa/m
    margin: Float[Array, ""]  # m


def field(
    topology: HydroelasticTopology,
    shape: Shape | Float[Array, "..."] | None = None,
    hydroelastic_modulus: ArrayLike | None = None,
    *,
    margin: ArrayLike | None = None,
    slab_thickness: ArrayLike | None = None,
) -> PressureField:
    """The pressure field of a geometry with given lengths, in the order of the shape's fields, and modulus in Pa.

    A `Convex` takes its vertices (m, 3) instead of lengths. What is not given is as it was when the topology was made.
    A rigid geometry needs no modulus.
    """
    lengths = jnp.asarray(lengths_of(topology.shape if shape is None else shape), float)
    modulus = jnp.asarray(0.0 if hydroelastic_modulus is None else hydroelastic_modulus, lengths.dtype)
    margin = jnp.asarray(topology.margin if margin is None else margin, lengths.dtype)
    if topology.is_half_space:
        thickness = topology.slab_thickness if slab_thickness is None else slab_thickness
        slope = jnp.zeros_like(modulus) if topology.is_rigid else modulus / thickness
        return PressureField(jnp.zeros((0, 3), lengths.dtype), jnp.zeros(0, lengths.dtype), slope, margin)
    pattern = topology.mesh
    vertices_G = jnp.asarray(pattern.basis, lengths.dtype) @ (lengths + margin * pattern.growth)
    pressure = modulus * extents(topology, lengths, margin, vertices_G)
    return PressureField(vertices_G, pressure, jnp.zeros_like(modulus), margin)


def lengths_of(shape: Shape | Float[Array, "..."]) -> Float[Array, "..."] | tuple:
    """The numbers of a shape that are leaves: its vertices where it is a hull, otherwise its lengths."""
    if isinstance(shape, Convex):
        return shape.vertices
    return shape_lengths(shape) if isinstance(shape, Shape) else shape


def extents(
    topology: HydroelasticTopology,
    lengths: Float[Array, " lengths"],
    margin: Float[Array, ""],
    vertices_G: Float[Array, "vertices 3"],
) -> Float[Array, " vertices"]:
    """Pressure over modulus: 1 on the medial axis, 0 on the surface, and negative beyond it in the margin."""
    if topology.is_rigid:
        return jnp.zeros_like(vertices_G[:, 0])
    if isinstance(topology.shape, Ellipsoid):
        return 1.0 - safe_norm(vertices_G / lengths)
    on_surface = -margin / (topology.mesh.depth @ lengths)
    return jnp.where(topology.mesh.interior, 1.0, on_surface)
