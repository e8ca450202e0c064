"""Factorizations: solutions solve, dependent rows are found; any size, with and without worlds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbjax.linear_algebra import (
    chain,
    coefficients,
    factor_branches,
    factor_rows,
    factor_semidefinite,
    factor_small,
    point_with_products,
    solve_branch_rows,
    solve_branches,
    solve_semidefinite,
    solve_small_inward,
    solve_small_outward,
)
from mbjax.linear_algebra.branch_factor import branch_rows, paths

WORLDS = 3
BUSH = (0, 1, 2, 2, 4, 1, 6, 0, 8)  # two trees, with branches
ROBOT = (*range(6), 6, 7, 6, 9)  # six velocities of a base, two legs of two
TREES = {
    "bush": BUSH,
    "robot": ROBOT,
    "long chain": chain(8),
    "chain": chain(6),
    "stars": (0, 1, 1, 1),
    "one": (0,),
    "none": (),
}


def tree_matrix(rng: np.random.Generator, parents: tuple[int, ...]) -> np.ndarray:
    """Positive definite, coupling nodes with their ancestors only."""
    _, ancestors, inboard = paths(parents)
    n = len(parents)
    L = np.eye(n)
    for k in range(n):
        for j in ancestors[k][inboard[k]]:
            L[k, j] = rng.normal()
    return L.T @ np.diag(rng.uniform(0.5, 2.0, n)) @ L


def worlds_last(make) -> np.ndarray:
    return np.stack([make() for _ in range(WORLDS)], axis=-1)


@jax.jit
def of_rows(G, b):
    factor = factor_rows(G)
    x = point_with_products(factor, b)
    return factor.kept, x, coefficients(factor, factor.projection(x))


@jax.jit
def of_semidefinite(S, G, b):
    factor = factor_semidefinite(S, G)
    return factor.kept, solve_semidefinite(factor, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_after_a_small_pivot_are_counted_right(dtype: type) -> None:
    """A row nearly along another leaves rounding, by its large multiplier, in those that follow from both."""
    rng = np.random.default_rng(3)
    small = 10.0 ** rng.uniform(np.log10(np.finfo(dtype).eps) / 2.0 + 1.7, -1.0, 200)
    rows = []
    for sine in small:
        turn = np.linalg.qr(rng.normal(size=(5, 5)))[0]
        plane = np.array([[1.0, 2.0], [-0.6, 1.0], [0.0, 1.0], [1.0, sine], [1.0, 0.0]])
        rows.append(plane @ turn[:2])
    G = jnp.asarray(np.stack(rows, axis=-1), dtype)
    kept, _ = of_semidefinite(jnp.einsum("ikw,jkw->ijw", G, G, precision="highest"), G, G[:, 0])
    np.testing.assert_array_equal(kept.T, [[False, False, False, True, True]] * len(small))


@pytest.mark.parametrize(("tree", "batched"), [*((tree, True) for tree in TREES), ("bush", False)])
def test_solutions_along_a_tree(tree: str, batched: bool) -> None:
    rng, parents = np.random.default_rng(0), TREES[tree]
    n = len(parents)
    A, b = worlds_last(lambda: tree_matrix(rng, parents)), rng.normal(size=(n, WORLDS))
    if not batched:
        A, b = A[..., 0], b[..., 0]
    factor, Y = jax.jit(lambda A, b: factor_branches(parents, A, b[:, None]))(A, b)
    x = jax.jit(lambda factor, b: solve_branches(parents, factor, b))(factor, b)
    np.testing.assert_allclose(np.einsum("ij...,j...->i...", A, x), b, atol=1e-13)
    energy = np.sum(np.asarray(Y[:, 0]) ** 2 * np.asarray(factor.one_over_D), axis=0)  # bᵀ A⁻¹ b
    np.testing.assert_allclose(energy, np.sum(b * np.asarray(x), axis=0), atol=1e-12)


@pytest.mark.parametrize(("tree", "batched"), [*((tree, True) for tree in TREES), ("robot", False)])
def test_one_solution_along_a_tree(tree: str, batched: bool) -> None:
    """Factored and solved at once, a short trunk as a dense matrix; pivots that are known to be more are more."""
    rng, parents = np.random.default_rng(1), TREES[tree]
    n = len(parents)
    A, b = worlds_last(lambda: tree_matrix(rng, parents)), rng.normal(size=(n, WORLDS))
    if not batched:
        A, b = A[..., 0], b[..., 0]
    rows = branch_rows(parents, jnp.asarray(A))
    x = solve_branch_rows(parents, rows, jnp.asarray(b))
    np.testing.assert_allclose(np.einsum("ij...,j...->i...", A, x), b, rtol=0.0, atol=1e-12)
    one_over_D = factor_branches(parents, jnp.asarray(A))[0].one_over_D
    kept = solve_branch_rows(parents, rows, jnp.asarray(b), 0.5 / one_over_D)
    np.testing.assert_array_equal(kept, x)
    if n:
        assert np.all(np.abs(solve_branch_rows(parents, rows, jnp.asarray(b), 1e20 / one_over_D)) < 1e-15)


@pytest.mark.parametrize("n", [24, 29, 60])
def test_dense_matrices_by_blocks(n: int) -> None:
    """Of many worlds, or one matrix for all; above the diagonal nothing is read. A row of any block may be clamped."""
    rng = np.random.default_rng(n)
    factors = rng.normal(size=(WORLDS, n, n))
    A = np.moveaxis(factors @ factors.swapaxes(1, 2) / n + 0.1 * np.eye(n), 0, -1)
    b = rng.normal(size=(n, WORLDS))
    lower = jnp.asarray(np.where(np.tri(n, dtype=bool)[..., None], A, 1e6))
    solve = jax.jit(lambda A, b, least: solve_branch_rows(chain(n), A, b, least))
    x = solve(lower, b, None)
    np.testing.assert_allclose(np.einsum("ijw,jw->iw", A, x), b, rtol=0.0, atol=1e-12)
    shared = solve(lower[..., :1], b, None)
    np.testing.assert_allclose(A[..., 0] @ shared, b, rtol=0.0, atol=1e-12)
    pivots = 1.0 / np.asarray(factor_branches(chain(n), jnp.asarray(A))[0].one_over_D)
    np.testing.assert_array_equal(solve(lower, b, 0.5 * pivots), x)
    for k in (0, n // 2, n - 1):
        least = np.zeros((n, WORLDS))
        least[k] = 1e30  # as if the row were not there
        others = np.delete(np.arange(n), k)
        left = solve(lower, b, least)
        assert np.all(np.abs(left[k]) < 1e-25)
        np.testing.assert_allclose(np.einsum("ijw,jw->iw", A[others][:, others], left[others]), b[others], atol=1e-12)


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("n", [1, 2, 6])
def test_small_matrices(n: int, batched: bool) -> None:
    """Written out; a row whose diagonal is infinite is as if it were not there."""
    rng = np.random.default_rng(n)
    A, b, c = worlds_last(lambda: tree_matrix(rng, chain(n))), *rng.normal(size=(2, n, WORLDS))
    if not batched:
        A, b, c = A[..., 0], b[..., 0], c[..., 0]
    factor = factor_small(jnp.asarray(A), jnp.asarray(b))
    x, y = solve_small_outward(factor), solve_small_outward(solve_small_inward(factor, jnp.asarray(c)))
    np.testing.assert_allclose(np.einsum("ij...,j...->i...", A, x), b, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(np.einsum("ij...,j...->i...", A, y), c, rtol=0.0, atol=1e-12)
    locked = n // 2
    A[locked, locked] = np.inf
    x = np.asarray(solve_small_outward(factor_small(jnp.asarray(A), jnp.asarray(b))))
    others = [k for k in range(n) if k != locked]
    assert np.all(x[locked] == 0.0)
    np.testing.assert_allclose(np.einsum("ij...,j...->i...", A[others][:, others], x[others]), b[others], atol=1e-12)


def test_worlds_may_share_the_matrix() -> None:
    rng = np.random.default_rng(1)
    A, b = tree_matrix(rng, BUSH)[..., None], rng.normal(size=(9, WORLDS))
    factor, _ = factor_branches(BUSH, jnp.asarray(A))
    np.testing.assert_allclose(A[..., 0] @ solve_branches(BUSH, factor, jnp.asarray(b)), b, atol=1e-13)


def dependent_rows(rng: np.random.Generator) -> np.ndarray:
    """Six rows of rank four: one repeats another in other units, one is zero to rounding."""
    G = rng.normal(size=(6, 7))
    G[4] = 1e-3 * G[1]
    G[2] = 1e-16 * rng.normal(size=7)
    return G


def test_dependent_rows_are_left_out() -> None:
    rng = np.random.default_rng(2)
    G = worlds_last(lambda: dependent_rows(rng))
    G[4, :, -1] = rng.normal(size=7)  # the last world has one dependent row less
    b = np.einsum("mnw,nw->mw", G, rng.normal(size=(7, WORLDS)))
    kept, x, c = of_rows(G, b)
    np.testing.assert_array_equal(np.sum(kept, axis=0), [4, 4, 5])
    np.testing.assert_allclose(np.einsum("mnw,nw->mw", G, x), b, atol=1e-12)
    np.testing.assert_allclose(np.einsum("mnw,mw->nw", G, c), x, atol=1e-12)  # the shortest x lies in the row space
    S = np.einsum("mnw,knw->mkw", G, G)
    kept, x = of_semidefinite(S, G, b)
    np.testing.assert_array_equal(np.sum(kept, axis=0), [4, 4, 5])
    assert not np.any(np.asarray(kept)[1, :2]), "of equal rows the last is kept"
    np.testing.assert_allclose(np.einsum("mkw,kw->mw", S, x), b, atol=1e-10)


def test_nearly_dependent_rows_are_kept() -> None:
    G = np.array([[1.0, 0.0, 0.0], [1.0, 1e-4, 0.0]])[..., None]
    kept, x, _ = of_rows(G, np.array([[1.0], [2.0]]))
    assert np.all(kept)
    np.testing.assert_allclose(x[:, 0], [1.0, 1e4, 0.0], rtol=1e-9)
    kept, _ = of_semidefinite(np.einsum("mnw,knw->mkw", G, G), G, np.array([[1.0], [2.0]]))
    assert np.all(kept)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_light_and_heavy_bodies_are_kept_and_cancelled_ones_are_not(dtype: type) -> None:
    """Mobilities say nothing of independence: here that of the first row is 1e-13 of the second's."""
    eps = np.finfo(dtype).eps
    G = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 10.0 * eps], [0.0, 0.0, 0.0]], dtype)[..., None]
    inverse_masses = np.array([1e-6, 1e7, 1.0], dtype)
    S = np.einsum("mnw,n,knw->mkw", G, inverse_masses, G)
    kept, x = of_semidefinite(S, G, np.ones((4, 1), dtype))
    np.testing.assert_array_equal(kept[:, 0], [True, True, False, False])
    np.testing.assert_allclose(x[:, 0], [1e6, 1e-7, 0.0, 0.0], rtol=8 * eps)
    compliant = factor_semidefinite(S + np.eye(4, dtype=dtype)[..., None], G, np.ones((4, 1), dtype))
    assert np.all(compliant.kept)


