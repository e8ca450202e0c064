"""Worlds whose search takes long go on in late turns: results are the same, whoever else is in the batch."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.core import ShapedArray

import mbjax
from mbjax.execution.worlds import chunks
from mbjax.execution.worlds.chunks import SMALLEST_CHUNK, VECTOR, size_of_chunk
from mbjax.execution.worlds.many_worlds import for_worlds
from tests.xla_options import SAME_KERNELS

SIZE, MOST = 8, 50  # worlds of a chunk, iterations


class Search(NamedTuple):
    """Newton's iterations for a square root: the value, how many there were, and whether that was the last."""

    value: jax.Array
    count: jax.Array
    done: jax.Array

    def is_unfinished(self) -> jax.Array:
        return ~self.done & (self.count < MOST)


def square_root(x: jax.Array, scale: jax.Array, found: Any = None) -> tuple:
    """The root, scaled, its iterations, and how many passes the turn took that found it; slower the larger x is."""

    def step(carry: tuple) -> tuple:
        now, passes = carry
        new = 0.5 * (now.value + x / now.value)
        done = now.done | ~(jnp.abs(new * new - x) > 1e-14 * x)
        value = jnp.where(now.done, now.value, new)
        return Search(value, now.count + jnp.where(now.done, 0, 1), done), passes + 1

    def unfinished(carry: tuple) -> jax.Array:
        going = carry[0].is_unfinished()
        return jnp.any(going) if found is None else jnp.sum(going) > found.allowed

    start = Search(jnp.ones_like(x), jnp.zeros(x.shape, jnp.int32), jnp.zeros(x.shape, bool))
    if found is not None:
        start = jax.tree.map(lambda new, old: jnp.where(found.goes_on, old, new), start, found.search)
        start = start._replace(done=start.done | ~found.wanted)
    search, passes = lax.while_loop(unfinished, step, (start, jnp.zeros(x.shape[-1:] and (1,), jnp.int32)))
    return (scale * search.value, search.count, jnp.broadcast_to(passes, x.shape)), search.value, search


@pytest.mark.parametrize("several", [0, 1, 2, 3, 40])
@pytest.mark.parametrize("numbers", [10, 200_000])
def test_sizes_of_chunks(several: int, numbers: int) -> None:
    """A batch at once, or whole vectors, of which the last computes few worlds again."""
    for worlds in range(2000):
        size = size_of_chunk(worlds, [ShapedArray((numbers,), np.float32)], several)
        if size != worlds:
            assert size % VECTOR == 0
            assert SMALLEST_CHUNK <= size < worlds
            assert -(-worlds // size) * size <= 1.25 * worlds


@pytest.mark.parametrize("worlds", [15, 16, 17, 23, 24, 31, 40])
def test_chunks_that_overlap(worlds: int, small_chunks: None) -> None:
    """Each world counts once in sums, has its own derivative, and stays alone where it is not a number."""

    def plain(x: jax.Array, shared: jax.Array) -> tuple:
        return jnp.sin(x * shared), jnp.sum(x * x * shared, 0)

    def of_one(x: jax.Array, shared: jax.Array) -> tuple:
        return for_worlds(plain, x, shared)

    rng = np.random.default_rng(worlds)
    x, shared = jnp.asarray(rng.normal(size=(worlds, 3))), jnp.asarray(rng.normal(size=3))
    weights = jnp.asarray(rng.normal(size=(worlds, 3))), jnp.asarray(rng.normal(size=worlds))

    def both(function):
        several = jax.vmap(function, (0, None))
        found, pull = jax.vjp(several, x, shared)
        tangents = jax.jvp(several, (x, shared), (weights[0], shared))[1]
        return found, pull(weights), tangents

    found, expected = (jax.jit(lambda f=f: both(f))() for f in (of_one, plain))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14), found, expected)
    program = jax.jit(jax.vmap(of_one, (0, None))).lower(x, shared).as_text()
    assert "while" in program
    assert f"tensor<3x{SIZE}x" in program

    broken = x.at[worlds - 6].set(jnp.nan)
    values, slopes = jax.vmap(jax.value_and_grad(lambda x: jnp.sum(of_one(x, shared)[0])))(broken)
    is_broken = np.arange(worlds) == worlds - 6
    for found in (np.asarray(values), np.asarray(slopes)[:, 0]):
        np.testing.assert_array_equal(np.isnan(found), is_broken)


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    for size in ("CHUNK", "SEARCHING_CHUNK", "SMALLEST_CHUNK"):
        monkeypatch.setattr(chunks, size, SIZE)


