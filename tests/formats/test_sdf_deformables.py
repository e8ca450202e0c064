"""Deformable links of SDFormat: as Drake reads them, and refused with words where it would not or could not."""

import pathlib
import warnings

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pydrake.multibody.fem as fem
import pytest
from pydrake.multibody.parsing import Parser as DrakeParser
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph, DiscreteContactApproximation
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder

from mbjax import DeformableMaterial, default_state, rollout, to_mjcf, to_sdf, to_urdf
from mbjax.command_line import main
from mbjax.errors import ModelError, ModelWarning, ParseError, UnsupportedError
from mbjax.formats import Parser, load
from mbjax.formats.notes.load_notes import LoadNotes
from mbjax.formats.records.robot_records import RobotRecord
from mbjax.formats.sdf import read_deformables
from mbjax.formats.sdf.reader import Options, read_sdf
from mbjax.formats.xml.source import read_xml
from mbjax.geometry import Box, Mesh, Sphere, tetrahedra_of, write_tetrahedra
from mbjax.plant import MultibodyPlant
from mbjax.spatial import RigidTransform
from tests.formats.test_damaged_files import damaged
from tests.geometry.vtk_texts import POINTS, TETRAHEDRA, plain

PAD = """<collision name="c"><geometry><mesh><uri>pad.vtk</uri><scale>0.1 0.2 -0.3</scale></mesh></geometry>
  <drake:proximity_properties><drake:mu_dynamic>0.4</drake:mu_dynamic>
  <drake:hunt_crossley_dissipation>5</drake:hunt_crossley_dissipation><drake:relaxation_time>0.2</drake:relaxation_time>
  </drake:proximity_properties></collision>"""
ALL = """<drake:deformable_properties><drake:youngs_modulus>3e4</drake:youngs_modulus>
  <drake:poissons_ratio>0.45</drake:poissons_ratio><drake:mass_density>1200</drake:mass_density>
  <drake:mass_damping>0.3</drake:mass_damping><drake:stiffness_damping>0.01</drake:stiffness_damping>
  <drake:material_model>neohookean</drake:material_model></drake:deformable_properties>"""
WALLS = """<drake:wall_boundary_condition><drake:point_on_plane>0.1 0.2 0.3</drake:point_on_plane>
  <drake:outward_normal>0 3 4</drake:outward_normal></drake:wall_boundary_condition>
  <drake:wall_boundary_condition><drake:point_on_plane>0 0 -1</drake:point_on_plane>
  <drake:outward_normal>0 0 -1</drake:outward_normal></drake:wall_boundary_condition>"""
WALL = """<drake:wall_boundary_condition><drake:point_on_plane>0 0.101 0</drake:point_on_plane>
  <drake:outward_normal>0 1 0</drake:outward_normal></drake:wall_boundary_condition>"""
NOTHING = "<drake:deformable_properties/>"
BALL = "<geometry><sphere><radius>0.1</radius></sphere></geometry>"
HINT = (
    "<drake:proximity_properties><drake:mesh_resolution_hint>{}</drake:mesh_resolution_hint>"
    "</drake:proximity_properties>"
)
OTHER = '<link name="rigid"/>'


def sdf(contents: str, more: str = "") -> str:
    return f'<sdf version="1.9" xmlns:drake="drake"><model name="m"{more}>{contents}</model></sdf>'


def soft(inner: str = PAD + NOTHING, name: str = "pad") -> str:
    return f'<link name="{name}">{inner}</link>'


def collision(geometry: str, more: str = "") -> str:
    return f'<collision name="c"><geometry>{geometry}</geometry>{more}</collision>'


def said(contents: str) -> str:
    """A deformable ball with properties of its material."""
    return soft(
        collision(BALL[10:-11], HINT.format(0.1))
        + f"<drake:deformable_properties>{contents}</drake:deformable_properties>"
    )


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "pad.vtk").write_text(plain())
    return tmp_path


