"""Whether error bars of fits hold, on logs as laboratories have them: `python -m benchmarks.identification_bars`.

filter    exact positions, noise of efforts alone, through `read_log(cutoff=)`: at several cutoffs, 100 repeats
outliers  2 % of the efforts off by 40 N m, noise unknown
holes     a hole of 0.24 s and 5 % of the samples lost, times told
friction  Coulomb friction that is sharp in the robot, by least squares, plain and without slow samples
colored   noise of efforts that is correlated from sample to sample
"""

import pathlib
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import mbjax
from mbjax import system_identification as si

jax.config.update("jax_enable_x64", True)
warnings.simplefilter("ignore", mbjax.ModelWarning)

NOISE = 0.3  # N m


def robot() -> mbjax.MultibodyModel:
    """Three links with skew axes, damping and friction, not those of the tests."""
    plant = mbjax.MultibodyPlant(0.0)
    axes = ([0.0, 0.1, 1.0], [0.1, 1.0, 0.0], [0.0, 1.0, 0.2])
    for k, axis in enumerate(axes):
        G = mbjax.UnitInertia(0.06, 0.07, 0.04, 0.002, -0.001, 0.003)
        plant.add_rigid_body(f"link{k}", mbjax.SpatialInertia(4.0 - k, [0.03, 0.02, 0.15 - 0.02 * k], G))
        parent = "world" if k == 0 else f"link{k - 1}"
        plant.add_joint(
            mbjax.RevoluteJoint(f"joint{k}", parent, f"link{k}", X_PF=[0.0, 0.0, 0.3 * (k > 0)], axis=axis, damping=0.8)
        )
        plant.add_joint_actuator(f"motor{k}", f"joint{k}")
    model = plant.finalize()
    for k in range(3):
        model = mbjax.set_joint_friction(model, f"joint{k}", 2.0 - 0.4 * k)
    return model


PATTERNS: dict[str, si.Space] = {
    "mass:link2": si.positive(), "center_of_mass:link2": si.free(), "joint_friction:*": si.positive(),
    "joint_damping:*": si.positive(),
}  # fmt: skip


def motion(period: float, seconds: float, seed: int = 3) -> tuple[np.ndarray, ...]:
    """Times, positions, velocities and accelerations of three sines below 1.3 Hz in each joint."""
    rng = np.random.default_rng(seed)
    t = period * np.arange(round(seconds / period))
    w = 2.0 * np.pi * np.array([0.31, 0.73, 1.27])
    a, b = rng.normal(size=(2, 3, 3)) * 0.4
    s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    return t, s @ a + c @ b, (c * w) @ a - (s * w) @ b, -(s * w**2) @ a - (c * w**2) @ b


def efforts(model: mbjax.MultibodyModel, q: np.ndarray, v: np.ndarray, vdot: np.ndarray) -> np.ndarray:
    """Efforts along a motion."""
    of_all = jax.jit(jax.vmap(lambda *x: mbjax.inverse_dynamics(model, *x, force_elements=True)))
    return np.asarray(of_all(*map(jnp.asarray, (q, v, vdot))))


def wrong(model: mbjax.MultibodyModel) -> si.Parameters:
    """The unknowns, from numbers that are 30 % off."""
    unknown = si.Parameters(model, PATTERNS)
    return si.Parameters(unknown.model(unknown.initial + 0.3), PATTERNS)


def write(path: pathlib.Path, t: np.ndarray, q: np.ndarray, tau: np.ndarray) -> pathlib.Path:
    """A log file of positions and efforts."""
    np.savez(path, time=t, q=q, tau=tau)
    return path


def tell(name: str, fits: Sequence[si.Fit], truth: dict[str, float]) -> None:
    """How many 95 % intervals hold, and how far values are off."""
    errors = np.array([[f.values[n] - truth[n] for n in truth] for f in fits])
    deviations = np.array([[f.standard_deviation[n] for n in truth] for f in fits])
    held = np.abs(errors) < 1.96 * deviations
    ratio = errors.std(0) / np.median(deviations, 0)
    off = np.abs(errors.mean(0)) / np.median(deviations, 0)
    worst = np.max(np.abs(errors) / np.abs(np.array(list(truth.values()))))
    print(
        f"{name}: {100.0 * held.mean():.1f} % of intervals hold ({100.0 * held.mean(0).min():.0f} % of the worst "
        f"number); scatter {ratio.min():.2f} to {ratio.max():.2f} deviations, bias up to {off.max():.2f}; farthest "
        f"{100 * worst:.1f} %",
        flush=True,
    )


def truth_of(model: mbjax.MultibodyModel) -> dict[str, float]:
    """Values of the unknowns in the true model."""
    unknown = si.Parameters(model, PATTERNS)
    return dict(zip(unknown.names, np.asarray(unknown.values(unknown.initial), float).tolist(), strict=True))


