"""Points where surfaces of deformable bodies press into the pressure fields of collision geometries, as in Drake.

Each polygon, of area A with the pressure p at its centroid, is a point of stiffness k = A g and distance -p / g, where
1 / g = 1 / C + 1 / g_B with the gradient g_B of the pressure along the normal, and C = 1e8 Pa/m in the place of a
gradient of the deformable body, which has no field. Body A is the deformable one.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from mbjax.geometry.hydroelastic import HydroelasticTopology, PressureField, TriangleFaces, faces_of_triangles, field
from mbjax.kinematics import PositionKinematics, calc_point_jacobian
from mbjax.model import DeformableBodies, MultibodyModel, NodeContactPair, hydroelastic_topology, numbers_of_shape

from ..points.contact_parameters import (
    PairParameters,
    calc_stiffness_and_dissipation,
    combine_friction,
)
from ..points.geometry_poses import GeometryPoses
from ..points.surface_points import SMALLEST_GRADIENT
from .node_point_records import GRADIENT_OF_DEFORMABLE, NodePoints, are_inverted, calc_dissipation


def points_on_geometry(
    model: MultibodyModel,
    deformables: DeformableBodies,
    poses: GeometryPoses,
    position: PositionKinematics,
    positions: Float[Array, "n 3"],
    pair: NodeContactPair,
) -> NodePoints:
    """The points of a deformable body A and a collision geometry of a rigid body B."""
    faces, of_triangles = calc_faces(model, deformables, poses, positions, pair)
    mobod = model.topology.body_mobods[model.layout.contact.geometries[pair.geometry].body]
    R_WG, p_WG = poses.R_WG[:, :, pair.geometry], poses.p_WG[:, pair.geometry]
    p_GC_W = R_WG @ faces.centroid_C
    p_MC_W = poses.p_MG_W[:, pair.geometry, None] + p_GC_W
    J = calc_point_jacobian(model, position, mobod, jnp.zeros(3, p_GC_W.dtype))
    J_C = J[3:, None] + jnp.cross(J[:3, None], p_MC_W[:, :, None], axis=0)
    g_B = jnp.where(faces.active, faces.gradient, 1.0)
    has_gradient = g_B > SMALLEST_GRADIENT
    g = 1.0 / (1.0 / GRADIENT_OF_DEFORMABLE + 1.0 / jnp.where(has_gradient, g_B, 1.0))
    active = faces.active & has_gradient & are_outsides(deformables, pair, positions)[faces.triangles]
    area = jnp.where(active, faces.area, 1.0)
    nodes = jnp.asarray(of_triangles.T, jnp.int32)[:, faces.triangles]
    is_free = ~jnp.asarray(deformables.mesh.is_held)[nodes]
    return NodePoints(
        p_WC=p_WG[:, None] + p_GC_W,
        normal_W=R_WG @ faces.normal_C,
        distance=jnp.where(active, -faces.pressure / g, 0.0),
        area=jnp.where(active, faces.area, 0.0),
        pressure=jnp.where(active, faces.pressure, 0.0),
        active=active,
        parameters=parameters_on_geometry(model, deformables, pair, area, g),
        nodes=nodes,
        weights=jnp.where(is_free & active, faces.weights, 0.0),
        J=jnp.where(active[None, :, None], J_C, 0.0),
        left_out=faces.left_out[None],
    )


def calc_faces(
    model: MultibodyModel,
    deformables: DeformableBodies,
    poses: GeometryPoses,
    positions: Float[Array, "n 3"],
    pair: NodeContactPair,
) -> tuple[TriangleFaces, Int[np.ndarray, "f 3"]]:
    """The polygons of one pair in the frame of the geometry, and the nodes of all triangles."""
    given = calc_field_and_corners(model, deformables, poses, positions, pair)
    return faces_of_triangles(*given, pair.max_faces), deformables.layout.triangles[pair.deformable]


def are_outsides(
    deformables: DeformableBodies, pair: NodeContactPair, positions: Float[Array, "n 3"]
) -> Bool[Array, " f"]:
    """Whether triangles are the outside of elements that are not inside out, of a body that is enabled."""
    elements = deformables.layout.elements_of_triangles[pair.deformable]
    corners = jnp.transpose(positions[deformables.mesh.elements[elements]], (2, 1, 0))
    return ~are_inverted(corners) & (deformables.enabled[pair.deformable] != 0.0)


def calc_field_and_corners(
    model: MultibodyModel,
    deformables: DeformableBodies,
    poses: GeometryPoses,
    positions: Float[Array, "n 3"],
    pair: NodeContactPair,
) -> tuple[HydroelasticTopology, PressureField, Float[Array, "3 3 f"]]:
    """The pressure field of the geometry, and the corners of the body's triangles in its frame."""
    topology, record = hydroelastic_topology(model, pair.geometry), model.layout.contact.geometries[pair.geometry]
    assert model.collision.hydroelastic_modulus is not None
    modulus = model.collision.hydroelastic_modulus[record.modulus_index]
    pressures = field(topology, numbers_of_shape(model, pair.geometry), modulus)
    of_triangles = deformables.layout.triangles[pair.deformable]
    R_WG, p_WG = poses.R_WG[:, :, pair.geometry], poses.p_WG[:, pair.geometry]
    corners_G = (positions[of_triangles] - p_WG) @ R_WG
    return topology, pressures, jnp.transpose(corners_G, (2, 1, 0))


def parameters_on_geometry(
    model: MultibodyModel, deformables: DeformableBodies, pair: NodeContactPair, area: Float[Array, " m"], g: Array
) -> PairParameters:
    """Parameters of the points of a pair, combined as in Drake, with their areas and gradients."""
    A, B = pair.deformable, pair.geometry
    collision = model.collision
    of_A = calc_dissipation(model, deformables, A)
    of_B = calc_stiffness_and_dissipation(model)[1][B]
    k_A, k_B = GRADIENT_OF_DEFORMABLE, g  # times the area
    one = jnp.ones_like(area)
    friction = combine_friction(deformables.dynamic_friction[A], collision.dynamic_friction[B])
    return PairParameters(
        compliance=1.0 / (area * g),
        hunt_crossley_dissipation=(k_B * of_A + k_A * of_B) / (k_A + k_B),
        relaxation_time=one * (deformables.relaxation_time[A] + collision.relaxation_time[B]),
        static_friction=one * friction,
        dynamic_friction=one * friction,
        weight_A=one,
    )
