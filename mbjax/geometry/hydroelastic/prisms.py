"""Prisms, pyramids and rings of vertices, which the meshes of round shapes are put together from."""

import numpy as np
from jaxtyping import Float, Int

Vertices = Int[np.ndarray, " n"] | int


def split_prisms(a: Vertices, b: Vertices, c: Vertices, d: Vertices, e: Vertices, f: Vertices) -> np.ndarray:
    """Three tetrahedra (3 n, 4) for each prism with the ends a b c and d e f, around the diagonal from a to f."""
    return stacked((d, e, a, f), (e, b, a, f), (b, c, a, f))


def split_pyramids(a: Vertices, b: Vertices, c: Vertices, d: Vertices, apex: Vertices) -> np.ndarray:
    """Two tetrahedra (2 n, 4) for each pyramid on the quadrilateral a b c d, which the diagonal from a to c splits."""
    return stacked((d, apex, a, c), (apex, b, a, c))


def stacked(*tetrahedra: tuple[Vertices, Vertices, Vertices, Vertices]) -> np.ndarray:
    """Tetrahedra (n, 4) of corners that are single vertices or arrays of them."""
    return np.concatenate([np.stack(np.broadcast_arrays(*corners), axis=-1).reshape(-1, 4) for corners in tetrahedra])


def circle(count: int) -> Float[np.ndarray, "count 3"]:
    """Points on the unit circle about z, in equal steps from the x axis."""
    angle = 2.0 * np.pi / count * np.arange(count)
    return np.stack([np.cos(angle), np.sin(angle), np.zeros(count)], axis=1)
