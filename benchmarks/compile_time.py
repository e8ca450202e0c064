"""What programs take to compile: processor seconds to trace, lower and compile, a fresh process a program.

    python -m benchmarks.compile_time [PROGRAM …] [--options xla_backend_optimization_level=1 …] [--second] [--repeat N]

`--options` are XLA's, for all programs. `--second` compiles each twice, in two processes that share a new folder as
JAX's persistent cache, and counts the second. Afterwards each program runs, so that a row also says how fast it is.
Times to compile are processor times, of all threads of the process, without imports and loading of the model; that of a
run is the least of `--repeat`, by the clock.
"""

import argparse
import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from .processes import run_limited

LIMIT_S = 900.0
Program = tuple[Callable, tuple]


def arm_rollout() -> tuple[Callable, Any, Any]:
    """README's cost of the model and efforts, and where it is taken."""
    import jax.numpy as jnp

    import mbjax

    model = mbjax.load("arm", time_step=0.002)
    state, efforts = mbjax.default_state(model), jnp.zeros((100, model.num_actuators))

    def cost(model: Any, efforts: Any) -> Any:
        trajectory = mbjax.rollout(model, state, efforts)
        tool = mbjax.body_poses_in_world(model, trajectory.q[-1]).translation[model.body_index("tool")]
        return jnp.sum((tool - jnp.array([0.5, 0.0, 0.8])) ** 2)

    return cost, model, efforts


def readme_gradient() -> Program:
    import jax

    cost, model, efforts = arm_rollout()
    return jax.value_and_grad(cost, argnums=(0, 1)), (model, efforts)


def gradient_by_efforts() -> Program:
    import jax

    cost, model, efforts = arm_rollout()
    return jax.value_and_grad(lambda efforts: cost(model, efforts)), (efforts,)


def rollout_value() -> Program:
    cost, model, efforts = arm_rollout()
    return lambda efforts: cost(model, efforts), (efforts,)


def cart_poles() -> Program:
    import jax
    import jax.numpy as jnp

    import mbjax

    model = mbjax.load("cart_pole", time_step=0.01)
    q, v, u = (jax.random.normal(jax.random.key(k), (64, n)) for k, n in enumerate((2, 2, 1)))

    def after(x: Any, u: Any) -> Any:
        state, _ = mbjax.step(model, mbjax.State(x[:2], x[2:]), u)
        return jnp.concatenate([state.q, state.v])

    return jax.vmap(jax.jacfwd(after, argnums=(0, 1))), (jnp.concatenate([q, v], 1), u)


def standing_quadruped(worlds: int) -> tuple[Any, Any, Any]:
    """A quadruped whose four feet may touch the ground, and states of many around where it stands."""
    import jax
    import jax.numpy as jnp

    import mbjax

    model = mbjax.load("quadruped", time_step=0.004, ground=0.8, contact_pairs=[("*foot*", "ground")])
    state = mbjax.default_state(model)
    noise = 0.1 * jax.random.normal(jax.random.key(0), (worlds, model.num_velocities))
    states = mbjax.State(jnp.tile(state.q, (worlds, 1)), noise, jnp.zeros(worlds))
    return model, states, jnp.zeros((worlds, model.num_actuators))


def quadruped_step() -> Program:
    import jax

    import mbjax

    model, states, efforts = standing_quadruped(1024)

    def after(state: Any, u: Any) -> Any:
        return mbjax.step(model, state, u)[0]

    return jax.vmap(after), (states, efforts)


def quadruped_gradient() -> Program:
    import jax
    import jax.numpy as jnp

    import mbjax

    model, states, efforts = standing_quadruped(1024)

    def cost(efforts: Any) -> Any:
        end = jax.vmap(lambda state, u: mbjax.rollout(model, state, u, 100).final_state)(states, efforts)
        return jnp.sum(end.q**2) + jnp.sum(end.v**2)

    return jax.grad(cost), (efforts,)


def arm_plan() -> Program:
    from mbjax import trajectory_optimization as to

    problem, _ = docs_arm_problem()
    return to.solve, (problem,)


def arm_plan_step() -> Program:
    import jax

    from mbjax import trajectory_optimization as to

    problem, start = docs_arm_problem()
    plan = jax.tree.map(lambda x: jax.numpy.zeros(x.shape, x.dtype), jax.eval_shape(to.solve, problem))
    return to.mpc_step, (problem, plan, start)


