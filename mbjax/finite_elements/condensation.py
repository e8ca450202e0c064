"""Static condensation: what a matrix of all nodes is for a few of them, while the others follow (Guyan 1965).

[A_kk  A_ki] [x_k]   [f]
[A_ik  A_ii] [x_i] = [g]        S = A_kk - A_ki A_ii⁻¹ A_ik,   y = A_ii⁻¹ g

S x_k = f - A_ki y,   x_i = y - A_ii⁻¹ A_ik x_k
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from mbjax.linear_algebra.block_tridiagonal import (
    BlockCholesky,
    BlockTridiagonal,
    factor_block_tridiagonal,
    solve_block_tridiagonal,
    solve_lower_block_tridiagonal,
)

from .assembly import from_layers, to_layers
from .node_matrices import DenseNodeMatrix, MeshMatrix


class KeptNodes(NamedTuple):
    """Numbers of the nodes in k slots, n where a slot is empty; and each node's slot, k or more if it has none."""

    nodes: Int[Array, " k"]
    slots: Int[Array, " n"]


class CondensedNodes(NamedTuple):
    """The matrix S of the nodes that are kept, and factors of A_ii, with the identity for those nodes.

    Empty slots have the identity in S.
    """

    matrix: DenseNodeMatrix
    kept: KeptNodes
    all: MeshMatrix
    factors: BlockCholesky

    def spread(self, x: Float[Array, "k 3"]) -> Float[Array, "n 3"]:
        """The motion of all nodes with that of those kept."""
        nodes, slots = self.kept
        of_kept = jnp.where(self.is_kept, x[jnp.minimum(slots, nodes.shape[0] - 1)], 0.0)
        return of_kept - self.solve_others(self.all.product(of_kept))

    def solve_others(self, f: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
        """The motion of the nodes that are not kept under forces on them, while the others stand still."""
        mesh, force = self.all.mesh, jnp.where(self.is_kept, 0.0, f)
        return from_layers(mesh, solve_block_tridiagonal(self.factors, to_layers(mesh, force[..., None])))[..., 0]

    def condense_force(self, f: Float[Array, "n 3"]) -> tuple[Float[Array, "n 3"], Float[Array, "k 3"]]:
        """What forces on all nodes are for the nodes kept, after the motion of the others that goes with it."""
        of_others = self.solve_others(f)
        left = f - self.all.product(of_others)
        return of_others, left.at[self.kept.nodes].get(mode="fill", fill_value=0.0)

    @property
    def is_kept(self) -> Bool[Array, "n 1"]:
        """Mask of the nodes that are kept."""
        return (self.kept.slots < self.kept.nodes.shape[0])[:, None]


def condense(A: MeshMatrix, kept: KeptNodes) -> CondensedNodes:
    """Condenses a matrix on k nodes, or fewer where slots are empty. Not differentiable."""
    mesh, blocks = A.mesh, A.blocks
    k, b, dtype = kept.nodes.shape[0], 3 * mesh.layer_size, blocks.diagonal.dtype
    goes = to_layers(mesh, jnp.repeat((kept.slots < k)[:, None, None], 3, axis=1).astype(dtype))[..., 0]
    stays = 1.0 - goes
    identity = goes[:, :, None] * np.eye(b, dtype=dtype)
    masked = BlockTridiagonal(
        blocks.diagonal * stays[:, :, None] * stays[:, None] + identity,
        blocks.lower * stays[1:, :, None] * stays[:-1, None],
    )
    factors = factor_block_tridiagonal(masked)

    present = kept.nodes < mesh.num_nodes
    at = jnp.where(present, kept.nodes, 0)
    present = jnp.repeat(present.astype(dtype), 3)
    layer = jnp.asarray(np.array(mesh.layer, np.int32))[at]
    place = 3 * jnp.asarray(np.array(mesh.slot, np.int32))[at][:, None] + np.arange(3, dtype=np.int32)
    columns = columns_of(blocks, layer, place).reshape(-1, b, 3 * k) * present
    rows = columns[layer[:, None], place].reshape(3 * k, 3 * k)
    half = solve_lower_block_tridiagonal(factors, columns * stays[:, :, None]).reshape(-1, 3 * k)
    S = rows * present[:, None] - half.T @ half + jnp.diag(1.0 - present)
    return CondensedNodes(DenseNodeMatrix(0.5 * (S + S.T)), kept, A, factors)


def columns_of(A: BlockTridiagonal, layer: Int[Array, " k"], place: Int[Array, "k 3"]) -> Float[Array, "rows b k 3"]:
    """Columns of the matrix, three for each node, given its layer and the places of x, y and z there."""
    rows, b, _ = A.diagonal.shape
    none = jnp.zeros((1, b, b), A.diagonal.dtype)
    lower = jnp.concatenate([none, A.lower, none])  # lower[i] joins rows i - 1 and i
    own = A.diagonal[layer[:, None], place]
    before, after = lower[layer[:, None], place], lower[layer[:, None] + 1, :, place]
    beyond = np.arange(rows, dtype=np.int32)[:, None, None, None] - layer[None, :, None, None]
    found = jnp.where(beyond == 0, own, jnp.where(beyond == -1, before, jnp.where(beyond == 1, after, 0.0)))
    return jnp.transpose(found, (0, 3, 1, 2))
