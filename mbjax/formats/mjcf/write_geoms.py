"""Shapes as geoms: what is seen, what touches, and meshes as assets."""

from pathlib import Path
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
    ProximityProperties,
    Sphere,
)

from ..notes.write_notes import WriteNotes
from ..records.contact_shapes import unique_name
from ..records.mesh_files import MeshFiles
from ..records.numbers import pose_matrix, quaternion_of
from ..records.robot_records import LinkRecord
from ..xml.text import Element, add

MESHES_OF_MUJOCO = (".stl", ".obj", ".msh")
NOT_TOUCHING: dict[str, Any] = {"contype": 0, "conaffinity": 0}
LARGEST_STL = 200_000  # triangles
SEEN_ALONE, TOUCHING_ALONE = 1, 3  # groups: MuJoCo's viewer shows 0 to 2
OF_SHAPES = ("point_stiffness", "hunt_crossley_dissipation", "relaxation_time", "hydroelastic")


def pose_attributes(X: np.ndarray) -> dict[str, Any]:
    """pos and quat, those that say something."""
    found: dict[str, Any] = {}
    if np.any(X[:3, 3] != 0.0):
        found["pos"] = X[:3, 3]
    if not np.array_equal(X[:3, :3], np.eye(3)):
        found["quat"] = quaternion_of(X[:3, :3])
    return found


