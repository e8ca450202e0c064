"""What do inverse dynamics, the mass matrix and the poses of all bodies take, batch 4096, beside frax and Pinocchio?

All under gravity, from the same reduced URDF. The torques of the joints and their block of the mass matrix are the same
in the coordinates of every library: there they are compared.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .forward_dynamics import NUM_COMPARED, as_arrays, time_compiled
from .measure import Effort
from .peers import build_frax_robot, build_pinocchio_model, load_mbjax, mbjax_joint_names
from .results import Table
from .robots import Robot
from .script import (
    DTYPES,
    Options,
    compile_seconds,
    microseconds,
    outcome,
    precision,
    run_script,
    table_by_robot,
    timed,
)

BATCH = 4096
TITLES = {"inverse_dynamics": "Inverse dynamics", "mass_matrix": "Mass matrix", "body_poses": "Poses of all bodies"}
PINOCCHIO = "Pinocchio {}, f64, 1 core"
PINOCCHIO_NAMES = {"inverse_dynamics": "rnea", "mass_matrix": "crba", "body_poses": "framesForwardKinematics"}


def records(options: Options) -> Iterator[dict]:
    batch = 32 if options.quick else BATCH
    for robot in options.robots:
        worlds = common_worlds(robot, batch)
        for dtype in DTYPES:
            with precision(dtype):
                yield from of_library("mbjax", mbjax_functions(robot, dtype), robot, worlds, dtype, options.effort)
                if "frax" in options.peers:
                    yield from of_library("frax", frax_functions(robot), robot, worlds, dtype, options.effort)
        if "pinocchio" in options.peers:
            with precision("f64"):
                yield from of_pinocchio(robot, worlds, options.effort)


Worlds = tuple[np.ndarray, np.ndarray, np.ndarray]
"""q, v and vdot, in the coordinates all libraries' are made from."""


def common_worlds(robot: Robot, batch: int) -> Worlds:
    """Random ones, within limits."""
    from mbjax.command_line.questions import random_worlds

    with precision("f64"):
        worlds = random_worlds(load_mbjax(robot, "f64"), batch)
        return np.asarray(worlds.q), np.asarray(worlds.v), np.asarray(worlds.vdot)


def of_library(name: str, library: Any, robot: Robot, worlds: Worlds, dtype: str, effort: Effort) -> Iterator[dict]:
    """One record for each quantity; with how far it is from mbjax's in float64."""
    import jax

    functions, convention = library
    inputs = as_arrays(in_convention(convention, worlds), dtype)
    for quantity, function in functions.items():
        keys = {"robot": robot.name, "quantity": quantity, "label": f"{name}, {dtype}", "batch": len(worlds[0])}
        record = timed(keys, (jax.vmap(function), inputs), len(worlds[0]), effort)
        if record["status"] == "measured" and quantity != "body_poses":
            some = tuple(x[:NUM_COMPARED] for x in inputs)
            answer = np.asarray(jax.jit(jax.vmap(function))(*some), float)
            record["difference"] = difference_of(robot, quantity, convention, answer, worlds)
        yield record


def in_convention(convention: Any, worlds: Worlds) -> Worlds:
    """q, v and vdot as a library writes them."""
    q, v, vdot = worlds
    q_of, v_of, _ = convention.from_common(q, v, np.zeros_like(v))
    return q_of, v_of, convention.acceleration_from_common(q, v, vdot)


def mbjax_functions(robot: Robot, dtype: str) -> tuple[dict[str, Callable], Any]:
    import mbjax

    from .coordinates import mbjax_convention

    model = load_mbjax(robot, dtype)

    def inverse_dynamics(q: Any, v: Any, vdot: Any) -> Any:
        return mbjax.inverse_dynamics(model, q, v, vdot, force_elements=True)

    functions = {
        "inverse_dynamics": inverse_dynamics,
        "mass_matrix": lambda q, v, vdot: mbjax.mass_matrix(model, q),
        "body_poses": lambda q, v, vdot: mbjax.body_poses_in_world(model, q),
    }
    names = mbjax_joint_names(model)
    return functions, mbjax_convention(robot.is_floating, tuple(range(len(names))))


def frax_functions(robot: Robot) -> tuple[dict[str, Callable], Any]:
    import jax.numpy as jnp

    model, convention = build_frax_robot(robot, tuple(mbjax_joint_names(load_mbjax(robot, "f64"))))
    gravity = np.array([0.0, 0.0, 9.81, 0.0, 0.0, 0.0])

    def inverse_dynamics(q: Any, v: Any, vdot: Any) -> Any:
        return model.rnea(q, v, vdot, jnp.asarray(gravity, q.dtype), None)

    functions = {
        "inverse_dynamics": inverse_dynamics,
        "mass_matrix": lambda q, v, vdot: model.crba(q),
        "body_poses": lambda q, v, vdot: model.link_to_world_transforms(q),
    }
    return functions, convention


