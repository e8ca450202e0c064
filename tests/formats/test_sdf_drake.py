"""SDFormat files are read as Drake reads them: names, numbers, poses, and the equations of motion."""

import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pydrake
import pytest
from pydrake.multibody.tree import MultibodyForces

import mbjax
from mbjax.errors import ModelWarning
from mbjax.formats import Parser
from mbjax.plant import MultibodyPlant
from tests.drake_by_name import assert_same_by_name, drake_plant, own, scoped

SHARE = Path(pydrake.getDrakePath())
FILES = {str(path.relative_to(SHARE)): path for path in sorted(SHARE.rglob("*.sdf"))}
if not FILES:
    raise RuntimeError("Drake's models are missing: these tests must not be skipped")

INERTIAL = (
    "<inertial><pose>.1 -.2 .3 .4 .5 -.6</pose><mass>2</mass><inertia><ixx>1</ixx><iyy>1.2</iyy><izz>1.3</izz>"
    "<ixy>.1</ixy><ixz>-.2</ixz><iyz>.15</iyz></inertia></inertial>"
)
PARTS = {
    "finger/model.config": '<model><sdf version="1.5">old.sdf</sdf><sdf version="1.10">finger.sdf</sdf></model>',
    "finger/package.xml": "<package><name>finger</name></package>",
    "finger/old.sdf": "<sdf version='1.5'/>",
    "finger/finger.sdf": f"""<sdf version="1.9"><model name="finger" canonical_link="tip">
        <pose>0 0 .1 .1 0 0</pose>
        <frame name="root" attached_to="base"><pose>.3 0 0 0 .2 0</pose></frame>
        <link name="base"><pose>0 .1 0 0 0 .3</pose>{INERTIAL}</link>
        <link name="tip"><pose relative_to="base">.5 0 0 .2 0 0</pose>{INERTIAL}</link>
        <joint name="bend" type="revolute"><parent>base</parent><child>tip</child>
          <axis><xyz expressed_in="root">0 1 0</xyz><limit><lower>-1</lower><upper>2</upper><effort>3</effort>
          <velocity>4</velocity><drake:acceleration>5</drake:acceleration></limit>
          <dynamics><damping>.1</damping><spring_reference>.2</spring_reference>
          <spring_stiffness>7</spring_stiffness></dynamics></axis>
          <drake:rotor_inertia>.01</drake:rotor_inertia><drake:gear_ratio>9</drake:gear_ratio>
          <drake:controller_gains p="10" d="2"/></joint></model></sdf>""",
    "arm.urdf": """<robot name="arm"><link name="u0"><inertial><mass value="1"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link><link name="u1"><inertial>
        <mass value="3"/><inertia ixx="2" iyy="2" izz="2" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="uj" type="prismatic"><parent link="u0"/><child link="u1"/><origin xyz="1 0 0" rpy="0 .3 0"/>
        <limit lower="-1" upper="1" effort="5" velocity="2"/></joint>
        <frame name="uf" link="u1" xyz="0 0 1" rpy="0 0 1"/></robot>""",
}
HEAD = '<sdf version="1.9" xmlns:drake="http://drake.mit.edu">'
WHOLE = f"""{HEAD}<world name="w"><gravity>0 .5 -9</gravity>
  <model name="hand"><pose>1 2 3 .1 .2 .3</pose>
    <link name="palm"><pose>0 0 .2 0 0 1</pose>{INERTIAL}
      <collision name="c"><pose>.1 0 0 0 0 0</pose><geometry><plane><normal>0 1 0</normal></plane></geometry>
      </collision></link>
    <include><uri>model://finger/</uri><name>left</name><placement_frame>root</placement_frame>
      <pose relative_to="palm">.2 .3 0 0 0 .4</pose></include>
    <include><uri>package://finger/finger.sdf</uri><name>right</name></include>
    <include merge="true"><uri>finger/finger.sdf</uri><name>middle</name><pose>0 1 0 0 .5 0</pose></include>
    <include><uri>arm.urdf</uri><pose>0 0 2 0 0 .7</pose></include>
    <frame name="mount" attached_to="left::tip"><pose relative_to="palm">0 .1 0 0 0 0</pose></frame>
    <frame name="edge"><pose relative_to="left::root">.4 .1 0 0 .2 0</pose></frame>
    <frame name="on_joint" attached_to="l"/><frame name="on_frame" attached_to="edge"><pose>1 0 0 0 0 1</pose></frame>
    <joint name="l" type="fixed"><parent>palm</parent><child>left::base</child></joint>
    <joint name="r" type="universal"><pose>.1 .2 .3 .3 .2 .1</pose><parent>palm</parent><child>right::base</child>
      <axis><xyz>0 0 1</xyz><dynamics><damping>.2</damping></dynamics></axis>
      <axis2><xyz>1 0 0</xyz><dynamics><damping>.2</damping></dynamics></axis2></joint>
    <joint name="b" type="ball"><parent>palm</parent><child>base</child></joint>
    <joint name="s" type="screw"><parent>tip</parent><child>screw</child><screw_thread_pitch>.3</screw_thread_pitch>
      <axis><xyz>0 1 1</xyz></axis></joint>
    <link name="screw"><pose degrees="true">0 0 0 90 0 0</pose>{INERTIAL}</link>
    <link name="plate"><pose rotation_format="quat_xyzw">0 0 0 0 0 .6 .8</pose>{INERTIAL}</link>
    <drake:joint name="p" type="planar"><drake:parent>edge</drake:parent><drake:child>plate</drake:child>
      <drake:damping>.1 .2 .3</drake:damping></drake:joint>
    <joint name="up" type="fixed"><parent>right::tip</parent><child>arm::u0</child></joint>
    <joint name="c" type="continuous"><parent>arm::u1</parent><child>wheel</child>
      <axis><xyz>0 0 2</xyz><limit><lower>-1</lower><upper>1</upper><effort>-1</effort></limit></axis></joint>
    <joint name="q" type="prismatic"><parent>wheel</parent><child>slider</child>
      <axis><limit><effort>0</effort></limit></axis></joint>
    <link name="wheel">{INERTIAL}</link><link name="slider">{INERTIAL}</link>
    <drake:linear_bushing_rpy><drake:bushing_frameA>edge</drake:bushing_frameA>
      <drake:bushing_frameC>wheel</drake:bushing_frameC>
      <drake:bushing_torque_stiffness>1 2 3</drake:bushing_torque_stiffness>
      <drake:bushing_torque_damping>.1 .2 .3</drake:bushing_torque_damping>
      <drake:bushing_force_stiffness>4 5 6</drake:bushing_force_stiffness>
      <drake:bushing_force_damping>.4 .5 .6</drake:bushing_force_damping></drake:linear_bushing_rpy>
    <drake:linear_spring_damper><drake:linear_spring_damper_body_A>palm</drake:linear_spring_damper_body_A>
      <drake:linear_spring_damper_p_AP>1 0 0</drake:linear_spring_damper_p_AP>
      <drake:linear_spring_damper_body_B>slider</drake:linear_spring_damper_body_B>
      <drake:linear_spring_damper_p_BQ>0 1 0</drake:linear_spring_damper_p_BQ>
      <drake:linear_spring_damper_free_length>.5</drake:linear_spring_damper_free_length>
      <drake:linear_spring_damper_stiffness>20</drake:linear_spring_damper_stiffness>
      <drake:linear_spring_damper_damping>2</drake:linear_spring_damper_damping></drake:linear_spring_damper>
  </model>
  <model name="table"><static>true</static><pose relative_to="anchor">0 0 1 0 0 0</pose>
    <link name="top"><pose>1 0 0 0 0 0</pose></link><link name="leg"/><link name="foot"/>
    <joint name="f" type="fixed"><parent>top</parent><child>foot</child></joint></model>
  <frame name="anchor"><pose>5 0 0 0 0 1</pose></frame>
  <model name="lamp"><link name="lamp"/></model>
  <joint name="on_table" type="fixed"><parent>anchor</parent><child>lamp::lamp</child></joint>
</world></sdf>"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files, and what includes them."""
    root = tmp_path_factory.mktemp("sdf")
    for name, text in {**PARTS, "whole.sdf": WHOLE}.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text.replace('<sdf version="1.9"><model name="finger"', f'{HEAD}<model name="finger"'))
    return root


