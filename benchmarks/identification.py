"""System identification on this machine: accuracy, coverage and time; `python -m benchmarks.identification [CASE…]`.

robots     arm, UR10, Panda: from half wrong numbers to base parameters, without noise; coverage of deviations with it
mujoco     the five armatures of mujoco.sysid's own arm test, by both tools on the same data
isaac      23 joints, 285 parameters, 8 logs of 600 steps: Gauss-Newton Jacobian and what the data see
sensors    MuJoCo's data with noise, a delay and quantisation
regressor  time beside Pinocchio's computeJointTorqueRegressor
"""

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import mbjax
from mbjax import system_identification as si
from mbjax.system_identification.solver import evaluate

jax.config.update("jax_enable_x64", True)
warnings.simplefilter("ignore", mbjax.ModelWarning)

ROBOTS = {
    "arm": lambda: mbjax.load("arm"),
    "UR10": lambda: load_description("ur_description/urdf/ur10_robot.urdf"),
    "Panda": lambda: load_description("panda_description/urdf/panda.urdf"),
}
JOINTS = ("shoulder", "elbow", "wrist")


def load_description(path: str) -> mbjax.MultibodyModel:
    """A robot of example-robot-data, fixed to the ground."""
    import pathlib
    import sysconfig

    folder = pathlib.Path(sysconfig.get_path("purelib")) / "cmeel.prefix/share/example-robot-data/robots"
    return mbjax.load(folder / path, base="fixed", actuators="file", on_unsupported="warn")


def unknown_of(model: mbjax.MultibodyModel) -> si.Parameters:
    """Masses, centres, inertias and friction of all that moves; joints without friction get some to start from."""
    for joint in model.layout.joints:
        if joint.num_velocities:
            model = mbjax.set_joint_friction(model, joint.index, 0.5)
            model = mbjax.set_joint_damping(model, joint.index, 0.5)
    fixed = {f"body:{b.name}": si.fixed() for b in model.layout.bodies[1:] if b.mobod_index == 0}
    patterns = {"body:*": si.physical(), "joint_friction:*": si.positive(), "joint_damping:*": si.positive()}
    return si.Parameters(model, patterns | fixed)


def half_wrong(unknown: si.Parameters, seed: int) -> mbjax.MultibodyModel:
    """A model whose masses, inertias and friction differ by up to half, and whose centres moved by up to 3 cm."""
    rng = np.random.default_rng(seed)
    theta = np.array(unknown.initial)
    for i, name in enumerate(unknown.names):
        kind = name.partition(":")[0]
        if kind == "center_of_mass":
            theta[i] += rng.uniform(-0.6, 0.6)
        elif kind == "inertia":
            theta[i] += rng.uniform(-0.2, 0.2)
        else:
            theta[i] += np.log(rng.uniform(0.67, 1.5))
    return unknown.model(jnp.asarray(theta))


def motion_of(model: mbjax.MultibodyModel, steps: int = 800) -> tuple[np.ndarray, ...]:
    """Times, positions, velocities and accelerations of a lively motion."""
    rng, nv = np.random.default_rng(1), model.num_velocities
    t = 0.01 * np.arange(steps)
    w = 2.0 * np.pi * 0.15 * np.arange(1, 7)
    a, b = rng.normal(size=(2, 6, nv)) / np.arange(1, 7)[:, None]
    s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    return t, s @ a + c @ b, (c * w) @ a - (s * w) @ b, -(s * w**2) @ a - (c * w**2) @ b


def robots(repeats: int = 100) -> None:
    """Base parameters without noise, and how often deviations hold with one per cent of noise."""
    for name, make in ROBOTS.items():
        unknown = unknown_of(make())
        model, true = unknown.base.model, half_wrong(unknown, 3)
        t, *rows = motion_of(model)
        q, v, vdot = (jnp.asarray(x) for x in rows)
        tau = jax.jit(jax.vmap(lambda *x, m=true: mbjax.inverse_dynamics(m, *x, force_elements=True)))(q, v, vdot)
        start = time.perf_counter()
        fit = si.fit(unknown, si.make_log(model, t, q, v, vdot, effort=tau), si.Torques())
        took = time.perf_counter() - start
        base = si.base_parameters(model)
        beta = base.values(si.linear_parameters(true))
        error = np.abs(base.values(si.linear_parameters(fit.model)) - beta).max() / np.abs(beta).max()
        physical = all(bool(mbjax.model_status(unknown.model(jnp.asarray(x))).is_valid) for x in fit.iterates)
        sigma = 0.01 * np.asarray(jnp.std(tau, 0))
        share = coverage(unknown, base, true, (t, q, v, vdot, tau), sigma, repeats)
        print(
            f"{name:6} {len(unknown)} parameters, {base.rank} base: error {error:.1e} in {len(fit.costs)} steps, "
            f"{took:.1f} s with compiling; all iterates physical: {physical}; "
            f"95 % intervals held {100.0 * share:.1f} %",
            flush=True,
        )


