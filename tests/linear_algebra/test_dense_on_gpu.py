"""Dense solves as one kernel of a GPU: run by Pallas's interpreter on a CPU, and lowered for a GPU that is not here."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbjax.linear_algebra import chain, pivots_of_rows, solve_branch_rows
from tests.execution.test_gpu_kernels import num_kernels
from tests.models import relative_error

WORLDS = 3


def systems(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lower triangles of positive definite matrices, right-hand sides, and least pivots that some are below."""
    rng = np.random.default_rng(n)
    A = rng.normal(size=(WORLDS, n, n))
    A = np.tril(A @ A.transpose(0, 2, 1) + 0.1 * np.eye(n))
    return np.moveaxis(A, 0, -1), rng.normal(size=(n, WORLDS)), rng.uniform(0.5, 2.0, (n, WORLDS))


@pytest.mark.parametrize("n", [1, 17, 40])
def test_interpreted_a_block_solves_as_the_loops_do(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    A, b, least = systems(n)
    found = {}
    for setting in ("interpret", "0"):
        monkeypatch.setenv("MBJAX_GPU_KERNELS", setting)
        solve = jax.jit(lambda *x: (solve_branch_rows(chain(n), *x), pivots_of_rows(chain(n), x[0])))
        found[setting] = [*solve(A, b), *solve(A, b, least)]
    for x, y in zip(*found.values(), strict=True):
        assert relative_error(x, y) < 1e-12
    lower = np.moveaxis(A, -1, 0)
    whole = lower + np.tril(lower, -1).transpose(0, 2, 1)
    assert relative_error(found["interpret"][0].T, np.linalg.solve(whole, b.T[..., None])[..., 0]) < 1e-12


def test_a_gpu_gets_one_kernel_up_to_the_largest_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MBJAX_GPU_KERNELS", "1")
    for n, count in ((22, (1, 0)), (65, (0, 2))):
        A, b, _ = systems(n)
        for dtype in (np.float32, np.float64):
            solve = jax.jit(lambda *x, n=n: solve_branch_rows(chain(n), *x))
            assert num_kernels(solve, jnp.asarray(A, dtype), jnp.asarray(b, dtype)) == count


@pytest.mark.skipif(jax.default_backend() != "gpu", reason="no GPU is here")
def test_on_a_gpu_a_block_solves_as_the_loops_do(monkeypatch: pytest.MonkeyPatch) -> None:
    A, b, least = systems(22)
    found = []
    for setting in ("1", "0"):
        monkeypatch.setenv("MBJAX_GPU_KERNELS", setting)
        found.append(jax.jit(lambda *x: solve_branch_rows(chain(22), *x))(A, b, least))
    assert relative_error(*found) < 1e-12