def read(path: Path, **options) -> MultibodyPlant:
    plant = MultibodyPlant(contact_model="point")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        Parser(plant, **options).add_models(path)
    return plant


@pytest.mark.parametrize("name", FILES)
def test_files_of_drake(name):
    assert_same_by_name(read(FILES[name]), drake_plant(FILES[name])[0])


@pytest.fixture(scope="module")
def whole(folder):
    """A world with nested, included and merged models, every type of joint and Drake's extensions; and Drake's."""
    absolute = (folder / "whole.sdf").read_text().replace("<uri>finger/", f"<uri>file://{folder}/finger/")
    (folder / "whole.sdf").write_text(absolute.replace("<uri>arm.urdf", f"<uri>file://{folder}/arm.urdf"))
    theirs, builder = drake_plant(folder / "whole.sdf", {"finger": folder / "finger"})
    return read(folder / "whole.sdf"), theirs, builder


def test_every_element(whole):
    ours, theirs, _ = whole
    assert_same_by_name(ours, theirs)
    assert ours.instance_names[2:] == ["hand", "hand::left", "hand::right", "hand::arm", "table", "lamp"]


@pytest.mark.whole_run("numbers of every element, above, and motion beside Drake in tests/dynamics and tests/forces")
def test_motion(whole):
    """Poses, M, and the forces of motion, gravity and springs at a state without zeros."""
    ours, theirs, _ = whole
    theirs.mutable_gravity_field().set_gravity_vector([0.0, 0.5, -9.0])
    theirs.Finalize()
    assert np.all(ours.gravity == [0.0, 0.5, -9.0])
    model = ours.finalize()
    joints = {scoped(theirs, j): j for j in (theirs.get_joint(i) for i in theirs.GetJointIndices())}
    q_order, v_order = [], []
    for info in model.layout.joints:
        reference = joints[own(ours, ours.joints[info.index])]
        q_order.append((info.q_start, reference.position_start(), reference.num_positions()))
        v_order.append((info.v_start, reference.velocity_start(), reference.num_velocities()))
    to_q, to_v = (indices(order) for order in (q_order, v_order))
    context = theirs.CreateDefaultContext()
    q = np.asarray(mbjax.default_positions(model))
    np.testing.assert_allclose(q, theirs.GetPositions(context)[to_q], atol=1e-12)
    random = np.random.default_rng(0)
    q = q + 0.1 * random.normal(size=q.shape)
    v = random.normal(size=model.num_velocities)
    theirs.SetPositions(context, q[np.argsort(to_q)])
    theirs.SetVelocities(context, v[np.argsort(to_v)])
    poses, M, tau = jax.jit(quantities)(model, jnp.asarray(q), jnp.asarray(v))
    for body in ours.bodies[1:]:
        instance = theirs.GetModelInstanceByName(own(ours, body)[0])
        X = theirs.EvalBodyPoseInWorld(context, theirs.GetBodyByName(body.name, instance))
        np.testing.assert_allclose(poses.translation[body.index], X.translation(), atol=1e-9)
        np.testing.assert_allclose(poses.rotation[body.index], X.rotation().matrix(), atol=1e-9)
    forces = MultibodyForces(theirs)
    theirs.CalcForceElementsContribution(context, forces)
    expected = theirs.CalcInverseDynamics(context, np.zeros(theirs.num_velocities()), forces)
    np.testing.assert_allclose(M, theirs.CalcMassMatrix(context)[np.ix_(to_v, to_v)], atol=1e-9 * np.abs(M).max())
    np.testing.assert_allclose(tau, expected[to_v], atol=1e-9 * np.abs(tau).max())


def quantities(model, q, v):
    poses, M = mbjax.body_poses_in_world(model, q), mbjax.mass_matrix(model, q)
    tau = mbjax.inverse_dynamics(model, q, v, jnp.zeros_like(v), force_elements=True)
    return poses, M, tau


def indices(order: list[tuple[int, int, int]]) -> np.ndarray:
    """Where Drake has each of our coordinates."""
    found = np.zeros(sum(size for _, _, size in order), int)
    for start, other, size in order:
        found[start : start + size] = np.arange(other, other + size)
    return found
