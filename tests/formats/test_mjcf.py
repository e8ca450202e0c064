"""One small MJCF text for each element, and what became of it."""

import random
import re
import sys
import warnings

import mujoco
import numpy as np
import pytest

import mbjax
from mbjax.geometry import Box, Capsule, Convex, Cylinder, Ellipsoid, HalfSpace, Mesh, Sphere
from tests.formats.comparison import in_mujoco
from tests.formats.mujoco_comparison import full_mass_matrix, random_qpos_qvel

BALL = '<geom name="g" size="0.1"/>'


def read(
    body: str = "",
    sections: str = "",
    *,
    top: str = "",
    on_unsupported: str = "error",
    meshes: str = "none",
    mimic: str = "couple",
) -> mbjax.MultibodyPlant:
    """A plant with one body "b" holding `body`; warnings are errors where nothing is unsupported."""
    xml = (
        f'<mujoco model="m"><compiler angle="radian"/>{top}<worldbody>\n<body name="b" pos="1 2 3">\n{body or BALL}'
        f"</body></worldbody>\n{sections}</mujoco>"
    )
    plant = mbjax.MultibodyPlant()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if on_unsupported == "warn" else "error")
        mbjax.Parser(plant, on_unsupported=on_unsupported, meshes=meshes, mimic=mimic).add_models(xml)  # type: ignore[arg-type]
    return plant


def said(plant: mbjax.MultibodyPlant, *words: str) -> bool:
    """Whether one entry of the report has all these words."""
    return any(all(word in str(entry) for word in words) for entry in plant.report.entries)