def read(folder: pathlib.Path, text: str, on_unsupported: str = "error") -> tuple[list[RobotRecord], LoadNotes]:
    """The records of a file, and what was noted of it."""
    path = folder / "soft.sdf"
    path.write_text(text)
    document = read_xml(path)
    notes = LoadNotes(document.file, on_unsupported)
    return read_sdf(document, notes, Options({}, "warn", "couple", hulls=False)), notes


def drake_body(path: pathlib.Path, name: str):
    """Drake's deformable body, and the friction of its geometry."""
    plant, scene_graph = AddMultibodyPlantSceneGraph(DiagramBuilder(), 0.01)
    DrakeParser(plant).AddModels(str(path))
    deformables = plant.deformable_model()
    body = deformables.GetBodyByName(name)
    properties = scene_graph.model_inspector().GetProximityProperties(body.geometry_id())
    return body, deformables.GetReferencePositions(body.body_id()).reshape(-1, 3), properties


def test_every_tag_is_read_as_drake_reads_it(folder: pathlib.Path) -> None:
    pose = "<pose relative_to='f'>0.1 0.2 0.3 0.4 0.5 0.6</pose>"
    text = sdf(
        "<pose>1 2 3 .1 .2 .3</pose>" + OTHER + "<frame name='f'><pose>.3 .2 .1 0 .5 0</pose></frame>"
        + soft(pose + PAD + ALL + WALLS)
    )  # fmt: skip
    [robot], notes = read(folder, text)
    [record] = robot.deformables
    assert record.material == {
        "youngs_modulus": 3e4, "poissons_ratio": 0.45, "mass_density": 1200.0, "mass_damping": 0.3,
        "stiffness_damping": 0.01, "model": "neo_hookean",
    }  # fmt: skip
    assert [link.name for link in robot.links] == ["rigid"]
    assert record.place == f"{folder / 'soft.sdf'}:1"
    assert isinstance(record.shape, Mesh)
    assert record.resolution_hint is None
    np.testing.assert_array_equal(record.mesh.points, POINTS * np.array([0.1, 0.2, -0.3]))
    np.testing.assert_array_equal(record.mesh.tetrahedra, TETRAHEDRA[:, [2, 1, 0, 3]])
    assert [(wall.p_WQ, wall.n_W) for wall in record.walls] == [
        ((0.1, 0.2, 0.3), (0.0, 0.6, 0.8)), ((0.0, 0.0, -1.0), (0.0, 0.0, -1.0)),
    ]  # fmt: skip
    assert any(e.element == "link 'pad'" and "5 nodes and 2 tetrahedra" in e.message for e in notes.entries)

    body, positions, properties = drake_body(folder / "soft.sdf", "pad")
    X = record.X_WG
    np.testing.assert_allclose(record.mesh.points @ np.asarray(X.rotation).T + X.translation, positions, atol=1e-14)
    config = body.config()
    for name, key in (
        ("mass_damping", "mass_damping_coefficient"),
        ("stiffness_damping", "stiffness_damping_coefficient"),
    ):
        assert record.material[name] == getattr(config, key)()
    for name in ("youngs_modulus", "poissons_ratio", "mass_density"):
        assert record.material[name] == getattr(config, name)()
    assert config.material_model() == fem.MaterialModel.kNeoHookean
    friction = properties.GetProperty("material", "coulomb_friction")
    assert record.properties.friction == (friction.static_friction(), friction.dynamic_friction())
    for name in ("hunt_crossley_dissipation", "relaxation_time"):
        assert getattr(record.properties, name) == properties.GetProperty("material", name)


def test_what_a_file_leaves_out_is_left_to_the_defaults(folder: pathlib.Path) -> None:
    [robot], _ = read(folder, sdf(soft(collision("<mesh><uri>pad.vtk</uri></mesh>") + NOTHING)))
    [record] = robot.deformables
    assert (record.material, record.walls, record.rgba) == ({}, [], None)
    _, _, properties = drake_body(folder / "soft.sdf", "pad")
    friction = properties.GetProperty("material", "coulomb_friction")
    assert record.properties.friction == (friction.static_friction(), friction.dynamic_friction())


