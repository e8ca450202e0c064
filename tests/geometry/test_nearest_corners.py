"""Which vertices are tried where several are equally far: those where another point is nearest."""

import jax.numpy as jnp
import numpy as np
import pytest

from mbjax.geometry.signed_distance.nearest_corners import nearest_corners

from ..gradients.checks import compiled
from .polyhedra import random_rotations

COUNT = 400


def distance_of_segment(point: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """From a point, row by row."""
    along = end - start
    t = np.clip(np.sum((point - start) * along, 1) / np.sum(along * along, 1), 0.0, 1.0)
    return np.linalg.norm(start + t[:, None] * along - point, axis=1)


@pytest.mark.parametrize("corners", [2, 3, 4], ids=["an edge", "a triangle", "a rectangle"])
def test_the_nearest_edge_of_a_level_face_comes_first(corners: int) -> None:
    """Beside the face the first vertex, or the line to the second, is where it is nearest; the third is on it too."""
    rng = np.random.default_rng(corners)
    xy = rng.normal(size=(COUNT, corners, 2)) * [1.0, 0.3]
    if corners == 4:
        half = rng.uniform(0.1, 1.0, (COUNT, 1, 2))
        xy = half * np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    below = np.concatenate([rng.normal(size=(COUNT, 3, 2)), rng.uniform(-0.6, -0.1, (COUNT, 3, 1))], axis=2)
    level = np.concatenate([xy, np.zeros((COUNT, corners, 1))], axis=2)
    order = rng.permuted(np.tile(np.arange(corners + 3), (COUNT, 1)), axis=1)
    vertices = np.take_along_axis(np.concatenate([level, below], axis=1), order[:, :, None], axis=1)
    point = np.concatenate([3.0 * rng.normal(size=(COUNT, 2)), np.full((COUNT, 1), 0.7)], axis=1)
    R = random_rotations(COUNT, 3)
    turned = [np.einsum("kij,k...j->k...i", R, x) for x in (vertices, np.tile([0.0, 0.0, 1.0], (COUNT, 1)), point)]
    near = np.asarray(compiled(nearest_corners)(*(jnp.asarray(np.moveaxis(x, (0, -1), (-1, 0))) for x in turned))).T

    point[:, 2] = 0.0
    place = np.take_along_axis(order, near, axis=1)  # numbers below `corners` are level
    first, second = (level[np.arange(COUNT), np.minimum(place[:, k], corners - 1)] for k in range(2))
    edges = [(i, (i + 1) % corners) for i in range(corners)]
    nearest = np.min([distance_of_segment(point, level[:, i], level[:, k]) for i, k in edges], axis=0)
    if corners == 2:
        assert (place[:, :2] < corners).all()
        ends = np.linalg.norm(first - point, axis=1) <= np.linalg.norm(second - point, axis=1)
        assert ends.all()
        return
    assert (place < corners).all()
    sides = np.stack([np.cross(level[:, k] - level[:, i], point - level[:, i])[:, 2] for i, k in edges])
    is_beside = ~((sides > 0.0).all(axis=0) | (sides < 0.0).all(axis=0))
    assert is_beside.sum() > COUNT // 2
    found = distance_of_segment(point, first, second)
    np.testing.assert_allclose(found[is_beside], nearest[is_beside], rtol=0, atol=1e-12)
