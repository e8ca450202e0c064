"""Strategies on systems that are given: they agree, find dependent rows, and differentiate alike."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.gradients.checks import WHOLE_RUN, Gradients, central_differences, compare, compiled
from tests.models import relative_error

SOLVERS = {
    "direct": mbjax.Direct(),
    "range space": mbjax.RangeSpace(),
    "null space": mbjax.NullSpace(),
    "proximal": mbjax.Proximal(),
}
NV, NC = 7, 4


def solve_all(H, G, c, gamma) -> dict[str, mbjax.ConstrainedAcceleration]:
    return {name: mbjax.solve_constrained_system(H, G, c, gamma, solver) for name, solver in SOLVERS.items()}


@functools.cache
def solved_in_batch():
    return compiled(jax.vmap(solve_all))


def systems(seed: int, count: int) -> list[np.ndarray]:
    """H, G, c and gamma of random regular systems."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(count, NV, NV))
    H = root @ root.transpose(0, 2, 1) + 0.3 * np.eye(NV)
    return [H, *(rng.normal(size=(count, *n)) for n in ((NC, NV), (NV,), (NC,)))]


def kkt(H, G, c, gamma) -> tuple[np.ndarray, np.ndarray]:
    """vdot and the smallest λ, by the pseudoinverse."""
    K = np.block([[H, G.T], [G, np.zeros((NC, NC))]])
    x = np.linalg.pinv(K, rcond=1e-12) @ np.concatenate([c, gamma])
    return x[:NV], -x[NV:]


@functools.cache
def mixed_worlds():
    """Regular, a row twice, a zero row, contradicting rows, all rows zero: what is asked and what is found."""
    H, G, c, gamma = systems(3, 5)
    G[1, 3], gamma[1, 3] = 2.0 * G[1, 0], 2.0 * gamma[1, 0]
    G[2, 1], gamma[2, 1] = 0.0, 0.0
    G[3, 2] = G[3, 1]  # gamma differs
    G[4], gamma[4] = 0.0, 0.0
    return (H, G, c, gamma), solved_in_batch()(H, G, c, gamma)


@pytest.mark.parametrize("name", SOLVERS)
def test_systems_that_have_a_solution(name: str) -> None:
    arguments, results = mixed_worlds()
    result = results[name]
    for i in (0, 1, 2, 4):
        vdot, force = kkt(*(x[i] for x in arguments))
        assert relative_error(result.vdot[i], vdot) < 1e-9
        H, G, c, _ = (x[i] for x in arguments)
        assert relative_error(H @ result.vdot[i] - G.T @ result.force[i], c) < 1e-9
        if i == 0 or name == "proximal":
            assert relative_error(result.force[i] + 1.0, force + 1.0) < 1e-8
    np.testing.assert_array_equal(result.num_redundant, [0, 1, 1, 1, 4])
    assert np.all(result.residual[jnp.array([0, 1, 2, 4])] < 1e-9)


def test_zero_and_repeated_rows_have_no_multiplier() -> None:
    _, results = mixed_worlds()
    for name in ("direct", "range space", "null space"):
        assert np.sum(np.asarray(results[name].force)[1] == 0.0) == 1
        assert np.sum(np.asarray(results[name].force)[2] == 0.0) == 1


def test_contradicting_rows() -> None:
    """Flagged by every strategy; the proximal one takes the least squares, half of the difference in each row."""
    (_, _, _, gamma), results = mixed_worlds()
    difference = abs(gamma[3, 1] - gamma[3, 2])
    for name, result in results.items():
        assert np.all(np.isfinite(result.force))
        expected = 0.5 * difference if name == "proximal" else difference
        np.testing.assert_allclose(result.residual[3], expected, rtol=1e-6)
    np.testing.assert_allclose(results["proximal"].force[3, 1], results["proximal"].force[3, 2], atol=1e-6)


