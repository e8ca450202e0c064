"""Meshes for depths: elements split so that none of their parts has all corners on the surface, and nothing else."""

import numpy as np
import pytest
from scipy.spatial import Delaunay

from mbjax.finite_elements import ELEMENT_KINDS, between_corners
from mbjax.model.deformable_bodies import boundary_triangles, depth_mesh_of

from ..deformable_meshes import box_mesh


def volumes(points: np.ndarray, tetrahedra: np.ndarray) -> np.ndarray:
    corners = points[tetrahedra]
    return np.linalg.det(corners[:, 1:] - corners[:, :1]) / 6.0


def ball_of_points(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points at random and the tetrahedra between them, the flattest left out."""
    points = np.random.default_rng(seed).normal(size=(30, 3))
    tetrahedra = Delaunay(points).simplices
    is_inside_out = volumes(points, tetrahedra) < 0.0
    tetrahedra[is_inside_out] = tetrahedra[is_inside_out][:, [1, 0, 2, 3]]
    return points, tetrahedra[volumes(points, tetrahedra) > 1e-3]


@pytest.mark.parametrize("kind", ["linear", "quadratic"])
@pytest.mark.parametrize(
    "mesh",
    [
        (np.concatenate([np.zeros((1, 3)), np.eye(3)]), np.arange(4)[None]),
        box_mesh((1, 1, 1), (1.0, 1.0, 1.0)),
        box_mesh((4, 3, 3), (1.0, 1.0, 1.0)),
        ball_of_points(0),
        ball_of_points(1),
    ],
    ids=["one", "six", "box", "random", "random too"],
)
def test_every_part_has_a_depth_and_stays_within_its_element(mesh: tuple[np.ndarray, np.ndarray], kind: str) -> None:
    corners, tetrahedra = mesh
    ends, elements = between_corners(ELEMENT_KINDS[kind], len(corners), tetrahedra)
    points = corners[ends].mean(axis=1)
    found = depth_mesh_of(elements, kind)
    vertices = np.concatenate([points, np.einsum("kc,kci->ki", found.weights, points[found.parents])])
    surface = boundary_triangles(elements, kind)[0]
    assert np.isin(found.tetrahedra, found.inner).any(axis=1).all()
    assert not np.isin(found.inner, surface).any()
    assert (volumes(vertices, found.tetrahedra) > 0.0).all()
    parts = np.bincount(found.owners, weights=volumes(vertices, found.tetrahedra), minlength=len(found.elements))
    np.testing.assert_allclose(parts, volumes(points, found.elements), rtol=1e-9)
    assert parts.sum() == pytest.approx(volumes(corners, tetrahedra).sum())
    of_owner = points[found.elements[found.owners]]
    inverse = np.linalg.inv((of_owner[:, 1:] - of_owner[:, :1]).transpose(0, 2, 1))
    local = np.einsum("tij,tcj->tci", inverse, vertices[found.tetrahedra] - of_owner[:, :1])
    assert local.min() > -1e-9
    assert local.sum(axis=2).max() < 1.0 + 1e-9
    if not len(found.parents):
        np.testing.assert_array_equal(found.tetrahedra, found.elements)


def test_a_mesh_that_has_a_depth_everywhere_is_left_as_it_is() -> None:
    once = depth_mesh_of(box_mesh((2, 2, 2), (1.0, 1.0, 1.0))[1])
    again = depth_mesh_of(once.tetrahedra)
    assert len(once.parents) > 0
    assert len(again.parents) == 0
    np.testing.assert_array_equal(again.tetrahedra, once.tetrahedra)
    assert depth_mesh_of(np.array(once.tetrahedra)) is again  # a plant's result is the model's
