"""What does a step cost where moving bodies touch each other? A humanoid whose limbs may touch, and stacks of boxes.

The humanoid lies on the ground, every world with random torques and velocities of its own: of 79 pairs of shapes few
touch. Boxes of 20 cm stand on each other, every world with velocities of its own. Single precision, beside MJX (Newton,
4 iterations of 8 line-search steps) and MuJoCo's `mj_step` in a Python loop on one core: from the same velocities as
mbjax, with 4 iterations and with as many as it wants, and on from where its scene has come to rest.

A solution's residual is the largest entry of M vdot - forces, over the largest of the forces, each over √M_ii.
"""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from .contact import fallen, measure_mjx, measure_mujoco, random_velocities, settled
from .figures import FRICTION, TIME_STEP, build_mbjax, humanoid, mjcf
from .results import Table
from .script import Options, compile_seconds, failed, microseconds, outcome, precision, run_script, timed

WORLDS = {"humanoid": 256, "5 boxes": 64, "10 boxes": 64}
BOUNDS = {"": {}, ", max_pairs=8, max_contacts=24": {"max_pairs": 8, "max_contacts": 24}}
MUJOCO_ITERATIONS = {", 4 iterations": 4, ", 100 iterations at most": 100}
SIDE = 0.2  # of a box, m
GAP = -1e-4  # between boxes: they overlap as they rest


def records(options: Options) -> Iterator[dict]:
    for scene, worlds in WORLDS.items():
        batch = min(worlds, 8) if options.quick else worlds
        gears = np.array([part.gear for part in humanoid()[1:]]) if scene == "humanoid" else np.zeros(0)
        u = gears * np.random.default_rng(0).uniform(-1.0, 1.0, (batch, gears.size))
        xml = mjcf(humanoid(), limbs_touch=True) if scene == "humanoid" else boxes_mjcf(num_boxes(scene))
        with precision("f32"):
            for label, bounds in BOUNDS.items():
                yield measure_step(scene, f"mbjax{label}", u, bounds, options)
            yield measure_step(scene, "mbjax, a step of a rollout", u, {}, options, in_rollout=True)
            keys = {"scene": scene, "label": "MJX", "batch": batch}
            yield from measure_mjx(keys, xml, u, options.effort)
        for label, iterations in MUJOCO_ITERATIONS.items():
            keys = {"scene": scene, "label": f"MuJoCo mj_step, f64, 1 core{label}", "batch": batch}
            yield outcome(keys, measure_mujoco_moving, xml, u, iterations)
        keys = {"scene": scene, "label": "MuJoCo mj_step, at rest or after a step", "batch": batch}
        yield outcome(keys, measure_mujoco, xml, u)


def measure_step(
    scene: str, label: str, u: np.ndarray, bounds: dict, options: Options, in_rollout: bool = False
) -> dict:
    """A step that returns its contacts, or one of a rollout, which works on lists of those that act."""
    import jax
    import jax.numpy as jnp

    import mbjax

    if scene == "humanoid":
        model = build_mbjax(humanoid(), np.float32, "sap", limbs_touch=True, **bounds)
        state = fallen(model, humanoid()[0].at[2])
    else:
        model, state = stacked(num_boxes(scene), bounds)
    v = state.v + jnp.asarray(random_velocities(len(u), state.v.size), jnp.float32)

    def step(v: Any, u: Any) -> Any:
        after, outputs = mbjax.step(model, mbjax.State(state.q, v, state.time), u)
        results = outputs.contact_results
        vdot = outputs.generalized_acceleration
        return after.q, after.v, vdot, results.num_iterations, results.is_active.sum()

    def step_of_rollout(v: Any, u: Any) -> Any:
        after = mbjax.rollout(model, mbjax.State(state.q, v, state.time), u[None])
        return after.q[-1], after.v[-1]

    args = v, jnp.asarray(u, jnp.float32)
    keys = {"scene": scene, "label": label, "batch": len(u), "pairs": len(model.layout.contact.pairs)}
    if in_rollout:
        return timed(keys, (jax.vmap(step_of_rollout), args), len(u), options.effort)
    *_, vdot, iterations, active = jax.jit(jax.vmap(step))(*args)
    residual = jax.jit(jax.vmap(lambda v, u, vdot: residual_of(model, state, v, u, vdot)))(*args, vdot)
    counts = {
        "iterations": [float(iterations.mean()), int(iterations.max())],
        "active": float(active.mean()),
        "residual": [float(np.median(residual)), float(np.max(residual))],
    }
    return {**timed(keys, (jax.vmap(step), args), len(u), options.effort), **counts}


def residual_of(model: Any, state: Any, v: Any, u: Any, vdot: Any) -> Any:
    """Of a step's acceleration in the step's equation."""
    import jax.numpy as jnp

    import mbjax
    from mbjax.contact.search.convex_problem import calc_problem_residual
    from mbjax.simulation.discrete_acceleration import calc_step_problem

    problem, *_ = calc_step_problem(model, mbjax.State(state.q, v, state.time), mbjax.Inputs(actuation=u))
    residual = calc_problem_residual(model.topology, problem, vdot)
    required = mbjax.mass_matrix(model, state.q) @ vdot + problem.terms.diagonal * vdot
    size = jnp.abs(required) + jnp.abs(problem.applied) + jnp.abs(required - problem.applied - residual)
    scale = 1.0 / jnp.sqrt(problem.inertia)
    return jnp.max(scale * jnp.abs(residual)) / jnp.max(scale * size)


