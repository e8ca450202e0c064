"""Conjugate residuals: solutions of systems near one that is solved easily, and what limits their directions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbjax.linear_algebra.conjugate_residuals import solve_by_conjugate_residuals

RNG = np.random.default_rng(0)
NEAR = RNG.normal(size=(24, 24)) + 6 * np.eye(24)
FAR = NEAR + RNG.normal(size=(24, 5)) @ RNG.normal(size=(5, 24))  # five directions from it
RIGHT = RNG.normal(size=(8, 3))


def solve(A: jax.Array, b: jax.Array, near: np.ndarray = NEAR, num_directions: int = 12, iterations: int = 72):
    return solve_by_conjugate_residuals(
        lambda x: (A @ x.reshape(-1)).reshape(8, 3),
        lambda x: jnp.linalg.solve(near, x.reshape(-1)).reshape(8, 3),
        b,
        tolerance=1e-14,
        num_directions=num_directions,
        max_iterations=iterations,
    )


@pytest.mark.parametrize("num_directions", [6, 12])
def test_solutions_are_those_of_numpy(num_directions: int) -> None:
    """Of matrices that are not symmetric, beside one that is solved at once, and of a right side of zeros."""
    right = np.stack([RIGHT, RIGHT, 0 * RIGHT])
    matrices = np.stack([FAR, NEAR, FAR])
    found = jax.jit(jax.vmap(lambda A, b: solve(A, b, num_directions=num_directions, iterations=500)))(matrices, right)
    wanted = np.linalg.solve(matrices, right.reshape(3, -1, 1)).reshape(found.shape)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-11 * np.abs(wanted).max())


def test_a_matrix_that_differs_in_few_directions_takes_few() -> None:
    found = jax.jit(lambda b: solve(FAR, b, iterations=6))(RIGHT)
    wanted = np.linalg.solve(FAR, RIGHT.reshape(-1)).reshape(8, 3)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-11 * np.abs(wanted).max())


def test_what_has_no_solution_ends_and_neighbours_are_solved() -> None:
    """A matrix of zeros, one of NaN, one that is right."""
    matrices = np.stack([0 * FAR, np.nan * FAR, FAR])
    found = jax.jit(jax.vmap(lambda A: solve(A, RIGHT)))(matrices)
    wanted = np.linalg.solve(FAR, RIGHT.reshape(-1)).reshape(8, 3)
    np.testing.assert_allclose(found[2], wanted, rtol=0, atol=1e-11 * np.abs(wanted).max())
    assert np.all(np.isfinite(found[0]))
