"""Contact on a GPU, and the three jobs: what a step, a plan and a fit take in large batches.

    python -m benchmarks.gpu_contact [ROW …] [--quick] [--out FOLDER] [--seconds N]

Rows are `scene:way`, as `ant:f32`; without any, all of them. The scenes are ant, humanoid, touch (a humanoid whose
limbs touch) and g1 (eight spheres under its feet, steps of 5 ms), and the jobs of `gpu_jobs.py`; the ways are f32, f64,
and mujoco_warp where it is installed (pip install mujoco-warp). A rollout is 50 steps of 2 ms in one program; every
world has random torques of its own. Further words of a row: `profile` for the times of its kernels, `NAME=VALUE` for
its environment.

Each row is a process of its own, so that all compile side by side; they take turns to be timed once all are ready. A
row first computes one step of some worlds and its gradient, which are compared with a CPU's in f64. Every result is
written to FOLDER at once, so that a run that is cut off still tells. `--quick` takes few worlds, and shows on a CPU
that the script runs.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from . import gpu_jobs
from .figures import FIGURES, build_mbjax, mjcf
from .robots import ALL_ROBOTS

CHECKED, REPEATS = 256, 5
TIMING_SHARE = 0.4  # of the seconds; rows that are not ready by then are stopped
SCENES: dict[str, dict] = {
    "ant": {"figure": "ant", "worlds": (65536,), "steps": 50},
    "humanoid": {"figure": "humanoid", "worlds": (8192, 65536), "steps": 50},
    "touch": {"figure": "humanoid", "touch": True, "worlds": (8192,), "steps": 50},
    "g1": {"worlds": (4096,), "steps": 4, "gradient": True},
}
WAYS = ("f32", "f64", "mujoco_warp")
REFERENCE = "cpu"  # one more way, in f64


def timed(function: Callable, *args: Any) -> float:
    """The least seconds of several runs."""
    import jax

    least = np.inf
    for _ in range(REPEATS):
        start = time.perf_counter()
        jax.block_until_ready(function(*args))
        least = min(least, time.perf_counter() - start)
    return least


def build(scene: str, dtype: Any) -> tuple[Any, float]:
    """The model of a scene, and how high it starts."""
    of_scene = SCENES[scene]
    if "figure" not in of_scene:
        return walker_on_spheres(dtype), 0.79
    parts = FIGURES[of_scene["figure"]]()
    return build_mbjax(parts, dtype, "lagged", limbs_touch=of_scene.get("touch", False)), parts[0].at[2]


def walker_on_spheres(dtype: Any) -> Any:
    """G1, of whose shapes only the spheres under its feet touch the ground."""
    import mbjax

    robot = ALL_ROBOTS["g1"]
    feet = [("world", f"{side}_ankle_roll_link") for side in ("left", "right")]
    settings = {"time_step": 0.005, "ground": True, "contact_pairs": feet, "dtype": dtype}
    return mbjax.load(robot.path, base="floating", actuators="joints", **settings)


def starts(model: Any, height: float, worlds: int, near: bool = False) -> tuple:
    """Positions, velocities and torques of every world: from where it stands; `near` the ground, turned, for checks."""
    import jax.numpy as jnp

    import mbjax

    state, rng = mbjax.default_state(model), np.random.default_rng(0)
    q = np.tile(np.asarray(state.q, np.float64), (worlds, 1))
    v, u = (scale * rng.normal(size=(worlds, n)) for scale, n in ((0.5, state.v.size), (2.0, model.num_actuators)))
    q[:, 6] = height
    if near:
        q[:, 6] -= rng.uniform(0.0, 0.05 if height > 0.6 else 0.2, worlds)
        q[:, 7:] += 0.1 * rng.normal(size=q[:, 7:].shape)
    return tuple(jnp.asarray(x, state.q.dtype) for x in (q, v, u))


def rollouts(model: Any, steps: int) -> Callable:
    """A rollout of every world."""
    import jax
    import jax.numpy as jnp

    import mbjax

    def run(q: Any, v: Any, u: Any) -> Any:
        after = mbjax.rollout(model, mbjax.State(q, v), jnp.broadcast_to(u, (steps, *u.shape))).final_state
        return after.q, after.v

    return jax.vmap(run)


def with_gradient(function: Callable) -> Callable:
    """The gradient of the squared final state by the torques."""
    import jax
    import jax.numpy as jnp

    return jax.grad(lambda q, v, u: sum(jnp.sum(x**2) for x in function(q, v, u)), 2)


def stem_of(name: str) -> str:
    """What the files of a row are called."""
    return "".join(c if c.isalnum() else "-" for c in name)[:60]


class Row:
    """One process: what it found goes to its file at once, and it waits for its turn before it is timed."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder, self.began = name, folder, time.perf_counter()
        self.found: dict = {"row": name}

    def says(self, **found: Any) -> None:
        """Adds to what is known of the row."""
        self.found |= found
        (self.folder / f"{stem_of(self.name)}.json").write_text(json.dumps(self.found))

    def waits(self) -> None:
        """Waits until the other rows are ready, and those before it have been timed."""
        self.says(ready_s=round(time.perf_counter() - self.began, 1))
        print("ready", flush=True)
        sys.stdin.readline()