class Geoms:
    """Writes the shapes of links; `names` has the name of each geom that touches, by link and shape."""

    def __init__(self, assets: Element, meshes: MeshFiles, has_contact: bool, notes: WriteNotes):
        self.assets, self.meshes, self.has_contact, self.notes = assets, meshes, has_contact, notes
        self.names: dict[tuple[str, str], str] = {}
        self._taken: dict[str, int] = {}
        self._mesh_names: dict[str, int] = {}
        self._known_meshes: dict[Any, str] = {}

    def add_shapes(self, body: Element, link: LinkRecord) -> None:
        """A shape that is seen and touches at the same place is one geom."""
        touching = {record.geometry.name: record for record in link.collision}
        for geometry in link.visual:
            record = touching.get(geometry.name)
            if record is not None and is_same(geometry, record.geometry):
                del touching[geometry.name]
                attributes = self._of_contact(record.properties, geometry, link)
                self._add(body, link, geometry, attributes, geometry.rgba, touches=True)
            else:
                self._add(body, link, geometry, {**NOT_TOUCHING, "group": SEEN_ALONE}, geometry.rgba, touches=False)
        for record in touching.values():
            attributes = {"group": TOUCHING_ALONE, **self._of_contact(record.properties, record.geometry, link)}
            self._add(body, link, record.geometry, attributes, None, touches=True)

    def _add(
        self, body: Element, link: LinkRecord, geometry: Geometry, attributes: Any, rgba: Any, *, touches: bool
    ) -> None:
        shape = self._shape(geometry, link.name, touches)
        if shape is None:
            return
        name = geometry.name if geometry.name not in self._taken else f"{link.name}_{geometry.name}"
        name = unique_name(name, self._taken)
        if touches:
            self.names[link.name, geometry.name] = name
        pose = pose_attributes(pose_matrix(geometry.rotation, geometry.translation))
        add(body, "geom", name=name, **shape, **pose, rgba=rgba, **attributes)

    def _of_contact(self, properties: ProximityProperties, geometry: Geometry, link: LinkRecord) -> dict[str, Any]:
        """Friction; what else contact has here is not MuJoCo's."""
        static, dynamic = properties.friction
        label = f"shape '{geometry.name}' of '{link.name}'"
        refuse = self.notes.unsupported if self.has_contact else self.notes.ignored
        if static != dynamic:
            refuse(label, f"static friction {static:g} and dynamic friction {dynamic:g}: MuJoCo has one coefficient")
        for what in OF_SHAPES:
            if getattr(properties, what) is not None:
                named = "hydroelastic properties are" if what == "hydroelastic" else f"{what} is"
                refuse(label, f"its {named} not MuJoCo's, whose contact is soft in another way")
        return {"friction": (dynamic, 0.005, 0.0001), **({"condim": 1} if dynamic == 0.0 else {})}

    def _shape(self, geometry: Geometry, link_name: str, touches: bool) -> dict[str, Any] | None:
        match geometry.shape:
            case Box(size):
                return {"type": "box", "size": 0.5 * np.array(size)}
            case Sphere(radius):
                return {"type": "sphere", "size": radius}
            case Cylinder(radius, length):
                return {"type": "cylinder", "size": (radius, 0.5 * length)}
            case Capsule(radius, length):
                return {"type": "capsule", "size": (radius, 0.5 * length)}
            case Ellipsoid(a, b, c):
                return {"type": "ellipsoid", "size": (a, b, c)}
            case HalfSpace():
                return {"type": "plane", "size": (0.0, 0.0, 1.0)}
            case Convex() as hull:
                return {"type": "mesh", "mesh": self._hull(f"{link_name}_{geometry.name}", hull)}
            case Mesh() as mesh:
                name = self._mesh(mesh, touches)
                return None if name is None else {"type": "mesh", "mesh": name}

    def _mesh(self, mesh: Mesh, touches: bool) -> str | None:
        """The name of a mesh's asset; None where MuJoCo cannot read its file."""
        key, label = (mesh.path, mesh.scale), f"mesh '{mesh.filename}'"
        if key in self._known_meshes:
            return self._known_meshes[key]
        path = self.meshes.path_of(mesh)
        if path is None or mesh.path is None or not is_read_by_mujoco(Path(mesh.path)):
            why = "it has no file" if path is None else f"MuJoCo reads {', '.join(MESHES_OF_MUJOCO)}, if binary, alone"
            self.notes.ignored(label, f"{why}; the shape is not in the file")
            return None
        if touches:
            self.notes.ignored(label, "a mesh touches nothing here, and in MuJoCo with its convex hull")
        name = unique_name(Path(path).stem, self._mesh_names)
        scale = None if mesh.scale == (1.0, 1.0, 1.0) else mesh.scale
        add(self.assets, "mesh", name=name, file=path, scale=scale, inertia="shell")
        self._known_meshes[key] = name
        return name

    def _hull(self, name: str, hull: Convex) -> str:
        """The asset of a convex hull: its vertices, or its file where a folder was given."""
        if hull.vertices in self._known_meshes:
            return self._known_meshes[hull.vertices]
        file, name = self.meshes.write_hull(name, hull), unique_name(name, self._mesh_names)
        if file is None:
            add(self.assets, "mesh", name=name, vertex=np.unique(np.array(hull.vertices), axis=0))
            what = "its vertices, which only MuJoCo reads; with mesh_folder= it is a file"
            self.notes.ignored(f"hull '{name}'", what)
        else:
            add(self.assets, "mesh", name=name, file=file)
            self.notes.repaired(f"hull '{name}'", 'a mesh file; load it with meshes="hull"')
        self._known_meshes[hull.vertices] = name
        return name


def is_read_by_mujoco(path: Path) -> bool:
    """Whether MuJoCo has a reader for a mesh file: of STL files for binary ones with up to 200000 triangles."""
    kind = path.suffix.lower()
    if kind != ".stl":
        return kind in MESHES_OF_MUJOCO
    with path.open("rb") as file:
        count = int.from_bytes(file.read(84)[80:84], "little")
    return 0 < count <= LARGEST_STL and path.stat().st_size == 84 + 50 * count


def is_same(one: Geometry, other: Geometry) -> bool:
    """Whether two shapes are one and the same but for rounding and color."""
    places = [(*np.ravel(g.rotation), *g.translation) for g in (one, other)]
    return one.shape == other.shape and bool(np.allclose(*places, rtol=0.0, atol=1e-14))
