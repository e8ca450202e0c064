"""What do our GPU kernels take of a processor? Registers, spills, shared memory and occupancy by NVIDIA's assembler.

No GPU is needed, but JAX's plugin for them and ptxas: pip install "jax[cuda12]", which brings both. Programs of single
precision are compiled for compute capabilities 8.0 (A100), 9.0 (H100, H200) and 10.0 (B200); occupancy is the share of
a processor's warps that fit on it at once. Counted, not measured: how fast these kernels are is for a GPU to say.
"""

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from .gpu_program import H200, QUESTIONS, absent_gpu
from .peers import load_mbjax
from .results import Table
from .script import Options, failed, outcome, precision, run_script

WORLDS = 4096
SOLVED = (16, 28, 64)  # rows of dense matrices
ENTRY = re.compile(r"\.entry (scan_\w+|solve_dense\w*)\(")
THREADS = re.compile(r"\.reqntid (\d+)")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")
SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
WARP, REGISTERS, WARPS, BLOCKS = 32, 65536, 64, 32  # threads of a warp; the others are what a processor has room for
REGISTER_UNIT = 256  # a warp is given whole units


@dataclasses.dataclass(frozen=True)
class Target:
    """A compute capability, and the shared memory of a processor in bytes."""

    major: int
    shared: int

    @property
    def title(self) -> str:
        return f"sm_{self.major}0"

    @property
    def config(self) -> str:
        """What XLA is told of the device: only the capability matters to our kernels."""
        return H200.replace("major: 9 minor: 0", f"major: {self.major} minor: 0")


TARGETS = (Target(8, 164 << 10), Target(9, 228 << 10), Target(10, 228 << 10))


def records(options: Options) -> Iterator[dict]:
    from mbjax.command_line import questions

    os.environ["MBJAX_GPU_KERNELS"] = "1"
    targets = TARGETS[1:2] if options.quick else TARGETS
    with precision("f32"):
        for robot in options.robots:
            model = load_mbjax(robot, "f32")
            for name, title in QUESTIONS.items():
                program = questions.QUESTIONS[name].program(model, questions.random_worlds(model, WORLDS))
                for target in targets:
                    keys = {"label": f"{title}, {robot.title}", "target": target.title}
                    yield outcome(keys, kernels_of, *program, target)
        for rows in SOLVED:
            for target in targets:
                keys = {"label": f"dense matrix of {rows} rows", "target": target.title}
                yield outcome(keys, kernels_of, *dense_solve(rows), target)


def dense_solve(rows: int) -> tuple[Callable, tuple]:
    """The solve of Newton's matrix where limbs touch, and arguments for it."""
    import jax.numpy as jnp

    from mbjax.linear_algebra.dense_on_gpu import solve_in_blocks

    def solve(A: Any, b: Any) -> Any:
        return solve_in_blocks(A, b)

    return solve, (jnp.ones((rows, rows, WORLDS), jnp.float32), jnp.ones((rows, WORLDS), jnp.float32))


def kernels_of(function: Callable, args: Any, target: Target) -> dict:
    """What ptxas says of each of our kernels in the program."""
    import jax
    from jax.experimental import topologies
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    try:
        devices = topologies.get_topology_desc(
            platform="cuda", target_config=target.config, topology="1x1x1", name=target.title
        ).devices
    except NotImplementedError as error:
        raise ImportError('no plugin for CUDA: pip install "jax[cuda12]"') from error
    there = NamedSharding(Mesh(devices, ("worlds",)), PartitionSpec())
    jax.clear_caches()
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=there), args)
    with tempfile.TemporaryDirectory() as folder:
        compiled: Any = {"xla_gpu_autotune_level": 0, "xla_dump_to": folder}
        with absent_gpu():
            jax.jit(function).lower(*shapes).compile(compiled)
        texts = {path: path.read_text() for path in sorted(pathlib.Path(folder).glob("*.ptx"))}
        found = [assembled(path, text, target) for path, text in texts.items() if ENTRY.search(text)]
    return {"kernels": found}


def assembled(path: pathlib.Path, text: str, target: Target) -> dict:
    """What the assembler says of the one kernel of a file."""
    (name,), threads = ENTRY.findall(text), THREADS.search(text)
    architecture = re.search(r"^\.target (\w+)", text, re.MULTILINE)
    assert architecture, path
    command = [ptxas(), "-v", f"--gpu-name={architecture.group(1)}", str(path), "-o", os.devnull]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    used, spills, shared = USED.search(said), SPILLS.search(said), SHARED.search(said)
    assert used, said
    assert spills, said
    numbers = {
        "registers": int(used.group(1)),
        "spilled": int(spills.group(1)) + int(spills.group(2)),
        "shared": int(shared.group(1)) if shared else 0,
        "threads": int(threads.group(1)) if threads else WARP,
    }
    return {"name": name.split("__")[0], **numbers, "occupancy": occupancy(numbers, target)}


def occupancy(numbers: dict, target: Target) -> float:
    """The share of a processor's warps that its registers, shared memory and places for blocks have room for."""
    warps = -(-numbers["threads"] // WARP)
    registers = -(-numbers["registers"] * WARP // REGISTER_UNIT) * REGISTER_UNIT
    fitting = min(BLOCKS, WARPS // warps, REGISTERS // registers // warps)
    if numbers["shared"]:
        fitting = min(fitting, target.shared // numbers["shared"])
    return fitting * warps / WARPS


def ptxas() -> str:
    """The assembler: on the path, or that of the wheel nvidia-cuda-nvcc."""
    found = shutil.which("ptxas")
    places = [pathlib.Path(place) / "nvidia" for place in sys.path]
    found = found or next((str(x) for place in places for x in place.glob("*/bin/ptxas")), None)
    if found is None:
        raise ImportError('no ptxas: pip install "jax[cuda12]"')
    return found


def tables(records: list[dict]) -> list[Table]:
    measured = [r for r in records if r["status"] == "measured"]
    targets = list(dict.fromkeys(r["target"] for r in measured))
    found = {(r["label"], r["target"]): r["kernels"] for r in measured}
    rows = []
    for label in dict.fromkeys(r["label"] for r in measured):
        rows.append((label, *(shown(found.get((label, target), [])) for target in targets)))
    note = (
        f"Registers a thread of each kernel, and the least occupancy of them. {WORLDS} worlds, f32. Spills and shared "
        "memory are said where there are any."
    )
    missing = dict.fromkeys((r["detail"],) for r in records if failed(r))
    return [Table("Registers", ("", *targets), tuple(rows), note), Table("Not counted", ("why",), tuple(missing))]


def shown(kernels: list[dict]) -> str:
    """Registers of kernels, their spills and shared memory if they have any, and the least occupancy."""
    if not kernels:
        return "–"
    names = sorted({k["name"] for k in kernels})
    parts = [f"{name} {', '.join(str(k['registers']) for k in kernels if k['name'] == name)}" for name in names]
    parts += [f"{sum(k['spilled'] for k in kernels)} B spilled"] * any(k["spilled"] for k in kernels)
    parts += [f"{max(k['shared'] for k in kernels)} B shared"] * any(k["shared"] for k in kernels)
    return "; ".join([*parts, f"{min(k['occupancy'] for k in kernels):.0%}"])


if __name__ == "__main__":
    import jax

    os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"  # there may be no driver
    jax.config.update("jax_platforms", "cpu")
    run_script("gpu_registers", __doc__, records)
