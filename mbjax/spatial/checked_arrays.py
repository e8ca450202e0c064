"""Arrays of one floating dtype from lists, numbers and arrays, and of the shapes that constructors need."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

VectorLike = ArrayLike | Sequence[ArrayLike]


def as_float_arrays(*values: VectorLike) -> list[Array]:
    """Converts `values` to arrays of one floating dtype, that of the JAX arrays among them.

    NumPy arrays, Python numbers and lists follow the JAX arrays. Without any of those, the dtype is
    what JAX makes of the NumPy arrays, or else its default float.
    """
    parts = [list(v) if isinstance(v, list | tuple) else [v] for v in values]
    leaves = [leaf for part in parts for leaf in part]
    jax_leaves = [leaf for leaf in leaves if isinstance(leaf, jax.Array)]
    dtype = jnp.result_type(float, *(jax_leaves or leaves))
    known = [not any(isinstance(leaf, jax.Array) for leaf in part) for part in parts]
    # what is known NumPy converts: JAX would compile a program for it
    converted = [np.asarray(v).astype(dtype) if is_known else v for v, is_known in zip(values, known, strict=True)]
    return [jnp.asarray(value, dtype=dtype) for value in converted]


def require_shape(what: str, array: Array, *shape: int, hint: str = "") -> Array:
    """The array, whose shape is this one; raises `ValueError` for another."""
    if array.shape != shape:
        raise ValueError(f"{what} must have shape {shape}, got {array.shape}.{hint}")
    return array


def as_batch_of(what: str, value: Any, *shape: int, hint: str = "") -> Float[Array, "..."]:
    """Floating numbers with these last axes, from an array, a list or a number; raises `ValueError` for others."""
    array = value if hasattr(value, "ndim") else jnp.asarray(value)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        array = jnp.asarray(array, float)
    if array.shape[array.ndim - len(shape) :] != shape:
        raise ValueError(f"{what} must have shape (..., {', '.join(map(str, shape))}), got {array.shape}.{hint}")
    return array
