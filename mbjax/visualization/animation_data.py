"""Geometries and recorded poses to the JSON record that the viewer page reads."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from mbjax.geometry import (
    Box,
    Capsule,
    Convex,
    Cylinder,
    Ellipsoid,
    Geometry,
    HalfSpace,
    Mesh,
    Shape,
    Sphere,
)

from .mesh_embedding import embed_hull, embed_meshes, to_base64

# A pose takes 20 bytes: four 16-bit quaternion values, three 32-bit lengths. Longer recordings are
# thinned to this many bytes; the viewer interpolates between the frames that are left.
POSE_BUDGET_BYTES = 1_900_000
BYTES_PER_POSE = 20
QUATERNION_STEPS = 32767


def animation_record(
    geometries: Sequence[Sequence[Geometry]],
    body_names: Sequence[str],
    parents: Sequence[int],
    rotation: np.ndarray,
    translation: np.ndarray,
    times: np.ndarray,
    title: str,
) -> dict[str, Any]:
    """Everything the page shows.

    rotation (W, T, nb, 3, 3), translation (W, T, nb, 3) in m, times (T,) in s.
    """
    num_worlds, num_frames, num_bodies = translation.shape[:3]
    kept = _frames_to_keep(num_worlds, num_frames, num_bodies)
    quaternion = Rotation.from_matrix(rotation[:, kept].reshape(-1, 3, 3)).as_quat()
    meshes, bodies = _bodies(geometries, body_names, parents)
    return {
        "format": 1,
        "title": title,
        "num_worlds": num_worlds,
        "num_frames": len(kept),
        "num_frames_given": num_frames,
        "bodies": bodies,
        "meshes": meshes,
        "times": to_base64(times[kept], "<f8"),
        "quaternions_xyzw": to_base64(np.round(quaternion * QUATERNION_STEPS), "<i2"),
        "translations": to_base64(translation[:, kept], "<f4"),
    }


def _frames_to_keep(num_worlds: int, num_frames: int, num_bodies: int) -> np.ndarray:
    """Indices of the frames that fit the budget, evenly spread, first and last among them."""
    affordable = POSE_BUDGET_BYTES // (BYTES_PER_POSE * num_worlds * num_bodies)
    count = min(num_frames, max(2, affordable))
    return np.unique(np.round(np.linspace(0, num_frames - 1, count)).astype(int))


def _bodies(
    geometries: Sequence[Sequence[Geometry]], body_names: Sequence[str], parents: Sequence[int]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    shapes = [geometry.shape for on_body in geometries for geometry in on_body]
    meshes, skipped = embed_meshes([shape for shape in shapes if isinstance(shape, Mesh)])
    _warn_about_skipped(skipped)
    hulls = {shape: embed_hull(shape) for shape in shapes if isinstance(shape, Convex)}
    embedded: dict[Shape, dict[str, Any]] = {**meshes, **hulls}
    surfaces = {mesh: index for index, mesh in enumerate(embedded)}
    bodies = [
        {
            "name": name,
            "parent": int(parent),
            "geometries": [
                _geometry_record(geometry, surfaces) for geometry in on_body if geometry.shape not in skipped
            ],
        }
        for name, parent, on_body in zip(body_names, parents, geometries, strict=True)
    ]
    return list(embedded.values()), bodies


def _warn_about_skipped(skipped: dict[Mesh, str]) -> None:
    if not skipped:
        return
    listed = [f"'{mesh.filename}' ({reason})" for mesh, reason in list(skipped.items())[:4]]
    more = f", and {len(skipped) - 4} more" if len(skipped) > 4 else ""
    warnings.warn(
        f"write_animation: {len(skipped)} mesh(es) are not drawn: {', '.join(listed)}{more}. "
        "Their bodies are shown as frames and sticks; STL and OBJ files are drawn with "
        "pip install mbjax[mesh].",
        stacklevel=5,
    )


def _geometry_record(geometry: Geometry, surfaces: dict[Shape, int]) -> dict[str, Any]:
    return {
        "name": geometry.name,
        "quaternion_xyzw": Rotation.from_matrix(geometry.rotation).as_quat().tolist(),
        "translation": list(geometry.translation),
        "rgba": None if geometry.rgba is None else list(geometry.rgba),
        **_shape_record(geometry, surfaces),
    }


def _shape_record(geometry: Geometry, surfaces: dict[Shape, int]) -> dict[str, Any]:
    match geometry.shape:
        case Sphere(radius):
            return {"kind": "sphere", "radius": radius}
        case Box(size):
            return {"kind": "box", "size": list(size)}
        case Cylinder(radius, length):
            return {"kind": "cylinder", "radius": radius, "length": length}
        case Capsule(radius, length):
            return {"kind": "capsule", "radius": radius, "length": length}
        case Ellipsoid(a, b, c):
            return {"kind": "ellipsoid", "semi_axes": [a, b, c]}
        case HalfSpace():
            return {"kind": "half_space"}
        case Mesh() as mesh:
            return {"kind": "mesh", "mesh": surfaces[mesh], "scale": list(mesh.scale)}
        case Convex() as hull:
            return {"kind": "mesh", "mesh": surfaces[hull], "scale": [1.0, 1.0, 1.0]}
    raise TypeError(f"Geometry('{geometry.name}'): cannot draw a {type(geometry.shape).__name__}.")
