"""What would a GPU run? Kernels, memory traffic and memory of batches of 65536 worlds, compiled for an H200 in f32.

No GPU is needed, but JAX's plugin for them: pip install "jax[cuda12]". Our kernels beside XLA's, which it has with
MBJAX_GPU_KERNELS=0. Times are not known; the last table is what the bandwidth allows if all of the traffic goes to
memory and none is served by caches.
"""

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from .gpu_traffic import traffic
from .peers import load_mbjax
from .results import Table
from .script import Options, failed, outcome, precision, run_script, table_by_robot

BATCH, QUICK_BATCH = 65536, 64
QUESTIONS = {
    "forward_dynamics": "forward dynamics",
    "gradient": "its vjp by q, v and tau",
    "inverse_dynamics": "inverse dynamics",
    "body_poses": "poses of all bodies",
    "mass_matrix": "mass matrix",
}
SETTINGS = {"0": "XLA's kernels", "1": "ours"}
BANDWIDTH = 4.8e12  # bytes a second
H200 = f"""
gpu_device_info {{
  threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  shared_memory_per_block: 49152 shared_memory_per_core: 233472 shared_memory_per_block_optin: 232448
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: {BANDWIDTH:.0f} l2_cache_size: 52428800 clock_rate_ghz: 1.98 device_memory_size: 150000000000
  registers_per_core_limit: 65536 registers_per_block_limit: 65536 cuda_compute_capability {{ major: 9 minor: 0 }}
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 7 }}
runtime_version {{ major: 12 minor: 8 }}
device_description_str: "NVIDIA H200"
"""


def records(options: Options) -> Iterator[dict]:
    from mbjax.command_line import questions

    with precision("f32"):
        batch = QUICK_BATCH if options.quick else BATCH
        for robot in options.robots:
            model = load_mbjax(robot, "f32")
            for name in QUESTIONS:
                for setting, title in SETTINGS.items():
                    os.environ["MBJAX_GPU_KERNELS"] = setting
                    program = questions.QUESTIONS[name].program(model, questions.random_worlds(model, batch))
                    keys = {"robot": robot.name, "label": f"{QUESTIONS[name]}, {title}", "batch": batch}
                    yield outcome(keys, count, *program, batch)


def count(function: Any, args: Any, batch: int) -> dict:
    """Of the program that XLA makes for the device that is not here."""
    import jax
    from jax.experimental import topologies
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    try:
        devices = topologies.get_topology_desc(platform="cuda", target_config=H200, topology="1x1x1").devices
    except NotImplementedError as error:
        raise ImportError('no plugin for CUDA: pip install "jax[cuda12]"') from error
    there = NamedSharding(Mesh(devices, ("worlds",)), PartitionSpec())
    jax.clear_caches()
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=there), args)
    options: Any = {"xla_gpu_autotune_level": 0}
    with absent_gpu():
        program = jax.jit(function).lower(*shapes).compile(options)
    found = traffic(program.as_text())
    kept = program.memory_analysis().temp_size_in_bytes
    return {"kernels": found.kernels, "bytes": found.num_bytes / batch, "temporary_bytes": kept / batch}


def absent_gpu() -> contextlib.AbstractContextManager:
    """Pallas asks what it is, since JAX 0.11."""
    import jax

    if jax.__version_info__ < (0, 11):
        return contextlib.nullcontext()
    device = jax.sharding.AbstractDevice("NVIDIA H200", num_cores=132, platform="gpu")
    return jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), (), abstract_device=device))


def tables(records: list[dict]) -> list[Table]:
    columns = {
        "Kernels of one call": lambda r: str(r["kernels"]),
        "Memory traffic, kB a world": lambda r: f"{r['bytes'] / 1e3:.1f}",
        "Temporary memory, kB a world": lambda r: f"{r['temporary_bytes'] / 1e3:.2f}",
        f"Evaluations that {BANDWIDTH / 1e12:g} TB/s allow, millions a second": lambda r: (
            f"{BANDWIDTH / r['bytes'] / 1e6:.0f}"
        ),
    }
    batch = next((r["batch"] for r in records if "batch" in r), BATCH)
    note = f"Compiled for an H200 in f32, {batch} worlds; counted, not measured."
    found = [table_by_robot(title, records, cell, note) for title, cell in columns.items()]
    missing = dict.fromkeys((r["detail"],) for r in records if failed(r))
    return [*found, Table("Not counted", ("why",), tuple(missing))]


if __name__ == "__main__":
    import jax

    os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"  # there may be no driver
    jax.config.update("jax_platforms", "cpu")
    run_script("gpu_program", __doc__, records)
