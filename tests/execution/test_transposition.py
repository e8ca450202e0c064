"""Worlds last, and first again: the transpose, whatever the sizes and types."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbjax.execution.worlds.transposition import worlds_first, worlds_last

SHAPES = [(3, 5), (8, 64), (130, 67), (9, 2, 33), (17, 3, 3, 9), (1, 80), (128, 0)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64, jnp.int32, bool])
def test_transposes(shape: tuple[int, ...], dtype) -> None:
    x = jnp.asarray(np.random.default_rng(0).normal(size=shape) * 10.0, dtype)
    last = jax.jit(worlds_last)(x)
    np.testing.assert_array_equal(last, jnp.moveaxis(x, 0, -1))
    np.testing.assert_array_equal(jax.jit(worlds_first)(last), x)
