"""Parts of a model in each format: constraints, forces, contact, frames, states, meshes; and what is refused."""

import dataclasses
import re
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import mbjax
from mbjax.formats.records.numbers import number_text, roll_pitch_yaw
from tests.formats.comparison import assert_same_by_names, assert_same_in_mujoco, load_quietly, write_quietly
from tests.formats.test_mjcf_against_mujoco import EVERYTHING
from tests.models import random_tree

WRITERS = (mbjax.to_urdf, mbjax.to_sdf, mbjax.to_mjcf)
INERTIA = mbjax.SpatialInertia.solid_cube_with_mass(1.0, 0.2)


def chain(time_step: float = 0.0, **options) -> mbjax.MultibodyPlant:
    """Bodies a, b, c on a slide and two hinges, the second with limits and a motor; d is free."""
    plant = mbjax.MultibodyPlant(time_step, **options)
    robot = plant.add_model_instance("robot")
    for name in "abcd":
        plant.add_rigid_body(name, INERTIA, robot)
    plant.add_joint(mbjax.PrismaticJoint("slide", "world", "a", axis=(1, 2, 0), default_positions=0.1))
    plant.add_joint(mbjax.RevoluteJoint("j1", "a", "b", X_PF=np.array([0.1, 0.0, 0.2]), default_positions=0.3))
    limits = {"position_limits": (-1.0, 0.5), "velocity_limits": (-2.0, 2.0), "acceleration_limits": (-9.0, 9.0)}
    plant.add_joint(mbjax.RevoluteJoint("j2", "b", "c", X_PF=np.array([0.0, 0.0, 0.3]), axis=(0, 1, 0), **limits))
    plant.add_joint_actuator("j2", "j2", 5.0, rotor_inertia=0.01, gear_ratio=3.0, kp=10.0, kd=1.0)
    return plant


def leaves_by_kind(elements) -> dict[str, list[np.ndarray]]:
    """Leaves of constraints or force elements, by class."""
    return {type(element).__name__: [np.asarray(leaf) for leaf in jax.tree.leaves(element)] for element in elements}


def assert_same_leaves(ours, theirs) -> None:
    mine, others = leaves_by_kind(ours), leaves_by_kind(theirs)
    assert mine.keys() == others.keys()
    for kind, leaves in mine.items():
        for a, b in zip(leaves, others[kind], strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-14, err_msg=kind)


def test_forces_and_constraints_in_sdf() -> None:
    plant = chain()
    plant.add_frame("tool", "c", mbjax.RigidTransform(np.eye(3), np.array([0.0, 0.1, 0.3])))
    plant.add_force_element(mbjax.RevoluteSpring("j1", 0.1, 2.0))
    plant.add_force_element(mbjax.PrismaticSpring("slide", 0.2, 3.0))
    plant.add_force_element(mbjax.LinearBushingRollPitchYaw("tool", "d", *np.arange(12.0).reshape(4, 3)))
    plant.add_force_element(mbjax.LinearSpringDamper("a", np.zeros(3), "d", np.ones(3), 0.5, 2.0, 0.1))
    plant.add_ball_constraint("c", np.array([0.1, 0.2, 0.3]), "d", np.array([0.3, 0.1, 0.2]))
    plant.add_distance_constraint("b", np.zeros(3), "d", np.ones(3), 1.0)
    plant.add_coupler_constraint("j2", "j1", 0.5, 0.1)
    model = plant.finalize()
    other = mbjax.load(mbjax.to_sdf(model))
    assert_same_by_names(model, other)
    assert_same_leaves(model.force_elements, other.force_elements)
    assert_same_leaves(model.constraints, other.constraints)
    np.testing.assert_allclose(mbjax.frame_pose(other, "tool").translation, [0.0, 0.1, 0.3])
    with pytest.raises(
        mbjax.UnsupportedError, match=r"to_urdf: RevoluteSpring.*URDF has no force elements.*on_unsuppo"
    ):
        mbjax.to_urdf(model)
    with pytest.raises(mbjax.UnsupportedError, match="to_mjcf: distance constraint 'distance_0'"):
        mbjax.to_mjcf(model)


