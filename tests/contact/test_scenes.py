"""Small scenes beside closed forms and MuJoCo: a gripper, a block on a slope, a stack; and a falling figure."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.geometry import Box, Capsule, Geometry, HalfSpace, ProximityProperties, Sphere
from tests.contact import mujoco_scenes
from tests.gradients.checks import compiled

GRAVITY = 9.81
CUBE, CUBE_MASS, TIP, SQUEEZE, LIFT, LIFT_TIME = 0.1, 0.4, 0.02, 5.0, 0.05, 0.3  # m, kg, m, N, m/s, s
DT = 2e-3


def gripper() -> mbjax.MultibodyModel:
    """A hand on a vertical slide, two fingers that close on a cube, each with two round tips."""
    plant = mbjax.MultibodyPlant(DT)
    material = ProximityProperties(0.5, point_stiffness=1e5, relaxation_time=0.01)
    plant.add_rigid_body("hand", mbjax.SpatialInertia.solid_cube_with_mass(1.0, 0.1))
    plant.add_joint(mbjax.PrismaticJoint("lift", "world", "hand", axis=(0.0, 0.0, 1.0)))
    plant.add_joint_actuator("lift", "lift", np.inf, kp=1e5, kd=1e3)
    for side, name in ((-1.0, "left"), (1.0, "right")):
        plant.add_rigid_body(name, mbjax.SpatialInertia.solid_cube_with_mass(0.1, 0.05))
        plant.add_joint(mbjax.PrismaticJoint(name, "hand", name, axis=(-side, 0.0, 0.0)))
        plant.add_joint_actuator(name, name, np.inf)
        for k, y in enumerate((-0.03, 0.03)):
            tip = Geometry(f"{name}{k}", Sphere(TIP), translation=(side * (0.5 * CUBE + TIP), y, 0.0))
            plant.register_collision_geometry(name, tip, material)
    plant.add_rigid_body("cube", mbjax.SpatialInertia.solid_cube_with_mass(CUBE_MASS, CUBE))
    plant.register_collision_geometry("cube", Geometry("cube", Box((CUBE,) * 3)), material)
    plant.exclude_collisions_between("left", "right")
    return plant.finalize()


@pytest.mark.whole_run("a ball that rolls, and a quadruped that trots, beside Drake's")
def test_a_gripper_lifts_a_cube_that_friction_can_carry() -> None:
    """Two fingers carry m g where 2 μ F is more, and let it fall with g - 2 μ F / m where it is less."""
    model = gripper()
    limit = CUBE_MASS * GRAVITY / (2.0 * SQUEEZE)
    frictions = np.array([0.93, 0.99, 1.01, 2.0]) * limit
    steps, at_rest = round(LIFT_TIME / DT), mbjax.default_state(model)
    hand, cube = model.joint("lift").v.start, model.joint("cube")

    def lifted(mu: jax.Array) -> tuple[mbjax.Trajectory, mbjax.ContactResults]:
        with_friction = model
        for name in ("left0", "left1", "right0", "right1", "cube"):
            with_friction = mbjax.set_friction(with_friction, name, mu)

        def inputs(state: mbjax.State) -> mbjax.Inputs:
            desired = jnp.stack([LIFT * (state.time + DT), 0.0, 0.0, LIFT, 0.0, 0.0])
            return mbjax.Inputs(jnp.array([0.0, SQUEEZE, SQUEEZE]), desired)

        moving = jnp.zeros(model.num_velocities).at[jnp.array([hand, cube.v.start + 5])].set(LIFT)
        way = mbjax.rollout(with_friction, mbjax.State(at_rest.q, moving, at_rest.time), inputs, steps)
        return way, mbjax.outputs(with_friction, way.final_state, inputs(way.final_state)).contact_results

    way, contacts = compiled(jax.vmap(lifted))(jnp.asarray(frictions))
    height, speed = way.q[..., cube.q.start + 6], way.v[..., cube.v.start + 5]
    acceleration = np.polyfit(DT * np.arange(steps + 1), speed.T, 1)[0]
    print(f"acceleration {acceleration}, slip {height[2:, -1] - LIFT * LIFT_TIME} m")
    expected = np.minimum(2.0 * frictions * SQUEEZE / CUBE_MASS - GRAVITY, 0.0)
    np.testing.assert_allclose(acceleration, expected, atol=0.01 * GRAVITY)
    np.testing.assert_allclose(speed[2:, -1], LIFT, rtol=1e-2)
    np.testing.assert_allclose(height[2:, -1], LIFT * LIFT_TIME, atol=1e-3)  # it sags until the fingers press
    assert np.abs(height[2:, -1] - height[2:, steps // 2] - 0.5 * LIFT * LIFT_TIME).max() < 2e-4
    np.testing.assert_allclose(np.abs(contacts.force[2:, :, 0]), 0.5 * SQUEEZE, rtol=1e-2)
    np.testing.assert_allclose(np.abs(contacts.force[2:, :, 2].sum(axis=1)), CUBE_MASS * GRAVITY, rtol=1e-2)
    assert contacts.converged.all()
    theirs = [mujoco_gripper(float(mu)) for mu in frictions]
    print(f"MuJoCo's cube rises by {theirs}, ours by {height[:, -1]}")
    np.testing.assert_allclose(height[:, -1], theirs, atol=1e-3)


def mujoco_gripper(friction: float) -> float:
    """How far MuJoCo's gripper lifts its cube."""
    touch = f'friction="{friction} 0 0"'
    fingers, motors = "", ""
    for side, name in ((-1.0, "left"), (1.0, "right")):
        tips = "".join(
            f'<geom type="sphere" size="{TIP}" pos="{side * (0.5 * CUBE + TIP)} {y} 0" mass="0.05" contype="2" '
            f'conaffinity="1" {touch}/>'
            for y in (-0.03, 0.03)
        )
        fingers += f'<body><joint name="{name}" type="slide" axis="{-side} 0 0"/>{tips}</body>'
        motors += f'<motor joint="{name}"/>'
    hand = (
        '<body><joint name="lift" type="slide" axis="0 0 1"/><geom size="0.01" mass="1" contype="0" conaffinity="0"/>'
        f"{fingers}</body>"
    )
    cube = (
        f'<body><freejoint/><geom type="box" size="{0.5 * CUBE} {0.5 * CUBE} {0.5 * CUBE}" mass="{CUBE_MASS}" '
        f'contype="1" conaffinity="2" {touch}/></body>'
    )
    lift = '<position joint="lift" kp="1e5"/><velocity joint="lift" kv="1e3"/>'
    xml = mujoco_scenes.scene(hand + cube, np.array([0.0, 0.0, -GRAVITY]), f"<actuator>{lift}{motors}</actuator>")
    q, _ = mujoco_scenes.run(xml, LIFT_TIME, {0: LIFT, 5: LIFT}, lambda t: [LIFT * t, LIFT, SQUEEZE, SQUEEZE])
    return float(q[-1, 5])


