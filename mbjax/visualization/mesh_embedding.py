"""Mesh files to small vertex and face arrays that fit into a page."""

from __future__ import annotations

import base64
import contextlib
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import ConvexHull

from mbjax.geometry import Convex, Mesh

# 6 bytes a vertex, 12 a face, two faces a vertex: 60 000 faces are 0.9 MB, 1.2 MB in base64.
TOTAL_FACES = 60_000
FEWEST_FACES_PER_MESH = 200
CLUSTERING_ROUNDS = 12


def embed_meshes(meshes: Sequence[Mesh]) -> tuple[dict[Mesh, dict[str, Any]], dict[Mesh, str]]:
    """Simplified copies of the meshes that can be read, and the reason for each that cannot.

    Files are shared out a total of `TOTAL_FACES` in proportion to their own face counts.
    """
    loaded: dict[Mesh, Any] = {}
    skipped: dict[Mesh, str] = {}
    for mesh in dict.fromkeys(meshes):
        result = _load(mesh)
        if isinstance(result, str):
            skipped[mesh] = result
        else:
            loaded[mesh] = result
    num_faces = sum(len(surface.faces) for surface in loaded.values())
    share = min(1.0, TOTAL_FACES / max(num_faces, 1))
    embedded = {}
    for mesh, surface in loaded.items():
        target = max(FEWEST_FACES_PER_MESH, int(share * len(surface.faces)))
        embedded[mesh] = _encode(_simplify(surface, target))
    return embedded, skipped


class Surface(NamedTuple):
    """Triangles between vertices."""

    vertices: np.ndarray  # (m, 3)
    faces: np.ndarray  # (k, 3), seen from outside counterclockwise


def embed_hull(shape: Convex) -> dict[str, Any]:
    """The surface of a convex hull."""
    hull = ConvexHull(np.array(shape.vertices))
    corners = hull.points[hull.simplices]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    points_inwards = np.sum(normals * hull.equations[:, :3], axis=1) < 0.0
    return _encode(Surface(hull.points, np.where(points_inwards[:, None], hull.simplices[:, ::-1], hull.simplices)))


def _load(mesh: Mesh) -> Any:
    """A `trimesh.Trimesh`, or a sentence that says why there is none."""
    if mesh.path is None:
        return "file not found"
    if not Path(mesh.path).is_file():
        return f"no file at '{mesh.path}'"
    try:
        import trimesh
    except ImportError:
        return "reading meshes needs trimesh: pip install mbjax[mesh]"
    logging.getLogger("trimesh").setLevel(logging.ERROR)
    try:
        surface: Any = trimesh.load(mesh.path, force="mesh", skip_materials=True)
    except Exception as error:  # whatever a reader of foreign files raises means "not drawn"
        return f"{type(error).__name__}: {error}"
    if not len(getattr(surface, "faces", ())):
        return "no triangles in the file"
    surface.merge_vertices(merge_tex=True, merge_norm=True)
    return surface


def _simplify(surface: Any, target: int) -> Any:
    if len(surface.faces) <= target:
        return surface
    with contextlib.suppress(ImportError):  # trimesh decimates through fast-simplification
        return surface.simplify_quadric_decimation(face_count=target)
    return _cluster_vertices(surface, target)


def _cluster_vertices(surface: Any, target: int) -> Any:
    """Merge vertices that share a cell of a grid, made coarser until `target` faces are left."""
    cell = float(np.max(surface.extents)) / np.sqrt(target)
    clustered = surface
    for _ in range(CLUSTERING_ROUNDS):
        clustered = _cluster_once(surface, cell)
        if len(clustered.faces) <= target:
            break
        cell *= 1.25
    return clustered


def _cluster_once(surface: Any, cell: float) -> Any:
    clustered = surface.copy()
    clustered.vertices = np.round(surface.vertices / cell)
    clustered.merge_vertices(merge_tex=True, merge_norm=True)
    clustered.update_faces(clustered.nondegenerate_faces())
    clustered.update_faces(clustered.unique_faces())
    clustered.remove_unreferenced_vertices()
    clustered.vertices = clustered.vertices * cell
    return clustered


def _encode(surface: Any) -> dict[str, Any]:
    """Vertices as 16-bit steps within the mesh's own box, faces as 16- or 32-bit indices."""
    vertices = np.asarray(surface.vertices, dtype=np.float64)
    lower = vertices.min(axis=0)
    step = np.maximum(np.ptp(vertices, axis=0), 1e-9) / 65535.0
    index_type = "<u2" if len(vertices) <= 65535 else "<u4"
    return {
        "lower": lower.tolist(),
        "step": step.tolist(),
        "vertices": to_base64(np.round((vertices - lower) / step), "<u2"),
        "faces": to_base64(np.asarray(surface.faces), index_type),
        "face_bits": 16 if index_type == "<u2" else 32,
    }


def to_base64(values: np.ndarray, dtype: str) -> str:
    """The array's bytes in C order and the given little-endian type, as text."""
    return base64.b64encode(np.ascontiguousarray(values).astype(dtype).tobytes()).decode("ascii")
