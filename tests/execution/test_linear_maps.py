"""A linear function with a transpose of its own is, to JAX, the function."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbjax.execution.linear.linear_maps import linear_map

A = jnp.linspace(-1.0, 1.0, 12).reshape(3, 4)
X, Y = jnp.linspace(0.2, 1.0, 4), jnp.linspace(-1.0, 2.0, 4)
CALLED: list[str] = []


def function(fixed: dict, moved: list) -> jax.Array:
    """Linear in both of `moved`, not in `fixed`."""
    return jnp.sin(fixed["A"]) @ moved[0] + fixed["A"] ** 2 @ (fixed["x"] * moved[1])


def pull_back(fixed: dict, cotangent: jax.Array) -> list:
    """By hand."""
    CALLED.append("by hand")
    return [jnp.sin(fixed["A"]).T @ cotangent, fixed["x"] * ((fixed["A"] ** 2).T @ cotangent)]


def mapped(A: jax.Array, x: jax.Array, y: jax.Array, z: jax.Array) -> jax.Array:
    return linear_map(function, pull_back, {"A": A, "x": x}, [y, z], (3,))


def plain(A: jax.Array, x: jax.Array, y: jax.Array, z: jax.Array) -> jax.Array:
    return function({"A": A, "x": x}, [y, z])


def cost(f):
    return lambda *args: jnp.sum(jnp.cos(f(*args)))


TRANSFORMATIONS = {
    "value": lambda f: f,
    "forward": lambda f: jax.jacfwd(f, (0, 1, 2, 3)),
    "reverse": lambda f: jax.jacrev(f, (0, 1, 2, 3)),
    "reverse of what it is linear in": lambda f: jax.grad(cost(f), (2, 3)),
    "forward over reverse": lambda f: jax.jacfwd(jax.grad(cost(f), (2, 3)), (0, 1, 2, 3)),
    "reverse over reverse": lambda f: jax.jacrev(jax.grad(cost(f), (2, 3)), (0, 1, 2, 3)),
    "reverse over forward": lambda f: jax.jacrev(lambda *x: jax.jvp(f, x, x)[1], (0, 2)),
    "batch": lambda f: lambda A, x, y, z: jax.vmap(f, (None, 0, None, 0))(A, jnp.stack([x, z]), y, jnp.stack([z, y])),
    "batch of gradients": lambda f: (
        lambda A, x, y, z: jax.vmap(jax.grad(cost(f), (2, 3)), (0, None, None, 0))(
            jnp.stack([A, 2.0 * A]), x, y, jnp.stack([z, y])
        )
    ),
    "gradient of a batch": lambda f: (
        lambda A, x, y, z: jax.grad(
            lambda y: jnp.sum(jax.vmap(cost(f), (None, None, None, 0))(A, x, y, jnp.stack([z, x])))
        )(y)
    ),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_transformations(name: str) -> None:
    for compiled in (lambda f: f, jax.jit):
        found, expected = (compiled(TRANSFORMATIONS[name](f))(A, X, Y, Y[::-1]) for f in (mapped, plain))
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13), found, expected)


def test_the_result_has_the_shape_that_was_said() -> None:
    """As of a number that all worlds share, where others have worlds: its cotangent is the sum."""

    def shared(y: jax.Array) -> jax.Array:
        return linear_map(lambda x, y: x * y, lambda x, ct: x * jnp.sum(ct), jnp.asarray(3.0), y, (4,))

    y = jnp.asarray(2.0)
    np.testing.assert_array_equal(shared(y), jnp.full(4, 6.0))
    np.testing.assert_array_equal(jax.jacfwd(shared)(y), jnp.full(4, 3.0))
    np.testing.assert_array_equal(jax.jit(jax.jacrev(shared))(y), jnp.full(4, 3.0))


def test_the_transpose_is_the_one_by_hand() -> None:
    """On a CPU in reverse mode, and nowhere else."""
    CALLED.clear()
    jax.jvp(lambda y: mapped(A, X, y, Y), (Y,), (Y,))
    assert not CALLED
    gradient = jax.jit(jax.grad(cost(lambda y: mapped(A, X, y, Y))))
    gradient.lower(Y)
    assert CALLED
