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
            return mesh_of(compiled, geom)
    element, name = compiled.element("geom", geom), compiled.names["geom"][geom]
    kind = str(G(m.geom_type[geom]).name).removeprefix("mjGEOM_").lower()
    notes.unsupported(element, f"geom '{name}': shapes of type {kind} are neither drawn nor touched")
    return None


def mesh_of(compiled: Compiled, geom: int) -> Mesh:
    """The file of a mesh, with the scale the file gives it."""
    m, index = compiled.m, int(compiled.m.geom_dataid[geom])
    name = compiled.names["mesh"][index]
    file = mesh_file(m, index)
    if not file or name in compiled.missing:
        return Mesh(file or name, None)
    folder = os.path.dirname(os.path.abspath(compiled.file))
    candidates = (os.path.join(folder, file), os.path.join(folder, compiled.spec.meshdir or "", file))
    path = next((os.path.normpath(c) for c in candidates if os.path.isfile(c)), None)
    x, y, z = (float(scale) for scale in m.mesh_scale[index])
    return Mesh(file, path, (x, y, z))


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
    rotation: Any = tuple(map(tuple, X_BG[:3, :3].tolist()))
    translation: Any = tuple(X_BG[:3, 3].tolist())
    return Geometry(name, shape, rotation, translation, rgba)


def hull_shape(compiled: Compiled, geom: int, shape: Shape, notes: LoadNotes) -> Shape:
    """The convex hull of a mesh, of MuJoCo's vertices; other shapes as they are."""
    if not isinstance(shape, Mesh) or shape.path is None:
        return shape
    m, index = compiled.m, int(compiled.m.geom_dataid[geom])
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
