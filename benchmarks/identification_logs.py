"""System identification from logs that mbjax did not make; `python -m benchmarks.identification_logs [CASE…]`.

tiago      a log of a real arm, from the source package of figaroh on PyPI, fetched when this runs; masses, centres,
           inertias, friction and reflected inertias of its arm, held-out torque errors beside those of the CAD model
           and of plain least squares for base parameters, which is what figaroh does
drake      Drake's simulation of the bundled arm, measured by coarse encoders, with noise and efforts that come late
"""

import pathlib
import subprocess
import sys
import tarfile
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import mbjax
from mbjax import system_identification as si

jax.config.update("jax_enable_x64", True)
warnings.simplefilter("ignore", mbjax.ModelWarning)

FIGAROH = "figaroh==1.0.2"
FIXTURE = "tests/fixtures/tiago/data"
MOVED = ("torso_lift_joint", *(f"arm_{i}_joint" for i in range(1, 8)))
# N m per logged unit: gear ratio 100 times the motor constants in the log's own description. The wrist's efforts are
# zero in nine samples of ten, and the torso's unit is unknown; neither is fitted.
DRIVES = {"arm_1_joint": 13.6, "arm_2_joint": 13.6, "arm_3_joint": -8.7, "arm_4_joint": -8.7}
EXCITED = slice(921, 6791, 2)  # samples in which the arm moves; the rate is 100 Hz, the filter's cutoff 2 Hz


