"""Unitree A1 on its feet: standing, and trotting as Drake's does under the same control."""

import logging
import re
import warnings
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pydrake.geometry as drake_geometry
import pytest
from pydrake.multibody.parsing import Parser as DrakeParser
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph, CoulombFriction, DiscreteContactApproximation
from pydrake.multibody.plant import MultibodyPlant as DrakePlant
from pydrake.multibody.tree import PdControllerGains
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder

import mbjax
from mbjax.geometry import Geometry, HalfSpace
from tests.gradients.checks import compiled
from tests.models import ROBOTS, make_twin

GRAVITY, DT = 9.81, 2e-3
A1 = ROBOTS / "a1_description/urdf/a1.urdf"
FEET = ("FR_foot", "FL_foot", "RR_foot", "RL_foot")
THIGH, CALF, HEIGHT = 0.8, -1.6, 0.4 * np.cos(0.8) + 0.02  # rad, rad, m: links of 0.2 m, feet of 0.02 m
FRICTION, FOOT_FRICTION, EFFORT, KP, KD = 0.8, 1.0, 33.5, 200.0, 5.0  # a file that says none has 1
PERIOD, SWEEP, LIFT = 0.5, 0.12, 0.12  # s, rad, rad


def quadruped(only_feet: bool = False) -> mbjax.MultibodyModel:
    """A1 on the ground, gains on all joints; its own links do not touch one another."""
    plant = mbjax.MultibodyPlant(DT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbjax.ModelWarning)
        mbjax.Parser(plant, on_unsupported="warn").add_models(A1)
    bodies = [body for body in plant.bodies if body.name != "world"]
    links = ("links", bodies)
    plant.exclude_collision_geometries_with_collision_filter_group_pair(links, links)
    ground = plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), FRICTION)
    if only_feet:
        others = ("others", [body for body in bodies if body.name not in FEET])
        plant.exclude_collision_geometries_with_collision_filter_group_pair(("ground", [ground]), others)
    for joint in plant.joints:
        if joint.name.endswith(("hip_joint", "thigh_joint", "calf_joint")):
            plant.add_joint_actuator(joint.name, joint, EFFORT, kp=KP, kd=KD)
    return plant.finalize()


def trot(model: mbjax.MultibodyModel, time: jax.Array) -> jax.Array:
    """Desired angles and rates: diagonal legs in turn bend and swing forward, then stretch and push back.

    It grows from standing within the first period.
    """
    names = [name.split("_")[:2] for name in model.actuator_names]
    phase = jnp.array([0.0 if leg in ("FR", "RL") else np.pi for leg, _ in names])
    middle, bend, push = (
        np.array([values[part] for _, part in names])
        for values in (
            {"hip": 0.0, "thigh": THIGH, "calf": CALF},
            {"hip": 0.0, "thigh": 0.5 * LIFT, "calf": -LIFT},
            {"hip": 0.0, "thigh": SWEEP, "calf": 0.0},
        )
    )

    def angles(time: jax.Array) -> jax.Array:
        phi = 2.0 * np.pi * time / PERIOD + phase
        return middle + jnp.minimum(time / PERIOD, 1.0) * (bend * jnp.sin(phi) + push * jnp.cos(phi))

    return jnp.concatenate(jax.jvp(angles, (time,), (jnp.ones_like(time),)))


def standing(model: mbjax.MultibodyModel) -> tuple[mbjax.State, int]:
    """At rest with its feet at the ground; and where its height is in q."""
    q = np.array(mbjax.default_state(model).q)
    height = model.position_names().index("a1_base_z")
    q[height] = HEIGHT
    for name in model.actuator_names:
        q[model.joint(name).q] = {"hip": 0.0, "thigh": THIGH, "calf": CALF}[name.split("_")[1]]
    return mbjax.State(jnp.asarray(q), jnp.zeros(model.num_velocities), jnp.zeros(())), height