def run_row(name: str, folder: Path, quick: bool) -> None:
    """Computes, checks and times one row."""
    row = Row(name, folder)
    scene, way, *words = name.split(":")
    if way == "mujoco_warp":
        return run_mujoco_warp(row, scene, quick)
    if scene in gpu_jobs.JOBS:
        return gpu_jobs.run_job(row, scene, quick, timed)
    import jax

    in_f64 = way in (REFERENCE, "f64")
    jax.config.update("jax_enable_x64", in_f64)
    row.says(device=jax.devices()[0].device_kind, jax=jax.__version__)
    model, height = build(scene, np.float64 if in_f64 else np.float32)
    step, args = rollouts(model, 1), starts(model, height, 4 if quick else CHECKED, near=True)
    for title, function in (("step", step), ("gradient", with_gradient(step))):
        start = time.perf_counter()
        compiled = jax.jit(function).lower(*args).compile()
        row.says(**{f"{title}_compile_s": round(time.perf_counter() - start, 1)})
        if folder.name.endswith("hlo"):
            (folder / f"{stem_of(name)}-{title}.hlo").write_text(compiled.as_text())
        found = jax.device_get(compiled(*args))
        np.savez(folder / f"{stem_of(name)}-{title}.npz", *jax.tree.leaves(found))
    if in_f64:
        return None
    programs = {}
    of_scene = SCENES[scene]
    steps = 2 if quick else of_scene["steps"]
    for worlds in (4,) if quick else of_scene["worlds"]:
        args = starts(model, height, worlds)
        function = rollouts(model, steps)
        kinds = {"rollout": function} | ({"gradient": with_gradient(function)} if of_scene.get("gradient") else {})
        for kind, program in kinds.items():
            start = time.perf_counter()
            compiled = jax.jit(program).lower(*args).compile()
            jax.block_until_ready(compiled(*args))
            row.says(**{f"{kind}_{worlds}_first_s": round(time.perf_counter() - start, 1)})
            programs[kind, worlds] = compiled, args
    row.waits()
    for (kind, worlds), (compiled, args) in programs.items():
        least = timed(compiled, *args)
        row.says(**{f"{kind}_{worlds}_ms": 1e3 * least, f"{kind}_{worlds}_M_steps_s": worlds * steps / least / 1e6})
    if "profile" in words:
        for (kind, worlds), (compiled, args) in programs.items():
            row.says(**{f"{kind}_{worlds}_kernels": kernel_times(folder / f"{kind}{worlds}", compiled, *args)})
    return None


def kernel_times(folder: Path, function: Callable, *args: Any) -> list:
    """Kernels by name in one run: their milliseconds and how often they ran, those that take most first."""
    import jax

    with jax.profiler.trace(str(folder)):
        jax.block_until_ready(function(*args))
    found: dict[str, list] = {}
    for file in folder.rglob("*.xplane.pb"):
        for plane in jax.profiler.ProfileData.from_file(str(file)).planes:
            for line in plane.lines if "GPU" in plane.name else ():
                for event in line.events if line.name.startswith("Stream") else ():
                    of_kernel = found.setdefault(event.name, [0.0, 0])
                    of_kernel[0] += event.duration_ns / 1e6
                    of_kernel[1] += 1
    ranked = sorted(([name, *x] for name, x in found.items()), key=lambda x: -x[1])
    return [["all", sum(x[1] for x in ranked), sum(x[2] for x in ranked)], *ranked[:40]]


def run_mujoco_warp(row: Row, scene: str, quick: bool) -> None:
    """MuJoCo Warp's rollouts, each captured as a CUDA graph."""
    import mujoco
    import mujoco_warp  # pyright: ignore[reportMissingImports]
    import warp  # pyright: ignore[reportMissingImports]

    of_scene = SCENES[scene]
    if "figure" not in of_scene:
        row.says(left_out="no scene of MuJoCo's")
        return
    m = mujoco.MjModel.from_xml_string(mjcf(FIGURES[of_scene["figure"]](), of_scene.get("touch", False)))
    m.opt.iterations = 4
    graphs = {}
    for worlds in (4,) if quick else of_scene["worlds"]:
        d = mujoco.MjData(m)
        mujoco.mj_forward(m, d)
        on_device = mujoco_warp.put_model(m)
        data = mujoco_warp.put_data(m, d, nworld=worlds)
        mujoco_warp.step(on_device, data)
        with warp.ScopedCapture() as capture:
            for _ in range(of_scene["steps"]):
                mujoco_warp.step(on_device, data)
        graphs[worlds] = capture.graph, data, on_device
    row.waits()
    for worlds, (graph, *_) in graphs.items():
        least = np.inf
        for _ in range(REPEATS):
            warp.synchronize()
            start = time.perf_counter()
            warp.capture_launch(graph)
            warp.synchronize()
            least = min(least, time.perf_counter() - start)
        rate = worlds * of_scene["steps"] / least / 1e6
        row.says(**{f"rollout_{worlds}_ms": 1e3 * least, f"rollout_{worlds}_M_steps_s": rate})


