"""Surfaces of deformable bodies in a viser scene: meshes whose vertices are sent anew wherever nodes have moved."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from mbjax.model import MultibodyModel

from ..deformable_surfaces import deformable_surfaces

COLOR = (196, 116, 92)


class DeformableMeshes:
    """The surface of each deformable body in each world: the first opaque, the others translucent."""

    def __init__(self, server: Any, model: MultibodyModel, ghost_opacity: float) -> None:
        self.server = server
        self.ghost_opacity = ghost_opacity
        self.surfaces = deformable_surfaces(model)
        self.worlds: list[list[Any]] = []  # of each world a scene node for each body

    def place(self, position: Float[np.ndarray, "worlds n 3"] | None) -> None:
        """Moves the surfaces to these positions of all nodes, and makes as many worlds as there are."""
        if self.surfaces is None or position is None:
            return
        for nodes in self.worlds[len(position) :]:
            for node in nodes:
                node.remove()
        self.worlds = self.worlds[: len(position)]
        on_surface = position[:, self.surfaces.nodes].astype(np.float32)
        for world, points in enumerate(on_surface):
            if world == len(self.worlds):
                self.worlds.append(self._added(world, points))
                continue
            for body, node in zip(self.surfaces.bodies, self.worlds[world], strict=True):
                vertices = points[body.vertices]
                if not np.array_equal(node.vertices, vertices):
                    node.vertices = vertices

    def _added(self, world: int, points: Float[np.ndarray, "k 3"]) -> list[Any]:
        assert self.surfaces is not None
        return [
            self.server.scene.add_mesh_simple(
                f"/deformable/{world}/{i} {body.name}".replace("::", " "), points[body.vertices],
                body.triangles.astype(np.uint32), color=COLOR, opacity=self.ghost_opacity if world else None,
                flat_shading=False, side="double", cast_shadow=world == 0, receive_shadow=world == 0,
            )
            for i, body in enumerate(self.surfaces.bodies)
        ]  # fmt: skip
