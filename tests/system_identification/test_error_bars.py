"""Error bars that hold: filters, outliers, holes, weights, uneven times, friction, noise that is not white."""

import dataclasses
import pathlib

import equinox as eqx
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


@pytest.mark.whole_run("intervals under white noise, and that a filter biases nothing, below")
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


@pytest.mark.parametrize(
    "cutoff", [pytest.param(None, marks=pytest.mark.whole_run("outliers behind a filter")), {"effort": 15.0}]
)
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


@pytest.mark.whole_run("exact base parameters in test_torque_fits.py, and intervals under white noise, below")
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


@pytest.mark.parametrize("memory", [pytest.param(0.95, marks=pytest.mark.whole_run("white noise")), 0.0])
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


@pytest.fixture
def lossy(tmp_path) -> tuple[pathlib.Path, np.ndarray, np.ndarray]:
    """A file of positions and noisy efforts with a hole of 0.24 s and 5 % lost samples; all times, and those kept."""
    time, q, v, vdot = motion(2, steps=800)
    tau = efforts(two_links(), *map(jnp.asarray, (q, v, vdot)))
    rng = np.random.default_rng(4)
    kept = rng.random(800) > 0.05
    kept[300:324] = False
    np.savez(tmp_path / "log.npz", time=time[kept], q=q[kept], tau=(tau + SIGMA * rng.normal(size=tau.shape))[kept])
    return tmp_path / "log.npz", time, kept


@pytest.mark.parametrize("options", [{}, {"cutoff": 10.0}, {"period": "recorded"}])
def test_interpolated_samples_are_no_data(lossy, options: dict) -> None:
    path, _, kept = lossy
    with pytest.warns(mbjax.ModelWarning, match=r"0.25 s are missing .* is no data"):
        log = si.read_log(path, two_links(), **options)
    is_data = np.asarray(log.weights[:, 0]) > 0.0
    if "period" in options:
        assert len(log) == kept.sum()
    else:
        assert not np.any(is_data & ~kept)
        spoilt = dataclasses.replace(log, effort=log.effort + jnp.where(jnp.asarray(is_data)[:, None], 0.0, 100.0))
    unknown = si.Parameters(two_links(), PATTERNS)
    fit = si.fit(unknown, log, si.Torques())
    for name, value in fit.start.items():
        assert abs(fit.values[name] - value) < 3.5 * fit.standard_deviation[name], name
    assert fit.errors["first"] < 1.2 * SIGMA
    if "period" not in options:
        again = si.fit(unknown, spoilt, si.Torques())
        np.testing.assert_allclose([*again.values.values()], [*fit.values.values()], rtol=1e-9)
    else:
        with pytest.raises(mbjax.ModelError, match="uneven times, and steps are even"):
            si.Trajectories().problem(si.Parameters(two_links(0.01), PATTERNS), [log])


def test_uneven_times_are_differentiated_to_fourth_order() -> None:
    time = 0.01 * np.arange(300) + 0.003 * np.sin(0.37 * np.arange(300))
    q, v, vdot = (
        np.stack([f(3.0 * time), f(5.0 * time)], 1) * [3.0**k, 5.0**k]
        for k, f in enumerate((np.sin, np.cos, minus_sine))
    )
    log = si.make_log(two_links(), time, q)
    np.testing.assert_allclose(log.v[2:-2], v[2:-2], atol=2e-5)
    np.testing.assert_allclose(log.vdot[4:-4], vdot[4:-4], atol=2e-3)
    with pytest.raises(mbjax.ModelError, match="a filter needs even times"):
        si.make_log(two_links(), time, q, cutoff=5.0)


def minus_sine(x: np.ndarray) -> np.ndarray:
    return -np.sin(x)


