"""Models from MJCF and MuJoCo's own: poses, M, bias, passive forces, actuation and pairs that may touch are equal."""

import importlib.util
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import mbjax
from mbjax.plant.collision_filters import candidate_pairs
from tests.formats.mujoco_comparison import assert_same_state, compare, random_qpos_qvel, touching_pairs
from tests.gradients.checks import check_gradients

TOLERANCE = 1e-9
EVERYTHING = """
<mujoco model="everything">
  <compiler angle="degree"/>
  <option gravity="0.3 -0.2 -9.7" timestep="0.004"/>
  <default>
    <joint damping="0.3" armature="0.02"/>
    <geom density="900" contype="1" conaffinity="1"/>
    <default class="heavy"><geom density="3000"/></default>
  </default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 0.1" pos="0 0 -2"/>
    <body name="free" pos="0.2 -0.3 1" euler="20 30 40">
      <freejoint name="root"/>
      <geom name="trunk" type="box" size="0.2 0.1 0.05" pos="0.02 0 0.01" euler="10 0 5"/>
      <site name="imu" pos="0.1 0 0" euler="0 90 0"/>
      <body name="arm" pos="0.1 0.2 0" euler="0 40 10">
        <joint name="slide" type="slide" axis="1 2 0" pos="0.05 0 0.1" ref="0.15" range="-1 1" stiffness="8"
               springref="0.1"/>
        <joint name="hinge" type="hinge" axis="0 1 1" pos="0.03 0.02 -0.1" ref="30" stiffness="5" frictionloss="0.2"/>
        <joint name="twist" axis="1 0 0.2" pos="-0.1 0 0"/>
        <geom name="upper" type="capsule" size="0.04" fromto="0 0 0 0.3 0.1 0" class="heavy"/>
        <body name="hand" pos="0.3 0.1 0" quat="0.9 0.1 0.2 -0.3">
          <joint name="wrist" type="ball" pos="0.01 0.02 0.03" damping="0.1"/>
          <geom name="palm" type="ellipsoid" size="0.05 0.1 0.03" pos="0.1 0 0"/>
        </body>
        <frame pos="0 0.1 0" euler="0 0 90">
          <body name="finger"><joint name="finger" axis="0 0 1" range="-40 60"/>
            <geom name="tip" type="cylinder" size="0.02 0.06" mass="0.1"/></body>
        </frame>
      </body>
      <body name="plate" pos="-0.2 0 0"><geom name="plate" type="box" size="0.05 0.05 0.01"/>
        <body name="thumb" pos="0 0.1 0"><joint name="thumb" axis="0 1 0"/>
          <geom name="thumb" type="sphere" size="0.05"/></body></body>
    </body>
    <body name="post" pos="1 0 0"><geom name="post" type="box" size="0.1 0.1 0.1"/>
      <body name="lever" pos="0 0 0.15"><joint name="lever" axis="0 1 0" armature="0.1"/>
        <geom name="lever" type="capsule" size="0.03" fromto="0 0 0 0 0 0.4"/></body></body>
  </worldbody>
  <contact>
    <exclude body1="hand" body2="finger"/>
    <pair geom1="post" geom2="lever"/>
    <pair geom1="trunk" geom2="upper" condim="1"/>
  </contact>
  <tendon><fixed name="pull"><joint joint="finger" coef="2.5"/></fixed></tendon>
  <actuator>
    <motor name="motor" joint="hinge" gear="30" ctrllimited="true" ctrlrange="-0.5 0.5"/>
    <position name="position" joint="slide" kp="50" kv="3" gear="2" forcerange="-20 20"/>
    <velocity name="velocity" joint="twist" kv="4" gear="0.5"/>
    <general name="general" joint="thumb" gainprm="3" biastype="affine" biasprm="0.5 -2 -0.3"/>
    <motor name="tendon" tendon="pull" gear="3"/>
  </actuator>
  <keyframe>
    <key name="bent" time="0.5" qpos="1 2 3 0.6 0.8 0 0 0.2 0.4 0.1 0.5 0.5 0.5 0.5 0.3 -0.2 0.7"
         qvel="1 2 3 4 5 6 7 8 9 10 11 12 13 14 15"/>
  </keyframe>
</mujoco>
"""


