"""Shapes to touch with, what they are like to touch, and which may touch, read from URDF as Drake reads them."""

import logging
import re
import sys
import sysconfig
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import trimesh
from pydrake.geometry import Role
from pydrake.multibody.parsing import Parser as DrakeParser
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph
from pydrake.systems.framework import DiagramBuilder

import mbjax
from mbjax.formats.files.resource_paths import ResourceFinder
from mbjax.formats.notes.load_notes import LoadNotes
from mbjax.formats.urdf.read_shapes import GeometryReader
from mbjax.formats.xml.source import read_xml
from mbjax.plant.collision_filters import candidate_pairs
from mbjax.plant.finalize_contact import DEFAULT_RELAXATION_TIME

ROBOTS = Path(sysconfig.get_path("purelib")) / "cmeel.prefix/share/example-robot-data/robots"
OF_PRIMITIVES = [
    "a1_description/urdf/a1.urdf",
    "allegro_hand_description/urdf/allegro_left_hand.urdf",
    "anymal_b_simple_description/robots/anymal.urdf",
    "b1_description/urdf/b1.urdf",
    "iris_description/robots/iris.urdf",
    "panda_description/urdf/panda_collision.urdf",
    "quadruped_description/urdf/quadruped.urdf",
]
BODY = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'


def link(name: str, more: str = "", shape: str = '<sphere radius=".1"/>') -> str:
    collision = f'<collision name="{name}_shape"><geometry>{shape}</geometry>{more}</collision>'
    return f'<link name="{name}">{BODY}{collision}</link>'


def robot(*content: str) -> str:
    return f'<robot name="r" xmlns:drake="drake">{"".join(content)}</robot>'


def read(source: str | Path) -> tuple[mbjax.MultibodyPlant, mbjax.MultibodyModel]:
    plant = mbjax.MultibodyPlant(0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbjax.ModelWarning)
        mbjax.Parser(plant).add_models(source)
        return plant, plant.finalize()


def read_with_drake(source: str | Path):
    """The finalized plant and the inspector of its shapes."""
    logging.getLogger("drake").setLevel(logging.CRITICAL)
    builder = DiagramBuilder()
    plant, scene_graph = AddMultibodyPlantSceneGraph(builder, 0.01)
    parser = DrakeParser(plant)
    if isinstance(source, Path):
        parser.AddModels(str(source))
    else:
        parser.AddModelsFromString(source, "urdf")
    plant.Finalize()
    return plant, scene_graph.model_inspector()


def load(text: str, **options) -> mbjax.MultibodyModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbjax.ModelWarning)
        return mbjax.load(text, **({"contact_model": "point"} | options))


def pairs_of_bodies(plant: mbjax.MultibodyPlant, model: mbjax.MultibodyModel) -> Counter:
    """How many pairs of shapes may touch, by the names of their bodies."""
    found = candidate_pairs(
        plant.collisions, model.topology.body_mobods, plant.joints, plant.collision_exclusions, filter_adjacent=True
    )
    return Counter(tuple(sorted(plant.collisions[g].body.name for g in pair)) for pair in found)


def pairs_of_bodies_in_drake(plant, inspector) -> Counter:
    def body(geometry):
        return plant.GetBodyFromFrameId(inspector.GetFrameId(geometry)).name()

    pairs = inspector.GetCollisionCandidates()
    return Counter(tuple(sorted(body(g) for g in pair)) for pair in pairs)