@pytest.mark.whole_run("what sticks and slides beside Drake's and MuJoCo's steps, in test_one_ball.py too")
@pytest.mark.parametrize("approximation", ["sap", "similar", "lagged"])
def test_a_block_slides_within_one_percent_of_the_angle_of_friction(approximation: str) -> None:
    """At μ = tan θ ± 1 % it creeps by less than the stiction tolerance allows, or moves off with g (sin - μ cos)."""
    plant = mbjax.MultibodyPlant(DT, discrete_contact_approximation=approximation)
    plant.add_rigid_body("block", mbjax.SpatialInertia.solid_box_with_mass(2.0, 0.3, 0.2, 0.1))
    material = ProximityProperties(0.5, point_stiffness=1e5, hunt_crossley_dissipation=10.0, relaxation_time=0.01)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), material)
    plant.register_collision_geometry("block", Geometry("block", Box((0.3, 0.2, 0.1))), material)
    model, angle, steps = plant.finalize(), 0.4, 1000
    gravity = GRAVITY * np.array([np.sin(angle), 0.0, -np.cos(angle)])
    state = mbjax.default_state(model)
    state = mbjax.State(state.q.at[6].set(0.05 - 5e-5), state.v, state.time)

    def slide(mu: jax.Array) -> jax.Array:
        rough = mbjax.set_friction(mbjax.set_friction(model, "ground", mu), "block", mu)
        return mbjax.rollout(mbjax.set_gravity(rough, gravity), state, num_steps=steps).v[:, 3]

    factors = np.array([1.01, 0.99])
    speed = np.asarray(jax.jit(jax.vmap(slide))(factors * np.tan(angle)))
    slope = np.polyfit(DT * np.arange(steps // 2, steps + 1), speed[:, steps // 2 :].T, 1)[0]
    print(f"{approximation}: sticks at {speed[0, -1]:.1e} m/s, slides with {slope[1]} m/s²")
    assert abs(speed[0, -1]) < 2e-3
    assert abs(slope[0]) < 1e-3
    assert slope[1] == pytest.approx(0.01 * GRAVITY * np.sin(angle), rel=0.1)
    size = np.array([0.3, 0.2, 0.1])
    theirs = [mujoco_scenes.slope_acceleration(mu, gravity, size, 2.0) for mu in factors * np.tan(angle)]
    print(f"MuJoCo's accelerations {theirs}")
    np.testing.assert_allclose(slope, theirs, atol=3e-3 * GRAVITY * np.sin(angle))


@pytest.mark.whole_run("boxes on the ground in test_drops.py")
def test_ten_boxes_stay_stacked_for_ten_seconds() -> None:
    """A little beside and turned to one another, as deep in one another as springs in series are: there they stay.

    From where they just touch, each would first fall for a step longer than the one below it.
    """
    plant, side, stiffness = mbjax.MultibodyPlant(0.01, sap_near_rigid_threshold=0.0), 0.2, 5e5
    material = ProximityProperties(0.5, point_stiffness=2.0 * stiffness, relaxation_time=0.01)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), material)
    for i in range(10):
        plant.add_rigid_body(f"box{i}", mbjax.SpatialInertia.solid_cube_with_mass(1.0, side))
        plant.register_collision_geometry(f"box{i}", Geometry(f"box{i}", Box((side,) * 3)), material)
    boxes = ["world", *(f"box{i}" for i in range(10))]
    for i in range(2, 11):
        for k in range(i - 1):
            plant.exclude_collisions_between(boxes[i], boxes[k])
    model, rng = plant.finalize(), np.random.default_rng(0)
    yaw, q = rng.uniform(-0.05, 0.05, 10), np.zeros((10, 7))
    q[:, 0], q[:, 3] = np.cos(0.5 * yaw), np.sin(0.5 * yaw)
    q[:, 4:6] = rng.uniform(-5e-3, 5e-3, (10, 2))
    q[:, 6] = side * (0.5 + np.arange(10)) - np.cumsum(GRAVITY * np.arange(10, 0, -1) / (4.0 * stiffness))
    start = mbjax.State(jnp.asarray(q.ravel()), jnp.zeros(60), jnp.zeros(()))
    way = compiled(lambda s: mbjax.rollout(model, s, num_steps=1000))(start)
    end, speed = np.asarray(way.q[-1]).reshape(10, 7), np.abs(way.v[-1]).max()
    drift, sunk = np.abs(end - q)[:, 4:6].max(), np.abs(end - q)[:, 6].max()
    later = np.abs(way.q[-1] - way.q[100]).max()
    print(f"drift {drift:.1e} m, after a second {later:.1e}, sunk {sunk:.1e} m, speed {speed:.1e}")
    assert drift < 1e-3
    assert sunk < 1e-5
    assert speed < 1e-5
    theirs = mujoco_scenes.stack_heights(side, q, 1.0, 0.5, GRAVITY)
    print(f"from MuJoCo's {np.abs(end[:, 4:] - theirs).max():.1e} m")
    np.testing.assert_allclose(end[:, 4:], theirs, atol=1e-3)


