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
from mbjax.system_identification.log import contact_jacobians, contact_projectors
from mbjax.system_identification.system import velocity_labels

from .robots import efforts, hopper, torque_log, two_links

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
        ("fit: start must be one number|1 number", lambda: si.fit(unknown, log, si.Torques(), start=np.zeros(2))),
        ("start must be 1 number.* such as fit.theta", lambda: si.fit(unknown, log, si.Torques(), start=typed(0.3))),
        ("start must be 1 number", lambda: si.fit(unknown, log, si.Torques(), start=typed({"mass:lower": 1.0}))),
        ("LevenbergMarquardt: max_steps must be", lambda: si.LevenbergMarquardt(max_steps=0)),
        ("FirstOrder: max_steps must be", lambda: si.FirstOrder(max_steps=0)),
    ):
        with pytest.raises(mbjax.ModelError, match=message):
            function()
    other = dataclasses.replace(log, name="other")
    for held_out, names in (([], []), ((), []), (log, ["log0"]), ([log, other], ["log0", "other"])):
        assert list(si.fit(unknown, log, si.Torques(), held_out=held_out).held_out_errors) == names


def typed(word: Any) -> Any:
    """A value that its argument's type does not allow."""
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


@pytest.fixture(scope="module")
def hops() -> dict[str, np.ndarray]:
    """A hopper that pushes the ground with forces nobody measured: efforts with noise, and Jacobians of its foot."""
    model, steps = hopper(), 40
    keys = jax.random.split(jax.random.key(1), 3)
    dq, v, vdot = (0.5 * jax.random.normal(key, (steps, model.num_velocities)) for key in keys)
    q = jax.vmap(lambda d: mbjax.integrate_configuration(model, model.parameters.default_positions, d))(dq)
    heavier = mbjax.set_mass(model, "trunk", 6.0)
    tau, more = (np.asarray(efforts(m, q, v, vdot)) for m in (model, heavier))
    J = np.asarray(jax.jit(lambda q: contact_jacobians(model, q, ("foot",), 3))(q))
    rng = np.random.default_rng(0)
    pushed = np.einsum("tiv,ti->tv", J, 30.0 * rng.normal(size=(steps, 3)))
    by_mass = more - tau
    return {
        "q": np.asarray(q), "v": np.asarray(v), "vdot": np.asarray(vdot), "J": J, "by_mass": by_mass,
        "effort": tau - pushed + 0.2 * rng.normal(size=tau.shape), "at_zero_mass": tau - 5.0 * by_mass,
    }  # fmt: skip


def mass_by_hand(
    hops: dict[str, np.ndarray], weight: np.ndarray, noise: np.ndarray | float = 1.0
) -> tuple[float, float, float, int]:
    """Mass, its deviation per noise, the noise, and how many data there are, in bases of what contacts cannot do."""
    A, b = [], []
    for k in range(len(weight)):
        kept = weight[k] > 0.0
        scale = (np.sqrt(weight[k]) / noise)[kept]
        U, S, _ = np.linalg.svd((hops["J"][k][:, kept] * scale).T)
        N = U[:, int(np.sum(S > 1e-9)) :]  # of errors that no force can explain
        A.append(N.T @ (scale * hops["by_mass"][k][kept]))
        b.append(N.T @ (scale * (hops["effort"][k] - hops["at_zero_mass"][k])[kept]))
    a, b = np.concatenate(A), np.concatenate(b)
    mass = float(a @ b / (a @ a))
    return mass, float(1.0 / np.sqrt(a @ a)), float(np.sqrt(np.mean((b - mass * a) ** 2))), len(a)


