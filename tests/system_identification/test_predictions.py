"""Fits of recorded signals: stiffness and damping of a bar from points on it, with error bars; shared values."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import system_identification as si
from tests.gradients.checks import WHOLE_RUN

from ..deformable_meshes import held_bar

FRAMES, NOISE = 30, 5e-4
E, DAMPING = "youngs_modulus:bar", "stiffness_damping:bar"
TRUTH = {E: 8e4, DAMPING: 0.004}
CELLS = (4, 1, 1)
NUM_ELEMENTS = 24
SEEN = np.array([2, 3, 6, 7, 10, 11, 14, 15, 18, 19])


def bar(youngs_modulus: Any, stiffness_damping: float) -> mbjax.MultibodyModel:
    """A bar that is held at one end, with a modulus for each element, so that a program serves all bars here."""
    numbers = np.broadcast_to(youngs_modulus, NUM_ELEMENTS)
    return held_bar(
        mbjax.DeformableMaterial(numbers, 0.45, 1100.0, 0.0, stiffness_damping), CELLS, time_step=0.01
    ).finalize()


def points(model: mbjax.MultibodyModel, recording: Any = None) -> jax.Array:
    """Ten points on the bar's surface in each frame, after it was let go from a shape it was bent to."""
    del recording
    state = mbjax.default_state(model)
    x = state.nodes.position
    bent = x.at[:, 2].add(0.015 * (x[:, 0] / 0.08) ** 2)
    start = dataclasses.replace(state, nodes=mbjax.NodeState(bent, jnp.zeros_like(x)))
    return mbjax.rollout(model, start, num_steps=FRAMES).nodes.position[1:, SEEN]


TIME = 0.01 * np.arange(1, FRAMES + 1)
simulated: Callable = jax.jit(points)


def one_stiffness() -> si.Parameters:
    return si.Parameters(
        bar(4e4, 0.01), {"youngs_modulus:bar": si.shared("bar", si.positive()), DAMPING: si.positive()}
    )


@pytest.fixture(scope="module")
def clean() -> np.ndarray:
    return np.asarray(simulated(bar(TRUTH[E], TRUTH[DAMPING])))


def test_stiffness_and_damping_of_a_bar_from_ten_points(clean: np.ndarray) -> None:
    """To a millionth without noise; with it, 95 % intervals hold the truth as often as they should (whole run)."""
    unknown, method = one_stiffness(), si.Predictions(points, noise=NOISE)
    fit = si.fit(unknown, si.make_recording(TIME, clean), method)
    assert fit.converged
    for name, value in TRUTH.items():
        np.testing.assert_allclose(fit.values[name], value, rtol=1e-6)
    holds, off = [], []
    for seed in range(20 if WHOLE_RUN else 1):
        noisy = si.make_recording(TIME, clean + NOISE * np.random.default_rng(seed).normal(size=clean.shape))
        again = si.fit(unknown, noisy, method, start=fit.theta)
        z = [(again.values[name] - value) / again.standard_deviation[name] for name, value in TRUTH.items()]
        holds.append(np.abs(z) < 1.96)
        off.append(again.standard_deviation[E] / TRUTH[E])
    assert 0.001 < np.mean(off) < 0.05
    assert not WHOLE_RUN or np.sum(holds, axis=0).min() >= 17  # of 20, binomial: fewer once in 60 for a right interval
    unknown_noise = si.fit(unknown, noisy, si.Predictions(points), start=fit.theta, held_out=noisy)
    assert all(abs(rms / NOISE - 1.0) < 0.4 for rms in unknown_noise.noise.values())
    for name, value in TRUTH.items():
        assert abs(unknown_noise.values[name] - value) < 4.0 * unknown_noise.standard_deviation[name]
    assert unknown_noise.num_data == clean.size


