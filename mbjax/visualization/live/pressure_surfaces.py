"""Surfaces of hydroelastic contact in a viser scene, coloured by pressure as on the page of an animation."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from mbjax.contact import ContactResults
from mbjax.model import MultibodyModel

from ..contact_patches import Patches
from .colored_triangles import binary_gltf

SCALE_COLORS = "#440154", "#3b528b", "#21918c", "#5ec962", "#fde725"  # those of viewer/patches.js
CLEARANCE = 5e-4  # of the scene's size, from a plane in which a surface may lie


class PressureSurfaces:
    """The contact surfaces of a state: purple at no pressure, yellow at the largest since `forget`."""

    def __init__(self, server: Any, size: float) -> None:
        self.server = server
        self.size = size
        self.node: Any = None
        self.largest = 0.0  # Pa

    @property
    def is_drawn(self) -> bool:
        """Whether there is a surface to be seen."""
        return self.node is not None and self.node.visible

    def draw(self, patches: Patches | None) -> None:
        """Draws these triangles instead of those so far; None draws nothing."""
        if patches is None or len(patches.frames) == 0:
            if self.node is not None:
                self.node.visible = False
            return
        pressures = np.maximum(patches.pressures, 0.0)  # negative within a margin
        self.largest = max(self.largest, float(pressures.max()))
        colors = colors_of(pressures / max(self.largest, 1e-30))
        corners = on_both_sides(patches.corners, CLEARANCE * self.size)
        data = binary_gltf(corners, np.concatenate([colors, colors]))
        if self.node is None:
            self.node = self.server.scene.add_glb("/contact pressure", data, cast_shadow=False, receive_shadow=False)
        self.node.glb_data, self.node.visible = data, True

    def forget(self) -> None:
        """Begins a new motion, with a largest pressure of its own."""
        self.largest = 0.0


def bodies_that_press(model: MultibodyModel, results: ContactResults) -> frozenset[int]:
    """The bodies at surfaces that have a face, in any of the results' frames."""
    contact = model.layout.contact
    return frozenset(
        contact.geometries[side].body
        for each in results.surfaces
        if np.any(each.surface.active)
        for side in contact.pairs[each.pair_index]
    )


def on_both_sides(corners: Float[np.ndarray, "n 3 3"], distance: float) -> Float[np.ndarray, "m 3 3"]:
    """Each triangle twice, this far in m above and below its plane: a plane drawn between them hides one of the two."""
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    offset = (distance * normal / np.where(length > 0.0, length, 1.0))[:, None]
    return np.concatenate([corners + offset, corners - offset])


def colors_of(shares: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n 3"]:
    """Linear RGB colours of shares between 0 and 1 of the largest pressure."""
    stops = np.array([[int(color[k : k + 2], 16) for k in (1, 3, 5)] for color in SCALE_COLORS]) / 255.0
    linear = np.where(stops <= 0.04045, stops / 12.92, ((stops + 0.055) / 1.055) ** 2.4)
    places = np.linspace(0.0, 1.0, len(stops))
    return np.stack([np.interp(shares, places, channel) for channel in linear.T], axis=-1)
