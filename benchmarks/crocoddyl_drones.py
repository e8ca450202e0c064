"""Crocoddyl's part of `benchmarks/drones.py`: drones and starts as JSON in, what its solvers found as JSON out."""

import json
import sys
import time
from typing import Any

import crocoddyl
import numpy as np
import pinocchio


def with_angles(urdf: str) -> str:
    """The robot with angles as positions: Pinocchio keeps a continuous joint's cosine and sine."""
    limit = '<limit lower="-1e3" upper="1e3" effort="1e3" velocity="1e3"/></joint>'
    return urdf.replace("continuous", "revolute").replace("</joint>", limit)


def problem_of(given: dict, start: np.ndarray) -> Any:
    """The shooting problem from one start."""
    pin = pinocchio.buildModelFromXML(with_angles(given["urdf"]), pinocchio.JointModelFreeFlyer())
    state = crocoddyl.StateMultibody(pin)
    thrusters = [
        crocoddyl.Thruster(
            pinocchio.SE3(np.eye(3), np.array(point)),
            drag,
            crocoddyl.ThrusterType.CW if drag > 0 else crocoddyl.ThrusterType.CCW,
            0.0,
            given["high"],
        )
        for point, drag in zip(given["points"], given["drag"], strict=True)
    ]
    for thruster, drag in zip(thrusters, given["drag"], strict=True):
        thruster.ctorque = abs(drag)
    actuation = crocoddyl.ActuationModelFloatingBaseThrusters(state, thrusters)
    goal = np.concatenate([pinocchio.neutral(pin), np.zeros(pin.nv)])
    joints = pin.nv - 6
    weights = np.concatenate([given["weights"][0] * np.ones(6 + joints), given["weights"][1] * np.ones(6 + joints)])
    hover = np.array(given["hover"])

    def action(factor: float, dt: float) -> Any:
        costs = crocoddyl.CostModelSum(state, actuation.nu)
        away = crocoddyl.ResidualModelState(state, goal, actuation.nu)
        activation = crocoddyl.ActivationModelWeightedQuad(weights)
        costs.addCost("state", crocoddyl.CostModelResidual(state, activation, away), factor)
        effort = crocoddyl.ResidualModelControl(state, hover)
        costs.addCost("effort", crocoddyl.CostModelResidual(state, effort), given["effort"])
        dynamics = crocoddyl.DifferentialActionModelFreeFwdDynamics(state, actuation, costs)
        model = crocoddyl.IntegratedActionModelEuler(dynamics, dt)
        if given["limited"]:
            limit = np.concatenate([np.full(4, given["high"]), np.full(joints, 1e3)])
            model.u_lb, model.u_ub = np.where(np.arange(len(limit)) < 4, 0.0, -1e3), limit
        return model

    running = action(1.0, given["dt"])
    problem = crocoddyl.ShootingProblem(start, [running] * given["steps"], action(given["end"], 0.0))
    problem.nthreads = 1  # else it shares nodes out to all cores, whose waiting counts as processor time
    return problem


def main() -> None:
    """Solves each start; the first thirty times, of which the quickest counts."""
    given = json.load(sys.stdin)
    found = []
    for k, start in enumerate(given["starts"]):
        start = np.array(start)
        problem = problem_of(given, start)
        seconds = np.inf
        for _ in range(30 if k == 0 else 1):
            solver = crocoddyl.SolverBoxFDDP(problem) if given["limited"] else crocoddyl.SolverFDDP(problem)
            solver.th_stop = given["tolerance"]
            begin = time.process_time()
            converged = solver.solve(
                [start] * (given["steps"] + 1), [np.array(given["hover"])] * given["steps"], given["most"], False
            )
            seconds = min(seconds, time.process_time() - begin)
        found.append({"cost": solver.cost, "iterations": solver.iter, "seconds": seconds, "converged": bool(converged)})
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