def test_equality_in_mjcf_does_not_depend_on_default_positions() -> None:
    plant = chain()
    X = mbjax.RigidTransform(np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]), np.array([0.1, 0.2, 0.3]))
    plant.add_weld_constraint("b", X, "d", np.array([0.3, 0.1, 0.2]))
    plant.add_ball_constraint("c", np.array([0.1, 0.2, 0.3]), "d", np.array([0.3, 0.1, 0.2]))
    plant.add_coupler_constraint("j2", "j1", 0.5, 0.1, name="pair")
    model = plant.finalize()
    text = mbjax.to_mjcf(model)
    other = mbjax.load(text)
    assert_same_leaves(model.constraints, other.constraints)
    names = model.position_names(add_model_instance_prefix=False)
    order = [other.position_names(add_model_instance_prefix=False).index(name) for name in names]
    np.testing.assert_array_equal(mbjax.default_positions(other)[np.array(order)], mbjax.default_positions(model))
    for write in (mbjax.to_urdf, mbjax.to_sdf):
        written = write_quietly(write, model)
        assert any("default positions" in entry.message for entry in written.report)


def test_mimics_without_coordinates() -> None:
    plant = chain()
    plant.add_mimic(plant.joint("j2"), plant.joint("j1"), -0.5, 0.2)
    model = plant.finalize()
    for write in WRITERS:
        text = write(model)
        other = mbjax.load(text, mimic="eliminate")
        assert other.num_velocities == model.num_velocities
        assert any('mimic="eliminate"' in entry.message for entry in text.report)
        for what in ("mimic_multiplier", "mimic_offset"):
            np.testing.assert_allclose(getattr(other.parameters, what), getattr(model.parameters, what), rtol=1e-12)
    assert_same_by_names(model, mbjax.load(mbjax.to_sdf(model), mimic="eliminate"))


def test_properties_of_contact() -> None:
    plant = chain(0.01)
    given = mbjax.ProximityProperties(0.7, 0.6, 1e5, 2.5, 0.02)
    plant.register_collision_geometry("c", mbjax.Geometry("tip", mbjax.Ellipsoid(0.1, 0.2, 0.3)), given)
    plant.register_collision_geometry("d", mbjax.Geometry("ball", mbjax.Sphere(0.1)), 0.5)
    model = mbjax.set_collision_geometry_size(plant.finalize(), "d::ball", 0.15)
    for write in (mbjax.to_urdf, mbjax.to_sdf):
        other = mbjax.load(write(model), time_step=0.01, contact_model="point")
        for what in ("size", "stiffness", "hunt_crossley_dissipation", "relaxation_time", "static_friction"):
            np.testing.assert_array_equal(getattr(other.collision, what), getattr(model.collision, what))
        np.testing.assert_array_equal(other.collision.dynamic_friction, model.collision.dynamic_friction)
    with pytest.raises(
        mbjax.UnsupportedError, match=r"shape 'tip' of 'c': static friction 0.7 and dynamic friction 0.6"
    ):
        mbjax.to_mjcf(model)


def test_several_models_of_a_world_in_sdf() -> None:
    text = """<sdf version="1.9"><world name="w"><gravity>0 0 -3</gravity>
      <frame name="corner" attached_to="world"><pose>1 2 3 0 0 1</pose></frame>
      <model name="base"><link name="l"/><model name="inner"><pose>1 0 0 0 0 1</pose><link name="l"/>
        <link name="m"><pose>0 0 1 0 0 0</pose></link>
        <joint name="j" type="revolute"><parent>l</parent><child>m</child><axis><xyz>1 1 0</xyz></axis></joint>
        </model><joint name="k" type="ball"><parent>l</parent><child>inner::l</child></joint></model>
      <model name="other"><link name="l"><pose>0 1 0 .1 .2 .3</pose></link></model>
      <joint name="between" type="prismatic"><parent>base::inner::m</parent><child>other::l</child>
        <axis><xyz>0 1 1</xyz></axis></joint></world></sdf>"""
    model = mbjax.load(text)
    other = mbjax.load(mbjax.to_sdf(model))
    assert_same_by_names(model, other)
    assert sorted(b.scoped_name for b in other.layout.bodies) == sorted(b.scoped_name for b in model.layout.bodies)
    assert sorted(other.position_names()) == sorted(model.position_names())
    for write in (mbjax.to_urdf, mbjax.to_mjcf):
        written = write_quietly(write, model)
        assert any("holds one robot" in entry.message for entry in written.report)
        assert load_quietly(written).num_velocities == model.num_velocities