@pytest.mark.whole_run("trotting, below")
def test_a_quadruped_stands() -> None:
    """A1 with position control: its feet carry its weight, and it stays where it is."""
    model = quadruped()
    start, height = standing(model)
    actuated = [model.joint(name).q.start for name in model.actuator_names]
    inputs = mbjax.Inputs(desired_state=jnp.concatenate([start.q[jnp.array(actuated)], jnp.zeros(len(actuated))]))

    @compiled
    def stand(state: mbjax.State) -> tuple[mbjax.Trajectory, mbjax.ContactResults]:
        way = mbjax.rollout(model, state, inputs, 1000)
        return way, mbjax.outputs(model, way.final_state, inputs).contact_results

    way, contacts = stand(start)
    force, weight = np.abs(contacts.force[:, 2]), float(mbjax.total_mass(model)) * GRAVITY
    feet = {contacts.names(model)[i][0] for i in np.flatnonzero(contacts.is_active)}
    moved = np.abs(way.q[-1] - way.q[500]).max()
    print(f"{feet} carry {force[contacts.is_active]} N of {weight} N; moved {moved:.1e}; height {way.q[-1, height]}")
    assert feet == set(FEET)
    assert force.sum() == pytest.approx(weight, rel=1e-3)
    assert moved < 1e-3
    assert way.q[-1, height] == pytest.approx(HEIGHT, abs=0.03)


class Way(NamedTuple):
    """After every step: states; in it forces on the ground, slip speeds, efforts, and whether it was solved."""

    q: jax.Array
    v: jax.Array
    force: jax.Array
    slip: jax.Array
    effort: jax.Array
    converged: jax.Array


def trotting(model: mbjax.MultibodyModel, steps: int) -> Way:
    def advance(state: mbjax.State, _: None) -> tuple[mbjax.State, Way]:
        after, outputs = mbjax.step(model, state, mbjax.Inputs(desired_state=trot(model, state.time + DT)))
        found = outputs.contact_results
        way = Way(after.q, after.v, found.force, found.slip_speed, outputs.net_actuation, found.converged)
        return after, way

    return compiled(lambda state: jax.lax.scan(advance, state, length=steps)[1])(standing(model)[0])


def drakes_trot(model: mbjax.MultibodyModel, steps: int) -> np.ndarray:
    """Its positions after every step, in our order."""
    logging.getLogger("drake").setLevel(logging.ERROR)
    builder = DiagramBuilder()
    properties = drake_geometry.DefaultProximityProperties(
        point_stiffness=None, hunt_crossley_dissipation=None, relaxation_time=None
    )
    graph = drake_geometry.SceneGraph(drake_geometry.SceneGraphConfig(default_proximity_properties=properties))
    plant, graph = AddMultibodyPlantSceneGraph(builder, DrakePlant(DT), graph)
    plant.set_discrete_contact_approximation(DiscreteContactApproximation.kSap)
    without_meshes = re.sub("<visual>.*?</visual>", "", A1.read_text(), flags=re.DOTALL)
    (instance,) = DrakeParser(plant).AddModelsFromString(without_meshes, "urdf")
    ground = drake_geometry.ProximityProperties()
    drake_geometry.AddContactMaterial(None, None, CoulombFriction(FRICTION, FRICTION), ground)
    pose = drake_geometry.HalfSpace.MakePose([0.0, 0.0, 1.0], np.zeros(3))
    plant.RegisterCollisionGeometry(plant.world_body(), pose, drake_geometry.HalfSpace(), "ground", ground)
    others = drake_geometry.GeometrySet()
    for index in plant.GetBodyIndices(instance):
        if plant.get_body(index).name() not in FEET:
            others.Add(plant.GetCollisionGeometriesForBody(plant.get_body(index)))
    links = plant.CollectRegisteredGeometries([plant.get_body(i) for i in plant.GetBodyIndices(instance)])
    of_ground = plant.CollectRegisteredGeometries([plant.world_body()])
    filters = drake_geometry.CollisionFilterDeclaration()
    graph.collision_filter_manager().Apply(filters.ExcludeWithin(links).ExcludeBetween(others, of_ground))
    for name in model.actuator_names:
        actuator = plant.AddJointActuator(name, plant.GetJointByName(name), EFFORT)
        actuator.set_controller_gains(PdControllerGains(p=KP, d=KD))
    plant.Finalize()
    twin = make_twin(model, plant)
    simulator = Simulator(builder.Build())
    context = plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())
    start, _ = standing(model)
    plant.SetPositions(context, np.asarray(start.q)[twin.to_drake_q])
    plant.SetVelocities(context, np.zeros(model.num_velocities))
    desired = np.asarray(jax.jit(jax.vmap(lambda time: trot(model, time)))(DT * jnp.arange(1.0, steps + 1.0)))
    way, order = [], np.argsort(twin.to_drake_q)
    for k in range(steps):
        plant.get_desired_state_input_port(instance).FixValue(context, desired[k])
        simulator.AdvanceTo((k + 1) * DT)
        way.append(plant.GetPositions(context)[order])
    return np.array(way)


