"""What does a step cost where moving bodies touch each other? A humanoid whose limbs may touch, and stacks of boxes.

The humanoid lies on the ground, every world with random torques and velocities of its own: of 79 pairs of shapes few
touch. Boxes of 20 cm stand on each other, every world with velocities of its own. Single precision, beside MJX (Newton,
4 iterations of 8 line-search steps) and MuJoCo's `mj_step` in a Python loop on one core.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from .contact import fallen, measure_mjx, measure_mujoco, random_velocities
from .figures import FRICTION, TIME_STEP, build_mbjax, humanoid, mjcf
from .results import Table
from .script import Options, compile_seconds, failed, microseconds, outcome, precision, run_script, timed

WORLDS = {"humanoid": 256, "5 boxes": 64, "10 boxes": 64}
BOUNDS = {"": {}, ", max_pairs=8, max_contacts=24": {"max_pairs": 8, "max_contacts": 24}}
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
        keys = {"scene": scene, "label": "MuJoCo mj_step, f64, 1 core", "batch": batch}
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
        return after.q, after.v, results.num_iterations, results.is_active.sum()

    def step_of_rollout(v: Any, u: Any) -> Any:
        after = mbjax.rollout(model, mbjax.State(state.q, v, state.time), u[None])
        return after.q[-1], after.v[-1]

    args = v, jnp.asarray(u, jnp.float32)
    keys = {"scene": scene, "label": label, "batch": len(u), "pairs": len(model.layout.contact.pairs)}
    if in_rollout:
        return timed(keys, (jax.vmap(step_of_rollout), args), len(u), options.effort)
    *_, iterations, active = jax.jit(jax.vmap(step))(*args)
    counts = {"iterations": [float(iterations.mean()), int(iterations.max())], "active": float(active.mean())}
    return {**timed(keys, (jax.vmap(step), args), len(u), options.effort), **counts}


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
        return "{} pairs, {:.1f} points act, {:.1f} / {}".format(
            record["pairs"], record["active"], *record["iterations"]
        )

    return [
        table("A step of bodies that touch each other", microseconds, "µs per world: median [least–upper quartile]."),
        table("Work", work, "Newton iterations: mean / most of the worlds of the batch."),
        table("Compile time", compile_seconds, "Seconds: trace + lower + compile."),
    ]


if __name__ == "__main__":
    run_script("touching_bodies", __doc__, records)
