"""Malformed and hostile input: a clear error that names element, line, value and remedy; never a hang."""

import re
import warnings

import numpy as np
import pytest

from mbjax.errors import ModelWarning, ParseError, UnsupportedError
from mbjax.formats import Parser
from mbjax.plant import MultibodyPlant

LINK_A = '<link name="a"/>'
LINKS = '<link name="a"/>\n<link name="b"/>\n<link name="c"/>\n'  # joints start at line 5


def robot(content: str) -> str:
    """The content starts at line 2."""
    return f'<robot name="r">\n{content}\n</robot>'


def joint(inner: str = "", kind: str = "revolute", name: str = "j", ends: str = "ab", tag: str = "joint") -> str:
    parent, child = ends
    links = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<{tag} name="{name}" type="{kind}">{links}\n{inner}</{tag}>'


def with_joint(inner: str = "", kind: str = "revolute", **options: str) -> str:
    """The joint starts at line 5, what is inside it at line 6."""
    return robot(LINKS + joint(inner, kind, **options))


def with_inertial(inner: str) -> str:
    return robot(f'<link name="a">\n<inertial>\n{inner}\n</inertial></link>')


def with_visual(inner: str) -> str:
    return robot(f'<link name="a">\n<visual>\n{inner}\n</visual></link>')


def with_transmission(inner: str, joint_inner: str = "", kind: str = "revolute") -> str:
    """The transmission starts at line 6."""
    return robot(
        LINKS + joint(joint_inner, kind).replace("\n", "") + f'\n<transmission name="t">{inner}</transmission>'
    )


SIMPLE = "<type>SimpleTransmission</type>"
GOOD_INERTIA = '<inertia ixx="1" iyy="1" izz="1"/>'
BOMB = (
    '<?xml version="1.0"?>\n<!DOCTYPE robot [\n<!ENTITY a "aaaaaaaaaa">\n'
    + "".join(f'<!ENTITY {x} "{f"&{y};" * 10}">\n' for x, y in zip("bcdefghij", "abcdefghi", strict=True))
    + ']>\n<robot name="&j;"/>'
)
EXTERNAL = '<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/passwd">]>\n<robot name="&x;"/>'

