"""Fits of motions through `step`: MuJoCo's data, contact, both kinds of Jacobians, fitted starts."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import mbjax
from mbjax import system_identification as si
from mbjax.system_identification import sensitivities
from mbjax.system_identification.fit import errors_of
from mbjax.system_identification.problem import AbstractProblem
from mbjax.system_identification.shooting import inputs_of_steps
from mbjax.system_identification.solver import evaluate
from mbjax.system_identification.system import System
from mbjax.system_identification.trajectories import ShootingProblem
from mbjax.system_identification.windows import cut

from .robots import sliding_box, two_links

PENDULUM = """
<mujoco><option timestep="0.01" integrator="implicitfast"><flag contact="disable"/></option><worldbody>
<body name="rod"><inertial pos="0.05 0 -0.3" mass="1.3" diaginertia="0.02 0.03 0.01"/>
<joint name="hinge" type="hinge" axis="0 1 0" damping="0.2" armature="0.05"/><geom type="sphere" size="0.05"/></body>
</worldbody><actuator><motor name="motor" joint="hinge"/></actuator></mujoco>
"""


def simulated(model: mbjax.MultibodyModel, actuation: np.ndarray, name: str = "log") -> si.Log:
    """A log of the model's own steps."""
    trajectory = mbjax.rollout(model, mbjax.default_state(model), jnp.asarray(actuation))
    u = np.concatenate([actuation, actuation[-1:]])
    return si.make_log(model, trajectory.time, trajectory.q, trajectory.v, actuation=u, name=name)


def test_armature_and_damping_from_mujoco() -> None:
    theirs = mujoco.MjModel.from_xml_string(PENDULUM)
    data, steps = mujoco.MjData(theirs), 150
    u = 2.0 * np.sin(0.05 * np.arange(steps + 1))[:, None]
    rows = []
    for k in range(steps + 1):
        rows.append((data.qpos.copy(), data.qvel.copy()))
        data.ctrl[:] = u[k]
        mujoco.mj_step(theirs, data)
    q, v = (np.array(x) for x in zip(*rows, strict=True))
    model = mbjax.load(PENDULUM, time_step=0.01, on_unsupported="warn")
    model = mbjax.set_joint_armature(mbjax.set_joint_damping(model, "hinge", 0.5), "hinge", 0.01)
    unknown = si.Parameters(model, {"armature:hinge": si.positive(), "joint_damping:hinge": si.positive()})
    fit = si.fit(unknown, si.make_log(model, 0.01 * np.arange(steps + 1), q, v, actuation=u), si.Trajectories())
    assert fit.converged
    np.testing.assert_allclose(fit.values["joint_damping:hinge"], 0.2, rtol=1e-8)
    np.testing.assert_allclose(fit.values["armature:hinge"], 0.05, rtol=1e-8)


@pytest.mark.whole_run("armature and damping of one drive, above; offsets of sensors in test_torque_fits.py")
def test_two_actuators_of_a_joint_share_the_bias_of_its_sensor() -> None:
    """The effort that a joint's sensor shows is that of both, so its bias is no part of either alone."""
    plant = mbjax.MultibodyPlant(time_step=0.01)
    plant.add_rigid_body("rod", mbjax.SpatialInertia(1.0, [0.0, 0.0, -0.2], mbjax.UnitInertia(0.05, 0.05, 0.01)))
    plant.add_joint(mbjax.RevoluteJoint("joint", "world", "rod", axis=[0.0, 1.0, 0.0]))
    plant.add_joint_actuator("one", "joint")
    plant.add_joint_actuator("two", "joint")
    model = plant.finalize()
    efforts = 2.0 * np.sin(0.1 * np.arange(40))
    moved = mbjax.rollout(model, mbjax.default_state(model), jnp.asarray(0.5 * np.stack([efforts, efforts], 1)))
    measured = 1.3 * np.append(efforts, efforts[-1])[:, None] + 0.4
    log = si.make_log(model, moved.time, moved.q, moved.v, effort=measured)
    unknown = si.Parameters(model, {"effort_bias:joint": si.free(), "effort_gain:joint": si.positive()})
    fit = si.fit(unknown, log, si.Trajectories())
    found = fit.values["effort_bias:joint"], fit.values["effort_gain:joint"]
    np.testing.assert_allclose(found, [0.4, 1.3], rtol=1e-7)