def coverage(
    unknown: si.Parameters, base: si.BaseParameters, true: Any, data: tuple, sigma: np.ndarray, repeats: int
) -> float:
    """Share of base parameters within 1.96 deviations of the truth, over many noises."""
    t, q, v, vdot, tau = data
    model = unknown.base.model
    steps = len(t)
    Y = np.asarray(jax.jit(lambda *x: si.regressor_of_log(model, *x))(q, v, vdot))
    problem = si.Torques(noise=1.0).problem(unknown, [si.make_log(model, t, q, v, vdot, effort=tau)])
    changing = np.isin(np.arange(Y.shape[-1]), problem.columns)
    known = Y[..., ~changing] @ np.asarray(si.linear_parameters(true))[~changing]
    Q, R = zip(*(np.linalg.qr(Y[:, j, changing]) for j in range(Y.shape[1])), strict=True)
    rng = np.random.default_rng(5)
    noise = sigma * rng.normal(size=(repeats, steps, Y.shape[1]))
    measured = np.asarray(tau) - known + noise
    z = np.stack([measured[:, :, j] @ Q[j] for j in range(Y.shape[1])], 1)
    weighted = (Y[..., base.independent] / sigma[:, None]).reshape(-1, base.rank)
    deviation = np.sqrt(np.diag(np.linalg.inv(weighted.T @ weighted)))
    numbers = unknown.numbers(true)
    weights = jnp.asarray(1.0 / sigma)
    settings = si.LevenbergMarquardt(max_steps=60, rtol=1e-6, atol=1e-6)

    @jax.jit
    def estimate(z: jax.Array) -> jax.Array:
        n = len(problem.columns)
        rows = jnp.zeros((Y.shape[1], n, n + 2)).at[..., :n].set(jnp.stack(R)).at[..., -1].set(z)
        noisy = eqx.tree_at(lambda p: (p.R, p.initial), problem, (rows, numbers))
        return si.linear_parameters(unknown.model(si.solve(noisy, weights, settings)))

    inside = []
    for one in z:
        found = base.values(estimate(jnp.asarray(one)))
        inside.append(np.abs(found - base.values(si.linear_parameters(true))) < 1.96 * deviation)
    return float(np.mean(inside))


def mujoco() -> None:
    """mujoco.sysid's arm: same data, both tools."""
    from mujoco import sysid

    if not hasattr(sysid, "optimize"):
        raise SystemExit('mujoco.sysid lacks packages of its own: pip install "mujoco[sysid]"')
    from mujoco.sysid.tests.test_integration import ARM_XML, JOINT_NAMES, TRUE_ARMATURE, _generate_data

    phases, amplitudes = [0.0, 0.5, 1.0, 1.5, 2.0], [5.0, 4.0, 3.0, 2.0, 1.0]
    rates = 2.0 * np.pi * np.array([0.5, 0.7, 0.4, 0.9, 0.6])
    spec, x0, control, sensor = _generate_data(
        ARM_XML,
        lambda t: np.stack([a * np.sin(w * t + p) for a, w, p in zip(amplitudes, rates, phases, strict=True)], 1),
        2.0,
    )
    parameters = sysid.ParameterDict()
    for name in JOINT_NAMES:
        parameters.add(
            sysid.Parameter(
                f"{name}_armature", nominal=TRUE_ARMATURE[name], min_value=0.001, max_value=1.0,
                modifier=lambda s, p, n=name: setattr(s.joint(n), "armature", p.value[0]),
            )
        )  # fmt: skip
        parameters[f"{name}_armature"].value[:] = 0.01
    sequence = sysid.ModelSequences("arm", spec, "sinusoidal", x0, control, sensor)
    residual = sysid.build_residual_fn(models_sequences=[sequence])
    start = time.perf_counter()
    found, _ = sysid.optimize(initial_params=parameters, residual_fn=residual, optimizer="mujoco", verbose=False)
    theirs = time.perf_counter() - start
    their_error = max(abs(found[f"{n}_armature"].value[0] - TRUE_ARMATURE[n]) for n in JOINT_NAMES)
    model = mbjax.load(ARM_XML, time_step=0.002, on_unsupported="warn")
    unknown = si.Parameters(model, {"armature:*": si.between(0.001, 1.0, start=0.01)})
    rows = len(sensor.data)
    log = si.make_log(
        model, 0.002 * np.arange(rows), sensor.data[:, :5], sensor.data[:, 5:10], actuation=control.data[:rows]
    )
    print(f"mujoco.sysid: error {their_error:.1e} in {theirs:.2f} s")
    for horizon in (None, 25):
        times = []
        for _ in range(4):
            start = time.perf_counter()
            fit = si.fit(unknown, log, si.Trajectories(horizon=horizon))
            times.append(time.perf_counter() - start)
        error = max(abs(fit.values[f"armature:{n}"] - TRUE_ARMATURE[n]) for n in JOINT_NAMES)
        print(
            f"mbjax, windows of {horizon or len(log) - 1} samples: error {error:.1e} in {min(times[1:]):.2f} s, "
            f"{times[0]:.1f} s with compiling; {theirs / min(times[1:]):.2f} times as fast when compiled",
            flush=True,
        )
    by_efforts_of_steps(sensor.data[:, :10], control.data, TRUE_ARMATURE, ARM_XML, theirs)


