"""Surfaces of deformable bodies: which nodes are drawn, where they are in each frame, and their strain or stress."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mbjax.errors import ModelError
from mbjax.finite_elements import (
    calc_largest_strains,
    calc_node_averages,
    calc_reference_elements,
    calc_von_mises_stresses,
)
from mbjax.model import DeformableBodies, MultibodyModel

from .packed_arrays import PackedArrays, steps_of

CREASE_ANGLE = 0.6  # rad: sharper edges of the mesh at rest stay sharp
POINT_STEPS = 2**18  # along the longest side of the box around everything that the surfaces pass through
VALUE_STEPS = 65535


@dataclasses.dataclass(frozen=True)
class ColorScale:
    """What colors stand for: a label, the unit in which the legend has it, and that unit's size."""

    label: str
    unit: str
    size: float


COLOR_SCALES = {
    "strain": ColorScale("Largest principal strain", "%", 0.01),
    "stress": ColorScale("Von Mises stress", "kPa", 1e3),
}


@dataclasses.dataclass(frozen=True)
class DeformableSurface:
    """The surface of one body: triangles (f, 3) of vertices, and the node (v,) at which each vertex is.

    Nodes are counted among those of all surfaces. A node at a sharp edge has several vertices, so that each side of the
    edge has a normal of its own.
    """

    name: str
    vertices: Int[np.ndarray, " v"]
    triangles: Int[np.ndarray, "f 3"]


@dataclasses.dataclass(frozen=True)
class DeformableSurfaces:
    """Surfaces of all bodies; `nodes` are the nodes on any of them, in the numbers of the model."""

    nodes: Int[np.ndarray, " k"]
    bodies: tuple[DeformableSurface, ...]


@dataclasses.dataclass(frozen=True)
class SurfaceMotion:
    """Positions of the surfaces' nodes in the world, in m, and the values of their colors if they have any."""

    points: Float[np.ndarray, "T k 3"]
    values: Float[np.ndarray, "T k"] | None = None


def deformable_surfaces(model: MultibodyModel) -> DeformableSurfaces | None:
    """The surfaces of a model's deformable bodies, with sharp edges where the mesh at rest has them; None without."""
    deformables = model.deformables
    if deformables is None:
        return None
    points = np.asarray(deformables.rest_positions(), float)
    triangles = deformables.layout.triangles
    nodes = np.unique(np.concatenate(triangles))
    bodies = []
    for info, of_body in zip(deformables.layout.bodies, triangles, strict=True):
        vertices, corners = split_at_creases(points, of_body)
        bodies.append(DeformableSurface(info.name, np.searchsorted(nodes, vertices), corners))
    return DeformableSurfaces(nodes, tuple(bodies))


def split_at_creases(
    points: Float[np.ndarray, "n 3"], triangles: Int[np.ndarray, "f 3"]
) -> tuple[Int[np.ndarray, " v"], Int[np.ndarray, "f 3"]]:
    """The node of each vertex, and triangles of vertices; triangles share vertices but over sharp edges."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    normals = unit_normals(points, triangles)
    corners = np.arange(triangles.size).reshape(-1, 3)
    low_first = triangles < np.roll(triangles, -1, axis=1)
    ends = np.stack([corners, np.roll(corners, -1, axis=1)], axis=-1)  # corners of each edge of each triangle
    ends = np.where(low_first[..., None], ends, ends[..., ::-1]).reshape(-1, 2)
    edges = triangles.reshape(-1)[ends]
    order = np.lexsort((edges[:, 1], edges[:, 0]))
    one, other = order[:-1], order[1:]
    is_smooth = np.sum(normals[one // 3] * normals[other // 3], axis=-1) > np.cos(CREASE_ANGLE)
    joined = (edges[one] == edges[other]).all(axis=-1) & is_smooth
    rows, columns = ends[one[joined]].reshape(-1), ends[other[joined]].reshape(-1)
    graph = coo_matrix((np.ones(len(rows)), (rows, columns)), (triangles.size, triangles.size))
    count, vertex = connected_components(graph, directed=False)
    node = np.zeros(count, int)
    node[vertex] = triangles.reshape(-1)
    return node, vertex.reshape(-1, 3)


def unit_normals(points: Float[np.ndarray, "n 3"], triangles: Int[np.ndarray, "f 3"]) -> Float[np.ndarray, "f 3"]:
    """Normals of triangles, outward; zero for one without an area."""
    a, b, c = (points[triangles[:, k]] for k in range(3))
    normal = np.cross(b - a, c - a)
    return normal / np.maximum(np.linalg.norm(normal, axis=-1, keepdims=True), 1e-300)


def surface_motion(
    call: str, model: MultibodyModel, surfaces: DeformableSurfaces, position: Any, times: Any, color_by: str | None
) -> SurfaceMotion:
    """The motion of the surfaces with the model's nodes at `position` (T, n, 3) at these times, all finite."""
    deformables = model.deformables
    assert deformables is not None
    position = np.asarray(position)
    finite = np.isfinite(position).all(-1)
    if not finite.all():
        frame, node = np.argwhere(~finite)[0]
        name = deformables.names[deformables.mesh.body_of_node[node]]
        raise ValueError(
            f"{call}: the nodes of the deformable body '{name}' are not finite at t = {times[frame]:.6g} s (frame "
            f"{frame}). The simulation diverged: pass the frames before it, or reduce the time step."
        )
    values = None
    if color_by is not None:
        found = values_at_nodes(color_by, deformables, jnp.asarray(position, model.dtype))
        values = np.asarray(found, float)[:, surfaces.nodes]
    return SurfaceMotion(position[:, surfaces.nodes].astype(float), values)


