"""How do compile and run time grow with the number of bodies? Chains of 10, 100 and 1000, f32.

Built with `MultibodyPlant`: revolute joints about x, y and z in turn.
"""

import time
from collections.abc import Iterator
from typing import Any

from .measure import significant
from .results import Table
from .script import Options, compile_seconds, failed, microseconds, precision, run_script, timed

SIZES = (10, 100, 1000)
BATCHES = (1, 256)
QUESTIONS = ("forward_dynamics", "gradient")
LINK_LENGTH = 0.1  # m
AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def make_chain(num_bodies: int, dtype: Any) -> Any:
    """Cylinders of 0.1 m and 0.1 kg, one hung on the other."""
    import mbjax

    plant = mbjax.MultibodyPlant()
    inertia = mbjax.SpatialInertia.solid_cylinder_with_mass_about_end(0.1, 0.01, LINK_LENGTH, [0.0, 0.0, -1.0])
    for i in range(num_bodies):
        plant.add_rigid_body(f"link{i}", inertia)
        parent, offset = (f"link{i - 1}", -LINK_LENGTH) if i else ("world", 0.0)
        X_PF = [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, offset], [0.0, 0.0, 0.0, 1.0]]
        plant.add_joint(mbjax.RevoluteJoint(f"joint{i}", parent, f"link{i}", axis=AXES[i % 3], X_PF=X_PF))
    return plant.finalize(dtype)


def records(options: Options) -> Iterator[dict]:
    import jax.numpy as jnp

    from mbjax.command_line import questions

    with precision("f32"):
        for size in (4, 8) if options.quick else SIZES:
            start = time.perf_counter()
            model = make_chain(size, jnp.float32)
            build_s = time.perf_counter() - start
            for name in QUESTIONS:
                for batch in BATCHES:
                    worlds = questions.random_worlds(model, None if batch == 1 else batch)
                    keys = {"bodies": size, "question": name, "batch": batch, "build_s": build_s}
                    yield timed(keys, questions.QUESTIONS[name].program(model, worlds), batch, options.effort)


def tables(records: list[dict]) -> list[Table]:
    rows = []
    for r in records:
        if r["status"] == "device":
            continue
        first = (str(r["bodies"]), r["question"], str(r["batch"]), f"{r['build_s']:.2f}")
        rest = (r["status"], "", "") if failed(r) else (
            compile_seconds(r), microseconds(r), significant(r["median"] / r["bodies"] * 1e9)
        )  # fmt: skip
        rows.append((*first, *rest))
    columns = ("bodies", "function", "worlds", "build, s", "compile, s", "run, µs per evaluation", "ns per body")
    return [Table("Chains built with MultibodyPlant, f32", columns, tuple(rows))]


if __name__ == "__main__":
    run_script("chains", __doc__, records)