def test_keyframes_sites_and_states_in_mjcf() -> None:
    model = mbjax.load(EVERYTHING)
    text = mbjax.to_mjcf(model)
    other = mbjax.load(text)
    assert mbjax.to_mjcf(other).count("<") == text.count("<")
    m = mujoco.MjModel.from_xml_string(text)
    qpos, qvel = mbjax.mujoco_state(model, mbjax.keyframe_state(model, "bent"))
    for joint in np.flatnonzero(m.jnt_type <= 1):
        start = m.jnt_qposadr[joint] + 3 * (m.jnt_type[joint] == 0)
        sign = np.sign(np.dot(m.key_qpos[0][start : start + 4], qpos[start : start + 4]))
        qpos = qpos.at[start : start + 4].multiply(sign)
    np.testing.assert_allclose(m.key_qpos[0], qpos, atol=1e-14)
    np.testing.assert_allclose(m.key_qvel[0], qvel, atol=1e-13)
    assert m.key_time[0] == 0.5
    assert {frame.name for frame in other.layout.frames if frame.name == "imu"}
    expected, found = (mbjax.frame_pose(x, "imu") for x in (model, other))
    np.testing.assert_allclose(found.as_matrix4(), expected.as_matrix4(), atol=1e-14)


def driven() -> mbjax.MultibodyPlant:
    """Hinges with a motor each: without and with a limit, with both gains, with each of them."""
    plant = mbjax.MultibodyPlant()
    inf = np.inf
    laws = {"a": (inf, None, None), "b": (2.0, None, None), "c": (3.0, 10.0, 2.0), "d": (inf, 7.0, 0.0),
            "e": (2.5, 0.0, 3.0)}  # fmt: skip
    for name, (limit, kp, kd) in laws.items():
        plant.add_rigid_body(name, INERTIA)
        plant.add_joint(mbjax.RevoluteJoint(f"j{name}", "world", name, axis=(1, 0, 0)))
        gains = {} if kp is None else {"kp": kp, "kd": kd}
        plant.add_joint_actuator(name, f"j{name}", limit, rotor_inertia=0.01, gear_ratio=3.0, **gains)
    return plant


def actuators_of(model: mbjax.MultibodyModel) -> list[np.ndarray]:
    p = model.parameters
    return [np.asarray(x) for x in (p.effort_limit, p.proportional_gain, p.derivative_gain)]


def state_at(model: mbjax.MultibodyModel, q: np.ndarray, v: np.ndarray) -> mbjax.State:
    return dataclasses.replace(mbjax.default_state(model), q=jnp.asarray(q), v=jnp.asarray(v))


def acceleration_in_mujoco(text: str, model: mbjax.MultibodyModel, state: mbjax.State, ctrl: np.ndarray) -> np.ndarray:
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    (d.qpos[:], d.qvel[:]), d.ctrl[:] = mbjax.mujoco_state(model, state), ctrl
    mujoco.mj_forward(m, d)
    return d.qacc.copy()


