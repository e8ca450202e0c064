"""Triangles with a colour at each corner as binary glTF, the only meshes of viser whose colours vary."""

from __future__ import annotations

import json
import struct

import numpy as np
from jaxtyping import Float

FLOAT32 = 5126  # glTF's number of the type


def binary_gltf(corners: Float[np.ndarray, "n 3 3"], colors: Float[np.ndarray, "n 3 3"]) -> bytes:
    """A file of triangles that are seen from both sides, with linear RGB colours that no light changes."""
    arrays = [np.ascontiguousarray(x, "<f4").reshape(-1, 3) for x in (corners, colors)]
    parts = [array.tobytes() for array in arrays]
    # Both parts are of the same length.
    views = [{"buffer": 0, "byteOffset": k * len(part), "byteLength": len(part)} for k, part in enumerate(parts)]
    accessors = [
        {"bufferView": k, "componentType": FLOAT32, "count": len(array), "type": "VEC3"}
        | {"min": array.min(axis=0).tolist(), "max": array.max(axis=0).tolist()}
        for k, array in enumerate(arrays)
    ]
    unlit = "KHR_materials_unlit"
    content = {
        "asset": {"version": "2.0"},
        "extensionsUsed": [unlit],
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0, "COLOR_0": 1}, "material": 0}]}],
        "materials": [{"doubleSided": True, "extensions": {unlit: {}}}],
        "buffers": [{"byteLength": sum(map(len, parts))}],
        "bufferViews": views,
        "accessors": accessors,
    }
    text = json.dumps(content, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    chunks = b"".join(
        struct.pack("<I4s", len(data), kind) + data for kind, data in ((b"JSON", text), (b"BIN\0", b"".join(parts)))
    )
    return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks
