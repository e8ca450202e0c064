"""`mbjax doctor`: what is installed, what JAX computes on, and whether a step comes out right here."""

import argparse
import importlib.util
import json
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console

import mbjax
from mbjax.execution import kernels_in_use
from mbjax.optional_packages import how_to_install
from mbjax.progress import telling
from mbjax.visualization.browser import find_browser

from .machine import describe_machine, device_name, version_of

PACKAGES = ("mbjax", "jax", "jaxlib", "equinox", "diffrax", "jaxtyping", "numpy")
# By extra of `pip install "mbjax[extra]"`: the modules that it brings, and what they are for.
EXTRAS = {
    "viz": (("matplotlib",), "plots"),
    "view": (("viser",), "the live view"),
    "video": (("imageio_ffmpeg", "PIL"), "mp4, webm and gif files of animations"),
    "mesh": (("trimesh", "scipy", "fast_simplification", "collada"), "mesh files: collisions and pictures"),
    "mjcf": (("mujoco",), "MJCF files"),
    "directives": (("yaml",), "model directives"),
    "xacro": (("xacro",), "xacro files"),
    "optimize": (("optax",), "direct shooting"),
    "nlp": (("casadi", "scipy"), "transcription of trajectory optimization to IPOPT"),
    "control": (("qpax",), "whole-body control"),
    "identify": (("optimistix", "lineax", "optax", "scipy", "pyarrow", "mcap"), "system identification, and logs"),
    "notebook": (("jupyterlab", "matplotlib"), "JupyterLab, and what the notebooks use"),
    "learn": (("brax", "optax", "orbax", "gymnasium"), "learning, checkpoints, vector environments"),
    "onnx": (("onnx",), "policies as ONNX files"),
}


class StepCheck(NamedTuple):
    """One step of a robot: how long it took, and how far it is from Newton's law and from finite differences."""

    compile_seconds: float
    run_microseconds: float
    residual: float
    gradient_error: float

    @property
    def is_right(self) -> bool:
        """Whether the residuals are those of rounding."""
        return self.residual < 1e-8 and self.gradient_error < 1e-4


def add_doctor_command(commands: Any, epilog: str) -> None:
    """Adds the command to the parser."""
    doctor = commands.add_parser(
        "doctor", help="print versions, devices, kernels and extras, and check one step on this machine",
        epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    doctor.add_argument("--json", action="store_true", help="print one JSON object instead of lines")


def examine(options: argparse.Namespace, console: Console) -> bool:
    """Prints what is found; returns whether the step came out right."""
    machine = describe_machine(PACKAGES)
    with telling("checking a step"):
        step = check_step()
    facts = {
        "versions": {name: version_of(name) for name in PACKAGES},
        "system": machine["system"],
        "processor": f"{machine['processor']}, {machine['cores']} cores",
        "device": device_name(),
        "devices": [str(device) for device in jax.devices()],
        "kernels": kernels_in_use(),
        "step": {**step._asdict(), "is_right": step.is_right},
        "extras": {extra: missing_modules(modules) for extra, (modules, _) in EXTRAS.items()},
        "browser": find_browser(),
    }
    if options.json:
        print(json.dumps(facts, indent=2))
    else:
        show(facts, step, console)
    return step.is_right


def show(facts: dict[str, Any], step: StepCheck, console: Console) -> None:
    """Prints the facts as lines."""

    def line(what: str, text: str) -> None:
        console.print(f"{what:10} {text}", markup=False, soft_wrap=True)

    line("versions", ", ".join(f"{name} {version}" for name, version in facts["versions"].items()))
    line("system", f"{facts['system']}; {facts['processor']}")
    line("devices", f"{', '.join(facts['devices'])} ({facts['device']})")
    line("kernels", facts["kernels"])
    verdict = "right" if step.is_right else "WRONG: please report this, with these lines"
    line(
        "one step",
        f"{verdict}; the arm's step compiled in {step.compile_seconds:.1f} s, runs in {step.run_microseconds:.0f} µs; "
        f"off Newton's law by {step.residual:.0e}, its gradient off finite differences by {step.gradient_error:.0e}",
    )
    for extra, missing in facts["extras"].items():
        what = EXTRAS[extra][1]
        line("extra", f"{extra}: present ({what})" if not missing else advice(extra, missing, what))
    line("browser", facts["browser"] or "none found: videos need Chromium or Chrome, or MBJAX_CHROMIUM with its path")


def advice(extra: str, missing: list[str], what: str) -> str:
    """What an extra lacks, and how to get it."""
    return f"{extra}: {', '.join(missing)} missing; for {what}: {how_to_install(', '.join(missing), extra)}"


def missing_modules(modules: tuple[str, ...]) -> list[str]:
    """The modules among these that cannot be imported."""
    return [name for name in modules if importlib.util.find_spec(name) is None]


def check_step(robot: str = "arm") -> StepCheck:
    """Steps a bundled robot in double precision, and compares with inverse dynamics and with finite differences."""
    model = mbjax.load(robot, time_step=1e-3)
    state = mbjax.State(0.3 + model.parameters.default_positions, jnp.full(model.num_velocities, 0.1, model.dtype))
    tau = jnp.linspace(-1.0, 1.0, model.num_velocities, dtype=model.dtype)
    step = jax.jit(lambda state, tau: mbjax.step(model, state, mbjax.Inputs(applied_generalized_force=tau))[0])
    start = time.perf_counter()
    after = jax.block_until_ready(step(state, tau))
    compiled = time.perf_counter() - start
    times = []
    for _ in range(20):
        start = time.perf_counter()
        jax.block_until_ready(step(state, tau))
        times.append(time.perf_counter() - start)
    # The plain dynamics, without step, limits and friction: vdot of the arm, back to its torques.
    vdot = mbjax.forward_dynamics(model, state.q, state.v, tau)  # pyright: ignore  (a module has the name too)
    back = mbjax.inverse_dynamics(model, state.q, state.v, vdot)
    residual = float(jnp.max(jnp.abs(back - tau)))

    def speed(first: Any) -> Any:
        return step(state, tau.at[0].set(first)).v[0]

    h = 1e-3
    difference = float(speed(tau[0] + h) - speed(tau[0] - h)) / (2.0 * h)
    slope = float(jax.grad(speed)(tau[0]))
    error = abs(slope - difference) / max(abs(difference), 1e-12)
    is_finite = bool(np.isfinite(np.asarray(after.q)).all() and np.isfinite(np.asarray(after.v)).all())
    return StepCheck(compiled, 1e6 * float(np.median(times)), residual if is_finite else float("nan"), error)
