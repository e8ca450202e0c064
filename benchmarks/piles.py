"""What does a step of a pile cost, by how much touches? Boxes, spheres and capsules in a bin, one world, float64.

Bodies fall into a bin of the ground and four walls and come to rest for 5 s; then steps of 2 ms are timed, in
processor time. mbjax runs a rollout, MuJoCo's C `mj_step` (Newton, its own defaults), Drake a discrete plant with point
contact. Contacts are counted at the end, each in its engine's own way: mbjax and Drake give two boxes up to eight and
one points, MuJoCo up to eight.
"""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from .results import Table
from .script import Options, failed, outcome, precision, run_script, significant

COUNTS, QUICK_COUNTS = (10, 30, 100), (3, 5)
FRICTION, TIME_STEP = 0.6, 2e-3
SETTLING, TIMED = 2500, 100  # steps
SHAPES = ("box", "sphere", "capsule")
SIDE, RADIUS, THIN, LENGTH = 0.2, 0.1, 0.08, 0.15  # m: of boxes, spheres and capsules
SPACING = 0.36  # m, between bodies at the start
WALLS = ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0))  # normals
LABELS = ("mbjax", "MuJoCo mj_step", "Drake, discrete")


def records(options: Options) -> Iterator[dict]:
    engines = dict(zip(LABELS, (measure_mbjax, measure_mujoco, measure_drake), strict=True))
    for count in QUICK_COUNTS if options.quick else COUNTS:
        steps = (20, 5) if options.quick else (SETTLING, TIMED)
        for label, engine in engines.items():
            with precision("f64"):
                yield outcome({"label": label, "count": count}, engine, count, *steps)


def half_width(count: int) -> float:
    """Of the bin in m: wide enough for a cube of bodies."""
    return 0.5 * SPACING * round(count ** (1.0 / 3.0)) + 0.05


