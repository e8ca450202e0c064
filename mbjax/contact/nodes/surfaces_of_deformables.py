"""Surfaces in which deformable bodies press into collision geometries and into each other, as polygons.

A step needs one point of each polygon alone; these are for whoever looks at contact.
"""

import dataclasses

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mbjax.geometry.hydroelastic import (
    ContactSurface,
    faces_of,
    polygons_of_equal_depth,
    polygons_of_triangles,
    seen_from_other,
)
from mbjax.kinematics import PositionKinematics
from mbjax.model import BodyContactPair, DeformableBodies, MultibodyModel, NodeContactPair
from mbjax.spatial import RigidTransform

from ..points.geometry_poses import GeometryPoses, calc_geometry_poses
from ..points.surface_points import SMALLEST_GRADIENT
from .node_point_records import GRADIENT_OF_DEFORMABLE
from .points_between_bodies import DeepBody, are_upright, calc_deep_bodies, nodes_of_tetrahedra
from .points_on_geometries import are_outsides, calc_field_and_corners


def calc_surfaces_of_deformables(
    model: MultibodyModel, position: PositionKinematics, positions: Float[Array, "n 3"]
) -> tuple[ContactSurface, ...]:
    """The surfaces of all pairs, with the nodes at these positions; normals point into the first body of each pair."""
    deformables = model.deformables
    assert deformables is not None
    layout = deformables.layout
    found = []
    if layout.contacts:
        poses = calc_geometry_poses(model, position)
        found += [surface_on_geometry(model, deformables, poses, positions, pair) for pair in layout.contacts]
    if layout.body_contacts:
        deep = calc_deep_bodies(deformables, positions)
        found += [surface_between_bodies(deformables, deep, positions, pair) for pair in layout.body_contacts]
    return tuple(found)


def surface_on_geometry(
    model: MultibodyModel,
    deformables: DeformableBodies,
    poses: GeometryPoses,
    positions: Float[Array, "n 3"],
    pair: NodeContactPair,
) -> ContactSurface:
    """The surface of a deformable body in the field of a collision geometry, with the pressure of the field."""
    topology, pressures, corners_G = calc_field_and_corners(model, deformables, poses, positions, pair)
    polygons, _ = polygons_of_triangles(topology, pressures, corners_G, pair.max_faces)
    assert polygons.elements_D is not None
    soft = jnp.full_like(polygons.corners_C[0, 0], GRADIENT_OF_DEFORMABLE)
    X_WG = RigidTransform(poses.R_WG[:, :, pair.geometry], poses.p_WG[:, pair.geometry])
    polygons = polygons._replace(gradient_D=soft)
    surface = seen_from_other(faces_of(polygons, X_WG, "polygon"))
    is_right = are_outsides(deformables, pair, positions)[polygons.elements_D]
    return kept(surface, is_right & (surface.gradient_N > SMALLEST_GRADIENT))


def surface_between_bodies(
    deformables: DeformableBodies, deep: dict[int, DeepBody], positions: Float[Array, "n 3"], pair: BodyContactPair
) -> ContactSurface:
    """The surface on which two deformable bodies are equally deep; pressures are depths times 1e8 Pa/m."""
    bodies = pair.deformable_A, pair.deformable_B
    polygons = polygons_of_equal_depth(*deep[bodies[0]], *deep[bodies[1]], pair.max_faces)
    elements_A, elements_B = polygons.elements_C, polygons.elements_D
    assert elements_A is not None
    assert elements_B is not None
    soft = jnp.full_like(polygons.corners_C[0, 0], GRADIENT_OF_DEFORMABLE)
    scale = jnp.array([1.0, 1.0, 1.0, GRADIENT_OF_DEFORMABLE], soft.dtype)
    polygons = polygons._replace(corners_C=polygons.corners_C * scale[:, None, None], gradient_C=soft, gradient_D=soft)
    same = RigidTransform(jnp.eye(3, dtype=soft.dtype), jnp.zeros(3, soft.dtype))
    is_right = jnp.ones(soft.shape, bool)
    for body, tetrahedra in zip(bodies, (elements_A, elements_B), strict=True):
        elements = nodes_of_tetrahedra(deformables, body, tetrahedra)
        is_right &= are_upright(deformables, body, jnp.moveaxis(positions[elements], -1, 0))
    return kept(faces_of(polygons, same, "polygon"), is_right)


def kept(surface: ContactSurface, is_right: Bool[Array, " faces"]) -> ContactSurface:
    """The surface without faces on elements that are inside out, or on bodies that are disabled."""
    active = surface.active & is_right
    each = active[:, None]
    return dataclasses.replace(
        surface,
        area=jnp.where(active, surface.area, 0.0),
        normal_W=jnp.where(each, surface.normal_W, jnp.array([0.0, 0.0, 1.0], surface.area.dtype)),
        pressure=jnp.where(active, surface.pressure, 0.0),
        gradient_M=jnp.where(active, surface.gradient_M, 1.0),
        gradient_N=jnp.where(active, surface.gradient_N, 1.0),
        active=active,
        vertex_pressure=jnp.where(each, surface.vertex_pressure, 0.0),
        num_vertices=jnp.where(active, surface.num_vertices, 0),
    )