def of_pinocchio(robot: Robot, worlds: Worlds, effort: Effort) -> Iterator[dict]:
    import pinocchio

    model, convention = build_pinocchio_model(robot, tuple(mbjax_joint_names(load_mbjax(robot, "f64"))))
    nothing = pinocchio.Model()
    inputs = in_convention(convention, worlds)
    states = [tuple(map(np.ascontiguousarray, s)) for s in zip(*inputs, strict=True)]

    def of(quantity: str, model: Any, data: Any, empty: np.ndarray | None = None) -> Callable:
        def arguments(*state: np.ndarray) -> tuple:
            return state if empty is None else (empty,) * 3

        return {
            "inverse_dynamics": lambda *s: pinocchio.rnea(model, data, *arguments(*s)),
            "mass_matrix": lambda *s: pinocchio.crba(model, data, arguments(*s)[0]),
            "body_poses": lambda *s: pinocchio.framesForwardKinematics(model, data, arguments(*s)[0]),
        }[quantity]

    for quantity in TITLES:
        evaluate = of(quantity, model, model.createData())
        trivial = of(quantity, nothing, nothing.createData(), np.zeros(0))
        label = PINOCCHIO.format(PINOCCHIO_NAMES[quantity])
        keys = {"robot": robot.name, "quantity": quantity, "label": label, "batch": len(states)}
        record = outcome(keys, time_compiled, evaluate, trivial, states, effort)
        if record["status"] == "measured" and quantity != "body_poses":
            answer = np.array([symmetric(np.array(evaluate(*state))) for state in states[:NUM_COMPARED]])
            record["difference"] = difference_of(robot, quantity, convention, answer, worlds)
        yield record


def symmetric(x: np.ndarray) -> np.ndarray:
    """crba fills the upper triangle."""
    return x if x.ndim == 1 else np.triu(x) + np.triu(x, 1).T


def difference_of(robot: Robot, quantity: str, convention: Any, answer: np.ndarray, worlds: Worlds) -> float:
    """From mbjax's in float64, over the largest entry, the worst of some states; on the joints alone."""
    expected = expected_answers(robot, quantity, len(worlds[0]))
    n = len(convention.joint_order)
    theirs = np.empty_like(joint_block(expected, n))
    order = list(convention.joint_order)
    theirs[(slice(None), order) if theirs.ndim == 2 else (slice(None), *np.ix_(order, order))] = joint_block(answer, n)
    ours = joint_block(expected, n)
    return float(np.max(np.abs(ours - theirs) / np.abs(ours).max(axis=tuple(range(1, ours.ndim)), keepdims=True)))


@functools.cache
def expected_answers(robot: Robot, quantity: str, batch: int) -> np.ndarray:
    """mbjax's in float64, of the first states."""
    import jax

    worlds = tuple(x[:NUM_COMPARED] for x in common_worlds(robot, batch))
    with precision("f64"):
        functions, _ = mbjax_functions(robot, "f64")
        return np.asarray(jax.jit(jax.vmap(functions[quantity]))(*worlds))


def joint_block(x: np.ndarray, n: int) -> np.ndarray:
    """The last n rows, and columns of matrices, of every world."""
    return x[:, -n:] if x.ndim == 2 else x[:, -n:, -n:]


def tables(records: list[dict]) -> list[Table]:
    batch = next((r["batch"] for r in records if "batch" in r), BATCH)
    records = [{**r, "label": label(r)} if "label" in r else r for r in records]
    result = []
    for quantity, title in TITLES.items():
        of_it = [r for r in records if r.get("quantity") == quantity]
        result.append(
            table_by_robot(
                f"{title}, batch of {batch}", of_it, microseconds, "µs per evaluation: median [least–upper quartile]."
            )
        )
    compared = [{**r, "label": f"{r['label']}: {r['quantity']}"} for r in records if "difference" in r]
    compiled = [
        {**r, "label": f"{r['label']}: {r['quantity']}"} for r in records if r.get("label", "").startswith("mbjax")
    ]
    result.append(table_by_robot("Compile time", compiled, compile_seconds, "Seconds: trace + lower + compile."))
    note = f"Difference from mbjax in float64 over the largest entry, joints alone, the worst of {NUM_COMPARED} states."
    result.append(table_by_robot("The same quantities?", compared, lambda r: f"{r['difference']:.1e}", note))
    return result


def label(record: dict) -> str:
    threads = f", {variant}" if (variant := record.get("variant", "")).startswith("one thread") else ""
    return record["label"] if record["label"].startswith("Pinocchio") else record["label"] + threads


if __name__ == "__main__":
    run_script("quantities", __doc__, records, ("frax", "pinocchio"))
