"""Few kernels: sums along paths and over subtrees of the tree, as products with constant 0/1 matrices.

A product is one kernel whatever the tree, and in reverse mode its transpose is another such product. The matrix of a
large tree is taken apart: velocities and mobods are numbered depth first, so that all mobods of a block share most of
their paths. The work left is O(n) for chains and balanced trees.
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

from ..calls.known_numbers import has_rule
from ..targets.manual_axes import keeping_axes

LARGEST_WHOLE = 128 * 128
BLOCK = 32
FEW = 8  # ones in a column: as many as a joint's velocities
LARGEST_SUMMED = 16384  # numbers, where a column has more ones than `FEW`


dot_with_mask_p = Primitive("dot_with_mask")


def dot_with_mask(x: Float[Array, "..."], mask: np.ndarray, axis: int) -> Float[Array, "..."]:
    """Product of x with a constant 0/1 matrix along an axis, counted from the front; full precision on any device."""
    assert axis >= 0, axis
    if mask.shape[0] == mask.shape[1] and np.array_equal(mask != 0, np.eye(mask.shape[0], dtype=bool)):
        return x
    return dot_with_mask_p.bind(x, mask=np.packbits(mask != 0).tobytes(), shape=mask.shape, axis=axis)


def product_along_axis(
    x: Float[Array, "..."], *, mask: bytes, shape: tuple[int, int], axis: int
) -> Float[Array, "..."]:
    """Product with a matrix given by its bits; for one world, which has no further axis, by sums if they are small."""
    zeros_and_ones = unpacked(mask, shape)
    lead, tail = x.shape[:axis], x.shape[axis + 1 :]
    rows = x.reshape(math.prod(lead), x.shape[axis], math.prod(tail))
    if not tail and has_small_sums(rows, zeros_and_ones):
        return masked_sums(rows[..., 0], zeros_and_ones).reshape(*lead, shape[1])
    return mask_product(rows, zeros_and_ones).reshape(*lead, shape[1], *tail)


def transposed_product(cotangent: Array, _: Any, *, mask: bytes, shape: tuple[int, int], axis: int) -> list[Array]:
    """Transpose of `dot_with_mask`: the product with the transposed matrix."""
    return [dot_with_mask(cotangent, unpacked(mask, shape).T, axis)]


def batch_product(args: tuple, dims: tuple, *, axis: int, **params: Any) -> tuple[Array, int]:
    """Batching rule of `dot_with_mask_p`."""
    return dot_with_mask_p.bind(jnp.moveaxis(args[0], dims[0], 0), axis=axis + 1, **params), 0


def shape_of_product(x: ShapedArray, *, shape: tuple[int, int], axis: int, **_: Any) -> ShapedArray:
    """Shape and type of the product."""
    return ShapedArray((*x.shape[:axis], shape[1], *x.shape[axis + 1 :]), x.dtype)


def unpacked(bits: bytes, shape: tuple[int, int]) -> np.ndarray:
    """The 0/1 matrix from its bits."""
    return np.unpackbits(np.frombuffer(bits, np.uint8), count=shape[0] * shape[1]).reshape(shape).astype(bool)


@has_rule("dot_with_mask")
def product_now(x: np.ndarray, *, mask: bytes, shape: tuple[int, int], axis: int) -> np.ndarray:
    """NumPy's rule of `dot_with_mask`, for known numbers."""
    return np.moveaxis(np.moveaxis(x, axis, -1) @ unpacked(mask, shape).astype(x.dtype), -1, axis)


dot_with_mask_p.def_impl(jax.jit(product_along_axis, static_argnames=("mask", "shape", "axis")))
dot_with_mask_p.def_abstract_eval(keeping_axes(shape_of_product))
ad.deflinear2(dot_with_mask_p, transposed_product)
batching.primitive_batchers[dot_with_mask_p] = batch_product
mlir.register_lowering(dot_with_mask_p, mlir.lower_fun(product_along_axis, multiple_results=False))


