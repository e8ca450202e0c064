"""Inverse kinematics of random reachable poses beside Drake's `InverseKinematics`, mink and Pink: success and time.

    python -m benchmarks.inverse_kinematics [--poses 10000] [--rival-poses 1000] [--robots panda iiwa ur10 anymal g1]

Targets are poses at configurations drawn within limits; guesses are other draws. A target counts as reached to 1e-4
m and 1e-3 rad with all limits held, as forward kinematics finds afterwards, whatever a library says. Arms have one pose
of their hand, floating bases (ANYmal: base and four feet; G1: feet and hands) several, half as far from the default
configuration as limits allow, and start there.

Times are of the processor, for one solution; those of mbjax are apart for one call from Python and for a batch of 1024.
mink and Pink are measured where they are installed: they take a velocity a step, with daqp, until the target is reached
or their steps are over, and hold limits by the quadratic program.
"""

import argparse
import contextlib
import io
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import mbjax
from mbjax import trajectory_optimization as to

from .robots import FOLDER, Robot, reduced_urdf

BATCH, STEPS = 1024, 100
TURN, SHIFT = 1e-3, 1e-4


def iiwa() -> str:
    """The file of the KUKA iiwa that comes with frax."""
    return str(resources.files("frax") / "assets/iiwa/iiwa14.urdf")


@dataclass(frozen=True)
class Task:
    """A robot, the frames whose poses are wanted, and how far they are from the guess: None for anywhere."""

    robot: Robot
    frames: tuple[str, ...]
    spread: float | None = None


def tasks() -> dict[str, Task]:
    """The robots by name."""
    ur, anymal = "ur_description/urdf/ur10_robot.urdf", "anymal_b_simple_description/robots/anymal.urdf"
    g1 = "g1_description/urdf/g1_29dof_rev_1_0.urdf"
    feet = ("LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT")
    g1_ends = ("left_ankle_roll_link", "right_ankle_roll_link", "left_rubber_hand", "right_rubber_hand")
    return {
        "panda": Task(Robot("panda", "Panda", "panda_description/urdf/panda.urdf", "fixed"), ("panda_hand_tcp",)),
        "iiwa": Task(Robot("iiwa", "iiwa 14", iiwa(), "fixed"), ("iiwa_link_7",)),
        "ur10": Task(Robot("ur10", "UR10", ur, "fixed"), ("tool0",)),
        "anymal": Task(Robot("anymal", "ANYmal B", anymal, "floating"), ("base", *feet), 0.5),
        "g1": Task(Robot("g1", "G1", g1, "floating"), g1_ends, 0.5),
    }


