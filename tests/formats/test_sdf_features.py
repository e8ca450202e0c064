"""Each part of SDFormat is used, or it is in the report, or it is refused."""

import csv
import math
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from mbjax.errors import ModelWarning, ParseError, UnsupportedError
from mbjax.formats import Parser, load
from mbjax.formats.sdf import leftovers
from mbjax.geometry import Box, Capsule, Cylinder, Ellipsoid, HalfSpace, Mesh, Sphere
from mbjax.model import default_positions
from mbjax.plant import MultibodyPlant
from tests.drake_by_name import pose_in_body

ELEMENTS = Path(__file__).parent / "sdformat_elements.csv"


def sdf(content: str, version: str = "1.9") -> str:
    return f'<sdf version="{version}">{content}</sdf>'


def model(content: str, version: str = "1.9") -> str:
    return sdf(f'<model name="m">{content}</model>', version)


def link(inner: str, name: str = "a") -> str:
    return f'<link name="{name}">{inner}</link>'


def joint(inner: str = "<axis/>", kind: str = "revolute", ends: str = "ab", name: str = "j") -> str:
    ends_text = f"<parent>{ends[0]}</parent><child>{ends[1]}</child>"
    return link("") + link("", "b") + f'<joint name="{name}" type="{kind}">{ends_text}{inner}</joint>'


def shape(text: str, tag: str = "collision", more: str = "") -> str:
    return link(f'<{tag} name="s"><geometry>{text}</geometry>{more}</{tag}>')


def read(text: str, **options) -> MultibodyPlant:
    plant = MultibodyPlant(contact_model="point")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        Parser(plant, **options).add_models(text)
    return plant


def reported(plant: MultibodyPlant, status: str, text: str) -> bool:
    return any(e.status == status and text in f"{e.element}: {e.message}" for e in plant.report.entries)


def axis(inner: str, tag: str = "axis") -> str:
    return f"<{tag}>{inner}</{tag}>"


def only(plant: MultibodyPlant):
    (found,) = plant.joints
    return found


