"""Few kernels: takes columns of an array at constant indices, with a fast transpose.

Runs of indices are slices, which is fast. By JAX the transpose of every slice would be a padded copy of all of x, and
that of a gather a scatter, which XLA's CPU backend runs number by number. Here it is a product with a 0/1 matrix.
"""

from typing import Any

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
from .mask_products import dot_with_mask

MAX_SLICES = 8  # XLA's CPU backend makes one kernel of up to eight parts, else a kernel a part

take_p = Primitive("take")


def take(x: Float[Array, "..."], indices: Any, axis: int) -> Float[Array, "..."]:
    """Columns of x at constant indices. The axis is counted from the front: an axis of worlds may follow."""
    assert axis >= 0, axis
    indices = np.asarray(indices, dtype=int)
    if indices.size == x.shape[axis] and np.array_equal(indices, np.arange(indices.size)):
        return x
    if len(runs(indices)) == 1 or not jnp.issubdtype(x.dtype, jnp.floating):
        return take_runs(x, indices=tuple(indices.tolist()), axis=axis)
    return take_p.bind(x, indices=tuple(indices.tolist()), axis=axis)


def runs(indices: Any) -> list[np.ndarray]:
    """Splits indices into runs that rise one by one."""
    indices = np.asarray(indices, dtype=int)
    return np.split(indices, np.flatnonzero(np.diff(indices) != 1) + 1)


def take_runs(x: Float[Array, "..."], *, indices: tuple[int, ...], axis: int) -> Float[Array, "..."]:
    """Takes columns by slices, or by a gather where the slices would be many."""
    parts = runs(indices)
    if len(parts) > MAX_SLICES or not indices:
        return x.at[(slice(None),) * axis + (np.array(indices, int),)].get(mode="promise_in_bounds")
    pieces = [lax.slice_in_dim(x, part[0], part[-1] + 1, axis=axis) for part in parts]
    return pieces[0] if len(pieces) == 1 else jnp.concatenate(pieces, axis=axis)


def put_back(cotangent: Array, x: Any, *, indices: tuple[int, ...], axis: int) -> list[Array]:
    """Transpose of `take`: a product with a 0/1 matrix."""
    chosen = np.array(indices)[:, None] == np.arange(x.aval.shape[axis])
    return [dot_with_mask(cotangent, chosen, axis)]


def batch_take(args: tuple, dims: tuple, *, indices: tuple[int, ...], axis: int) -> tuple[Array, int]:
    """Batching rule of `take_p`."""
    return take_p.bind(jnp.moveaxis(args[0], dims[0], 0), indices=indices, axis=axis + 1), 0


def shape_taken(x: ShapedArray, *, indices: tuple[int, ...], axis: int) -> ShapedArray:
    """Shape and type of the columns taken."""
    return ShapedArray((*x.shape[:axis], len(indices), *x.shape[axis + 1 :]), x.dtype)


@has_rule("take")
def take_now(x: np.ndarray, *, indices: tuple[int, ...], axis: int) -> np.ndarray:
    """NumPy's rule of `take`, for known numbers."""
    return np.take(x, indices, axis)


take_p.def_impl(jax.jit(take_runs, static_argnames=("indices", "axis")))
take_p.def_abstract_eval(keeping_axes(shape_taken))
ad.deflinear2(take_p, put_back)
batching.primitive_batchers[take_p] = batch_take
mlir.register_lowering(take_p, mlir.lower_fun(take_runs, multiple_results=False))
