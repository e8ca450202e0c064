"""Lists of many numbers put together and taken apart in groups: as `jnp.stack` and `jnp.unstack`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbjax.spatial import component_algebra as ca


@pytest.mark.parametrize("count", [1, 8, 9, 11, 21, 64])
def test_many_parts_are_stacked_in_order(count):
    x = jnp.arange(2.0 * count).reshape(count, 2)
    np.testing.assert_array_equal(ca.stack_many(list(x)), x)
    np.testing.assert_array_equal(jnp.stack(ca.unstack_many(x)), x)


def test_taking_many_parts_apart_is_the_transpose():
    x, y = jnp.arange(42.0).reshape(21, 2), jnp.linspace(-1.0, 1.0, 42).reshape(21, 2)
    _, pull = jax.vjp(lambda x: ca.unstack_many(x), x)
    np.testing.assert_array_equal(pull(list(y))[0], y)


def test_many_parts_are_one_kernel():
    """XLA's CPU backend makes one kernel of each where more than eight are stacked at once."""
    x = jnp.ones((3, 5, 16))

    def parts(x: jax.Array) -> list[jax.Array]:
        return [x[i % 3] * x[i % 2] - i for i in range(21)]

    def kernels(stack) -> int:
        return jax.jit(lambda x: stack(parts(x))).lower(x).compile().as_text().count(" fusion(")

    assert kernels(ca.stack_many) == 1
    assert kernels(jnp.stack) > 1
