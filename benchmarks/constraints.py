"""What do constraints cost? A1 on four point contacts, 12 rows, batch 1024.

Constrained forward dynamics by every strategy and its vjp by (q, v, tau), beside free forward dynamics and its vjp, and
beside Pinocchio's `constraintDynamics` and `computeConstraintDynamicsDerivatives` in a Python loop on one core.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from .forward_dynamics import time_compiled
from .measure import Effort
from .peers import build_pinocchio, load_mbjax, mbjax_joint_names
from .results import Table
from .robots import ROBOTS
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

BATCH = 1024
ROBOT = ROBOTS["a1"]
FEET = ("FR_foot", "FL_foot", "RR_foot", "RL_foot")


def records(options: Options) -> Iterator[dict]:
    batch = 32 if options.quick else BATCH
    for dtype in DTYPES:
        with precision(dtype):
            yield from measure_mbjax(dtype, batch, options.effort)
    with precision("f64"):
        for label, derivatives in (("constraintDynamics", False), ("and its derivatives", True)):
            keys = {"robot": ROBOT.name, "label": f"Pinocchio {label}, f64, 1 core", "batch": batch}
            yield outcome(keys, measure_pinocchio, batch, derivatives, options.effort)


def measure_mbjax(dtype: str, batch: int, effort: Effort) -> Iterator[dict]:
    import jax

    from mbjax.command_line.questions import random_worlds

    model = load_mbjax(ROBOT, dtype)
    worlds = random_worlds(model, batch)
    arguments = (worlds.q, worlds.v, worlds.tau)
    for label, one in ways(model).items():
        keys = {"robot": ROBOT.name, "label": f"{label}, {dtype}", "batch": batch}
        yield timed(keys, (jax.vmap(one), arguments), batch, effort)
        if label in ("free", "Direct"):

            def gradient(q: Any, v: Any, tau: Any, one: Any = one) -> Any:
                vdot, pull = jax.vjp(jax.vmap(one), q, v, tau)
                return pull(vdot)

            keys = {"robot": ROBOT.name, "label": f"{label}, vjp, {dtype}", "batch": batch}
            yield timed(keys, (gradient, arguments), batch, effort)


def ways(model: Any) -> dict[str, Any]:
    """vdot of one world: without constraints, then on four feet by every strategy."""
    import mbjax

    constraints = mbjax.ConstraintSet()
    for foot in FEET:
        constraints.add_contact_constraint(foot, np.zeros(3), np.eye(3), name=foot)
    cset = constraints.bind(model)

    def constrained(solver: Any) -> Any:
        return lambda q, v, tau: mbjax.constrained_forward_dynamics(model, cset, q, v, tau, None, solver).vdot

    strategies = (mbjax.Direct(), mbjax.RangeSpace(), mbjax.NullSpace(), mbjax.Kokkevis(), mbjax.Proximal())
    free = {"free": lambda q, v, tau: mbjax.forward_dynamics(model, q, v, tau)}
    return free | {type(s).__name__: constrained(s) for s in strategies}


def measure_pinocchio(batch: int, derivatives: bool, effort: Effort) -> dict:
    """The cost of a trivial call through the same binding is taken off."""
    import pinocchio as pin

    from mbjax.command_line.questions import random_worlds

    ours = load_mbjax(ROBOT, "f64")
    problem = build_pinocchio(ROBOT, tuple(mbjax_joint_names(ours)), "f64")
    worlds = random_worlds(ours, batch)
    common = tuple(np.asarray(x) for x in (worlds.q, worlds.v, worlds.tau))
    states = [tuple(map(np.ascontiguousarray, s)) for s in zip(*problem.convention.from_common(*common), strict=True)]
    model, contacts, contact_data = pinocchio_contacts()
    data = model.createData()
    pin.initConstraintDynamics(model, data, contacts, contact_data)
    settings = pin.ProximalSettings(1e-12, 1e-12, 0.0, 1)

    def run(q: Any, v: Any, tau: Any) -> Any:
        vdot = pin.constraintDynamics(model, data, q, v, tau, contacts, contact_data, settings)
        if derivatives:
            pin.computeConstraintDynamicsDerivatives(model, data, contacts, contact_data, settings)
        return vdot

    return time_compiled(run, problem.trivial, states, effort)


def pinocchio_contacts() -> tuple[Any, Any, Any]:
    """A1 with four point contacts."""
    import pinocchio as pin

    from .robots import reduced_urdf

    model = pin.buildModelFromXML(reduced_urdf(ROBOT), pin.JointModelFreeFlyer())
    contacts, contact_data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for foot in FEET:
        frame = model.frames[model.getFrameId(foot, pin.FrameType.BODY)]
        point, aligned = pin.ContactType.CONTACT_3D, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        contacts.append(pin.RigidConstraintModel(point, model, frame.parentJoint, frame.placement, aligned))
        contact_data.append(contacts[-1].createData())
    return model, contacts, contact_data


def tables(records: list[dict]) -> list[Table]:
    batch = next((r["batch"] for r in records if "batch" in r), BATCH)
    return [
        table_by_robot(
            f"A1 on four point contacts, batch of {batch}", records, microseconds,
            "µs per evaluation: median [least–upper quartile].",
        ),
        table_by_robot("Compile time", records, compile_seconds, "Seconds: trace + lower + compile."),
    ]  # fmt: skip


if __name__ == "__main__":
    run_script("constraints", __doc__, records)
