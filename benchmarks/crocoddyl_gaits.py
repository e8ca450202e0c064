"""Crocoddyl's part of `benchmarks/gaits.py`: gaits node by node, and what FDDP found, as JSON; a robot as JSON in.

The problems are those of `crocoddyl.utils.quadruped` and `crocoddyl.utils.biped`, each from standing. Every node is
read back from its action model, so that nothing is said twice.
"""

import json
import sys
import time
from typing import Any

import crocoddyl
import numpy as np
import pinocchio
from crocoddyl.utils.biped import SimpleBipedGaitProblem
from crocoddyl.utils.quadruped import SimpleQuadrupedalGaitProblem


def problems(model: Any, x0: np.ndarray, given: dict) -> dict[str, Any]:
    """The gaits, by the names of functions and their arguments, each with its coefficient of friction."""
    found = {}
    for name, (kind, arguments, friction) in given["gaits"].items():
        kinds = {2: SimpleBipedGaitProblem, 4: SimpleQuadrupedalGaitProblem}
        maker = kinds[len(given["feet"])](model, *given["feet"])
        maker.mu = friction
        arguments = [np.array(x, float) if isinstance(x, list) else x for x in arguments]
        found[name] = getattr(maker, f"create{kind}Problem")(x0, *arguments)
    return found


def node_of(model: Any, pin: Any, feet: list[str], cone_of: dict) -> dict[str, Any]:
    """Contacts and costs of one action model, whose weights are those of half squares, per second."""
    is_impulse = not hasattr(model, "differential")
    inner = model if is_impulse else model.differential
    contacts = inner.impulses.impulses.todict() if is_impulse else inner.contacts.contacts.todict()
    names = {pin.frames[(item.impulse if is_impulse else item.contact).id].name for item in contacts.values()}
    node: dict[str, Any] = {
        "impulse": is_impulse,
        "factor": 1.0 if is_impulse else model.dt,
        "active": [name in names for name in feet],
        "com": [0.0] * 3,
        "com_weight": 0.0,
        "feet": [[0.0] * 3 for _ in feet],
        "feet_weights": [0.0] * len(feet),
        **({"turns": [np.eye(3).tolist() for _ in feet]} if len(feet) == 2 else {}),
        "effort_weight": 0.0,
        "bounds_weight": 0.0,
        "cone_weight": 0.0,
    }
    for name, item in inner.costs.costs.todict().items():
        residual, activation, weight = item.cost.residual, item.cost.activation, item.weight
        if name == "comTrack":
            node |= {"com": np.array(residual.reference).tolist(), "com_weight": weight}
        elif name.endswith("_footTrack"):
            foot = feet.index(pin.frames[residual.id].name)
            goal, is_pose = residual.reference, hasattr(residual.reference, "translation")
            node["feet"][foot] = np.array(goal.translation if is_pose else goal).tolist()
            node["feet_weights"][foot] = weight
            if is_pose:
                node["turns"][foot] = goal.rotation.tolist()
        elif name.endswith(("_frictionCone", "_wrenchCone")):
            cone = residual.reference
            node |= {"cone_weight": weight}
            cone_of.update(
                A=np.array(cone.A).tolist(), lower=np.array(cone.lb).tolist(), upper=np.array(cone.ub).tolist()
            )
        elif name == "stateReg":
            node["state_weights"] = (weight * np.array(activation.weights)).tolist()
        elif name == "ctrlReg":
            node["effort_weight"] = weight
        elif name == "stateBounds":
            bounds = activation.bounds
            node["bounds_weight"] = weight
            BOUNDS.update(lower=np.array(bounds.lb).tolist(), upper=np.array(bounds.ub).tolist())
        else:
            raise ValueError(f"a cost that the other side does not know: {name}")
    return node


BOUNDS: dict[str, Any] = {}


def main() -> None:
    """Solves the gaits, three times each, and prints what the quickest took."""
    given = json.load(sys.stdin)
    pin = pinocchio.buildModelFromXML(given["urdf"], pinocchio.JointModelFreeFlyer())
    q0 = pinocchio.neutral(pin)
    q0[2] = given["height"]
    for name, i in zip(pin.names[2:], range(7, pin.nq), strict=True):
        q0[i] = given["standing"][name]
    pin.referenceConfigurations["standing"] = pin.referenceConfigurations["half_sitting"] = q0
    x0 = np.concatenate([q0, np.zeros(pin.nv)])
    out: dict[str, Any] = {"joint_names": list(pin.names), "start": x0.tolist(), "gaits": {}}
    for name, problem in problems(pin, x0, given).items():
        problem.nthreads = 1
        guess = problem.quasiStatic([x0] * problem.T)
        best: dict[str, Any] = {}
        for _ in range(3):
            solver = crocoddyl.SolverFDDP(problem)
            solver.th_stop = 1e-9
            begin = time.process_time()
            solver.solve([x0] * (problem.T + 1), guess, 300, False)
            seconds = time.process_time() - begin
            if not best or seconds < best["seconds"]:
                best = {"cost": solver.cost, "iterations": solver.iter + 1, "seconds": seconds}
        states, efforts = np.array(solver.xs), [np.array(u) for u in solver.us]
        problem.calc(solver.xs, solver.us)
        nodes = [*problem.runningModels, problem.terminalModel]
        costs = [data.cost for data in problem.runningDatas] + [problem.terminalData.cost]

        def whole(u: np.ndarray) -> list[float]:
            return u.tolist() if len(u) else [0.0] * (pin.nv - 6)

        cone: dict[str, Any] = {}
        out["gaits"][name] = {
            **best,
            "nodes": [node_of(node, pin, given["feet"], cone) for node in nodes],
            "cone": cone,
            "guess": [whole(u) for u in guess],
            "states": states.tolist(),
            "efforts": [whole(u) for u in efforts],
            "costs": costs,
        }
    out |= {"bounds": BOUNDS}
    print(json.dumps(out).replace("Infinity", "1e300"))


if __name__ == "__main__":
    main()
