"""Sums over elements: vectors by node, matrices in layers of nodes."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.linear_algebra.block_tridiagonal import BlockTridiagonal

from .mesh_structure import MeshStructure


def sum_at_nodes(mesh: MeshStructure, values: Float[Array, "m 4 k"]) -> Float[Array, "n k"]:
    """Sums what the elements give to each of their nodes."""
    flat = values.reshape(-1, values.shape[-1])
    return jax.ops.segment_sum(flat, mesh.elements.reshape(-1), mesh.num_nodes)


def sum_in_layers(mesh: MeshStructure, matrices: Float[Array, "m 12 12"]) -> BlockTridiagonal:
    """Sums symmetric matrices of elements, whose rows go through nodes and then axes; held nodes have the identity."""
    b, rows = 3 * mesh.layer_size, mesh.num_layers
    free = jnp.asarray(~np.repeat(mesh.is_held[mesh.elements], 3, axis=1), matrices.dtype)
    values = matrices * free[:, :, None] * free[:, None, :]
    layer = jnp.asarray(np.repeat(np.array(mesh.layer, np.int32)[mesh.elements], 3, axis=1))
    slots = 3 * np.array(mesh.slot, np.int32)[mesh.elements]
    place = jnp.asarray(np.repeat(slots, 3, axis=1) + np.tile(np.arange(3, dtype=np.int32), 4))
    row, column = layer[:, :, None], layer[:, None, :]
    # blocks on the diagonal, then those below it; those above it, which symmetry gives, are left out
    block = jnp.where(row == column, row, jnp.where(row > column, rows + column, 2 * rows))
    at = (block * b + place[:, :, None]) * b + place[:, None, :]
    total = jnp.zeros((2 * rows - 1) * b * b, matrices.dtype).at[at.reshape(-1)].add(values.reshape(-1), mode="drop")
    blocks = total.reshape(2 * rows - 1, b, b)
    return BlockTridiagonal(blocks[:rows] + jnp.asarray(diagonal_of_absent(mesh), matrices.dtype), blocks[rows:])


def diagonal_of_absent(mesh: MeshStructure) -> Float[np.ndarray, "rows b b"]:
    """Ones on the diagonal for slots without a node, and for nodes that are held."""
    moves = np.zeros((mesh.num_layers, mesh.layer_size), bool)
    moves[list(mesh.layer), list(mesh.slot)] = ~mesh.is_held
    return np.repeat(~moves, 3, axis=1)[:, :, None] * np.eye(3 * mesh.layer_size)


def to_layers(mesh: MeshStructure, values: Float[Array, "n 3 k"]) -> Float[Array, "rows b k"]:
    """Vectors of the nodes in the order of layers; zero in slots without a node."""
    zero = jnp.zeros((mesh.num_layers, mesh.layer_size, *values.shape[1:]), values.dtype)
    placed = zero.at[np.array(mesh.layer), np.array(mesh.slot)].set(values)
    return placed.reshape(mesh.num_layers, 3 * mesh.layer_size, values.shape[-1])


def from_layers(mesh: MeshStructure, values: Float[Array, "rows b k"]) -> Float[Array, "n 3 k"]:
    """Vectors in the order of layers, by node."""
    apart = values.reshape(mesh.num_layers, mesh.layer_size, 3, values.shape[-1])
    return apart[np.array(mesh.layer), np.array(mesh.slot)]
