"""Fits of efforts: exact without noise, honest deviations with it, robust losses, what the data do not see."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import system_identification as si
from mbjax.system_identification.log import contact_projectors

from .robots import hopper, torque_log, two_links

PATTERNS = {"body:*": si.physical(), "joint_friction:*": si.positive(), "joint_damping:*": si.positive()}


@pytest.fixture(scope="module")
def unknown() -> si.Parameters:
    return si.Parameters(two_links(), PATTERNS)


@pytest.fixture(scope="module")
def true(unknown: si.Parameters) -> mbjax.MultibodyModel:
    return unknown.model(unknown.initial + 0.4 * jax.random.normal(jax.random.key(0), unknown.initial.shape))


def base_error(model: mbjax.MultibodyModel, true: mbjax.MultibodyModel) -> float:
    base = si.base_parameters(true)
    expected = base.values(si.linear_parameters(true))
    return float(np.max(np.abs(base.values(si.linear_parameters(model)) - expected)) / np.max(np.abs(expected)))


def test_noise_free_base_parameters_are_exact(unknown: si.Parameters, true: mbjax.MultibodyModel) -> None:
    fit = si.fit(unknown, torque_log(true), si.Torques())
    assert fit.converged, fit.message
    assert base_error(fit.model, true) < 1e-6
    assert all(bool(mbjax.model_status(unknown.model(jnp.asarray(theta))).is_valid) for theta in fit.iterates)
    friction = fit.values["joint_friction:second"]
    np.testing.assert_allclose(friction, true.parameters.joint_friction[1], rtol=1e-6)
    assert fit.unseen
    assert fit.standard_deviation["inertia:upper.xx"] == np.inf


@pytest.mark.whole_run("intervals under white noise, in test_error_bars.py")
def test_deviations_are_honest() -> None:
    """Estimates of many noises scatter as `Fit.standard_deviation` says, and one of them is that fit's."""
    unknown = si.Parameters(two_links(), {"mass:lower": si.positive(), "joint_damping:*": si.positive()})
    log = torque_log(two_links())
    sigma = 0.05

    def noisy(key: jax.Array) -> si.Log:
        noise = sigma * jax.random.normal(key, log.effort.shape)
        return si.Log(log.time, log.q, log.v, log.vdot, log.effort + noise, log.external, log.actuation)

    def estimate(key: jax.Array) -> jax.Array:
        problem = si.Torques(noise=sigma).problem(unknown, [noisy(key)])
        return unknown.values(si.solve(problem, jnp.full(2, 1.0 / sigma), si.LevenbergMarquardt(max_steps=8)))

    keys = jax.random.split(jax.random.key(0), 64)
    values = np.asarray(jax.jit(jax.vmap(estimate))(keys))
    fit = si.fit(unknown, noisy(keys[0]), si.Torques(noise=sigma))
    np.testing.assert_allclose([*fit.values.values()], values[0], rtol=1e-6)
    deviation = np.array([*fit.standard_deviation.values()])
    assert np.all(np.abs(values.std(0) / deviation - 1.0) < 0.3)
    truth = np.asarray(unknown.values(unknown.initial))
    assert np.mean(np.abs(values - truth) < 1.96 * deviation) > 0.9


def test_a_value_at_the_end_of_its_range_is_named() -> None:
    """Damping that is zero in truth has a logarithm without end, so the search for it need not converge."""
    true = mbjax.set_joint_damping(two_links(), "second", 0.0)
    unknown = si.Parameters(two_links(), {"joint_damping:*": si.positive()})
    fit = si.fit(unknown, torque_log(true, noise=0.05), si.Torques(), solver=si.LevenbergMarquardt(max_steps=8))
    assert fit.at_end_of_range == ("joint_damping:second",)
    assert not fit.converged
    assert "At the end of their range within the error bars: joint_damping:second." in str(fit)


