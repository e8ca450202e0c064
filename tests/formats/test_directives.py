"""Model directives are read as Drake reads them."""

import warnings

import numpy as np
import pydrake.multibody.parsing as drake_parsing
import pytest
from pydrake.common.schema import Transform as DrakeTransform

import mbjax
from mbjax.errors import ModelWarning, ParseError
from mbjax.formats import Parser
from mbjax.formats.directives import reader
from mbjax.plant import MultibodyPlant
from tests.drake_by_name import assert_same_by_name, drake_plant

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
ARM = (
    f'<robot name="x"><link name="base">{INERTIAL}</link><link name="tip">{INERTIAL}</link>'
    '<joint name="j" type="revolute"><parent link="base"/><child link="tip"/><origin xyz="1 0 0"/></joint></robot>'
)
BOX = (
    '<sdf version="1.9"><model name="box"><link name="body"/><model name="lid"><link name="plate"/></model>'
    '<joint name="hinge" type="fixed"><parent>body</parent><child>lid::plate</child></joint>'
    '<frame name="top"><pose>0 0 1 0 0 0</pose></frame></model></sdf>'
)
SUB = """
directives:
- add_model: {file: "package://scene/box.sdf", name: box}
- add_frame:
    name: corner
    X_PF: {base_frame: "box::top", translation: [0.1, 0.2, 0.3]}
"""
SCENE = """
# Two arms, and a box on one of them.
directives:
- add_model:
    file: package://scene/arm.urdf
    name: left
    default_joint_positions: {j: [0.5]}
- add_weld:
    parent: world
    child: left::base
    X_PC:
      translation: [1, 2, 3]
      rotation: !Rpy {deg: [10, 20, 30]}
- add_model:
    file: package://scene/arm.urdf
    name: right
    default_free_body_pose:
      base:
        translation: [0, 0, 1]
        rotation: !AngleAxis {angle_deg: 90, axis: [0, 0, 2]}
- add_model_instance: {name: inner}
- add_directives: {file: "package://scene/sub.dmd.yaml", model_namespace: inner}
- add_frame:
    name: left::mark
    X_PF: {base_frame: "left::tip", translation: [1, 0, 0]}
- add_weld: {parent: left::mark, child: inner::box::corner}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "package.xml").write_text("<package><name>scene</name></package>")
    for name, text in {"arm.urdf": ARM, "box.sdf": BOX, "sub.dmd.yaml": SUB, "scene.dmd.yaml": SCENE}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def read(source, folder) -> MultibodyPlant:
    plant = MultibodyPlant(contact_model="point")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        Parser(plant, package_map={"scene": folder}).add_models(source)
    return plant


def test_equals_drake(folder):
    ours = read(folder / "scene.dmd.yaml", folder)
    theirs, _ = drake_plant(folder / "scene.dmd.yaml", {"scene": folder})
    assert_same_by_name(ours, theirs)
    assert ours.instance_names[2:] == ["left", "right", "inner", "inner::box", "inner::box::lid"]
    assert ours.joint("left::j").default_positions == 0.5
    right = ours.body("right::base")
    np.testing.assert_allclose(ours.free_poses_of_files[right.index].translation, [0, 0, 1])
    np.testing.assert_allclose(ours.free_poses_of_files[right.index].rotation[:, 0], [0, 1, 0], atol=1e-15)


TABLE = """
directives:
- add_frame:
    name: table
    X_PF: {base_frame: world, translation: [0, 0, 0.5], rotation: !Rpy {deg: [0, 0, 30]}}
- add_frame:
    name: corner
    X_PF: {base_frame: table, translation: [0.1, 0.2, 0]}