@pytest.fixture(scope="module")
def everything() -> tuple[mbjax.MultibodyModel, mujoco.MjModel]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return mbjax.load(EVERYTHING), mujoco.MjModel.from_xml_string(EVERYTHING)


def assert_same_pairs(xml: str | Path, m: mujoco.MjModel) -> None:
    """What the filters let touch, whatever shapes have a signed distance; geoms of `m` have names."""
    plant = mbjax.MultibodyPlant()
    mbjax.Parser(plant, on_unsupported="warn").add_models(xml)
    model = plant.finalize()
    joints = [j for j in plant.joints if j.model_instance not in plant.instances_that_list_contacts]
    found = candidate_pairs(plant.collisions, model.topology.body_mobods, joints, plant.collision_exclusions, True)
    ours = {frozenset(plant.collisions[i].geometry.name for i in pair) for pair in found}
    unnamed = {frozenset(mujoco.mj_id2name(m, 5, g) or f"#{g}" for g in pair) for pair in touching_pairs(m)}
    named = [pair for pair in unnamed if not any(name.startswith("#") for name in pair)]
    assert len(ours) == len(unnamed)
    assert set(named) <= ours


def test_everything_equals_mujoco(everything) -> None:
    model, m = everything
    agreement = compare(model, m)
    print(agreement)
    assert agreement.worst < TOLERANCE
    np.testing.assert_allclose(mbjax.total_mass(model), m.body_mass.sum(), rtol=1e-12)


def test_the_same_pairs_may_touch(everything) -> None:
    assert_same_pairs(EVERYTHING, mujoco.MjModel.from_xml_string(EVERYTHING))


def test_a_keyframe_is_the_state_that_mujoco_resets_to(everything) -> None:
    model, m = everything
    d = mujoco.MjData(m)
    mujoco.mj_resetDataKeyframe(m, d, 0)
    state = mbjax.keyframe_state(model, "bent")
    assert_same_state(m, mbjax.mujoco_state(model, state), d.qpos, d.qvel)
    assert float(state.time) == 0.5
    with pytest.raises(mbjax.ModelError, match=r"no keyframe 'bend'.*bent"):
        mbjax.keyframe_state(model, "bend")


def test_states_go_to_mujoco_in_batches_and_with_gradients(everything) -> None:
    model, m = everything
    rng = np.random.default_rng(3)
    qpos, qvel = map(jnp.stack, zip(*(random_qpos_qvel(m, rng) for _ in range(3)), strict=True))
    states = jax.vmap(mbjax.state_from_mujoco, (None, 0, 0))(model, qpos, qvel)
    back = jax.vmap(mbjax.mujoco_state, (None, 0))(model, states)
    for k in range(3):
        assert_same_state(m, (back[0][k], back[1][k]), qpos[k], qvel[k])

    def there(q, v):
        return jnp.concatenate(mbjax.mujoco_state(model, mbjax.State(q, v)))

    def here(qpos, qvel):
        state = mbjax.state_from_mujoco(model, qpos, qvel)
        return jnp.concatenate([state.q, state.v])

    check_gradients(there, states.q[0], states.v[0])
    check_gradients(here, qpos[0], qvel[0])


def test_states_of_other_lengths_are_refused(everything) -> None:
    model, _ = everything
    with pytest.raises(mbjax.ModelError, match=r"qpos has shape \(3,\), the model's joints have \(17,\)"):
        mbjax.state_from_mujoco(model, jnp.zeros(3), jnp.zeros(15))