JOINT = '<joint name="j" {}/>' + BALL
TWO_MOTORS = (
    '<actuator><motor name="a" joint="j" ctrlrange="-2 2"/><motor name="c" joint="j" ctrlrange="-{0} {0}"/></actuator>'
)
USED = {
    "model": ("", "", lambda p: p.instance_names[2] == "m"),
    "inertial": (
        '<inertial pos="0.1 0 0" mass="2" diaginertia="1 2 3" euler="0.1 0.2 0.3"/>',
        "",
        lambda p: float(p.body("b").inertia.mass) == 2.0,
    ),
    "body without joint": ("", "", lambda p: p.joints[0].kind == "weld" and p.joints[0].name == "world_welds_to_b"),
    "freejoint": ("<freejoint/>" + BALL, "", lambda p: list(p.joints[0].default_positions) == [1, 0, 0, 0, 1, 2, 3]),
    "hinge": (JOINT.format(""), "", lambda p: p.joint("j").kind == "revolute"),
    "slide": (JOINT.format('type="slide"'), "", lambda p: p.joint("j").kind == "prismatic"),
    "ball": (JOINT.format('type="ball"'), "", lambda p: p.joint("j").kind == "ball_rpy"),
    "axis": (JOINT.format('axis="0 2 0"'), "", lambda p: list(p.joint("j").axis) == [0, 1, 0]),
    "range": (JOINT.format('range="-1 2"'), "", lambda p: p.joint("j").position_limits.ravel().tolist() == [-1, 2]),
    "limited": (
        JOINT.format('range="-1 2" limited="false"'),
        "",
        lambda p: np.isinf(p.joint("j").position_limits).all(),
    ),
    "damping": (JOINT.format('damping="0.5"'), "", lambda p: p.joint("j").damping[0] == 0.5),
    "frictionloss": (JOINT.format('frictionloss="0.5"'), "", lambda p: p.joint("j").friction[0] == 0.5),
    "armature": (JOINT.format('armature="0.5"'), "", lambda p: p.joint("j").armature[0] == 0.5),
    "ref": (JOINT.format('ref="0.5"'), "", lambda p: p.joint("j").default_positions[0] == 0.5),
    "stiffness": (
        JOINT.format('stiffness="3" springref="0.2"'),
        "",
        lambda p: (float(p.force_elements[0].stiffness), float(p.force_elements[0].nominal_angle)) == (3.0, 0.2),
    ),
    "two joints": (
        '<joint name="x" type="slide"/>' + JOINT.format(""),
        "",
        lambda p: [b.name for b in p.bodies] == ["world", "b@x", "b"],
    ),
    "joint without name": ("<joint/>" + BALL, "", lambda p: p.joints[0].name == "b"),
    "site": (BALL + '<site name="s" pos="0 0 1"/>', "", lambda p: p.frame("s").X_PF.translation[2] == 1.0),
    "site named like a body": (BALL + '<site name="b"/>', "", lambda p: p.frame("b_site").body.name == "b"),
    "sphere": (BALL, "", lambda p: p.body("b").collision[0].shape == Sphere(0.1)),
    "box": ('<geom type="box" size="1 2 3"/>', "", lambda p: p.body("b").collision[0].shape == Box((2, 4, 6))),
    "capsule": ('<geom type="capsule" size="1 2"/>', "", lambda p: p.body("b").collision[0].shape == Capsule(1, 4)),
    "cylinder": ('<geom type="cylinder" size="1 2"/>', "", lambda p: p.body("b").collision[0].shape == Cylinder(1, 4)),
    "ellipsoid": (
        '<geom type="ellipsoid" size="1 2 3"/>',
        "",
        lambda p: p.body("b").collision[0].shape == Ellipsoid(1, 2, 3),
    ),
    "plane": ('<geom type="plane" size="1 1 1"/>' + BALL, "", lambda p: p.body("b").collision[0].shape == HalfSpace()),
    "geom that touches nothing": (
        '<geom contype="0" conaffinity="0" size="1"/>',
        "",
        lambda p: not p.collisions and len(p.body("b").visual) == 1,
    ),
    "geom group": ('<geom group="3" size="1"/>', "", lambda p: not p.body("b").visual and said(p, "groups above 2")),
    "friction": ('<geom friction="0.7" size="1"/>', "", lambda p: p.collisions[0].properties.friction == (0.7, 0.7)),
    "condim 1": ('<geom condim="1" size="1"/>', "", lambda p: p.collisions[0].properties.friction == (0.0, 0.0)),
    "rgba": ('<geom rgba="1 0 0 1" size="1"/>', "", lambda p: p.body("b").visual[0].rgba == (1, 0, 0, 1)),
    "solref": ('<geom solref="0.1 1" size="1"/>', "", lambda p: said(p, "<geom solref>", "soft contact")),
    "camera": (BALL + '<camera name="c"/>', "", lambda p: said(p, "<camera>", "not simulated", "line 3")),
    "light": (BALL + "<light/>", "", lambda p: said(p, "<light>")),
    "sensor": (BALL + '<site name="s"/>', '<sensor><gyro site="s"/></sensor>', lambda p: said(p, "<sensor>")),
    "exclude": (
        JOINT.format("")
        + '<body name="c"><joint/><geom size="1"/><body name="d"><joint/><geom size="1"/></body></body>',
        '<contact><exclude body1="b" body2="d"/></contact>',
        lambda p: len(p.collision_exclusions) == 2,  # b with c and d; c with d
    ),
    "motor": (
        JOINT.format(""),
        '<actuator><motor name="a" joint="j" gear="4" ctrlrange="-2 2"/></actuator>',
        lambda p: p.actuator("a").effort_limit == 8.0 and said(p, "actuator 'a'", "actuation 4 ctrl"),
    ),
    "range that is not symmetric": (
        JOINT.format(""),
        '<actuator><motor name="a" joint="j" ctrlrange="0 2"/></actuator>',
        lambda p: p.actuator("a").effort_limit == 2.0 and said(p, "ctrlrange gives 0 to 2"),
    ),
    "actuatorfrcrange": (
        JOINT.format('actuatorfrcrange="-3 3"'),
        '<actuator><motor name="a" joint="j"/></actuator>',
        lambda p: p.actuator("a").effort_limit == 3.0,
    ),
    "actuatorfrcrange that two actuators cannot exceed": (
        JOINT.format('actuatorfrcrange="-3 3"'),
        TWO_MOTORS.format(1),
        lambda p: p.actuator("a").effort_limit == 2.0,
    ),
    "position": (
        JOINT.format(""),
        '<actuator><position name="a" joint="j" kp="5" kv="2" gear="2" forcerange="-3 3"/></actuator>',
        lambda p: (p.actuator("a").kp, p.actuator("a").kd, p.actuator("a").effort_limit) == (20.0, 8.0, 6.0),
    ),
    "actuator damping and armature": (
        JOINT.format('damping="1"'),
        '<actuator><motor name="a" joint="j" gear="3" damping="0.5" armature="0.2"/></actuator>',
        lambda p: (
            p.joint("j").damping[0] == 5.5 and (p.actuator("a").rotor_inertia, p.actuator("a").gear_ratio) == (0.2, 3)
        ),
    ),
    "velocity": (
        JOINT.format(""),
        '<actuator><velocity name="a" joint="j" kv="2"/></actuator>',
        lambda p: p.actuator("a").kd == 2.0 and said(p, "desired velocity ctrl / 1"),
    ),
    "fixed tendon": (
        JOINT.format(""),
        '<tendon><fixed name="t"><joint joint="j" coef="3"/></fixed></tendon>'
        '<actuator><motor name="a" tendon="t"/></actuator>',
        lambda p: said(p, "actuator 'a'", "actuation 3 ctrl"),
    ),
    "keyframe": (
        JOINT.format(""),
        '<keyframe><key name="k" qpos="0.3" ctrl=""/></keyframe>',
        lambda p: p.keyframes[0].name == "k",
    ),
}


