"""What a random key of JAX is, for all functions that draw."""

from typing import Any

import jax
import jax.numpy as jnp

from mbjax.errors import ModelError


def require_one_key(call: str, key: Any, hint: str = "") -> None:
    """Raises `ModelError` for a seed, or for a batch of keys; `hint` is a further sentence."""
    dtype = getattr(key, "dtype", None)
    if dtype is None or jnp.ndim(key) != (0 if jnp.issubdtype(dtype, jax.dtypes.prng_key) else 1):
        came = type(key).__name__ if dtype is None else f"an array of shape {jnp.shape(key)}"
        raise ModelError(f"{call}: the key must be one key of JAX, like jax.random.key(0), got {came}.{hint}")