@pytest.mark.parametrize("name", OF_PRIMITIVES)
def test_robots_of_primitive_shapes_equal_drake(name, tmp_path):
    text = (ROBOTS / name).read_text()
    file = tmp_path / "robot.urdf"
    file.write_text(re.sub(r"<visual\b.*?</visual>|<!--.*?-->", "", text, flags=re.DOTALL))
    plant, model = read(file)
    theirs, inspector = read_with_drake(file)
    assert model.num_collision_geometries == inspector.NumGeometriesWithRole(Role.kProximity) > 0
    for body in plant.bodies:
        reference = theirs.GetCollisionGeometriesForBody(theirs.GetBodyByName(body.name))
        assert len(body.collision) == len(reference)
        for mine, other in zip(body.collision, reference, strict=True):
            shape, X_BG = inspector.GetShape(other), inspector.GetPoseInFrame(other)
            assert type(mine.shape).__name__ == type(shape).__name__
            np.testing.assert_allclose(mine.rotation, X_BG.rotation().matrix(), atol=1e-14)
            np.testing.assert_allclose(mine.translation, X_BG.translation(), atol=1e-14)
    assert pairs_of_bodies(plant, model) == pairs_of_bodies_in_drake(theirs, inspector)
    assert len(model.collision_pairs) <= sum(pairs_of_bodies(plant, model).values())


PROPERTIES = {
    "none": "",
    "static": '<drake:mu_static value=".4"/>',
    "dynamic": '<drake:mu_dynamic value=".4"/>',
    "all": '<drake:mu_static value=".4"/><drake:mu_dynamic value=".3"/><drake:point_contact_stiffness value="1e5"/>'
    '<drake:hunt_crossley_dissipation value="2"/><drake:relaxation_time value=".3"/>',
    "no dissipation": '<drake:hunt_crossley_dissipation value="0"/><drake:relaxation_time value="0"/>',
}
LEGACY = (
    "<drake_compliance><static_friction>.5</static_friction><dynamic_friction>.2</dynamic_friction></drake_compliance>"
)


@pytest.mark.parametrize("name", [*PROPERTIES, "legacy"])
def test_proximity_properties_equal_drake(name):
    inside = PROPERTIES.get(name, "")
    more = LEGACY if name == "legacy" else f"<drake:proximity_properties>{inside}</drake:proximity_properties>"
    text = robot(link("a", more), link("b"))
    _, model = read(text)
    theirs, inspector = read_with_drake(text)
    (geometry,) = theirs.GetCollisionGeometriesForBody(theirs.GetBodyByName("a"))
    expected = inspector.GetProximityProperties(geometry)
    friction = expected.GetProperty("material", "coulomb_friction")
    static, dynamic = mbjax.friction(model, "a_shape")
    assert (static, dynamic) == (friction.static_friction(), friction.dynamic_friction())
    g, collision = model.collision_geometry_index("a_shape"), model.collision
    record = model.layout.contact.geometries[g]

    def theirs_or(name, default):
        return expected.GetPropertyOrDefault("material", name, default)

    assert collision.relaxation_time[g] == theirs_or("relaxation_time", DEFAULT_RELAXATION_TIME)
    for where, array, property_name in (
        (record.stiffness_index, collision.stiffness, "point_contact_stiffness"),
        (record.dissipation_index, collision.hunt_crossley_dissipation, "hunt_crossley_dissipation"),
    ):
        assert (where >= 0) == expected.HasProperty("material", property_name)
        if where >= 0:
            assert array[where] == theirs_or(property_name, np.nan)


BAD_PROPERTIES = {
    "dynamic above static": ('<drake:mu_static value=".3"/><drake:mu_dynamic value=".4"/>', "greater than the static"),
    "negative friction": ('<drake:mu_static value="-1"/>', "static_friction is -1"),
    "no stiffness": ('<drake:point_contact_stiffness value="0"/>', "point_stiffness is 0"),
    "negative dissipation": ('<drake:hunt_crossley_dissipation value="-1"/>', "dissipation is -1"),
    "negative time": ('<drake:relaxation_time value="-1"/>', "relaxation_time is -1"),
    "no value": ("<drake:mu_static/>", "no attribute 'value'"),
    "no number": ('<drake:mu_static value="soft"/>', "'soft' is not a number"),
    "twice": ('<drake:mu_static value="1"/><drake:mu_static value="1"/>', "only one can hold"),
}


@pytest.mark.parametrize("name", BAD_PROPERTIES)
def test_bad_properties_are_refused(name):
    inside, message = BAD_PROPERTIES[name]
    text = robot("\n", link("a", f"<drake:proximity_properties>{inside}</drake:proximity_properties>"))
    with pytest.raises(mbjax.ParseError, match=f":2: .*{message}"):
        read(text)
    with pytest.raises(mbjax.ParseError, match="is not a number"):
        read(text.replace("drake:proximity_properties", "drake_compliance").replace(inside, "<static_friction/>"))


