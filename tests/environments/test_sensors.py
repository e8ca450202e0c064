"""Sensors and disturbances by themselves: delay, noise, what an inertial unit and a foot measure at rest, pushes."""

import types
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import mbjax
from mbjax.environments import (
    RandomPushes,
    Sensor,
    add_blocks,
    contact_forces,
    inertial_unit,
    joint_encoders,
    on_slope,
)

KEY = jax.random.key(0)


def test_a_sensor_is_late_and_noisy() -> None:
    sensor = Sensor(noise=0.1, bias=jnp.array([1.0, -1.0]), delay=2)
    memory = sensor.start(jnp.zeros(2))
    for i in range(1, 6):
        memory = sensor.update(memory, jnp.full(2, float(i)))
    np.testing.assert_array_equal(Sensor(delay=2).read(memory, KEY), [3.0, 3.0])
    read = jax.vmap(lambda key: sensor.read(memory, key))(jax.random.split(KEY, 2000))
    np.testing.assert_allclose(read.mean(0), [4.0, 2.0], atol=0.01)
    np.testing.assert_allclose(read.std(0), 0.1, rtol=0.1)
    with pytest.raises(mbjax.ModelError, match="delay"):
        Sensor(delay=-1)
    with pytest.raises(mbjax.ModelError, match="Sensor: noise must be a finite number >= 0"):
        Sensor(noise=-1.0)
    assert Sensor(delay=np.int64(2)).delay == 2
    model = mbjax.load("cart_pole")
    for names in ([], "slider"):
        with pytest.raises(mbjax.ModelError, match="joint_encoders: joints must be a list"):
            joint_encoders(model, mbjax.default_state(model), names)


def test_encoders_an_inertial_unit_and_contact_at_rest() -> None:
    """A ball at rest on the ground feels 9.81 m/s² upward and the ground carries its weight."""
    plant = mbjax.MultibodyPlant(0.005)
    plant.add_rigid_body("ball", mbjax.SpatialInertia.solid_sphere_with_mass(2.0, 0.1))
    plant.add_joint(mbjax.PrismaticJoint("lift", "world", "ball", axis=[0, 0, 1]))
    plant.register_collision_geometry("ball", np.zeros(3), mbjax.Sphere(0.1), "skin", 1.0)
    plant.register_collision_geometry("world", np.zeros(3), mbjax.HalfSpace(), "ground", 1.0)
    model = plant.finalize()
    state = mbjax.State(jnp.array([0.0995]), jnp.zeros(1))
    for _ in range(400):
        state, _ = mbjax.step(model, state)
    _, outputs = mbjax.step(model, state)
    np.testing.assert_array_equal(joint_encoders(model, state, ["lift"]), [state.q[0], state.v[0]])
    np.testing.assert_allclose(inertial_unit(model, outputs, "ball"), [0, 0, 0, 0, 0, 9.81], atol=1e-5)
    np.testing.assert_allclose(contact_forces(model, outputs, ["ball"]), [2.0 * 9.81], rtol=1e-5)
    with pytest.raises(mbjax.ModelError, match="'ball'"):
        contact_forces(model, outputs, ["bal"])


def test_contact_forces_on_bodies_of_one_name() -> None:
    """Two robots have a foot each; they are told apart by their instances, and by index."""
    plant = mbjax.MultibodyPlant(0.005)
    plant.register_collision_geometry("world", np.zeros(3), mbjax.HalfSpace(), "ground", 1.0)
    for robot in ("left", "right"):
        instance, solid = plant.add_model_instance(robot), mbjax.SpatialInertia.solid_sphere_with_mass(2.0, 0.1)
        plant.add_rigid_body("foot", solid, model_instance=instance)
        plant.register_collision_geometry(f"{robot}::foot", np.zeros(3), mbjax.Sphere(0.1), f"{robot} skin", 1.0)
    model = plant.finalize()
    pairs = [{model.layout.contact.geometries[g].name for g in pair} for pair in model.layout.contact.pairs]
    slots = pairs.index({"ground", "left skin"}), pairs.index({"left skin", "right skin"})
    force = jnp.array([[0.0, 0.0, 20.0], [3.0, 0.0, 0.0]])
    found = types.SimpleNamespace(pair_indices=slots, force=force, normal=jnp.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]))
    outputs: Any = types.SimpleNamespace(contact_results=found)
    feet = ["left::foot", "right::foot"]
    for bodies in (feet, [model.body_index(foot) for foot in feet]):
        np.testing.assert_array_equal(contact_forces(model, outputs, bodies), [23.0, 3.0])
    with pytest.raises(mbjax.ModelError, match="foot"):
        contact_forces(model, outputs, ["foot"])