@pytest.mark.parametrize("case", ["all", "rows", "weights"])
def test_contacts_leave_data_of_one_noise(hops: dict[str, np.ndarray], case: str) -> None:
    """What remains beside unmeasured forces has as many data as independent rows, and one noise for all joints.

    Efforts that were not measured enter nothing, whether left out by `rows` or sample by sample by weights.
    """
    model = hopper()
    labels = velocity_labels(model)
    weight = np.ones_like(hops["effort"])
    rows = None if case != "rows" else tuple(label for label in labels if label != "trunk_wy")
    if rows is not None:
        weight[:, labels.index("trunk_wy")] = 0.0
    if case == "weights":
        weight = np.random.default_rng(2).choice([0.0, 0.5, 1.0, 2.0], size=weight.shape)
    effort = np.where(weight > 0.0, hops["effort"], 1e3)
    log = si.make_log(
        model, 0.01 * np.arange(len(weight)), hops["q"], hops["v"], hops["vdot"], effort=effort, weight=weight
    )
    unknown = si.Parameters(mbjax.set_mass(model, "trunk", 4.0), {"mass:trunk": si.positive()})
    expected, deviation, noise, count = mass_by_hand(hops, weight)
    fit = si.fit(unknown, log, si.Torques(contacts=("foot",), rows=rows))
    np.testing.assert_allclose(fit.values["mass:trunk"], expected, rtol=1e-6)
    assert fit.num_data == count
    np.testing.assert_allclose([*fit.noise.values()], noise, rtol=0.06)  # of the last pass but one
    np.testing.assert_allclose(fit.standard_deviation["mass:trunk"], deviation * noise, rtol=0.08)  # if not quite white
    assert abs(fit.values["mass:trunk"] - 5.0) < 4.0 * deviation * noise
    if case == "all":
        return
    known = si.fit(unknown, log, si.Torques(contacts=("foot",), rows=rows, noise=0.2))
    np.testing.assert_allclose(known.values["mass:trunk"], expected, rtol=1e-6)
    np.testing.assert_allclose(known.standard_deviation["mass:trunk"], 0.2 * deviation, rtol=0.08)


@pytest.mark.whole_run("one noise of all joints, above")
def test_contacts_beside_joints_of_different_noise(hops: dict[str, np.ndarray]) -> None:
    """Noises that are given by joint weigh what contacts leave; so do those of a robust loss, whose rows are direct."""
    model, noise = hopper(), np.array([0.2, 0.1, 0.4, 0.2, 0.3, 0.2, 0.05])
    unknown = si.Parameters(mbjax.set_mass(model, "trunk", 4.0), {"mass:trunk": si.positive()})
    steps = len(hops["q"])
    log = si.make_log(model, 0.01 * np.arange(steps), hops["q"], hops["v"], hops["vdot"], effort=hops["effort"])
    expected, deviation, _, count = mass_by_hand(hops, np.ones_like(hops["effort"]), noise)
    fit = si.fit(unknown, log, si.Torques(contacts=("foot",), noise=list(noise)))
    np.testing.assert_allclose(fit.values["mass:trunk"], expected, rtol=1e-6)
    np.testing.assert_allclose(fit.standard_deviation["mass:trunk"], deviation, rtol=0.08)
    assert fit.num_data == count
    robust = si.fit(unknown, log, si.Torques(contacts=("foot",), loss=si.Loss("huber", 20.0), noise=list(noise)))
    np.testing.assert_allclose(robust.values["mass:trunk"], expected, rtol=1e-5)
    assert robust.num_data == count


def test_units_do_not_decide_what_is_seen() -> None:
    """Behind a gear of 160 a rotor's inertia is a small number, and seen no better than the armature beside it."""
    plant = mbjax.MultibodyPlant(0.0)
    plant.add_rigid_body("rod", mbjax.SpatialInertia(1.0, [0.0, 0.0, -0.1], mbjax.UnitInertia(0.02, 0.02, 0.01)))
    plant.add_joint(mbjax.RevoluteJoint("joint", "world", "rod", axis=[0.0, 1.0, 0.0]))
    plant.add_joint_actuator("motor", "joint", gear_ratio=160.0, rotor_inertia=1e-6)
    unknown = si.Parameters(plant.finalize(), {"armature:joint": si.free(), "rotor_inertia:motor": si.free()})
    fit = si.fit(unknown, torque_log(unknown.base.model, noise=0.01), si.Torques())
    assert fit.standard_deviation == {"armature:joint": np.inf, "rotor_inertia:motor": np.inf}
    assert len(fit.unseen) == 1


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