@pytest.mark.parametrize("what", USED)
def test_element_is_used(what: str) -> None:
    body, sections, holds = USED[what]
    assert holds(read(body, sections))


SECTIONS = {
    "gravity": ('<option gravity="0 0 -1"/>', lambda p: p.gravity.tolist() == [0, 0, -1]),
    "gravity off": ('<option><flag gravity="disable"/></option>', lambda p: not p.gravity.any()),
    "timestep": ('<option timestep="0.01"/>', lambda p: said(p, "time_step=0.01") and p.time_step == 0.0),
    "limits off": ('<option><flag limit="disable"/></option>', lambda p: np.isinf(p.joint("j").position_limits).all()),
    "contact off": ('<option><flag contact="disable"/></option>', lambda p: not p.collisions),
    "solver": ('<option iterations="7"/>', lambda p: said(p, "<option iterations>", "solver")),
    "default": ('<default><joint damping="3"/></default>', lambda p: p.joint("j").damping[0] == 3.0),
    "visual": ('<visual><global fovy="30"/></visual>', lambda p: said(p, "<visual>")),
    "statistic": ('<statistic extent="3"/>', lambda p: said(p, "<statistic>")),
    "custom": ('<custom><numeric name="n" data="1"/></custom>', lambda p: said(p, "<custom>")),
    "texture": (
        '<asset><texture name="t" type="2d" builtin="flat" width="8" height="8"/></asset>',
        lambda p: said(p, "<texture>"),
    ),
}


@pytest.mark.parametrize("what", SECTIONS)
def test_section_is_used_or_listed(what: str) -> None:
    section, holds = SECTIONS[what]
    assert holds(read(JOINT.format('range="-1 1"'), top=section))