def drawn(model: mbjax.MultibodyModel, task: Task, key: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Configurations of targets and guesses: within limits, or with `spread` in that part about the default."""

    def one(key: Any) -> Any:
        return mbjax.random_state_within_limits(model, key).q

    keys = jax.random.split(jax.random.key(key), 2 * count)
    q = jax.jit(jax.vmap(one))(keys)
    if task.spread is not None:
        home = jnp.asarray(model.parameters.default_positions)
        middle = jnp.clip(home, model.position_lower_limits, model.position_upper_limits)
        difference = jax.vmap(lambda q: mbjax.difference_configuration(model, middle, q))(q)
        q = jax.vmap(lambda dv: mbjax.integrate_configuration(model, middle, task.spread * dv))(difference)
        q = jnp.clip(q, model.position_lower_limits, model.position_upper_limits)
        q = q.at[count:].set(middle)
    return np.asarray(q[:count]), np.asarray(q[count:])


def poses_of(model: mbjax.MultibodyModel, task: Task, q: Any) -> list[mbjax.RigidTransform]:
    """Poses of the task's frames at configurations."""

    def one(q: Any) -> list:
        return [mbjax.relative_transform(model, q, "world", frame) for frame in task.frames]

    return jax.jit(jax.vmap(one))(jnp.asarray(q))


def reached(model: mbjax.MultibodyModel, task: Task, found: np.ndarray, targets: list) -> np.ndarray:
    """Which configurations have all frames at their targets and all positions within limits."""
    good = np.all(np.isfinite(found), axis=1)
    found = np.where(good[:, None], found, 0.0)
    margin = 1e-9
    good &= np.all(found >= np.asarray(model.position_lower_limits) - margin, axis=1)
    good &= np.all(found <= np.asarray(model.position_upper_limits) + margin, axis=1)
    for X, Y in zip(poses_of(model, task, found), targets, strict=True):
        good &= np.linalg.norm(np.asarray(X.translation - Y.translation), axis=-1) <= SHIFT
        cosine = 0.5 * (np.einsum("nij,nij->n", np.asarray(X.rotation), np.asarray(Y.rotation)) - 1.0)
        good &= np.arccos(np.clip(cosine, -1.0, 1.0)) <= TURN
    return good


def goals_of(task: Task, X: list) -> dict[str, Any]:
    return {frame: to.PoseGoal(frame, X_WF) for frame, X_WF in zip(task.frames, X, strict=True)}


def with_mbjax(
    model: mbjax.MultibodyModel, task: Task, targets: list, guesses: np.ndarray, restarts: int
) -> tuple[np.ndarray, dict[str, float]]:
    """Configurations, and seconds: to compile, of one call from Python, of one solution in a batch."""

    def solve(X: list, guess: Any) -> Any:
        return mbjax.inverse_kinematics(model, goals_of(task, X), guess, restarts=restarts)

    def at(k: int) -> list:
        return jax.tree.map(lambda x: x[k], targets)

    start = time.process_time()
    jax.block_until_ready(solve(at(0), guesses[0]))
    compiled = time.process_time() - start
    calls = []
    for k in range(min(200, len(guesses))):
        X = at(k)
        goals = goals_of(task, X)
        jax.block_until_ready(X)
        start = time.perf_counter()
        jax.block_until_ready(mbjax.inverse_kinematics(model, goals, guesses[k], restarts=restarts).q)
        calls.append(time.perf_counter() - start)
    size = min(BATCH, len(guesses))
    batch = jax.jit(jax.vmap(lambda X, guess: solve(X, guess).q))
    head = jax.tree.map(lambda x: x[:size], targets)
    start = time.process_time()
    program = batch.lower(head, guesses[:size]).compile()
    compiled_batch = time.process_time() - start
    found, spent = [], []
    for first in range(0, len(guesses) - size + 1, size):
        part = jax.tree.map(lambda x, first=first: x[first : first + size], targets)
        start = time.process_time()
        found.append(np.asarray(program(part, guesses[first : first + size])))
        spent.append((time.process_time() - start) / size)
    times = {"compile": compiled, "compile batch": compiled_batch, "call": float(np.median(calls))}
    return np.concatenate(found), times | {"batch": float(np.median(spent))}


def order_of(ours: tuple[str, ...], theirs: list[str]) -> np.ndarray:
    """Where our coordinates are that another library has in its order; names end alike."""
    return np.array([next(i for i, own in enumerate(ours) if own.endswith(name) or name in own) for name in theirs])


def with_drake(model: mbjax.MultibodyModel, task: Task, urdf: str, targets: list, guesses: np.ndarray) -> Iterator:
    """Configurations by Drake's InverseKinematics with its default solver, one program a target."""
    from pydrake.math import RotationMatrix
    from pydrake.multibody.inverse_kinematics import InverseKinematics
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant
    from pydrake.solvers import Solve

    plant = MultibodyPlant(0.0)
    Parser(plant).AddModelsFromString(urdf, "urdf")
    if not task.robot.is_floating and '<link name="world"' not in urdf:
        root = next(name for name in model.body_names if name != "world")
        plant.WeldFrames(plant.world_frame(), plant.GetFrameByName(root))
    plant.Finalize()
    order = np.array([model.position_names().index(name) for name in plant.GetPositionNames()])
    back = np.argsort(order)
    world = plant.world_frame()
    for k, guess in enumerate(guesses):
        ik = InverseKinematics(plant)
        for frame, X in zip(task.frames, targets, strict=True):
            F, p = plant.GetFrameByName(frame), np.asarray(X.translation[k])
            ik.AddPositionConstraint(F, np.zeros(3), world, p - 0.5 * SHIFT, p + 0.5 * SHIFT)
            R = RotationMatrix(np.asarray(X.rotation[k]))
            ik.AddOrientationConstraint(F, RotationMatrix(), world, R, 0.5 * TURN)
        yield Solve(ik.prog(), guess[order]).GetSolution(ik.q())[back]


def with_mink(model: mbjax.MultibodyModel, task: Task, urdf: str, targets: list, guesses: np.ndarray) -> Iterator:
    """Configurations by mink's steps."""
    import mink
    import mujoco

    compiler = "<mujoco><compiler fusestatic='false'/></mujoco>"
    own = mujoco.MjModel.from_xml_string(urdf.replace("<link", f"{compiler}<link", 1))
    joints = [mujoco.mj_id2name(own, mujoco.mjtObj.mjOBJ_JOINT, i) for i in range(own.njnt)]
    order = order_of(model.position_names(), joints)
    configuration, limits = mink.Configuration(own), [mink.ConfigurationLimit(own)]
    goal = mink.FrameTask(task.frames[0], "body", 1.0, 1.0, lm_damping=1e-2)
    X = targets[0]
    for k, guess in enumerate(guesses):
        configuration.update(guess[order])
        R = mink.SO3.from_matrix(np.asarray(X.rotation[k]))
        goal.set_target(mink.SE3.from_rotation_and_translation(R, np.asarray(X.translation[k])))
        with contextlib.suppress(mink.exceptions.MinkError):
            for _ in range(STEPS):
                error = goal.compute_error(configuration)
                if np.linalg.norm(error[:3]) < 0.5 * SHIFT and np.linalg.norm(error[3:]) < 0.5 * TURN:
                    break
                v = mink.solve_ik(configuration, [goal], 1.0, "daqp", damping=1e-6, limits=limits)
                configuration.integrate_inplace(v, 1.0)
        q = np.array(guess)
        q[order] = configuration.q
        yield q


def with_pink(model: mbjax.MultibodyModel, task: Task, urdf: str, targets: list, guesses: np.ndarray) -> Iterator:
    """Configurations by Pink's steps."""
    import pink
    import pinocchio

    with tempfile.NamedTemporaryFile("w", suffix=".urdf") as file, contextlib.redirect_stdout(io.StringIO()):
        file.write(urdf)
        file.flush()
        own = pinocchio.buildModelFromUrdf(file.name)
    if any(joint.nq != joint.nv for joint in own.joints[1:]):
        raise RuntimeError("Pinocchio has joints without limits as cosine and sine")
    order = order_of(model.position_names(), list(own.names)[1:])
    goal = pink.tasks.FrameTask(task.frames[0], position_cost=1.0, orientation_cost=1.0, lm_damping=1e-2)
    X = targets[0]
    for k, guess in enumerate(guesses):
        configuration = pink.Configuration(own, own.createData(), guess[order])
        goal.set_target(pinocchio.SE3(np.asarray(X.rotation[k]), np.asarray(X.translation[k])))
        with contextlib.suppress(Exception):  # daqp finds no solution where rounding leaves a position beyond its limit
            for _ in range(STEPS):
                error = goal.compute_error(configuration)
                if np.linalg.norm(error[:3]) < 0.5 * SHIFT and np.linalg.norm(error[3:]) < 0.5 * TURN:
                    break
                v = pink.solve_ik(configuration, [goal], 1.0, "daqp", damping=1e-6, safety_break=False)
                configuration.integrate_inplace(v, 1.0)
        q = np.array(guess)
        q[order] = configuration.q
        yield q


RIVALS: dict[str, Callable] = {"Drake": with_drake, "mink": with_mink, "Pink": with_pink}
FOR_ARMS = ("mink", "Pink")


def measured(solutions: Iterator, count: int) -> tuple[np.ndarray, float]:
    """All solutions, and the processor's seconds for one."""
    found, start = [next(solutions)], time.process_time()  # the first also builds the library's model
    found += list(solutions)
    return np.stack(found), (time.process_time() - start) / max(count - 1, 1)


def report(name: str, task: Task, poses: int, rival_poses: int, rivals: list[str]) -> None:
    """Prints the rows of one robot."""
    urdf = reduced_urdf(task.robot)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbjax.ModelWarning)
        model = mbjax.load(urdf, base=task.robot.base)
    targets_q, guesses = drawn(model, task, 0, poses)
    targets = poses_of(model, task, targets_q)
    for label, restarts in (("one start", 0), ("20 restarts", 20)):
        found, times = with_mbjax(model, task, targets, guesses, restarts)
        count = len(found)
        part = jax.tree.map(lambda x, count=count: x[:count], targets)
        good = reached(model, task, found, part)
        few = good[:rival_poses].mean()
        print(
            f"| {task.robot.title} | mbjax, {label} | {len(good)} | {good.mean():.2%} ({few:.2%} of the first "
            f"{min(rival_poses, len(good))}) | {times['call'] * 1e3:.2f} | {times['batch'] * 1e6:.0f} | "
            f"{times['compile']:.1f}, batch {times['compile batch']:.1f} |",
            flush=True,
        )
    for rival in rivals:
        if rival in FOR_ARMS and task.robot.is_floating:
            continue
        part = jax.tree.map(lambda x: x[:rival_poses], targets)
        try:
            solutions = RIVALS[rival](model, task, urdf, part, guesses[:rival_poses])
            found, spent = measured(solutions, rival_poses)
        except (ImportError, RuntimeError, StopIteration, ValueError) as error:
            print(f"| {task.robot.title} | {rival} | – | {type(error).__name__}: {error} | | | |", flush=True)
            continue
        good = reached(model, task, found, part)
        print(f"| {task.robot.title} | {rival} | {len(good)} | {good.mean():.2%} | {spent * 1e3:.2f} | | |", flush=True)


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--poses", type=int, default=10240)
    parser.add_argument("--rival-poses", type=int, default=1000)
    parser.add_argument("--robots", nargs="+", default=list(tasks()))
    parser.add_argument("--rivals", nargs="*", default=list(RIVALS))
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print("| robot | solver | poses | reached | one, ms | batch of 1024, µs each | compile, processor s |")
    print("|---|---|---|---|---|---|---|")
    for name in options.robots:
        report(name, tasks()[name], options.poses, options.rival_poses, options.rivals)


if __name__ == "__main__":
    assert FOLDER.exists(), "pip install example-robot-data"
    main()
