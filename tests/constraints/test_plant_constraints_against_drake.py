"""Discrete plants with constraints beside Drake's SAP plants, step for step: 10 steps to rounding, 500 to 1e-6."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pydrake.multibody.tree as drake_tree
import pytest
from pydrake.math import RigidTransform as DrakeTransform
from pydrake.math import RollPitchYaw
from pydrake.multibody.parsing import Parser as DrakeParser
from pydrake.multibody.plant import DiscreteContactApproximation
from pydrake.multibody.plant import MultibodyPlant as DrakePlant
from pydrake.multibody.tree import PdControllerGains
from pydrake.systems.analysis import Simulator

import mbjax
from mbjax.simulation import normalize_quaternions
from tests.models import Twin, make_twin

DT = 1e-3
STEPS = 500
COMPARED = (1, 10, 100, STEPS)


class TwinPlants:
    """Adds the same bodies, hinges and constraints to a plant of ours and one of Drake's."""

    def __init__(self):
        self.ours = mbjax.MultibodyPlant(DT)
        self.theirs = DrakePlant(DT)
        self.theirs.set_discrete_contact_approximation(DiscreteContactApproximation.kSap)

    def body(self, name: str, mass: float) -> None:
        com, G = [0.3, 0.0, 0.05], (0.12, 0.2, 0.25)
        self.ours.add_rigid_body(name, mbjax.SpatialInertia(mass, com, mbjax.UnitInertia(*G, 0.0, 0.0, 0.0)))
        self.theirs.AddRigidBody(name, drake_tree.SpatialInertia(mass, com, drake_tree.UnitInertia(*G)))

    def hinge(self, name: str, parent: str, child: str, at, axis, damping: float, start: float) -> None:
        axis = np.array(axis) / np.linalg.norm(axis)
        frame = self.theirs.GetFrameByName(parent) if parent != "world" else self.theirs.world_frame()
        F = self.theirs.AddFrame(drake_tree.FixedOffsetFrame(f"{name}_parent", frame, DrakeTransform(at)))
        M = self.theirs.GetFrameByName(child)
        joint = self.theirs.AddJoint(drake_tree.RevoluteJoint(name, F, M, axis, damping))
        joint.set_default_positions([start])
        self.ours.add_joint(
            mbjax.RevoluteJoint(name, parent, child, X_PF=at, axis=axis, damping=damping, default_positions=start)
        )

    def drake_body(self, name: str):
        return self.theirs.GetBodyByName(name)

    def done(self) -> Twin:
        self.theirs.Finalize()
        return make_twin(self.ours.finalize(), self.theirs)


def pendulums() -> TwinPlants:
    """A double pendulum A, B and a pendulum C beside it, in motion out of one plane."""
    plants = TwinPlants()
    for name, mass in (("A", 1.0), ("B", 2.0), ("C", 0.5)):
        plants.body(name, mass)
    plants.hinge("a", "world", "A", [0.0, 0.0, 0.0], [0, 1, 0], 0.3, 0.3)
    plants.hinge("b", "A", "B", [0.6, 0.0, 0.0], [0, 1, 0.2], 0.2, -0.7)
    plants.hinge("c", "world", "C", [1.0, 0.0, 0.0], [0, 1, 0], 0.1, 0.9)
    return plants


P, Q = np.array([0.5, 0.1, 0.0]), np.array([0.4, 0.0, 0.0])
X_BP = DrakeTransform(RollPitchYaw(0.2, -0.4, 0.6), P)
ROD = 0.38534223262576023  # m, what P and Q are apart at the start


@functools.cache
def coupled() -> Twin:
    plants = pendulums()
    joints = [plants.theirs.GetJointByName(name) for name in "ac"]
    plants.theirs.AddCouplerConstraint(*joints, -1.7, 1.83)
    plants.ours.add_coupler_constraint("a", "c", -1.7, 1.83)
    return plants.done()


