"""What does a step with contact cost? An ant and a humanoid lying on the ground, batch 1024.

Every world has random torques and velocities of its own. mbjax's step, its vjp by (q, v, u), and the gradient of 100
steps of one world by all torques; beside MJX (Newton, 4 iterations of 8 line-search steps, as in its own examples; at
most 256 worlds, since 1024 did not end in minutes) and MuJoCo's `mj_step` in a Python loop on one core.
"""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from .figures import FIGURES, Part, build_mbjax, mjcf
from .measure import Effort
from .results import Table
from .script import DTYPES, Options, compile_seconds, failed, microseconds, outcome, precision, run_script, timed

BATCH = 1024
MJX_BATCH = 256
SPEED = 0.05  # of the random velocities, in rad/s and m/s
SETTLING_STEPS = 500
NUM_C_STEPS = 2000
NUM_GRADIENT_STEPS = 100
OF_ROLLOUT = "gradient of 100 steps"


def records(options: Options) -> Iterator[dict]:
    batch = 32 if options.quick else BATCH
    for name, parts in FIGURES.items():
        gears = np.array([part.gear for part in parts()[1:]])
        u = gears * np.random.default_rng(0).uniform(-1.0, 1.0, (batch, gears.size))
        for dtype in DTYPES:
            with precision(dtype):
                yield from measure_mbjax(name, parts(), dtype, u, options.effort)
        with precision("f32"):
            few = u[:MJX_BATCH]
            keys = {"figure": name, "label": f"MJX, f32, {len(few)} worlds", "batch": len(few)}
            yield from measure_mjx(keys, mjcf(parts()), few, options.effort)
        keys = {"figure": name, "label": "MuJoCo mj_step, f64, 1 core", "batch": batch}
        yield outcome(keys, measure_mujoco, mjcf(parts()), u)


def measure_mbjax(name: str, parts: list[Part], dtype: str, u: np.ndarray, effort: Effort) -> Iterator[dict]:
    import jax
    import jax.numpy as jnp

    import mbjax

    width = {"f32": np.float32, "f64": np.float64}[dtype]
    for approximation in ("sap", "lagged") if dtype == "f32" else ("sap",):
        model = build_mbjax(parts, width, approximation)
        state = fallen(model, parts[0].at[2])
        q = jnp.broadcast_to(state.q, (u.shape[0], state.q.size))
        v = state.v + jnp.asarray(random_velocities(u.shape[0], state.v.size), width)

        def step(q: Any, v: Any, u: Any, m: Any = model) -> Any:
            after, outputs = mbjax.step(m, mbjax.State(q, v, jnp.zeros((), q.dtype)), u)
            return (after.q, after.v), outputs.contact_results.num_iterations

        def gradient(q: Any, v: Any, u: Any, step: Any = step) -> Any:
            after, pull, _ = jax.vjp(step, q, v, u, has_aux=True)
            return pull(after)

        args = (q, v, jnp.asarray(u, width))
        keys = {"figure": name, "label": f"mbjax {approximation}, {dtype}", "batch": u.shape[0]}
        record = timed(keys, (jax.vmap(step), args), u.shape[0], effort)
        iterations = np.asarray(jax.jit(jax.vmap(step))(*args)[1])
        yield {**record, "iterations": [float(iterations.mean()), int(iterations.max())]}
        keys = {**keys, "label": f"mbjax {approximation}, vjp, {dtype}"}
        yield timed(keys, (jax.vmap(gradient), args), u.shape[0], effort)

        def cost(u: Any, state: Any, m: Any = model) -> Any:
            return jnp.sum(mbjax.rollout(m, state, u).final_state.q ** 2)

        keys = {**keys, "label": f"mbjax {approximation}, {OF_ROLLOUT}, {dtype}", "batch": 1}
        controls = jnp.asarray(np.resize(u, (NUM_GRADIENT_STEPS, u.shape[1])), width)
        yield timed(keys, (jax.grad(cost), (controls, state)), 1, effort)


def fallen(model: Any, height: float) -> Any:
    """The state of a figure that has fallen down without torques."""
    import jax

    import mbjax

    state = mbjax.default_state(model)
    state = mbjax.State(state.q.at[model.joint("torso").q.start + 6].set(height), state.v, state.time)
    return jax.jit(lambda state: mbjax.rollout(model, state, num_steps=SETTLING_STEPS).final_state)(state)


def measure_mjx(keys: dict, xml: str, u: np.ndarray, effort: Effort) -> Iterator[dict]:
    """Of worlds with random velocities in the settled state."""
    try:
        import mujoco
        from mujoco import mjx
    except ImportError as error:
        yield {**keys, "status": "missing", "detail": str(error)}
        return
    import jax
    import jax.numpy as jnp

    m = mujoco.MjModel.from_xml_string(xml)
    model, data = mjx.put_model(m), mjx.put_data(m, settled(m))
    qvel = data.qvel + jnp.asarray(random_velocities(u.shape[0], m.nv), jnp.float32)
    batch = jax.vmap(lambda u, qvel: data.replace(ctrl=u, qvel=qvel))(jnp.asarray(u, jnp.float32), qvel)

    def step(d: Any) -> Any:
        after = mjx.step(model, d)
        return after.qpos, after.qvel

    yield timed(keys, (jax.vmap(step), (batch,)), u.shape[0], effort)


def measure_mujoco(xml: str, u: np.ndarray) -> dict:
    """Of steps one after the other from the settled state, each with other torques."""
    import mujoco

    m = mujoco.MjModel.from_xml_string(xml)
    d = settled(m)
    times = []
    for _ in range(5):
        started = time.perf_counter()
        for k in range(NUM_C_STEPS):
            d.ctrl[:] = u[k % len(u)]
            mujoco.mj_step(m, d)
        times.append((time.perf_counter() - started) / NUM_C_STEPS)
    return {"median": np.median(times), "minimum": min(times), "upper_quartile": float(np.quantile(times, 0.75))}


def random_velocities(worlds: int, nv: int) -> np.ndarray:
    """Of each world."""
    return SPEED * np.random.default_rng(1).standard_normal((worlds, nv))


def settled(m: Any) -> Any:
    """Fallen down without torques."""
    import mujoco

    d = mujoco.MjData(m)
    for _ in range(SETTLING_STEPS):
        mujoco.mj_step(m, d)
    return d


def tables(records: list[dict]) -> list[Table]:
    records = [r for r in records if r["status"] != "device"]
    steps, rollouts = ([r for r in records if (OF_ROLLOUT in r["label"]) == flag] for flag in (False, True))
    batch = next((r["batch"] for r in steps), BATCH)
    found = {(r["label"], r["figure"]): r for r in records}

    def table(title: str, cell: Any, note: str, records: list[dict] = steps) -> Table:
        rows = []
        for label in dict.fromkeys(r["label"] for r in records):
            of_label = [found.get((label, figure)) for figure in FIGURES]
            rows.append((label, *("–" if r is None else r["status"] if failed(r) else cell(r) for r in of_label)))
        return Table(title, ("", *FIGURES), tuple(rows), note)

    def iterations(record: dict) -> str:
        return "{:.1f} / {}".format(*record["iterations"]) if "iterations" in record else "–"

    return [
        table(f"A step with contact, batch of {batch}", microseconds, "µs per world: median [least–upper quartile]."),
        table("Newton iterations", iterations, "Mean / most of the worlds of the batch."),
        table("The gradient of 100 steps by all torques, one world", microseconds, "µs.", rollouts),
        table("Compile time", compile_seconds, "Seconds: trace + lower + compile.", records),
    ]


if __name__ == "__main__":
    run_script("contact", __doc__, records)