- add_model: {file: "package://scene/arm.urdf", name: arm}
- add_weld: {parent: corner, child: arm::base}
- add_directives: {file: "package://scene/poles.dmd.yaml"}
"""
POLES = """
directives:
- add_model: {file: "package://scene/pole.urdf", name: left}
- add_weld: {parent: table, child: left::pole}
- add_model: {file: "package://scene/pole.urdf", name: right}
"""
POLE = (
    f'<robot name="pole"><link name="pole">{INERTIAL}</link><link name="tip">{INERTIAL}</link>'
    '<joint name="j" type="revolute"><parent link="pole"/><child link="tip"/><axis xyz="0 1 0"/></joint></robot>'
)


def test_frames_of_the_world_are_used_and_a_link_may_have_the_name_of_its_model(folder):
    for name, text in {"table.dmd.yaml": TABLE, "poles.dmd.yaml": POLES, "pole.urdf": POLE}.items():
        (folder / name).write_text(text)
    ours = read(folder / "table.dmd.yaml", folder)
    theirs, _ = drake_plant(folder / "table.dmd.yaml", {"scene": folder})
    assert_same_by_name(ours, theirs)
    assert ours.instance_names[2:] == ["arm", "left", "right"]
    assert ours.joint("right::j").parent.body is ours.body("right::pole")
    model = mbjax.load(folder / "table.dmd.yaml", package_map={"scene": folder})
    X_WP = mbjax.relative_transform(model, mbjax.default_state(model).q, "world", "left::pole")
    np.testing.assert_allclose(X_WP.translation, [0.0, 0.0, 0.5], atol=1e-15)


FREE = "<mujoco><worldbody><body name='a' pos='1 1 1'>{}<geom size='0.1'/></body></worldbody></mujoco>"
ON_WORLD = (
    f'<robot name="r"><link name="a">{INERTIAL}</link><joint name="j" type="KIND"><origin xyz="5 0 0" rpy="0 0 1"/>'
    '<parent link="world"/><child link="a"/></joint></robot>'
)
ON_BODY = (
    f'<robot name="r"><link name="b">{INERTIAL}</link><link name="a">{INERTIAL}</link>'
    '<joint name="j" type="KIND"><parent link="b"/><child link="a"/></joint></robot>'
)
FLOATING = {
    "no joint": ("r.urdf", f'<robot name="r"><link name="a">{INERTIAL}</link></robot>'),
    "floating joint": ("r.urdf", ON_WORLD.replace("KIND", "floating")),
    "freejoint": ("r.xml", FREE.format("<freejoint/>")),
    "free joint": ("r.xml", FREE.format("<joint name='j' type='free'/>")),
}


def placing(folder, file: str, text: str, more: str = "") -> str:
    (folder / file).write_text(text)
    return (
        f"directives:\n- add_model:\n    file: package://scene/{file}\n    name: m\n    default_free_body_pose:\n"
        f"      a:\n        translation: [1, 2, 3]\n        rotation: !Rpy {{deg: [10, 20, 30]}}\n{more}"
    )


@pytest.mark.parametrize("name", FLOATING)
def test_a_free_body_is_placed_whatever_makes_it_float(name, folder):
    (folder / "scene.dmd.yaml").write_text(placing(folder, *FLOATING[name]))
    model = read(folder / "scene.dmd.yaml", folder).finalize()
    X_WA = mbjax.relative_transform(model, mbjax.default_state(model).q, "world", "a").as_matrix4()
    theirs, _ = drake_plant(folder / "scene.dmd.yaml", {"scene": folder})
    theirs.Finalize()
    expected = theirs.EvalBodyPoseInWorld(theirs.CreateDefaultContext(), theirs.GetBodyByName("a"))
    np.testing.assert_allclose(X_WA, expected.GetAsMatrix4(), atol=1e-14)


STATIC = '<sdf version="1.9"><model name="r"><static>1</static><link name="a"/></model></sdf>'
BY_FRAME = (
    '<sdf version="1.9"><model name="r"><link name="b"/><link name="a"/><frame name="f" attached_to="g"/>'
    '<frame name="g" attached_to="a"/><drake:joint name="j" type="planar"><drake:parent>b</drake:parent>'
    "<drake:child>f</drake:child><drake:damping>0 0 0</drake:damping></drake:joint></model></sdf>"
)
HELD = {  # file, text: what the error says
    "revolute": ("r.urdf", ON_WORLD.replace("KIND", "revolute"), "give default_joint_positions: {j: […]}."),
    "on a body": ("r.urdf", ON_BODY.replace("KIND", "revolute"), "give default_joint_positions: {j: […]}."),
    "weld": ("r.urdf", ON_BODY.replace("KIND", "fixed"), "set that of the weld in its file."),
    "floating on a body": ("r.urdf", ON_BODY.replace("KIND", "floating"), "7 numbers relative to 'b'."),
    "by a frame": ("r.sdf", BY_FRAME, "give default_joint_positions: {j: […]}."),
    "static": ("r.sdf", STATIC, "its model is static"),
    "no joint in MJCF": ("r.xml", FREE.format(""), "hangs on joint 'world_welds_to_a'"),
    "hinge": ("r.xml", FREE.format("<joint name='j' axis='0 0 1'/>"), "give default_joint_positions: {j: […]}."),
}


@pytest.mark.parametrize("name", HELD)
def test_a_pose_of_a_body_that_its_file_holds_is_refused(name, folder):
    file, text, expected = HELD[name]
    with pytest.raises(ParseError, match="default_free_body_pose: 'a'") as caught:
        read(placing(folder, file, text), folder)
    assert expected in str(caught.value)
    assert caught.value.line == 7
    if "hangs on" in expected:
        assert f"{file}:1" in str(caught.value)


def test_a_pose_beside_positions_of_the_free_joint_is_refused(folder):
    positions = "    default_joint_positions: {j: [1, 0, 0, 0, 0, 0, 0]}\n"
    with pytest.raises(ParseError, match=r"'a' hangs on joint 'j' .*which has default_joint_positions, too"):
        read(placing(folder, *FLOATING["floating joint"], positions), folder)


def test_a_pose_of_a_body_that_a_directive_welds_is_warned_of(folder):
    """Drake takes the weld; directives may be added to others that place the body."""
    weld = "- add_frame: {name: m::f, X_PF: {base_frame: m::a}}\n- add_weld: {parent: world, child: m::f}\n"
    text = placing(folder, *FLOATING["no joint"], weld)
    plant = MultibodyPlant()
    with pytest.warns(ModelWarning, match=r"welded afterwards are not used, as in Drake: 'm::a' \(line 7\)"):
        Parser(plant, package_map={"scene": folder}).add_models(text)
    assert any("'world_welds_to_f' (<YAML text>:10) holds the body" in e.message for e in plant.report.entries)
    assert plant.finalize().num_positions == 0


def test_bundled_models_are_added():
    """Their links called `world` are the world, which no scope has."""
    names = ("pendulum", "arm", "quadruped")
    text = "directives:\n" + "".join(f"- add_model: {{file: package://scene/{n}.urdf, name: my_{n}}}\n" for n in names)
    folder = mbjax.reference_models.path("arm").parent
    assert read(text, folder).instance_names[2:] == ["my_pendulum", "my_arm", "my_quadruped"]
    with pytest.raises(ParseError, match="no link or frame 'my_arm::world'"):
        read(text + "- add_weld: {parent: my_arm::world, child: my_quadruped::trunk}\n", folder)


def test_text_is_recognised(folder):
    assert read(SCENE, folder).instance_names == read(folder / "scene.dmd.yaml", folder).instance_names


def test_names_that_are_taken_are_changed_with_all_in_them(folder):
    plant = read(folder / "scene.dmd.yaml", folder)
    Parser(plant, package_map={"scene": folder}).add_models(folder / "scene.dmd.yaml")
    assert plant.instance_names[7:] == ["left_1", "right_1", "inner_1", "inner_1::box", "inner_1::box::lid"]
    assert plant.instance_names[plant.frame("left_1::mark").model_instance] == "left_1"


# text: line, fragment
REFUSED = {
    "unknown directive": ("directives:\n- add_moddel: {}\n", 2, "Did you mean 'add_model'"),
    "unknown key": ("directives:\n- add_model: {file: a, name: b, size: c}\n", 2, "unknown key 'size'"),
    "no name": ("directives:\n- add_model: {file: package://scene/arm.urdf}\n", 2, "'name' is missing"),
    "no file": ("directives:\n- add_model: {file: package://scene/no.urdf, name: a}\n", 2, "was not found"),
    "no such frame": ("directives:\n- add_weld: {parent: world, child: a::b}\n", 2, "'a::b' so far"),
    "rotation": (
        "directives:\n- add_model: {file: package://scene/arm.urdf, name: a}\n"
        "- add_weld: {parent: world, child: a::base, X_PC: {rotation: !Uniform {}}}\n",
        3,
        "!Uniform",
    ),
    "numbers": (
        "directives:\n- add_model: {file: package://scene/arm.urdf, name: a, default_joint_positions: {j: [x]}}\n",
        2,
        "'x' is not a finite number",
    ),
    "no such joint": (
        "directives:\n- add_model: {file: package://scene/arm.urdf, name: a, default_joint_positions: {k: [1]}}\n",
        2,
        "no joint 'k'",
    ),
    "malformed": ("directives:\n- [a\n", 3, "malformed YAML"),
    "bomb": (
        "directives:\n- &a [x, x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"- &{b} [{', '.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdefg", "bcdefgh", strict=True)),
        None,
        "too many values",
    ),
    "recursion": ("directives: &a\n- *a\n", None, "too deeply"),
    "objects": ("directives:\n- !!python/object/apply:os.system [echo]\n", 2, "expected a mapping"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_place(name, folder):
    text, line, fragment = REFUSED[name]
    with pytest.raises(ParseError) as caught:
        read(text, folder)
    assert fragment in str(caught.value)
    assert line is None or caught.value.line == line


def test_a_file_that_adds_itself_is_refused(folder):
    (folder / "self.dmd.yaml").write_text("directives:\n- add_directives: {file: package://scene/self.dmd.yaml}\n")
    with pytest.raises(ParseError, match="adds itself"):
        read(folder / "self.dmd.yaml", folder)


def test_files_whose_world_has_shapes_of_one_name_stand_side_by_side(tmp_path):
    """Each MJCF file brings its floor; what may touch is decided within each file."""
    (tmp_path / "a.xml").write_text(
        '<mujoco model="m"><worldbody><geom name="floor" type="plane" size="1 1 1"/><body name="b" pos="0 0 1">'
        '<freejoint/><geom size="0.1" contype="2"/></body></worldbody></mujoco>'
    )
    scene = "directives:\n- add_model: {file: a.xml, name: x}\n- add_model: {file: a.xml, name: y}\n"
    (tmp_path / "scene.dmd.yaml").write_text(scene)
    plant = read(tmp_path / "scene.dmd.yaml", tmp_path)
    assert [shape.name for shape in plant.world_body.visual] == ["floor", "y::floor"]
    assert [c.geometry.name for c in plant.collisions if c.body is plant.world_body] == ["floor", "y::floor"]


def fields(of_drake: type) -> set[str]:
    return {field.name for field in of_drake.__fields__}  # pyright: ignore[reportAttributeAccessIssue]


def test_every_key_that_drake_has_is_classified():
    """Drake's own classes say what a directive may hold; a key of a new version fails here."""
    assert fields(drake_parsing.ModelDirective) == {*reader.KEYS, *reader.REFUSED}
    for kind, keys in reader.KEYS.items():
        name = "".join(word.capitalize() for word in kind.split("_"))
        assert fields(getattr(drake_parsing, name)) == set(keys), kind
    assert fields(DrakeTransform) == set(reader.TRANSFORM)


def test_a_key_that_no_reader_knows_is_refused(tmp_path):
    for text in ("directives:\n- add_novelty: {}\n", "directives:\n- add_model_instance: {name: a, novelty: 1}\n"):
        (tmp_path / "scene.dmd.yaml").write_text(text)
        with pytest.raises(ParseError, match=r"scene\.dmd\.yaml:2.*novelty"):
            read(tmp_path / "scene.dmd.yaml", tmp_path)