def test_ctrl_in_mjcf_gives_all_that_inputs_give() -> None:
    """What the report says that ctrl is makes the same accelerations; limits bind in some of the states."""
    model = driven().finalize()
    text = mbjax.to_mjcf(model)
    assert {entry.element: entry.message.split(";")[0] for entry in text.report if "ctrl is" in entry.message} == {
        "actuator 'a', 'b'": "ctrl is its actuation",
        "actuator 'c'": "ctrl is desired position + (kd desired velocity + actuation) / kp",
        "actuator 'd'": "ctrl is desired position + actuation / kp",
        "actuator 'e'": "ctrl is desired velocity + actuation / kd",
    }
    m = mujoco.MjModel.from_xml_string(text)
    np.testing.assert_array_equal(m.actuator_ctrlrange[m.actuator_ctrllimited != 0], [[-2.0, 2.0]])
    other = mbjax.load(text)
    for mine, found in zip(actuators_of(model), actuators_of(other), strict=True):
        np.testing.assert_array_equal(found, mine)
    _, kp, kd = actuators_of(model)
    saturated = set()
    derivatives = jax.jit(mbjax.time_derivatives)
    for seed in range(4):
        q, v, qd, vd, u = np.random.default_rng(seed).normal(size=(5, 5))
        rest = kd * vd + u
        ctrl = np.where(kp > 0, qd + rest / (kp + (kp == 0)), np.where(kd > 0, vd + u / (kd + (kd == 0)), u))
        state = state_at(model, q, v)
        _, expected = derivatives(model, state, mbjax.Inputs(actuation=u, desired_state=np.concatenate([qd, vd])))
        np.testing.assert_allclose(acceleration_in_mujoco(text, model, state, ctrl), expected, rtol=1e-12, atol=1e-12)
        _, found = derivatives(model, state, mbjax.inputs_from_mujoco(other, ctrl))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        effort = u + kp * (qd - q) + kd * (vd - v)
        saturated |= set(np.flatnonzero(np.abs(effort) > np.asarray(model.parameters.effort_limit)).tolist())
    assert saturated >= {2, 4}


CONTROLLED = """<mujoco><compiler angle="radian"/><worldbody>
<body><joint name="a" axis="1 0 0"/><geom size="0.1" pos="0 0.2 0"/></body>
<body><joint name="b" axis="1 0 0"/><geom size="0.1" pos="0 0.2 0"/></body>
<body><joint name="c" type="slide" axis="1 0 0"/><geom size="0.1" pos="0 0.2 0"/></body>
<body><joint name="d" axis="1 0 0"/><geom size="0.1" pos="0 0.2 0"/></body>
<body><joint name="e" axis="1 0 0"/><geom size="0.1" pos="0 0.2 0"/></body>
</worldbody><actuator>
<motor name="geared" joint="a" gear="30" ctrlrange="-0.5 0.25"/>
<position name="servo" joint="b" kp="50" kv="3" gear="-2" ctrlrange="-0.3 0.8" forcerange="-20 20"/>
<velocity name="speed" joint="c" kv="4" gear="0.3" forcerange="-3 3"/>
<general name="biased" joint="d" gainprm="3" biastype="affine" biasprm="0.5 -2 -0.3"/>
<general name="shifted" joint="e" gear="0.7" gainprm="5" biastype="affine" biasprm="0.4 -5 0"/>
</actuator></mujoco>"""


def test_ctrl_in_mjcf_is_what_it_was_in_the_file_read() -> None:
    """Gears, ranges and biases act as in the file, and what ctrl means to the actuators reads back."""
    model = mbjax.load(CONTROLLED)
    text = mbjax.to_mjcf(model)
    other = mbjax.load(text)
    for mine, found in zip(actuators_of(model), actuators_of(other), strict=True):
        np.testing.assert_allclose(found, mine, rtol=1e-14)
    for mine, found in zip(model.layout.actuators, other.layout.actuators, strict=True):
        for field in dataclasses.fields(mbjax.model.Control):
            pair = [getattr(actuator.control, field.name) for actuator in (found, mine)]
            np.testing.assert_allclose(*pair, rtol=1e-14, err_msg=f"{mine.name} {field.name}")
    for seed in range(3):
        random = np.random.default_rng(seed)
        state = state_at(model, *random.normal(size=(2, 5)))
        ctrl = random.normal(size=5)
        first, second = (acceleration_in_mujoco(each, model, state, ctrl) for each in (CONTROLLED, text))
        np.testing.assert_allclose(second, first, rtol=1e-12, atol=1e-12)
    said = {entry.element: entry.message for entry in text.report if entry.element.startswith("actuator")}
    assert said["actuator 'geared'"].startswith("actuation is 30 ctrl, as in the MJCF file that it comes from")
    assert said["actuator 'servo'"].startswith("desired position is -0.5 ctrl, as in")
    assert said["actuator 'shifted'"].startswith("desired position is 1.42857 ctrl, and actuation +0.28, as in")


