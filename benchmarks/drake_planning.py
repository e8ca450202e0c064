"""Drake's direct transcription beside `FeasibilityDDP`: one swing-up on the same steps, same optimum, times of both.

    python -m benchmarks.drake_planning [--steps 100] [--solvers SNOPT IPOPT]

The bundled cart-pole hangs and is to stand at rest after two seconds. Both libraries take the same file, steps of 20 ms
by the same discrete dynamics, costs, limits of the effort, and the same guess. Drake's plant is differentiated by its
AutoDiffXd; its solvers come with `pip install drake`. Times are of the processor; compiling is apart.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant
from pydrake.planning import DirectTranscription
from pydrake.solvers import IpoptSolver, SnoptSolver, SolverOptions

import mbjax
from mbjax import trajectory_optimization as to

DT = 0.02
HANGING, UPRIGHT = np.array([0.0, np.pi, 0.0, 0.0]), np.zeros(4)
EFFORT, END = 0.02, np.array([20.0, 20.0, 5.0, 5.0])  # residuals' weights: half of their squares are costs
SOLVERS = {"SNOPT": SnoptSolver, "IPOPT": IpoptSolver}


def guess_of(steps: int) -> np.ndarray:
    """A straight line of states from hanging to standing."""
    return HANGING + np.linspace(0.0, 1.0, steps + 1)[:, None] * (UPRIGHT - HANGING)


def with_mbjax(steps: int) -> tuple[to.Solution, float, float]:
    """The plan, seconds to solve, and to compile."""
    model = mbjax.load("cart_pole", time_step=DT)
    end = [to.JointGoal(UPRIGHT[:2], weight=END[:2]), to.VelocityGoal(weight=END[2:])]
    start = mbjax.State(jnp.array(HANGING[:2]), jnp.array(HANGING[2:]), jnp.zeros(()))
    problem = to.Problem(model, start, steps, to.Effort(EFFORT), end)
    states = jnp.asarray(guess_of(steps))
    guess = mbjax.State(states[:, :2], states[:, 2:], DT * jnp.arange(steps + 1)), jnp.zeros((steps, 1))
    times = []
    for _ in range(3):
        begin = time.process_time()
        plan = jax.block_until_ready(to.solve(problem, guess, to.FeasibilityDDP(tolerance=1e-10, max_iterations=500)))
        times.append(time.process_time() - begin)
    return plan, min(times), times[0] - min(times)


def with_drake(steps: int, solver: str) -> tuple[bool, float, np.ndarray, float]:
    """Whether Drake's solver succeeded, the cost, the efforts, and seconds."""
    plant = MultibodyPlant(DT)
    Parser(plant).AddModels(str(mbjax.reference_models.path("cart_pole")))
    plant.SetUseSampledOutputPorts(False)  # which are no part of the state that is planned
    plant.Finalize()
    port = plant.get_actuation_input_port().get_index()
    planned = DirectTranscription(plant, plant.CreateDefaultContext(), steps + 1, port)
    program = planned.prog()
    limit = plant.get_joint_actuator(plant.GetJointActuatorIndices()[0]).effort_limit()
    program.AddBoundingBoxConstraint(HANGING, HANGING, planned.initial_state())
    for k in range(steps):
        program.AddBoundingBoxConstraint(-limit, limit, planned.input(k))
        program.AddQuadraticCost(np.array([[EFFORT**2]]), np.zeros(1), planned.input(k))
        program.SetInitialGuess(planned.input(k), np.zeros(1))
    program.AddQuadraticErrorCost(0.5 * np.diag(END**2), UPRIGHT, planned.final_state())
    for k, state in enumerate(guess_of(steps)):
        program.SetInitialGuess(planned.state(k), state)
    options = SolverOptions()
    options.SetOption(IpoptSolver.id(), "tol", 1e-8)
    options.SetOption(SnoptSolver.id(), "Major optimality tolerance", 1e-7)
    begin = time.process_time()
    found = SOLVERS[solver]().Solve(program, None, options)
    seconds = time.process_time() - begin
    efforts = np.array([found.GetSolution(planned.input(k)) for k in range(steps)])
    return found.is_success(), found.get_optimal_cost(), efforts, seconds


def main() -> None:
    """Prints a row for each solver."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--solvers", nargs="+", default=["SNOPT", "IPOPT"], choices=SOLVERS)
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    plan, seconds, compile_seconds = with_mbjax(options.steps)
    print("| | cost | processor s | to compile, s | largest difference of efforts |\n|---|---|---|---|---|")
    print(
        f"| mbjax, FeasibilityDDP{'' if plan.report.converged else ', not converged'} "
        f"| {float(plan.cost):.9g} | {seconds:.3f} | {compile_seconds:.1f} | |", flush=True,
    )  # fmt: skip
    for solver in options.solvers:
        done, cost, efforts, seconds = with_drake(options.steps, solver)
        difference = np.max(np.abs(efforts - np.asarray(plan.efforts)))
        print(
            f"| Drake, {solver}{'' if done else ', not solved'} | {cost:.9g} | {seconds:.3f} | – | {difference:.1e} |"
        )


if __name__ == "__main__":
    main()