@pytest.mark.parametrize("word", ["linear_corotated", "corotated", "neohookean", "linear"])
def test_models_of_materials_are_those_of_drake(word: str, folder: pathlib.Path) -> None:
    [robot], _ = read(folder, sdf(said(f"<drake:material_model>{word}</drake:material_model>")))
    assert robot.deformables[0].material["model"].replace("_", "") == word.replace("_", "")


def test_shapes_are_filled_with_tetrahedra(folder: pathlib.Path) -> None:
    """Drake fills spheres alone."""
    box = collision("<box><size>0.1 0.2 0.3</size></box>", HINT.format(0.1))
    [robot], _ = read(folder, sdf(said("") + soft(box + NOTHING, "block")))
    ball, block = robot.deformables
    assert (ball.shape, ball.resolution_hint, ball.mesh.num_tetrahedra) == (Sphere(0.1), 0.1, 64)
    assert (block.shape, block.mesh.num_tetrahedra) == (Box((0.1, 0.2, 0.3)), 36)


def test_a_visual_gives_the_color_alone(folder: pathlib.Path) -> None:
    look = "<material><diffuse>0.8 0.7 0.5 1</diffuse></material>"
    mesh = f'<visual name="v"><geometry><mesh><uri>pad.vtk</uri></mesh></geometry>{look}</visual>'
    [robot], notes = read(folder, sdf(soft(PAD + NOTHING + mesh)))
    assert robot.deformables[0].rgba == (0.8, 0.7, 0.5, 1.0)
    assert any("drawn by the surface of its tetrahedra" in entry.message for entry in notes.entries)
    [robot], notes = read(
        folder, sdf(soft(PAD + NOTHING + f'<visual name="v"><geometry><empty/></geometry>{look}</visual>'))
    )
    assert robot.deformables[0].rgba == (0.8, 0.7, 0.5, 1.0)
    assert not any("drawn" in entry.message for entry in notes.entries)


def test_what_drake_does_not_use_is_listed(folder: pathlib.Path) -> None:
    more = (
        "<drake:proximity_properties><drake:mu_static>2</drake:mu_static><drake:mu_dynamic>0.4</drake:mu_dynamic>"
        "<drake:mesh_resolution_hint>0.1</drake:mesh_resolution_hint></drake:proximity_properties>"
        "<surface><friction><ode><mu>3</mu></ode></friction></surface>"
    )
    [robot], notes = read(folder, sdf(soft(collision("<mesh><uri>pad.vtk</uri></mesh>", more) + NOTHING)))
    [record] = robot.deformables
    assert record.properties.friction == (0.4, 0.4)
    assert record.resolution_hint is None
    listed = {entry.element: entry.message for entry in notes.entries if "as in Drake" in entry.message}
    assert set(listed) == {"<drake:mu_static>", "<drake:mesh_resolution_hint>", "<surface>"}
    with pytest.raises(UnsupportedError, match="<inertial>: it is for rigid links; a deformable one has a density"):
        read(folder, sdf(soft(PAD + NOTHING + "<inertial/>")))
    _, notes = read(folder, sdf(soft(PAD + NOTHING + "<inertial/>")), on_unsupported="warn")
    assert any("it is for rigid links" in text for text in notes.warnings())


def test_the_frame_of_a_model_stays_where_it_is(folder: pathlib.Path) -> None:
    """A deformable link, though the first, is not what the frame of its model moves with: as in Drake, the world is."""
    text = sdf("<pose>1 2 3 0 0 1</pose>" + soft() + OTHER + '<frame name="g"><pose>0 0 1 0 0 0</pose></frame>')
    [robot], _ = read(folder, text)
    frame = next(frame for frame in robot.frames if frame.name == "__model__")
    assert frame.link == "world"
    np.testing.assert_allclose(np.asarray(frame.X_PF.translation), [1, 2, 3])
    plant, _ = AddMultibodyPlantSceneGraph(DiagramBuilder(), 0.01)
    DrakeParser(plant).AddModels(str(folder / "soft.sdf"))
    drakes = plant.GetFrameByName("__model__")
    assert drakes.body().name() == "world"
    np.testing.assert_allclose(np.asarray(frame.X_PF.rotation), drakes.GetFixedPoseInBodyFrame().rotation().matrix())