def test_samples_are_those_of_each_channel_and_correlated_errors_are_told() -> None:
    """Deviations take errors for independent; where they are not, the fit says so."""
    model = mbjax.load("acrobot")

    def predict(model: mbjax.MultibodyModel, recording: si.Recording) -> jax.Array:
        return jnp.stack([model.parameters.body_mass[0] * (k + jnp.zeros(200)) for k in (1.0, 2.0)], 1)

    unknown = si.Parameters(model, {f"mass:{model.body_names[1]}": si.positive()})
    rng, mass = np.random.default_rng(0), float(model.parameters.body_mass[0])
    noise = 0.01 * rng.normal(size=(300, 2))
    for k in range(1, 300):
        noise[k, 1] += 0.95 * noise[k - 1, 1]
    values = mass * np.array([1.0, 2.0]) + noise[100:]
    values[50:, 0] = np.nan
    fit = si.fit(unknown, si.make_recording(0.01 * np.arange(200), values), si.Predictions(predict))
    assert fit.samples == {"0": 50, "1": 200}
    assert fit.num_data == 250
    assert len(fit.advice) == 1
    assert "Errors of '1' are correlated with those of the sample before by 0.9" in str(fit)


@pytest.mark.whole_run("the fits of the bar")
def test_what_was_not_seen_does_not_count(clean: np.ndarray) -> None:
    """NaN is no data: residuals by hand, and their Jacobian by differences."""
    unknown, method = one_stiffness(), si.Predictions(points, noise=NOISE)
    spoiled = clean + NOISE * np.random.default_rng(3).normal(size=clean.shape)
    spoiled[5:9, 2], spoiled[7, :, 1] = np.nan, np.nan
    recording = si.make_recording(TIME, spoiled)
    problem = method.problem(unknown, (recording,))
    assert problem.num_data == np.isfinite(spoiled).sum()
    weights = jnp.full(len(problem.channel_names), 1.0 / NOISE)
    r, J = jax.jit(lambda y: problem.rows(y, weights))(problem.initial)
    residuals = jax.jit(lambda y: problem.residuals(y, weights))
    np.testing.assert_allclose(r, residuals(problem.initial), rtol=0, atol=1e-9)
    at = problem.initial
    for k in range(2):
        h = 1e-5 * jnp.eye(2)[k]
        by_differences = (residuals(at + h) - residuals(at - h)) / 2e-5
        np.testing.assert_allclose(J[:, k], by_differences, rtol=0, atol=1e-6 * float(jnp.abs(J).max()))
    predicted = simulated(unknown.model(at))
    expected = np.where(np.isfinite(spoiled), np.asarray(predicted) - np.nan_to_num(spoiled), 0.0) / NOISE
    np.testing.assert_allclose(np.sum(r**2), np.sum(expected**2), rtol=1e-10)


@pytest.mark.whole_run("dampings that are shared, and the fits of the bar")
def test_two_halves_share_a_value_each(clean: np.ndarray, tmp_path: Any) -> None:
    model = bar(4e4, 0.004)
    assert model.deformables is not None
    elements = model.deformables.tetrahedra("bar")
    is_outer = np.asarray(model.deformables.reference_positions)[elements, 0].mean(1) > 0.04
    halves = {
        f"youngs_modulus:bar.{k}": si.shared("outer" if is_outer[k] else "inner", si.positive())
        for k in range(NUM_ELEMENTS)
    }
    unknown = si.Parameters(bar(4e4, 0.004), halves)
    assert sorted(unknown.names) == ["youngs_modulus:inner", "youngs_modulus:outer"]
    two = bar(np.where(is_outer, 3e4, 6e4), 0.004)
    values = dict(zip(unknown.names, np.asarray(unknown.values_of(two)), strict=True))
    assert values == {"youngs_modulus:inner": 6e4, "youngs_modulus:outer": 3e4}
    again = unknown.model(unknown.numbers(two)).deformables
    assert again is not None
    np.testing.assert_allclose(again.youngs_modulus, two.deformables.youngs_modulus, rtol=1e-12)
    data = np.asarray(simulated(two))
    fit = si.fit(unknown, si.make_recording(TIME, data), si.Predictions(points, noise=NOISE))
    np.testing.assert_allclose(fit.values["youngs_modulus:inner"], 6e4, rtol=1e-6)
    np.testing.assert_allclose(fit.values["youngs_modulus:outer"], 3e4, rtol=1e-6)
    assert "Base parameters" not in fit.report(tmp_path / "report.html").read_text()
    with pytest.raises(mbjax.ModelError, match="no base parameters"):
        _ = fit.base
    names, measured, predicted = fit.method.prediction(unknown, fit.theta, fit.logs[0])
    assert names[:3] == ("0, 0", "0, 1", "0, 2")
    np.testing.assert_allclose(measured, predicted, atol=1e-9)