@pytest.fixture(scope="module")
def box_log() -> si.Log:
    u = np.stack([3.0 + 2.0 * np.sin(0.3 * np.arange(60)), -4.0 * np.sin(0.2 * np.arange(60)) ** 2], 1)
    model = sliding_box()
    start = mbjax.set_default_positions(model, jnp.array([0.0, 0.0995]))
    return simulated(start, u, "push")


@pytest.fixture(scope="module")
def box() -> si.Parameters:
    """Friction and stiffness of the ball, of which the ground's are known; both start wrong."""
    model = mbjax.set_proximity_properties(
        sliding_box(), "ball::ball", static_friction=0.6, dynamic_friction=0.6, point_stiffness=3e4
    )
    return si.Parameters(model, {"friction:ball::ball": si.positive(), "stiffness:ball::ball": si.positive()})


@pytest.mark.whole_run("fits of armature and damping beside MuJoCo; numbers of surfaces in test_parameters")
def test_friction_and_stiffness_through_contact(
    box: si.Parameters, box_log: si.Log, request: pytest.FixtureRequest
) -> None:
    """Both are found, by a Jacobian that agrees with the other kind's and with finite differences.

    Trimmed: by that of single steps; forward mode is that of the pendulum above.
    """
    kinds = ("steps",) if request.config.getoption("--trimmed") else ("forward", "steps")
    methods = [
        si.Trajectories(horizon=20, jacobian=kind, initial="fitted", position_noise=1e-6, velocity_noise=1e-4)
        for kind in kinds
    ]
    fit = si.fit(box, box_log, methods[0])
    np.testing.assert_allclose(fit.values["friction:ball::ball"], 0.4, rtol=1e-2)
    np.testing.assert_allclose(fit.values["stiffness:ball::ball"], 2e4, rtol=1e-2)
    first, *others = (method.problem(box, [box_log]) for method in methods)
    weights, y = jnp.array([1.0, 1.0, 0.1, 0.1]), first.initial.at[:2].set(fit.theta - 0.1)

    def gradient_and_hessian(problem: ShootingProblem) -> tuple[jax.Array, jax.Array]:
        r, J, _ = evaluate(problem, y, weights)
        return J.T @ r, J.T @ J

    a, A = gradient_and_hessian(first)
    for b, B in map(gradient_and_hessian, others):
        np.testing.assert_allclose(A, B, atol=1e-8 * float(jnp.abs(A).max()))
        np.testing.assert_allclose(a, b, atol=1e-8 * float(jnp.abs(a).max()))

    def cost(y: jax.Array) -> jax.Array:
        return 0.5 * jnp.sum(evaluate(first, y, weights)[0] ** 2)

    d = jax.random.normal(jax.random.key(0), y.shape) * 1e-2
    numeric = (cost(y + 1e-4 * d) - cost(y - 1e-4 * d)) / 2e-4
    np.testing.assert_allclose(a @ d, numeric, rtol=1e-4)


@pytest.mark.whole_run("fits of armature and damping beside MuJoCo, from starts that are known")
def test_starts_are_fitted_with_the_rest() -> None:
    model = two_links(0.01)
    u = np.stack([np.sin(0.1 * np.arange(80)), np.cos(0.07 * np.arange(80))], 1)
    clean = simulated(model, u)
    rng = np.random.default_rng(0)
    q, v = (np.asarray(x) + 1e-3 * rng.normal(size=x.shape) for x in (clean.q, clean.v))
    noisy = si.make_log(model, clean.time, q, v, actuation=clean.actuation)
    unknown = si.Parameters(mbjax.set_mass(model, "lower", 0.8), {"mass:lower": si.positive()})
    method = si.Trajectories(horizon=40, initial="fitted", position_noise=1e-3, velocity_noise=1e-3)
    fit = si.fit(unknown, noisy, method)
    deviation = fit.standard_deviation["mass:lower"]
    assert abs(fit.values["mass:lower"] - 1.2) < 4.0 * deviation
    assert 0.5 < fit.chi_squared < 1.5
    assert fit.extra.shape == (8,)