def start_row(name: str, folder: Path, quick: bool) -> subprocess.Popen:
    """Starts the process of a row."""
    command = [sys.executable, "-m", "benchmarks.gpu_contact", "--row", name, "--out", str(folder)]
    log = (folder / f"{stem_of(name)}.log").open("w")
    variables = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    variables |= dict(word.split("=", 1) for word in name.split(":") if "=" in word)
    if name.split(":")[1] == REFERENCE:
        variables["JAX_PLATFORMS"] = "cpu"
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [*command, *["--quick"] * quick], stdin=pipe, stdout=pipe, stderr=log, text=True, env=variables
    )


def run_rows(names: list[str], folder: Path, quick: bool, seconds: float) -> None:
    """Runs all rows side by side, and lets them be timed one after the other."""
    until = time.monotonic() + seconds
    processes = {name: start_row(name, folder, quick) for name in names}
    ready: dict[str, bool] = {}

    def watch(name: str) -> None:
        stdout = processes[name].stdout
        assert stdout is not None
        for line in iter(stdout.readline, ""):
            if line.strip() == "ready":
                ready[name] = True
                return
        ready[name] = False

    threads = {name: threading.Thread(target=watch, args=(name,), daemon=True) for name in names}
    for thread in threads.values():
        thread.start()
    for thread in threads.values():
        thread.join(max(0.0, until - TIMING_SHARE * seconds - time.monotonic()))
    for name, process in processes.items():
        if not ready.get(name) and process.poll() is None:
            process.kill()  # it would disturb those that are timed
    for name, process in processes.items():
        if ready.get(name):
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        try:
            process.wait(max(1.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
        report_row(name, folder)
    compare(names, folder)


def report_row(name: str, folder: Path) -> None:
    """Prints what a row found, or the end of what it complained of."""
    stem = stem_of(name)
    file, log = folder / f"{stem}.json", folder / f"{stem}.log"
    found = json.loads(file.read_text()) if file.exists() else {"row": name}
    numbers = {k: v for k, v in found.items() if not isinstance(v, list)}
    print(*(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in numbers.items()), flush=True)
    complaints = [x for x in log.read_text().splitlines() if "Error" in x or "rror:" in x]
    if complaints:
        print("   ", *complaints[-2:], sep="\n    ", flush=True)


def compare(names: list[str], folder: Path) -> None:
    """Prints how far steps and gradients are from a CPU's in f64: at most, and in 99 % of the worlds."""
    for name in names:
        scene, way, *_ = name.split(":")
        for title in ("step", "gradient"):
            own = folder / f"{stem_of(name)}-{title}.npz"
            reference = folder / f"{scene}-{REFERENCE}-{title}.npz"
            if way == REFERENCE or not own.exists() or not reference.exists():
                continue
            with np.load(own) as a, np.load(reference) as b:
                apart = np.concatenate([np.max(np.abs(a[k] - b[k]), -1) / np.max(np.abs(b[k])) for k in b])
            wrong = int(np.sum(~np.isfinite(apart)))
            most = np.nanmax(apart) if wrong < apart.size else np.nan
            usual = np.nanquantile(apart, 0.99)
            line = (
                f"{name} {title}: {most:.1e} of the largest number from a CPU's, 99 % {usual:.1e}, {wrong} not finite"
            )
            print(line, flush=True)
            with (folder / "compared.txt").open("a") as file:
                file.write(line + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_contact", description=__doc__)
    parser.add_argument("rows", nargs="*", help="scene:way; all without any")
    parser.add_argument("--row", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="four worlds and two steps")
    parser.add_argument("--out", type=Path, default=Path("output/gpu_contact"), help="folder of the results")
    parser.add_argument("--seconds", type=float, default=600.0, help="after which rows still running are stopped")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.row:
        run_row(options.row, options.out, options.quick)
        return
    names = options.rows or [f"{scene}:{way}" for scene in SCENES for way in (REFERENCE, *WAYS)] + [
        f"{job}:f32" for job in gpu_jobs.JOBS
    ]
    run_rows(names, options.out, options.quick, options.seconds)


if __name__ == "__main__":
    main()
