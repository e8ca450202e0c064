"""Pressure fields within compliant geometries: vertices and their pressures as functions of lengths and modulus."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from mbjax.geometry.shapes import Convex, Ellipsoid, Shape, shape_lengths
from mbjax.spatial import safe_norm

from .convex_field import convex_vertices_and_extents
from .convex_mesh import ConvexPattern
from .linear_functions import functions_of_tetrahedra, functions_of_triangles, homogeneous
from .selection import take_columns
from .topology import HydroelasticTopology, SurfacePattern


class PressureField(eqx.Module):
    """Vertices and pressures of a hydroelastic mesh in the frame G of its shape, and what follows for its elements.

    Of a rigid geometry only the vertices matter. A half-space has no vertices: its pressure is `slope` times the depth
    below Gz = 0, and contact begins at a height of `margin`. `functions_G` are linear functions of position:
    barycentric coordinates and pressure of tetrahedra, or the edges and the face of triangles.
    """

    vertices_G: Float[Array, "vertices 3"]
    pressure: Float[Array, " vertices"]  # Pa
    slope: Float[Array, ""]  # Pa/m
    margin: Float[Array, ""]  # m
    corners_G: Float[Array, "4 corners elements"]  # homogeneous
    corner_pressure: Float[Array, "corners elements"]
    functions_G: Float[Array, "4 functions elements"]


def field(
    topology: HydroelasticTopology,
    shape: Shape | Float[Array, "..."] | None = None,
    hydroelastic_modulus: ArrayLike | None = None,
    *,
    margin: ArrayLike | None = None,
    slab_thickness: ArrayLike | None = None,
) -> PressureField:
    """The pressure field of a geometry with given lengths, in the order of the shape's fields, and modulus in Pa.

    A `Convex` takes its vertices (m, 3) instead of lengths. What is not given is as it was when the topology was made,
    whose connectivity stays: other lengths must leave the shortest sides of a box the shortest, a long cylinder long,
    and a hull with the same facets. A hull without margin ignores margins given later. A rigid geometry needs no
    modulus.
    """
    numbers = jnp.asarray(leaves_of_shape(topology.shape if shape is None else shape))
    numbers = numbers if jnp.issubdtype(numbers.dtype, jnp.floating) else numbers.astype(float)
    if hydroelastic_modulus is None and not topology.is_rigid:
        raise ValueError(
            f"field: the compliant {type(topology.shape).__name__} has no hydroelastic_modulus; give it in Pa."
        )
    modulus = jnp.asarray(0.0 if topology.is_rigid else hydroelastic_modulus, numbers.dtype)
    margin = jnp.asarray(topology.margin if margin is None else margin, numbers.dtype)
    if topology.is_half_space:
        thickness = topology.slab_thickness if slab_thickness is None else slab_thickness
        slope = modulus if topology.is_rigid else modulus / jnp.asarray(thickness, numbers.dtype)
        none = jnp.zeros((4, 0, 0), numbers.dtype)
        return PressureField(
            jnp.zeros((0, 3), numbers.dtype), jnp.zeros(0, numbers.dtype), slope, margin, none, none[0], none
        )
    vertices_G, extent = vertices_and_extents(topology, numbers, margin)
    pressure = modulus * extent
    elements = jnp.asarray(topology.mesh.elements.T)
    corners_G, corner_pressure = take_columns(vertices_G.T, elements), take_columns(pressure, elements)
    functions_G = (
        functions_of_triangles(corners_G) if topology.is_rigid else functions_of_tetrahedra(corners_G, corner_pressure)
    )
    corners_G = homogeneous(corners_G)
    return PressureField(vertices_G, pressure, jnp.zeros_like(modulus), margin, corners_G, corner_pressure, functions_G)


def leaves_of_shape(shape: Shape | Float[Array, "..."]) -> Float[Array, "..."] | tuple:
    """The numbers of a shape that are leaves: its vertices where it is a hull, otherwise its lengths."""
    if isinstance(shape, Convex):
        return shape.vertices
    return shape_lengths(shape) if isinstance(shape, Shape) else shape


def vertices_and_extents(
    topology: HydroelasticTopology, numbers: Float[Array, "..."], margin: Float[Array, ""]
) -> tuple[Float[Array, "vertices 3"], Float[Array, " vertices"]]:
    """Vertices in G, and pressures over modulus: 1 on the medial axis, 0 on the surface, negative in the margin."""
    mesh = topology.mesh
    if isinstance(mesh, SurfacePattern):
        return jnp.asarray(mesh.vertices, numbers.dtype), jnp.zeros(len(mesh.vertices), numbers.dtype)
    if isinstance(mesh, ConvexPattern):
        return convex_vertices_and_extents(mesh, topology.is_rigid, numbers, margin)
    vertices_G = jnp.asarray(mesh.basis, numbers.dtype) @ (numbers + margin * jnp.asarray(mesh.growth, numbers.dtype))
    if topology.is_rigid:
        return vertices_G, jnp.zeros_like(vertices_G[:, 0])
    if isinstance(topology.shape, Ellipsoid):
        return vertices_G, 1.0 - safe_norm(vertices_G / numbers)
    on_surface = -margin / (jnp.asarray(mesh.depth, numbers.dtype) @ numbers)
    return vertices_G, jnp.where(mesh.interior, 1.0, on_surface)