REFUSED = {
    "a soft solid": (
        BALL + '<flexcomp name="f" type="grid" count="3 3 3" spacing=".1 .1 .1" dim="3"/>',
        "",
        "",
        "Add the body to the plant by add_deformable_body, with its tetrahedra of a file",
    ),
    "a cloth": (
        BALL + '<flexcomp name="f" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2"/>',
        "",
        "",
        "which are cables and cloth, are not simulated",
    ),
    "fluid": (JOINT.format(""), "", '<option density="1000"/>', "fluid"),
    "ball range": (JOINT.format('type="ball" range="0 1"'), "", "", "range of a ball joint"),
    "ball spring": (JOINT.format('type="ball" stiffness="1"'), "", "", "springs of ball and free"),
    "gravcomp": (BALL + '<body name="c" gravcomp="1"><joint/><geom size="1"/></body>', "", "", "gravcomp"),
    "spatial tendon": (
        BALL + '<joint name="j"/><site name="s"/><site name="t" pos="1 0 0"/>',
        '<tendon><spatial name="t" stiffness="3"><site site="s"/><site site="t"/></spatial></tendon>',
        "",
        "tendon 't': its stiffness",
    ),
    "activation": (
        JOINT.format(""),
        '<actuator><intvelocity name="a" joint="j" actrange="0 1"/></actuator>',
        "",
        "activation dynamics",
    ),
    "damper": (
        JOINT.format(""),
        '<actuator><damper name="a" joint="j" kv="1" ctrlrange="0 1"/></actuator>',
        "",
        "its gain changes",
    ),
    "site transmission": (
        JOINT.format("") + '<site name="s"/>',
        '<actuator><motor name="a" site="s"/></actuator>',
        "",
        "one hinge or slide",
    ),
    "actuatorfrcrange of two actuators": (
        JOINT.format('actuatorfrcrange="-3 3"'),
        TWO_MOTORS.format(1.5),
        "",
        "bounds the sum of actuators 'a' and 'c' by 3",
    ),
    "polynomial": (
        '<joint name="k"/>' + JOINT.format(""),
        '<equality><joint joint1="j" joint2="k" polycoef="0 1 1 0 0"/></equality>',
        "",
        "polynomial",
    ),
    "hfield": (
        '<geom type="hfield" hfield="h"/>' + JOINT.format(""),
        "",
        '<asset><hfield name="h" nrow="2" ncol="2" size="1 1 1 1"/></asset>',
        "type hfield",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_physics_we_have_not_is_refused_or_warned_of(what: str) -> None:
    body, sections, top, words = REFUSED[what]
    with pytest.raises(mbjax.UnsupportedError, match=words) as error:
        read(body, sections, top=top)
    assert error.value.line is not None
    assert said(read(body, sections, top=top, on_unsupported="warn"), "ignored", words)


MALFORMED = {
    "infinite size": ('<mujoco><worldbody>\n<geom size="inf"/></worldbody></mujoco>', 2, "size is .inf"),
    "negative friction": (
        '<mujoco><worldbody>\n<geom size="1" friction="-1"/></worldbody></mujoco>',
        2,
        "static_friction",
    ),
    "unknown element": ("<mujoco>\n<worldbody/>\n<foo/></mujoco>", 3, "unrecognized element"),
    "unknown attribute": ('<mujoco>\n<worldbody foo="1"/></mujoco>', 2, "foo"),
    "bad size": ('<mujoco><worldbody>\n<geom size="-1"/></worldbody></mujoco>', 2, "size 0 must be positive"),
    "no mass": ('<mujoco><worldbody>\n<body name="b"><joint/></body></worldbody></mujoco>', 2, "mass and inertia"),
    "entity": ('<!DOCTYPE m [<!ENTITY a "b">]><mujoco/>', None, "document type"),
    "include in a text": ('<mujoco>\n<include file="x.xml"/></mujoco>', 2, "no folder to look in"),
    "copies": (
        '<mujoco><worldbody>\n<replicate count="9999"><replicate count="9999"><geom size="1"/></replicate></replicate>'
        "</worldbody></mujoco>",
        2,
        "copies",
    ),
    "texture": (
        '<mujoco><asset>\n<texture builtin="flat" type="2d" width="99999" height="99999"/></asset></mujoco>',
        2,
        "cells",
    ),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_bad_text_is_refused_with_its_line(what: str) -> None:
    text, line, words = MALFORMED[what]
    with pytest.raises(mbjax.ParseError, match=words) as error:
        mbjax.load(text)
    assert line is None or error.value.line == line


def test_a_mocap_body_is_fixed_with_a_warning() -> None:
    text = '<mujoco><worldbody><body name="m" mocap="true"><geom size="1"/></body></worldbody></mujoco>'
    with pytest.warns(mbjax.ModelWarning, match="mocap bodies stay where they are: 'm'"):
        model = mbjax.load(text)
    assert model.joint(0).kind == "weld"


COUPLED = """<equality><joint joint1="j" joint2="k" polycoef="0.1 2 0 0 0"/></equality>"""


def test_joint_equality_is_a_coupler_a_mimic_or_nothing() -> None:
    """As the option `mimic` says, for URDF too."""
    body = '<joint name="k"/>' + JOINT.format("")
    assert len(read(body, COUPLED).constraints) == 1
    assert len(read(body, COUPLED, mimic="eliminate").mimics) == 1
    free = read(body, COUPLED, mimic="free")
    assert not free.constraints
    assert said(free, "joint 'j'", "does not follow 'k'")


def test_a_file_without_gravity_leaves_that_of_the_plant() -> None:
    plant = mbjax.MultibodyPlant()
    plant.set_gravity([0, 0, -1.6])
    mbjax.Parser(plant).add_models(f"<mujoco><worldbody><body>{BALL}</body></worldbody></mujoco>")
    assert plant.gravity.tolist() == [0, 0, -1.6]


def test_includes_are_read_from_the_folder_alone(tmp_path) -> None:
    inner = tmp_path / "model"
    inner.mkdir()
    part = (
        '<mujocoinclude><worldbody>\n<body name="b"><joint name="j" ref="{}"/><geom size="1"/></body></worldbody>'
        "</mujocoinclude>"
    )
    (inner / "part.xml").write_text(part.format("1"))
    (tmp_path / "outside.xml").write_text(part.format("2"))
    file = inner / "main.xml"
    file.write_text('<mujoco>\n<include file="part.xml"/></mujoco>')
    plant = mbjax.MultibodyPlant()
    mbjax.Parser(plant).add_models(file)
    assert plant.joint("j").source == f"{inner / 'part.xml'}:2"
    file.write_text('<mujoco>\n<include file="../outside.xml"/></mujoco>')
    with pytest.raises(mbjax.ParseError, match="outside of the model's folder"):
        mbjax.load(file)
    assert mbjax.load(file, package_map={"parts": tmp_path}).joint_names == ("j",)
    (inner / "part.xml").write_text('<!DOCTYPE a [<!ENTITY b "c">]>' + part.format("1"))
    file.write_text('<mujoco>\n<include file="part.xml"/></mujoco>')
    with pytest.raises(mbjax.ParseError, match="document type"):
        mbjax.load(file)


def test_without_mujoco_the_error_says_how_to_install_it(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(mbjax.ParseError, match=r'pip install "mbjax\[mjcf\]"'):
        mbjax.load("<mujoco/>")


TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
WITH_MESH = """<mujoco><asset><mesh name="t" file="{}.obj" scale="0.1 0.2 0.3"/></asset>
<worldbody><body name="b"><joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
<geom type="mesh" mesh="t" pos="1 0 0"/></body></worldbody></mujoco>"""


def test_mesh_is_placed_as_in_its_file(tmp_path) -> None:
    """MuJoCo moves the vertices of a mesh; drawn and touched it stays where the file has it."""
    (tmp_path / "tetra.obj").write_text(TETRAHEDRON)
    (tmp_path / "m.xml").write_text(WITH_MESH.format("tetra"))
    plant = mbjax.MultibodyPlant()
    mbjax.Parser(plant, meshes="hull").add_models(tmp_path / "m.xml")
    drawn, touched = plant.body("b").visual[0], plant.body("b").collision[0]
    assert isinstance(drawn.shape, Mesh)
    assert drawn.shape.path == str(tmp_path / "tetra.obj")
    np.testing.assert_allclose(drawn.translation, (1.0, 0.0, 0.0), atol=1e-7)
    np.testing.assert_allclose(drawn.rotation, np.eye(3), atol=1e-7)
    assert isinstance(touched.shape, Convex)
    vertices = np.array(touched.shape.vertices)[:4] @ np.array(touched.rotation).T + touched.translation
    expected = np.array([[1.0, 0, 0], [1.1, 0, 0], [1.0, 0.2, 0], [1.0, 0, 0.3]])
    assert {tuple(x) for x in vertices.round(5)} == {tuple(x) for x in expected.round(5)}


REFERENCES = {  # refpos, refquat and scale of a mesh, and whether they shear it
    "equal scales": ("2 2 2", "1 0.2 0.3 0.4", False),
    "mirrored": ("-2 2 2", "1 0.2 0.3 0.4", False),
    "exchanged axes": ("1 -2 3", "0.5 0.5 0.5 0.5", False),
    "no rotation": ("1 -2 3", "1 0 0 0", False),
    "shear": ("1 2 3", "1 0.2 0.3 0.4", True),
}


@pytest.mark.parametrize("what", REFERENCES)
def test_mesh_with_a_reference_is_where_mujoco_has_it(what, tmp_path) -> None:
    """The hull has MuJoCo's vertices; those of the file, drawn with scale and pose, are where they are, or nowhere."""
    scale, refquat, is_sheared = REFERENCES[what]
    (tmp_path / "tetra.obj").write_text(TETRAHEDRON)
    reference = f'refpos="0.1 0.2 0.3" refquat="{refquat}" scale="{scale}"'
    (tmp_path / "m.xml").write_text(WITH_MESH.format("tetra").replace('scale="0.1 0.2 0.3"', reference))
    plant = mbjax.MultibodyPlant()
    mbjax.Parser(plant, meshes="hull").add_models(tmp_path / "m.xml")
    drawn, touched = plant.body("b").visual[0], plant.body("b").collision[0]
    assert isinstance(drawn.shape, Mesh)
    assert isinstance(touched.shape, Convex)
    assert (drawn.shape.path is None) == is_sheared == said(plant, "ignored", "shear it")
    corners = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]) * drawn.shape.scale
    places = [
        np.array(vertices) @ np.array(geometry.rotation).T + geometry.translation
        for geometry, vertices in ((drawn, corners), (touched, touched.shape.vertices))
    ]
    apart = np.linalg.norm(places[0][:, None] - places[1], axis=-1)
    assert is_sheared or max(*apart.min(axis=0), *apart.min(axis=1)) < 1e-6
    assert np.linalg.det(drawn.rotation) == pytest.approx(1.0)


def test_meshes_without_a_file_touch_with_their_hulls() -> None:
    asset = '<asset><mesh name="t" vertex="0 0 0 1 0 0 0 2 0 0 0 3"/></asset>'
    plant = read('<joint/><geom type="mesh" mesh="t"/>', top=asset, meshes="hull")
    (touched,) = plant.body("b").collision
    assert isinstance(touched.shape, Convex)
    assert said(plant, "used", "mesh 't'", "convex hull")


def test_a_missing_mesh_is_warned_of_and_one_that_gives_mass_refused(tmp_path) -> None:
    file = tmp_path / "m.xml"
    file.write_text(WITH_MESH.format("none"))
    with pytest.warns(mbjax.ModelWarning, match="mesh files not found.*'none.obj'"):
        model = mbjax.load(file)
    assert float(mbjax.mass(model, "b")) == 1.0
    file.write_text(WITH_MESH.format("none").replace('<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>', ""))
    with pytest.raises(mbjax.ParseError, match="gets its mass from mesh 't', whose file was not found"):
        mbjax.load(file)


def test_two_models_of_one_file_have_keyframes_and_contacts_of_their_own() -> None:
    key = '<keyframe><key name="k" qpos="1"/></keyframe>'
    text = f'<mujoco model="m"><worldbody><body name="b">{JOINT.format("")}</body></worldbody>{key}</mujoco>'
    plant = mbjax.MultibodyPlant()
    parser = mbjax.Parser(plant)
    parser.add_models(text)
    parser.add_models(text)
    model = plant.finalize()
    assert model.keyframe_names == ("k", "m_1::k")
    np.testing.assert_array_equal(mbjax.keyframe_state(model, "m_1::k").q, [0.0, 1.0])
    assert len(model.layout.contact.pairs) == 1


def test_what_mujocos_compiler_warns_of_is_reported_and_written_nowhere(tmp_path, monkeypatch) -> None:
    """Left alone it writes MUJOCO_LOG.TXT into the working directory, as damaged files have shown."""
    monkeypatch.chdir(tmp_path)
    text = '<mujoco><custom><numeric name="n" data="nan"/></custom><worldbody><body><joint/><geom size="1"/></body>'
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = mbjax.load(text + "</worldbody></mujoco>")
    assert any(entry.element == "MuJoCo's compiler" and "NaN" in entry.message for entry in model.report())
    assert list(tmp_path.iterdir()) == []
    assert mujoco.get_mju_user_warning() is None  # the caller's own is back


def test_joints_that_start_outside_their_range_are_warned_of() -> None:
    joint = '<joint name="j" range="30 70"/><geom size="1"/>'
    with pytest.warns(mbjax.ModelWarning, match=r"start outside their ranges .*'j' \(line 1\)"):
        model = mbjax.load(f"<mujoco><worldbody><body>{joint}</body></worldbody></mujoco>")
    assert any("starts at 0, outside its range 0.523599 to 1.22173" in entry.message for entry in model.report())


@pytest.mark.parametrize(
    ("where", "is_one"),
    [
        ('pos="1e-9 0 0" euler="0 1e-9 0"', True),
        ('pos="3e-7 0 -2e-7" euler="2e-7 3e-7 0"', True),
        ('pos="0.3 0 0.2" euler="2e-7 3e-7 0"', True),
        ('pos="0.3 0 0.2" euler="1e-3 0 2e-3"', False),
    ],
)
def test_inertial_frames_that_mujoco_takes_for_the_bodys_are_the_bodys(where: str, is_one: bool) -> None:
    """MuJoCo drops a difference below its tolerance: M is that of its program, not that of the file."""
    inertial = f'<inertial {where} mass="2" diaginertia="1 2 2.5"/>'
    text = f'<mujoco><compiler angle="radian"/><worldbody><body><freejoint/>{inertial}</body></worldbody></mujoco>'
    model, m = mbjax.load(text), mujoco.MjModel.from_xml_string(text)
    d, M = mujoco.MjData(m), np.zeros((6, 6))
    assert (m.body_sameframe[1] != 0) == is_one
    d.qpos, d.qvel = random_qpos_qvel(m, np.random.default_rng(0))
    mujoco.mj_forward(m, d)
    full_mass_matrix(m, d, M)
    ours, T = in_mujoco(model, d.qpos, d.qvel)
    np.testing.assert_allclose(T.T @ ours.M @ T, M, atol=1e-14)
    np.testing.assert_allclose(T.T @ (ours.bias - ours.gravity), d.qfrc_bias, atol=1e-12)


VALUES = (
    "0",
    "-1",
    "1e308",
    "nan",
    "inf",
    "",
    "abc",
    "1 2",
    "1e-320",
    "0 0 0",
    "1 0 0 0",
    "99999999",
    "b",
    "j",
    "hinge",
)
FUZZED = """<mujoco model="m"><option gravity="0 0 -1" timestep="0.01"/>
<default><geom density="9"/></default><worldbody>
<body name="b" pos="0 0 1" euler="1 2 3"><joint name="j" axis="0 1 0" range="-1 1" stiffness="1" damping="1"/>
<geom name="g" type="capsule" size="0.1" fromto="0 0 0 0 0 1" friction="1 1 1"/><site name="s" pos="0 0 1"/>
<body name="c"><joint name="k" type="slide" armature="1"/><geom type="box" size="1 1 1" mass="1" rgba="1 0 0 1"/></body>
</body></worldbody><contact><exclude body1="b" body2="c"/></contact>
<equality><joint joint1="j" joint2="k" polycoef="0 1 0 0 0"/><weld body1="c" relpose="0 0 0 1 0 0 0"/></equality>
<tendon><fixed name="t"><joint joint="j" coef="2"/></fixed></tendon><actuator>
<motor joint="j" gear="2" ctrlrange="-1 1"/>
<position tendon="t" kp="3" forcerange="-1 1"/></actuator><keyframe><key name="k" qpos="1 2"/></keyframe></mujoco>"""


def test_damaged_texts_are_read_or_refused_in_our_words() -> None:
    """Attributes exchanged, emptied and left out, in 300 ways: never another kind of error."""
    draw = random.Random(7)
    attributes = list(re.finditer(r'[a-z0-9]+="([^"]*)"', FUZZED))
    read_count = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(300):
            text = FUZZED
            for found in sorted(draw.sample(attributes, draw.randint(1, 3)), key=lambda f: -f.start()):
                value = draw.choice(VALUES)
                if draw.random() < 0.2:
                    text = text[: found.start()] + text[found.end() :]
                else:
                    text = text[: found.start(1)] + value + text[found.end(1) :]
            plant = mbjax.MultibodyPlant()
            try:
                mbjax.Parser(plant, on_unsupported="warn").add_models(text)
                read_count += 1
            except mbjax.ParseError:
                assert len(plant.bodies) == 1
    assert 30 < read_count < 270


def test_friction_is_not_said_to_be_used_where_contact_is_off() -> None:
    world = '<worldbody><body><joint/><geom size=".1"/></body></worldbody>'

    def said(option: str) -> list[str]:
        report = mbjax.load(f"<mujoco>{option}{world}</mujoco>").report()
        return [entry.message for entry in report if entry.element == "<geom friction>"]

    (message,) = said("")
    assert message.startswith("where contact is on")
    assert not said('<option><flag contact="disable"/></option>')