@eqx.filter_jit
def values_at_nodes(
    color_by: str, deformables: DeformableBodies, position: Float[Array, "T n 3"]
) -> Float[Array, "T n"]:
    """What colors stand for at all nodes in every frame."""
    mesh = deformables.mesh
    elements = calc_reference_elements(mesh, deformables.reference_positions)

    def at_one_time(x: Float[Array, "n 3"]) -> Float[Array, " n"]:
        if color_by == "strain":
            of_elements = calc_largest_strains(mesh, elements, x)
        else:
            of_elements = calc_von_mises_stresses(mesh, elements, deformables.lame_constants(), x)
        return calc_node_averages(mesh, elements, of_elements)

    return jax.lax.map(at_one_time, position)


def require_color(call: str, model: MultibodyModel, color_by: Any) -> None:
    """Refuses a color that is none, and one for deformable bodies where there are none."""
    if color_by is None:
        return
    if color_by not in COLOR_SCALES:
        raise ModelError(f"{call}: color_by must be {' or '.join(map(repr, COLOR_SCALES))}, got {color_by!r}.")
    if model.deformables is None:
        raise ModelError(
            f"{call}: color_by={color_by!r} colors deformable bodies, and the model has none. Leave it out."
        )


def surfaces_record(
    surfaces: DeformableSurfaces, motions: Sequence[SurfaceMotion], color_by: str | None, packed: PackedArrays
) -> dict[str, Any]:
    """The record of the surfaces, in every world, that `viewer/deformables.js` reads."""
    largest = max((finite_largest(motion.values) for motion in motions if motion.values is not None), default=0.0)
    colors = None
    if color_by is not None:
        scale = COLOR_SCALES[color_by]
        colors = {"label": scale.label, "unit": scale.unit, "largest": largest / scale.size}
    return {
        "num_nodes": len(surfaces.nodes),
        "bodies": [
            {
                "name": body.name,
                "vertices": packed.add(body.vertices, "u4", differences=1),
                "triangles": packed.add(body.triangles, "u4", differences=1),
            }
            for body in surfaces.bodies
        ],
        "worlds": [_moved(motion, largest, packed) for motion in motions],
        "colors": colors,
    }


def _moved(motion: SurfaceMotion, largest: float, packed: PackedArrays) -> dict[str, Any]:
    lower = motion.points.min(axis=(0, 1))
    step = max(float(np.ptp(motion.points, axis=(0, 1)).max()), 1e-6) / POINT_STEPS
    values = motion.values
    if values is not None:
        values = np.nan_to_num(values, nan=largest, posinf=largest) / max(largest, 1e-300) * VALUE_STEPS
        values = packed.add(np.round(values).astype(int), "u2", differences=1)
    points = steps_of(motion.points - lower, step)
    return {
        "lower": lower.tolist(),
        "step": step,
        "points": packed.add(points, "i4", differences=2),
        "values": values,
    }


def finite_largest(values: Float[np.ndarray, "T k"]) -> float:
    """The largest of the values that are finite."""
    return float(np.max(values, where=np.isfinite(values), initial=0.0))