@pytest.mark.whole_run("lost samples, which have no weight, are no data, above")
def test_weights_are_of_samples_and_velocities() -> None:
    """Half the weight is twice the variance; none is no data; what does not fit is refused."""
    log = torque_log(two_links(), noise=0.01)
    unknown = si.Parameters(two_links(), PATTERNS)
    spoilt = dataclasses.replace(log, effort=log.effort.at[20:60, 1].add(30.0))
    mask = np.ones((200, 2))
    mask[20:60, 1] = 0.0
    fit = si.fit(unknown, spoilt.weighted(mask), si.Torques(noise=0.05))
    assert fit.samples == {"first": 200, "second": 160}
    assert abs(fit.values["mass:lower"] - 1.2) < 4.0 * fit.standard_deviation["mass:lower"]
    whole, half = (si.fit(unknown, log.weighted(np.full(200, w)), si.Torques(noise=0.05)) for w in (1.0, 0.5))
    np.testing.assert_allclose([*half.values.values()], [*whole.values.values()], rtol=1e-6)
    ratio = np.array([*half.standard_deviation.values()]) / np.array([*whole.standard_deviation.values()])
    np.testing.assert_allclose(ratio, np.sqrt(2.0), rtol=1e-6)
    ones = jnp.ones((200, 2))
    direction = jnp.zeros((200, 2)).at[70, 1].set(1.0)

    def cost(w: jax.Array) -> jax.Array:
        return jnp.sum(
            si.Torques(loss="huber").problem(unknown, [log.weighted(w)]).residuals(unknown.initial, jnp.ones(2)) ** 2
        )

    numeric = (cost(ones + 1e-5 * direction) - cost(ones - 1e-5 * direction)) / 2e-5
    np.testing.assert_allclose(jax.grad(cost)(ones)[70, 1], numeric, rtol=1e-6)
    for bad in (np.ones(3), -np.ones(200)):
        with pytest.raises(mbjax.ModelError, match="weights"):
            log.weighted(bad)


def test_sharp_friction_is_told_and_slow_samples_left_out() -> None:
    """The robot's friction is the sign of the velocity, the model's is smooth: bars hold without slow samples."""
    time, q, v, vdot = motion(2, steps=600)
    smooth = two_links()
    for name in ("first", "second"):
        smooth = mbjax.set_joint_friction(smooth, name, 0.0)
    tau = efforts(smooth, *map(jnp.asarray, (q, v, vdot))) + 2.0 * np.sign(v)
    model = two_links()
    for name in ("first", "second"):
        model = mbjax.set_joint_friction(model, name, 2.0)
    log = si.make_log(model, time, q, v, vdot, effort=tau)
    unknown = si.Parameters(
        model, {"mass:lower": si.positive(), "joint_damping:*": si.positive(), "joint_friction:*": si.positive()}
    )
    rng, inside = np.random.default_rng(0), []
    for _ in range(25):
        noisy = dataclasses.replace(log, effort=log.effort + jnp.asarray(0.02 * rng.normal(size=tau.shape)))
        fit = si.fit(unknown, noisy, si.Torques(slowest=0.15))
        inside += [abs(fit.values[n] - fit.start[n]) < 1.96 * fit.standard_deviation[n] for n in fit.values]
        assert not fit.advice
    assert np.mean(inside) > 0.9
    whole = si.fit(unknown, noisy, si.Torques())
    assert "Errors of 'second' are" in str(whole)
    assert "Torques(slowest=0.1)" in whole.advice[0]


@pytest.mark.whole_run("a filter biases nothing, sharp friction is told, and base parameters")
def test_stribeck_and_asymmetric_friction() -> None:
    """Laws that models do not have, with the width of Coulomb friction, come back from exact efforts."""
    time, q, v, vdot = motion(2, steps=400)
    sign = v / np.sqrt(v**2 + 0.05**2)
    model = eqx.tree_at(lambda m: m.parameters.friction_velocity, two_links(), jnp.asarray(0.05))
    tau = np.array(efforts(model, *map(jnp.asarray, (q, v, vdot))))
    tau[:, 0] += sign[:, 0] * 0.6 * np.exp(-((v[:, 0] / 0.4) ** 2)) + 0.2 * sign[:, 0] ** 2
    tau[:, 1] += 0.1 * v[:, 1] * sign[:, 1]
    unknown = si.Parameters(
        two_links(),
        {
            "joint_friction:*": si.positive(), "joint_damping:*": si.positive(), "stribeck:first": si.positive(),
            "stribeck_velocity:first": si.positive(), "friction_asymmetry:first": si.free(),
            "damping_asymmetry:second": si.free(), "friction_velocity:world": si.positive(),
        },
    )  # fmt: skip
    fit = si.fit(unknown, si.make_log(model, time, q, v, vdot, effort=tau), si.Torques())
    expected = {
        "stribeck:first": 0.6, "stribeck_velocity:first": 0.4, "friction_asymmetry:first": 0.2,
        "damping_asymmetry:second": 0.1, "friction_velocity:world": 0.05, "joint_friction:first": 0.4,
    }  # fmt: skip
    for name, value in expected.items():
        np.testing.assert_allclose(fit.values[name], value, rtol=1e-5, err_msg=name)
    np.testing.assert_allclose(fit.drives.stribeck, [0.6, 0.0], rtol=1e-5)
    with pytest.raises(mbjax.ModelError, match="'damping_asymmetry' does not act on simulated motions"):
        si.Trajectories().problem(unknown, [])
