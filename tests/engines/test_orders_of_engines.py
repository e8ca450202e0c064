"""States and controls in the words of Pinocchio, Drake and MuJoCo mean there what they mean here."""

import importlib.util
import sysconfig
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pinocchio as pin
import pytest
from pydrake.multibody.parsing import Parser as DrakeParser
from pydrake.multibody.plant import MultibodyPlant as DrakePlant

import mbjax
from tests.formats.mujoco_comparison import random_qpos_qvel, relative
from tests.gradients.checks import check_gradients

ROBOTS = Path(sysconfig.get_path("purelib")) / "cmeel.prefix/share/example-robot-data/robots"
FILES = {
    "solo": ("solo_description/robots/solo12.urdf", True),
    "panda": ("panda_description/urdf/panda.urdf", False),
    "kinova": ("kinova_description/robots/kinova.urdf", False),  # joints that turn on and on: (cos, sin)
}
TOLERANCE = 1e-12
WHOLE = pytest.mark.whole_run("the same of another robot")


def load(file: str | Path, **options) -> mbjax.MultibodyModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbjax.ModelWarning)
        return mbjax.load(file, **options)


def random_state(model: mbjax.MultibodyModel, seed: int = 0) -> mbjax.State:
    return mbjax.random_state(model, jax.random.key(seed))


@pytest.mark.parametrize("name", ["solo", pytest.param("panda", marks=WHOLE), "kinova"])
def test_pinocchio(name):
    """Poses, velocities and accelerations of all bodies at the converted state; there and back."""
    file, is_free = FILES[name]
    model = load(ROBOTS / file, base="floating" if is_free else "fixed")
    root = [pin.JointModelFreeFlyer()] if is_free else []
    theirs = pin.buildModelFromUrdf(str(ROBOTS / file), *root)
    state = random_state(model)
    order = jax.jit(lambda state: mbjax.pinocchio_state(model, state, theirs.names, theirs.nqs))
    q, v = map(np.asarray, order(state))
    assert (q.size, v.size) == (theirs.nq, theirs.nv)
    data = theirs.createData()
    pin.forwardKinematics(theirs, data, q, v)
    pin.updateFramePlacements(theirs, data)
    X, V = mbjax.body_poses_in_world(model, state.q), mbjax.body_spatial_velocities_in_world(model, state.q, state.v)
    seen = 0
    for i, body in enumerate(model.body_names):
        if not theirs.existBodyName(body):
            continue
        seen += 1
        frame = theirs.getFrameId(body)
        np.testing.assert_allclose(X.translation[i], data.oMf[frame].translation, atol=TOLERANCE)
        np.testing.assert_allclose(X.rotation[i], data.oMf[frame].rotation, atol=TOLERANCE)
        motion = pin.getFrameVelocity(theirs, data, frame, pin.LOCAL_WORLD_ALIGNED)
        np.testing.assert_allclose(V[i], [*motion.angular, *motion.linear], atol=1e-11)
    assert seen > 5
    back = mbjax.state_from_pinocchio(model, q, v, theirs.names, theirs.nqs, time=2.0)
    again = mbjax.pinocchio_state(model, back, theirs.names, theirs.nqs)
    np.testing.assert_allclose(again[0], q, atol=TOLERANCE)
    np.testing.assert_allclose(back.v, state.v, atol=TOLERANCE)
    assert float(back.time) == 2.0


def test_pinocchio_ball_and_planar_joints():
    """Built joint by joint: Pinocchio's parsers make neither of them from a URDF alike."""
    plant = mbjax.MultibodyPlant(contact_model="none")
    inertia = mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.3)
    a, b = plant.add_rigid_body("a", inertia), plant.add_rigid_body("b", inertia)
    plant.add_joint(mbjax.BallRpyJoint("ball", plant.world_body, a))
    plant.add_joint(mbjax.PlanarJoint("plane", a, b))
    model = plant.finalize()
    theirs = pin.Model()
    ball = theirs.addJoint(0, pin.JointModelSpherical(), pin.SE3.Identity(), "ball")
    plane = theirs.addJoint(ball, pin.JointModelPlanar(), pin.SE3.Identity(), "plane")
    state = random_state(model, 3)
    q, v = map(np.asarray, mbjax.pinocchio_state(model, state, theirs.names))
    data = theirs.createData()
    pin.forwardKinematics(theirs, data, q, v)
    X, V = mbjax.body_poses_in_world(model, state.q), mbjax.body_spatial_velocities_in_world(model, state.q, state.v)
    for i, joint in ((1, ball), (2, plane)):
        np.testing.assert_allclose(X.rotation[i], data.oMi[joint].rotation, atol=TOLERANCE)
        np.testing.assert_allclose(X.translation[i], data.oMi[joint].translation, atol=TOLERANCE)
        motion = pin.getVelocity(theirs, data, joint, pin.LOCAL_WORLD_ALIGNED)
        np.testing.assert_allclose(V[i], [*motion.angular, *motion.linear], atol=TOLERANCE)
    back = mbjax.state_from_pinocchio(model, q, v, theirs.names)
    np.testing.assert_allclose(mbjax.pinocchio_state(model, back, theirs.names)[0], q, atol=TOLERANCE)
    np.testing.assert_allclose(back.v, state.v, atol=TOLERANCE)