def group(name: str, *links: str, ignored: str = "", groups: str = "", more: str = "") -> str:
    content = "".join(f'<drake:member link="{member}"/>' for member in links)
    content += "".join(f'<drake:member_group name="{other}"/>' for other in groups)
    content += "".join(f'<drake:ignored_collision_filter_group name="{other}"/>' for other in ignored)
    return f'<drake:collision_filter_group name="{name}"{more}>{content}</drake:collision_filter_group>'


FILTERS = {
    "none": "",
    "within": group("g", "a", "b", ignored="g"),
    "between": group("g", "a", ignored="h") + group("h", "b", "c"),
    "two": group("g", "a", ignored="hg") + group("h", "b", "c", ignored="h"),
    "left out": group("g", "a", ignored="h", more=' ignore="true"') + group("h", "b"),
    "of groups": group("g", ignored="g", groups="h") + group("h", "b", "c", groups="i") + group("i", "d"),
}


@pytest.mark.parametrize("name", FILTERS)
def test_collision_filter_groups_equal_drake(name):
    text = robot(*map(link, "abcd"), FILTERS[name])
    plant, model = read(text)
    expected = pairs_of_bodies_in_drake(*read_with_drake(text))
    assert pairs_of_bodies(plant, model) == expected
    assert Counter(tuple(name.split("::")[0] for name in pair) for pair in model.collision_pairs) == expected


BAD_FILTERS = {
    "no members": (group("g", ignored="g"), "has no members"),
    "unknown link": (group("g", "e"), "no link 'e'"),
    "world": (group("g", "world"), "no link 'world'"),
    "unknown group": (group("g", "a", ignored="h"), "no collision filter group 'h'"),
    "unknown member group": (group("g", "a", groups="h"), "no collision filter group 'h'"),
    "twice": (group("g", "a") + group("g", "b"), "two collision filter groups are named 'g'"),
    "no name": ("<drake:collision_filter_group/>", "no attribute 'name'"),
}


@pytest.mark.parametrize("name", BAD_FILTERS)
def test_bad_filters_are_refused(name):
    filters, message = BAD_FILTERS[name]
    with pytest.raises(mbjax.ParseError, match=message):
        read(robot(*map(link, "abcd"), filters))


def test_groups_that_hold_each_other_and_too_many():
    loop = group("g", "a", ignored="g", groups="h") + group("h", "b", groups="g")
    _, model = read(robot(*map(link, "abc"), loop))
    assert len(model.collision_pairs) == 2
    many = "".join(group(f"g{i}", "a") for i in range(1001))
    with pytest.raises(mbjax.ParseError, match="1001 collision filter groups"):
        read(robot(link("a"), many))


MESH = '<mesh filename="no.stl"/>'


def test_meshes_take_no_part_and_are_listed():
    _, model = read(robot(link("a", shape=MESH), link("b"), link("c")))
    assert model.collision_pairs == (("b::b_shape", "c::c_shape"),)
    assert model.num_collision_geometries == 3
    (entry,) = [e for e in model.report() if e.status == "recorded"]
    assert entry.element == "collision of Mesh and Sphere"
    assert "2 pairs pass through each other" in entry.message
    assert all(f"'{name}::{name}_shape'" in entry.message for name in "abc")
    assert "collision of Mesh and Sphere" in str(model)


def test_one_warning_where_models_pass_through_each_other():
    plant = mbjax.MultibodyPlant(0.01)
    plant.register_collision_geometry("world", np.eye(4), mbjax.HalfSpace(), "ground", 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbjax.ModelWarning)
        mbjax.Parser(plant).add_models(robot(link("a", shape=MESH), link("b")))
    with pytest.warns(mbjax.ModelWarning, match=r"'world::ground' \(HalfSpace\) and 'a::a_shape' \(Mesh\)") as caught:
        model = plant.finalize()
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.collision_pairs == (("world::ground", "b::b_shape"),)