def test_ctrl_in_mjcf_of_actuators_that_have_been_changed_since() -> None:
    """A motor that got gains, and one that got a larger limit, beside those that were left out on loading."""
    model = mbjax.load(CONTROLLED, actuators=["a", "b"])
    p = model.parameters
    changed = dataclasses.replace(
        p,
        proportional_gain=p.proportional_gain.at[1].set(0.0),
        derivative_gain=p.derivative_gain.at[1].set(0.0),
        effort_limit=p.effort_limit.at[0].set(60.0),
    )
    model = dataclasses.replace(model, parameters=changed)
    text = mbjax.to_mjcf(model)
    m = mujoco.MjModel.from_xml_string(text)
    np.testing.assert_allclose(m.actuator_ctrlrange, [[-2.0, 2.0], [-40.0, 40.0]])
    for mine, found in zip(actuators_of(model), actuators_of(mbjax.load(text)), strict=True):
        np.testing.assert_allclose(found, mine, rtol=1e-14)
    assert any(e.element == "actuator 'servo'" and "gains are others" in e.message for e in text.report)
    assert any(e.element == "controls" and "ctrl has 2 numbers" in e.message for e in text.report)


def test_default_poses_of_free_bodies() -> None:
    X_WB = mbjax.RigidTransform(rotation_of(np.array([0.1, 0.2, 0.3])), np.array([1.0, 2.0, 3.0]))
    model = mbjax.set_default_free_body_pose(chain().finalize(), "d", X_WB)
    for write in (mbjax.to_sdf, mbjax.to_mjcf):
        other = mbjax.load(write(model))
        pose = mbjax.default_free_body_pose(other, "d")
        np.testing.assert_allclose(pose.as_matrix4(), X_WB.as_matrix4(), atol=1e-14)
    assert any("default pose" in entry.message for entry in mbjax.to_urdf(model).report)


def test_meshes_and_hulls(tmp_path) -> None:
    corners = np.array([(x, y, z) for x in (-0.1, 0.2) for y in (-0.1, 0.1) for z in (-0.1, 1.0 / 3.0)])
    plant = chain(0.01)
    hull = mbjax.Geometry("hull", mbjax.Convex(tuple(map(tuple, corners.tolist()))))
    plant.register_collision_geometry("c", hull, 0.5)
    plant.register_collision_geometry("world", mbjax.Geometry("ground", mbjax.HalfSpace()), 0.5)
    (tmp_path / "meshes").mkdir()
    mesh = tmp_path / "meshes" / "look.obj"
    mesh.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    plant.register_visual_geometry("c", mbjax.Geometry("look", mbjax.Mesh("somewhere/look.obj", str(mesh))))
    model = plant.finalize()
    with pytest.raises(mbjax.UnsupportedError, match=r"collision shape 'hull' of 'c'.*give mesh_folder="):
        mbjax.to_sdf(model)
    for write, name in ((mbjax.to_sdf, "robots/r.sdf"), (mbjax.to_mjcf, "robots/r.xml")):
        (tmp_path / "robots").mkdir(exist_ok=True)
        text = write(model, tmp_path / name, mesh_folder=tmp_path / "hulls")
        assert (tmp_path / name).read_text() == text
        assert "../meshes/look.obj" in text
        assert str(tmp_path) not in text
        other = mbjax.load(tmp_path / name, contact_model="point", meshes="hull")
        (c,) = (body.index for body in other.layout.bodies if body.name == "c")
        assert str(mesh) in [
            shape.shape.path for shape in other.layout.visual[c] if isinstance(shape.shape, mbjax.Mesh)
        ]
        vertices = np.unique(np.asarray(other.collision.vertices).round(12), axis=0)
        if write is mbjax.to_sdf:
            np.testing.assert_allclose(vertices, np.unique(corners.round(12), axis=0))
        assert len(vertices) == 8
    text = mbjax.to_mjcf(model)
    assert mujoco.MjModel.from_xml_string(text).nmesh == 2
    assert "somewhere/look.obj" in write_quietly(mbjax.to_urdf, model)


