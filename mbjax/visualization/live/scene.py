"""Draws a model's bodies in a viser scene: one opaque world, and translucent ones over it."""

from __future__ import annotations

import colorsys
import warnings
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from mbjax.geometry import Geometry, HalfSpace, Shape
from mbjax.model import MultibodyModel

from ..animate import body_parents
from ..animation_data import quaternions_xyzw
from ..drawn_shapes import drawn_shapes
from ..mesh_embedding import TOTAL_FACES
from .deformable_meshes import DeformableMeshes
from .triangles import GROUND_SIZE, Triangles, triangles_of

GHOST_OPACITY = 0.28
SEEN_THROUGH = 0.45  # the opacity of bodies with a contact surface inside
BARE_SIZE = 0.02  # m, radius of the ball that stands for a body without shapes
Rgb = tuple[int, int, int]


class LiveScene:
    """The bodies of one model in a viser scene; `place` moves them, `grasped` says which of them may be dragged."""

    def __init__(self, server: Any, model: MultibodyModel) -> None:
        self.server = server
        self.model = model
        self.shapes = drawn_shapes(model, collision_shapes=False).seen
        self.surfaces = _surfaces(self.shapes)
        self.parents = body_parents(model)
        self.handles: list[Any] = []
        self.grips: list[tuple[int, Any]] = []  # body and the scene node by which it can be dragged
        self.ghosts: list[tuple[int, np.ndarray, np.ndarray, Any]] = []  # body, R_BG, p_BoGo_B, node
        self.num_worlds = 1
        self.solid: list[tuple[int, Any, float | None]] = []  # body, mesh and its opacity
        self.sticks: Any = None
        self.deformables = DeformableMeshes(server, model, GHOST_OPACITY)
        self._add_opaque_world()

    def _add_opaque_world(self) -> None:
        scene = self.server.scene
        for body, name in enumerate(self.model.body_names):
            place = f"/robot/{body} {name}".replace("::", " ")
            self.handles.append(scene.add_frame(place, show_axes=False))
            drawn = 0
            for k, geometry in enumerate(self.shapes[body]):
                if isinstance(geometry.shape, HalfSpace):
                    self._add_ground(f"{place}/{k}", geometry)
                    drawn += 1
                    continue
                surface = self.surfaces.get(geometry.shape)
                if surface is None:
                    continue
                node = self._add_mesh(f"{place}/{k}", surface, geometry, _color(geometry, body, self.model.num_bodies))
                drawn += 1
                if body > 0:
                    self.grips.append((body, node))
                    self.solid.append((body, node, node.opacity))
            if drawn == 0 and body > 0:
                node = scene.add_icosphere(f"{place}/origin", radius=BARE_SIZE, color=(123, 135, 148))
                self.grips.append((body, node))
        if not any(isinstance(geometry.shape, HalfSpace) for on_body in self.shapes for geometry in on_body):
            scene.add_grid(
                "/ground", width=10.0, height=10.0, cell_color=(220, 224, 230), section_color=(200, 206, 214)
            )

    def _add_ground(self, name: str, geometry: Geometry) -> None:
        """A half-space: a plane with lines every half metre that fades into the distance, and takes shadows."""
        self.server.scene.add_grid(
            name, plane="xy", infinite_grid=True, fade_distance=GROUND_SIZE, shadow_opacity=0.35,
            plane_color=_color(geometry, 0, self.model.num_bodies), plane_opacity=1.0,
            cell_color=(222, 226, 232), section_color=(190, 198, 209),
            wxyz=quaternions_wxyz(np.array(geometry.rotation)), position=np.array(geometry.translation),
        )  # fmt: skip

    def _add_mesh(self, name: str, surface: Triangles, geometry: Geometry, color: Rgb) -> Any:
        opacity = geometry.rgba[3] if geometry.rgba is not None and geometry.rgba[3] < 1.0 else None
        wxyz = quaternions_wxyz(np.array(geometry.rotation))
        return self.server.scene.add_mesh_simple(
            name, surface.vertices, surface.faces, color=color, opacity=opacity, flat_shading=True,
            wxyz=wxyz, position=np.array(geometry.translation), side="double",
        )  # fmt: skip

    def see_through(self, bodies: Collection[int]) -> None:
        """Makes these bodies of the opaque world translucent, and no others."""
        for body, node, own in self.solid:
            opacity = min(SEEN_THROUGH, 1.0 if own is None else own) if body in bodies else own
            if node.opacity != opacity:
                node.opacity = opacity

    def set_num_worlds(self, num_worlds: int) -> None:
        """Makes as many translucent worlds as are needed beside the opaque one."""
        if num_worlds == self.num_worlds:
            return
        for *_, node in self.ghosts:
            node.remove()
        self.ghosts = []
        self.num_worlds = num_worlds
        count = num_worlds - 1
        if count == 0:
            return
        for body in range(1, self.model.num_bodies):
            for k, geometry in enumerate(self.shapes[body]):
                surface = self.surfaces.get(geometry.shape)
                if surface is None:
                    continue
                node = self.server.scene.add_batched_meshes_simple(
                    f"/ghosts/{body}/{k}", surface.vertices, surface.faces,
                    batched_wxyzs=np.tile([1.0, 0.0, 0.0, 0.0], (count, 1)), batched_positions=np.zeros((count, 3)),
                    batched_colors=_color(geometry, body, self.model.num_bodies), opacity=GHOST_OPACITY,
                    cast_shadow=False, receive_shadow=False, flat_shading=True, lod="off",
                )  # fmt: skip
                self.ghosts.append((body, np.array(geometry.rotation), np.array(geometry.translation), node))

    def place(self, rotation: np.ndarray, translation: np.ndarray, nodes: np.ndarray | None = None) -> None:
        """Moves everything to poses R_WB (worlds, nb, 3, 3), p_WBo (worlds, nb, 3), and `nodes` (worlds, n, 3)."""
        self.set_num_worlds(len(rotation))
        wxyz = quaternions_wxyz(rotation[0])
        for body, handle in enumerate(self.handles):
            handle.wxyz = wxyz[body]
            handle.position = translation[0, body]
        for body, R_BG, p_BoGo_B, node in self.ghosts:
            node.batched_wxyzs = quaternions_wxyz(rotation[1:, body] @ R_BG)
            node.batched_positions = translation[1:, body] + rotation[1:, body] @ p_BoGo_B
        self._place_sticks(translation[0])
        self.deformables.place(nodes)

    def _place_sticks(self, translation: np.ndarray) -> None:
        """Lines from bodies without shapes to their parents."""
        bare = [not on_body for on_body in self.shapes]
        ends = [(p, b) for b, p in enumerate(self.parents) if p > 0 and (bare[b] or bare[p])]
        if not ends:
            return
        points = translation[np.array(ends)]
        if self.sticks is None:
            self.sticks = self.server.scene.add_line_segments(
                "/sticks", points, (123, 135, 148), thickness=4.0, thickness_units="screen"
            )
        else:
            self.sticks.points = points.astype(np.float32)

    def on_drag(self, callback: Callable[[int, Any], None]) -> None:
        """Calls `callback(body, event)` while a body is dragged with the left button."""
        for body, node in self.grips:
            node.on_drag("left")(lambda event, body=body: callback(body, event))

    def size(self, places: np.ndarray) -> float:
        """Diagonal in m of the box around places p_WQ (n, 3) of bodies and nodes, with the sizes of bodies' shapes."""
        reach = [
            np.abs(self.surfaces[g.shape].vertices).max()
            for on_body in self.shapes[1:] for g in on_body
            if g.shape in self.surfaces and not isinstance(g.shape, HalfSpace)
        ]  # fmt: skip
        spread = float(np.linalg.norm(np.ptp(places, axis=0)))
        return max(spread + 2.0 * float(max(reach, default=0.0)), 0.1)