def figure() -> mbjax.MultibodyModel:
    """Trunk, head, and four limbs of two links, on ball joints and hinges with limits; about 40 kg."""
    plant = mbjax.MultibodyPlant(0.005, penetration_allowance=5e-3)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), 0.7)

    def part(name: str, mass: float, radius: float, length: float) -> None:
        inertia = mbjax.SpatialInertia.solid_capsule_with_mass(mass, radius, length, [0.0, 0.0, 1.0])
        plant.add_rigid_body(name, inertia)
        plant.register_collision_geometry(name, Geometry(name, Capsule(radius, length)), 0.7)

    part("trunk", 20.0, 0.12, 0.4)
    plant.add_rigid_body("head", mbjax.SpatialInertia.solid_sphere_with_mass(4.0, 0.1))
    plant.register_collision_geometry("head", Geometry("head", Sphere(0.1)), 0.7)
    neck = {"X_PF": (0.0, 0.0, 0.32), "X_BM": (0.0, 0.0, -0.1)}
    plant.add_joint(mbjax.BallRpyJoint("neck", "trunk", "head", damping=0.5, **neck))
    for side, y in (("left", 0.16), ("right", -0.16)):
        for limb, z, mass, length in (("arm", 0.2, 2.0, 0.25), ("leg", -0.3, 3.0, 0.35)):
            upper, lower = f"{side}_upper_{limb}", f"{side}_lower_{limb}"
            part(upper, mass, 0.05, length)
            part(lower, 0.6 * mass, 0.04, length)
            top, bottom = (0.0, 0.0, 0.5 * length + 0.05), (0.0, 0.0, -0.5 * length - 0.05)
            plant.add_joint(mbjax.BallRpyJoint(upper, "trunk", upper, X_PF=(0.0, y, z), X_BM=top, damping=0.5))
            hinge = {"axis": (0.0, 1.0, 0.0), "position_limits": (-2.0, 0.1), "damping": 0.2}
            plant.add_joint(mbjax.RevoluteJoint(lower, upper, lower, X_PF=bottom, X_BM=top, **hinge))
    bodies = ("figure", [body for body in plant.bodies if body.name != "world"])
    plant.exclude_collision_geometries_with_collision_filter_group_pair(bodies, bodies)
    return plant.finalize()