# name: (text, line, fragments of the message)
CASES: dict[str, tuple[str, int | None, list[str]]] = {
    # XML
    "truncated": (
        '<robot name="r">\n<link name="a">',
        2,
        ["truncated", '<link name="a">', "line 2", "column"],
    ),
    "mismatched": (
        '<robot name="r">\n<link name="a">\n</robot>',
        3,
        ["mismatched", '<link name="a">', "column 3"],
    ),
    "duplicate attribute": (
        '<robot name="r">\n<link name="a" name="b"/></robot>',
        2,
        ["duplicate attribute"],
    ),
    "two roots": (robot(LINK_A) + '\n<robot name="s"/>', 4, ["junk after document"]),
    "undefined entity": (robot('<link name="&amp;&x;"/>'), 2, ["malformed XML"]),
    "entity bomb": (BOMB, 2, ["<!DOCTYPE", "Remove"]),
    "external entity": (EXTERNAL, 1, ["<!DOCTYPE", "refuses"]),
    "external document type": ('<!DOCTYPE robot SYSTEM "http://x/y.dtd">\n<robot/>', 1, ["<!DOCTYPE"]),
    "NUL byte": (robot('<link name="a\0"/>'), 2, ["binary", "NUL"]),
    "surrogate": (robot('<link name="\ud800"/>'), 2, ["surrogate"]),
    "deep nesting": (robot("<link>" * 100_000), 2, ["nested more than 100", "hostile"]),
    "20 MB attribute": (robot(f'<link name="{"a" * 20_000_000}"/>'), 2, ["<link>", "'name'", "20000000"]),
    "20 MB number": (with_inertial(f'<mass value="{"1" * 20_000_000}"/>'), 4, ["<mass>", "'value'"]),
    "long names": (
        robot(f'<link name="{"a" * 5000}"/>' * 20 + f'<joint name="{"b" * 90000}"/>'),
        2,
        ["<link>", "'name'", "5000"],
    ),
    "very many links": (robot('<link name="a"/>' * 100_000), 1, ["100000 links", "at most 20000"]),
    "very many shapes": (
        robot('<link name="a">' + '<visual><geometry><sphere radius="1"/></geometry></visual>' * 30_000 + "<"),
        None,
        ["malformed"],
    ),
    "only a declaration": ('<?xml version="1.0"?>\n', None, ["too early"]),
    # formats
    "part of an MJCF file": ("<mujocoinclude/>", 1, ["<mujocoinclude>", "MJCF", "load the file that includes it"]),
    "xacro": (robot('<xacro:macro name="x"/>'), 2, ["<xacro:macro>", "expand it first"]),
    "unknown format": ("<models/>", 1, ["<models>", "<robot>"]),
    # names and tree
    "no robot name": ("<robot>\n<link name='a'/></robot>", 1, ["<robot>", "no name"]),
    "no links": ('<robot name="r"/>', 1, ['<robot name="r">', "<link>"]),
    "link without name": (robot("<link/>"), 2, ["<link>", "'name'"]),
    "duplicate links": (robot(LINK_A + "\n" + LINK_A), 3, ["'a'", "lines 2 and 3", "rename"]),
    "duplicate joints": (
        robot(LINKS + joint() + "\n" + joint(ends="bc")),
        7,
        ["two joints", "'j'", "lines 5 and 7", "rename"],
    ),
    "missing parent": (
        with_joint(ends="xb"),
        5,
        ["joint 'j'", "parent link 'x'", "does not exist", "Known names"],
    ),
    "missing child": (
        robot('<link name="arm"/>\n' + joint(ends=("arm", "amr"))),
        3,
        ["'amr'", "Did you mean 'arm'"],
    ),
    "no parent element": (robot(LINKS + '<joint name="j" type="fixed"/>'), 5, ["<parent>", 'link="…"']),
    "parent without link": (
        robot(LINKS + '<joint name="j" type="fixed">\n<parent/><child link="a"/></joint>'),
        6,
        ["<parent>", "'link'"],
    ),
    "two parents": (
        robot(LINKS + joint(ends="ac") + "\n" + joint(name="k", ends="bc")),
        7,
        ["link 'c'", "two parents", "'j' (line 5", "'k' (line 7", "constraint"],
    ),
    "cycle": (
        robot(LINKS + joint(ends="ab") + "\n" + joint(name="k", ends="bc") + "\n" + joint(name="l", ends="ca")),
        None,
        ["'j' (line 5)", "'k' (line 7)", "'l' (line 9)", "ancestor"],
    ),
    "joint to itself": (with_joint(ends="aa"), 5, ['name="j"', "same link 'a'"]),
    "world as child": (with_joint(ends=("a", "world")), 5, ['name="j"', "world cannot be a child"]),
    "frame with a link's name": (
        robot(LINKS + '<frame name="b" link="a"/>'),
        5,
        ["frame 'b'", "line 3", "rename"],
    ),
    "link with the name of a joint's frame": (
        robot('<link name="j_parent"/>\n' + LINKS + joint()),
        6,
        ["j_parent", "already"],
    ),
    "frame on no link": (robot(LINKS + '<frame name="f" link="x"/>'), 5, ["frame 'f'", "'x'"]),
    # joints
    "unknown joint type": (with_joint(kind="revolut"), 5, ["joint 'j'", "'revolut'", "'revolute'"]),
    "no joint type": (with_joint(kind=""), 5, ['name="j"', "'type'", "empty"]),
    "ball as a standard joint": (with_joint(kind="ball"), 5, ["'ball'", "<drake:joint>"]),
    "revolute as a Drake joint": (with_joint(tag="drake:joint"), 5, ["'revolute'", "<joint>"]),
    "zero axis": (with_joint('<axis xyz="0 0 0"/>'), 6, ['"j"', 'xyz="0 0 0"', "0 0 1"]),
    "short axis": (with_joint('<axis xyz="0 1"/>'), 6, ["<axis>", 'xyz="0 1"', "3 numbers expected, got 2"]),
    "commas": (with_joint('<axis xyz="0,0,1"/>'), 6, ["<axis>", "not by commas"]),
    "NaN": (with_joint('<origin xyz="0 nan 0"/>'), 6, ["<origin>", 'xyz="0 nan 0"', "finite"]),
    "letters": (with_joint('<limit lower="low"/>'), 6, ["<limit>", 'lower="low"', "not a number"]),
    "underscores": (with_joint('<limit lower="1_000"/>'), 6, ["<limit>", "'1_000' is not a number"]),
    "expression": (with_joint('<limit lower="${-pi}"/>'), 6, ["<limit>", "xacro", "expand"]),
    "lower above upper": (
        with_joint('<limit lower="1" upper="-1"/>'),
        6,
        ['lower="1"', 'upper="-1"', "swap"],
    ),
    "negative velocity": (
        with_joint('<limit velocity="-1"/>'),
        6,
        ["<limit>", 'velocity="-1"', "at least 0"],
    ),
    "NaN limit": (with_joint('<limit upper="nan"/>'), 6, ["<limit>", 'upper="nan"']),
    "negative damping": (with_joint('<dynamics damping="-1"/>'), 6, ['"j"', 'damping="-1"', ">= 0"]),
    "two numbers of planar damping": (
        with_joint('<dynamics damping="1 2"/>', "planar"),
        6,
        ["<dynamics>", "1 or 3 numbers expected, got 2"],
    ),
    "two axes": (
        with_joint('<axis xyz="1 0 0"/>\n<axis xyz="0 1 0"/>'),
        7,
        ["2 <axis>", "lines 6, 7", "Remove"],
    ),
    "screw without pitch": (
        with_joint(kind="screw", tag="drake:joint"),
        5,
        ['"j"', "<drake:screw_thread_pitch"],
    ),
    "mimics itself": (with_joint('<mimic joint="j"/>'), 6, ["joint 'j'", "mimics itself"]),
    "mimic without joint": (with_joint("<mimic/>"), 6, ["<mimic>", "'joint'"]),
    "quaternion and rpy": (
        with_joint('<origin rpy="0 0 0" quat_xyzw="0 0 0 1"/>'),
        6,
        ["<origin>", "keep one"],
    ),
    "zero quaternion": (with_joint('<origin quat_xyzw="0 0 0 0"/>'), 6, ["<origin>", "other than zero"]),
    # mass properties
    "negative mass": (with_inertial('<mass value="-1"/>'), 4, ["<mass>", 'value="-1"', "at least 0"]),
    "NaN mass": (with_inertial('<mass value="nan"/>'), 4, ["<mass>", 'value="nan"', "finite"]),
    "mass without value": (with_inertial("<mass/>"), 4, ["<mass>", "'value'"]),
    "overflow": (
        with_inertial('<mass value="1"/><origin xyz="1e200 0 0"/>' + GOOD_INERTIA),
        3,
        ["link 'a'", "floating point", "units"],
    ),
    "missing moment": (with_inertial('<mass value="1"/>\n<inertia ixx="1"/>'), 5, ["<inertia>", "'iyy'"]),
    # geometry
    "no geometry": (with_visual(""), 3, ["<visual>", '"a"', "<geometry>"]),
    "unknown shape": (with_visual("<geometry><cone/></geometry>"), 4, ['"a"', "<cone>", "<box>"]),
    "negative radius": (
        with_visual('<geometry><sphere radius="-1"/></geometry>'),
        4,
        ["radius", "-1", "positive"],
    ),
    "flat box": (with_visual('<geometry><box size="1 0 1"/></geometry>'), 4, ["size", "positive"]),
    "mesh without filename": (with_visual("<geometry><mesh/></geometry>"), 4, ["<mesh>", "'filename'"]),
    "three colors": (
        with_visual('<geometry><sphere radius="1"/></geometry><material><color rgba="1 0 0"/></material>'),
        4,
        ["<color>", "4 numbers expected, got 3"],
    ),
    "material without name": (
        robot(LINK_A + '\n<material><color rgba="1 0 0 1"/></material>'),
        3,
        ["<material>"],
    ),
    # transmissions
    "no transmission type": (with_transmission('<joint name="j"/>'), 6, ['"t"', "SimpleTransmission"]),
    "no actuator": (with_transmission(SIMPLE + '<joint name="j"/>'), 6, ['"t"', "<actuator"]),
    "negative effort": (
        with_transmission(SIMPLE + '<joint name="j"/><actuator name="m"/>', '<limit effort="-2"/>'),
        6,
        ['"t"', "'j' (line 5)", "-2"],
    ),
    "rotor inertia without value": (
        with_transmission(SIMPLE + '<joint name="j"/><actuator name="m"><drake:rotor_inertia/></actuator>'),
        6,
        ["<drake:rotor_inertia>", "'value'"],
    ),
    "reduction in letters": (
        with_transmission(
            SIMPLE + '<joint name="j"/><actuator name="m"><mechanicalReduction>x</mechanicalReduction></actuator>'
        ),
        6,
        ["<mechanicalReduction>", "'x'", "number"],
    ),
}


