"""A matrix condensed on a few nodes is the Schur complement of the others, which follow."""

import jax
import jax.numpy as jnp
import numpy as np

from mbjax.finite_elements import KeptNodes, MeshMatrix, MeshOfBody, condense, mesh_structure
from mbjax.finite_elements.assembly import sum_in_layers, with_identity_where_held
from mbjax.finite_elements.node_matrices import DenseNodeMatrix

from ..deformable_meshes import box_mesh

rng = np.random.default_rng(0)


def matrix_of_mesh() -> tuple[MeshMatrix, np.ndarray]:
    """A positive definite matrix of two bodies, one with nodes that are held, and the same as a dense one."""
    first, second = box_mesh((3, 2, 1), (1.0, 0.5, 0.5)), box_mesh((1, 1, 1), (1.0, 1.0, 1.0))
    held = np.zeros(len(first[0]), bool)
    held[[0, 3]] = True
    free = np.zeros(len(second[0]), bool)
    mesh = mesh_structure([MeshOfBody(*first, "linear", held), MeshOfBody(*second, "linear", free)])
    half = rng.normal(size=(mesh.num_elements, 12, 12))
    blocks = sum_in_layers(mesh, mesh.elements, jnp.array(half @ half.transpose(0, 2, 1) + np.eye(12)))
    A = MeshMatrix(mesh, with_identity_where_held(mesh, blocks))
    unit = jnp.eye(3 * mesh.num_nodes).reshape(-1, mesh.num_nodes, 3)
    return A, np.array(jax.vmap(A.product)(unit)).reshape(3 * mesh.num_nodes, -1)


def test_condensed_matrices_are_schur_complements_and_the_others_follow() -> None:
    A, dense = matrix_of_mesh()
    n = A.mesh.num_nodes
    kept = np.array([7, 2, n - 1, 20, n, n], np.int32)  # two slots are empty
    of_kept = (3 * kept[:4, None] + np.arange(3)).reshape(-1)
    others = np.setdiff1d(np.arange(3 * n), of_kept)
    follow = np.linalg.solve(dense[np.ix_(others, others)], dense[np.ix_(others, of_kept)])
    expected = np.eye(18)
    expected[:12, :12] = dense[np.ix_(of_kept, of_kept)] - dense[np.ix_(of_kept, others)] @ follow
    slots = np.full(n, 6, np.int32)
    slots[kept[:4]] = np.arange(4)
    condensed = jax.jit(lambda kept: condense(A, kept))(KeptNodes(jnp.array(kept), jnp.array(slots)))
    np.testing.assert_allclose(condensed.matrix.entries, expected, atol=1e-10)
    x = rng.normal(size=(6, 3))
    moved = np.zeros(3 * n)
    moved[of_kept], moved[others] = x[:4].reshape(-1), -follow @ x[:4].reshape(-1)
    np.testing.assert_allclose(condensed.spread(jnp.array(x)).reshape(-1), moved, atol=1e-10)


def test_solves_with_forces_on_all_nodes_by_those_of_a_few() -> None:
    """Of the mesh's matrix with more entries between nodes that are kept, among them nodes of both bodies."""
    A, dense = matrix_of_mesh()
    n = A.mesh.num_nodes
    kept = np.array([7, 2, n - 1, 20, n], np.int32)  # a slot is empty
    slots = np.full(n, 5, np.int32)
    slots[kept[:4]] = np.arange(4)
    half = rng.normal(size=(2, 6, 6))
    added, pairs = half @ half.transpose(0, 2, 1), np.array([[0, 2], [3, 1]], np.int32)
    for (a, b), matrix in zip(kept[pairs], added, strict=True):
        of_pair = np.concatenate([3 * a + np.arange(3), 3 * b + np.arange(3)])
        dense[np.ix_(of_pair, of_pair)] += matrix
    b = rng.normal(size=(n, 3))
    b[[0, 3]] = 0.0  # nodes that are held

    def solve(b: jax.Array) -> jax.Array:
        condensed = condense(A, KeptNodes(jnp.array(kept), jnp.array(slots)))
        of_others, of_kept = condensed.condense_force(b)
        matrix = condensed.matrix.plus(pairs, jnp.array(added))
        return of_others + condensed.spread(matrix.solver()(of_kept[..., None])[..., 0])

    np.testing.assert_allclose(
        jax.jit(solve)(jnp.array(b)).reshape(-1), np.linalg.solve(dense, b.reshape(-1)), atol=1e-9
    )


def test_products_and_diagonals_of_dense_and_mesh_matrices() -> None:
    A, dense = matrix_of_mesh()
    of_few = DenseNodeMatrix(jnp.array(dense))
    x = jnp.array(rng.normal(size=(A.mesh.num_nodes, 3)))
    np.testing.assert_allclose(A.product(x), of_few.product(x), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(A.diagonal(), of_few.diagonal(), rtol=1e-12)
    np.testing.assert_allclose(of_few.solver()(of_few.product(x)[..., None])[..., 0], x, atol=1e-9)
