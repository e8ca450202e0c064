"""From polygons in one geometry's frame to the faces of a contact surface in the world."""

import dataclasses
from typing import Literal, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from mbjax.spatial import RigidTransform

from .contact_surface import ContactSurface
from .polygons import SMALLEST_AREA, area_and_centroid

Representation = Literal["polygon", "triangle"]


class Polygons(NamedTuple):
    """Polygons with pressure between a compliant geometry C and another geometry D, components first, in C.

    Corners have the components x, y, z in m and the pressure in Pa. Normals are unit vectors out of D and into C. The
    gradients are those of the two pressures along the normal, each into its geometry; None stands for a rigid one.
    """

    corners_C: Float[Array, "4 corners n"]
    num_corners: Int[Array, " n"]
    normal_C: Float[Array, "3 n"]
    gradient_C: Float[Array, " n"] | None
    gradient_D: Float[Array, " n"] | None
    filled: Bool[Array, " n"]
    left_out: Int[Array, ""]
    elements_D: Int[Array, " n"] | None = None  # which elements each is within, where they are known
    elements_C: Int[Array, " n"] | None = None


def faces_of(polygons: Polygons, X_WC: RigidTransform, representation: Representation) -> ContactSurface:
    """The contact surface of polygons, or of the triangles that join their edges to their centroids."""
    area, centroid = area_and_centroid(polygons.corners_C, polygons.normal_C)
    if representation == "triangle":
        polygons = fan_of(polygons, centroid)
        area, centroid = area_and_centroid(polygons.corners_C, polygons.normal_C)
    active = polygons.filled & (polygons.num_corners >= 3) & (area > SMALLEST_AREA)
    up = jnp.array([0.0, 0.0, 1.0], area.dtype)
    in_W = jnp.moveaxis(polygons.corners_C[:3], 0, -1)
    gradient_M, gradient_N = (
        jnp.where(active, jnp.inf if gradient is None else gradient, jnp.ones_like(area))
        for gradient in (polygons.gradient_C, polygons.gradient_D)
    )
    return ContactSurface(
        centroid_W=X_WC @ centroid[:3].T,
        area=jnp.where(active, area, 0.0),
        normal_W=jnp.where(active[:, None], polygons.normal_C.T @ X_WC.rotation.T, up),
        pressure=jnp.where(active, centroid[3], 0.0),
        gradient_M=gradient_M,
        gradient_N=gradient_N,
        active=active,
        vertices_W=jnp.moveaxis(X_WC @ in_W, 0, 1),
        vertex_pressure=jnp.where(active[:, None], polygons.corners_C[3].T, 0.0),
        num_vertices=jnp.where(active, polygons.num_corners, 0),
        left_out=polygons.left_out,
    )


def fan_of(polygons: Polygons, centroid: Float[Array, "4 n"]) -> Polygons:
    """One triangle an edge of each polygon, with the centroid as its last corner."""
    corners, num_slots = polygons.corners_C, polygons.corners_C.shape[1]

    def repeated(x: Array) -> Array:
        return jnp.repeat(x, num_slots, axis=-1)

    ends = jnp.stack([corners, jnp.roll(corners, -1, axis=1)], axis=1)  # 4, 2, corners, n
    middles = jnp.broadcast_to(centroid[:, None, None], (4, 1, *corners.shape[1:]))
    triangles = jnp.swapaxes(jnp.concatenate([ends, middles], axis=1), -1, -2)
    has_edge = jnp.arange(num_slots) < polygons.num_corners[:, None]
    return polygons._replace(
        corners_C=triangles.reshape(4, 3, -1),
        num_corners=jnp.where(has_edge, 3, 0).reshape(-1),
        normal_C=repeated(polygons.normal_C),
        gradient_C=None if polygons.gradient_C is None else repeated(polygons.gradient_C),
        gradient_D=None if polygons.gradient_D is None else repeated(polygons.gradient_D),
        filled=repeated(polygons.filled),
        elements_D=None,
        elements_C=None,
    )


def seen_from_other(surface: ContactSurface) -> ContactSurface:
    """The same surface with the two geometries in the other order: normals and the winding of the corners turn over."""
    slots = jnp.arange(surface.vertices_W.shape[1])
    order = jnp.where(slots > 0, jnp.maximum(surface.num_vertices[:, None] - slots, 0), 0)
    return dataclasses.replace(
        surface,
        normal_W=jnp.where(surface.active[:, None], -surface.normal_W, surface.normal_W),
        gradient_M=surface.gradient_N,
        gradient_N=surface.gradient_M,
        vertices_W=jnp.take_along_axis(surface.vertices_W, order[..., None], axis=1),
        vertex_pressure=jnp.take_along_axis(surface.vertex_pressure, order, axis=1),
    )
