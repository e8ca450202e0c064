"""A step of a deformable bar held at one end, or of a block on the ground.

`python -m benchmarks.deformable_bodies [--contact | --bending] [--cells 8 16 32]`. Processor milliseconds a step and of
its reverse-mode gradient by the state and all numbers, processor seconds to compile both, in f64, beside Drake where it
is installed; and a world of a batch of 64 in f32. The bar is 0.3 × 0.06 × 0.06 m, in steps of 5 ms; with 8, 16 and 32
cells along it has 192, 1,536 and 12,288 elements. The block of 0.08 m falls 2 cm, slides and rests; its steps in
contact are timed, with the mean number of iterations of the search beside them.

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
from mbjax.geometry import Geometry, ProximityProperties
from mbjax.simulation.discrete_acceleration import calc_discrete_acceleration

from .measure import processor_seconds

SIZE, DT = (0.3, 0.06, 0.06), 5e-3
YOUNGS_MODULUS, POISSONS_RATIO, DENSITY, DAMPING = 3e5, 0.4, 1000.0, 0.005
LONG = (0.48, 0.06, 0.06)
WALL = (1e-6, 0.0, 0.0)
BLOCK, BLOCK_MODULUS, HEIGHT, GROUND, FRICTION = 0.08, 5e4, 0.06, 1e7, 0.5
NUM_STEPS, FIRST_TIMED = 60, 20  # of the block, which touches after 13


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


def milliseconds_in_batch(model: mbjax.MultibodyModel, state: mbjax.State) -> str:
    """Processor ms of a step of each world of a batch of 64."""
    many = jax.tree.map(lambda x: jnp.stack([x] * 64), state)
    of_many = jax.jit(jax.vmap(lambda state: mbjax.step(model, state)[0]))
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


def block(cells: int) -> mbjax.TetrahedralMesh:
    """The block with so many cells along each side, its middle at the origin."""
    return mbjax.tetrahedra_of(mbjax.Box((BLOCK,) * 3), resolution_hint=BLOCK / cells)


def block_on_ground(mesh: mbjax.TetrahedralMesh, ground: str, dtype: Any = None) -> mbjax.MultibodyModel:
    """The block above a half-space or the top of a box."""
    plant = mbjax.MultibodyPlant(DT)
    rough = ProximityProperties(FRICTION)
    if ground == "half-space":
        soft = rough.add_compliant_hydroelastic_properties_for_half_space(1.0, GROUND)
        plant.register_collision_geometry("world", Geometry("ground", mbjax.HalfSpace()), soft)
    else:
        soft = rough.add_compliant_hydroelastic_properties(1.0, GROUND)
        shape = Geometry("ground", mbjax.Box((1.0, 1.0, 1.0)), translation=[0.0, 0.0, -0.5])
        plant.register_collision_geometry("world", shape, soft)
    material = mbjax.DeformableMaterial(BLOCK_MODULUS, POISSONS_RATIO, DENSITY, 0.0, DAMPING, model="linear_corotated")
    X_WB = mbjax.RigidTransform(jnp.eye(3), jnp.array([0.0, 0.0, HEIGHT]))
    plant.add_deformable_body("block", mesh, material, pose=X_WB, properties=rough)
    return plant.finalize(dtype)


def measure_contact(mesh: mbjax.TetrahedralMesh, ground: str) -> list[str]:
    """A row of the table of contact: iterations, ms of a step and its gradient, s to compile them."""
    model = block_on_ground(mesh, ground)
    state = mbjax.default_state(model)
    state = eqx.tree_at(lambda s: s.nodes.velocity, state, state.nodes.velocity.at[:, 0].set(0.3))
    step = eqx.filter_jit(lambda model, state: mbjax.step(model, state)[0])
    gradient = eqx.filter_jit(eqx.filter_grad(lambda both: jnp.sum(mbjax.step(*both)[0].nodes.position ** 2)))
    count = eqx.filter_jit(lambda m, s: calc_discrete_acceleration(m, s, mbjax.Inputs())[1].num_iterations)
    _, compile_step = processor_seconds(step, model, state)
    times, iterations = [], []
    for k in range(NUM_STEPS):
        if k >= FIRST_TIMED:
            iterations.append(int(count(model, state)))
        state, seconds = processor_seconds(step, model, state)
        times.append(1e3 * seconds)
    _, compile_gradient = processor_seconds(gradient, (model, state))
    of_gradient = 1e3 * np.median([processor_seconds(gradient, (model, state))[1] for _ in range(5)])
    found = [np.mean(iterations), np.mean(times[FIRST_TIMED:]), of_gradient, compile_step, compile_gradient]
    single = block_on_ground(mesh, ground, jnp.float32)
    in_batch = milliseconds_in_batch(single, jax.tree.map(lambda x: x.astype(jnp.float32), state))
    return [ground, str(len(mesh.tetrahedra)), *(f"{x:.3g}" for x in found), in_batch]


def drake_plant(mesh: mbjax.TetrahedralMesh, law: str, youngs_modulus: float, height: float) -> tuple[Any, ...] | None:
    """Builder, plant, deformable model and body in Drake; None where it is not installed."""
    try:
        from pydrake.geometry import AddContactMaterial, GeometryInstance, Mesh, ProximityProperties
        from pydrake.math import RigidTransform
        from pydrake.multibody.fem import DeformableBodyConfig, MaterialModel
        from pydrake.multibody.plant import AddMultibodyPlantSceneGraph, CoulombFriction, DiscreteContactApproximation
        from pydrake.systems.framework import DiagramBuilder
    except ImportError:
        return None
    builder = DiagramBuilder()
    plant, _ = AddMultibodyPlantSceneGraph(builder, DT)
    plant.set_discrete_contact_approximation(DiscreteContactApproximation.kSap)
    model = plant.mutable_deformable_model()
    config = DeformableBodyConfig()
    config.set_youngs_modulus(youngs_modulus)
    config.set_poissons_ratio(POISSONS_RATIO)
    config.set_mass_density(DENSITY)
    config.set_stiffness_damping_coefficient(DAMPING)
    models = {"linear_corotated": MaterialModel.kLinearCorotated, "neo_hookean": MaterialModel.kNeoHookean}
    config.set_material_model(models[law])
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "body.vtk")
        mbjax.write_tetrahedra(file, mesh)
        instance = GeometryInstance(RigidTransform([0.0, 0.0, height]), Mesh(file, 1.0), "body")
        properties = ProximityProperties()
        AddContactMaterial(friction=CoulombFriction(FRICTION, FRICTION), properties=properties)
        instance.set_proximity_properties(properties)
        body = model.RegisterDeformableBody(instance, config, 1.0)
    return builder, plant, model, body


def milliseconds_of_steps(builder: Any, first: int, last: int) -> str:
    """Processor ms of each step from one to another in Drake."""
    from pydrake.systems.analysis import Simulator

    simulator = Simulator(builder.Build())
    simulator.AdvanceTo((first - 0.5) * DT)
    start = time.process_time()
    simulator.AdvanceTo((last - 0.5) * DT)
    return f"{1e3 * (time.process_time() - start) / (last - first):.3g}"


def bar_in_drake(mesh: mbjax.TetrahedralMesh, law: str) -> str:
    """Processor ms of a step in Drake, or a dash where it is not installed."""
    made = drake_plant(mesh, law, YOUNGS_MODULUS, 0.0)
    if made is None:
        return "–"
    builder, plant, model, body = made
    model.SetWallBoundaryCondition(body, np.array(WALL), np.array([1.0, 0.0, 0.0]))
    plant.Finalize()
    return milliseconds_of_steps(builder, 5, 40)


def block_in_drake(mesh: mbjax.TetrahedralMesh) -> str:
    """Processor ms of a step in contact in Drake, on the top of a box, or a dash where it is not installed."""
    made = drake_plant(mesh, "linear_corotated", BLOCK_MODULUS, HEIGHT)
    if made is None:
        return "–"
    from pydrake.geometry import AddCompliantHydroelasticProperties, AddContactMaterial, Box, ProximityProperties
    from pydrake.math import RigidTransform
    from pydrake.multibody.plant import CoulombFriction

    builder, plant, _, _ = made
    ground = ProximityProperties()
    AddContactMaterial(friction=CoulombFriction(FRICTION, FRICTION), properties=ground)
    AddCompliantHydroelasticProperties(1.0, GROUND, ground)
    place = RigidTransform([0.0, 0.0, -0.5])
    plant.RegisterCollisionGeometry(plant.world_body(), place, Box(1.0, 1.0, 1.0), "ground", ground)
    plant.Finalize()
    return milliseconds_of_steps(builder, FIRST_TIMED, NUM_STEPS)


def main() -> None:
    """Prints the table, a row as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contact", action="store_true", help="the block on the ground in the place of the bar")
    parser.add_argument("--cells", type=int, nargs="+", help="cells along the bar, or along each side of the block")
    parser.add_argument("--bending", action="store_true", help="linear and quadratic elements of a longer bar")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    if options.contact:
        header = "ground | elements | iterations | step, ms | gradient, ms | compile, s | of the gradient, s"
        print(f"| {header} | in a batch, ms | Drake, ms |\n" + "|---" * 9 + "|", flush=True)
        for cells in options.cells or (2, 4, 8):
            mesh = block(cells)
            for ground in ("half-space", "box"):
                print("| " + " | ".join([*measure_contact(mesh, ground), block_in_drake(mesh)]) + " |", flush=True)
        return
    if options.bending:
        print_bending()
        return
    print("| law | elements | step, ms | gradient, ms | compile, s | of the gradient, s | in a batch, ms | Drake, ms |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for law in ("linear_corotated", "neo_hookean"):
        for cells in options.cells or (8, 16, 32):
            mesh = bar(cells)
            single = model_of(mesh, law, jnp.float32)
            others = [milliseconds_in_batch(single, mbjax.default_state(single)), bar_in_drake(mesh, law)]
            print("| " + " | ".join([law, str(len(mesh.tetrahedra)), *measure(mesh, law), *others]) + " |", flush=True)


if __name__ == "__main__":
    main()