@pytest.mark.whole_run("the problem is that of the other tests")
def test_first_order_solver_goes_the_same_way() -> None:
    model = two_links(0.01)
    log = simulated(model, np.ones((30, 2)))
    unknown = si.Parameters(mbjax.set_mass(model, "lower", 1.0), {"mass:lower": si.positive()})
    fit = si.fit(unknown, log, si.Trajectories(), solver=si.FirstOrder(learning_rate=0.02, max_steps=150))
    np.testing.assert_allclose(fit.values["mass:lower"], 1.2, rtol=2e-2)


def test_a_wrong_period_says_what_to_do() -> None:
    model = two_links(0.004)
    still = np.zeros((21, 2))
    log = si.make_log(model, 0.01 * np.arange(21), still, still)
    with pytest.raises(mbjax.ModelError, match=r"every 0.01 s, which is no multiple .* time_step=0.01"):
        si.Trajectories().problem(si.Parameters(model, {"mass:lower": si.positive()}), [log])


def test_options_of_trajectories_are_checked() -> None:
    model = two_links(0.01)
    unknown = si.Parameters(model, {"mass:lower": si.positive()})
    still = np.zeros((8, 2))
    log = si.make_log(model, 0.01 * np.arange(8), still, still, actuation=still)
    problem = si.Trajectories().problem(unknown, [log])
    for options, message in (
        ({"position_noise": 1e-3}, "give both position_noise and velocity_noise, or neither"),
        ({"position_noise": 0.0, "velocity_noise": 1.0}, "position_noise must be a finite number > 0, got 0"),
        ({"position_noise": 1.0, "velocity_noise": -1.0}, "velocity_noise must be a finite number > 0"),
        ({"position_noise": 1.0, "velocity_noise": [1.0, 2.0]}, "velocity_noise must be one number, got shape"),
        ({"jacobian": "step"}, "jacobian must be 'auto', 'forward' or 'steps', got 'step'"),
    ):
        with pytest.raises(mbjax.ModelError, match=f"Trajectories: {message}"):
            si.fit(unknown, log, si.Trajectories(**options))
    weights = si.Trajectories(position_noise=0.5, velocity_noise=0.1).known_weights(problem)
    np.testing.assert_allclose(weights, [2.0, 2.0, 10.0, 10.0])


def rod(time_step: float, *, is_driven: bool = True) -> mbjax.MultibodyModel:
    plant = mbjax.MultibodyPlant(time_step)
    plant.add_rigid_body("rod", mbjax.SpatialInertia(1.0, [0.0, 0.0, -0.5], mbjax.UnitInertia(0.3, 0.3, 0.05)))
    plant.add_joint(mbjax.RevoluteJoint("joint", "world", "rod", axis=[0.0, 1.0, 0.0], damping=0.1))
    if is_driven:
        plant.add_joint_actuator("motor", "joint")
    return plant.finalize()


def test_efforts_that_no_actuator_gives_are_refused() -> None:
    """Steps would lack them, and a fit would make damping of them; as external forces they act."""
    time, tau = 0.01 * np.arange(31), np.sin(0.2 * np.arange(31))[:, None]
    driven, passive = rod(0.01), rod(0.01, is_driven=False)
    unknown = si.Parameters(passive, {"joint_damping:joint": si.positive()})
    log = si.make_log(passive, time, tau, tau, tau, effort=tau)
    with pytest.raises(mbjax.ModelError, match=r"efforts of 'joint', up to 1 N m or N, which no actuator.*external="):
        si.fit(unknown, log, si.Trajectories())
    log = si.make_log(passive, time, tau, tau, tau, effort=0.0 * tau, external=tau)
    np.testing.assert_array_equal(si.Trajectories().problem(unknown, [log]).windows.external[0], tau)
    given = si.make_log(driven, time, tau, tau, tau, effort=1.1 * tau, actuation=tau)  # measured beside commanded
    si.Trajectories().problem(si.Parameters(driven, {"joint_damping:joint": si.positive()}), [given])


