"""Linear elements that move with neither mass nor strain are found, as the ranks of matrices of all nodes say."""

import numpy as np
import pytest
from scipy.spatial import Delaunay

import mbjax
from mbjax.finite_elements import find_massless_element

from ..deformable_meshes import box_mesh

ONE = np.concatenate([np.zeros((1, 3)), 0.1 * np.eye(3)]), np.arange(4)[None]
TWO = np.concatenate([ONE[0], [[0.08, 0.08, 0.08]]]), np.array([[0, 1, 2, 3], [1, 2, 3, 4]])
CUBE = box_mesh((1, 1, 1), (0.1, 0.1, 0.1))
HANGING = (
    np.concatenate([CUBE[0], 0.1 + np.array([[0.05, 0.001, 0.002], [0.003, 0.05, 0.0], [0.0, 0.004, 0.05]])]),
    np.concatenate([CUBE[1], [[7, 8, 9, 10]]]),
)


def is_singular(points: np.ndarray, tetrahedra: np.ndarray, held: np.ndarray) -> bool:
    """Whether some velocities of the nodes that are not held leave all strains and all centroids as they are."""
    rows = []
    for nodes in tetrahedra:
        corners = points[nodes]
        inner = np.linalg.inv((corners[1:] - corners[0]).T) * np.ptp(points, axis=0).max()
        gradients = np.concatenate([-inner.sum(axis=0)[None], inner])
        rate = np.zeros((3, 3, len(points), 3))
        centroid = np.zeros((3, len(points), 3))
        for i in range(3):
            rate[i, :, nodes, i] += gradients
            rate[:, i, nodes, i] += gradients.T
            centroid[i, nodes, i] = 1.0
        rows += [rate.reshape(9, -1), centroid.reshape(3, -1)]
    sizes = np.linalg.svd(np.concatenate(rows)[:, np.repeat(~held, 3)], compute_uv=False)
    return bool(sizes[-1] < 1e-10 * sizes[0])


def some_of_the_tetrahedra_of_points(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points at random and some of the tetrahedra between them, joined in any way, and nodes that are held."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(rng.integers(6, 12), 3))
    tetrahedra = Delaunay(points).simplices
    tetrahedra = tetrahedra[rng.permutation(len(tetrahedra))[: 1 + int(rng.uniform(0.1, 0.6) * len(tetrahedra))]]
    used, tetrahedra = np.unique(tetrahedra, return_inverse=True)
    held = rng.uniform(size=len(used)) < rng.choice([0.0, 0.2, 0.4])
    return points[used], tetrahedra.reshape(-1, 4), held & (np.arange(len(used)) > 0)


def test_massless_motions_are_those_of_singular_matrices() -> None:
    held: list = [[], 0, 1, [1, 2]]
    cases = [(*mesh, np.isin(np.arange(len(mesh[0])), nodes)) for mesh in (ONE, TWO, CUBE, HANGING) for nodes in held]
    cases += [some_of_the_tetrahedra_of_points(seed) for seed in range(60)]
    expected = [is_singular(p, t, h) for p, t, h in cases]
    assert [find_massless_element(p, t, h) is not None for p, t, h in cases] == expected
    assert 10 < sum(expected) < len(cases) - 10
    assert find_massless_element(*HANGING, np.zeros(11, bool)) == 6


@pytest.mark.parametrize(("mesh", "words"), [(TWO, "'soft', which has 2"), (HANGING, r"element 6 \(nodes 7, 8, 9, 10")])
def test_a_plant_with_such_a_motion_is_refused(mesh: tuple[np.ndarray, np.ndarray], words: str) -> None:
    """Unless a wall holds it, or the elements are quadratic, whose mass is everywhere."""
    plant = mbjax.MultibodyPlant(0.005)
    plant.add_deformable_body("soft", mesh)
    with pytest.raises(mbjax.ModelError, match=words):
        plant.finalize()
    plant.set_wall_boundary_condition("soft", [0.05, 0.0, 0.0], [-1.0, 0.0, 0.0])
    plant.add_deformable_body("fine", mesh, elements="quadratic")
    plant.finalize()
