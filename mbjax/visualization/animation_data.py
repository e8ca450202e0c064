"""Converts geometries and recorded poses to the JSON record that the viewer page reads."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

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

from .contact_patches import Patches, patch_record
from .deformable_surfaces import DeformableSurfaces, SurfaceMotion, surfaces_record
from .force_arrows import Arrows, arrow_record
from .joint_sliders import JointSliders
from .mesh_embedding import embed_hull, embed_meshes
from .packed_arrays import PackedArrays, steps_of

# A pose takes 20 bytes (four 16-bit quaternion values, three 32-bit lengths), and about half of that in the page.
# Recordings beyond this budget are thinned to it; the viewer interpolates between the remaining frames.
POSE_BUDGET_BYTES = 1_900_000
BYTES_PER_POSE = 20
BYTES_PER_NODE = 14  # of the surface of a deformable body: three 32-bit lengths, and a 16-bit color
QUATERNION_STEPS = 32767
LENGTH_STEPS = 2**21

ARROW_KINDS = {  # how the page draws and explains each kind of arrow
    "contact": {"label": "Contact forces", "unit": "N", "color": "#e4572e", "heads": 1},
    "applied_force": {"label": "Applied forces", "unit": "N", "color": "#7b2d8e", "heads": 1},
    "applied_torque": {"label": "Applied torques", "unit": "N m", "color": "#0f8b8d", "heads": 2},
}


@dataclasses.dataclass(frozen=True)
class RecordedMotion:
    """Motion of one world over T frames: times (T,) in s, R_WB (T, nb, 3, 3), p_WBo (T, nb, 3) in m, world first.

    `mass_center` p_WScm (T, 3), the `arrows` of each kind of `ARROW_KINDS`, the `patches` of contact and the surfaces
    of `deformables` may be missing.
    """

    times: np.ndarray
    rotation: np.ndarray
    translation: np.ndarray
    num_given: int
    label: str | None = None
    mass_center: np.ndarray | None = None
    arrows: Mapping[str, Arrows] = dataclasses.field(default_factory=dict)
    patches: Patches | None = None
    deformables: SurfaceMotion | None = None


def animation_record(
    geometries: Sequence[Sequence[Geometry]],
    body_names: Sequence[str],
    parents: Sequence[int],
    motions: Sequence[RecordedMotion],
    title: str,
    *,
    touching: Sequence[Sequence[Geometry]] | None = None,
    ground: bool | float | str = "auto",
    sliders: JointSliders | None = None,
    surfaces: DeformableSurfaces | None = None,
    color_by: str | None = None,
) -> tuple[dict[str, Any], PackedArrays]:
    """The record of everything that the page shows, and its arrays, packed separately.

    `touching` are collision shapes that are drawn on request; `ground` is as in `animate`; `sliders` move joints;
    `surfaces` are those of deformable bodies, in colors by `color_by`.
    """
    packed = PackedArrays()
    meshes, bodies = _bodies(geometries, touching or [()] * len(body_names), body_names, parents, packed)
    record = {
        "format": 2,
        "title": title,
        "ground": ground,
        "bodies": bodies,
        "meshes": meshes,
        "worlds": [_world(motion, packed) for motion in motions],
        "arrows": [
            {**look, "worlds": [_arrows(motion, kind, packed) for motion in motions]}
            for kind, look in ARROW_KINDS.items()
            if any(kind in motion.arrows for motion in motions)
        ],
        "patches": _patches(motions, packed),
        "deformables": _deformables(surfaces, motions, color_by, packed),
        "sliders": (JointSliders([], np.zeros((0, 0))) if sliders is None else sliders).record(packed),
    }
    return record, packed


def frames_that_fit(num_worlds: int, num_frames: int, num_bodies: int, num_nodes: int = 0) -> np.ndarray:
    """Indices of evenly spread frames that fit the budget, including the first and the last."""
    affordable = POSE_BUDGET_BYTES // (num_worlds * (BYTES_PER_POSE * num_bodies + BYTES_PER_NODE * num_nodes))
    count = min(num_frames, max(2, affordable))
    return np.unique(np.round(np.linspace(0, num_frames - 1, count)).astype(int))


def _world(motion: RecordedMotion, packed: PackedArrays) -> dict[str, Any]:
    num_frames = len(motion.times)
    quaternion = quaternions_xyzw(motion.rotation)
    step = max(float(np.abs(motion.translation).max()), 1e-3) / LENGTH_STEPS
    center = motion.mass_center
    return {
        "label": motion.label,
        "num_frames": num_frames,
        "num_frames_given": motion.num_given,
        "times": packed.add(motion.times, "f8"),
        "quaternions_xyzw": packed.add(steps_of(quaternion, 1.0 / QUATERNION_STEPS), "i2", differences=2),
        "translations": packed.add(steps_of(motion.translation, step), "i4", differences=2),
        "mass_center": None if center is None else packed.add(steps_of(center, step), "i4", differences=2),
        "step": step,
    }


def _arrows(motion: RecordedMotion, kind: str, packed: PackedArrays) -> dict[str, Any] | None:
    return arrow_record(motion.arrows[kind], packed) if kind in motion.arrows else None


def _patches(motions: Sequence[RecordedMotion], packed: PackedArrays) -> dict[str, Any] | None:
    if all(motion.patches is None for motion in motions):
        return None
    return {"worlds": [None if each.patches is None else patch_record(each.patches, packed) for each in motions]}


def _deformables(
    surfaces: DeformableSurfaces | None, motions: Sequence[RecordedMotion], color_by: str | None, packed: PackedArrays
) -> dict[str, Any] | None:
    if surfaces is None:
        return None
    moved = [motion.deformables for motion in motions if motion.deformables is not None]
    return surfaces_record(surfaces, moved, color_by, packed)


def quaternions_xyzw(rotation: np.ndarray) -> np.ndarray:
    """Unit quaternions (T, nb, 4) of matrices (T, nb, 3, 3), with signs that keep them continuous over frames."""
    from scipy.spatial.transform import Rotation

    shape = rotation.shape[:-2]
    quaternion = Rotation.from_matrix(rotation.reshape(-1, 3, 3)).as_quat().reshape(*shape, 4)
    turns_over = np.sum(quaternion[1:] * quaternion[:-1], axis=-1) < 0.0
    sign = np.cumprod(np.where(turns_over, -1.0, 1.0), axis=0)
    quaternion[1:] *= sign[..., None]
    return quaternion


def _bodies(
    geometries: Sequence[Sequence[Geometry]],
    touching: Sequence[Sequence[Geometry]],
    body_names: Sequence[str],
    parents: Sequence[int],
    packed: PackedArrays,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    shapes = [geometry.shape for on_body in (*geometries, *touching) for geometry in on_body]
    meshes, skipped = embed_meshes([shape for shape in shapes if isinstance(shape, Mesh)], packed)
    _warn_about_skipped(skipped)
    hulls = {shape: embed_hull(shape, packed) for shape in dict.fromkeys(shapes) if isinstance(shape, Convex)}
    embedded: dict[Shape, dict[str, Any]] = {**meshes, **hulls}
    surfaces = {mesh: index for index, mesh in enumerate(embedded)}

    def records(on_body: Sequence[Geometry]) -> list[dict[str, Any]]:
        return [_geometry_record(geometry, surfaces) for geometry in on_body if geometry.shape not in skipped]

    bodies = [
        {"name": name, "parent": int(parent), "geometries": records(seen), "touching": records(touched)}
        for name, parent, seen, touched in zip(body_names, parents, geometries, touching, strict=True)
    ]
    return list(embedded.values()), bodies


def _warn_about_skipped(skipped: dict[Mesh, str]) -> None:
    if not skipped:
        return
    listed = [f"'{mesh.filename}' ({reason})" for mesh, reason in list(skipped.items())[:4]]
    more = f", and {len(skipped) - 4} more" if len(skipped) > 4 else ""
    warnings.warn(
        f"{len(skipped)} mesh(es) are not drawn: {', '.join(listed)}{more}. "
        "Their bodies are shown as frames and sticks; STL and OBJ files are drawn with "
        'pip install "mbjax[mesh]".',
        stacklevel=5,
    )


def _geometry_record(geometry: Geometry, surfaces: dict[Shape, int]) -> dict[str, Any]:
    return {
        "name": geometry.name,
        "quaternion_xyzw": quaternions_xyzw(np.array(geometry.rotation)[None, None])[0, 0].tolist(),
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
