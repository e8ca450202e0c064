"""Points where deformable bodies touch collision geometries or each other, of all pairs."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.kinematics import PositionKinematics
from mbjax.model import DeformableBodies, MultibodyModel

from ..points.geometry_poses import calc_geometry_poses
from .node_point_records import NodePoints
from .participating_nodes import find_participants
from .points_between_bodies import calc_deep_bodies, points_between_bodies
from .points_on_geometries import points_on_geometry


def calc_node_points(model: MultibodyModel, position: PositionKinematics, positions: Float[Array, "n 3"]) -> NodePoints:
    """The points of all pairs, one pair after another, with the nodes at these positions."""
    deformables = model.deformables
    assert deformables is not None
    layout = deformables.layout
    parts = []
    if layout.contacts:
        poses = calc_geometry_poses(model, position)
        parts += [points_on_geometry(model, deformables, poses, position, positions, pair) for pair in layout.contacts]
    if layout.body_contacts:
        deep = calc_deep_bodies(deformables, positions)
        parts += [points_between_bodies(model, deformables, deep, positions, pair) for pair in layout.body_contacts]
    most = max(part.nodes.shape[0] for part in parts)
    joined = jax.tree.map(
        lambda *x: jnp.concatenate(x, axis=-1 if x[0].ndim < 3 else 1), *(with_more_nodes(part, most) for part in parts)
    )
    return with_slots_for_nodes(deformables, joined)


def with_more_nodes(points: NodePoints, count: int) -> NodePoints:
    """The points with `count` nodes each; those added have no weight."""
    if points.nodes.shape[0] == count:
        return points
    more = ((0, count - points.nodes.shape[0]), (0, 0))
    return points._replace(nodes=jnp.pad(points.nodes, more), weights=jnp.pad(points.weights, more))


def with_slots_for_nodes(deformables: DeformableBodies, points: NodePoints) -> NodePoints:
    """The points without those whose nodes have no slot in the step's problem, which are counted as left out."""
    layout = deformables.layout
    of_nodes = points.nodes, points.weights, points.active
    found = find_participants(*of_nodes, layout.mesh.num_nodes, layout.fixed_nodes, layout.num_slots)
    has_slots = jnp.all((found.slots[points.nodes] < layout.num_slots) | (points.weights == 0.0), axis=0)
    lost = points.active & ~has_slots
    pair = np.repeat(np.arange(len(layout.all_pairs)), [pair.max_faces for pair in layout.all_pairs])
    return points._replace(
        active=points.active & has_slots,
        weights=jnp.where(has_slots, points.weights, 0.0),
        J=jnp.where(has_slots[None, :, None], points.J, 0.0),
        left_out=points.left_out.at[pair].add(lost.astype(points.left_out.dtype)),
        participants=found,
    )