def by_efforts_of_steps(x: np.ndarray, u: np.ndarray, truth: dict[str, float], xml: str, theirs: float) -> None:
    """The same armatures without simulating: M (v+ - v) / h + c(q, v) + D v+ = u holds for each implicit step.

    A log with (v+ - v) / h as its accelerations, and the damping of what a step changes taken off its efforts.
    """
    h, q, v = 0.002, x[:-1, :5], x[:, 5:]
    model = mbjax.load(xml, time_step=0.0, on_unsupported="warn")
    rate = np.diff(v, axis=0) / h
    effort = u[: len(q)] - np.asarray(model.parameters.joint_damping) * h * rate
    log = si.make_log(model, h * np.arange(len(q)), q, v[:-1], rate, effort=effort)
    unknown = si.Parameters(model, {"armature:*": si.between(0.001, 1.0, start=0.01)})
    times = []
    for _ in range(6):
        start = time.perf_counter()
        fit = si.fit(unknown, log, si.Torques(noise=1.0))
        times.append(time.perf_counter() - start)
    error = max(abs(fit.values[f"armature:{name}"] - value) for name, value in truth.items())
    print(
        f"mbjax, efforts of single steps: error {error:.1e} in {min(times[1:]):.3f} s, {times[0]:.1f} s with "
        f"compiling; {theirs / min(times[1:]):.2f} times as fast when compiled",
        flush=True,
    )


def humanoid_like(seed: int = 0, friction: float = 0.2) -> mbjax.MultibodyModel:
    """23 revolute joints in four limbs, as many bodies."""
    rng = np.random.default_rng(seed)
    plant = mbjax.MultibodyPlant(0.005)
    for i in range(23):
        G = mbjax.UnitInertia(*(0.01 + 0.01 * rng.random(3)), 0.0, 0.0, 0.0)
        plant.add_rigid_body(f"link{i}", mbjax.SpatialInertia(rng.uniform(0.5, 3.0), 0.02 * rng.normal(size=3), G))
        parent = "world" if i == 0 else f"link{0 if i % 6 == 1 else i - 1}"
        axis = rng.normal(size=3)
        plant.add_joint(
            mbjax.RevoluteJoint(f"joint{i}", parent, f"link{i}", X_PF=[0.0, 0.05, -0.15], axis=axis, damping=0.8)
        )
        plant.add_joint_actuator(f"motor{i}", f"joint{i}")
    model = plant.finalize()
    for i in range(23):
        model = mbjax.set_joint_armature(model, f"joint{i}", 0.05)
        model = mbjax.set_joint_friction(model, f"joint{i}", friction) if friction else model
    return model


def isaac(logs: int = 8, steps: int = 600, friction: float = 0.2) -> None:
    """Jacobian and identifiability of 285 parameters."""
    model = humanoid_like(friction=friction)
    kinds = {"joint_friction:*": si.positive()} if friction else {"effort_gain:*": si.positive()}
    patterns = {"body:*": si.physical(), "joint_damping:*": si.positive(), **kinds}
    unknown = si.Parameters(model, patterns | {f"armature:joint{i}": si.positive() for i in range(9)})
    rng = np.random.default_rng(1)
    t = 0.005 * np.arange(steps + 1)
    made = []
    for k in range(logs):
        phase, rate = rng.uniform(0, 6.28, 23), rng.uniform(2.0, 9.0, 23)
        u = 4.0 * np.sin(np.outer(t, rate) + phase)
        trajectory = mbjax.rollout(model, mbjax.default_state(model), jnp.asarray(u[:-1]))
        made.append(si.make_log(model, t, trajectory.q, trajectory.v, actuation=u, name=f"log{k}"))
    problem = si.Trajectories(jacobian="steps").problem(unknown, made)
    weights, theta = jnp.ones(46), problem.initial + 0.01
    start = time.perf_counter()
    r, J, _ = jax.block_until_ready(evaluate(problem, theta, weights))
    first, times = time.perf_counter() - start, []
    for _ in range(3):
        start = time.perf_counter()
        r, J, _ = jax.block_until_ready(evaluate(problem, theta, weights))
        S = np.linalg.svd(np.asarray(J) / np.maximum(np.linalg.norm(J, axis=0), 1e-300), compute_uv=False)
        times.append(time.perf_counter() - start)
    finite = bool(jnp.all(jnp.isfinite(J)) & jnp.all(jnp.isfinite(r)))
    print(
        f"{len(unknown)} parameters, {logs} logs of {steps} steps, friction {friction}: Jacobian and "
        f"identifiability in {min(times):.2f} s, {first:.1f} s with compiling; finite: {finite}; "
        f"rank {int(np.sum(1e-9 * S[0] < S))}",
        flush=True,
    )


