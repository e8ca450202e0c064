"""Columns at constant indices: as NumPy takes them, forward and reverse, and never put back by a scatter."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbjax.execution.arrays import take

RUNS = {"in order": [0, 1, 2, 3, 4], "one": [1, 2, 3], "few": [3, 4, 0, 0], "many": [0, *[1, 1, 3] * 5], "none": []}


@pytest.mark.parametrize("indices", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_take_is_numpys(indices, axis):
    rng = np.random.default_rng(0)
    x, dx = rng.normal(size=(2, 5, 5, 5))
    expected, d = (np.take(a, np.array(indices, int), axis) for a in (x, dx))
    got, tangent = jax.jvp(lambda x: take(x, indices, axis), (jnp.asarray(x),), (jnp.asarray(dx),))
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(tangent, d)
    ct = rng.normal(size=expected.shape)
    (back,) = jax.vjp(lambda x: take(x, indices, axis), jnp.asarray(x))[1](jnp.asarray(ct))
    assert np.sum(np.asarray(back) * dx) == pytest.approx(np.sum(ct * d), rel=1e-13, abs=1e-13)
    over = jax.vmap(lambda x: take(x, indices, 0), in_axes=2, out_axes=2)(jnp.asarray(x))
    np.testing.assert_array_equal(over, np.take(x, np.array(indices, int), 0))


@pytest.mark.parametrize("indices", [RUNS["few"], RUNS["many"]], ids=["few", "many"])
def test_no_scatter_where_a_rule_takes_of_a_tangent(indices):
    """Inside a rule JAX transposes what it finds there."""

    @jax.custom_jvp
    def doubled(x):
        return 2.0 * take(x, indices, 0)

    doubled.defjvp(lambda primals, tangents: (doubled(*primals), 2.0 * take(tangents[0], indices, 0)))
    program = jax.jit(jax.grad(lambda x: jnp.sum(doubled(x) ** 2))).lower(jnp.ones(5)).as_text()
    assert "scatter" not in program