def test_contact_can_be_off():
    text = robot(link("a"), link("b"))
    with pytest.warns(mbjax.ModelWarning):
        assert mbjax.load(text).collision_pairs == ()
    assert load(text, contact_model="none").collision_pairs == ()
    assert load(text, contact_model="point").collision_pairs == (("a::a_shape", "b::b_shape"),)
    with pytest.raises(mbjax.ModelError, match="choose one of 'point', 'hydroelastic'"):
        load(text, contact_model="mesh")


def read_shapes(folder: Path, content: str, hulls: bool = True) -> tuple[list[mbjax.Geometry], LoadNotes]:
    """The collision shapes of a file's links, read with or without hulls."""
    file = folder / "robot.urdf"
    file.write_text(content)
    document = read_xml(file)
    notes = LoadNotes(document.file, "error")
    reader = GeometryReader(ResourceFinder(document.folder, {}), notes, {}, hulls)
    links = document.root.all("link")
    return [reader.read(element.only("collision"), "a", {}) for element in links], notes


def test_meshes_become_hulls(tmp_path):
    """Scaled, all of one number of vertices, and the report says what was cut."""
    trimesh.creation.box((1.0, 2.0, 4.0)).export(tmp_path / "box.stl")
    trimesh.creation.icosphere(3).export(tmp_path / "ball.stl")
    shapes = ['<mesh filename="box.stl" scale="1 .5 -.25"/>', '<mesh filename="ball.stl"/>', MESH]
    text = robot(*(link(name, shape=shape) for name, shape in zip("abc", shapes, strict=True)))
    (box, ball, missing), notes = read_shapes(tmp_path, text)
    assert isinstance(box.shape, mbjax.Convex)
    assert isinstance(ball.shape, mbjax.Convex)
    assert isinstance(missing.shape, mbjax.Mesh)
    assert len(box.shape.vertices) == len(ball.shape.vertices) == 32
    np.testing.assert_allclose(np.abs(box.shape.vertices), 0.5, atol=1e-6)
    of_box, of_ball = notes.entries
    assert of_box.status == of_ball.status == "used"
    assert "kept" not in of_box.message
    assert re.search(r"32 of the hull's 642 vertices are kept, .* mm beyond", of_ball.message)
    assert of_ball.place.endswith("robot.urdf:1")
    unread, _ = read_shapes(tmp_path, text, hulls=False)
    assert all(isinstance(geometry.shape, mbjax.Mesh) for geometry in unread)


def test_meshes_touch_where_that_is_asked_for(tmp_path):
    trimesh.creation.box((1.0, 1.0, 1.0)).export(tmp_path / "box.stl")
    file = tmp_path / "robot.urdf"
    file.write_text(robot(link("a", shape='<mesh filename="box.stl"/>'), link("b")))
    without = load(file, contact_model="point")
    assert without.collision_pairs == ()
    (entry,) = [e for e in without.report() if "no signed distance" in e.message]
    assert "meshes='hull'" in entry.message
    model = load(file, contact_model="point", meshes="hull")
    assert model.collision_pairs == (("a::a_shape", "b::b_shape"),)
    kinds = [geometry.kind for geometry in model.layout.contact.geometries]
    assert kinds[0] == "Convex"
    with pytest.raises(mbjax.ModelError, match="choose one of 'hull', 'none'"):
        load(file, meshes="convex")


def test_meshes_that_cannot_be_read_are_refused_at_their_line(tmp_path, monkeypatch):
    (tmp_path / "broken.stl").write_bytes(b"solid no\x00")
    text = robot("\n", link("a", shape='<mesh filename="broken.stl"/>'))
    with pytest.raises(mbjax.ParseError, match=r"robot.urdf:2: .*broken.stl"):
        read_shapes(tmp_path, text)
    monkeypatch.setitem(sys.modules, "trimesh", None)
    with pytest.raises(mbjax.ParseError, match=r'robot.urdf:2: .*pip install "mbjax\[mesh\]".*meshes='):
        read_shapes(tmp_path, text)