@jax.jit
@jax.vmap
def root(x: jax.Array) -> tuple:
    return for_worlds(square_root, x, jnp.asarray(3.0), finds=True)


def of_all(x: np.ndarray) -> tuple:
    """Values, iterations and passes of a batch; every test here has small chunks."""
    return tuple(np.asarray(y) for y in root(jnp.asarray(x)))


@pytest.mark.parametrize("worlds", [9, 12, 13, 17, 25, 33, 64, 71, 160])
def test_late_turns_change_nothing(worlds: int, small_chunks: None) -> None:
    """One chunk or more, one late turn or more; slow worlds anywhere, none, all, and a whole chunk of them."""
    rng = np.random.default_rng(worlds)
    fast = rng.uniform(0.5, 2.0, worlds)
    slow = 10.0 ** rng.uniform(3.0, 9.0, worlds)
    cases = [np.where(rng.random(worlds) < share, slow, fast) for share in (0.0, 0.1, 0.5, 1.0)]
    cases += [np.where(np.arange(worlds) < SIZE, slow, fast), np.where(np.arange(worlds) >= worlds - 3, slow, fast)]
    for x in cases:
        value, count, _ = of_all(x)
        np.testing.assert_allclose(value, 3.0 * np.sqrt(x), rtol=1e-14)
        alone = [of_all(np.full(1, y)) for y in x[:: worlds // 5]]
        np.testing.assert_array_equal(count[:: worlds // 5], [a[1][0] for a in alone])
        np.testing.assert_array_equal(value[:: worlds // 5], [a[0][0] for a in alone])
        order = rng.permutation(worlds)
        for ours, theirs in zip((value, count), of_all(x[order])[:2], strict=True):
            np.testing.assert_array_equal(ours[order], theirs)


def test_fast_worlds_do_not_wait_for_slow_ones(small_chunks: None) -> None:
    """Up to a quarter of a chunk is left to late turns, which take only the iterations that are left."""
    x = np.where(np.arange(64) % 8 < 2, 1e9, 1.5)
    _, count, passes = of_all(x)
    fast, slow = count[2], count[0]
    assert slow > fast + 10
    np.testing.assert_array_equal(passes[x < 2.0], fast)
    np.testing.assert_array_equal(passes[x > 2.0], slow - fast)
    x[2] = 1e9  # one more than may be left: its chunk takes them all to their end, the others do not
    passes = of_all(x)[2]
    np.testing.assert_array_equal(passes[:8], slow)
    np.testing.assert_array_equal(passes[8:][x[8:] < 2.0], fast)


def test_worlds_that_break_take_no_places(small_chunks: None) -> None:
    """A NaN ends the search of its world: half of a batch may be NaN, and the others' late turns are as before."""
    x = np.where(np.arange(64) % 8 < 2, 1e9, 1.5)
    broken = np.arange(64) % 2 == 1
    value, count, passes = of_all(x)
    beside = of_all(np.where(broken, np.nan, x))
    assert np.isnan(beside[0][broken]).all()
    np.testing.assert_array_equal(beside[0][~broken], value[~broken])
    np.testing.assert_array_equal(beside[1][~broken], count[~broken])
    assert (beside[2][~broken] <= np.maximum(passes[~broken], count[~broken])).all()


def test_arguments_that_all_worlds_share(small_chunks: None) -> None:
    """Where only what the search does not see differs from world to world."""
    shared = jnp.asarray(1e5)
    root = jax.jit(jax.vmap(lambda scale: for_worlds(square_root, shared, scale, finds=True)[0]))
    scale = jnp.linspace(1.0, 2.0, 40)
    np.testing.assert_allclose(root(scale), scale * jnp.sqrt(shared), rtol=1e-14)


def test_chunks_are_several_kernels() -> None:
    """Which several cores compile; XLA of JAX 0.12 would make one kernel of the loop over them."""
    model = mbjax.load(mbjax.reference_models.path("arm"))
    x = jnp.ones((400, model.num_velocities), model.dtype)
    program = jax.jit(jax.vmap(functools.partial(mbjax.forward_dynamics, model))).lower(x, x, x)
    entry = program.compile(SAME_KERNELS).as_text().split("\nENTRY ")[1]
    assert " while(" in entry
    assert "xla_cpu_small_call" not in entry