def fetched(folder: pathlib.Path) -> pathlib.Path:
    """The unpacked source package of figaroh."""
    command = [sys.executable, "-m", "pip", "download", FIGAROH, "--no-deps", "--no-binary", ":all:", "-d", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    with tarfile.open(next(folder.glob("figaroh-*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    return next(path for path in folder.glob("figaroh-*") if path.is_dir())


def arm_of_tiago(path: pathlib.Path) -> mbjax.MultibodyModel:
    """The joints that were logged, with all that is welded to their links lumped into them, by Pinocchio."""
    import pinocchio

    whole = pinocchio.buildModelFromUrdf(str(path))
    still = [i for i in range(1, whole.njoints) if whole.names[i] not in MOVED]
    arm = pinocchio.buildReducedModel(whole, still, pinocchio.neutral(whole))
    plant = mbjax.MultibodyPlant(0.0)
    for i in range(1, arm.njoints):
        name, inertia = arm.names[i], arm.inertias[i]
        J = inertia.inertia
        central = mbjax.RotationalInertia(*np.diag(J), J[0, 1], J[0, 2], J[1, 2])
        M = mbjax.SpatialInertia.from_central_inertia(inertia.mass, inertia.lever, central, skip_validity_check=True)
        plant.add_rigid_body(f"{name}.link", M, on_invalid_inertia="warn")
        parent = f"{arm.names[arm.parents[i]]}.link" if arm.parents[i] else "world"
        kind = mbjax.PrismaticJoint if "P" in arm.joints[i].shortname() else mbjax.RevoluteJoint
        X_PF = mbjax.RigidTransform.from_matrix4(jnp.asarray(arm.jointPlacements[i].homogeneous))
        plant.add_joint(kind(name, parent, f"{name}.link", X_PF=X_PF, axis=[0.0, 0.0, 1.0]))
    return plant.finalize()


def log_of_tiago(folder: pathlib.Path, model: mbjax.MultibodyModel) -> si.Log:
    """Positions and efforts of three files in one, read as a log."""
    tables = {
        signal: np.genfromtxt(folder / f"tiago_{signal}.csv", delimiter=",", names=True, deletechars="")
        for signal in ("position", "effort")
    }
    columns = {"time": tables["position"]["t"]}
    for joint in MOVED:
        columns[f"position.{joint}"] = tables["position"][f"-_{joint}_position"]
    for joint, factor in DRIVES.items():
        columns[f"effort.{joint}"] = factor * tables["effort"][f"-_{joint}_effort"]
    np.savez(folder / "tiago.npz", **columns)
    unmeasured = {f"effort.{joint}": None for joint in MOVED if joint not in DRIVES}
    return si.read_log(folder / "tiago.npz", model, columns=unmeasured, period=0.01, cutoff=2.0)[EXCITED]


def tiago() -> None:
    """A real arm: the first two thirds of its motion are fitted, the last third is predicted."""
    with tempfile.TemporaryDirectory() as where:
        data = fetched(pathlib.Path(where)) / FIXTURE
        model = arm_of_tiago(data / "urdf/tiago_48_hey5.urdf")
        log = log_of_tiago(data / "identification", model)
    split, rows = 2 * len(log) // 3, tuple(DRIVES)
    places = [model.joint(name).all_v_start for name in rows]
    measured = np.asarray(log.effort)[split:, places]
    cad = jax.jit(jax.vmap(lambda *x: mbjax.inverse_dynamics(model, *x, force_elements=True)))
    tell("CAD model", np.asarray(cad(log.q, log.v, log.vdot))[split:, places] - measured)
    for name in rows:
        model = mbjax.set_joint_damping(mbjax.set_joint_friction(model, name, 1.0), name, 1.0)
    Y = np.asarray(si.regressor_of_log(model, log.q, log.v, log.vdot))[:, places]
    Y = np.concatenate([Y, np.tile(np.eye(len(rows)), (len(log), 1, 1))], -1)
    effort = np.asarray(log.effort)[:, places]
    beta, _, rank, _ = np.linalg.lstsq(Y[:split].reshape(-1, Y.shape[-1]), effort[:split].ravel(), rcond=1e-9)
    tell(f"least squares, {rank} base parameters", (Y @ beta)[split:] - measured)
    patterns = {f"body:{name}.link": si.physical(prior=0.3, nearest=True) for name in MOVED[1:]}
    patterns |= {
        f"{kind}:{name}": si.positive() for kind in ("joint_friction", "joint_damping", "armature") for name in rows
    }
    patterns |= {f"effort_bias:{name}": si.free() for name in rows}
    start = time.process_time()
    fit = si.fit(si.Parameters(model, patterns), log[:split], si.Torques(rows=rows), unseen="report")
    _, target, predicted = fit.method.prediction(fit.unknown, fit.theta, log[split:])
    took = time.process_time() - start
    tell(f"mbjax, {len(fit.unknown)} parameters, physical", np.asarray(predicted - target))
    print(f"{fit.message} {took:.0f} s of processor with compiling; {fit.rank} combinations seen")
    for kind in ("joint_friction", "joint_damping", "effort_bias"):
        found = [f"{fit.values[f'{kind}:{n}']:.3f} ± {fit.standard_deviation[f'{kind}:{n}']:.3f}" for n in rows]
        print(f"  {kind}: {', '.join(found)}")


def tell(name: str, errors: np.ndarray, blocks: int = 8) -> None:
    """Root mean squares by joint and of all, with the deviation of their mean over blocks of time."""
    parts = np.array([np.sqrt(np.mean(part**2)) for part in np.array_split(errors, blocks)])
    each = ", ".join(f"{x:.2f}" for x in np.sqrt(np.mean(errors**2, 0)))
    error = np.sqrt(np.mean(errors**2))
    print(f"{name}: {error:.2f} ± {parts.std(ddof=1) / np.sqrt(blocks):.2f} N m held out ({each})", flush=True)


def drake(steps: int = 600, period: float = 0.005, late: int = 3) -> None:
    """Drake's arm: encoders of 15 bits, efforts with noise of one per cent that come late.

    They are held for a period, which takes half of it off the delay.
    """
    model = mbjax.load("arm", time_step=0.0)
    joints = [joint.name for joint in model.layout.joints if joint.num_velocities]
    bodies = [model.body_names[model.joint(name).child_body] for name in joints]
    for name in joints:
        model = mbjax.set_joint_damping(model, name, 0.5)
    q, u = simulated_by_drake(mbjax.to_urdf(model), joints, steps, period)
    rng, unit = np.random.default_rng(0), 2.0 * np.pi / 2**15
    q = np.round(q / unit) * unit
    delayed = np.concatenate([u[:1].repeat(late, 0), u[:-late]])
    delayed = delayed + 0.01 * u.std(0) * rng.normal(size=u.shape)
    smooth, effort = si.low_pass(q, period, 8.0), si.low_pass(delayed, period, 8.0)
    log = si.make_log(model, period * np.arange(steps), smooth, effort=effort)[40:-40]
    patterns: dict[str, si.Space] = {
        f"mass:{bodies[3]}": si.scaled(0.2, 5.0),
        f"mass:{bodies[5]}": si.scaled(0.2, 5.0),
    }
    patterns |= {"joint_damping:*": si.scaled(0.1, 10.0), "delay:effort": si.between(-0.05, 0.05)}
    unknown = si.Parameters(model, patterns)
    truth = dict(zip(unknown.names, np.asarray(unknown.values(unknown.initial)), strict=True))
    start = unknown.initial + jnp.asarray([0.0 if name.startswith("delay") else 0.7 for name in unknown.names])
    fit = si.fit(unknown, log, si.Torques(), start=start)
    masses = max(abs(fit.values[n] / truth[n] - 1.0) for n in unknown.names if n.startswith("mass:"))
    damping = max(abs(fit.values[n] / truth[n] - 1.0) for n in unknown.names if n.startswith("joint_damping:"))
    print(
        f"Drake's arm, late by {1e3 * (late - 0.5) * period:g} ms: {1e3 * fit.values['delay:effort']:.2f} ms found; "
        f"masses to {100 * masses:.2f} %, damping to {100 * damping:.2f} %. {fit.message}",
        flush=True,
    )


def simulated_by_drake(urdf: Any, joints: list[str], steps: int, period: float) -> tuple[np.ndarray, np.ndarray]:
    """Positions and efforts of an arm that follows sines, in Drake's discrete steps of a millisecond."""
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant
    from pydrake.systems.analysis import Simulator

    plant = MultibodyPlant(1e-3)
    Parser(plant).AddModelsFromString(str(urdf), "urdf")
    driven = {plant.get_joint_actuator(i).joint().name() for i in plant.GetJointActuatorIndices()}
    for name in joints:
        if name not in driven:
            plant.AddJointActuator(f"{name}_motor", plant.GetJointByName(name))
    plant.Finalize()
    simulator = Simulator(plant)
    context = simulator.get_mutable_context()
    order = [plant.GetJointByName(name).velocity_start() for name in joints]
    n, q, u = plant.num_velocities(), [], []
    rates, phases = 2.0 * np.pi * np.linspace(0.5, 1.1, n), np.arange(n)
    for k in range(steps):
        x = plant.GetPositionsAndVelocities(context)
        wanted = 0.7 * np.sin(rates * k * period + phases) - 0.7 * np.sin(phases)
        weight = plant.CalcGravityGeneralizedForces(context)
        effort = plant.MakeActuationMatrix().T @ (60.0 * (wanted - x[:n]) - 6.0 * x[n:] - weight)
        q.append(x[:n][order])
        u.append((plant.MakeActuationMatrix() @ effort)[order])
        plant.get_actuation_input_port().FixValue(context, effort)
        simulator.AdvanceTo((k + 1) * period)
    return np.array(q), np.array(u)


CASES: dict[str, Callable[[], None]] = {"tiago": tiago, "drake": drake}

if __name__ == "__main__":
    for case in sys.argv[1:] or CASES:
        CASES[case]()