@pytest.mark.whole_run("derivatives of motion under contacts, and the proximal law's beside the direct one's")
def test_gradients_of_all_arguments() -> None:
    """Also where a row is repeated: the multipliers then move on along the same split."""
    H, G, c, gamma = systems(5, 2)
    G[1, 3], gamma[1, 3] = G[1, 0], gamma[1, 0]
    sizes = np.cumsum([NV * NV, NC * NV, NV])

    def outputs(row):  # symmetric H; repeated rows are moved together
        H, G, c, gamma = jnp.split(row, sizes)
        H, G = H.reshape(NV, NV), G.reshape(NC, NV)
        twice = row[-1]
        gamma, G = gamma[:-1], G.at[3].set(jnp.where(twice > 0.5, G[0], G[3]))
        gamma = gamma.at[3].set(jnp.where(twice > 0.5, gamma[0], gamma[3]))
        solvers = (SOLVERS[name] for name in ("direct", "null space", "proximal"))
        results = [mbjax.solve_constrained_system(0.5 * (H + H.T), G, c, gamma, solver) for solver in solvers]
        return jnp.concatenate([jnp.concatenate([r.vdot, r.force @ G]) for r in results])

    rows = jnp.stack([jnp.concatenate([x[i].ravel() for x in (H, G, c, gamma)]) for i in range(2)])
    rows = jnp.concatenate([rows, jnp.array([[0.0], [1.0]])], axis=1)

    def derivatives(row):
        reverse = jax.jacrev(outputs)(row)
        return jax.jacfwd(outputs)(row) if WHOLE_RUN else reverse, reverse, central_differences(outputs, row)

    forward, reverse, differences = compiled(jax.vmap(derivatives))(rows)
    for i in range(2):
        names = [f"entry {k}" for k in range(rows.shape[1])]
        compare(Gradients(*(np.asarray(x[i]) for x in (forward, reverse, differences)), names))


def test_second_derivatives() -> None:
    H, G, c, gamma = (jnp.asarray(x[0]) for x in systems(6, 1))
    direction = jnp.asarray(np.random.default_rng(7).normal(size=G.shape))

    def slope(x):
        def cost(t):
            result = mbjax.solve_constrained_system(H * (1.0 + t * t), G + t * direction, c, gamma)
            return jnp.sum(jnp.sin(result.force)) + jnp.sum(jnp.sin(result.vdot))

        return jax.grad(cost)(x)

    second, difference = compiled(lambda x: (jax.grad(slope)(x), (slope(x + 1e-5) - slope(x - 1e-5)) / 2e-5))(0.3)
    np.testing.assert_allclose(second, difference, rtol=1e-7)


def test_wrong_shapes_and_strategies() -> None:
    H, G, c, gamma = (x[0] for x in systems(8, 1))
    with pytest.raises(mbjax.ModelError, match=r"H must be \(7, 7\) and G \(4, 7\)"):
        mbjax.solve_constrained_system(H, G.T, c, gamma)
    with pytest.raises(mbjax.ModelError, match="Kokkevis: articulated bodies need a model"):
        mbjax.solve_constrained_system(H, G, c, gamma, mbjax.Kokkevis())
    with pytest.raises(mbjax.ModelError, match="iterations must be a whole number of at least 1"):
        mbjax.Proximal(iterations=0)
    for mu in (-1.0, 0.0, np.inf):
        with pytest.raises(mbjax.ModelError, match="Proximal: mu must be a finite number > 0"):
            mbjax.Proximal(mu)


@pytest.mark.whole_run("double precision, and what stays single, in g53 of tests/gradients")
def test_single_precision() -> None:
    arguments = [jnp.asarray(x, jnp.float32) for x in systems(3, 5)]
    results = solved_in_batch()(*arguments)
    for name, result in results.items():
        assert result.vdot.dtype == jnp.float32
        for i in range(5):
            assert relative_error(result.vdot[i], kkt(*(np.asarray(x[i], float) for x in arguments))[0]) < 2e-4, name
