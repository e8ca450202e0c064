"""What one world's programs are compiled to on a CPU, and that nothing else about them changes."""

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from mbjax.execution.recursion.stages import computed_once, read_all
from mbjax.execution.targets.by_device import on_cpu
from mbjax.execution.targets.cpu_kernel import in_one_kernel, is_in_kernel, is_tested_version
from mbjax.execution.worlds.many_worlds import for_worlds

X = jnp.linspace(0.1, 1.2, 12).reshape(3, 4)


def kernels(function: Callable, *args: jax.Array) -> tuple[bool, str]:
    """Whether the whole program is one kernel, and its entry."""
    entry = jax.jit(function).lower(*args).compile().as_text().split("\nENTRY ")[1]
    return 'inlineable="false"' in entry, entry


def rolled(x: jax.Array) -> jax.Array:
    """A loop of several operations a turn."""
    return lax.fori_loop(0, 5, lambda i, y: y * x + y[::-1] * i, x)


def own(function: Callable) -> Callable:
    """The function as one of one world."""
    return lambda *args: for_worlds(function, *args)


def test_loops_are_in_the_kernel() -> None:
    is_one, entry = kernels(own(rolled), X)
    assert is_one
    assert " while(" not in entry
    np.testing.assert_allclose(jax.jit(own(rolled))(X), rolled(X), rtol=1e-15)


CALLS = {
    "product": lambda x: jnp.matmul(x.T, x),
    "large sum": lambda x: jnp.sum(jnp.tile(x, (40, 40)), axis=0),
    "sort": lambda x: jnp.sort(x, axis=1),
    "scatter": lambda x: x.at[jnp.argmax(x, axis=0), 0].add(1.0),
    "factor": lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(3)),
    "branch": lambda x: lax.cond(x[0, 0] > 0, jnp.sin, lambda y: jnp.zeros_like(y), x),
    "cumulated": lambda x: jnp.cumsum(x, axis=0),
    "random": lambda x: x + jax.random.normal(jax.random.key(0), x.shape),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_libraries_are_left_as_they_are(name: str) -> None:
    """Neither does XLA refuse them nor end the process."""
    function = CALLS[name]
    np.testing.assert_allclose(jax.jit(own(function))(X), function(X), rtol=1e-14)


@pytest.mark.parametrize("name", ["product", "large sum", "sort", "scatter", "factor", "branch"])
def test_only_known_operations_are_let_in(name: str) -> None:
    assert not kernels(own(CALLS[name]), X)[0]


@pytest.mark.parametrize("name", ["product", "sort", "scatter", "factor", "branch"])
def test_calls_of_libraries_are_found_before_a_program_is_lowered(name: str) -> None:
    """Else its functions are lowered twice, and the first ones stay in the program."""
    calls = jax.jit(own(lambda x: CALLS[name](jnp.tan(x)))).lower(X).as_text()
    assert calls.count("stablehlo.tan") + calls.count("chlo.tan") == 1


def test_what_only_derivatives_of_a_solve_call_keeps_no_program_from_being_a_kernel() -> None:
    A = jnp.eye(4) + 0.1 * jnp.ones((4, 4))

    def solve(b: jax.Array) -> jax.Array:
        return lax.custom_linear_solve(lambda x: A @ x, b, lambda _, b: lax.fori_loop(0, 9, halfway, b), symmetric=True)

    def halfway(_: int, x: jax.Array) -> jax.Array:
        return x - 0.1 * x

    assert kernels(own(solve), X[0])[0]


def test_inner_functions_may_be_kernels_where_the_outer_cannot() -> None:
    def outer(x: jax.Array) -> jax.Array:
        return jnp.sort(for_worlds(rolled, x), axis=1)

    assert kernels(own(outer), X)[0]
    np.testing.assert_allclose(jax.jit(own(outer))(X), jnp.sort(rolled(X), axis=1), rtol=1e-15)


def test_arguments_that_nothing_reads() -> None:
    """In all ways in which XLA comes to know that: it would end the process."""

    def some(x: jax.Array, unread: jax.Array, empty: jax.Array, shape: jax.Array, index: jax.Array) -> list[jax.Array]:
        vanishing = jnp.where(jnp.zeros(3, bool), unread, x[:, 0])
        return [rolled(x) + empty.sum(), vanishing, jnp.ones(shape.shape), x[index * 0], shape]

    def called(x: jax.Array, y: jax.Array) -> list[jax.Array]:
        return for_worlds(some, x, y, jnp.zeros(0), np.ones((2, 2)), jnp.asarray(2))

    expected = some(X, X[:, 1], jnp.zeros(0), jnp.ones((2, 2)), jnp.asarray(2))
    constant = jax.jit(lambda: called(X, X[:, 1]))
    nested = jax.jit(lambda x: jax.jit(called)(X + 0 * x, jnp.ones(3)))
    looped = jax.jit(lambda y: lax.scan(lambda c, _: (c, called(X, y)), y, length=2)[1])
    for found in (
        jax.jit(called)(X, X[:, 1]),
        constant(),
        nested(X),
        jax.tree.map(lambda y: y[1], looped(X[:, 1])),
    ):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-15), found, expected)


