"""Where collision geometries are, relative to each other and to their bodies, and their sizes."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.execution.arrays import take
from mbjax.kinematics import PositionKinematics
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import quaternion_to_matrix


class GeometryPoses(eqx.Module):
    """Poses X_WG of all collision geometries, with positions from the world's, mobods' and trees' origins."""

    R_WG: Float[Array, "3 3 ng"]
    p_MG_W: Float[Array, "3 ng"]
    p_TG_W: Float[Array, "3 ng"]
    p_WG: Float[Array, "3 ng"]


def calc_geometry_poses(model: MultibodyModel, position: PositionKinematics) -> GeometryPoses:
    """Poses X_WG = X_WM X_MB X_BG of all collision geometries."""
    bodies = [geometry.body for geometry in model.layout.contact.geometries]
    mobods = [model.topology.body_mobods[body] for body in bodies]
    R_BG = ca.over_columns(quaternion_to_matrix, jnp.swapaxes(model.collision.quaternion, 0, 1))
    p_BG = jnp.swapaxes(model.collision.translation, 0, 1)
    R_MB, p_MB = take(position.placement.R_MB, bodies, 2), take(position.placement.p_MB, bodies, 1)
    R_WM = take(position.R_WM, mobods, 2)
    p_MG_W = ca.matvec(R_WM, p_MB + ca.matvec(R_MB, p_BG))
    p_TG_W, p_WG = (take(p, mobods, 1) + p_MG_W for p in (position.p_TM_W, position.p_WM))
    return GeometryPoses(ca.matmul(R_WM, ca.matmul(R_MB, R_BG)), p_MG_W, p_TG_W, p_WG)


def calc_relative_poses(
    model: MultibodyModel, poses: GeometryPoses, A: Sequence[int], B: Sequence[int]
) -> tuple[Float[Array, "3 3 n"], Float[Array, "3 n"], Float[Array, "3 3 n"], Float[Array, "3 n"]]:
    """R_WA, p_AB_W, R_AB and p_AB of pairs of geometries. Within a tree no large coordinates are subtracted."""
    R_WA, R_WB = take(poses.R_WG, A, 2), take(poses.R_WG, B, 2)
    geometries, topology = model.layout.contact.geometries, model.topology
    roots_A, roots_B = (
        topology.mobod_roots[np.asarray([topology.body_mobods[geometries[g].body] for g in side])] for side in (A, B)
    )
    same_tree = (roots_A == roots_B).reshape(-1, *(1 for _ in range(model.num_world_axes)))
    within, across = (take(p, B, 1) - take(p, A, 1) for p in (poses.p_TG_W, poses.p_WG))
    p_AB_W = jnp.where(same_tree, within, across)
    return R_WA, p_AB_W, ca.matmul(ca.transpose(R_WA), R_WB), ca.transposed_matvec(R_WA, p_AB_W)


def shape_sizes(model: MultibodyModel, geometries: Sequence[int]) -> Array:
    """Lengths (s, n) of shapes of one kind, or vertices (3, m, n) of convex shapes.

    Shapes with fewer vertices than others repeat their last one.
    """
    records = [model.layout.contact.geometries[g] for g in geometries]
    if records[0].num_vertices:
        counts = np.array([r.num_vertices for r in records])
        starts = np.array([r.vertex_start for r in records])
        where = starts + np.minimum(np.arange(counts.max())[:, None], counts - 1)
        vertices = jnp.swapaxes(model.collision.vertices, 0, 1)
        return take(vertices, where.ravel(), 1).reshape(3, *where.shape, *vertices.shape[2:])
    where = np.array([np.arange(r.size_start, r.size_start + r.num_sizes) for r in records], int).T
    return take(model.collision.size, where.ravel(), 0).reshape(*where.shape, *model.collision.size.shape[1:])
