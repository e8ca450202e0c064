"""Guarded functions: values, derivatives, dtypes, on batches of singular and regular rows."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbjax.spatial import safe_math

DTYPES = [jnp.float32, jnp.float64]


def exact_series(s, offset, derivative):
    """d^n/ds^n of sum_k (-s)^k / (2k + offset)! in extended precision."""
    s = np.asarray(s, dtype=np.longdouble)
    total = np.zeros_like(s)
    for k in range(derivative, 40):
        falling = math.factorial(k) // math.factorial(k - derivative)
        coefficient = np.longdouble((-1) ** k * falling) / math.factorial(2 * k + offset)
        total = total + coefficient * s ** (k - derivative)
    return total


def value_and_two_derivatives(f, s):
    df = jax.vmap(jax.grad(f))
    ddf = jax.vmap(jax.jacfwd(jax.grad(f)))
    return jax.jit(lambda x: (jax.vmap(f)(x), df(x), ddf(x)))(s)


EVEN_FUNCTIONS = [
    (lambda s: safe_math.cos_and_sinc_of_square(s)[0], 0),
    (safe_math.sin_over_x_of_square, 1),
    (safe_math.one_minus_cos_over_x2_of_square, 2),
    (safe_math.x_minus_sin_over_x3_of_square, 3),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("function", "offset"), EVEN_FUNCTIONS)
def test_even_functions_and_two_derivatives_across_the_switch(function, offset, dtype):
    x = np.concatenate([[0.0, 1e-12, 1e-8, 1e-4, 1e-3], np.linspace(0.05, 3.1, 200)])
    near_switch = 1.0 + np.linspace(-4, 4, 9) * float(jnp.finfo(dtype).eps)
    switches = [near_switch, 4.0 * near_switch]
    s = jnp.asarray(np.concatenate([x * x, *switches]), dtype=dtype)
    computed = value_and_two_derivatives(function, s)
    for n in range(3):
        expected = exact_series(np.asarray(s), offset, n)
        assert computed[n].dtype == dtype
        error = np.abs(np.asarray(computed[n], dtype=np.longdouble) - expected).max()
        scale = np.abs(expected).max()
        bound = [30, 100, 1000][n] * float(jnp.finfo(dtype).eps)
        assert error < bound * scale, (n, error, scale)


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_x_are_even_and_flat_at_zero(dtype):
    x = jnp.asarray([0.0, 1e-3, 0.3, -0.3, 2.0], dtype=dtype)
    tolerance = 10 * float(jnp.finfo(dtype).eps)
    np.testing.assert_allclose(safe_math.sin_over_x(x), np.sinc(np.asarray(x) / np.pi), tolerance)
    for f in (
        safe_math.sin_over_x,
        safe_math.one_minus_cos_over_x2,
        safe_math.x_minus_sin_over_x3,
    ):
        assert f(x).dtype == dtype
        np.testing.assert_array_equal(f(x), f(-x))
        assert jax.grad(f)(x[0]) == 0.0


@pytest.mark.parametrize("dtype", DTYPES)
def test_angle_over_sine_and_two_derivatives(dtype):
    """a/sin(a) from (sin a)^2 and cos a; its derivatives against extended-precision atan."""
    cosine = 0.8
    t2 = np.concatenate([[0.0, 1e-12, 1e-6], np.linspace(1e-3, 4.0, 150)])
    s = jnp.asarray(t2 * cosine**2, dtype=dtype)
    computed = value_and_two_derivatives(
        lambda y: safe_math.angle_over_sine_of_square(y, jnp.asarray(cosine, dtype)), s
    )
    s_exact = np.asarray(s, dtype=np.longdouble)
    c = np.longdouble(np.asarray(cosine, dtype=dtype))
    series_rows = s_exact < 0.05
    small, large = s_exact[series_rows], s_exact[~series_rows]
    k = np.arange(60, dtype=np.longdouble)
    x = np.sqrt(large)
    angle, norm2 = np.arctan2(x, c), large + c * c
    direct = [
        angle / x,
        (c / norm2 - angle / x) / (2 * large),
        3 * (angle / x - c / norm2) / (4 * large**2) - c / (2 * large * norm2**2),
    ]
    for n in range(3):
        falling = np.array([math.perm(int(i), n) for i in k], dtype=np.longdouble)
        terms = (-1) ** k * falling / (2 * k + 1) / c ** (2 * k + 1)
        powers = small[:, None] ** np.maximum(k - n, 0)
        expected = np.concatenate([(terms * powers).sum(-1), direct[n]])
        error = np.abs(np.asarray(computed[n], dtype=np.longdouble) - expected).max()
        bound = [20, 50, 2000][n] * float(jnp.finfo(dtype).eps)
        assert computed[n].dtype == dtype
        assert error < bound * np.abs(expected).max(), (n, error)


@pytest.mark.parametrize("dtype", DTYPES)
def test_angle_over_sine_at_its_ends(dtype):
    f = safe_math.angle_over_sine_of_square
    s = jnp.asarray([0.0, 1.0, 0.0], dtype=dtype)
    c = jnp.asarray([1.0, 0.0, 0.0], dtype=dtype)
    np.testing.assert_allclose(f(s, c), [1.0, np.pi / 2, 0.0], rtol=1e-6)
    for jacobian in (jax.jacfwd, jax.jacrev):
        for J in jax.jit(jax.vmap(jacobian(f, (0, 1))))(s, c):
            assert np.all(np.isfinite(J))


SINGULAR_FUNCTIONS = {
    "norm": lambda x: safe_math.safe_norm(x),
    "normalize": lambda x: safe_math.safe_normalize(x) @ jnp.arange(1.0, 4.0),
    "sqrt": lambda x: safe_math.safe_sqrt(x[..., 0]),
    "divide": lambda x: safe_math.safe_divide(x[..., 0], x[..., 1]),
    "arctan2": lambda x: safe_math.safe_arctan2(x[..., 0], x[..., 1]),
}


@pytest.mark.parametrize("name", SINGULAR_FUNCTIONS)
def test_mixed_batch_forward_equals_reverse_equals_differences(name):
    f = SINGULAR_FUNCTIONS[name]
    x = jnp.array([[0.3, -0.7, 0.5], [0.0, 0.0, 0.0], [2.0, 1.5, -0.1], [0.0, 0.0, 0.0]])
    derivatives = [f, jax.jacfwd(f), jax.jacrev(f), jax.hessian(f)]
    compiled = jax.jit(lambda y: [jax.vmap(derivative)(y) for derivative in derivatives])
    values, forward, reverse, hessian = compiled(x)
    np.testing.assert_allclose(forward, reverse, atol=1e-12)
    assert jnp.all(jnp.isfinite(hessian))
    np.testing.assert_array_equal(values[1::2], 0.0)
    np.testing.assert_array_equal(reverse[1::2], 0.0)
    h = 1e-6
    steps = h * jnp.eye(3)
    for i in (0, 2):
        differences = (f(x[i][None] + steps) - f(x[i][None] - steps)) / (2 * h)
        np.testing.assert_allclose(reverse[i], differences, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", SINGULAR_FUNCTIONS)
def test_float32_in_float32_out_and_nan_shows(name):
    f = SINGULAR_FUNCTIONS[name] if name != "normalize" else safe_math.safe_normalize
    x = jnp.array([[0.3, 0.7, 0.5], [0.0, 0.0, 0.0]], dtype=jnp.float32)
    assert f(x).dtype == jnp.float32
    assert jnp.all(jnp.isnan(f(jnp.full((1, 3), jnp.nan))))


def test_normalize_quaternion():
    q = jnp.array([[0.0, 0.0, 0.0, 0.0], [0.6, -1.2, 0.4, 0.3]])
    normalized = safe_math.normalize_quaternion(q)
    np.testing.assert_array_equal(normalized[0], [1.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(normalized[1], q[1] / np.linalg.norm(q[1]), rtol=1e-15)
    imaginary_sum = jax.grad(lambda p: jnp.sum(safe_math.normalize_quaternion(p)[:, 1:]))
    gradient = jax.jit(imaginary_sum)(q)
    np.testing.assert_array_equal(gradient[0], 0.0)
    np.testing.assert_allclose(gradient[1] @ q[1], 0.0, atol=1e-15)
    assert safe_math.normalize_quaternion(q.astype(jnp.float32)).dtype == jnp.float32


@pytest.mark.parametrize("dtype", DTYPES)
def test_direction_with_fallback(dtype):
    """Unit vectors at every length whose square keeps its digits, else the fallback and its derivative alone."""
    limit = math.sqrt(float(jnp.finfo(dtype).tiny) / float(jnp.finfo(dtype).eps))
    lengths = np.array([0.0, 0.5 * limit, 2.0 * limit, 1e-6, 1.0, 1e3])
    x = jnp.asarray(np.outer([0.6, -0.8, 0.0], lengths), dtype)
    fallback = jnp.broadcast_to(jnp.asarray([[0.0], [0.0], [1.0]], dtype), x.shape)
    direction, is_fallback = jax.jit(safe_math.safe_direction)(x, fallback)
    assert direction.dtype == dtype
    np.testing.assert_array_equal(is_fallback, [True, True, False, False, False, False])
    np.testing.assert_array_equal(direction[:, :2], fallback[:, :2])
    expected = np.broadcast_to([[0.6], [-0.8], [0.0]], (3, 4))
    np.testing.assert_allclose(direction[:, 2:], expected, atol=10 * float(jnp.finfo(dtype).eps))

    def row(values):
        return safe_math.safe_direction(values[:3], values[3:])[0]

    rows = jnp.concatenate([x, fallback]).T
    forward, reverse = (jax.jit(jax.vmap(mode(row)))(rows) for mode in (jax.jacfwd, jax.jacrev))
    assert np.isfinite(reverse).all()
    np.testing.assert_allclose(forward, reverse, rtol=1e-5 if dtype == jnp.float32 else 1e-12)
    np.testing.assert_array_equal(reverse[:2], np.broadcast_to(np.eye(3, 6, 3), (2, 3, 6)))
    tangential = np.eye(3) - np.outer([0.6, -0.8, 0.0], [0.6, -0.8, 0.0])
    np.testing.assert_allclose(reverse[4, :, :3], tangential, atol=1e-6)
    assert jnp.all(jnp.isnan(safe_math.safe_direction(jnp.full(3, jnp.nan, dtype), fallback[:, 0])[0]))


def test_divide_at_zero_and_arctan_radius():
    one, zero = jnp.ones(()), jnp.zeros(())
    assert safe_math.safe_divide(one, zero, at_zero=0.5) == 0.5
    tiny = jnp.asarray(1e-11)
    assert safe_math.safe_arctan2(tiny, -tiny, 1e-10) == 0.0
    assert safe_math.safe_arctan2(tiny, -tiny) == pytest.approx(0.75 * np.pi)


def test_a_short_vector_along_an_axis_turns_only_across_it() -> None:
    """Nothing along it is left over from a difference, which 1 / |x| would make large, in either mode."""
    x = jnp.asarray(np.random.default_rng(4).uniform(1e-15, 2e-14, size=50))
    z = jnp.stack([jnp.zeros_like(x), jnp.zeros_like(x), x], axis=1)
    for mode in (jax.jacfwd, jax.jacrev):
        J = jax.jit(jax.vmap(mode(lambda x: safe_math.safe_direction(x, jnp.ones(3))[0])))(z)
        expected = np.zeros((50, 3, 3))
        expected[:, 0, 0] = expected[:, 1, 1] = 1.0 / np.asarray(x)
        np.testing.assert_allclose(J, expected, rtol=1e-14, atol=0)