@pytest.mark.whole_run("outliers move nothing, in test_error_bars.py")
def test_robust_losses_ignore_outliers() -> None:
    true = mbjax.set_mass(two_links(), "lower", 1.7)
    log = torque_log(true, noise=0.01)
    effort = log.effort.at[::17].add(40.0)
    spoilt = si.make_log(true, log.time, log.q, log.v, log.vdot, effort=effort)
    unknown = si.Parameters(two_links(), {"mass:lower": si.positive(), "effort_bias:*": si.free()})
    robust = si.fit(unknown, spoilt, si.Torques(loss="huber", noise=0.2))
    assert abs(robust.values["mass:lower"] - 1.7) < 0.02
    assert abs(robust.values["effort_bias:first"]) < 0.2  # the mean of the outliers is 2.4


@pytest.mark.whole_run("exact base parameters, above; numbers of sensors among those of test_parameters.py")
def test_delay_and_gain_of_a_sensor() -> None:
    log = torque_log(two_links(), steps=300)
    late = np.asarray(log.effort)[2:-1] * 0.5 + np.asarray(log.effort)[1:-2] * 0.5  # 1.5 samples
    rows = slice(3, None)
    measured = si.make_log(two_links(), log.time[rows], log.q[rows], log.v[rows], log.vdot[rows], effort=1.3 * late)
    unknown = si.Parameters(two_links(), {"delay:effort": si.between(-0.05, 0.05), "effort_gain:*": si.positive()})
    fit = si.fit(unknown, measured, si.Torques())
    assert abs(fit.values["delay:effort"] - 0.015) < 5e-4
    assert abs(fit.values["effort_gain:first"] - 1.3) < 0.02


def test_no_influence_is_an_error_that_names_it() -> None:
    model = two_links()
    unknown = si.Parameters(model, {"mass:lower": si.positive(), "gear_ratio:*": si.free()})
    with pytest.raises(mbjax.ModelError, match="'gear_ratio:first_motor', 'gear_ratio:second_motor' never influence"):
        si.fit(unknown, torque_log(model), si.Torques())


def test_options_of_torques_and_fits_are_checked() -> None:
    model = two_links()
    log, unknown = torque_log(model), si.Parameters(model, {"mass:lower": si.positive()})
    motion = log.q, log.v, log.vdot
    for message, function in (
        ("Torques: noise must be a finite number > 0", lambda: si.fit(unknown, log, si.Torques(noise=-1.0))),
        (r"noise must be one number or 2 number\(s\)", lambda: si.fit(unknown, log, si.Torques(noise=[1.0] * 3))),
        ("Torques: contact_rows must be 3", lambda: si.fit(unknown, log, si.Torques(contact_rows=5))),
        ("regressor_of_log: contact_rows must be 3", lambda: si.regressor_of_log(model, *motion, contact_rows=5)),
        ("unseen must be 'error' or 'report'", lambda: si.fit(unknown, log, si.Torques(), unseen=typed("reprot"))),
        ("2 held-out logs are named 'log0'", lambda: si.fit(unknown, log, si.Torques(), held_out=[log, log])),
        ("LevenbergMarquardt: max_steps must be", lambda: si.LevenbergMarquardt(max_steps=0)),
        ("FirstOrder: max_steps must be", lambda: si.FirstOrder(max_steps=0)),
    ):
        with pytest.raises(mbjax.ModelError, match=message):
            function()
    other = dataclasses.replace(log, name="other")
    for held_out, names in (([], []), ((), []), (log, ["log0"]), ([log, other], ["log0", "other"])):
        assert list(si.fit(unknown, log, si.Torques(), held_out=held_out).held_out_errors) == names


def typed(word: str) -> Any:
    """A word that its argument's type does not allow."""
    return word