# content of a model: what must hold of the plant
USED = {
    "mass": (link("<inertial><mass>3</mass></inertial>"), lambda p: p.bodies[1].inertia.mass == 3.0),
    "mass left out": (link(""), lambda p: p.bodies[1].inertia.mass == 1.0),
    "massless": (
        link(
            "<inertial><mass>0</mass><inertia><ixx>0</ixx><iyy>0</iyy><izz>0</izz></inertia></inertial>",
        ),
        lambda p: p.bodies[1].inertia is None,
    ),
    "inertia": (
        link("<inertial><inertia><ixx>.5</ixx><iyy>.6</iyy><izz>.7</izz><ixy>.1</ixy></inertia></inertial>"),
        lambda p: np.allclose(p.bodies[1].inertia.unit_inertia.products, [0.1, 0.0, 0.0]),
    ),
    "inertial pose": (
        link("<inertial><pose>1 2 3 0 0 0</pose></inertial>"),
        lambda p: np.allclose(p.bodies[1].inertia.com, [1, 2, 3]),
    ),
    "box": (shape("<box><size>1 2 3</size></box>"), lambda p: p.collisions[0].geometry.shape == Box((1, 2, 3))),
    "sphere": (shape("<sphere><radius>2</radius></sphere>"), lambda p: p.collisions[0].geometry.shape == Sphere(2)),
    "cylinder": (
        shape("<cylinder><radius>1</radius><length>2</length></cylinder>"),
        lambda p: p.collisions[0].geometry.shape == Cylinder(1, 2),
    ),
    "capsule": (
        shape("<capsule><radius>1</radius><length>2</length></capsule>"),
        lambda p: p.collisions[0].geometry.shape == Capsule(1, 2),
    ),
    "drake:capsule": (
        shape("<drake:capsule><radius>1</radius><length>2</length></drake:capsule>"),
        lambda p: p.collisions[0].geometry.shape == Capsule(1, 2),
    ),
    "ellipsoid": (
        shape("<ellipsoid><radii>1 2 3</radii></ellipsoid>"),
        lambda p: p.collisions[0].geometry.shape == Ellipsoid(1, 2, 3),
    ),
    "drake:ellipsoid": (
        shape("<drake:ellipsoid><a>1</a><b>2</b><c>3</c></drake:ellipsoid>"),
        lambda p: p.collisions[0].geometry.shape == Ellipsoid(1, 2, 3),
    ),
    "plane": (
        shape("<plane><normal>0 -2 0</normal></plane>"),
        lambda p: (
            p.collisions[0].geometry.shape == HalfSpace()
            and np.allclose(np.array(p.collisions[0].geometry.rotation)[:, 2], [0, -1, 0])
        ),
    ),
    "mesh": (
        shape("<mesh><uri>no.obj</uri><scale>1 2 3</scale></mesh>"),
        lambda p: p.collisions[0].geometry.shape == Mesh("no.obj", None, (1, 2, 3)),
    ),
    "empty": (shape("<empty/>"), lambda p: not p.collisions),
    "diffuse": (
        shape("<box><size>1 1 1</size></box>", "visual", "<material><diffuse>1 0 .5</diffuse></material>"),
        lambda p: p.bodies[1].visual[0].rgba == (1, 0, 0.5, 1),
    ),
    "drake:visual": (
        link(
            '<drake:visual name="v"><drake:pose>1 0 0 0 0 0</drake:pose><drake:geometry><drake:sphere>'
            "<drake:radius>1</drake:radius></drake:sphere></drake:geometry></drake:visual>"
        ),
        lambda p: p.bodies[1].visual[0].translation == (1, 0, 0),
    ),
    "roles off": (
        shape(
            "<empty/>",
            "visual",
            '<drake:perception_properties enabled="false"/><drake:illustration_properties enabled="false"/>',
        ),
        lambda p: not p.bodies[1].visual and reported(p, "ignored", "turned off"),
    ),
    "collision pose": (
        link('<pose>0 0 1 0 0 0</pose><collision name="c"><pose relative_to="__model__">0 0 3 0 0 0</pose>'
             "<geometry><sphere><radius>1</radius></sphere></geometry></collision>"),
        lambda p: np.allclose(p.collisions[0].geometry.translation, [0, 0, 2]),
    ),
    "friction of ODE": (
        shape("<sphere><radius>1</radius></sphere>", more=(
            "<surface><friction><ode><mu>.8</mu><mu2>.6</mu2></ode></friction></surface>")),
        lambda p: p.collisions[0].properties.friction == (0.8, 0.6),
    ),
    "proximity properties": (
        shape("<sphere><radius>1</radius></sphere>", more=(
            "<drake:proximity_properties><drake:mu_dynamic>.3</drake:mu_dynamic>"
            "<drake:point_contact_stiffness>100</drake:point_contact_stiffness>"
            "<drake:hunt_crossley_dissipation>2</drake:hunt_crossley_dissipation>"
            "<drake:relaxation_time>.4</drake:relaxation_time></drake:proximity_properties>")),
        lambda p: (
            p.collisions[0].properties.friction == (0.3, 0.3)
            and p.collisions[0].properties.point_stiffness == 100
            and p.collisions[0].properties.relaxation_time == 0.4
        ),
    ),
    "axis in the model's frame": (
        link("<pose>0 0 0 0 0 1.5707963267948966</pose>", "b") + link("")
        + '<joint name="j" type="revolute"><parent>a</parent><child>b</child>'
        '<axis><xyz expressed_in="__model__">1 0 0</xyz></axis></joint>',
        lambda p: np.allclose(only(p).axis, [0, -1, 0]),
    ),
    "use_parent_model_frame": (
        link("<pose>0 0 0 0 0 1.5707963267948966</pose>", "b") + link("")
        + '<joint name="j" type="revolute"><parent>a</parent><child>b</child><axis><xyz>1 0 0</xyz>'
        "<use_parent_model_frame>1</use_parent_model_frame></axis></joint>",
        lambda p: np.allclose(only(p).axis, [0, -1, 0]),
    ),
    "friction of a joint": (
        joint(axis("<dynamics><friction>.3</friction></dynamics>")),
        lambda p: only(p).friction == 0.3,
    ),
    "position limits of 1e16 mean none": (
        joint(axis("<limit><lower>-1e16</lower><upper>1e16</upper></limit>")),
        lambda p: (
            np.all(np.isinf(only(p).position_limits))
            and reported(p, "used", "position limits -1e+16 to 1e+16: an end of ±1e+16 or beyond stands for none")
            and not reported(p, "kept", "limit")
        ),
    ),
    "one position limit of 1e16": (
        joint(axis("<limit><lower>-0.5</lower><upper>1e16</upper></limit>"), "prismatic"),
        lambda p: np.array_equal(only(p).position_limits.ravel(), [-0.5, np.inf]),
    ),
    "negative limits mean none": (
        joint(axis("<limit><effort>-1</effort><velocity>-1</velocity></limit>")),
        lambda p: np.all(np.isinf(only(p).velocity_limits)) and p.actuators[0].effort_limit == math.inf,
    ),
    "no effort": (
        joint(axis("<limit><effort>0</effort></limit>")),
        lambda p: not p.actuators and reported(p, "used", "effort limit 0"),
    ),
    "thread_pitch": (
        joint("<axis/><thread_pitch>-3.141592653589793</thread_pitch>", "screw"),
        lambda p: math.isclose(only(p).screw_pitch, 2.0),
    ),
    "drake:mimic": (
        joint() + '<link name="c"/><joint name="k" type="revolute"><parent>b</parent><child>c</child><axis/>'
        '<drake:mimic joint="j" multiplier="2" offset="1"/></joint>',
        lambda p: p.constraints[0].gear_ratio == 2.0 and p.constraints[0].offset == 1.0,
    ),
    "mimic of an axis": (
        joint() + '<link name="c"/><joint name="k" type="revolute"><parent>b</parent><child>c</child><axis>'
        '<mimic joint="j"><multiplier>2</multiplier><offset>1</offset><reference>3</reference></mimic></axis></joint>',
        lambda p: p.constraints[0].gear_ratio == 2.0 and p.constraints[0].offset == -5.0,
    ),
    "ball constraint": (
        joint()
        + "<drake:ball_constraint><drake:ball_constraint_body_A>a</drake:ball_constraint_body_A>"
        "<drake:ball_constraint_p_AP>1 0 0</drake:ball_constraint_p_AP>"
        "<drake:ball_constraint_body_B>b</drake:ball_constraint_body_B>"
        "<drake:ball_constraint_p_BQ>0 1 0</drake:ball_constraint_p_BQ></drake:ball_constraint>",
        lambda p: np.allclose(p.constraints[0].p_BQ, [0, 1, 0]),
    ),
    "distance constraint": (
        joint()
        + "<drake:distance_constraint><drake:distance_constraint_body_A>a</drake:distance_constraint_body_A>"
        "<drake:distance_constraint_p_AP>1 0 0</drake:distance_constraint_p_AP>"
        "<drake:distance_constraint_body_B>b</drake:distance_constraint_body_B>"
        "<drake:distance_constraint_p_BQ>0 1 0</drake:distance_constraint_p_BQ>"
        "<drake:distance_constraint_distance>2</drake:distance_constraint_distance>"
        "<drake:distance_constraint_stiffness>30</drake:distance_constraint_stiffness>"
        "<drake:distance_constraint_damping>4</drake:distance_constraint_damping></drake:distance_constraint>",
        lambda p: p.constraints[0].distance == 2.0 and p.constraints[0].stiffness == 30.0,
    ),
    "placement_frame": (
        '<model name="n" placement_frame="f"><pose>1 0 0 0 0 0</pose><link name="l"/><frame name="f">'
        "<pose>0 5 0 0 0 0</pose></frame></model>",
        lambda p: np.allclose(p.free_poses_of_files[1].translation, [1, -5, 0]),
    ),
    "static": (
        "<static>true</static>" + link("<pose>1 2 3 0 0 0</pose>"),
        lambda p: only(p).kind == "weld" and np.allclose(pose_in_body(only(p).parent)[:3, 3], [1, 2, 3]),
    ),
    "filter group": (
        joint()
        + '<drake:collision_filter_group name="g"><drake:member>a</drake:member><drake:member>b</drake:member>'
        "<drake:ignored_collision_filter_group>g</drake:ignored_collision_filter_group>"
        "</drake:collision_filter_group>",
        lambda p: len(p.collision_exclusions[0].group_A) == 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", USED)
def test_is_used(name):
    content, holds = USED[name]
    assert holds(read(model(content)))


def test_old_axes_are_in_the_frame_of_the_model():
    turned = link("<pose>0 0 0 0 0 1.5707963267948966</pose>", "b") + link("")
    ends = "<parent>a</parent><child>b</child>"
    text = turned + f'<joint name="j" type="revolute">{ends}<axis><xyz>1 0 0</xyz></axis></joint>'
    np.testing.assert_allclose(only(read(model(text, "1.4"))).axis, [0, -1, 0], atol=1e-15)
    np.testing.assert_allclose(only(read(model(text, "1.5"))).axis, [1, 0, 0], atol=1e-15)


UNSUPPORTED = {
    "gravity": link("<gravity>false</gravity>"),
    "kinematic": link("<kinematic>1</kinematic>"),
    "velocity_decay": link("<velocity_decay><linear>.1</linear></velocity_decay>"),
    "fluid_added_mass": link("<inertial><fluid_added_mass><xx>1</xx></fluid_added_mass></inertial>"),
    "cone": shape("<cone><radius>1</radius></cone>"),
    "heightmap": shape("<heightmap/>"),
    "polyline": shape("<polyline/>"),
    "image": shape("<image/>"),
    "gripper": link("") + '<gripper name="g"/>',
    "tendon": link("") + "<drake:tendon_constraint/>",
    "surface velocity": link("<drake:surface_velocity_axis>0 0 1</drake:surface_velocity_axis>"),
    "second axis that mimics": joint("<axis/><axis2><mimic/></axis2>"),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_other_physics_is_refused_or_warned_of(name):
    with pytest.raises(UnsupportedError, match="on_unsupported"):
        read(model(UNSUPPORTED[name]))
    plant = MultibodyPlant()
    with pytest.warns(ModelWarning, match="changes the motion"):
        Parser(plant, on_unsupported="warn").add_models(model(UNSUPPORTED[name]))
    assert reported(plant, "ignored", "built without it")


def test_every_element_of_the_format_is_classified():
    """The elements are those of the format's own description, versions 1.4 to 1.12; an unknown one fails."""
    with ELEMENTS.open() as stream:
        rows = [(row["parent"], row["child"]) for row in csv.DictReader(stream)]
    assert len(rows) > 150
    assert not [row for row in rows if not is_classified(*row)]
    assert not is_classified("link", "novelty")


def is_classified(parent: str, child: str) -> bool:
    return (
        child in leftovers.READ.get(parent, leftovers.NOTHING)[1]
        or child in leftovers.PHYSICS
        or child in leftovers.REASONS
        or child in leftovers.REFUSED_BY_READERS
        or (parent, child) in leftovers.PHYSICS_IN
        or (parent, child) in leftovers.REASONS_IN
    )


def test_what_is_not_used_is_listed():
    plant = read(model(link("<sensor name='s' type='imu'/><novelty/>") + "<plugin/><self_collide>1</self_collide>"))
    for text in ("<sensor>: sensors", "<novelty>: in <link>", "<plugin>: a setting", "<self_collide>: as in Drake"):
        assert reported(plant, "ignored", text)


def test_moments_that_are_left_out_beside_a_mass_are_warned_of():
    plant = MultibodyPlant()
    with pytest.warns(ModelWarning, match=r"no <inertia> get 1 kg m² about each axis, as SDFormat says: 'a'"):
        Parser(plant).add_models(model(link("<inertial><mass>3</mass></inertial>")))
    assert reported(plant, "used", "link 'a': no <inertia>: 1 kg m² about each axis")


def test_numbers_that_no_robot_has_are_reported():
    text = model(link("<pose>1e7 0 0 0 0 0</pose><inertial><mass>1e9</mass></inertial>") + link("", "b"))
    plant = MultibodyPlant()
    with pytest.warns(ModelWarning, match="check their units"):
        Parser(plant).add_models(text)
    assert reported(plant, "kept", "<mass>: '1e9': a mass of 1e+09 kg is beyond")
    assert reported(plant, "kept", "<pose>: '1e7 0 0 0 0 0': a length of 1e+07 m")


def test_gravity_of_the_world():
    plant = read(sdf(f'<world name="w"><gravity>0 0 -1.6</gravity><model name="m">{link("")}</model></world>'))
    assert plant.gravity.tolist() == [0.0, 0.0, -1.6]


def test_models_of_a_file_are_instances_renamed_together():
    plant = MultibodyPlant()
    text = model(link("") + f'<model name="n">{link("")}</model>')
    Parser(plant).add_models(text)
    instances = Parser(plant).add_models(text)
    assert plant.instance_names[2:] == ["m", "m::n", "m_1", "m_1::n"]
    assert instances == [4, 5]
    assert [body.model_instance for body in plant.bodies[1:]] == [3, 2, 5, 4]


@pytest.mark.parametrize("base", ["fixed", "floating", "file"])
def test_base_is_where_the_file_puts_it(base):
    built = load(model(link("<pose>1 2 3 0 0 .5</pose>")), base=base)
    assert built.num_positions == (0 if base == "fixed" else 7)
    if base != "fixed":
        q = default_positions(built)
        np.testing.assert_allclose(q, [math.cos(0.25), 0, 0, math.sin(0.25), 1, 2, 3], atol=1e-12)


def test_a_link_may_be_welded_after_loading():
    plant = read(model(link("<pose>1 2 3 0 0 0</pose>")))
    plant.weld_frames(plant.world_frame, plant.body("a"))
    assert plant.finalize().num_positions == 0


def test_floating_base_of_a_static_model_is_refused():
    with pytest.raises(ParseError, match="is static"):
        read(model("<static>1</static>" + link("")), base="floating")


# text: line, fragments of the message
REFUSED = {
    "no version": ("<sdf>\n<model name='m'/></sdf>", 1, ["version"]),
    "no model": (sdf("\n"), 1, ["no <model>"]),
    "two worlds": (sdf("<world name='a'/><world name='b'/>"), 1, ["2 worlds"]),
    "no name": (sdf("\n<model/>"), 2, ["<model>", "name"]),
    "same name": (model(link("") + "\n" + link("")), 2, ["link 'a'", "rename"]),
    "name of a joint": (model(joint(name="x") + '\n<link name="x"/>'), 2, ["joint (line 1)"]),
    "scoped name": (model('\n<link name="a::b"/>'), 2, ["'::'"]),
    "reserved name": (model('\n<link name="__x__"/>'), 2, ["reserved"]),
    "pose of five": (model(link("\n<pose>1 2 3 4 5</pose>")), 2, ["<pose>", "6 numbers"]),
    "pose of words": (model(link("\n<pose>a b c d e f</pose>")), 2, ["'a' is not a number"]),
    "zero quaternion": (model(link("\n<pose rotation_format='quat_xyzw'>0 0 0 0 0 0 0</pose>")), 2, ["quaternion"]),
    "rotation format": (model(link("\n<pose rotation_format='x'>0 0 0</pose>")), 2, ["euler_rpy"]),
    "cycle of poses": (
        model('<link name="a"><pose relative_to="b"/></link>\n<link name="b"><pose relative_to="a"/></link>'),
        1,
        ["cycle", "link 'a' (line 1) -> link 'b' (line 2)"],
    ),
    "cycle of frames": (
        model(link("") + '<frame name="f" attached_to="g"/>\n<frame name="g" attached_to="f"/>'),
        1,
        ["attached to one another in a cycle"],
    ),
    "no such frame": (model(link("") + '\n<frame name="f" attached_to="aa"/>'), 2, ["'aa'", "Did you mean 'a'"]),
    "no such model": (model(link("") + '\n<frame name="f" attached_to="n::a"/>'), 2, ["'n::a'"]),
    "negative mass": (model(link("<inertial>\n<mass>-1</mass></inertial>")), 2, ["<mass>", "at least 0"]),
    "unknown type": (model(joint(kind="revolut").replace("<joint", "\n<joint")), 2, ["'revolut'", "revolute"]),
    "revolute2": (model(joint(kind="revolute2").replace("<joint", "\n<joint")), 2, ["revolute2", "not simulated"]),
    "gearbox": (model(joint(kind="gearbox").replace("<joint", "\n<joint")), 2, ["gearbox"]),
    "no axis": (model(joint("").replace("<joint", "\n<joint")), 2, ["<axis>"]),
    "zero axis": (model(joint("<axis>\n<xyz>0 0 0</xyz></axis>")), 2, ["vector other than zero"]),
    "limits the wrong way": (
        model(joint("<axis>\n<limit><lower>2</lower><upper>1</upper></limit></axis>")),
        2,
        ["swap"],
    ),
    "negative damping": (model(joint("<axis>\n<dynamics><damping>-1</damping></dynamics></axis>")), 2, ["energy"]),
    "axes not at a right angle": (
        model(joint("<axis/><axis2><xyz>0 1 1</xyz></axis2>", "universal").replace("<joint", "\n<joint")),
        2,
        ["right angle"],
    ),
    "world as child": (
        model(link("") + '\n<joint name="j" type="fixed"><parent>a</parent><child>world</child></joint>'),
        2,
        ["world cannot be a child"],
    ),
    "two parents": (
        model(joint() + '\n<joint name="k" type="fixed"><parent>world</parent><child>b</child></joint>'),
        2,
        ["two parents"],
    ),
    "circle of joints": (
        model(joint() + '\n<joint name="k" type="fixed"><parent>b</parent><child>a</child></joint>'),
        1,
        ["its own ancestor"],
    ),
    "no geometry": (model(link('\n<collision name="c"/>')), 2, ["<geometry>"]),
    "negative radius": (model(shape("\n<sphere><radius>-1</radius></sphere>")), 2, ["radius"]),
    "curvilinear": (
        model(link("") + '\n<drake:joint name="j" type="curvilinear"/>'),
        2,
        ["Curvilinear joints are not simulated"],
    ),
    "include not found": (
        model("<include>\n<uri>model://nowhere</uri></include>"),
        2,
        ["was not found", "package_map"],
    ),
    "deformable": (model("\n" + link("<drake:deformable_properties/>")), 2, ["deformable"]),
    "merge in a world": (
        sdf('<world name="w">\n<include merge="true"><uri>x</uri></include></world>'),
        2,
        ["merges into a <model>"],
    ),
    "placement without pose": (
        model("<include><uri>x</uri>\n<placement_frame>f</placement_frame></include>"),
        1,
        ["was not found"],
    ),
    "unknown group": (
        model(
            link("") + '<drake:collision_filter_group name="g"><drake:member>a</drake:member>\n'
            "<drake:ignored_collision_filter_group>h</drake:ignored_collision_filter_group>"
            "</drake:collision_filter_group>"
        ),
        2,
        ["no collision filter group 'm::h'"],
    ),
    "bad flag": (model("\n<static>maybe</static>" + link("")), 2, ["true or false"]),
    "too big": (model(link("<inertial>\n<mass>1e200</mass></inertial>")), 1, ["overflow"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_place(name):
    text, line, fragments = REFUSED[name]
    with pytest.raises(ParseError) as caught:
        read(text)
    assert caught.value.line == line, str(caught.value)
    for fragment in fragments:
        assert fragment in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_a_file_that_includes_itself_is_refused(tmp_path):
    path = tmp_path / "self.sdf"
    path.write_text(model("\n<include><uri>other.sdf</uri></include>"))
    (tmp_path / "other.sdf").write_text(model("\n\n<include><uri>self.sdf</uri></include>"))
    with pytest.raises(ParseError, match="includes itself") as caught:
        read(path)
    assert (caught.value.line, Path(caught.value.file).name) == (3, "other.sdf")


def test_includes_do_not_grow_without_bound(tmp_path):
    for k in range(8):
        inner = "".join(f"<include><uri>{k + 1}.sdf</uri><name>n{i}</name></include>" for i in range(10))
        (tmp_path / f"{k}.sdf").write_text(model(inner))
    (tmp_path / "8.sdf").write_text(model(link("")))
    with pytest.raises(ParseError, match="more than 1000 includes"):
        read(tmp_path / "0.sdf")


def test_random_damage_is_never_an_error_from_below():
    random = np.random.default_rng(0)
    words = ["nan", "-1", "", "1e999", "a", "world", "<", ">", '"', "&#0;", "fixed", "0 0 0", "ü", "__model__", "m::a"]
    valid = model(joint(axis("<xyz expressed_in='a'>0 0 1</xyz><limit><lower>-1</lower></limit>")) + (
        '<frame name="f" attached_to="j"><pose relative_to="b">1 2 3 0 0 0</pose></frame>'
        '<model name="n"><pose relative_to="f"/><link name="c"/></model>'
        '<joint name="w" type="fixed"><parent>f</parent><child>n::c</child></joint>'
    ))  # fmt: skip
    pieces = re.split(r"([\w.-]+)", valid)
    for _ in range(300):
        damaged = list(pieces)
        for position in random.integers(0, len(pieces), random.integers(1, 4)):
            damaged[position] = words[random.integers(len(words))]
        text = "".join(damaged)[: None if random.random() < 0.8 else random.integers(1, len(valid))]
        assert len(refusal(text)) < 1500


def refusal(text: str) -> str:
    """The message of the ParseError; empty where the text is read."""
    try:
        read(text)
    except ParseError as error:
        return str(error)
    return ""