def has_small_sums(x: Float[Array, "rows a 1"], mask: np.ndarray) -> bool:
    """Whether the ones are few enough to sum: a product of matrices is a library call, which no CPU kernel can have."""
    counts = mask.sum(axis=0)
    return x.shape[0] * (counts > FEW).sum() * counts.max(initial=0) <= LARGEST_SUMMED


def masked_sums(x: Float[Array, "rows a"], mask: np.ndarray) -> Float[Array, "rows b"]:
    """The product as sums of columns of x; sums of a single column are gathered apart."""
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
    """All sums at once, half by half; a column of zeros fills sums that have fewer terms than others."""
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


def mask_product(x: Float[Array, "rows a worlds"], mask: np.ndarray) -> Float[Array, "rows b worlds"]:
    """Product with a 0/1 matrix, which is taken apart if it is large."""
    if mask.size <= LARGEST_WHOLE:
        return whole_product(x, mask)
    if begins_in_order(mask):
        return product_of_paths(x, mask)
    if begins_in_order(mask.T):
        return product_of_subtrees(x, mask.T)
    return whole_product(x, mask)


def whole_product(x: Float[Array, "rows a worlds"], mask: np.ndarray) -> Float[Array, "rows b worlds"]:
    """Product with a 0/1 matrix as a single dense product."""
    if x.shape[2] == 1:
        y = jnp.matmul(x.reshape(x.shape[:2]), jnp.asarray(mask, x.dtype), precision=lax.Precision.HIGHEST)
        return y.reshape(*y.shape, 1)
    columns = jnp.broadcast_to(jnp.asarray(mask.T, x.dtype), (x.shape[0], *mask.T.shape))
    return jnp.matmul(columns, x, precision=lax.Precision.HIGHEST)


class MaskParts(NamedTuple):
    """A mask in parts: blocks along the diagonal, plus `shared` times `selects`."""

    blocks: np.ndarray  # (blocks, most rows in one, BLOCK)
    index: np.ndarray  # (a,) the place of each row among the rows of all blocks
    shared: np.ndarray  # (a, k) the distinct columns of the mask outside of the blocks
    selects: np.ndarray  # (k, b) which shared column each column has


def product_of_paths(x: Float[Array, "rows a worlds"], mask: np.ndarray) -> Float[Array, "rows b worlds"]:
    """Product with a large mask whose rows begin in order, from its parts."""
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
    """Product with the transpose of a large mask whose rows begin in order, from its parts."""
    parts = mask_parts(np.packbits(mask).tobytes(), mask.shape)
    num_blocks, height, width = parts.blocks.shape
    missing = num_blocks * width - x.shape[1]
    inside = jnp.pad(x, ((0, 0), (0, missing), (0, 0))).reshape(x.shape[0], num_blocks, width, -1)
    blocks = jnp.asarray(parts.blocks, x.dtype)
    y = jnp.einsum("rkcw,khc->rkhw", inside, blocks, precision=lax.Precision.HIGHEST)
    y = y.reshape(x.shape[0], num_blocks * height, -1)[:, parts.index]
    return y + whole_product(whole_product(x, parts.selects.T), parts.shared.T)


def beginnings(mask: np.ndarray) -> np.ndarray:
    """First nonzero column of each row; for an empty row that of the row before."""
    return np.maximum.accumulate(np.where(mask.any(axis=1), np.argmax(mask, axis=1), 0))


def begins_in_order(mask: np.ndarray) -> bool:
    """Whether no row begins before the row above it."""
    return bool(np.all((np.argmax(mask, axis=1) >= beginnings(mask)) | ~mask.any(axis=1)))


@functools.lru_cache(maxsize=64)
def mask_parts(bits: bytes, shape: tuple[int, int]) -> MaskParts:
    """Takes apart a mask whose rows begin in order: a row belongs to the block of columns where it begins."""
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