@pytest.mark.timeout(120)  # also what is long is refused at once, on a busy machine too
@pytest.mark.parametrize("name", CASES)
def test_refused_with_place_and_remedy(name):
    text, line, fragments = CASES[name]
    plant = MultibodyPlant()
    with pytest.raises(ParseError) as caught:
        Parser(plant).add_models(text)
    message = str(caught.value)
    assert caught.value.file == "<XML text>"
    assert message.startswith(f"<XML text>:{caught.value.line}: ")
    if line is not None:
        assert caught.value.line == line
    for fragment in fragments:
        assert fragment in message
    assert len(message) < 1000
    assert (caught.value.__cause__ is None and caught.value.__suppress_context__) or not caught.value.__context__
    assert plant_is_empty(plant)


UNSUPPORTED = {
    "loop joint": robot(LINKS + '<loop_joint name="l"/>'),
    "bushing": robot(LINKS + "<drake:linear_bushing_rpy/>"),
    "spring-damper": robot(LINKS + "<drake:linear_spring_damper/>"),
    "ball constraint": robot(LINKS + "<drake:ball_constraint/>"),
    "tendon": robot(LINKS + "<drake:tendon_constraint/>"),
    "deformable": robot(LINKS.replace("\n", " ") + '\n\n\n<link name="d"><drake:deformable_properties/></link>'),
    "actuator on a planar joint": with_transmission(
        SIMPLE + '<joint name="j"/><actuator name="m"/>', kind="planar"
    ).replace("\n<transmission", "<transmission"),
    "actuator on no joint": robot(
        LINKS + f'<transmission name="t">{SIMPLE}<joint name="j"/><actuator name="m"/></transmission>'
    ),
    "mimic of no joint": with_joint('<mimic joint="k"/>').replace("\n<mimic", "<mimic"),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported_physics_is_refused_or_warned_of(name):
    plant = MultibodyPlant()
    with pytest.raises(UnsupportedError, match="on_unsupported") as caught:
        Parser(plant).add_models(UNSUPPORTED[name])
    assert caught.value.line == 5
    assert plant_is_empty(plant)
    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always")
        Parser(plant, on_unsupported="warn").add_models(UNSUPPORTED[name])
    texts = [str(w.message) for w in caught_warnings if "left out although it changes the motion" in str(w.message)]
    assert len(texts) == 1
    assert "line 5" in texts[0]
    assert any(entry.status == "ignored" and entry.place.endswith(":5") for entry in plant.report.entries)


@pytest.mark.parametrize(
    ("inertial", "fragment"),
    [
        ('<mass value="1"/>\n<inertia ixx="1" iyy="1" izz="10"/>', "1 + 1 < 10"),
        ('<mass value="1"/>\n<inertia ixx="-1" iyy="1" izz="1"/>', "-1 < 0"),
        ('<mass value="0"/>\n<inertia ixx="1" iyy="1" izz="1"/>', "mass is 0"),
        ("<inertia ixx='1' iyy='1' izz='1'/>", "mass is 0"),
    ],
)
def test_mass_properties_no_body_can_have(inertial, fragment):
    with pytest.raises(ParseError, match=r"link 'a'.*inertia=\"warn\"") as caught:
        Parser(MultibodyPlant(), inertia="error").add_models(with_inertial(inertial))
    assert caught.value.line == 3
    assert fragment in str(caught.value)
    plant = MultibodyPlant()
    with pytest.warns(ModelWarning, match="line 3") as warned:
        Parser(plant).add_models(with_inertial(inertial))
    assert len(warned) == 1
    assert fragment in str(warned[0].message)
    assert warned[0].filename == __file__
    assert [entry.status for entry in plant.report.entries if fragment in entry.message] in (
        ["kept"],
        ["repaired"],
    )


def test_warnings_turned_into_errors_leave_the_plant_unchanged():
    plant = MultibodyPlant()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ModelWarning):
            Parser(plant).add_models(with_inertial('<mass value="1"/><inertia ixx="1" iyy="1" izz="10"/>'))
    assert plant_is_empty(plant)


