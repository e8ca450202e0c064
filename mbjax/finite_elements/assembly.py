"""Sums over elements: vectors by node, matrices in layers of nodes."""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mbjax.linear_algebra.block_tridiagonal import BlockTridiagonal

from .mesh_structure import MeshStructure


def sum_at_nodes(
    mesh: MeshStructure, nodes: Int[np.ndarray, "m k"], values: Float[Array, "m k c"]
) -> Float[Array, "n c"]:
    """Sums what elements give to each of their nodes."""
    flat = values.reshape(-1, values.shape[-1])
    return jax.ops.segment_sum(flat, nodes.reshape(-1), mesh.num_nodes)


def sum_of_groups(parts: Sequence[Any]) -> Any:
    """The sum of what each kind of elements adds, as trees of arrays."""
    return functools.reduce(lambda a, b: jax.tree.map(jnp.add, a, b), parts)


def sum_in_layers(
    mesh: MeshStructure, nodes: Int[np.ndarray, "m k"], matrices: Float[Array, "m 3k 3k"]
) -> BlockTridiagonal:
    """Sums symmetric matrices of elements, whose rows go through nodes and then axes, without nodes that are held."""
    free = jnp.asarray(~np.repeat(mesh.is_held[nodes], 3, axis=1), matrices.dtype)
    matrices = matrices * free[:, :, None] * free[:, None, :]
    b, rows = 3 * mesh.layer_size, mesh.num_layers
    layer = np.array(mesh.layer, np.int32)[nodes].repeat(3, axis=1)
    place = (3 * np.array(mesh.slot, np.int32)[nodes]).repeat(3, axis=1)
    place = place + np.tile(np.arange(3, dtype=np.int32), nodes.shape[1])
    row, column = layer[:, :, None], layer[:, None, :]
    # blocks on the diagonal, then those below it; those above it, which symmetry gives, are left out
    block = np.where(row == column, row, np.where(row > column, rows + column, 2 * rows))
    at = (block * b + place[:, :, None]) * b + place[:, None, :]
    total = jnp.zeros((2 * rows - 1) * b * b, matrices.dtype).at[at.reshape(-1)].add(matrices.reshape(-1), mode="drop")
    blocks = total.reshape(2 * rows - 1, b, b)
    return BlockTridiagonal(blocks[:rows], blocks[rows:])


def with_identity_where_held(mesh: MeshStructure, total: BlockTridiagonal) -> BlockTridiagonal:
    """A matrix in layers, with ones on the diagonal for slots without a node, and for nodes that are held."""
    absent = jnp.asarray(diagonal_of_absent(mesh), total.diagonal.dtype)
    return total._replace(diagonal=total.diagonal + absent)


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
