"""A step of a deformable bar held at one end: `python -m benchmarks.deformable_bodies [--cells 8 16 32] [--bending]`.

Processor milliseconds a step and of its reverse-mode gradient by the state and all numbers, processor seconds to
compile both, in f64, beside Drake where it is installed; and a world of a batch of 64 in f32. The bar is 0.3 × 0.06 ×
0.06 m, in steps of 5 ms; with 8, 16 and 32 cells along it has 192, 1,536 and 12,288 elements.

`--bending` prints another table: a bar of 0.48 × 0.06 × 0.06 m, of linear and of quadratic elements, some cells across,
with its sag in percent of Timoshenko's.
"""

import argparse
import os
import tempfile
import time
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
if "intra_op_parallelism_threads" not in os.environ.get("XLA_FLAGS", ""):
    one_thread = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {one_thread}"

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import mbjax

from .measure import processor_seconds

SIZE, DT = (0.3, 0.06, 0.06), 5e-3
YOUNGS_MODULUS, POISSONS_RATIO, DENSITY, DAMPING = 3e5, 0.4, 1000.0, 0.005
LONG = (0.48, 0.06, 0.06)
WALL = (1e-6, 0.0, 0.0)


def bar(cells: int, size: tuple[float, float, float] = SIZE) -> mbjax.TetrahedralMesh:
    """A bar with so many cells along it, a corner at the origin."""
    mesh = mbjax.tetrahedra_of(mbjax.Box(size), resolution_hint=size[0] / cells)
    return mbjax.TetrahedralMesh(np.asarray(mesh.points) + 0.5 * np.array(size), mesh.tetrahedra)


def model_of(
    mesh: mbjax.TetrahedralMesh, law: str, dtype: Any, elements: str = "linear", nu: float = POISSONS_RATIO
) -> mbjax.MultibodyModel:
    """The bar in a plant."""
    plant = mbjax.MultibodyPlant(DT)
    material = mbjax.DeformableMaterial(YOUNGS_MODULUS, nu, DENSITY, 0.0, DAMPING, model=law)
    plant.add_deformable_body("bar", mesh, material, elements=elements)
    plant.set_wall_boundary_condition("bar", WALL, [1.0, 0.0, 0.0])
    return plant.finalize(dtype)


def measure(mesh: mbjax.TetrahedralMesh, law: str, elements: str = "linear") -> list[str]:
    """Numbers of a row of the tables: ms of a step and its gradient, s to compile them."""
    model = model_of(mesh, law, jnp.float64, elements)
    state = mbjax.default_state(model)
    step = eqx.filter_jit(lambda model, state: mbjax.step(model, state)[0])
    gradient = eqx.filter_jit(eqx.filter_grad(lambda both: jnp.sum(mbjax.step(*both)[0].nodes.position ** 2)))
    _, compile_step = processor_seconds(step, model, state)
    times = []
    for _ in range(40):
        state, seconds = processor_seconds(step, model, state)
        times.append(1e3 * seconds)
    _, compile_gradient = processor_seconds(gradient, (model, state))
    of_gradient = 1e3 * np.median([processor_seconds(gradient, (model, state))[1] for _ in range(5)])
    found = [np.mean(times[5:]), of_gradient, compile_step, compile_gradient]
    return [f"{x:.3g}" for x in found]


def milliseconds_in_batch(mesh: mbjax.TetrahedralMesh, law: str) -> str:
    """Processor ms of a step of each world of a batch of 64 in f32."""
    single = model_of(mesh, law, jnp.float32)
    many = jax.tree.map(lambda x: jnp.stack([x] * 64), mbjax.default_state(single))
    of_many = jax.jit(jax.vmap(lambda state: mbjax.step(single, state)[0]))
    many = of_many(many)
    return f"{1e3 * np.median([processor_seconds(of_many, many)[1] for _ in range(5)]) / 64:.3g}"