EQUALITY = """
<mujoco><compiler angle="radian"/><worldbody>
  <body name="a" pos="0 0 1" euler="0.1 0.2 0.3"><joint name="ja" ref="0.2"/><geom size="0.1"/>
    <site name="sa" pos="0.1 0 0"/>
    <body name="b" pos="0.5 0 0"><joint name="jb" axis="0 1 0" ref="-0.1"/><geom size="0.1" pos="0.1 0 0"/></body>
  </body>
  <body name="c" pos="1 0 1" euler="0.3 0 0"><freejoint/><geom size="0.1"/><site name="sc" pos="0.2 0.1 0"/></body>
</worldbody><equality>
  <connect name="pin" body1="b" body2="c" anchor="0.3 0.1 0"/>
  <weld name="glue" body1="a" body2="c" anchor="0.1 0.2 0.3" relpose="0.1 0.2 0.3 0.9 0.1 0 0"/>
  <connect name="pin sites" site1="sa" site2="sc"/>
  <joint name="gear" joint1="ja" joint2="jb" polycoef="0.3 -2 0 0 0"/>
  <weld name="sleeps" body1="a" body2="c" active="false"/>
</equality></mujoco>"""


def test_equality_constraints_have_mujocos_residuals() -> None:
    """At a state that violates them: positions equal, rotations to first order alike, so only those of points."""
    model, m = mbjax.load(EQUALITY), mujoco.MjModel.from_xml_string(EQUALITY)
    assert model.constraint_names == ("pin", "glue", "pin sites", "gear")
    d = mujoco.MjData(m)
    qpos, qvel = random_qpos_qvel(m, np.random.default_rng(1))
    d.qpos, d.qvel = qpos, qvel
    mujoco.mj_forward(m, d)
    state = mbjax.state_from_mujoco(model, qpos, qvel)
    bound = mbjax.bound_constraints(model)
    ours = np.asarray(mbjax.constraints_position_error(model, bound, state.q))
    theirs = np.asarray(d.efc_pos[: d.ne])
    R = np.asarray(mbjax.body_poses_in_world(model, state.q).rotation)
    b, a = model.body_index("b"), model.body_index("a")
    np.testing.assert_allclose(np.abs(R[b] @ ours[0:3]), np.abs(theirs[0:3]), atol=1e-10)
    turned = np.linalg.norm(ours[6:9])
    np.testing.assert_allclose(turned, np.linalg.norm(theirs[3:6]), rtol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(R[a] @ ours[9:12]), np.linalg.norm(ours[9:12]), rtol=1e-12)
    np.testing.assert_allclose(np.abs(ours[-1]), np.abs(theirs[-1]), atol=1e-12)


GYMNASIUM = (
    "ant",
    "humanoid",
    "half_cheetah",
    "hopper",
    "walker2d",
    "swimmer",
    "inverted_double_pendulum",
    "pusher",
    "reacher",
)


@pytest.fixture(scope="module")
def folder() -> Path:
    found = importlib.util.find_spec("gymnasium")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "envs" / "mujoco" / "assets"


@pytest.mark.parametrize("name", GYMNASIUM)
def test_gymnasium_equals_mujoco(folder, name, request) -> None:
    """Trimmed: the numbers of one of them, beside all kinds of joints above; pairs, masses and names of all."""
    file = folder / f"{name}.xml"
    m = mujoco.MjModel.from_xml_path(str(file))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mbjax.load(file, on_unsupported="warn" if name == "swimmer" else "error")
        assert_same_pairs(file, m)
    np.testing.assert_allclose(model.parameters.body_mass.sum(), m.body_mass.sum(), rtol=1e-12)
    joints = [mujoco.mj_id2name(m, mujoco.mjtObj.mjOBJ_JOINT, j) for j in range(m.njnt)]
    assert [n for n in joints if n] == [n for n in model.joint_names if n in joints]
    assert (model.num_actuators, model.num_velocities) == (m.nu, m.nv)
    if request.config.getoption("--trimmed") and name != "hopper":
        return
    agreement = compare(model, m, num_states=2)
    print(name, agreement)
    assert agreement.worst < TOLERANCE