@pytest.mark.whole_run("an inertial unit at rest, above, and frames that move as MuJoCo says, in test_playground.py")
def test_an_inertial_unit_beside_a_bodys_origin_reads_what_mujocos_does() -> None:
    """Gyroscope and accelerometer at a site that is turned and off the axes of two joints."""
    text = """
    <mujoco><compiler angle="radian"/><worldbody><body name="arm"><joint name="a" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02"/>
      <body name="hand" pos="0.3 0 0"><joint name="b" axis="1 0 0.5"/><geom type="sphere" size="0.05" pos="0 0.1 0"/>
      <site name="unit" pos="0.04 -0.06 0.1" euler="0.3 -0.5 0.9"/></body></body></worldbody>
    <sensor><gyro site="unit"/><accelerometer site="unit"/></sensor></mujoco>
    """
    model = mbjax.load(text, time_step=0.001)
    state = mbjax.State(jnp.array([0.4, -0.7]), jnp.array([1.5, -2.5]))
    data = mujoco.MjData(robot := mujoco.MjModel.from_xml_string(text))
    data.qpos[:], data.qvel[:] = map(np.asarray, mbjax.mujoco_state(model, state))
    mujoco.mj_forward(robot, data)
    found = inertial_unit(model, mbjax.outputs(model, state), "unit")
    np.testing.assert_allclose(found, data.sensordata, rtol=1e-9)


def test_pushes_begin_last_and_end() -> None:
    model = mbjax.load("cart_pole", time_step=0.02)
    pushes = RandomPushes("cart", force=10.0, probability=0.05, steps=4)
    _, memory = jax.lax.scan(
        lambda memory, key: (new := pushes.update(memory, key), new), pushes.start(model), jax.random.split(KEY, 400)
    )
    acts = np.any(np.asarray(memory[:, :2]) != 0.0, axis=1)
    starts = np.flatnonzero(np.diff(acts.astype(int)) == 1) + 1
    assert 5 < starts.size < 40
    alone = [k for k in starts if not np.any((starts > k) & (starts <= k + 4))]  # no other begins at its end
    for k in alone[:5]:
        assert acts[k : k + 4].all()
        assert not acts[k + 4]
        assert len({tuple(force) for force in np.asarray(memory[k : k + 4, :2])}) == 1
    assert alone
    assert np.abs(memory[:, :2]).max() <= 10.0
    force = pushes.applied(memory[starts[0]])
    np.testing.assert_array_equal(force.F_Bq_W[0, 3:5], memory[starts[0], :2])
    for wrong in ({"probability": 2.0}, {"steps": -1}, {"force": float("nan")}):
        with pytest.raises(mbjax.ModelError, match=f"RandomPushes: {next(iter(wrong))} must be"):
            RandomPushes("cart", **wrong)


def test_slopes_and_blocks() -> None:
    model = on_slope(mbjax.load("cart_pole", time_step=0.02), pitch=0.1)
    np.testing.assert_allclose(model.parameters.gravity, [-9.81 * np.sin(0.1), 0.0, -9.81 * np.cos(0.1)], rtol=1e-12)
    again = on_slope(on_slope(mbjax.set_gravity(model, (0.0, -9.81, 0.0)), roll=0.4), pitch=0.1)  # not a slope on it
    np.testing.assert_allclose(again.parameters.gravity, model.parameters.gravity, rtol=1e-12)
    plant = mbjax.MultibodyPlant(0.005)
    plant.add_rigid_body("ball", mbjax.SpatialInertia.solid_sphere_with_mass(2.0, 0.1))
    plant.register_collision_geometry("ball", np.zeros(3), mbjax.Sphere(0.1), "skin", 1.0)
    add_blocks(plant, np.array([[0.0, 0.1], [0.2, 0.3]]), 0.5)
    assert len(plant.finalize().collision_pairs) == 4