@functools.cache
def rod(stiffness: float = np.inf, damping: float = 0.0) -> Twin:
    plants = pendulums()
    compliance = () if stiffness == np.inf else (stiffness, damping)
    plants.theirs.AddDistanceConstraint(plants.drake_body("B"), P, plants.drake_body("C"), Q, ROD, *compliance)
    plants.ours.add_distance_constraint("B", P, "C", Q, ROD, *compliance)
    return plants.done()


@functools.cache
def closed_chain() -> Twin:
    """The tips of B and C in a ball, which is placed where B has it by default: in a plane, one row is empty."""
    plants = TwinPlants()
    for name, mass in (("A", 1.0), ("B", 2.0), ("C", 0.5)):
        plants.body(name, mass)
    plants.hinge("a", "world", "A", [0.0, 0.0, 0.0], [0, 1, 0], 0.0, 0.3)
    plants.hinge("b", "A", "B", [0.6, 0.0, 0.0], [0, 1, 0], 0.2, -0.7)
    plants.hinge("c", "world", "C", [1.0, 0.0, 0.0], [0, 1, 0], 0.1, 0.9)
    plants.theirs.AddBallConstraint(plants.drake_body("B"), P, plants.drake_body("C"))
    plants.ours.add_ball_constraint("B", P, "C")
    return plants.done()


@functools.cache
def welded() -> Twin:
    """A free body D welded to the tip of B."""
    plants = pendulums()
    plants.body("D", 0.7)
    plants.theirs.AddWeldConstraint(plants.drake_body("B"), X_BP, plants.drake_body("D"), DrakeTransform())
    plants.ours.add_weld_constraint("B", X_BP.GetAsMatrix4(), "D", np.eye(4))
    return plants.done()


SCENES = {
    "coupler": coupled,
    "distance": rod,
    "stiff spring": functools.partial(rod, 1e4, 20.0),
    "spring stiffer than the step resolves": functools.partial(rod, 1e12, 0.0),
    "ball": closed_chain,
    "weld": welded,
}


def start_of(scene: str, twin: Twin) -> tuple[np.ndarray, np.ndarray]:
    """Default positions, with the free body of the weld where it belongs; at rest."""
    plant, context = twin.plant, twin.plant.CreateDefaultContext()
    if scene == "weld":
        X_WP = plant.EvalBodyPoseInWorld(context, plant.GetBodyByName("B")) @ X_BP
        plant.SetFreeBodyPose(context, plant.GetBodyByName("D"), X_WP)
    return plant.GetPositions(context)[np.argsort(twin.to_drake_q)], np.zeros(plant.num_velocities())


OTHERS = pytest.mark.whole_run("a weld, a stiff spring and fingers that mimic, and rows of each kind as Drake's")
OFTEN = "weld", "stiff spring", "spring stiffer than the step resolves"


@pytest.mark.parametrize("scene", [pytest.param(x, marks=[OTHERS] * (x not in OFTEN)) for x in SCENES])
def test_steps_equal_drakes(scene: str) -> None:
    twin = SCENES[scene]()
    q, v = start_of(scene, twin)
    context = twin.context(q, v)
    simulator = Simulator(twin.plant, context)
    start = mbjax.State(jnp.asarray(q), jnp.asarray(v), jnp.zeros(()))
    positions, velocities = rollout_turning_as_drake(twin.model, start)
    for k in COMPARED:
        simulator.AdvanceTo(k * DT)
        q, v = twin.plant.GetPositions(context)[np.argsort(twin.to_drake_q)], twin.plant.GetVelocities(context)
        ours, theirs = (normalize_quaternions(twin.model, jnp.asarray(x)) for x in (positions[k - 1], q))
        error = np.max([np.abs(ours - theirs).max(), np.abs(velocities[k - 1][twin.to_drake_v] - v).max()])
        print(f"{scene}: {k} steps, {error:.1e}")
        assert error < (1e-6 if k > 10 else 1e-10)
    assert np.abs(velocities[-1]).max() > 0.1