def docs_arm_problem() -> tuple[Any, Any]:
    """The problem of `docs/usage/trajectory_optimization.md`."""
    import jax.numpy as jnp

    import mbjax
    from mbjax import trajectory_optimization as to

    model = mbjax.load("arm", time_step=0.02)
    start = mbjax.default_state(model)
    goal = jnp.array([0.3, 0.5, -0.2, -0.8, 0.1, 0.4, 0.2])
    running = [to.Effort(0.1), to.VelocityGoal(weight=0.1)]
    terminal = [to.JointGoal(goal, weight=10.0), to.VelocityGoal()]
    return to.Problem(model, start, num_steps=20, running=running, terminal=terminal), start


def drone() -> tuple[Any, Any, Callable]:
    """A free body with four propellers that push along its z axis and turn it by their drag: model, start, dynamics."""
    import jax.numpy as jnp

    import mbjax

    plant = mbjax.MultibodyPlant(0.02)
    plant.add_rigid_body("hull", mbjax.SpatialInertia.solid_box_with_mass(1.0, 0.3, 0.3, 0.1))
    model = plant.finalize()
    hubs = 0.2 * jnp.array([[1.0, 0, 0], [0, 1.0, 0], [-1.0, 0, 0], [0, -1.0, 0]])
    spins = jnp.array([1.0, -1.0, 1.0, -1.0])

    def after(model: Any, state: Any, thrusts: Any) -> Any:
        up = mbjax.body_poses_in_world(model, state.q).rotation[1][:, 2]
        wrenches = jnp.concatenate([0.02 * (spins * thrusts)[:, None] * up, thrusts[:, None] * up], 1)
        forces = mbjax.AppliedSpatialForces(["hull"] * 4, wrenches, hubs)
        return mbjax.step(model, state, mbjax.Inputs(applied_spatial_forces=forces))[0]

    return model, mbjax.default_state(model), after


def drone_step() -> Program:
    import jax.numpy as jnp

    model, state, after = drone()
    return after, (model, state, jnp.full(4, 2.45))


def drone_plan() -> Program:
    import jax.numpy as jnp

    from mbjax import trajectory_optimization as to

    model, start, after = drone()
    goal = to.PointGoal("hull", jnp.array([1.0, 0.5, 1.0]))
    low, high, hovering = jnp.zeros(4), jnp.full(4, 8.0), jnp.full((50, 4), 2.45)
    running = [to.VelocityGoal(weight=0.1), to.Effort(0.1)]

    def plan(model: Any, start: Any) -> Any:
        problem = to.Problem(model, start, 50, running, [goal], dynamics=after, efforts=(low, high))
        return to.solve(problem, hovering)

    return plan, (model, start)