def sensors() -> None:
    """MuJoCo's arm with encoder steps, noise of one per cent and efforts that come late."""
    import mujoco as mj
    from mujoco.sysid.tests.test_integration import ARM_XML

    theirs = mj.MjModel.from_xml_string(ARM_XML)
    data, steps, rng = mj.MjData(theirs), 1000, np.random.default_rng(0)
    rates, q, u = 2.0 * np.pi * np.array([0.5, 0.7, 0.4, 0.9, 0.6]), [], []
    for k in range(steps):
        data.ctrl[:] = np.array([5.0, 4.0, 3.0, 2.0, 1.0]) * np.sin(0.002 * k * rates + 0.5 * np.arange(5.0))
        q.append(data.qpos.copy())
        u.append(data.ctrl.copy())
        mj.mj_step(theirs, data)
    model = mbjax.load(ARM_XML, on_unsupported="warn")
    t, step = 0.002 * np.arange(steps), 2.0 * np.pi / 2**17
    q, u = np.round(np.array(q) / step) * step, np.array(u)
    late = np.concatenate([u[:1].repeat(6, 0), u[:-6]])  # 12 ms
    late = late + 0.01 * u.std(0) * rng.normal(size=u.shape)
    smooth = si.low_pass(q, 0.002, 15.0)
    part = slice(60, -60)
    log = si.make_log(model, t, smooth, effort=si.low_pass(late, 0.002, 15.0))[part]
    truth = [0.5, 0.4, 0.3, 0.2, 0.1]
    start = {f"armature:joint{i + 1}": si.between(0.001, 1.0, start=0.5 * x) for i, x in enumerate(truth)}
    unknown = si.Parameters(
        model, start | {"joint_damping:*": si.scaled(0.2, 5.0), "delay:effort": si.between(-0.05, 0.05)}
    )
    fit = si.fit(unknown, log, si.Torques())
    worst = max(abs(fit.values[f"armature:joint{i + 1}"] / x - 1.0) for i, x in enumerate(truth))
    print(
        f"late by 12 ms: {1e3 * fit.values['delay:effort']:.2f} ms found; armatures to {100 * worst:.2f} %", flush=True
    )


def regressor(samples: int = 4096) -> None:
    """Time of a regressor, many at once, beside Pinocchio."""
    import pinocchio

    model = ROBOTS["Panda"]()
    keys = jax.random.split(jax.random.key(0), 3)
    x = [jax.random.normal(key, (samples, model.num_velocities)) for key in keys]
    ours = jax.jit(lambda *x: si.regressor_of_log(model, *x))
    jax.block_until_ready(ours(*x))
    start = time.perf_counter()
    for _ in range(5):
        jax.block_until_ready(ours(*x))
    took = (time.perf_counter() - start) / 5 / samples
    other = pinocchio.buildModelFromUrdf(str(model_file("panda_description/urdf/panda.urdf")))
    data, rows = other.createData(), [np.asarray(y) for y in x]
    start = time.perf_counter()
    for i in range(samples):
        pinocchio.computeJointTorqueRegressor(other, data, *(y[i] for y in rows))
    print(
        f"regressor: {1e6 * took:.1f} µs, Pinocchio {1e6 * (time.perf_counter() - start) / samples:.1f} µs", flush=True
    )


def model_file(path: str) -> Any:
    """A file of example-robot-data."""
    import pathlib
    import sysconfig

    return pathlib.Path(sysconfig.get_path("purelib")) / "cmeel.prefix/share/example-robot-data/robots" / path


CASES: dict[str, Callable[[], None]] = {
    "robots": robots, "mujoco": mujoco, "isaac": isaac, "sensors": sensors, "regressor": regressor,
}  # fmt: skip

if __name__ == "__main__":
    for case in sys.argv[1:] or CASES:
        CASES[case]()
