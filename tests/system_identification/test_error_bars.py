"""Error bars that hold: filters, outliers, holes, weights, uneven times, friction, noise that is not white."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import system_identification as si

from mbjax.system_identification.linear_torques import changing_columns

from .robots import efforts, motion, torque_log, two_links

PATTERNS = {"mass:lower": si.positive(), "joint_damping:*": si.positive(), "joint_friction:*": si.positive()}
SIGMA = 0.05
SEEDS = 128


def share_inside(log: si.Log, noises: jax.Array) -> float:
    """Share of 95 % intervals that hold over many noises of one log, and that one fit agrees with the many."""
    unknown = si.Parameters(two_links(), PATTERNS)
    method = si.Torques(noise=SIGMA)
    fit = si.fit(unknown, dataclasses.replace(log, effort=log.effort + noises[0]), method)
    weights = jnp.asarray(method.known_weights(method.problem(unknown, [log])))

    def estimate(noise: jax.Array) -> jax.Array:
        problem = method.problem(unknown, [dataclasses.replace(log, effort=log.effort + noise)])
        return unknown.values(si.solve(problem, weights, si.LevenbergMarquardt(max_steps=8)))

    values = np.asarray(jax.jit(jax.vmap(estimate))(noises))
    np.testing.assert_allclose([*fit.values.values()], values[0], rtol=1e-5)
    deviation = np.array([*fit.standard_deviation.values()])
    truth = np.asarray(unknown.values(unknown.initial))
    return float(np.mean(np.abs(values - truth) < 1.96 * deviation))


def white(log: si.Log) -> jax.Array:
    return SIGMA * jax.random.normal(jax.random.key(1), (SEEDS, *log.effort.shape))


def test_intervals_hold_behind_a_filter() -> None:
    """Exact positions, noise of efforts alone: the filter takes from both sides alike, and its rows are decimated."""
    time, q, v, vdot = motion(2, steps=600)
    tau = efforts(two_links(), *map(jnp.asarray, (q, v, vdot)))
    log = si.make_log(two_links(), time, q, v, vdot, effort=tau, cutoff={"effort": 6.0})
    assert log.effort_filter is not None
    assert log.effort_filter.decimation == 6
    assert 0.92 < share_inside(log, white(log)) < 0.98


def test_a_filter_biases_nothing() -> None:
    """Whatever it takes away: without noise the numbers come back, near the motion's own frequencies too."""
    true = mbjax.set_joint_friction(mbjax.set_mass(two_links(), "lower", 1.7), "first", 0.9)
    exact = torque_log(true, steps=400)
    unknown = si.Parameters(two_links(), PATTERNS)
    log = si.make_log(
        true, exact.time, exact.q, exact.v, exact.vdot, effort=exact.effort, cutoff={"effort": 2.0}
    )  # fmt: skip
    holey = log.weighted(np.arange(400) % 90 > 20)
    for each in (log, holey):
        fit = si.fit(unknown, each, si.Torques())
        np.testing.assert_allclose([*fit.values.values()], np.asarray(unknown.values_of(true)), rtol=1e-7)
    assert fit.num_data < 2 * 400 / 15


@pytest.mark.parametrize("cutoff", [None, {"effort": 15.0}])
def test_outliers_move_nothing_where_the_noise_is_unknown(cutoff: dict | None) -> None:
    true = mbjax.set_mass(two_links(), "lower", 1.7)
    log = torque_log(true, noise=0.01, steps=400)
    effort = log.effort + 40.0 * (np.random.default_rng(0).random(log.effort.shape) < 0.02)
    spoilt = si.make_log(true, log.time, log.q, log.v, log.vdot, effort=effort, cutoff=cutoff)
    fit = si.fit(si.Parameters(two_links(), PATTERNS), spoilt, si.Torques(loss="huber"))
    assert fit.converged
    clean = si.fit(si.Parameters(true, PATTERNS), log, si.Torques())
    for name, value in clean.start.items():
        assert abs(fit.values[name] - value) < 3.5 * fit.standard_deviation[name], name
        assert fit.standard_deviation[name] < 1.3 * clean.standard_deviation[name], name
    assert abs(fit.values["mass:lower"] / 1.7 - 1.0) < 0.02


def test_base_parameters_have_error_bars() -> None:
    """Of a body whose numbers are not seen one by one; deviations follow from those of least squares by hand."""
    unknown = si.Parameters(two_links(), {"body:lower": si.physical(), "joint_damping:*": si.positive()})
    log = torque_log(two_links(), noise=0.01, steps=400)
    fit = si.fit(unknown, log, si.Torques())
    base = fit.base
    truth = base.parameters.values(si.linear_parameters(two_links())[np.array(changing_columns(unknown))])
    errors, deviations = (np.array([*x.values()]) for x in (base.values, base.standard_deviation))
    errors = (errors - truth) / deviations
    assert np.all(np.abs(errors) < 3.5)
    assert np.sqrt(np.mean(errors**2)) > 0.3
    names = si.linear_parameter_names(two_links())
    places = [names.index(base.parameters.names[i]) for i in base.parameters.independent]
    Y = np.asarray(si.regressor_of_log(two_links(), log.q, log.v, log.vdot))[..., places]
    X = (Y / np.array([*fit.noise.values()])[:, None]).reshape(-1, len(places))
    np.testing.assert_allclose(deviations, np.sqrt(np.diag(np.linalg.inv(X.T @ X))), rtol=0.1)
    low, high = base.intervals()["second.damping"]
    np.testing.assert_allclose(high - low, 2.0 * 1.96 * base.standard_deviation["second.damping"], rtol=1e-3)
    assert "lower.mc.x" in str(base)


@pytest.mark.parametrize("memory", [0.95, 0.0])
def test_correlated_noise_makes_longer_bars(memory: float) -> None:
    """Noise of the first order: a fit says what its samples are worth, and its intervals hold."""
    rng = np.random.default_rng(0)
    log = torque_log(two_links(), steps=1500)
    unknown = si.Parameters(two_links(), {"mass:lower": si.positive(), "joint_damping:*": si.positive()})
    errors = []
    for _ in range(12):
        noise = rng.normal(size=(1700, 2))
        for k in range(1, 1700):
            noise[k] += memory * noise[k - 1]
        noisy = dataclasses.replace(log, effort=log.effort + jnp.asarray(0.05 * noise[200:]))
        fit = si.fit(unknown, noisy, si.Torques())
        errors += [(fit.values[n] - fit.start[n]) / fit.standard_deviation[n] for n in fit.values]
        share = fit.effective_samples["first"] / fit.samples["first"]
        assert share < 0.15 if memory else share > 0.7
    assert 0.6 < np.sqrt(np.mean(np.square(errors))) < 1.4
    assert ("are not white: 1500 samples count as" in str(fit)) is (memory > 0.0)