VALID = robot(
    LINKS
    + joint('<origin xyz="1 2 3" rpy="0 1 0"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="2"/>')
    + f'<transmission name="t">{SIMPLE}<joint name="j"/><actuator name="m"/></transmission>'
    + '<link name="d"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial><visual>'
    '<geometry><box size="1 2 3"/></geometry><material name="x"><color rgba="1 0 0 1"/></material></visual>'
    "</link>"
)


def test_random_damage_is_never_an_error_from_below():
    random = np.random.default_rng(0)
    words = [
        "nan",
        "-1",
        "",
        "1e999",
        "a",
        "world",
        "<",
        ">",
        '"',
        "&#0;",
        "fixed",
        "\x00",
        "0 0 0",
        "ü",
        "<link>",
    ]
    pieces = re.split(r"([\w.-]+)", VALID)
    for _ in range(400):
        damaged = list(pieces)
        for position in random.integers(0, len(pieces), random.integers(1, 4)):
            damaged[position] = words[random.integers(len(words))]
        text = "".join(damaged)[: None if random.random() < 0.8 else random.integers(1, len(VALID))]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)
            assert len(refusal(text)) < 1500


def refusal(text: str) -> str:
    """The message of the ParseError; empty where the text is read."""
    try:
        Parser(MultibodyPlant()).add_models(text)
    except ParseError as error:
        return str(error)
    return ""


def plant_is_empty(plant: MultibodyPlant) -> bool:
    return (
        len(plant.bodies) == len(plant.frames) == 1
        and len(plant.instance_names) == len(plant.gravity_enabled) == 2
        and not (plant.joints or plant.actuators or plant.report.entries or plant.bodies[0].visual)
    )
