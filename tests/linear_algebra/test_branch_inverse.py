"""The inverse of matrices with the sparsity of a tree, both ways, beside numpy's."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbjax.execution.targets.cpu_kernel import in_one_kernel
from mbjax.linear_algebra.branch_inverse import inverse_of_branches, invert_in_products
from mbjax.linear_algebra.inverse_along_paths import invert_along_paths, last_in_common

TREES = {
    "one": (0,),
    "chain": tuple(range(9)),
    "branches": (0, 1, 2, 2, 4, 1, 6, 6, 8, 1),
    "forest": (0, 1, 0, 3, 3, 0),
}
WORLDS = 3


def matrices(parents: tuple[int, ...]) -> np.ndarray:
    """(n, n, w): Lᵀ D L of L that couple nodes with their ancestors."""
    rng, n = np.random.default_rng(4), len(parents)
    on_path = last_in_common(parents) == np.arange(n)
    assert np.array_equal(on_path, np.array([[b in path_of(parents, a) for b in range(n)] for a in range(n)]))
    L = np.where(on_path, rng.normal(size=(WORLDS, n, n)), 0.0)
    L[:, range(n), range(n)] = rng.uniform(0.5, 2.0, size=(WORLDS, n))
    return np.moveaxis(np.swapaxes(L, 1, 2) @ L, 0, -1)


def path_of(parents: tuple[int, ...], node: int) -> list[int]:
    """The node and its ancestors."""
    return [node, *(path_of(parents, parents[node] - 1) if parents[node] else [])]


@pytest.mark.parametrize("name", TREES)
def test_inverse(name: str) -> None:
    parents, A = TREES[name], matrices(TREES[name])
    expected = np.moveaxis(np.linalg.inv(np.moveaxis(A, -1, 0)), 0, -1)
    condition = max(np.linalg.cond(A[..., k]) for k in range(WORLDS))
    along_paths = jax.jit(lambda A: in_one_kernel(partial(invert_along_paths, parents), A))
    in_products = jax.jit(partial(invert_in_products, parents))
    for dtype in (np.float64, np.float32):
        for inverse in (along_paths, in_products):
            found = np.asarray(inverse(jnp.asarray(A, dtype)))
            assert np.abs(found - expected).max() < 4.0 * condition * np.finfo(dtype).eps * np.abs(expected).max()


def test_worlds_do_not_touch() -> None:
    """One that is not a number, one that is singular, and one between them."""
    A = matrices(TREES["branches"])
    spoiled = A.copy()
    spoiled[..., 0], spoiled[..., 2] = np.nan, 0.0
    inverse = jax.jit(partial(inverse_of_branches, TREES["branches"]))
    found, expected = inverse(jnp.asarray(spoiled)), inverse(jnp.asarray(A))
    assert np.array_equal(found[..., 1], expected[..., 1])
    assert not np.isfinite(found[..., 0]).any()