def test_what_has_no_place_is_refused_or_reported() -> None:
    model = chain().finalize()
    locked = mbjax.lock_joint(model, "j1")
    for write in WRITERS:
        name = write.__name__
        with pytest.raises(mbjax.UnsupportedError, match=rf"{name}: joint 'j1': it is locked.*on_unsupported=\"warn\""):
            write(locked)
        with pytest.warns(mbjax.ModelWarning, match=f"{name}: left out although it changes the motion: joint 'j1'"):
            text = write(locked, on_unsupported="warn")
        assert any(entry.element == "joint 'j1'" and "written without it" in entry.message for entry in text.report)
        with pytest.raises(mbjax.ModelError, match="on_unsupported='maybe': choose one of 'error', 'warn'"):
            write(model, on_unsupported="maybe")
        with pytest.raises(mbjax.ModelError, match="expected a MultibodyModel, got MultibodyPlant"):
            write(mbjax.MultibodyPlant())
        batch = jax.vmap(lambda m: mbjax.set_mass(model, "a", m))(jnp.ones(3))
        with pytest.raises(mbjax.ModelError, match="batch of models"):
            write(batch)
        with pytest.raises(mbjax.ModelError, match="are traced"):
            jax.jit(lambda m, write=write: write(mbjax.set_mass(model, "a", m)))(1.0)
    screw = random_tree(0, ("screw",)).model
    with pytest.raises(mbjax.UnsupportedError, match="joint 'joint0': MuJoCo has no screw joint"):
        mbjax.to_mjcf(screw)
    stepped = chain(0.002, contact_model="none").finalize()
    for write in (mbjax.to_urdf, mbjax.to_sdf):
        assert any("time_step=0.002" in entry.message for entry in write(stepped).report)
    assert 'timestep="0.002"' in mbjax.to_mjcf(stepped)


def test_a_text_is_a_str_with_a_report(tmp_path, monkeypatch) -> None:
    """Files are UTF-8, also where the locale's encoding is ASCII."""

    def write_in_ascii(path, text, encoding="ascii"):
        path.write_bytes(text.encode(encoding))

    monkeypatch.setattr(Path, "write_text", write_in_ascii)
    text = Path(mbjax.reference_models.path("pendulum")).read_text(encoding="utf-8")
    model = mbjax.load(text.replace('"pendulum"', '"größe"'))
    for write in WRITERS:
        path = Path(tmp_path / f"{write.__name__}.xml")
        text = write(model, path)
        assert isinstance(text, str)
        assert isinstance(text, mbjax.Written)
        assert all(isinstance(entry.element, str) for entry in text.report)
        assert path.read_text(encoding="utf-8") == text
        assert "größe" in text
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert mbjax.load(path).num_velocities == 1


def test_numbers_read_back_exactly_and_angles_at_gimbal_lock() -> None:
    rng = np.random.default_rng(0)
    for number in [*rng.normal(size=20), 1e-300, -0.0, 0.1, 1.0 / 3.0, 1e22, 3.0]:
        assert float(number_text(number)) == number
    pitches = [0.5 * np.pi + e for e in (0.0, 1e-16, 1e-12, 1e-9, 1e-6)]
    for pitch in [*pitches, *(-p for p in pitches), 0.3]:
        angles = np.array([0.7, pitch, -1.1])
        R = rotation_of(angles)
        np.testing.assert_allclose(rotation_of(roll_pitch_yaw(R)), R, atol=1e-15)


def rotation_of(angles: np.ndarray) -> np.ndarray:
    (cr, cp, cy), (sr, sp, sy) = np.cos(angles), np.sin(angles)
    Rx = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    Ry = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    Rz = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    return Rz @ Ry @ Rx