def placed(count: int) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Shape, quaternion and position of each body at the start."""
    rng, side = np.random.default_rng(0), round(count ** (1.0 / 3.0))
    found = []
    for k in range(count):
        quaternion = rng.normal(size=4)
        place = np.array([k % side - 0.5 * (side - 1), k // side % side - 0.5 * (side - 1), k // side**2 + 0.6])
        found.append((SHAPES[k % 3], quaternion / np.linalg.norm(quaternion), SPACING * place))
    return found


def measure_mbjax(count: int, settling: int, timed: int) -> dict:
    import jax
    import jax.numpy as jnp

    import mbjax
    from mbjax.contact import calc_contact_points
    from mbjax.geometry import Box, Capsule, Geometry, HalfSpace, Sphere
    from mbjax.kinematics import calc_position_kinematics

    shapes = {"box": Box((SIDE, SIDE, SIDE)), "sphere": Sphere(RADIUS), "capsule": Capsule(THIN, LENGTH)}
    plant = mbjax.MultibodyPlant(TIME_STEP)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), FRICTION)
    for x, y in WALLS:
        R = np.array([[0.0, y, x], [0.0, -x, y], [1.0, 0.0, 0.0]])  # its last column is the normal
        place = -half_width(count) * R[:, 2]
        wall = Geometry(f"wall{x}{y}", HalfSpace(), translation=place, rotation=R)
        plant.register_collision_geometry("world", wall, FRICTION)
    for k, (shape, _, _) in enumerate(placed(count)):
        plant.add_rigid_body(f"body{k}", mbjax.SpatialInertia.solid_box_with_mass(1.0, SIDE, SIDE, SIDE))
        plant.register_collision_geometry(f"body{k}", Geometry("shape", shapes[shape]), FRICTION)
    model = plant.finalize()
    default = mbjax.default_state(model)
    q = np.concatenate([np.concatenate([quaternion, place]) for _, quaternion, place in placed(count)])
    state = mbjax.State(jnp.asarray(q), default.v, default.time)

    start = time.process_time()
    run = jax.jit(lambda state: mbjax.rollout(model, state, num_steps=timed).final_state).lower(state).compile()
    compile_time = time.process_time() - start
    for _ in range(settling // timed):
        state = run(state)
    jax.block_until_ready(state)
    start = time.process_time()
    after = jax.block_until_ready(run(state))
    seconds = (time.process_time() - start) / timed
    points = jax.jit(lambda q: calc_contact_points(model, calc_position_kinematics(model, q)).active)(after.q)
    return {
        "seconds": seconds,
        "compile_s": compile_time,
        "contacts": int(np.sum(points)),
        "speed": float(jnp.abs(after.v).max()),
    }


def measure_mujoco(count: int, settling: int, timed: int) -> dict:
    import mujoco

    geoms = {
        "box": f'type="box" size="{SIDE / 2} {SIDE / 2} {SIDE / 2}"',
        "sphere": f'type="sphere" size="{RADIUS}"',
        "capsule": f'type="capsule" size="{THIN} {LENGTH / 2}"',
    }
    inertia = " ".join([str(SIDE**2 / 6)] * 3)
    bodies = "".join(
        f'<body pos="{" ".join(map(str, place))}" quat="{" ".join(map(str, quaternion))}"><freejoint/>'
        f'<inertial pos="0 0 0" mass="1" diaginertia="{inertia}"/><geom {geoms[shape]}/></body>'
        for shape, quaternion, place in placed(count)
    )
    walls = "".join(
        f'<geom type="plane" size="0 0 1" pos="{-x * half_width(count)} {-y * half_width(count)} 0" zaxis="{x} {y} 0"/>'
        for x, y in WALLS
    )
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{TIME_STEP}"/><default><geom friction="{FRICTION}"/></default><worldbody>'
        f'<geom type="plane" size="0 0 1"/>{walls}{bodies}</worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, settling)
    start = time.process_time()
    mujoco.mj_step(model, data, timed)
    seconds = (time.process_time() - start) / timed
    return {"seconds": seconds, "contacts": int(data.ncon), "speed": float(np.abs(data.qvel).max())}


def measure_drake(count: int, settling: int, timed: int) -> dict:
    from pydrake.all import (
        AddMultibodyPlantSceneGraph,
        Box,
        Capsule,
        CoulombFriction,
        DiagramBuilder,
        HalfSpace,
        Quaternion,
        RigidTransform,
        Simulator,
        SpatialInertia,
        Sphere,
    )

    shapes: dict[str, Any] = {
        "box": Box(SIDE, SIDE, SIDE),
        "sphere": Sphere(RADIUS),
        "capsule": Capsule(THIN, LENGTH),
    }
    builder, friction = DiagramBuilder(), CoulombFriction(FRICTION, FRICTION)
    plant, _ = AddMultibodyPlantSceneGraph(builder, TIME_STEP)
    normals = [(0.0, 0.0, 1.0), *((x, y, 0.0) for x, y in WALLS)]
    for n in map(np.array, normals):
        place = -half_width(count) * n * (n[2] == 0.0)
        pose = HalfSpace.MakePose(n, place)
        plant.RegisterCollisionGeometry(plant.world_body(), pose, HalfSpace(), f"plane{n}", friction)
    for k, (shape, _, _) in enumerate(placed(count)):
        body = plant.AddRigidBody(f"body{k}", SpatialInertia.SolidBoxWithMass(1.0, SIDE, SIDE, SIDE))
        plant.RegisterCollisionGeometry(body, RigidTransform(), shapes[shape], f"shape{k}", friction)
    plant.Finalize()
    diagram = builder.Build()
    simulator = Simulator(diagram)
    context = plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())
    for k, (_, quaternion, place) in enumerate(placed(count)):
        plant.SetFreeBodyPose(context, plant.GetBodyByName(f"body{k}"), RigidTransform(Quaternion(quaternion), place))
    simulator.Initialize()
    simulator.AdvanceTo(settling * TIME_STEP)
    start = time.process_time()
    simulator.AdvanceTo((settling + timed) * TIME_STEP)
    seconds = (time.process_time() - start) / timed
    contacts = plant.get_contact_results_output_port().Eval(context).num_point_pair_contacts()
    return {"seconds": seconds, "contacts": contacts, "speed": float(np.abs(plant.GetVelocities(context)).max())}


def tables(records: list[dict]) -> list[Table]:
    records = [r for r in records if r["status"] != "device"]
    counts = sorted({r["count"] for r in records})
    rows = []
    for label in LABELS:
        own = {r["count"]: r for r in records if r["label"] == label}
        cells = [own.get(n) for n in counts]
        rows.append((label, *map(shown, cells), exponent([r for r in cells if r and not failed(r)])))
    heads = ("", *(f"{n} bodies" for n in counts), "grows as contacts to the")
    compiled = [f"{r['compile_s']:.0f}" for r in records if "compile_s" in r]
    note = f"µs a step, and contacts at the end. mbjax compiles in {', '.join(compiled)} s, once for each number."
    return [Table("Piles", heads, tuple(rows), note)]


def shown(record: dict | None) -> str:
    """Time of a step and the number of contacts."""
    if record is None or failed(record):
        return "–" if record is None else record["status"]
    return f"{significant(record['seconds'] * 1e6)}, {record['contacts']}"


def exponent(records: list[dict]) -> str:
    """The slope of the logarithm of the time by that of the number of contacts, first to last."""
    if len(records) < 2:
        return "–"
    first, last = records[0], records[-1]
    return f"{np.log(last['seconds'] / first['seconds']) / np.log(last['contacts'] / first['contacts']):.2f}"


if __name__ == "__main__":
    run_script("piles", __doc__, records)