def scheduled_contacts() -> Program:
    """The jump of `notebooks/quadruped_gaits.ipynb` without its barriers."""
    import jax.numpy as jnp
    import numpy as np

    import mbjax
    from mbjax import trajectory_optimization as to

    model = mbjax.load("quadruped", time_step=0.02)
    feet = ["front_left_foot", "front_right_foot", "rear_left_foot", "rear_right_foot"]
    contacts = mbjax.ConstraintSet()
    for name in feet:
        normals = [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
        contacts = contacts.add_contact_constraint(name, [0.0, 0.0, 0.0], normals, name=name, stabilization_time=0.05)
    dynamics = to.ScheduledContacts(contacts.bind(model))
    active = np.ones((51, 4), bool)
    active[15:27] = False
    q = mbjax.default_state(model).q.at[7:].set(jnp.tile(jnp.array([0.0, 0.8, -1.6]), 4))
    start = mbjax.State(q, jnp.zeros(model.num_velocities))
    cone = to.at_least(to.FrictionCone(dynamics, 0.8), at="running")
    problem = to.Problem(
        model,
        start,
        50,
        [to.JointGoal(q, weight=0.5), to.VelocityGoal(weight=0.1), to.Effort(0.02)],
        [to.JointGoal(q, weight=5.0)],
        constraints=[cone],
        stages=to.contact_schedule(active),
        dynamics=dynamics,
    )
    return to.solve, (problem,)


def tossed_cube(derivative: str) -> Callable[[], Program]:
    """The derivative of where DiffMJX's tossed cube ends, by the continuous plant's integrator, in double precision."""

    def program() -> Program:
        import jax
        import jax.numpy as jnp

        from .contact_gradients.of_mbjax import build
        from .contact_gradients.problems import cube_toss

        jax.config.update("jax_enable_x64", True)
        end = build(cube_toss, "recommended")
        wanted = {"forward": jax.jacfwd, "reverse": jax.grad}[derivative]
        return wanted(lambda x: end(x, 1e-6)), (jnp.array([-2.0]),)

    return program


PROGRAMS: dict[str, tuple[str, Callable[[], Program]]] = {
    "readme": ("README's gradient by model and efforts", readme_gradient),
    "efforts": ("the same by efforts alone", gradient_by_efforts),
    "value": ("the rollout's cost alone", rollout_value),
    "cart_poles": ("vmap(jacfwd(step)) of 64 cart-poles", cart_poles),
    "quadruped_step": ("quadruped on its feet, step of 1024 worlds", quadruped_step),
    "quadruped_gradient": ("gradient of 100 steps of it", quadruped_gradient),
    "plan": ("the docs' arm plan, to.solve", arm_plan),
    "mpc": ("the docs' arm plan, to.mpc_step", arm_plan_step),
    "scheduled": ("quadruped under scheduled contacts, to.solve", scheduled_contacts),
    "drone_step": ("a free body with four forces, a step", drone_step),
    "drone_plan": ("its plan, to.solve", drone_plan),
    "cube_forward": ("tossed cube, forward mode", tossed_cube("forward")),
    "cube_reverse": ("tossed cube, reverse mode", tossed_cube("reverse")),
}


def measured(name: str, options: dict[str, Any], repeat: int) -> dict[str, Any]:
    """Compiles and runs one program in this process."""
    import jax

    import mbjax  # noqa: F401  (its import is not counted)

    jax.block_until_ready(jax.jit(lambda x: x + 1.0)(1.0))
    function, args = PROGRAMS[name][1]()
    times = [time.process_time()]
    traced = jax.jit(function, compiler_options=options or None).trace(*args)
    times.append(time.process_time())
    lowered = traced.lower()
    times.append(time.process_time())
    compiled = lowered.compile()
    times.append(time.process_time())
    runs = []
    for _ in range(repeat):
        start = time.perf_counter()
        jax.block_until_ready(compiled(*args))
        runs.append(time.perf_counter() - start)
    trace, lower, compile_ = (b - a for a, b in itertools.pairwise(times))
    return {
        "program": name,
        "trace": trace,
        "lower": lower,
        "compile": compile_,
        "sum": times[-1] - times[0],
        "run_ms": 1e3 * min(runs) if runs else None,
        "jax": jax.__version__,
    }


def parsed_options(words: list[str]) -> dict[str, Any]:
    """XLA's options from `name=value`."""
    named = dict(word.split("=", 1) for word in words)
    return {name: int(x) if x.isdigit() else {"true": True, "false": False}.get(x, x) for name, x in named.items()}


def main() -> int:
    """Measures the programs that are named, or all, and prints a line each."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compile_time", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("program", nargs="*", default=list(PROGRAMS), metavar="PROGRAM", help=", ".join(PROGRAMS))
    parser.add_argument("--options", nargs="+", default=[], metavar="NAME=VALUE")
    parser.add_argument("--second", action="store_true", help="count a second process with the persistent cache")
    parser.add_argument("--repeat", type=int, default=10, help="how often each program runs")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.program) - set(PROGRAMS):
        parser.error(f"no program is called {', '.join(sorted(unknown))}; there are {', '.join(PROGRAMS)}.")
    if options.here:
        print(json.dumps(measured(options.program[0], parsed_options(options.options), options.repeat)))
        return 0
    for name in options.program:
        command = [sys.executable, "-m", "benchmarks.compile_time", name, "--here", "--repeat", str(options.repeat)]
        command += ["--options", *options.options] if options.options else []
        with tempfile.TemporaryDirectory() as folder:
            cache = {"JAX_COMPILATION_CACHE_DIR": folder, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
            environment = os.environ | (cache if options.second else {"JAX_ENABLE_COMPILATION_CACHE": "false"})
            for _ in range(1 + options.second):
                lines, status, last = run_limited(command, environment, LIMIT_S)
        print(shown(name, json.loads(lines[-1])) if status == 0 else f"{name}: failed: {last}", flush=True)
    return 0


def shown(name: str, found: dict[str, Any]) -> str:
    """One line of the table."""
    phases = " + ".join(f"{found[phase]:.1f}" for phase in ("trace", "lower", "compile"))
    run = "" if found["run_ms"] is None else f", runs in {found['run_ms']:.2f} ms"
    return f"{PROGRAMS[name][0]} (JAX {found['jax']}): {phases} = {found['sum']:.1f} s{run}"


if __name__ == "__main__":
    sys.exit(main())