@pytest.mark.parametrize("seconds", [0.3, pytest.param(5.0, marks=pytest.mark.whole_run("its first 0.3 s"))])
def test_a_quadruped_trots(seconds: float) -> None:
    """It walks ahead, upright, on feet that push within their cones and hardly slip, and as Drake's does."""
    model, steps = quadruped(only_feet=True), round(seconds / DT)
    height = standing(model)[1]
    way = Way(*(np.asarray(x) for x in trotting(model, steps)))
    theirs = drakes_trot(model, steps)
    assert np.isfinite(way.v).all()
    assert way.converged.all()
    assert way.force.shape[1] == len(FEET)
    normal, tangential = np.abs(way.force[..., 2]), np.linalg.norm(way.force[..., :2], axis=-1)
    mu = 2.0 * FRICTION * FOOT_FRICTION / (FRICTION + FOOT_FRICTION)
    weight = float(mbjax.total_mass(model)) * GRAVITY
    tilt = np.abs(way.q[:, height - 5 : height - 3]).max()
    slip = (way.slip * normal).sum() / normal.sum()
    apart, load = np.abs(way.q - theirs), normal.sum(axis=1)
    x, y = height - 2, height - 1
    ahead, aside = way.q[-1, x], np.abs(way.q[:, y]).max()
    print(f"{seconds} s: {ahead:.3f} m ahead, {aside:.3f} aside, Drake's {theirs[-1, x]:.3f}, apart {apart.max():.1e}")
    print(
        f"height {way.q[:, height].min():.3f} to {way.q[:, height].max():.3f}, {HEIGHT:.3f} at first; tilt {tilt:.3f}"
    )
    print(f"slip {slip:.3f} m/s; load {load.mean() / weight:.3f}, at most {load.max() / weight:.1f} weights")
    heights = np.abs(way.q[:, height] - theirs[:, height])
    print(
        f"heights apart by {heights.mean():.1e}, at most {heights.max():.1e} m, coordinate {apart.max(axis=0).argmax()}"
    )
    assert (tangential <= mu * normal * (1.0 + 1e-9) + 1e-9).all()
    assert np.abs(way.effort).max() <= EFFORT
    assert tilt < 0.1
    assert np.abs(way.q[:, height] - HEIGHT).max() < 0.03
    assert load.mean() == pytest.approx(weight, rel=0.03)
    assert load.max() < 5.0 * weight
    assert slip < 0.02
    assert apart[: round(0.3 / DT)].max() < 1e-4
    if seconds > 1.0:  # where a foot lands next, and when, is then Drake's no more
        assert way.q[-1, x] > 0.7
        assert way.q[-1, x] == pytest.approx(theirs[-1, x], rel=0.03)
        assert abs(heights.mean()) < 2e-3
        assert np.abs(heights).max() < 0.03
