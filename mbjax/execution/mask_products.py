"""Sums along paths and over subtrees: products with constant 0/1 matrices.

One kernel whatever the tree, and its own transpose in reverse mode. Of a large tree the matrix is taken apart:
velocities and mobods are numbered depth first, so that most of what a path holds is shared by all mobods of a
block. What is left is O(n) for chains and balanced trees.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Float

from .known_numbers import has_rule
from .manual_axes import keeping_axes

LARGEST_WHOLE = 128 * 128
BLOCK = 32
FEW = 8  # ones in a column: a joint's velocities
LARGEST_SUMMED = 16384  # numbers, where a column has more


dot_with_mask_p = Primitive("dot_with_mask")


def dot_with_mask(x: Float[Array, "..."], mask: np.ndarray, axis: int) -> Float[Array, "..."]:
    """x times a constant 0/1 matrix along an axis, counted from the front, at full precision on every device."""
    assert axis >= 0, axis
    if mask.shape[0] == mask.shape[1] and np.array_equal(mask != 0, np.eye(mask.shape[0], dtype=bool)):
        return x
    return dot_with_mask_p.bind(x, mask=np.packbits(mask != 0).tobytes(), shape=mask.shape, axis=axis)


def product_along_axis(
    x: Float[Array, "..."], *, mask: bytes, shape: tuple[int, int], axis: int
) -> Float[Array, "..."]:
    """The product, from the bits of the matrix; of one world, which has no further axis, by sums if they are small."""
    zeros_and_ones = unpacked(mask, shape)
    lead, tail = x.shape[:axis], x.shape[axis + 1 :]
    rows = x.reshape(math.prod(lead), x.shape[axis], math.prod(tail))
    if not tail and has_small_sums(rows, zeros_and_ones):
        return sums_of_columns(rows[..., 0], zeros_and_ones).reshape(*lead, shape[1])
    return product(rows, zeros_and_ones).reshape(*lead, shape[1], *tail)


def transposed_product(cotangent: Array, _: Any, *, mask: bytes, shape: tuple[int, int], axis: int) -> list[Array]:
    """The transpose: the product with the transposed matrix."""
    return [dot_with_mask(cotangent, unpacked(mask, shape).T, axis)]


def batch_product(args: tuple, dims: tuple, *, axis: int, **params: Any) -> tuple[Array, int]:
    """The rule of `vmap`."""
    return dot_with_mask_p.bind(jnp.moveaxis(args[0], dims[0], 0), axis=axis + 1, **params), 0


def shape_of_product(x: ShapedArray, *, shape: tuple[int, int], axis: int, **_: Any) -> ShapedArray:
    """Its shape and type."""
    return ShapedArray((*x.shape[:axis], shape[1], *x.shape[axis + 1 :]), x.dtype)


def unpacked(bits: bytes, shape: tuple[int, int]) -> np.ndarray:
    """The matrix."""
    return np.unpackbits(np.frombuffer(bits, np.uint8), count=shape[0] * shape[1]).reshape(shape).astype(bool)


@has_rule("dot_with_mask")
def product_now(x: np.ndarray, *, mask: bytes, shape: tuple[int, int], axis: int) -> np.ndarray:
    """The rule of NumPy."""
    return np.moveaxis(np.moveaxis(x, axis, -1) @ unpacked(mask, shape).astype(x.dtype), -1, axis)


dot_with_mask_p.def_impl(jax.jit(product_along_axis, static_argnames=("mask", "shape", "axis")))
dot_with_mask_p.def_abstract_eval(keeping_axes(shape_of_product))
ad.deflinear2(dot_with_mask_p, transposed_product)
batching.primitive_batchers[dot_with_mask_p] = batch_product
mlir.register_lowering(dot_with_mask_p, mlir.lower_fun(product_along_axis, multiple_results=False))


def has_small_sums(x: Float[Array, "rows a 1"], mask: np.ndarray) -> bool:
    """Whether the ones are few: products of matrices are calls of a library, which `cpu_kernel` cannot have."""
    counts = mask.sum(axis=0)
    return x.shape[0] * (counts > FEW).sum() * counts.max(initial=0) <= LARGEST_SUMMED


def sums_of_columns(x: Float[Array, "rows a"], mask: np.ndarray) -> Float[Array, "rows b"]:
    """The product as sums of columns of x, those of one column apart."""
    counts = mask.sum(axis=0)
    groups = [columns for columns in (np.flatnonzero(counts <= 1), np.flatnonzero(counts > 1)) if columns.size]
    sums = [sums_by_halves(x, mask[:, columns]) for columns in groups]
    if len(sums) < 2:
        return sums[0] if sums else jnp.zeros((x.shape[0], 0), x.dtype)
    order = np.argsort(np.concatenate(groups)).astype(np.int32)
    found = jnp.concatenate(sums, axis=1)
    is_in_order = np.array_equal(order, np.arange(order.size))
    return found if is_in_order else found.at[:, order].get(mode="promise_in_bounds")


def sums_by_halves(x: Float[Array, "rows a"], mask: np.ndarray) -> Float[Array, "rows b"]:
    """All sums at once, half by half, with a column of zeros where one has fewer terms than others."""
    counts = mask.sum(axis=0)
    most = 1 << int(counts.max() - 1).bit_length() if counts.any() else 1
    places = np.full((most, mask.shape[1]), mask.shape[0], np.int32)
    for column, chosen in enumerate(mask.T):
        places[: counts[column], column] = np.flatnonzero(chosen)
    if counts.min() < most:
        x = jnp.concatenate([x, jnp.zeros_like(x, shape=(x.shape[0], 1))], axis=1)
    terms = x.at[:, places].get(mode="promise_in_bounds")
    while most > 1:
        most //= 2
        terms = terms[:, :most] + terms[:, most:]
    return terms[:, 0]


def product(x: Float[Array, "rows a worlds"], mask: np.ndarray) -> Float[Array, "rows b worlds"]:
    """A product of matrices, of a large one by its parts."""
    if mask.size <= LARGEST_WHOLE:
        return whole_product(x, mask)
    if begins_in_order(mask):
        return product_of_paths(x, mask)
    if begins_in_order(mask.T):
        return product_of_subtrees(x, mask.T)
    return whole_product(x, mask)


def whole_product(x: Float[Array, "rows a worlds"], mask: np.ndarray) -> Float[Array, "rows b worlds"]:
    """The plain product."""
    if x.shape[2] == 1:
        y = jnp.matmul(x.reshape(x.shape[:2]), jnp.asarray(mask, x.dtype), precision=lax.Precision.HIGHEST)
        return y.reshape(*y.shape, 1)
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
    return y + whole_product(whole_product(x, parts.shared), parts.selects)


def product_of_subtrees(x: Float[Array, "rows b worlds"], mask: np.ndarray) -> Float[Array, "rows a worlds"]:
    """The product with the transpose of such a mask."""
    parts = mask_parts(np.packbits(mask).tobytes(), mask.shape)
    num_blocks, height, width = parts.blocks.shape
    missing = num_blocks * width - x.shape[1]
    inside = jnp.pad(x, ((0, 0), (0, missing), (0, 0))).reshape(x.shape[0], num_blocks, width, -1)
    blocks = jnp.asarray(parts.blocks, x.dtype)
    y = jnp.einsum("rkcw,khc->rkhw", inside, blocks, precision=lax.Precision.HIGHEST)
    y = y.reshape(x.shape[0], num_blocks * height, -1)[:, parts.index]
    return y + whole_product(whole_product(x, parts.selects.T), parts.shared.T)


def beginnings(mask: np.ndarray) -> np.ndarray:
    """The first nonzero column of each row; of an empty row that of the row before."""
    return np.maximum.accumulate(np.where(mask.any(axis=1), np.argmax(mask, axis=1), 0))


def begins_in_order(mask: np.ndarray) -> bool:
    """Whether no row begins before the row above it."""
    return bool(np.all((np.argmax(mask, axis=1) >= beginnings(mask)) | ~mask.any(axis=1)))


@functools.lru_cache(maxsize=64)
def mask_parts(bits: bytes, shape: tuple[int, int]) -> MaskParts:
    """The parts of a mask with rows that begin in order: each belongs to the block of columns where it begins."""
    mask = unpacked(bits, shape)
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
