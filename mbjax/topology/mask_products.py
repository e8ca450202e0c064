"""Sums along paths and over subtrees: products with constant 0/1 matrices.

One kernel whatever the tree, and its own transpose in reverse mode. Of a large tree the matrix is taken apart:
velocities and mobods are numbered depth first, so that most of what a path holds is shared by all mobods of a
block. What is left is O(n) for chains and balanced trees.
"""

import functools
import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

LARGEST_WHOLE = 128 * 128
BLOCK = 32


def dot_with_mask(x: Float[Array, "..."], mask: np.ndarray, axis: int) -> Float[Array, "..."]:
    """x times a constant 0/1 matrix along an axis, counted from the front, at full precision on every device."""
    assert axis >= 0, axis
    mask = mask != 0
    lead, tail = x.shape[:axis], x.shape[axis + 1 :]
    rows = x.reshape(math.prod(lead), x.shape[axis], math.prod(tail))
    if mask.size <= LARGEST_WHOLE:
        y = product(rows, mask)
    elif begins_in_order(mask):
        y = product_of_paths(rows, mask)
    elif begins_in_order(mask.T):
        y = product_of_subtrees(rows, mask.T)
    else:
        y = product(rows, mask)
    return y.reshape(*lead, mask.shape[1], *tail)


def product(x: Float[Array, "rows a worlds"], mask: np.ndarray) -> Float[Array, "rows b worlds"]:
    """The plain product."""
    if x.shape[2] == 1:
        y = jnp.matmul(x.reshape(x.shape[:2]), jnp.asarray(mask, x.dtype), precision=lax.Precision.HIGHEST)
        return y.reshape(*y.shape, 1)  # no new axis: its transpose would be a reduction
    columns = jnp.broadcast_to(jnp.asarray(mask.T, x.dtype), (x.shape[0], *mask.T.shape))
    return jnp.matmul(columns, x, precision=lax.Precision.HIGHEST)


class MaskParts(NamedTuple):
    """mask = blocks along the diagonal + shared times selects."""

    blocks: np.ndarray  # (blocks, most rows in one, BLOCK)
    index: np.ndarray  # (a,) where each row is among the rows of all blocks
    shared: np.ndarray  # (a, k) the different columns of what is outside of the blocks
    selects: np.ndarray  # (k, b) which of them each column has


def product_of_paths(x: Float[Array, "rows a worlds"], mask: np.ndarray) -> Float[Array, "rows b worlds"]:
    """The product with a large mask whose rows begin in order, from its parts."""
    parts = mask_parts(np.packbits(mask).tobytes(), mask.shape)
    num_blocks, height, width = parts.blocks.shape
    source = np.zeros(num_blocks * height, int)
    source[parts.index] = np.arange(parts.index.size)
    inside = x[:, source].reshape(x.shape[0], num_blocks, height, -1)
    blocks = jnp.asarray(parts.blocks, x.dtype)
    y = jnp.einsum("rkhw,khc->rkcw", inside, blocks, precision=lax.Precision.HIGHEST)
    y = y.reshape(x.shape[0], num_blocks * width, -1)[:, : mask.shape[1]]
    return y + product(product(x, parts.shared), parts.selects)


def product_of_subtrees(x: Float[Array, "rows b worlds"], mask: np.ndarray) -> Float[Array, "rows a worlds"]:
    """The product with the transpose of such a mask."""
    parts = mask_parts(np.packbits(mask).tobytes(), mask.shape)
    num_blocks, height, width = parts.blocks.shape
    missing = num_blocks * width - x.shape[1]
    inside = jnp.pad(x, ((0, 0), (0, missing), (0, 0))).reshape(x.shape[0], num_blocks, width, -1)
    blocks = jnp.asarray(parts.blocks, x.dtype)
    y = jnp.einsum("rkcw,khc->rkhw", inside, blocks, precision=lax.Precision.HIGHEST)
    y = y.reshape(x.shape[0], num_blocks * height, -1)[:, parts.index]
    return y + product(product(x, parts.selects.T), parts.shared.T)


def beginnings(mask: np.ndarray) -> np.ndarray:
    """The first nonzero column of each row; of an empty row that of the row before."""
    return np.maximum.accumulate(np.where(mask.any(axis=1), np.argmax(mask, axis=1), 0))


def begins_in_order(mask: np.ndarray) -> bool:
    """Whether no row begins before the row above it."""
    return bool(np.all((np.argmax(mask, axis=1) >= beginnings(mask)) | ~mask.any(axis=1)))


@functools.lru_cache(maxsize=64)
def mask_parts(bits: bytes, shape: tuple[int, int]) -> MaskParts:
    """The parts of a mask with rows that begin in order: each belongs to the block of columns where it begins."""
    mask = np.unpackbits(np.frombuffer(bits, np.uint8), count=shape[0] * shape[1]).reshape(shape).astype(bool)
    block_of = beginnings(mask) // BLOCK
    num_blocks = -(-shape[1] // BLOCK)
    starts = np.searchsorted(block_of, np.arange(num_blocks))
    place_of = np.arange(shape[0]) - starts[block_of]
    blocks = np.zeros((num_blocks, place_of.max() + 1, BLOCK), bool)
    outside = mask.copy()
    for k in range(num_blocks):
        rows, columns = np.flatnonzero(block_of == k), slice(k * BLOCK, (k + 1) * BLOCK)
        part = mask[rows, columns]
        blocks[k, place_of[rows], : part.shape[1]] = part
        outside[rows, columns] = False
    shared, column_of = np.unique(outside, axis=1, return_inverse=True)
    index = block_of * blocks.shape[1] + place_of
    return MaskParts(blocks, index, shared, np.eye(shared.shape[1], dtype=bool)[:, column_of.ravel()])