def filtered(repeats: int = 100) -> None:
    """Cutoffs from 3 Hz to 40 Hz of a log at 200 Hz."""
    model = robot()
    unknown, truth = wrong(model), truth_of(model)
    t, q, v, vdot = motion(0.005, 10.0)
    tau = efforts(model, q, v, vdot)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "log.npz"
        for cutoff in (None, 3.0, 6.0, 12.0, 40.0):
            rng, fits = np.random.default_rng(7), []
            for _ in range(repeats):
                write(path, t, q, tau + NOISE * rng.normal(size=tau.shape))
                fits.append(si.fit(unknown, si.read_log(path, model, cutoff=cutoff), si.Torques()))
            tell(f"cutoff {cutoff}", fits, truth)


def outliers(repeats: int = 20) -> None:
    """Huber and soft L1 with 2 % of efforts off by 40 N m, to one side."""
    model = robot()
    unknown, truth = wrong(model), truth_of(model)
    t, q, v, vdot = motion(0.01, 10.0)
    tau = efforts(model, q, v, vdot)
    for loss in ("least_squares", "huber", "soft_l1"):
        for cutoff in (None, 10.0):
            rng, fits = np.random.default_rng(7), []
            for _ in range(repeats):
                noisy = tau + NOISE * rng.normal(size=tau.shape) + 40.0 * (rng.random(tau.shape) < 0.02)
                more: dict[str, Any] = {} if cutoff is None else {"cutoff": cutoff}
                log = si.make_log(model, t, q, v, vdot, effort=noisy, **more)
                fits.append(si.fit(unknown, log, si.Torques(loss=loss)))
            tell(f"{loss}, cutoff {cutoff}", fits, truth)


def holes(repeats: int = 50) -> None:
    """Positions and efforts with a hole and lost samples, by file."""
    model = robot()
    unknown, truth = wrong(model), truth_of(model)
    t, q, v, vdot = motion(0.01, 10.0)
    tau = efforts(model, q, v, vdot)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "log.npz"
        cases: dict[str, dict[str, Any]] = {
            "": {},
            ", cutoff 8 Hz": {"cutoff": 8.0},
            ", times as recorded": {"period": "recorded"},
        }
        for name, options in cases.items():
            rng, fits = np.random.default_rng(7), []
            for _ in range(repeats):
                kept = rng.random(len(t)) > 0.05
                kept[400:424] = False
                write(path, t[kept], q[kept], (tau + NOISE * rng.normal(size=tau.shape))[kept])
                try:
                    fits.append(si.fit(unknown, si.read_log(path, model, **options), si.Torques()))
                except (TypeError, mbjax.ModelError) as error:
                    print(name, "refused:", error)
                    break
            if fits:
                tell(f"hole and lost samples{name}", fits, truth)


def friction(repeats: int = 100) -> None:
    """The sign of the velocity in the robot, the smooth law in the model."""
    model = robot()
    unknown, truth = wrong(model), truth_of(model)
    t, q, v, vdot = motion(0.01, 10.0)
    sharp = np.asarray(model.parameters.joint_friction) * np.sign(v)
    smooth = model
    for k in range(3):
        smooth = mbjax.set_joint_friction(smooth, f"joint{k}", 0.0)
    tau = efforts(smooth, q, v, vdot) + sharp
    rng = np.random.default_rng(7)
    ways: dict[str, list[si.Fit]] = {"least squares": [], "huber": [], "without slow samples": []}
    for _ in range(repeats):
        log = si.make_log(model, t, q, v, vdot, effort=tau + 0.1 * NOISE * rng.normal(size=tau.shape))
        ways["least squares"].append(si.fit(unknown, log, si.Torques()))
        ways["huber"].append(si.fit(unknown, log, si.Torques(loss="huber")))
        if hasattr(log, "weighted"):
            fast = log.weighted(np.abs(v) > 0.1)
            ways["without slow samples"].append(si.fit(unknown, fast, si.Torques()))
    for name, fits in ways.items():
        if fits:
            tell(f"sharp friction, {name}", fits, truth)


def by_law(law: Sequence[float], x: np.ndarray) -> np.ndarray:
    """What an autoregressive law makes of white noise."""
    from scipy import signal

    return np.asarray(signal.lfilter([1.0], law, x, axis=0))


def colored(repeats: int = 100) -> None:
    """Noise of the first order with correlations of 0.9 from sample to sample, and that of a vibration at 1 Hz."""
    model = robot()
    unknown, truth = wrong(model), truth_of(model)
    t, q, v, vdot = motion(0.01, 10.0)
    tau = efforts(model, q, v, vdot)
    laws = {"0.9": [1.0, -0.9], "a vibration": [1.0, -2 * 0.98 * np.cos(2 * np.pi * 0.01), 0.98**2]}
    for name, law in laws.items():
        rng, fits = np.random.default_rng(7), []
        for _ in range(repeats):
            noise = by_law(law, rng.normal(size=(len(t) + 1000, 3)))[1000:]
            noise *= NOISE / np.linalg.norm(by_law(law, np.eye(5000)[:, :1]))
            fits.append(si.fit(unknown, si.make_log(model, t, q, v, vdot, effort=tau + noise), si.Torques()))
        tell(f"noise correlated by {name}", fits, truth)


CASES: dict[str, Callable[[], None]] = {
    "filter": filtered, "outliers": outliers, "holes": holes, "friction": friction, "colored": colored,
}  # fmt: skip

if __name__ == "__main__":
    for case in sys.argv[1:] or CASES:
        CASES[case]()
