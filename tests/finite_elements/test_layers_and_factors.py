"""Layers of nodes make the matrices of a mesh block tridiagonal, whose factors solve what dense ones solve."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbjax.finite_elements import MeshOfBody, mesh_structure
from mbjax.finite_elements.assembly import from_layers, sum_in_layers, to_layers, with_identity_where_held
from mbjax.finite_elements.layers import find_layers
from mbjax.linear_algebra.block_tridiagonal import (
    dense_of,
    factor_block_tridiagonal,
    solve_block_tridiagonal,
    times_block_tridiagonal,
)

from ..deformable_meshes import box_mesh

rng = np.random.default_rng(0)


@pytest.mark.parametrize("cells", [(1, 1, 1), (5, 2, 2), (3, 3, 3)])
def test_elements_reach_into_two_neighbouring_layers_at_most(cells: tuple[int, int, int]) -> None:
    points, tetrahedra = box_mesh(cells, (0.1, 0.04, 0.04))
    shuffled = rng.permutation(len(points))
    place = np.argsort(shuffled)
    layers = find_layers(points[shuffled], place[tetrahedra])
    reach = layers.layer[place[tetrahedra]]
    assert np.ptp(reach, axis=1).max() <= 1
    pairs = set(zip(layers.layer.tolist(), layers.slot.tolist(), strict=True))
    assert len(pairs) == len(points)
    assert layers.slot.max() < layers.size
    if cells == (5, 2, 2):
        assert layers.num_layers >= 5  # layers across the short sides


def test_sums_of_elements_products_and_solves_equal_dense_ones() -> None:
    first, second = box_mesh((2, 1, 1), (1.0, 0.5, 0.5)), box_mesh((1, 1, 1), (1.0, 1.0, 1.0))
    held = np.zeros(len(first[0]), bool)
    held[[0, 3]] = True
    mesh = mesh_structure(
        [MeshOfBody(*first, "linear", held), MeshOfBody(*second, "linear", np.zeros(len(second[0]), bool))]
    )
    n, m = mesh.num_nodes, mesh.num_elements
    half = rng.normal(size=(m, 12, 12))
    matrices = half @ half.transpose(0, 2, 1) + np.eye(12)
    A = np.zeros((n, 3, n, 3))
    for nodes, K in zip(mesh.elements, matrices.reshape(m, 4, 3, 4, 3), strict=True):
        A[nodes[:, None, None, None], np.arange(3)[None, :, None, None], nodes[:, None], np.arange(3)] += K
    A = A.reshape(3 * n, 3 * n)
    fixed = np.repeat(mesh.is_held, 3)
    A[fixed], A[:, fixed] = 0.0, 0.0
    A[fixed, fixed] = 1.0
    b = rng.normal(size=(n, 3, 2))
    blocks = with_identity_where_held(mesh, sum_in_layers(mesh, mesh.elements, jnp.array(matrices)))
    in_layers = to_layers(mesh, jnp.array(b))
    product = from_layers(mesh, times_block_tridiagonal(blocks, in_layers))
    np.testing.assert_allclose(product.reshape(3 * n, 2), A @ b.reshape(3 * n, 2), atol=1e-11)
    solved = from_layers(mesh, solve_block_tridiagonal(factor_block_tridiagonal(blocks), in_layers))
    np.testing.assert_allclose(solved.reshape(3 * n, 2), np.linalg.solve(A, b.reshape(3 * n, 2)), atol=1e-11)
    assert np.linalg.eigvalsh(dense_of(blocks)).min() > 0.0
    of_many = jax.vmap(
        lambda s: solve_block_tridiagonal(
            factor_block_tridiagonal(blocks._replace(diagonal=s * blocks.diagonal)), in_layers
        )
    )
    np.testing.assert_allclose(of_many(jnp.array([1.0, 2.0]))[0], to_layers(mesh, solved), atol=1e-11)
