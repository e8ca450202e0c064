"""Functions with their loops as one kernel: nothing about them but the kernel changes."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.test_util import check_grads

import mbjax
from mbjax.execution.worlds.loops import called_if, one_by_one

X, Y = jnp.linspace(0.1, 1.2, 12).reshape(3, 4), jnp.linspace(1.0, 0.2, 4)


def iterated(x: jax.Array, y: jax.Array) -> dict[str, jax.Array]:
    """A loop of several operations a turn."""
    return {"x": lax.fori_loop(0, 5, lambda i, x: jnp.sin(x) * y + x[::-1] * i, x), "twice": 2.0 * y}


def is_one_kernel(function: Callable, *args: Any) -> bool:
    return holds_one_kernel(jax.jit(function).lower(*args).compile())


def holds_one_kernel(program: jax.stages.Compiled) -> bool:
    entry = str(program.as_text()).split("\nENTRY ")[1]
    return 'inlineable="false"' in entry and " while(" not in entry


def assert_same(found: object, expected: object) -> None:
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-14), found, expected)


def test_the_loop_is_in_the_kernel() -> None:
    marked = mbjax.as_one_kernel(iterated)
    assert is_one_kernel(marked, X, Y)
    for function in (marked, jax.jit(marked)):
        assert_same(function(X, Y), iterated(X, Y))


def test_what_it_closes_over() -> None:
    """A tracer is an argument like others, to be differentiated and batched."""

    def total(y: jax.Array, mark: Callable) -> jax.Array:
        return jnp.sum(mark(lambda x: iterated(x, y)["x"])(X))

    for transform in (lambda f: f, jax.grad, lambda f: jax.vmap(f), lambda f: jax.vmap(jax.grad(f))):
        y = jnp.stack([Y, 0.5 * Y]) if "vmap" in transform.__code__.co_names else Y
        found, expected = (transform(functools.partial(total, mark=m)) for m in (mbjax.as_one_kernel, lambda f: f))
        assert_same(jax.jit(found)(y), expected(y))


def test_derivatives_and_worlds_are_those_of_the_function() -> None:
    marked = mbjax.as_one_kernel(iterated)

    def total(function: Callable, x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.sum(function(x, y)["x"]) + jnp.sum(function(x, y)["twice"])

    for derivative in (jax.grad, jax.jacfwd, jax.hessian):
        found, expected = (jax.jit(derivative(functools.partial(total, f), (0, 1)))(X, Y) for f in (marked, iterated))
        assert_same(found, expected)
    several, of_each = jnp.stack([X, 2.0 * X]), jax.vmap(marked, (0, None))
    assert_same(jax.jit(of_each)(several, Y), jax.vmap(iterated, (0, None))(several, Y))
    assert not is_one_kernel(of_each, several, Y)
    check_grads(functools.partial(total, marked), (X, Y), order=1, modes=["fwd", "rev"])


def test_linear_functions_can_be_transposed() -> None:
    def turned(x: jax.Array, *, y: jax.Array) -> jax.Array:
        return lax.fori_loop(0, 3, lambda _, x: x[::-1] * y, x)

    found, expected = (
        jax.jit(jax.linear_transpose(functools.partial(f, y=Y), X))(X) for f in (mbjax.as_one_kernel(turned), turned)
    )
    assert_same(found, expected)


def test_integers_and_static_arguments() -> None:
    @mbjax.as_one_kernel
    def stepped(x: jax.Array, count: jax.Array, how: str) -> tuple[jax.Array, jax.Array]:
        assert how == "slowly"
        return lax.fori_loop(0, count, lambda _, x: 0.5 * x + 1.0, x), count + 1

    found, count = jax.jit(lambda x: stepped(x, jnp.asarray(3), "slowly"))(X)
    np.testing.assert_allclose(found, X / 8 + 1.75, rtol=1e-15)
    assert count == 4
    slope = jax.jvp(lambda x: stepped(x, jnp.asarray(3), "slowly")[0], (X,), (X,))[1]
    np.testing.assert_allclose(slope, X / 8, rtol=1e-15)


def test_equal_arguments_of_different_types_are_different_programs() -> None:
    """Outside `jax.jit` too; floats are arrays."""

    @mbjax.as_one_kernel
    def scaled(x: jax.Array, factor: complex, more: dict) -> jax.Array:
        return x * factor + (1 if more["one"] is True else 0)

    x = jnp.arange(3)
    assert scaled(x, 2, {"one": 1}).dtype == x.dtype
    assert scaled(x, 2, {"one": True})[0] == 1
    assert scaled(x.astype(float), 2.5, {"one": 1})[1] == 2.5
    assert scaled(x.astype(np.float32), 2.5, {"one": 1}).dtype == np.float32


@pytest.mark.parametrize("name", ["product", "factor", "sort", "message"])
def test_calls_of_libraries_stay_what_they_are(name: str, capfd: pytest.CaptureFixture) -> None:
    calls = {
        "product": lambda x: x @ jnp.outer(Y, Y),
        "factor": lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(3))[:, :1] * x,
        "sort": lambda x: jnp.sort(x, axis=1),
        "message": lambda x: (jax.debug.print("seen {}", x[0, 0]), x)[1],
    }

    def looped(x: jax.Array) -> jax.Array:
        return lax.fori_loop(0, 3, lambda _, x: 0.1 * calls[name](x) + 1.0, x)

    marked = mbjax.as_one_kernel(looped)
    assert not is_one_kernel(marked, X)
    capfd.readouterr()
    found = jax.jit(marked)(X)
    jax.effects_barrier()
    assert capfd.readouterr().out.count("seen") == (3 if name == "message" else 0)
    assert_same(found, looped(X))


@pytest.mark.whole_run("rollouts in tests/simulation, as one kernel too")
def test_rollouts_of_one_world() -> None:
    """With their steps, under inputs that are held, of each step, or found by a function that closes over numbers."""
    model = mbjax.load(mbjax.reference_models.path("arm"), time_step=1e-3)
    start, nu = mbjax.default_state(model), model.num_actuators
    u = 0.1 * jnp.ones(nu)

    def under_gain(state: mbjax.State, gain: jax.Array) -> mbjax.Trajectory:
        return mbjax.rollout(model, state, lambda state: gain * state.v[-nu:], num_steps=5)

    step = jax.jit(lambda state, u: mbjax.step(model, state, u)[0])
    rollouts = (
        (lambda state, u: mbjax.rollout(model, state, u, num_steps=5), u, lambda _: u),
        (lambda state, u: mbjax.rollout(model, state, u, checkpoint=2), jnp.stack([u] * 5), lambda _: u),
        (under_gain, jnp.asarray(-0.1), lambda state: -0.1 * state.v[-nu:]),
    )
    for function, inputs, at_each_step in rollouts:
        program = jax.jit(function).lower(start, inputs).compile()
        assert holds_one_kernel(program)
        state = start
        for _ in range(5):
            state = step(state, at_each_step(state))
        found = program(start, inputs).final_state
        np.testing.assert_allclose(found.q, state.q, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.v, state.v, rtol=0, atol=1e-11)
    total = jax.jit(lambda gain: jnp.sum(under_gain(start, gain).final_state.v ** 2))
    check_grads(total, (jnp.asarray(-0.1),), order=1, modes=["rev"], rtol=1e-6)


def of_each(x: jax.Array, y: jax.Array, scale: jax.Array) -> jax.Array:
    """Number by number."""
    return jnp.sqrt(x * x + scale) * y


def test_one_by_one_is_the_function() -> None:
    """In a loop of one kernel, of one world; neither its derivatives nor many worlds are loops."""
    x, scale = X[0], jnp.asarray(0.3)
    turns = functools.partial(one_by_one, of_each)
    assert is_one_kernel(turns, x, Y, scale)
    for transform in (lambda f: f, lambda f: jax.jacfwd(f, (0, 1, 2)), lambda f: jax.jacrev(f, (0, 1, 2)), jax.hessian):
        found, expected = (jax.jit(transform(f))(x, Y, scale) for f in (turns, of_each))
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-15), found, expected)
    assert_same(one_by_one(of_each, x, Y, scale), of_each(x, Y, scale))
    several = jnp.stack([x, 2.0 * x]), jnp.stack([Y, Y]), scale
    assert_same(jax.jit(jax.vmap(turns, (0, 0, None)))(*several), of_each(*several))
    derivative = str(jax.make_jaxpr(lambda *t: jax.jvp(turns, (x, Y, scale), t)[1])(x, Y, scale))
    assert derivative.count("scan[") == str(jax.make_jaxpr(turns)(x, Y, scale)).count("scan[")
    check_grads(turns, (x, Y, scale), order=2, modes=["fwd", "rev"])


def squared_and_turned(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    return x * jnp.sin(y), jnp.sum(x * x)


@pytest.mark.parametrize(
    "holds",
    [
        pytest.param(True, marks=pytest.mark.whole_run("contacts that begin or not, in test_dynamics_of_problems.py")),
        pytest.param(False, marks=pytest.mark.whole_run("contacts that begin or not, in test_dynamics_of_problems")),
    ],
)
def test_a_branch_within_a_kernel_is_a_branch_with_its_derivatives(holds: bool) -> None:
    x, y, otherwise = jnp.array([0.3, -0.7]), jnp.array([1.1, 0.4]), (jnp.array([2.0, 3.0]), jnp.array(4.0))

    def ours(x: jax.Array, y: jax.Array, otherwise: tuple, condition: Any = holds) -> tuple:
        return called_if(jnp.asarray(condition), squared_and_turned, (x, y), jax.tree.map(jnp.cos, otherwise))

    expected = squared_and_turned(x, y) if holds else jax.tree.map(jnp.cos, otherwise)
    jax.tree.map(np.testing.assert_array_equal, jax.jit(ours)(x, y, otherwise), expected)
    check_grads(ours, (x, y, otherwise), order=2, modes=("fwd", "rev"), rtol=1e-6)
    both = jax.vmap(lambda condition: ours(x, y, otherwise, condition))(jnp.array([holds, not holds]))
    jax.tree.map(lambda one, other: np.testing.assert_array_equal(one[0], other), both, expected)
