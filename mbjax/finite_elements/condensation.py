"""Static condensation: what a matrix of all nodes is for a few of them, while the others follow (Guyan 1965).

[A_kk  A_ki] [x_k]   [f]
[A_ik  A_ii] [x_i] = [0]        S = A_kk - A_ki A_ii⁻¹ A_ik,   S x_k = f,   x_i = -A_ii⁻¹ A_ik x_k
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mbjax.linear_algebra.block_tridiagonal import (
    BlockCholesky,
    BlockTridiagonal,
    factor_block_tridiagonal,
    solve_block_tridiagonal,
    solve_lower_block_tridiagonal,
)

from .assembly import from_layers, to_layers
from .mesh_structure import MeshStructure
from .node_matrices import DenseNodeMatrix, MeshMatrix


class CondensedNodes(NamedTuple):
    """The matrix S of the nodes that are kept, and factors of A_ii, with the identity for those nodes.

    Slots of `kept` without a node have its number n; they have the identity in S.
    """

    matrix: DenseNodeMatrix
    kept: Int[Array, " k"]
    all: MeshMatrix
    factors: BlockCholesky

    def spread(self, x: Float[Array, "k 3"]) -> Float[Array, "n 3"]:
        """The motion of all nodes with that of those kept."""
        mesh = self.all.mesh
        of_kept = jnp.zeros((mesh.num_nodes, 3), x.dtype).at[self.kept].set(x, mode="drop")
        force = jnp.where(is_kept(mesh, self.kept)[:, None], 0.0, self.all.product(of_kept))
        solved = solve_block_tridiagonal(self.factors, to_layers(mesh, force[..., None]))
        return of_kept - from_layers(mesh, solved)[..., 0]


def is_kept(mesh: MeshStructure, kept: Int[Array, " k"]) -> Array:
    """Mask of the nodes that are kept."""
    return jnp.zeros(mesh.num_nodes, bool).at[kept].set(True, mode="drop")


def condense(A: MeshMatrix, kept: Int[Array, " k"]) -> CondensedNodes:
    """Condenses a matrix on k nodes, or fewer where slots have the number n. Not differentiable."""
    mesh, blocks = A.mesh, A.blocks
    k, b, dtype = kept.shape[0], 3 * mesh.layer_size, blocks.diagonal.dtype
    goes = to_layers(mesh, jnp.repeat(is_kept(mesh, kept)[:, None, None], 3, axis=1).astype(dtype))[..., 0]
    stays = 1.0 - goes
    identity = goes[:, :, None] * np.eye(b, dtype=dtype)
    masked = BlockTridiagonal(
        blocks.diagonal * stays[:, :, None] * stays[:, None] + identity,
        blocks.lower * stays[1:, :, None] * stays[:-1, None],
    )
    factors = factor_block_tridiagonal(masked)

    is_node = kept < mesh.num_nodes
    present = is_node.astype(dtype)
    at = jnp.where(is_node, kept, 0)
    layer = jnp.asarray(np.array(mesh.layer, np.int32))[at]
    place = 3 * jnp.asarray(np.array(mesh.slot, np.int32))[at][:, None] + np.arange(3, dtype=np.int32)
    columns = columns_of(blocks, layer, place) * present[:, None]
    rows = columns[layer[:, None], place].reshape(3 * k, 3 * k)
    half = solve_lower_block_tridiagonal(factors, (columns * stays[:, :, None, None]).reshape(-1, b, 3 * k))
    half = half.reshape(-1, 3 * k)
    present = jnp.repeat(present, 3)
    S = rows * present[:, None] - half.T @ half + jnp.diag(1.0 - present)
    return CondensedNodes(DenseNodeMatrix(0.5 * (S + S.T)), kept, A, factors)


def columns_of(A: BlockTridiagonal, layer: Int[Array, " k"], place: Int[Array, "k 3"]) -> Float[Array, "rows b k 3"]:
    """Columns of the matrix, three for each node, given its layer and the places of x, y and z there."""
    rows, b, _ = A.diagonal.shape
    k = layer.shape[0]
    none = jnp.zeros((1, b, b), A.diagonal.dtype)
    lower = jnp.concatenate([none, A.lower, none])  # lower[i] joins rows i - 1 and i
    own = A.diagonal[layer[:, None], place]
    before, after = lower[layer[:, None], place], lower[layer[:, None] + 1, :, place]
    found = jnp.zeros((rows + 2, k, 3, b), own.dtype)
    found = found.at[layer, jnp.arange(k)].add(before)
    found = found.at[layer + 1, jnp.arange(k)].add(own).at[layer + 2, jnp.arange(k)].add(after)
    return jnp.transpose(found[1:-1], (0, 3, 1, 2))