def measure_mujoco_moving(xml: str, u: np.ndarray, iterations: int) -> dict:
    """Of one step from where the scene has come to rest, each with velocities and torques of its own."""
    import mujoco

    m = mujoco.MjModel.from_xml_string(xml)
    rest = settled(m).qpos.copy()
    m.opt.iterations = iterations
    d, M, v = mujoco.MjData(m), np.zeros((m.nv, m.nv)), random_velocities(len(u), m.nv)
    times, counts, residuals = [], [], []

    def begin(k: int) -> None:
        mujoco.mj_resetData(m, d)
        d.qpos[:], d.qvel[:], d.ctrl[:] = rest, v[k], u[k]

    for _ in range(20):
        took = 0.0
        for k in range(len(u)):
            begin(k)
            started = time.perf_counter()
            mujoco.mj_step(m, d)
            took += time.perf_counter() - started
        times.append(took / len(u))
    for k in range(len(u)):
        begin(k)
        mujoco.mj_forward(m, d)
        counts.append(int(np.max(d.solver_niter)))
        mujoco.mj_fullM(m, d, M)
        required = M @ d.qacc
        residual = required - d.qfrc_smooth - d.qfrc_constraint
        size = np.abs(required) + np.abs(d.qfrc_smooth) + np.abs(d.qfrc_constraint)
        scale = 1.0 / np.sqrt(np.diag(M))
        residuals.append(np.max(scale * np.abs(residual)) / np.max(scale * size))
    return {
        "median": np.median(times),
        "minimum": min(times),
        "upper_quartile": float(np.quantile(times, 0.75)),
        "iterations": [float(np.mean(counts)), max(counts)],
        "residual": [float(np.median(residuals)), float(np.max(residuals))],
    }


def num_boxes(scene: str) -> int:
    return int(scene.split()[0])


def stacked(count: int, bounds: dict) -> tuple[Any, Any]:
    """Boxes on each other on the ground: the model and its state."""
    import jax.numpy as jnp

    import mbjax
    from mbjax.geometry import Box, Geometry, HalfSpace

    plant = mbjax.MultibodyPlant(TIME_STEP, **bounds)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), FRICTION)
    inertia = mbjax.SpatialInertia.solid_box_with_mass(1.0, SIDE, SIDE, SIDE)
    for k in range(count):
        plant.add_rigid_body(f"box{k}", inertia)
        plant.register_collision_geometry(f"box{k}", Geometry("box", Box((SIDE, SIDE, SIDE))), FRICTION)
    model = plant.finalize(np.float32)
    state = mbjax.default_state(model)
    heights = [model.joint(f"box{k}").q.start + 6 for k in range(count)]
    q = state.q.at[jnp.array(heights)].set(jnp.array(box_heights(count), jnp.float32))
    return model, mbjax.State(q, state.v, state.time)


def box_heights(count: int) -> list[float]:
    """Of the middle of each box."""
    return [0.5 * SIDE + GAP + k * (SIDE + GAP) for k in range(count)]


def boxes_mjcf(count: int) -> str:
    """The same in MuJoCo's words."""
    geom = f'<geom type="box" size="{SIDE / 2} {SIDE / 2} {SIDE / 2}" mass="1"/>'
    bodies = (f'<body pos="0 0 {z:.17g}"><freejoint/>{geom}</body>' for z in box_heights(count))
    return (
        f'<mujoco><option timestep="{TIME_STEP}" solver="Newton" iterations="4" ls_iterations="8"/><worldbody>'
        f'<geom type="plane" size="0 0 1" friction="{FRICTION}"/>{"".join(bodies)}</worldbody></mujoco>'
    )


def tables(records: list[dict]) -> list[Table]:
    records = [r for r in records if r["status"] != "device"]
    scenes = list(dict.fromkeys(r["scene"] for r in records))
    found = {(r["label"], r["scene"]): r for r in records}

    def table(title: str, cell: Any, note: str) -> Table:
        rows = []
        for label in dict.fromkeys(r["label"] for r in records):
            of_label = [found.get((label, scene)) for scene in scenes]
            rows.append((label, *("–" if r is None else r["status"] if failed(r) else cell(r) for r in of_label)))
        heads = [f"{scene}, {next(r['batch'] for r in records if r['scene'] == scene)} worlds" for scene in scenes]
        return Table(title, ("", *heads), tuple(rows), note)

    def work(record: dict) -> str:
        if "iterations" not in record:
            return "–"
        cell = "{:.1f} / {}; {:.0e} / {:.0e}".format(*record["iterations"], *record["residual"])
        return f"{record['pairs']} pairs, {record['active']:.1f} points act, {cell}" if "pairs" in record else cell

    return [
        table("A step of bodies that touch each other", microseconds, "µs per world: median [least–upper quartile]."),
        table("Work", work, "Newton iterations: mean / most of the worlds of the batch; residual: median / largest."),
        table("Compile time", compile_seconds, "Seconds: trace + lower + compile."),
    ]


if __name__ == "__main__":
    run_script("touching_bodies", __doc__, records)
