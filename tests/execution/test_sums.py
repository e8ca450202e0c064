"""The sum over an axis and the repetition along one: values, and that each is the other's transpose."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbjax.execution.arrays import repeat, sum_over_axis
from tests.gradients.checks import check_gradients


@pytest.mark.parametrize("shape", [(0, 2), (1, 2), (2, 2), (7, 3), (22, 4)])
def test_a_sum_is_numpys(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).normal(size=shape)
    np.testing.assert_allclose(jax.jit(lambda x: sum_over_axis(x, 0))(x), x.sum(axis=0), atol=1e-14)
    np.testing.assert_allclose(sum_over_axis(jnp.asarray(x.T), 1), x.sum(axis=0), atol=1e-14)


def test_repetition_is_numpys() -> None:
    x = np.random.default_rng(1).normal(size=(3, 2))
    for axis in range(3):
        np.testing.assert_array_equal(repeat(jnp.asarray(x), 4, axis), np.stack([x] * 4, axis))


def test_neither_is_transposed_to_padding_or_a_reduction() -> None:
    x, y = jnp.ones((7, 3)), jnp.ones(3)

    def pulled(function, x):
        return str(jax.make_jaxpr(lambda x: jax.vjp(function, x)[1](function(x)))(x))

    assert "pad" not in pulled(partial(sum_over_axis, axis=0), x)
    assert "reduce" not in pulled(partial(repeat, size=7, axis=0), y)


def test_derivatives_and_batches() -> None:
    x = np.random.default_rng(2).normal(size=(5, 3))

    def f(x):
        total = sum_over_axis(x, 0)
        return sum_over_axis(jnp.sin(x * repeat(total, 5, 0)), 1)

    check_gradients(f, jnp.asarray(x))
    xs = jnp.stack([x, 2.0 * x], axis=1)
    np.testing.assert_allclose(jax.vmap(f, in_axes=1)(xs), np.stack([f(x), f(2.0 * x)]), atol=1e-14)