@pytest.mark.whole_run("fits of torques without contact")
def test_unmeasured_contact_forces_are_projected_out() -> None:
    model, feet = hopper(), ("foot",)
    true = mbjax.set_mass(model, "trunk", float(mbjax.mass(model, "trunk")) + 2.0)
    keys = jax.random.split(jax.random.key(0), 4)
    steps, nv = 12, model.num_velocities
    dq, v, vdot = (0.3 * jax.random.normal(key, (steps, nv)) for key in keys[:3])
    q = jax.vmap(lambda d: mbjax.integrate_configuration(model, model.parameters.default_positions, d))(dq)
    forces = jnp.zeros((steps, len(feet), 6)).at[..., 3:].set(10.0 * jax.random.normal(keys[3], (steps, len(feet), 3)))
    external = si.contact_generalized_forces(model, q, feet, forces)
    tau = jax.jit(jax.vmap(lambda *x: mbjax.inverse_dynamics(true, *x, force_elements=True)))(q, v, vdot) - external
    time = 0.01 * np.arange(steps)
    unknown = si.Parameters(model, {"mass:trunk": si.positive()})
    expected = float(mbjax.mass(true, "trunk"))
    blind = si.make_log(model, time, q, v, vdot, effort=tau)
    projected = si.fit(unknown, blind, si.Torques(noise=1.0, contacts=feet))
    np.testing.assert_allclose(projected.values["mass:trunk"], expected, rtol=1e-6)
    Y = si.regressor_of_log(model, q, v, vdot, feet)  # what remains of it is what remains of the efforts
    P = contact_projectors(model, q, feet, 3)
    np.testing.assert_allclose(Y @ si.linear_parameters(true), jnp.einsum("tij,tj->ti", P, tau), atol=1e-8)
    assert float(jnp.abs(external).max()) > 1.0
    measured = si.make_log(model, time, q, v, vdot, effort=tau, external=external)
    known = si.fit(unknown, measured, si.Torques(noise=1.0))
    np.testing.assert_allclose(known.values["mass:trunk"], expected, rtol=1e-6)


@pytest.mark.whole_run("a report and a robot by the command, in tests/command_line/test_identify.py")
def test_report_and_written_robot_stand_alone(unknown: si.Parameters, true: mbjax.MultibodyModel, tmp_path) -> None:
    log = torque_log(true, noise=0.01)
    fit = si.fit(unknown, log[:150], si.Torques(), held_out=log[150:])
    text = fit.report(tmp_path / "report.html").read_text()
    assert "data:image/png;base64" in text
    assert "http" not in text.replace("</html>", "")
    assert "mass:lower" in text
    assert "± deviation" in str(fit)
    for shown in (text, str(fit)):
        assert "± is what noise alone does" in shown  # it says nothing of bias
    assert set(fit.held_out_errors["log0"]) == {"first", "second"}
    robot = mbjax.load(mbjax.to_mjcf(fit.model, tmp_path / "fitted.xml"))
    np.testing.assert_allclose(mbjax.mass(robot, "lower"), fit.values["mass:lower"], rtol=1e-12)
    np.testing.assert_allclose(robot.parameters.joint_friction, fit.model.parameters.joint_friction, rtol=1e-12)


@pytest.mark.whole_run("exact friction among base parameters, above; sharp friction in test_error_bars.py")
@pytest.mark.parametrize("slope", [1e-1, 1e-9])
def test_no_slope_of_friction_gives_nan(slope: float) -> None:
    model = eqx.tree_at(lambda m: m.parameters.friction_velocity, two_links(), jnp.asarray(slope))
    log = torque_log(model, steps=20)
    still = si.make_log(model, log.time, log.q, log.v.at[5:9].set(0.0), log.vdot, effort=log.effort)
    unknown = si.Parameters(model, {"mass:lower": si.positive(), "joint_friction:*": si.positive()})
    problem = si.Torques(loss="huber").problem(unknown, [still])
    r, J = eqx.filter_jit(problem.rows)(problem.initial, jnp.ones(2))
    assert bool(jnp.all(jnp.isfinite(r)) & jnp.all(jnp.isfinite(J)))