def short_step(system: System, state: mbjax.State, inputs: tuple[jax.Array, jax.Array]) -> mbjax.State:
    """A step of a damped pendulum by hand, which compiles at once."""
    model, (actuation, external) = system.model, inputs
    force = actuation + external - model.parameters.joint_damping * state.v - jnp.sin(state.q)
    v = state.v + model.time_step * force
    return mbjax.State(state.q + model.time_step * v, v, state.time)


def test_the_time_step_moves_positions_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of single steps' Jacobians are differences, though q+ = q + dt v+ depends on dt itself."""
    monkeypatch.setattr(sensitivities, "take_step", short_step)
    model = rod(0.01)
    unknown = si.Parameters(model, {"time_step:world": si.scaled(0.5, 2.0), "joint_damping:joint": si.positive()})
    ones = np.ones((9, 1))
    log = si.make_log(model, 0.01 * np.arange(9), ones, ones, ones, actuation=ones)
    windows = cut(model, [log], None)
    window = jax.tree.map(lambda x: x[0], windows)
    inputs = inputs_of_steps(window, "zero", 1)
    both = jax.jit(
        lambda theta: sensitivities.trajectory_and_sensitivities(unknown, theta, theta[:0], window, inputs, 1.0)
    )
    theta, h = unknown.initial + 0.05, 1e-5
    _, J = both(theta)
    for k in range(2):
        d = h * jnp.eye(2)[k]
        numeric = (both(theta + d)[0] - both(theta - d)[0]) / (2.0 * h)
        np.testing.assert_allclose(J[..., k], numeric, rtol=1e-5, atol=1e-8)


class Number(AbstractProblem):
    """Residuals that are a number each."""

    initial: jax.Array
    num_parameters: int = eqx.field(static=True)
    number: jax.Array

    def residuals(self, y: jax.Array, weights: jax.Array) -> jax.Array:
        return (self.number + 0.0 * y[0]) * weights

    def rows(self, y: jax.Array, weights: jax.Array) -> tuple[jax.Array, jax.Array]:
        return self.residuals(y, weights), jnp.ones((1, 1))

    def channel_squares(self, y: jax.Array) -> jax.Array:
        return self.residuals(y, jnp.ones(1)) ** 2

    channel_names = ("one",)
    num_data = 1


class Stepping(si.Trajectories):
    """A method whose steps lack 2 of the continuous motion."""

    def problem(self, unknown, logs):
        return Number(unknown.initial, 1, jnp.array([3.0]))

    def corrected(self, problem, y):
        return Number(problem.initial, 1, problem.number - 2.0) if self.continuous else problem


@pytest.mark.parametrize(("continuous", "expected"), [(False, 3.0), (True, 1.0)])
def test_held_out_errors_are_corrected_as_fitted_ones(continuous: bool, expected: float) -> None:
    unknown = si.Parameters(rod(0.02), {"joint_damping:joint": si.positive()})
    found = errors_of(Stepping(continuous=continuous), unknown, None, unknown.initial, np.ones(1))
    np.testing.assert_allclose(found["one"], expected)


@pytest.mark.whole_run("that held-out errors are corrected, above")
def test_held_out_errors_are_those_of_the_continuous_motion() -> None:
    """At the true damping almost nothing is left of them, though steps of 20 ms alone would leave hundreds as much."""
    model, time = rod(0.02), 0.02 * np.arange(31)
    weight, inertia = 9.81 * 0.5, 0.3

    def rate(_: float, x: np.ndarray) -> list[float]:
        return [x[1], -(weight * np.sin(x[0]) + 0.1 * x[1]) / inertia]

    x = solve_ivp(rate, (0.0, 0.6), [1.0, 0.0], t_eval=time, rtol=1e-10, atol=1e-12).y
    log = si.make_log(model, time, x[:1].T, x[1:].T, actuation=np.zeros((31, 1)))
    unknown = si.Parameters(model, {"joint_damping:joint": si.positive()})
    long, exact = (
        errors_of(si.Trajectories(continuous=continuous), unknown, log, unknown.initial, np.ones(2))
        for continuous in (False, True)
    )
    for name in exact:
        assert exact[name] < 0.02 * long[name]


def test_a_delay_is_refused() -> None:
    unknown = si.Parameters(two_links(0.01), {"delay:effort": si.between(-0.1, 0.1)})
    with pytest.raises(mbjax.ModelError, match=r"does not act on simulated motions\. Fit it with Torques"):
        si.Trajectories().problem(unknown, [])


