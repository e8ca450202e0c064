"""Geoms of the compiled model → visual and collision shapes."""

import os
from typing import Any

import numpy as np

from mbjax.errors import ParseError
from mbjax.geometry import (
    Box,
    Capsule,
    Convex,
    Cylinder,
    Ellipsoid,
    Geometry,
    HalfSpace,
    Mesh,
    ProximityProperties,
    Shape,
    Sphere,
)
from mbjax.geometry.mesh_hull import MAX_VERTICES, describe_cut, hull_of_points
from mbjax.model import IGNORED, USED

from ..notes.load_notes import LoadNotes
from ..records.poses import pose
from ..records.robot_records import CollisionRecord, LinkRecord, RobotRecord
from .compiled import Compiled
from .read_bodies import any_of
from .read_pairs import Touching, touching_pairs

LAST_GROUP_DRAWN = 2  # as MuJoCo's viewer does at first
DEFAULT_RGBA = (0.5, 0.5, 0.5, 1.0)
NEGLIGIBLE_SHEAR = 1e-9


def read_geoms(compiled: Compiled, robot: RobotRecord, notes: LoadNotes, hulls: bool) -> None:
    """Shapes of all links, and which pairs of them may touch."""
    m, links = compiled.m, {link.name: link for link in robot.links}
    touching = touching_pairs(compiled)
    hidden: list[str] = []
    qualified: dict[int, str] = {}
    for geom in range(m.ngeom):
        name, link = compiled.names["geom"][geom], links[compiled.names["body"][m.geom_bodyid[geom]]]
        element = compiled.element("geom", geom)
        try:
            is_drawn, is_touched = read_geom(compiled, geom, link, touching, notes, hulls)
        except ParseError:
            raise
        except ValueError as error:  # of a shape or of its friction: it says what is wrong
            raise element.error(f"geom '{name}': {error}") from None
        if not is_drawn:
            hidden.append(name)
        if is_touched:
            qualified[geom] = f"{link.name}::{name}"
    if hidden:
        shown = ", ".join(hidden[:6]) + (", …" if len(hidden) > 6 else "")
        notes.add(IGNORED, "<geom group>", f"groups above 2 are not drawn, as in MuJoCo's viewer: {shown}", notes.file)
    keep_only_touching(robot, touching, qualified)


def read_geom(
    compiled: Compiled, geom: int, link: LinkRecord, touching: Touching, notes: LoadNotes, hulls: bool
) -> tuple[bool, bool]:
    """Adds one shape to its link; whether it is drawn, and whether it takes part in contact."""
    m, name = compiled.m, compiled.names["geom"][geom]
    shape = read_shape(compiled, geom, notes)
    if shape is None:
        return True, False
    is_drawn, is_touched = m.geom_group[geom] <= LAST_GROUP_DRAWN, geom in touching.taking_part
    if is_drawn:
        link.visual.append(placed(compiled, geom, name, shape, rgba_of(m, geom)))
    if is_touched:
        touch = hull_shape(compiled, geom, shape, notes) if hulls else shape
        properties = ProximityProperties(friction_of(compiled, geom, touching))
        place = compiled.element("geom", geom).place
        link.collision.append(CollisionRecord(place, placed(compiled, geom, name, touch, None), properties))
    return is_drawn, is_touched


def keep_only_touching(robot: RobotRecord, touching: Touching, qualified: dict[int, str]) -> None:
    """All other pairs of geometries of the file are filtered."""
    geoms = sorted(qualified)
    robot.lists_contacts = True
    robot.filtered_pairs = [
        (qualified[a], qualified[b])
        for i, a in enumerate(geoms)
        for b in geoms[i + 1 :]
        if (a, b) not in touching.pairs
    ]


def read_shape(compiled: Compiled, geom: int, notes: LoadNotes) -> Shape | None:
    """The shape; None, refused or noted, where mbjax has none like it."""
    m, G = compiled.m, compiled.mujoco.mjtGeom
    for what in ("adhesion", "surfacevel"):
        if any_of(m, f"geom_{what}", geom):
            element, name = compiled.element("geom", geom), compiled.names["geom"][geom]
            notes.unsupported(element, f"geom '{name}': {what} is not simulated")
    size = [float(x) for x in m.geom_size[geom]]
    match G(m.geom_type[geom]):
        case G.mjGEOM_PLANE:
            return HalfSpace()
        case G.mjGEOM_SPHERE:
            return Sphere(size[0])
        case G.mjGEOM_CAPSULE:
            return Capsule(size[0], 2.0 * size[1])
        case G.mjGEOM_CYLINDER:
            return Cylinder(size[0], 2.0 * size[1])
        case G.mjGEOM_ELLIPSOID:
            return Ellipsoid(*size)
        case G.mjGEOM_BOX:
            return Box((2.0 * size[0], 2.0 * size[1], 2.0 * size[2]))
        case G.mjGEOM_MESH:
            return mesh_of(compiled, geom, notes)
    element, name = compiled.element("geom", geom), compiled.names["geom"][geom]
    kind = str(G(m.geom_type[geom]).name).removeprefix("mjGEOM_").lower()
    notes.unsupported(element, f"geom '{name}': shapes of type {kind} are neither drawn nor touched")
    return None