def test_names_that_sdf_reserves_are_changed_and_said() -> None:
    """Names with "::" would belong to other models, and `__…__` and `world` have meanings of their own."""
    plant = mbjax.MultibodyPlant()
    robot = plant.add_model_instance("__robot__")
    names = ("x::y", "::", "__model__", "x_y")
    for parent, name in zip(("world", *names), names, strict=False):
        plant.add_rigid_body(name, INERTIA, robot)
        plant.add_joint(mbjax.RevoluteJoint(f"{name}::j", parent, name, X_PF=np.array([0.1, 0.2, 0.3])))
    plant.add_frame("__tip__", "x_y", np.array([0.1, 0.0, 0.0]))
    for name in ("world", "x::s"):
        plant.register_collision_geometry("x_y", mbjax.Geometry(name, mbjax.Sphere(0.1)), 1.0)
    model = plant.finalize()
    text = mbjax.to_sdf(model)
    other = mbjax.load(text, contact_model="point")
    assert [body.scoped_name for body in other.layout.bodies][1:] == [
        f"robot::{name}" for name in ("x_y", "_", "model", "x_y_body")
    ]
    assert [joint.name for joint in other.layout.joints] == ["x_y_j", "__j", "__model___j", "x_y_j_joint"]
    assert [shape.name for shape in other.layout.collision[4]] == ["world_1", "x_s"]
    assert "tip" in other.frame_names
    said = {entry.element: entry.message for entry in text.report if entry.status == "repaired"}
    assert "reserves" in said["body '__robot__::__model__'"]
    q = jnp.array([0.3, -0.4, 0.5, 0.6])
    np.testing.assert_allclose(mbjax.mass_matrix(other, q), mbjax.mass_matrix(model, q), rtol=1e-12)


def test_odd_models() -> None:
    """Massless bodies that branch, particles, joints held by their limits, names that XML escapes, two instances."""
    plant = mbjax.MultibodyPlant()
    robot = plant.add_model_instance('r & <x> "q"')
    plant.add_rigid_body("massless")
    plant.add_rigid_body("a b&c", INERTIA, robot)
    plant.add_rigid_body("particle", mbjax.SpatialInertia.point_mass(1.0, np.array([0.0, 0.3, 0.1])))
    plant.add_rigid_body("sled", INERTIA, robot)
    offset = {"X_PF": np.array([0.1, 0.0, 0.0]), "X_BM": np.array([0.0, 0.1, 0.0])}
    plant.add_joint(mbjax.RevoluteJoint("x", "world", "massless", axis=(1, 0, 0)))
    plant.add_joint(mbjax.RevoluteJoint("y", "massless", "a b&c", axis=(0, 1, 0), position_limits=(0.5, 0.5), **offset))
    plant.add_joint(mbjax.RevoluteJoint("z", "massless", "particle", position_limits=(-np.inf, 1.0)))
    plant.add_joint(mbjax.PlanarJoint("plane", "world", "sled", **offset))
    plant.add_frame("corner", "world", np.array([1.0, 2.0, 3.0]))
    model = plant.finalize()
    for write in (mbjax.to_urdf, mbjax.to_sdf):
        assert_same_by_names(model, mbjax.load(write(model)))
    text = mbjax.to_mjcf(model)
    assert_same_in_mujoco(model, text, mbjax.load(text))
    assert "corner" in mbjax.load(text).frame_names
    empty = mbjax.MultibodyPlant()
    empty.register_collision_geometry("world", mbjax.Geometry("ground", mbjax.HalfSpace()), 1.0)
    assert mbjax.load(mbjax.to_sdf(empty.finalize())).num_positions == 0
    for write in WRITERS:
        assert write(mbjax.astype(mbjax.load("arm", contact_model="point"), jnp.float32))


@pytest.mark.parametrize("write", WRITERS)
def test_numbers_of_single_precision_have_no_more_digits_than_they_hold(write) -> None:
    """0.1 is written as 0.1, not as 0.10000000149011612, and reads back as the same number."""
    model = mbjax.astype(chain(0.01).finalize(), jnp.float32)
    text = write_quietly(write, model)
    assert "0000000149" not in text
    masses = re.findall(r'mass(?: value=|=)?["\'>]+([\d.e+-]+)', text)
    assert len(masses) == model.num_bodies - 1
    assert max(map(len, masses)) <= 10
    again = load_quietly(text, time_step=0.01, dtype=jnp.float32)
    np.testing.assert_array_equal(again.parameters.body_mass, model.parameters.body_mass)
    np.testing.assert_array_equal(again.position_upper_limits, model.position_upper_limits)