@pytest.mark.whole_run("a quadruped that trots as in Drake, and test_drops.py")
def test_a_figure_falls_and_comes_to_rest() -> None:
    """Dropped from a metre in four poses: no NaN, energy never above that of the start, at rest after three seconds."""
    model = figure()
    rng = np.random.default_rng(0)
    default = mbjax.default_state(model)
    q = np.tile(default.q, (4, 1)) + 0.3 * rng.normal(size=(4, model.num_positions))
    trunk = model.joint("trunk").q
    q[:, trunk.start + 4 : trunk.stop] = (0.0, 0.0, 1.6)
    q[:, [model.joint(name).q.start for name in model.joint_names if "lower" in name]] = -0.5

    @compiled
    @jax.vmap
    def fall(q: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        way = mbjax.rollout(model, mbjax.State(q, default.v, default.time), num_steps=600)
        kinetic = jax.vmap(lambda q, v: mbjax.kinetic_energy(model, q, v))(way.q, way.v)
        potential = jax.vmap(lambda q: mbjax.potential_energy(model, q))(way.q)
        lowest = jax.vmap(lambda q: jnp.min(mbjax.body_poses_in_world(model, q).translation[1:, 2]))(way.q)
        return kinetic, potential, lowest, way.v

    kinetic, potential, lowest, v = fall(jnp.asarray(q))
    energy = np.asarray(kinetic + potential)
    growth = (energy - energy[:, :1]).max() / np.asarray(kinetic).max()
    print(f"growth {growth:.1e}, lowest {lowest.min():.3f} m, left {kinetic[:, -1].max():.1e} of {kinetic.max():.0f} J")
    assert np.isfinite(v).all()
    assert growth < 1e-6
    assert lowest.min() > 0.0
    assert kinetic[:, -1].max() < 1e-3 * kinetic.max()
