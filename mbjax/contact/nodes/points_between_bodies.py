"""Points where two deformable bodies touch, as in Drake.

Each body has a depth field: the distance to its surface at rest, which is linear between the vertices of its mesh, and
moves with them. The bodies touch where both depths φ are the same. Each polygon, of area A, is a point of stiffness
k = A C and distance -φ, with C = 1e8 Pa/m.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from mbjax.finite_elements import DepthMesh
from mbjax.geometry import distance_to_triangles
from mbjax.geometry.hydroelastic import faces_of_tetrahedra, weights_of_corners
from mbjax.model import BodyContactPair, DeformableBodies, MultibodyModel

from ..points.contact_parameters import PairParameters, combine_friction
from .node_point_records import GRADIENT_OF_DEFORMABLE, NodePoints, are_inverted, calc_dissipation


class DeepBody(NamedTuple):
    """Corners of the tetrahedra of a body's depth mesh in the world, with their depths."""

    corners_W: Float[Array, "3 4 t"]  # m
    depth: Float[Array, "4 t"]  # m


def calc_deep_bodies(deformables: DeformableBodies, positions: Float[Array, "n 3"]) -> dict[int, DeepBody]:
    """The bodies that may touch other deformable bodies, with the nodes of all at these positions."""
    layout, rest = deformables.layout, deformables.rest_positions()
    found = {}
    for body, mesh in layout.depth_meshes.items():
        nodes = layout.mesh.nodes(body)
        at_rest = with_added_vertices(mesh, rest[nodes])
        surface = rest[layout.triangles[body]]
        depth = (
            jnp.zeros(at_rest.shape[0], rest.dtype)
            .at[mesh.inner]
            .set(distance_to_triangles(at_rest[mesh.inner], surface))
        )
        vertices = with_added_vertices(mesh, positions[nodes])
        found[body] = DeepBody(jnp.transpose(vertices[mesh.tetrahedra], (2, 1, 0)), depth[mesh.tetrahedra.T])
    return found


def with_added_vertices(mesh: DepthMesh, x: Float[Array, "n 3"]) -> Float[Array, "v 3"]:
    """Positions of the nodes, then those of the vertices that are added."""
    return jnp.concatenate([x, jnp.einsum("kc,kci->ki", jnp.asarray(mesh.weights, x.dtype), x[mesh.parents])])


def points_between_bodies(
    model: MultibodyModel,
    deformables: DeformableBodies,
    deep: dict[int, DeepBody],
    positions: Float[Array, "n 3"],
    pair: BodyContactPair,
) -> NodePoints:
    """The points of two deformable bodies A and B, with the corners of an element of each."""
    layout, bodies = deformables.layout, (pair.deformable_A, pair.deformable_B)
    faces = faces_of_tetrahedra(*deep[bodies[0]], *deep[bodies[1]], pair.max_faces)
    active, nodes, weights = faces.active, [], []
    for body, tetrahedra, sign in zip(bodies, (faces.elements_A, faces.elements_B), (1.0, -1.0), strict=True):
        elements = nodes_of_tetrahedra(deformables, body, tetrahedra)
        corners = jnp.moveaxis(positions[elements], -1, 0)
        active &= are_upright(deformables, body, corners)
        nodes.append(elements)
        weights.append(sign * weights_of_corners(corners, faces.centroid))
    nodes, weights = jnp.concatenate(nodes), jnp.concatenate(weights)
    area = jnp.where(active, faces.area, 1.0)
    is_free = ~jnp.asarray(layout.mesh.is_held)[nodes]
    return NodePoints(
        p_WC=faces.centroid,
        normal_W=-faces.normal,
        distance=jnp.where(active, -faces.depth, 0.0),
        area=jnp.where(active, faces.area, 0.0),
        pressure=jnp.where(active, GRADIENT_OF_DEFORMABLE * faces.depth, 0.0),
        active=active,
        parameters=parameters_between_bodies(model, deformables, pair, area),
        nodes=nodes,
        weights=jnp.where(is_free & active, weights, 0.0),
        J=jnp.zeros((3, pair.max_faces, model.num_velocities), area.dtype),
        left_out=faces.left_out[None],
    )


def nodes_of_tetrahedra(deformables: DeformableBodies, body: int, tetrahedra: Int[Array, " n"]) -> Int[Array, "4 n"]:
    """The corners of the elements that tetrahedra of a body's depth mesh are parts of."""
    layout = deformables.layout
    mesh = layout.depth_meshes[body]
    nodes_of_elements = jnp.asarray(mesh.elements.T + layout.mesh.nodes(body).start, jnp.int32)
    return nodes_of_elements[:, jnp.asarray(mesh.owners)[tetrahedra]]


def are_upright(deformables: DeformableBodies, body: int, corners: Float[Array, "3 4 n"]) -> Bool[Array, " n"]:
    """Whether elements with these corners are not inside out, of a body that is enabled."""
    return ~are_inverted(corners) & (deformables.enabled[body] != 0.0)


def parameters_between_bodies(
    model: MultibodyModel, deformables: DeformableBodies, pair: BodyContactPair, area: Float[Array, " m"]
) -> PairParameters:
    """Parameters of the points of a pair with their areas. Both sides are equally stiff."""
    A, B = pair.deformable_A, pair.deformable_B
    one = jnp.ones_like(area)
    friction = combine_friction(deformables.dynamic_friction[A], deformables.dynamic_friction[B])
    dissipation = 0.5 * (calc_dissipation(model, deformables, A) + calc_dissipation(model, deformables, B))
    return PairParameters(
        compliance=1.0 / (area * GRADIENT_OF_DEFORMABLE),
        hunt_crossley_dissipation=one * dissipation,
        relaxation_time=one * (deformables.relaxation_time[A] + deformables.relaxation_time[B]),
        static_friction=one * friction,
        dynamic_friction=one * friction,
        weight_A=one,
    )