def _surfaces(shapes: list[list[Geometry]]) -> dict[Shape, Triangles]:
    """Triangles of each different shape; meshes that cannot be read are left out, in one warning."""
    different = list(dict.fromkeys(geometry.shape for on_body in shapes for geometry in on_body))
    share = max(200, TOTAL_FACES // max(len(different), 1))
    made = {shape: triangles_of(shape, share) for shape in different}
    skipped = [f"'{getattr(shape, 'filename', shape)}' ({why})" for shape, why in made.items() if isinstance(why, str)]
    if skipped:
        warnings.warn(f"Viewer: {len(skipped)} mesh(es) are not drawn: {', '.join(skipped[:4])}.", stacklevel=4)
    return {shape: surface for shape, surface in made.items() if isinstance(surface, Triangles)}


def _color(geometry: Geometry, body: int, count: int) -> Rgb:
    if geometry.rgba is not None:
        red, green, blue = (round(255 * value) for value in geometry.rgba[:3])
        return red, green, blue
    if isinstance(geometry.shape, HalfSpace):
        return 226, 230, 236
    hue = (0.58 + 0.62 * max(body - 1, 0) / max(count - 1, 1)) % 1.0
    red, green, blue = (round(255 * value) for value in colorsys.hls_to_rgb(hue, 0.58, 0.45))
    return red, green, blue


def quaternions_wxyz(rotation: np.ndarray) -> np.ndarray:
    """Quaternions (w, x, y, z) of rotation matrices (..., 3, 3)."""
    flat = rotation.reshape(1, -1, 3, 3)
    return np.roll(quaternions_xyzw(flat)[0], 1, axis=-1).reshape(*rotation.shape[:-2], 4)