def test_types_pass() -> None:
    def mixed(x: jax.Array, k: jax.Array, flags: jax.Array, small: jax.Array) -> list[jax.Array]:
        return [x > 0.5, k + 1, jnp.where(flags, small, small * 2), flags, jnp.where(flags[:, None], x, 0.0)]

    args = X, jnp.arange(3), jnp.array([True, False, True]), jnp.ones(3, jnp.float32)
    for found in (jax.jit(own(mixed))(*args), jax.jit(lambda x: for_worlds(mixed, x, *args[1:]))(X)):
        for a, b in zip(found, mixed(*args), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


def test_derivatives_are_kernels_too() -> None:
    def cost(x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.sin(for_worlds(rolled, x)))

    def plain(x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.sin(rolled(x)))

    for derivative in (jax.grad, jax.jacfwd, lambda f: jax.jacfwd(jax.jacrev(f))):
        np.testing.assert_allclose(jax.jit(derivative(cost))(X), derivative(plain)(X), rtol=1e-11)


def test_stages_are_stored_in_a_kernel() -> None:
    """XLA does not fuse them with what reads them; outside of kernels they are nothing but the function."""

    def staged(x: jax.Array) -> jax.Array:
        return lax.fori_loop(0, 4, lambda i, y: jnp.sin(computed_once(lambda y: y * y + x, y)) + y[::-1] * i, x)

    def plain(x: jax.Array) -> jax.Array:
        return lax.fori_loop(0, 4, lambda i, y: jnp.sin(y * y + x) + y[::-1] * i, x)

    program = jax.jit(own(staged)).lower(X).compile().as_text()
    assert len(re.findall(r"to_apply=%computed_once|calls=%computed_once", program)) == 1
    assert "%computed_once" not in jax.jit(staged).lower(X).compile().as_text()
    for found in (jax.jit(own(staged))(X), jax.jit(staged)(X), staged(X)):
        np.testing.assert_allclose(found, plain(X), rtol=1e-15)
    np.testing.assert_allclose(jax.jacfwd(staged)(X), jax.jacfwd(plain)(X), rtol=1e-13)


def test_results_of_a_stage_share_loops() -> None:
    """Those of many worlds, three at a time, with what they have in common; those of one have none, but an array."""

    def stage(x: jax.Array, y: jax.Array) -> list[jax.Array]:
        square = x * x + y
        return [jnp.sin(square), square * x, square + 1.0, square - y, x / y]

    def staged(x: jax.Array) -> jax.Array:
        return lax.fori_loop(0, 4, lambda _, y: sum(read_all(computed_once(stage, y, x)), 0.1 * x) / 8.0, x)

    def plain(x: jax.Array) -> jax.Array:
        return lax.fori_loop(0, 4, lambda _, y: sum(stage(y, x), 0.1 * x) / 8.0, x)

    many = jnp.linspace(0.1, 1.0, 128)
    for x, loops in ((many, 2), (many[0], 0)):
        program = jax.jit(lambda x: in_one_kernel(staged, x)).lower(x).compile().as_text()
        assert len(re.findall(r" = \([^)]*\) reduce\(", program)) == loops
        assert len(re.findall(r"\n%computed_once.* -> f64\[5\] {", program)) == (loops == 0)
        np.testing.assert_allclose(jax.jit(lambda x: in_one_kernel(staged, x))(x), plain(x), rtol=1e-14)
    assert "reduce" not in jax.jit(staged).lower(many).as_text()


@pytest.mark.parametrize("results", [1, 2, 3, 5])
def test_long_stages_stay_in_the_kernel(results: int) -> None:
    """XLA would share them out to threads that a kernel does not have, and could not compile it."""

    def stage(x: jax.Array) -> list[jax.Array]:
        values = [x, x + 1.0, x * 2.0, x - 1.0, 1.0 - x]
        for k in range(120):
            values[k % 5] = 0.5 * values[k % 5] * values[(k + 1) % 5] - values[(k + 2) % 5]
        return values[:results]

    def staged(x: jax.Array) -> jax.Array:
        return lax.fori_loop(0, 2, lambda _, y: jnp.tanh(sum(read_all(computed_once(stage, y)))), x)

    def plain(x: jax.Array) -> jax.Array:
        return lax.fori_loop(0, 2, lambda _, y: jnp.tanh(sum(stage(y))), x)

    x = jnp.linspace(0.1, 1.0, 1000)
    np.testing.assert_allclose(jax.jit(lambda x: in_one_kernel(staged, x))(x), plain(x), rtol=1e-12)


def test_long_stages_within_long_stages() -> None:
    """A stage's copy calls copies."""

    def inner(x: jax.Array) -> jax.Array:
        for _ in range(240):
            x = 0.5 * x * x - 0.1 * x
        return x

    def outer(x: jax.Array) -> jax.Array:
        return inner(1.0 - computed_once(inner, x))

    def staged(x: jax.Array) -> jax.Array:
        return computed_once(outer, x) + computed_once(inner, 0.5 * x)

    x = jnp.linspace(0.1, 1.0, 1000)
    expected = inner(1.0 - inner(x)) + inner(0.5 * x)
    np.testing.assert_allclose(jax.jit(lambda x: in_one_kernel(staged, x))(x), expected, rtol=1e-12, atol=1e-300)


def on_devices(x: jax.Array) -> dict[str, jax.Array]:
    """One way on a CPU, another elsewhere; says where it was traced."""

    def there(x: jax.Array) -> dict[str, jax.Array]:
        TRACED.append("there")
        return {"twice": 2.0 * x}

    def here(x: jax.Array) -> dict[str, jax.Array]:
        def twice(x: jax.Array) -> jax.Array:
            assert is_in_kernel()
            return x + x

        TRACED.append("here")
        assert not is_in_kernel()
        return {"twice": in_one_kernel(twice, x)}

    return on_cpu(here, there, x)


TRACED: list[str] = []


def test_ways_of_devices() -> None:
    """What is for another device is not traced, and is what is exported for it."""
    TRACED.clear()
    for function in (on_devices, jax.jit(on_devices), jax.vmap(on_devices), jax.jit(jax.vmap(on_devices))):
        np.testing.assert_array_equal(function(X)["twice"], 2.0 * X)
    assert TRACED
    assert set(TRACED) == {"here"}
    assert not is_in_kernel()
    assert "xla_cpu_small_call" in jax.jit(on_devices).lower(X).as_text()
    TRACED.clear()
    there = jax.jit(jax.vmap(on_devices)).trace(X).lower(lowering_platforms=("cuda",)).as_text()
    assert "there" in TRACED
    assert "xla_cpu_small_call" not in there


def test_kernels_under_vmap() -> None:
    """Of a function of one world, and of some of its arguments."""

    def scaled(x: jax.Array, y: jax.Array) -> jax.Array:
        return in_one_kernel(lambda x, y: rolled(x) * y, x, y)

    found = jax.jit(jax.vmap(scaled, (None, 0)))(X, jnp.arange(3.0))
    np.testing.assert_allclose(found, rolled(X) * jnp.arange(3.0)[:, None, None], rtol=1e-15)


def test_exported_programs_carry_no_mark() -> None:
    """They may be run by versions that were never tested."""
    function = jax.jit(own(rolled))
    exported = jax.export.export(function)(X)
    assert "xla_cpu_small_call" in function.lower(X).as_text()
    assert "xla_cpu_small_call" not in exported.mlir_module()
    np.testing.assert_allclose(exported.call(X), rolled(X), rtol=1e-15)


def test_the_environment_turns_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MBJAX_ONE_KERNEL", "0")
    assert not kernels(own(rolled), X)[0]
    monkeypatch.setenv("MBJAX_ONE_KERNEL", "1")
    assert kernels(own(rolled), X)[0]


def test_versions_that_were_not_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    """They have no kernels, and say so once; not where kernels are turned off anyway."""
    monkeypatch.setattr(jax, "__version_info__", (99, 1, 0))
    is_tested_version.cache_clear()
    try:
        monkeypatch.setenv("MBJAX_ONE_KERNEL", "0")
        assert not kernels(own(rolled), X)[0]
        monkeypatch.delenv("MBJAX_ONE_KERNEL")
        with pytest.warns(UserWarning, match="was not tested with JAX"):
            assert not kernels(own(rolled), X)[0]
        assert not kernels(own(rolled), X)[0]
        np.testing.assert_allclose(own(rolled)(X), rolled(X), rtol=1e-15)
    finally:
        is_tested_version.cache_clear()


@pytest.mark.whole_run("devices that share out worlds in test_shard_map.py and test_sharded_worlds.py")
def test_programs_of_several_devices() -> None:
    """They are left as they are."""
    program = """
        import jax, jax.numpy as jnp, mbjax
        model = mbjax.load(mbjax.reference_models.path("arm"))
        q = mbjax.default_state(model).q
        devices = jax.make_mesh((2,), ("worlds",))
        everywhere = jax.sharding.NamedSharding(devices, jax.sharding.PartitionSpec())
        expected = mbjax.mass_matrix(model, q)
        found = jax.jit(mbjax.mass_matrix)(jax.device_put(model, everywhere), jax.device_put(q, everywhere))
        assert len(found.sharding.device_set) == 2
        assert jnp.allclose(found, expected, rtol=1e-5, atol=1e-6)  # they are sums there, no recursions
        by_world = jax.sharding.NamedSharding(devices, jax.sharding.PartitionSpec("worlds"))
        together = jax.jit(jax.vmap(lambda m, q: mbjax.forward_dynamics(m, q, q, q), (None, 0)))
        found = together(jax.device_put(model, everywhere), jax.device_put(jnp.stack([q, q + 0.1]), by_world))
        assert found.sharding.is_equivalent_to(by_world, 2)
        assert jnp.allclose(found, together(model, jnp.stack([q, q + 0.1])), rtol=1e-6, atol=1e-6)
    """
    environment = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, env=os.environ | environment)