HANGING = """<mujoco><worldbody><body><freejoint/><geom size="0.1"/>
<body pos="0 0 1"><joint type="ball"/><geom size="0.1" pos="0 0 0.3"/></body></body></worldbody></mujoco>"""


@pytest.mark.whole_run("the same of MuJoCo's states, in tests/formats/test_mjcf_against_mujoco.py")
def test_gradients_and_batches_go_through():
    model = load(HANGING)
    names = [joint.name for joint in model.layout.joints if joint.num_velocities]
    states = jax.vmap(lambda key: mbjax.random_state(model, key))(jax.random.split(jax.random.key(0), 3))
    q, v = jax.vmap(lambda state: mbjax.pinocchio_state(model, state, names))(states)
    back = jax.vmap(lambda q, v: mbjax.state_from_pinocchio(model, q, v, names))(q, v)
    np.testing.assert_allclose(back.v, states.v, atol=TOLERANCE)

    def both_ways(q, v):
        state = mbjax.state_from_pinocchio(model, q, v, names)
        return jnp.concatenate([*mbjax.pinocchio_state(model, mbjax.State(2.0 * state.q, state.v), names)])

    check_gradients(both_ways, q[0], v[0])


@pytest.mark.parametrize("name", ["panda", pytest.param("solo", marks=WHOLE)])
def test_drake(name):
    """Positions of each joint by Drake's own access; the order is Drake's, also reversed and without prefixes."""
    file, _ = FILES[name]
    model = load(ROBOTS / file, mimic="eliminate")
    theirs = DrakePlant(0.0)
    DrakeParser(theirs).AddModels(str(ROBOTS / file))
    theirs.Finalize()
    context = theirs.CreateDefaultContext()
    state = random_state(model, 5)
    names = theirs.GetPositionNames(), theirs.GetVelocityNames()
    q, v = jax.jit(lambda state: mbjax.drake_state(model, state, *names))(state)
    theirs.SetPositions(context, q)
    theirs.SetVelocities(context, v)
    X, V = mbjax.body_poses_in_world(model, state.q), mbjax.body_spatial_velocities_in_world(model, state.q, state.v)
    for i, body in enumerate(model.body_names[1:], 1):
        pose = theirs.EvalBodyPoseInWorld(context, theirs.GetBodyByName(body))
        np.testing.assert_allclose(X.translation[i], pose.translation(), atol=TOLERANCE)
        np.testing.assert_allclose(X.rotation[i], pose.rotation().matrix(), atol=TOLERANCE)
        motion = theirs.EvalBodySpatialVelocityInWorld(context, theirs.GetBodyByName(body))
        np.testing.assert_allclose(V[i], motion.get_coeffs(), atol=1e-11)
    back = mbjax.state_from_drake(model, q, v, *names)
    np.testing.assert_array_equal(back.q, state.q)
    np.testing.assert_array_equal(back.v, state.v)
    instance = theirs.GetModelInstanceName(theirs.GetBodyByName(model.body_names[1]).model_instance())
    short = [[n.removeprefix(f"{instance}_").removesuffix("_q").removesuffix("_w") for n in way] for way in names]
    np.testing.assert_array_equal(mbjax.drake_state(model, state, *short)[0], q)
    turned = mbjax.drake_state(model, state, names[0][::-1], names[1][::-1])
    np.testing.assert_array_equal(turned[1], v[::-1])


def test_names_that_do_not_fit_are_refused():
    model = mbjax.load("quadruped")
    state = mbjax.default_state(model)
    names = [joint.name for joint in model.layout.joints if joint.num_velocities]
    with pytest.raises(mbjax.ModelError, match=r"joint_names lacks '.*', which moves here"):
        mbjax.pinocchio_state(model, state, names[:-1])
    with pytest.raises(mbjax.ModelError, match=rf"no joint 'X{names[1]}'\. Did you mean"):
        mbjax.pinocchio_state(model, state, [names[0], "X" + names[1], *names[2:]])
    with pytest.raises(mbjax.ModelError, match=r"\(revolute\) has 1 positions there, nqs says 7"):
        mbjax.pinocchio_state(model, state, names, [7] * len(names))
    with pytest.raises(mbjax.ModelError, match="q has shape"):
        mbjax.state_from_pinocchio(model, jnp.zeros(3), jnp.zeros(3), names)
    ours = model.position_names(), model.velocity_names()
    with pytest.raises(mbjax.ModelError, match="no position 'no_such_q'"):
        mbjax.drake_state(model, state, ("no_such_q",), ours[1])
    with pytest.raises(mbjax.ModelError, match="the velocity names lack"):
        mbjax.drake_state(model, state, ours[0], ours[1][1:])


# Controls

