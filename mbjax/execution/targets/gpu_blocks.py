"""A block of threads a world on a GPU: what fits into the registers of a few warps is computed there at once."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Int

from .gpu_kernels import are_interpreted
from .manual_axes import shape_like


def run_blocks(
    kernel: Callable[..., None],
    arrays: Sequence[Array],
    shape: tuple[int, ...],
    worlds: int,
    num_warps: int,
    name: str,
) -> Array:
    """Calls `kernel(world, *references, result)` for every world, each in a block of so many warps, as one kernel.

    The references are to whole arrays; the result has the given shape, and the type of the last array. The kernel is
    written with Pallas for Triton: its arrays are tiles whose sides are powers of two.
    """

    def of_block(*references: Any) -> None:
        world: Int[Array, ""] = pl.program_id(0)
        kernel(world, *references)

    interpreted = are_interpreted()
    return pl.pallas_call(
        of_block,
        grid=(worlds,),
        out_shape=shape_like(shape, arrays[-1]),
        interpret=interpreted,
        compiler_params=None if interpreted else triton.CompilerParams(num_warps=num_warps, num_stages=1),
        name=name,
    )(*arrays)


def load_tile(reference: Any, index: tuple, mask: Array) -> Array:
    """Loads a tile by its indices, with zeros where the mask is false."""
    return triton.load(reference.at[index], mask=mask, other=0.0)


def store_tile(reference: Any, index: tuple, value: Array, mask: Array) -> None:
    """Stores a tile by its indices, where the mask is true."""
    triton.store(reference.at[index], jnp.asarray(value, reference.dtype), mask=mask)
