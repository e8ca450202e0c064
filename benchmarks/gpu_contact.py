"""Contact on a GPU: rollouts of an ant, a humanoid and G1, f32, with XLA's loop and with a warp a world.

    python -m benchmarks.gpu_contact [--quick]

Beside MuJoCo Warp where it is installed (pip install mujoco-warp). A rollout is 50 steps of 2 ms in one program, with
random torques; G1 takes 4 steps of 5 ms on eight spheres under its feet, forward and with the gradient. On a CPU only
`--quick` is bearable, and shows that the script runs.
"""

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .figures import FIGURES, build_mbjax, mjcf
from .robots import ALL_ROBOTS

STEPS, REPEATS = 50, 5
CASES = (("ant", False, 65536), ("humanoid", False, 8192), ("humanoid", False, 65536), ("humanoid", True, 8192))
SETTINGS = {"XLA's loop": "0", "a warp a world": "1"}


def timed(function: Callable, *args: Any) -> tuple[float, float]:
    """Seconds to compile with the first run, and the least of several runs."""
    import jax

    start = time.perf_counter()
    jax.block_until_ready(function(*args))
    first, least = time.perf_counter() - start, np.inf
    for _ in range(REPEATS):
        start = time.perf_counter()
        jax.block_until_ready(function(*args))
        least = min(least, time.perf_counter() - start)
    return first, least


def rollouts(model: Any, height: float, worlds: int, steps: int) -> tuple[Callable, tuple]:
    """A rollout of every world from near the ground, and its arguments."""
    import jax
    import jax.numpy as jnp

    import mbjax

    state, rng = mbjax.default_state(model), np.random.default_rng(0)
    q = jnp.tile(state.q, (worlds, 1)).at[:, 6].set(height)
    v = jnp.asarray(0.5 * rng.normal(size=(worlds, state.v.size)), q.dtype)
    u = jnp.asarray(2.0 * rng.normal(size=(worlds, model.num_actuators)), q.dtype)

    def run(q: Any, v: Any, u: Any) -> Any:
        after = mbjax.rollout(model, mbjax.State(q, v), jnp.broadcast_to(u, (steps, *u.shape))).final_state
        return after.q, after.v

    return jax.vmap(run), (q, v, u)


def with_gradient(function: Callable) -> Callable:
    """The gradient of the squared final state by the torques."""
    import jax
    import jax.numpy as jnp

    return jax.grad(lambda q, v, u: sum(jnp.sum(x**2) for x in function(q, v, u)), 2)


def walker_on_spheres() -> Any:
    """G1, of whose shapes only the spheres under its feet touch the ground."""
    import mbjax

    robot = ALL_ROBOTS["g1"]
    feet = [("world", f"{side}_ankle_roll_link") for side in ("left", "right")]
    settings = {"time_step": 0.005, "ground": True, "contact_pairs": feet, "dtype": np.float32}
    return mbjax.load(robot.path, base="floating", **settings)


def mujoco_warp(name: str, touch: bool, worlds: int) -> str:
    """Millions of steps a second of MuJoCo Warp's rollout, captured as a CUDA graph."""
    try:
        import mujoco
        import mujoco_warp  # pyright: ignore[reportMissingImports]
        import warp  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        return f"not installed ({error.name})"
    m = mujoco.MjModel.from_xml_string(mjcf(FIGURES[name](), touch))
    m.opt.iterations = 4
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    on_device = mujoco_warp.put_model(m)
    data = mujoco_warp.put_data(m, d, nworld=worlds)
    mujoco_warp.step(on_device, data)
    with warp.ScopedCapture() as capture:
        for _ in range(STEPS):
            mujoco_warp.step(on_device, data)
    least = np.inf
    for _ in range(REPEATS):
        warp.synchronize()
        start = time.perf_counter()
        warp.capture_launch(capture.graph)
        warp.synchronize()
        least = min(least, time.perf_counter() - start)
    return f"{worlds * STEPS / least / 1e6:.2f} M steps/s"


def main() -> None:
    import jax

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="four worlds and two steps")
    quick = parser.parse_args().quick
    jax.config.update("jax_enable_x64", False)
    print(jax.devices()[0].device_kind, "JAX", jax.__version__)
    for name, touch, worlds in CASES[:1] if quick else CASES:
        parts = FIGURES[name]()
        model = build_mbjax(parts, np.float32, "lagged", limbs_touch=touch)
        worlds, steps = (4, 2) if quick else (worlds, STEPS)
        title = f"{name}{', limbs touch' if touch else ''}, {worlds} worlds"
        found = {}
        for setting, value in SETTINGS.items():
            os.environ["MBJAX_GPU_WARPS"] = value
            jax.clear_caches()
            function, args = rollouts(model, parts[0].at[2], worlds, steps)
            first, least = timed(jax.jit(function), *args)
            found[setting] = jax.device_get(jax.jit(rollouts(model, parts[0].at[2], worlds, 1)[0])(*args))
            print(
                f"{title}: {setting}: {worlds * steps / least / 1e6:.3f} M steps/s, first call {first:.1f} s",
                flush=True,
            )
        apart = max(float(np.nanmax(np.abs(a - b))) for a, b in zip(*found.values(), strict=True))
        print(f"{title}: after one step the two are {apart:.1e} apart", flush=True)
        if not quick:
            print(f"{title}: MuJoCo Warp: {mujoco_warp(name, touch, worlds)}", flush=True)
    if quick:
        return
    model = walker_on_spheres()
    for setting, value in SETTINGS.items():
        os.environ["MBJAX_GPU_WARPS"] = value
        jax.clear_caches()
        function, args = rollouts(model, 0.79, 4096, 4)
        for title, program in (("forward", function), ("with gradient", with_gradient(function))):
            first, least = timed(jax.jit(program), *args)
            print(
                f"G1, 4096 worlds, 4 steps of 5 ms: {setting}, {title}: {1e3 * least:.2f} ms, first call {first:.1f} s"
            )


if __name__ == "__main__":
    main()