@jax.jit
def rollout_turning_as_drake(model, state):
    """Positions and velocities after each step, with dt N v added to quaternions, which Drake lets grow.

    A step of ours turns them by the exponential map: (dt w)³ / 12 rad apart, 2e-5 after 500 steps of the weld.
    """

    def advance(state, _):
        after = mbjax.step(model, state)[0]
        q = state.q + DT * mbjax.velocity_to_qdot(model, state.q, after.v)
        return mbjax.State(q, after.v, after.time), (q, after.v)

    return jax.lax.scan(advance, state, length=STEPS)[1]


INERTIA = '<inertia ixx=".001" iyy=".001" izz=".001" ixy="0" ixz="0" iyz="0"/>'
GRIPPER = f"""<robot name="gripper">
<link name="hand"><inertial><mass value="1"/>{INERTIA}</inertial></link>
<link name="left"><inertial><mass value=".2"/>{INERTIA}</inertial></link>
<link name="right"><inertial><mass value=".3"/>{INERTIA}</inertial></link>
<joint name="arm" type="continuous"><parent link="world"/><child link="hand"/><axis xyz="0 1 0"/>
<origin xyz=".1 0 0"/><dynamics damping=".1"/></joint>
<joint name="slide" type="prismatic"><parent link="hand"/><child link="left"/><axis xyz="1 0 .1"/>
<limit effort="6"/><dynamics damping="1"/></joint>
<joint name="follow" type="prismatic"><parent link="hand"/><child link="right"/><axis xyz="-1 0 .2"/>
<mimic joint="slide" multiplier="1.5" offset=".02"/></joint>
<transmission name="t"><type>transmission_interface/SimpleTransmission</type>
<joint name="slide"><hardwareInterface>EffortJointInterface</hardwareInterface></joint>
<actuator name="drive"/></transmission>
</robot>"""


@functools.cache
def gripper() -> Twin:
    """Mimic fingers on a swinging hand, one driven by a stiff controller with little effort."""
    theirs = DrakePlant(DT)
    theirs.set_discrete_contact_approximation(DiscreteContactApproximation.kSap)
    DrakeParser(theirs).AddModelsFromString(GRIPPER, "urdf")
    theirs.GetJointActuatorByName("drive").set_controller_gains(PdControllerGains(p=2000.0, d=30.0))
    theirs.Finalize()
    assert theirs.num_constraints() == 1
    ours = mbjax.load(GRIPPER, time_step=DT)
    return make_twin(mbjax.set_controller_gains(ours, 2000.0, 30.0), theirs)


@pytest.mark.parametrize("target", [0.0005, 0.3], ids=["within effort limits", "at the effort limit"])
def test_gripper_with_mimic_fingers_equals_drakes(target: float) -> None:
    """Implicit damping, PD control and its effort limit act together with the constraint."""
    twin = gripper()
    q, v = np.array([0.4, 0.0, 0.02]), np.zeros(3)
    instance = twin.plant.GetModelInstanceByName("gripper")
    context = twin.context(q, v)
    twin.plant.get_desired_state_input_port(instance).FixValue(context, [target, 0.0])
    twin.plant.get_actuation_input_port(instance).FixValue(context, [0.5])
    simulator = Simulator(twin.plant, context)
    start = mbjax.State(jnp.asarray(q), jnp.asarray(v), jnp.zeros(()))
    inputs = mbjax.Inputs(actuation=jnp.array([0.5]), desired_state=jnp.array([target, 0.0]))
    trajectory = rollout_with_inputs(twin.model, start, inputs)
    errors = []
    for k in COMPARED:
        simulator.AdvanceTo(k * DT)
        ours = np.concatenate([trajectory.q[k][twin.to_drake_q], trajectory.v[k][twin.to_drake_v]])
        errors.append(np.abs(ours - twin.plant.GetPositionsAndVelocities(context)).max())
    print(f"gripper to {target}: {errors}")
    assert (np.abs(trajectory.net_actuation).max() == 6.0) == (target > 0.1)
    assert np.max(errors) < 1e-6


@jax.jit
def rollout_with_inputs(model, state, inputs):
    return mbjax.rollout(model, state, inputs, num_steps=STEPS)