ACTUATORS = """
<mujoco><option gravity="0 0 0"/><worldbody>
  <body><joint name="a" axis="0 1 0"/><geom size="0.1" pos="0.2 0 0"/>
    <body pos="0.5 0 0"><joint name="b" type="slide"/><geom size="0.1"/>
      <body pos="0 0.3 0"><joint name="c"/><geom size="0.1" pos="0 0 0.2"/>
        <body pos="0 0.3 0"><joint name="d" axis="1 0 0"/><geom size="0.1" pos="0 0 0.2"/>
          <body pos="0 0.3 0"><joint name="e" axis="0 1 0"/><geom size="0.1" pos="0 0 0.2"/></body></body></body></body>
  </body></worldbody>
  <tendon><fixed name="pull"><joint joint="e" coef="2.5"/></fixed></tendon>
  <actuator>
    <motor joint="a" gear="-30" ctrllimited="true" ctrlrange="-0.5 0.5"/>
    <position joint="b" kp="50" kv="3" gear="2" forcerange="-20 20"/>
    <muscle joint="a" lengthrange="0 1"/>
    <velocity joint="c" kv="4" gear="0.5" ctrlrange="-1 0.2"/>
    <general joint="d" gainprm="3" biastype="affine" biasprm="0.5 -2 -0.3"/>
    <motor tendon="pull" gear="3" forcerange="-2 2"/>
  </actuator></mujoco>"""


def of_mujoco(m: mujoco.MjModel, qpos, qvel, ctrl) -> np.ndarray:
    d = mujoco.MjData(m)
    d.qpos, d.qvel, d.ctrl = qpos, qvel, ctrl
    mujoco.mj_forward(m, d)
    return np.array(d.qfrc_actuator)


def assert_same_actuation(model: mbjax.MultibodyModel, m: mujoco.MjModel, left_out: tuple[int, ...] = ()) -> None:
    rng = np.random.default_rng(0)

    @jax.jit
    def ours(qpos, qvel, ctrl):
        state = mbjax.state_from_mujoco(model, qpos, qvel)
        net = mbjax.outputs(model, state, mbjax.inputs_from_mujoco(model, ctrl)).net_actuation
        tau = mbjax.actuation_matrix(model) @ net
        return mbjax.mujoco_state(model, mbjax.State(state.q, tau))[1]  # actuators drive hinges and slides alone

    for scale in (0.3, 3.0):
        qpos, qvel = random_qpos_qvel(m, rng)
        ctrl = scale * rng.normal(size=m.nu)
        ctrl[list(left_out)] = 0.0
        assert relative(ours(qpos, qvel, ctrl), of_mujoco(m, qpos, qvel, ctrl)) < 1e-9


def test_controls_of_each_kind_do_what_they_do_in_mujoco():
    model, m = load(ACTUATORS, on_unsupported="warn"), mujoco.MjModel.from_xml_string(ACTUATORS)
    assert model.num_actuators == m.nu - 1
    assert_same_actuation(model, m, left_out=(2,))
    with pytest.raises(mbjax.ModelError, match=r"ctrl has shape \(5,\), the actuators of the file have \(6,\)"):
        mbjax.inputs_from_mujoco(model, jnp.zeros(5))
    with pytest.raises(mbjax.ModelError, match="no actuator of the model comes from an MJCF file"):
        mbjax.inputs_from_mujoco(mbjax.load("arm"), jnp.zeros(5))


@pytest.mark.parametrize("name", ["ant", *(pytest.param(name, marks=WHOLE) for name in ("humanoid", "pusher"))])
def test_controls_of_gymnasium(name):
    found = importlib.util.find_spec("gymnasium")
    assert found is not None
    file = Path(str(found.origin)).parent / "envs" / "mujoco" / "assets" / f"{name}.xml"
    assert_same_actuation(load(file), mujoco.MjModel.from_xml_path(str(file)))


def test_several_files_take_their_controls_in_turn():
    """Another robot with gains, which has no controls, is left alone."""
    plant = mbjax.MultibodyPlant(contact_model="none")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbjax.ModelWarning)
        parser = mbjax.Parser(plant, on_unsupported="warn")
        parser.add_models(ACTUATORS.replace("<mujoco>", '<mujoco model="x">'))
        parser.add_models(mbjax.reference_models.path("arm"))
        parser.add_models(ACTUATORS.replace("<mujoco>", '<mujoco model="y">'))
    model = plant.finalize()
    ctrl = jnp.arange(12.0) / 10
    inputs = mbjax.inputs_from_mujoco(model, ctrl)
    u = np.asarray(inputs.actuation)
    first, last = (np.array(model.model_instance(name).u) for name in ("x", "y"))
    alone = [mbjax.inputs_from_mujoco(load(ACTUATORS, on_unsupported="warn"), ctrl[s : s + 6]) for s in (0, 6)]
    np.testing.assert_allclose(u[first], alone[0].actuation)
    np.testing.assert_allclose(u[last], alone[1].actuation)
    assert set(inputs.instance_desired_state) == {model.model_instance("x").index, model.model_instance("y").index}