def test_bad_numbers_are_not_hidden() -> None:
    _, x = of_semidefinite(
        np.full((1, 1, 2), [[[np.nan, 2.0]]]), np.full((1, 1, 2), [[[np.nan, 1.0]]]), np.ones((1, 2))
    )
    assert np.isnan(x[0, 0])
    assert x[0, 1] == 0.5


@pytest.mark.parametrize("rows", [0, 1])
def test_no_rows_and_one(rows: int) -> None:
    G = np.ones((rows, 3, WORLDS))
    kept, x, _ = of_rows(G, np.ones((rows, WORLDS)))
    assert kept.shape == (rows, WORLDS)
    assert x.shape == (3, WORLDS)
    np.testing.assert_allclose(x, np.full((3, WORLDS), rows / 3.0), atol=1e-15)
    assert of_semidefinite(np.ones((rows, rows, WORLDS)), G, np.ones((rows, WORLDS)))[1].shape == (rows, WORLDS)


def test_the_program_does_not_grow() -> None:
    def operations(n: int) -> int:
        A, b = jnp.eye(n)[..., None] * jnp.ones(2), jnp.ones((n, 2))
        program = jax.jit(lambda A, b: solve_branches(chain(n), factor_branches(chain(n), A)[0], b))
        return program.lower(A, b).as_text().count(" = stablehlo.")

    assert operations(128) <= operations(32) + 16  # a sum by halves is one step longer for each doubling


def test_pivots_that_rounding_loses() -> None:
    """diag(m) + s g gᵀ in single precision with eps s > m: its pivots are not below those of diag(m)."""
    masses, stiffness = jnp.asarray([1e-3, 2e-3, 5e-3], jnp.float32), 1e9
    H = jnp.diag(masses) + jnp.full((3, 3), stiffness, jnp.float32)
    b = jnp.asarray([1.0, -1.0, 0.5], jnp.float32)

    @jax.jit
    def solution(least):
        return solve_branches(chain(3), factor_branches(chain(3), H, least=least)[0], b)

    assert not np.all(np.isfinite(solution(jnp.full(3, -jnp.inf, jnp.float32))))
    x = solution(masses)
    assert np.all(np.isfinite(x))
    assert jnp.dot(b, x) > 0.0