def mesh_of(compiled: Compiled, geom: int, notes: LoadNotes) -> Mesh:
    """The file of a mesh, with its scale; without a path where its vertices are not those of a file."""
    m, index = compiled.m, int(compiled.m.geom_dataid[geom])
    name = compiled.names["mesh"][index]
    file = mesh_file(m, index)
    if not file or name in compiled.missing:
        return Mesh(file or name, None)
    folder = os.path.dirname(os.path.abspath(compiled.file))
    candidates = (os.path.join(folder, file), os.path.join(folder, compiled.spec.meshdir or "", file))
    path = next((os.path.normpath(c) for c in candidates if os.path.isfile(c)), None)
    found = reference_of(compiled, index)
    if found is None:
        what = "its refquat and its scale together shear it, and a sheared mesh is not drawn; scale its file instead"
        notes.add(IGNORED, f"mesh '{file}'", what, compiled.element("geom", geom).place)
        return Mesh(file, None)
    x, y, z = found[1].tolist()
    return Mesh(file, path, (x, y, z))


def reference_of(compiled: Compiled, index: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Pose (4, 4) and scale (3,) that make MuJoCo's vertices of those in a mesh's file; None where that takes a shear.

    MuJoCo turns a vertex v of the file into diag(scale) R^T (v - refpos), R the rotation of refquat. That is a scaling
    followed by a rotation where R diag(scale)^2 R^T is diagonal: for equal scales, or where R exchanges axes only.
    """
    mesh, scale = compiled.spec.meshes[index], np.array(compiled.m.mesh_scale[index], float)
    R, refpos = pose(mesh.refquat, np.zeros(3))[:3, :3], np.array(mesh.refpos, float)
    A, X = scale[:, None] * R.T, np.eye(4)
    if not np.array_equal(R, np.eye(3)):
        squares = A.T @ A
        if np.abs(squares - np.diag(np.diag(squares))).max() > NEGLIGIBLE_SHEAR * squares.max():
            return None
        scale = np.copysign(np.sqrt(np.diag(squares)), np.prod(scale))
        X[:3, :3] = A / scale
    X[:3, 3] = -A @ refpos
    return X, scale


def mesh_file(m: Any, index: int) -> str:
    """What the compiled model says its file is; empty where it has none."""
    at = int(m.mesh_pathadr[index])
    return "" if at < 0 else bytes(m.paths[at:]).split(b"\0", 1)[0].decode("utf-8", "replace")


def placed(compiled: Compiled, geom: int, name: str, shape: Shape, rgba: Any) -> Geometry:
    """The shape at its place in the body."""
    m = compiled.m
    X_BG = pose(m.geom_quat[geom], m.geom_pos[geom])
    if isinstance(shape, Mesh):  # MuJoCo moves the vertices of a mesh into a frame of its own
        index = int(m.geom_dataid[geom])
        X_BG = X_BG @ np.linalg.inv(pose(m.mesh_quat[index], m.mesh_pos[index]))
        found = reference_of(compiled, index)
        X_BG = X_BG if found is None else X_BG @ found[0]
    rotation: Any = tuple(map(tuple, X_BG[:3, :3].tolist()))
    translation: Any = tuple(X_BG[:3, 3].tolist())
    return Geometry(name, shape, rotation, translation, rgba)


def hull_shape(compiled: Compiled, geom: int, shape: Shape, notes: LoadNotes) -> Shape:
    """The convex hull of a mesh, of MuJoCo's vertices; other shapes, and meshes that are missing, as they are."""
    m, index = compiled.m, int(compiled.m.geom_dataid[geom])
    if not isinstance(shape, Mesh) or compiled.names["mesh"][index] in compiled.missing:
        return shape
    start, element = m.mesh_vertadr[index], compiled.element("geom", geom)
    try:
        points = np.asarray(m.mesh_vert[start : start + m.mesh_vertnum[index]], float)
        hull = hull_of_points(points, shape.filename, MAX_VERTICES)
    except (ValueError, ImportError) as error:
        raise element.error(str(error)) from None
    cut = f"; {describe_cut(hull)}" if hull.num_left_out else ""
    message = "the convex hull stands for the mesh in contact" + cut
    notes.add(USED, f"mesh '{shape.filename}'", message, element.place)
    missing = MAX_VERTICES - len(hull.vertices)
    vertices = np.concatenate([hull.vertices, np.tile(hull.vertices[-1:], (missing, 1))])
    return Convex(tuple(map(tuple, vertices.tolist())))


def rgba_of(m: Any, geom: int) -> tuple[float, ...] | None:
    """The geom's own color, else its material's; None for MuJoCo's default."""
    rgba = tuple(round(float(x), 6) for x in m.geom_rgba[geom])
    if rgba == DEFAULT_RGBA:
        if m.geom_matid[geom] < 0:
            return None
        rgba = tuple(float(x) for x in m.mat_rgba[m.geom_matid[geom]])
    return tuple(min(1.0, max(0.0, x)) for x in rgba)


def friction_of(compiled: Compiled, geom: int, touching: Touching) -> float:
    """The sliding coefficient; zero where all its contacts are frictionless (condim 1)."""
    return 0.0 if geom in touching.frictionless else float(compiled.m.geom_friction[geom, 0])
