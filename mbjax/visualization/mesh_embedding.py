"""Reduces mesh files to small vertex and face arrays that fit into a page."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mbjax.errors import MissingPackageError
from mbjax.geometry import Convex, Mesh
from mbjax.optional_packages import imported

from .mesh_parts import MeshPart
from .packed_arrays import PackedArrays

# The page stores 4 to 6 bytes per face, so 60 000 faces are 0.35 MB in base64.
TOTAL_FACES = 60_000
FEWEST_FACES_PER_MESH = 200
CLUSTERING_ROUNDS = 12
VERTEX_STEPS = 2**14 - 1


def embed_meshes(meshes: Sequence[Mesh], packed: PackedArrays) -> tuple[dict[Mesh, dict[str, Any]], dict[Mesh, str]]:
    """Embeds simplified copies of the meshes that can be read, and gives the reason for each that cannot.

    Files share a total of `TOTAL_FACES` in proportion to their own face counts.
    """
    loaded: dict[Mesh, Any] = {}
    skipped: dict[Mesh, str] = {}
    for mesh in dict.fromkeys(meshes):
        result = load_mesh(mesh)
        if isinstance(result, str):
            skipped[mesh] = result
        else:
            loaded[mesh] = result
    num_faces = sum(len(surface.faces) for surface in loaded.values())
    share = min(1.0, TOTAL_FACES / max(num_faces, 1))
    embedded = {}
    for mesh, surface in loaded.items():
        target = max(FEWEST_FACES_PER_MESH, int(share * len(surface.faces)))
        embedded[mesh] = _encode(simplified(surface, target), packed)
    return embedded, skipped


class Surface(NamedTuple):
    """A surface of triangles between vertices."""

    vertices: np.ndarray  # (m, 3)
    faces: np.ndarray  # (k, 3), counterclockwise as seen from outside


def embed_hull(shape: Convex, packed: PackedArrays) -> dict[str, Any]:
    """Embeds the surface of a convex hull."""
    from scipy.spatial import ConvexHull

    hull = ConvexHull(np.array(shape.vertices))
    corners = hull.points[hull.simplices]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    points_inwards = np.sum(normals * hull.equations[:, :3], axis=1) < 0.0
    faces = np.where(points_inwards[:, None], hull.simplices[:, ::-1], hull.simplices)
    return _encode(Surface(hull.points, faces), packed)


def load_mesh(mesh: Mesh) -> Any:
    """A `trimesh.Trimesh`, or a phrase that says why the mesh cannot be read."""
    if mesh.path is None:
        return "file not found"
    if not Path(mesh.path).is_file():
        return f"no file at '{mesh.path}'"
    try:
        trimesh = imported("trimesh", "reading meshes needs trimesh", "mesh")
    except MissingPackageError as error:
        return str(error).rstrip(".")
    logging.getLogger("trimesh").setLevel(logging.ERROR)
    if isinstance(mesh, MeshPart):
        return mesh.surface
    try:
        surface: Any = trimesh.load(mesh.path, force="mesh", skip_materials=True)
    except Exception as error:  # readers raise errors of any type; each means that the mesh is not drawn
        return f"{type(error).__name__}: {error}"
    if not len(getattr(surface, "faces", ())):
        return "no triangles in the file"
    surface.merge_vertices(merge_tex=True, merge_norm=True)
    return surface


def simplified(surface: Any, target: int) -> Any:
    if len(surface.faces) <= target:
        return surface
    with contextlib.suppress(ImportError):  # trimesh decimates through fast-simplification
        return surface.simplify_quadric_decimation(face_count=target)
    return _cluster_vertices(surface, target)


def _cluster_vertices(surface: Any, target: int) -> Any:
    """Merges vertices that share a cell of a grid, and coarsens the grid until at most `target` faces are left."""
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


def _encode(surface: Any, packed: PackedArrays) -> dict[str, Any]:
    """Encodes vertices as integer steps within the mesh's box, and face corners as distances back in the vertex list.

    Faces follow their neighbours, and vertices are ordered by first use, so that both kinds of numbers are small.
    """
    faces = _by_neighbours(np.asarray(surface.faces))
    used, first, places = np.unique(faces.reshape(-1), return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(used), dtype=np.int64)
    rank[order] = np.arange(len(used))
    corners = rank[places.reshape(-1)]
    newest = np.maximum.accumulate(np.concatenate([[-1], corners[:-1]])) + 1
    vertices = np.asarray(surface.vertices, dtype=np.float64)[used[order]]
    lower = vertices.min(axis=0)
    step = max(float(np.ptp(vertices, axis=0).max()), 1e-9) / VERTEX_STEPS
    changes = np.diff(np.round((vertices - lower) / step).astype(np.int64), axis=0, prepend=0)
    return {
        "lower": lower.tolist(),
        "step": step,
        "changes": packed.add(np.where(changes < 0, -2 * changes - 1, 2 * changes), "u2"),
        "back": packed.add(newest - corners, "u4" if len(vertices) > 65535 else "u2"),
    }


def _by_neighbours(faces: np.ndarray) -> np.ndarray:
    """Orders the faces so that each is followed, where possible, by one that shares an edge with it."""
    edges = np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
    owner = np.tile(np.arange(len(faces)), 3)
    order = np.lexsort((edges[:, 1], edges[:, 0]))
    edges, owner = edges[order], owner[order]
    is_shared = (edges[1:] == edges[:-1]).all(axis=1)
    neighbours: list[list[int]] = [[] for _ in range(len(faces))]
    for a, b in zip(owner[1:][is_shared].tolist(), owner[:-1][is_shared].tolist(), strict=True):
        neighbours[a].append(b)
        neighbours[b].append(a)
    is_placed = [False] * len(faces)
    placed: list[int] = []
    for start in range(len(faces)):
        waiting = [start]
        while waiting:
            face = waiting.pop()
            if is_placed[face]:
                continue
            is_placed[face] = True
            placed.append(face)
            waiting.extend(other for other in neighbours[face] if not is_placed[other])
    return faces[placed]