def percent_of_sag(mesh: mbjax.TetrahedralMesh, elements: str, nu: float = 0.3) -> str:
    """The sag of the long bar's end under its weight, in percent of Timoshenko's, with the law of small strain."""
    length, side, _ = LONG
    area, inertia, load = side**2, side**4 / 12.0, DENSITY * side**2 * 9.81
    shear = 10.0 * (1.0 + nu) / (12.0 + 11.0 * nu) * YOUNGS_MODULUS / (2.0 * (1.0 + nu)) * area
    sag = load * length**4 / (8.0 * YOUNGS_MODULUS * inertia) + load * length**2 / (2.0 * shear)
    model = model_of(mesh, "linear", jnp.float64, elements, nu)
    assert model.deformables is not None
    rest = np.asarray(model.deformables.rest_positions())
    state = mbjax.deformable_equilibrium(model).state
    assert state.nodes is not None
    at_end = rest[:, 0] > length - 1e-9
    return f"{100.0 * np.mean((rest - np.asarray(state.nodes.position))[at_end, 2]) / sag:.1f}"


def print_bending() -> None:
    """The table of linear and quadratic elements beside each other."""
    print(
        "| law | elements | across | number | nodes | sag, % | step, ms | gradient, ms | compile, s | of gradient, s |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
    cases = [("quadratic", 1), ("quadratic", 2), ("linear", 1), ("linear", 2), ("linear", 4)]
    for law in ("linear_corotated", "neo_hookean"):
        for elements, across in cases:
            mesh = bar(8 * across, LONG)
            deformables = model_of(mesh, law, jnp.float64, elements).deformables
            assert deformables is not None
            counts = [str(deformables.mesh.num_elements), str(deformables.mesh.num_nodes)]
            row = [law, elements, str(across), *counts, percent_of_sag(mesh, elements), *measure(mesh, law, elements)]
            print("| " + " | ".join(row) + " |", flush=True)


def milliseconds_in_drake(mesh: mbjax.TetrahedralMesh, law: str) -> str:
    """Processor ms of a step in Drake, or a dash where it is not installed."""
    try:
        from pydrake.geometry import GeometryInstance, Mesh, ProximityProperties
        from pydrake.math import RigidTransform
        from pydrake.multibody.fem import DeformableBodyConfig, MaterialModel
        from pydrake.multibody.plant import AddMultibodyPlantSceneGraph
        from pydrake.systems.analysis import Simulator
        from pydrake.systems.framework import DiagramBuilder
    except ImportError:
        return "–"
    builder = DiagramBuilder()
    plant, _ = AddMultibodyPlantSceneGraph(builder, DT)
    model = plant.mutable_deformable_model()
    config = DeformableBodyConfig()
    config.set_youngs_modulus(YOUNGS_MODULUS)
    config.set_poissons_ratio(POISSONS_RATIO)
    config.set_mass_density(DENSITY)
    config.set_stiffness_damping_coefficient(DAMPING)
    models = {"linear_corotated": MaterialModel.kLinearCorotated, "neo_hookean": MaterialModel.kNeoHookean}
    config.set_material_model(models[law])
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "bar.vtk")
        mbjax.write_tetrahedra(file, mesh)
        instance = GeometryInstance(RigidTransform(), Mesh(file, 1.0), "bar")
        instance.set_proximity_properties(ProximityProperties())
        body = model.RegisterDeformableBody(instance, config, 1.0)
    model.SetWallBoundaryCondition(body, np.array(WALL), np.array([1.0, 0.0, 0.0]))
    plant.Finalize()
    simulator = Simulator(builder.Build())
    simulator.AdvanceTo(5 * DT)
    start = time.process_time()
    simulator.AdvanceTo(40 * DT)
    return f"{1e3 * (time.process_time() - start) / 35:.3g}"


def main() -> None:
    """Prints the table, a row as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, nargs="+", default=[8, 16, 32], help="cells along the bar")
    parser.add_argument("--bending", action="store_true", help="linear and quadratic elements of a longer bar")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    if options.bending:
        print_bending()
        return
    print("| law | elements | step, ms | gradient, ms | compile, s | of the gradient, s | in a batch, ms | Drake, ms |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for law in ("linear_corotated", "neo_hookean"):
        for cells in options.cells:
            mesh = bar(cells)
            others = [milliseconds_in_batch(mesh, law), milliseconds_in_drake(mesh, law)]
            print("| " + " | ".join([law, str(len(mesh.tetrahedra)), *measure(mesh, law), *others]) + " |", flush=True)


if __name__ == "__main__":
    main()