def without_friction(time_step: float) -> mbjax.MultibodyModel:
    model = two_links(0.005)
    for name in ("first", "second"):
        model = mbjax.set_joint_friction(model, name, 0.0)
    return eqx.tree_at(lambda m: m.parameters.time_step, model, jnp.asarray(time_step))


@pytest.fixture(scope="module")
def fine_log() -> si.Log:
    """Samples every 5 ms of a motion in steps of 12.5 µs, with noise after the first."""
    samples, finer = 160, 400
    u = np.stack([1.5 * np.sin(0.05 * np.arange(samples + 1)), np.cos(0.035 * np.arange(samples + 1))], 1)
    fine = without_friction(0.005 / finer)
    motion = jax.jit(lambda u: mbjax.rollout(fine, mbjax.default_state(fine), u))(jnp.repeat(u[:-1], finer, 0))
    rng = np.random.default_rng(0)
    q, v = (np.array(x[::finer]) for x in (motion.q, motion.v))
    q[1:] += 1e-4 * rng.normal(size=q[1:].shape)
    v[1:] += 1e-3 * rng.normal(size=v[1:].shape)
    return si.make_log(fine, 0.005 * np.arange(samples + 1), q, v, actuation=u)


@pytest.mark.whole_run("fits of armature and damping beside MuJoCo")
def test_the_continuous_motion_is_fitted_by_long_steps(fine_log: si.Log) -> None:
    """Steps of 5 ms are told to be too long for the error bars; what they lack is made up for from shorter ones."""
    unknown = si.Parameters(without_friction(0.005), {"mass:lower": si.positive(), "joint_damping:*": si.positive()})

    def errors(**options) -> tuple[si.Fit, np.ndarray]:
        fit = si.fit(unknown, fine_log, si.Trajectories(position_noise=1e-4, velocity_noise=1e-3, **options))
        return fit, np.array([(fit.values[n] - fit.start[n]) / fit.standard_deviation[n] for n in fit.values])

    with pytest.warns(mbjax.ModelWarning, match="Half the step would move"):
        fit, off = errors()
    assert np.abs(off).max() > 5.0
    assert "the steps are too long" in str(fit)
    fit, off = errors(continuous=True)
    assert np.abs(off).max() < 3.0
    assert not fit.advice


@pytest.mark.whole_run("fits of armature and damping beside MuJoCo, whose steps are as long")
def test_more_substeps_come_nearer(fine_log: si.Log) -> None:
    unknown = si.Parameters(without_friction(0.005), {"mass:lower": si.positive(), "joint_damping:*": si.positive()})
    off = []
    for substeps in (1, 4):
        fit = si.fit(unknown, fine_log, si.Trajectories(substeps=substeps, position_noise=1e-4, velocity_noise=1e-3))
        off.append(max(abs(fit.values[n] - fit.start[n]) for n in fit.values))
    assert off[1] < 0.4 * off[0]
    with pytest.raises(mbjax.ModelError, match="'time_step:world' cannot be unknown"):
        si.Trajectories(substeps=2).problem(
            si.Parameters(two_links(0.01), {"time_step:world": si.positive()}), [fine_log]
        )


@pytest.mark.whole_run("fits of armature and damping beside MuJoCo")
def test_noisy_starts_are_told(fine_log: si.Log) -> None:
    """Errors of windows that start at noisy velocities grow along them, which white noise would not."""
    rng = np.random.default_rng(1)
    noisy = dataclasses.replace(fine_log, v=fine_log.v + jnp.asarray(0.02 * rng.normal(size=fine_log.v.shape)))
    unknown = si.Parameters(without_friction(0.005), {"mass:lower": si.positive(), "joint_damping:*": si.positive()})
    method = si.Trajectories(horizon=40, position_noise=1e-4, velocity_noise=0.02)
    problem = method.problem(unknown, [noisy])
    weights = method.known_weights(problem)
    assert weights is not None
    assert method.growth(problem, problem.initial, weights) > 2.0
    exact = dataclasses.replace(method, initial="fitted")
    assert exact.growth(problem, problem.initial, weights) == 1.0