FIXED = '\n<joint name="j" type="fixed"><parent>{}</parent><child>{}</child></joint>'
REFUSED: dict[str, tuple[str, int, str]] = {
    "no collision": (sdf(soft("\n" + NOTHING)), 1, "has one <collision>, which is also what it is made of; here are 0"),
    "two collisions": (sdf(soft(PAD + PAD.replace('"c"', '"d"') + NOTHING)), 1, "here are 2"),
    "moved": (sdf(soft(collision(BALL[10:-11], "<pose>0 0 1 0 0 0</pose>") + NOTHING)), 1, "put the <pose> into"),
    "empty": (sdf("\n" + soft(collision("<empty/>") + NOTHING)), 2, "its <geometry> is empty"),
    "no hint": (sdf("\n" + soft(collision(BALL[10:-11]) + NOTHING)), 2, "must say <drake:mesh_resolution_hint>"),
    "bad hint": (sdf(soft(collision(BALL[10:-11], HINT.format(-1)) + NOTHING)), 1, "a length in m above 0 expected"),
    "tiny hint": (sdf(soft(collision(BALL[10:-11], HINT.format(1e-4)) + NOTHING)), 1, "give a longer"),
    "plane": (sdf(soft(collision("<plane/>", HINT.format(1)) + NOTHING)), 1, "the HalfSpace has no mesh"),
    "no file": (sdf(soft(PAD.replace("pad.vtk", "no.vtk") + NOTHING)), 1, r"'no.vtk' was not found \(tried.*package"),
    "surface": (sdf(soft(PAD.replace("pad.vtk", "pad.obj") + NOTHING)), 1, "a .obj file holds a surface"),
    "bad mesh": (sdf("\n" + soft(PAD.replace("pad.vtk", "bad.vtk") + NOTHING)), 2, "bad.vtk:12: the mesh has"),
    "no modulus": (sdf(said("\n<drake:youngs_modulus>0</drake:youngs_modulus>")), 2, "a number of Pa above 0 expected"),
    "infinite modulus": (sdf(said("\n<drake:youngs_modulus>inf</drake:youngs_modulus>")), 2, "inf"),
    "word": (sdf(said("\n<drake:youngs_modulus>soft</drake:youngs_modulus>")), 2, "soft"),
    "ratio": (sdf(said("\n<drake:poissons_ratio>0.5</drake:poissons_ratio>")), 2, "between -1 and 0.5 expected"),
    "low ratio": (sdf(said("\n<drake:poissons_ratio>-1</drake:poissons_ratio>")), 2, "between -1 and 0.5 expected"),
    "density": (sdf(said("\n<drake:mass_density>-1</drake:mass_density>")), 2, "a number of kg/m³ above 0"),
    "damping": (sdf(said("\n<drake:mass_damping>-1</drake:mass_damping>")), 2, "a number of 1/s, 0 or above"),
    "stiff": (sdf(said("\n<drake:stiffness_damping>-1</drake:stiffness_damping>")), 2, "a number of s, 0 or above"),
    "model": (sdf(said("\n<drake:material_model>jelly</drake:material_model>")), 2, "one of linear_corotated, corot"),
    "twice": (sdf(said(2 * "\n<drake:youngs_modulus>1</drake:youngs_modulus>")), 3, "only one can hold"),
    "friction": (sdf(soft(PAD.replace(">0.4<", ">-1<") + NOTHING)), 2, "at least 0 expected"),
    "wall": (sdf(soft(PAD + NOTHING + WALLS.replace("0 3 4", "0 0 0"))), 5, "a vector other than zero expected"),
    "wall without point": (
        sdf(soft(PAD + NOTHING + WALLS.replace("point_on_plane", "point"))), 4, "has no <drake:point_on_plane>",
    ),
    "static": (sdf("<static>true</static>" + soft()), 1, "a deformable link stands in a <static> model"),
    "joint": (sdf(OTHER + soft() + FIXED.format("rigid", "pad")), 5, "to the deformable link 'pad'"),
    "joint on it": (sdf(OTHER + soft() + FIXED.format("pad", "rigid")), 5, "to the deformable link 'pad'"),
    "frame": (sdf(OTHER + soft() + '\n<frame name="f" attached_to="pad"/>'), 5, "to the deformable link 'pad'"),
    "two visuals": (sdf(soft(PAD + NOTHING + 2 * "\n<visual/>")), 6, "one"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_place(name: str, folder: pathlib.Path) -> None:
    text, line, words = REFUSED[name]
    (folder / "bad.vtk").write_text(plain([[1, 0, 2, 3], [0, 2, 1, 4]]))
    (folder / "pad.obj").write_text("v 0 0 0\n")
    with pytest.raises(ParseError, match=words) as caught:
        read(folder, text)
    assert caught.value.line == line
    assert len(str(caught.value)) < 1000


def test_a_file_makes_no_more_tetrahedra_than_allowed(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_deformables, "MAX_TETRAHEDRA", 100)
    balls = "\n".join(said("").replace('"pad"', f'"ball {k}"') for k in range(3))
    with pytest.raises(ParseError, match="up to here have 128 tetrahedra; at most 100 are read of one file") as caught:
        read(folder, sdf(balls))
    assert caught.value.line == 2


def test_numbers_no_body_has_are_told(folder: pathlib.Path) -> None:
    _, notes = read(folder, sdf(said("<drake:mass_density>1e9</drake:mass_density>")))
    assert any("1e9" in text for text in notes.warnings())


def test_a_loaded_model_has_its_deformable_bodies(folder: pathlib.Path) -> None:
    """All that the file says is in the model: nodes in the world as Drake has them, numbers, held nodes, report."""
    start = "<pose>0 0 1 0 0 0.3</pose>" + OTHER + soft("<pose>0 0.1 0 0.2 0 0</pose>" + PAD + ALL + WALL)
    (folder / "pad.sdf").write_text(sdf(start))  # Drake 1.51 fills no spheres
    read(folder, sdf(start + soft(collision(BALL[10:-11], HINT.format(0.1)) + NOTHING, "ball")))
    model = load(folder / "soft.sdf", time_step=0.01, dtype="float64")
    deformables = model.deformables
    assert deformables is not None
    assert deformables.names == ("pad", "ball")
    assert [body.scoped_name for body in deformables.layout.bodies] == ["m::pad", "m::ball"]
    _, positions, _ = drake_body(folder / "pad.sdf", "pad")
    np.testing.assert_allclose(deformables.reference_positions[deformables.nodes("pad")], positions, atol=1e-15)
    assert float(deformables.material("pad")["youngs_modulus"][0]) == 3e4
    assert float(deformables.material("ball")["youngs_modulus"][0]) == 1e8
    assert deformables.layout.bodies[0].law == "neo_hookean"
    held = deformables.mesh.is_held[deformables.nodes("pad")]
    np.testing.assert_array_equal(held, positions[:, 1] < 0.101)
    assert 0 < held.sum() < len(held)
    entries = [str(entry) for entry in model.report()]
    assert any("5 nodes and 2 tetrahedra" in entry for entry in entries)
    assert any("2 deformable bodies" in entry for entry in entries)


def test_what_may_touch_and_what_is_not_kept(folder: pathlib.Path) -> None:
    """Friction and filters of deformable links are read; the report says which shapes they pass through."""
    group = (
        '<drake:collision_filter_group name="g"><drake:member>pad</drake:member><drake:member>rigid</drake:member>'
        "<drake:ignored_collision_filter_group>g</drake:ignored_collision_filter_group></drake:collision_filter_group>"
    )
    look = '<visual name="v"><material><diffuse>1 0 0 1</diffuse></material></visual>'
    ball = "<geometry><sphere><radius>0.1</radius></sphere></geometry>"
    soft_ball = (
        f'<collision name="soft">{ball}<drake:proximity_properties><drake:compliant_hydroelastic/>'
        "<drake:hydroelastic_modulus>1e6</drake:hydroelastic_modulus>"
        "<drake:mesh_resolution_hint>0.1</drake:mesh_resolution_hint></drake:proximity_properties></collision>"
    )
    balls = f'{soft_ball}<collision name="hard">{ball}</collision>'
    others = f'<link name="rigid">{balls}</link><link name="free">{balls}</link>'
    read(folder, sdf(others + soft(PAD + NOTHING + WALL + look) + group))
    model = load(folder / "soft.sdf", time_step=0.01, contact_model="point")
    assert model.deformables is not None
    touched = [model.collision_geometry_name(pair.geometry) for pair in model.deformables.layout.contacts]
    assert touched == ["free::soft"]
    entries = [str(entry) for entry in model.report()]
    assert any("passes through shapes without a pressure field: 'free::hard' (" in entry for entry in entries)
    assert not any("'rigid::hard'" in entry for entry in entries)  # the file leaves it out
    assert any("color of deformable body 'pad'" in entry for entry in entries)


def test_deformable_bodies_need_a_step(folder: pathlib.Path) -> None:
    read(folder, sdf(OTHER + "\n" + soft(PAD + NOTHING + WALL)))
    with pytest.raises(ParseError, match=r"link 'pad' is deformable, .* give load\(…, time_step=0.005\)") as caught:
        load(folder / "soft.sdf")
    assert caught.value.line == 2
    plant = MultibodyPlant(time_step=0.01, contact_model="none")
    Parser(plant).add_models(folder / "soft.sdf")
    assert plant.finalize().deformables is not None


def test_elements_that_steps_cannot_move_are_refused_with_their_place(folder: pathlib.Path) -> None:
    """Two with a common face, and no wall: Drake loads them, and stops in the first step."""
    read(folder, sdf(OTHER + "\n" + soft()))
    with pytest.raises(ModelError, match=r"soft.sdf:2: .*element 0 \(nodes .*\) of deformable body 'pad', which has 2"):
        load(folder / "soft.sdf", time_step=0.01)


def test_walls_that_hold_nothing_are_refused(folder: pathlib.Path) -> None:
    """Drake takes them, and holds nothing."""
    read(folder, sdf(soft(PAD + NOTHING + "\n" + WALL.replace("0.101", "-9"))))
    with pytest.raises(ParseError, match="no node of 'pad' is behind the wall") as caught:
        load(folder / "soft.sdf", time_step=0.01)
    assert caught.value.line == 5


@pytest.mark.parametrize("name", ["mass_density", "youngs_modulus"])
def test_numbers_beyond_what_is_computed_with_are_refused(name: str, folder: pathlib.Path) -> None:
    read(folder, sdf(said(f"<drake:{name}>1e200</drake:{name}>")))
    with pytest.raises(
        ParseError, match=f"the material's {name} of deformable body 'pad' of 1e.200.* overflow"
    ) as caught:
        load(folder / "soft.sdf", time_step=0.01)
    assert caught.value.line == 1


def test_damaged_files_load_or_are_refused(folder: pathlib.Path) -> None:
    """As tests/formats/test_damaged_files.py does with other files."""
    whole = sdf(OTHER + soft(PAD + ALL + WALL) + soft(collision(BALL[10:-11], HINT.format(0.1)) + NOTHING, "ball"))
    outcomes = []
    for seed in range(60):
        (folder / "soft.sdf").write_text(damaged(whole, np.random.default_rng(seed)), errors="surrogatepass")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)
            try:
                load(folder / "soft.sdf", time_step=0.01, on_unsupported="warn" if seed % 2 else "error")
            except ModelError as error:
                outcomes.append("refused" if 0 < len(str(error)) < 20_000 else f"{seed}: {error}")
            else:
                outcomes.append("loads")
    assert set(outcomes) == {"loads", "refused"}


DIRECTIVES = """
directives:
- add_model:
    file: package://scene/soft.sdf
    name: first
    default_free_body_pose:
      pad: {translation: [0.1, 0.2, 0.3], rotation: !Rpy {deg: [10, 20, 30]}}
- add_model: {file: "package://scene/soft.sdf", name: second}
"""


def test_directives_add_and_place_deformable_bodies(folder: pathlib.Path) -> None:
    write_tetrahedra(folder / "pad.vtk", tetrahedra_of(Box((0.3, 0.2, 0.1)), 0.2))
    read(folder, sdf(OTHER + soft("<pose>0 1 0 0 0 0</pose>" + PAD + NOTHING)))
    (folder / "package.xml").write_text("<package><name>scene</name></package>")
    (folder / "scene.dmd.yaml").write_text(DIRECTIVES)
    deformables = load(folder / "scene.dmd.yaml", time_step=0.01, dtype="float64").deformables
    assert deformables is not None
    assert [body.scoped_name for body in deformables.layout.bodies] == ["first::pad", "second::pad"]
    builder = DiagramBuilder()
    plant, _ = AddMultibodyPlantSceneGraph(builder, 0.01)
    parser = DrakeParser(plant)
    parser.package_map().Add("scene", str(folder))
    parser.AddModels(str(folder / "scene.dmd.yaml"))
    plant.Finalize()
    context = plant.GetMyContextFromRoot(builder.Build().CreateDefaultContext())
    for k, name in enumerate(("first", "second")):
        body = plant.deformable_model().GetBodyByName("pad", plant.GetModelInstanceByName(name))
        theirs = plant.deformable_model().GetPositions(context, body.body_id()).T
        np.testing.assert_allclose(deformables.reference_positions[deformables.nodes(k)], theirs, atol=1e-15)
    read(folder, sdf(OTHER + soft(PAD + NOTHING + WALL)))
    with pytest.raises(ParseError, match="the pose of 'pad', which its file puts behind walls") as caught:
        load(folder / "scene.dmd.yaml", time_step=0.01)
    assert caught.value.line == 7


def test_commands_take_a_step_where_they_need_one(folder: pathlib.Path, capsys: pytest.CaptureFixture) -> None:
    read(folder, sdf(OTHER + soft(PAD + NOTHING + WALL)))
    assert main(["check", str(folder / "soft.sdf")]) in (0, None)
    assert "1 file: 0 errors" in capsys.readouterr().out
    main(["inspect", str(folder / "soft.sdf")])


def test_what_is_written_is_read_again(folder: pathlib.Path) -> None:
    """Nodes, tetrahedra, walls and numbers to the bit, also of a body that a program has made."""
    plant = MultibodyPlant(time_step=0.01)
    X_WD = RigidTransform(np.array([[0.0, -0.6, 0.8], [1.0, 0.0, 0.0], [0.0, 0.8, 0.6]]), np.array([0.1, 0.2, 0.3]))
    other = plant.add_model_instance("other")
    material = DeformableMaterial(2.5e4, 0.31, 812.0, 0.21, 0.013, "corotated")
    plant.add_deformable_body(
        "pad", Box((0.1, 0.2, 0.3)), material, pose=X_WD, resolution_hint=0.15, model_instance=other
    )
    plant.set_wall_boundary_condition("pad", (0.1, 0.2, 0.3), (1.0, 2.0, 0.0))
    plant.add_deformable_body("pad", Sphere(0.1), pose=X_WD, resolution_hint=0.1)
    model = plant.finalize(dtype="float64")
    text = to_sdf(model, folder / "out.sdf", mesh_folder=folder / "meshes")
    assert "<uri>meshes/pad.vtk</uri>" in text
    assert "<uri>meshes/pad_1.vtk</uri>" in text
    again = load(folder / "out.sdf", time_step=0.01, dtype="float64")
    ours, theirs = model.deformables, again.deformables
    assert ours is not None
    assert theirs is not None
    by_size = sorted(range(2), key=lambda i: ours.mesh.nodes(i).stop - ours.mesh.nodes(i).start)
    of_theirs = sorted(range(2), key=lambda i: theirs.mesh.nodes(i).stop - theirs.mesh.nodes(i).start)
    for a, b in zip(by_size, of_theirs, strict=True):
        np.testing.assert_array_equal(
            ours.reference_positions[ours.nodes(a)], theirs.reference_positions[theirs.nodes(b)]
        )
        np.testing.assert_array_equal(ours.tetrahedra(a), theirs.tetrahedra(b))
        np.testing.assert_array_equal(ours.mesh.is_held[ours.nodes(a)], theirs.mesh.is_held[theirs.nodes(b)])
        for name in ("youngs_modulus", "poissons_ratio", "mass_density", "mass_damping", "stiffness_damping"):
            assert ours.material(a)[name] == theirs.material(b)[name], name
        assert ours.layout.bodies[a].law == theirs.layout.bodies[b].law


def test_what_cannot_be_written_is_refused(folder: pathlib.Path) -> None:
    plant = MultibodyPlant(time_step=0.01)
    modulus = np.linspace(1e4, 2e4, 6)
    plant.add_deformable_body("pad", Box((0.1, 0.1, 0.1)), DeformableMaterial(modulus), resolution_hint=1.0)
    plant.set_wall_boundary_condition("pad", (0, 0, 0), (0, 0, 1))
    model = plant.finalize(dtype="float64")
    with pytest.raises(UnsupportedError, match="deformable body 'pad': its youngs_modulus differs from element to"):
        to_sdf(model, mesh_folder=folder)
    even = eqx.tree_at(lambda m: m.deformables.youngs_modulus, model, jnp.full(6, 1e4))
    with pytest.raises(UnsupportedError, match="its tetrahedra need a mesh file: give mesh_folder="):
        to_sdf(even)
    assert "<drake:youngs_modulus>10000" in to_sdf(even, mesh_folder=folder)
    moved = eqx.tree_at(lambda m: m.deformables.reference_positions, even, even.deformables.reference_positions + 1.0)
    with pytest.raises(UnsupportedError, match="its walls would hold other nodes now"):
        to_sdf(moved, mesh_folder=folder)
    off = eqx.tree_at(lambda m: m.deformables.enabled, even, jnp.zeros(1))
    with pytest.raises(UnsupportedError, match="it is disabled"):
        to_sdf(off, mesh_folder=folder)
    for write in (to_urdf, to_mjcf):
        with pytest.raises(UnsupportedError, match=r"deformable body 'pad': (URDF|MJCF) has none; to_sdf writes them"):
            write(even)
        with pytest.warns(ModelWarning, match="left out although it changes the motion"):
            assert "pad" not in write(even, on_unsupported="warn")


def test_a_loaded_body_moves_as_drakes(folder: pathlib.Path) -> None:
    """From the file to the motion: a swinging pad that a wall holds, in double precision."""
    read(folder, sdf(soft(PAD + ALL.replace("neohookean", "linear_corotated") + WALL)))
    num_steps = 20
    builder = DiagramBuilder()
    plant, _ = AddMultibodyPlantSceneGraph(builder, 0.005)
    DrakeParser(plant).AddModels(str(folder / "soft.sdf"))
    plant.set_discrete_contact_approximation(DiscreteContactApproximation.kSap)
    plant.Finalize()
    simulator = Simulator(builder.Build())
    simulator.AdvanceTo((num_steps - 0.5) * 0.005)
    body = plant.deformable_model().GetBodyByName("pad").body_id()
    context = plant.GetMyContextFromRoot(simulator.get_mutable_context())
    theirs = plant.deformable_model().GetPositions(context, body).T
    model = load(folder / "soft.sdf", time_step=0.005, dtype="float64")
    assert model.deformables is not None
    states = rollout(model, default_state(model), None, num_steps)
    ours = np.asarray(model.deformables.positions(states, "pad"))[-1]
    assert np.abs(ours - np.asarray(model.deformables.reference_positions)).max() > 1e-3
    np.testing.assert_allclose(ours, theirs, atol=1e-12)
