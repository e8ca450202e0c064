"""Riccati recursions against the dense linear system, the associative scan, and the conditions of a box's minimum."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbjax.trajectory_optimization.box_limits import solve_in_box
from mbjax.trajectory_optimization.expansion import Expansion
from mbjax.trajectory_optimization.parallel_riccati import solve_riccati_in_parallel
from mbjax.trajectory_optimization.riccati import solve_riccati

STEPS, N, M = 9, 4, 2


def random_expansion(seed: int) -> Expansion:
    """A convex linear-quadratic problem with gaps."""
    rng = np.random.default_rng(seed)

    def positive(count: int, size: int) -> np.ndarray:
        root = rng.normal(size=(count, size, size))
        return root @ root.transpose(0, 2, 1) + np.eye(size)

    H = positive(STEPS, N + M)
    arrays = (
        0.5 * rng.normal(size=(STEPS, N, N)),
        rng.normal(size=(STEPS, N, M)),
        rng.normal(size=(STEPS, N)),
        rng.normal(size=N),
        np.zeros(()),
        rng.normal(size=(STEPS + 1, N)),
        rng.normal(size=(STEPS, M)),
        np.concatenate([H[:, :N, :N], positive(1, N)]),
        H[:, N:, :N],
        H[:, N:, N:],
    )
    return Expansion(*map(jnp.asarray, arrays))


def solve_densely(e: Expansion) -> tuple[np.ndarray, np.ndarray]:
    """dx and du from the whole KKT system: unknowns x_0 … x_T, u_0 … u_T-1, and a multiplier for each row."""
    nx, nu = (STEPS + 1) * N, STEPS * M
    H, g = np.zeros((nx + nu, nx + nu)), np.zeros(nx + nu)
    C, d = np.zeros((nx, nx + nu)), np.zeros(nx)
    C[:N, :N], d[:N] = np.eye(N), e.gap_at_start
    for k in range(STEPS + 1):
        x, u, after = slice(k * N, (k + 1) * N), slice(nx + k * M, nx + (k + 1) * M), slice((k + 1) * N, (k + 2) * N)
        H[x, x], g[x] = e.l_xx[k], e.l_x[k]
        if k < STEPS:
            H[u, u], H[u, x], H[x, u], g[u] = e.l_uu[k], e.l_ux[k], e.l_ux[k].T, e.l_u[k]
            C[after, after], C[after, x], C[after, u], d[after] = np.eye(N), -e.A[k], -e.B[k], e.gaps[k]
    K = np.block([[H, C.T], [C, np.zeros((nx, nx))]])
    z = np.linalg.solve(K, np.concatenate([-g, d]))
    return z[:nx].reshape(STEPS + 1, N), z[nx : nx + nu].reshape(STEPS, M)


@pytest.mark.parametrize("seed", range(3))
def test_feedback_gives_the_solution_of_the_dense_system(seed):
    e = random_expansion(seed)
    feedback = solve_riccati(e, jnp.array(0.0), None)
    expected_x, expected_u = solve_densely(e)
    x = e.gap_at_start
    for k in range(STEPS):
        np.testing.assert_allclose(x, expected_x[k], atol=1e-11)
        u = -feedback.k[k] - feedback.K[k] @ x
        np.testing.assert_allclose(u, expected_u[k], atol=1e-11)
        x = e.A[k] @ x + e.B[k] @ u + e.gaps[k]
    np.testing.assert_allclose(x, expected_x[-1], atol=1e-11)


@pytest.mark.parametrize("seed", range(3))
def test_the_associative_scan_gives_the_recursions_feedback(seed):
    e = random_expansion(seed)
    one, other = solve_riccati(e, jnp.array(0.0), None), solve_riccati_in_parallel(e, jnp.array(0.0))
    for name in one._fields:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-10, atol=1e-10, err_msg=name)


def test_a_matrix_that_is_not_convex_is_told():
    e = random_expansion(0)
    bad = dataclasses.replace(e, l_uu=-100.0 * e.l_uu)
    assert not solve_riccati(bad, jnp.array(0.0), None).is_convex
    assert solve_riccati(bad, jnp.array(1e6), None).is_convex


@pytest.mark.parametrize("n", [1, 3, 8])
def test_minimum_in_a_box_satisfies_its_conditions(n):
    rng = np.random.default_rng(n)
    count = 50
    root = rng.normal(size=(count, n, n))
    H, g = root @ root.transpose(0, 2, 1) + 0.1 * np.eye(n), 3.0 * rng.normal(size=(count, n))
    low, high = -rng.uniform(0.0, 1.0, (count, n)), rng.uniform(0.0, 1.0, (count, n))
    x, free = jax.vmap(solve_in_box)(*map(jnp.asarray, (H, g, low, high)))
    slope = np.einsum("kij,kj->ki", H, x) + g
    assert np.all(x >= low)
    assert np.all(x <= high)
    np.testing.assert_allclose(np.where(free, slope, 0.0), 0.0, atol=1e-9)
    assert np.all(np.where(x <= low, slope >= -1e-9, True))
    assert np.all(np.where(x >= high, slope <= 1e-9, True))
    assert 0 < np.sum(~free) < count * n


def test_a_box_without_room_holds_the_effort():
    x, free = solve_in_box(jnp.eye(2), jnp.array([1.0, -1.0]), jnp.array([0.0, -5.0]), jnp.array([0.0, 5.0]))
    np.testing.assert_allclose(x, [0.0, 1.0])
    assert not free[0]
    assert free[1]
