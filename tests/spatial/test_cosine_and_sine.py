"""Cosine and sine of our own beside those of extended precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbjax.execution.targets.cpu_kernel import in_one_kernel
from mbjax.spatial.cosine_and_sine import cosine_and_sine

in_kernel = jax.jit(lambda angle: in_one_kernel(cosine_and_sine, angle))


@pytest.mark.parametrize("function", [cosine_and_sine, in_kernel])
@pytest.mark.parametrize(
    ("dtype", "largest"),
    [(jnp.float64, 1.0), (jnp.float64, 10.0), (jnp.float64, 1e6), (jnp.float32, 1.0), (jnp.float32, 3e3)],
)
def test_to_one_ulp_of_one(dtype, largest: float, function) -> None:
    angle = jnp.asarray(np.random.default_rng(0).uniform(-largest, largest, 4000), dtype)
    exact = np.asarray(angle).astype(np.longdouble)
    for found, expected in zip(function(angle), (np.cos(exact), np.sin(exact)), strict=True):
        assert found.dtype == dtype
        assert np.max(np.abs(np.asarray(found).astype(np.longdouble) - expected)) < np.finfo(dtype).eps


def test_quarter_turns() -> None:
    """The ends of the intervals of the polynomials, on either side."""
    k = jnp.arange(-9.0, 10.0)[:, None] * (jnp.pi / 4.0)
    angle = jnp.ravel(k + jnp.asarray([-1e-9, 0.0, 1e-9]))
    for found, expected in zip(cosine_and_sine(angle), (np.cos(angle), np.sin(angle)), strict=True):
        np.testing.assert_allclose(found, expected, atol=3e-16)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_beyond_all_precision(dtype) -> None:
    """Where an ulp of the angle is more than a turn the results are those of some angle; of none they are NaN."""
    c, s = in_kernel(jnp.asarray([1e12, -1e30, 3e38, jnp.inf, -jnp.inf, jnp.nan], dtype))
    assert np.isfinite(c[:3]).all()
    assert np.max(np.abs(np.hypot(c[:3], s[:3]) - 1.0)) < 0.01
    assert np.isnan(c[3:]).all()
    assert np.isnan(s[3:]).all()


def test_derivatives() -> None:
    """In both modes, the second as well, those of cosine and sine; also at the ends of the polynomials' intervals."""
    angle = jnp.asarray([*np.random.default_rng(1).uniform(-9.0, 9.0, 50), *(np.arange(-9, 10) * (np.pi / 4.0))])
    for index, (first, second) in enumerate(
        ((lambda a: -jnp.sin(a), lambda a: -jnp.cos(a)), (jnp.cos, lambda a: -jnp.sin(a)))
    ):

        def one(a: jax.Array, index: int = index) -> jax.Array:
            return cosine_and_sine(a)[index]

        for derivative in (jax.grad, jax.jacfwd):
            np.testing.assert_allclose(jax.vmap(derivative(one))(angle), first(angle), atol=1e-15)
            np.testing.assert_allclose(jax.vmap(derivative(jax.grad(one)))(angle), second(angle), atol=1e-15)