def test_rigid_joints_share_a_damping() -> None:
    model = mbjax.load("acrobot")
    unknown = si.Parameters(model, {"joint_damping:*": si.shared("joints", si.positive(start=0.2))})
    assert unknown.names == ("joint_damping:joints",)
    damping = unknown.model(unknown.initial + jnp.log(2.0)).parameters.joint_damping
    np.testing.assert_allclose(damping, 0.4)
    np.testing.assert_allclose(jax.jacfwd(unknown.values)(unknown.initial), 0.2)


def test_errors_name_what_to_do(clean: np.ndarray) -> None:
    model = mbjax.load("acrobot", time_step=0.01)
    time, zeros = np.arange(5.0), np.zeros((5, 2))
    recording = si.make_recording(time, zeros)
    unknown = si.Parameters(model, {"joint_damping:*": si.positive()})

    def fails(match: str, function: Callable) -> None:
        with pytest.raises(mbjax.ModelError, match=match):
            function()

    fails("from 1 to 1.5 in the model.*start=", lambda: si.Parameters(model, {"mass:*": si.shared("m", si.positive())}))
    fails("got physical", lambda: si.shared("m", si.physical()))
    fails("name of the common value", lambda: si.shared("", si.positive()))
    fails(
        "Numbers that share a value have one space",
        lambda: si.Parameters(
            model,
            {"mass:upper_link": si.shared("m", si.positive()), "mass:lower_link": si.shared("m", si.free())},
        ),
    )
    fails(
        "two unknowns are named 'mass:stand'",
        lambda: si.Parameters(model, {"mass:*": si.positive(), "mass:upper_link": si.shared("stand", si.positive())}),
    )
    fails("Trajectories fits logs of motions", lambda: si.fit(unknown, recording, si.Trajectories()))
    fails("si.Predictions", lambda: si.Trajectories().problem(one_stiffness(), ()))
    log = si.make_log(model, time, zeros)
    fails("got Log", lambda: si.fit(unknown, log, si.Predictions(lambda model, recording: zeros)))
    too_wide = si.Predictions(lambda model, recording: jnp.zeros((5, 3)))
    fails(r"shape \(5, 3\).*shape \(5, 2\)", lambda: si.fit(unknown, recording, too_wide))
    fails(
        "never influence", lambda: si.fit(unknown, recording, si.Predictions(lambda model, recording: jnp.ones((5, 2))))
    )
    fails("standard deviation > 0", lambda: si.fit(unknown, recording, si.Predictions(too_wide.predict, noise=-1.0)))
    fails("row for each time", lambda: si.make_recording(time, np.zeros((4, 2))))
    fails("rows 1 and 2", lambda: si.make_recording([0.0, 2.0, 1.0, 3.0, 4.0], zeros))
    fails("infinite", lambda: si.make_recording(time, np.where(zeros == 0.0, np.inf, 0.0)))
    fails("never seen", lambda: si.make_recording(time, np.full((5, 2), np.nan)))
    fails("expected 2 that differ", lambda: si.make_recording(time, zeros, names=["a", "a"]))
