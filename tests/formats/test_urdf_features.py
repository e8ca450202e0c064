"""Each part of a URDF is used, and then equals what Drake makes of it, or it is in the report."""

import csv
import warnings
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from pydrake.multibody.parsing import Parser as DrakeParser
from pydrake.multibody.plant import MultibodyPlant as DrakePlant

from mbjax.errors import ModelWarning, UnsupportedError
from mbjax.formats import Parser, load, to_mjcf, to_sdf, to_urdf
from mbjax.formats.urdf import leftovers as urdf_leftovers
from mbjax.geometry import Box, Capsule, Cylinder, Ellipsoid, Sphere
from mbjax.plant import MultibodyPlant

INERTIAL = (
    '<inertial><origin xyz=".1 -.2 .3" rpy=".4 .5 -.6"/><mass value="2"/>'
    '<inertia ixx="1" iyy="1.2" izz="1.3" ixy=".1" ixz="-.2" iyz=".15"/></inertial>'
)
LINKS = f'<link name="a">{INERTIAL}</link><link name="b">{INERTIAL}</link>'
ORIGIN = '<origin xyz="1 2 3" rpy=".1 .2 .3"/>'
ACTUATOR = "<type>transmission_interface/SimpleTransmission</type><joint name='j'/>"


def joint(inner: str = "", kind: str = "revolute", tag: str = "joint", name: str = "j", ends: str = "ab") -> str:
    return (
        f'<{tag} name="{name}" type="{kind}"><parent link="{ends[0]}"/><child link="{ends[1]}"/>{ORIGIN}{inner}</{tag}>'
    )


def transmission(inner: str, joint_inner: str = "", kind: str = "revolute") -> str:
    return LINKS + joint(joint_inner, kind) + f'<transmission name="t">{ACTUATOR}{inner}</transmission>'


def built(content: str, **options) -> tuple[MultibodyPlant, list[str]]:
    """The plant, and the warnings."""
    plant = MultibodyPlant()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Parser(plant, **options).add_models(f'<robot name="r">{content}</robot>')
    assert all(warning.category is ModelWarning for warning in caught)
    return plant, [str(warning.message) for warning in caught]


def drake(content: str) -> DrakePlant:
    plant = DrakePlant(0.0)
    DrakeParser(plant).AddModelsFromString(f'<robot name="r">{content}</robot>', "urdf")
    return plant


def reported(plant: MultibodyPlant, status: str, text: str) -> bool:
    return any(e.status == status and text in f"{e.element}: {e.message}" for e in plant.report.entries)


SAME_AS_DRAKE = {
    "revolute": LINKS + joint('<limit lower="-1" upper="2" velocity="3" effort="4"/><dynamics damping=".5"/>'),
    "default axis": LINKS + joint(),
    "axis to normalise": LINKS + joint('<axis xyz="1 2 3"/>'),
    "axis without xyz": LINKS + joint("<axis/>"),
    "continuous": LINKS + joint('<limit lower="-1" upper="2"/><axis xyz="0 0 1"/>', "continuous"),
    "acceleration limit": LINKS + joint('<limit drake:acceleration="7"/>'),
    "prismatic": LINKS + joint('<limit lower="0" upper="2"/><dynamics damping="3"/><axis xyz="0 0 -1"/>', "prismatic"),
    "fixed": LINKS + joint(kind="fixed"),
    "planar about x": LINKS + joint('<dynamics damping="1 2 3"/>', "planar"),
    "planar about y": LINKS + joint('<axis xyz="0 2 0"/>', "planar"),
    "planar about -z": LINKS + joint('<axis xyz="0 0 -1"/>', "planar"),
    "planar oblique": LINKS + joint('<axis xyz="1 2 3"/>', "planar", "drake:joint"),
    "ball": LINKS + joint('<dynamics damping=".5"/>', "ball", "drake:joint"),
    "universal": LINKS + joint('<dynamics damping=".5"/>', "universal", "drake:joint"),
    "screw": LINKS
    + joint(
        '<axis xyz="0 1 1"/><drake:screw_thread_pitch value=".1"/><dynamics damping="1"/>',
        "screw",
        "drake:joint",
    ),
    "frames": LINKS + '<frame name="f" link="a" xyz="1 2 3" rpy="0 0 1"/><frame name="g" link="world"/>',
    "world declared": '<link name="world"/>' + LINKS + joint(kind="fixed").replace('"a"', '"world"'),
    "world undeclared": LINKS + joint().replace('"a"', '"world"'),
    "massless": "<link name='a'/>" + '<link name="b"><inertial><mass value="0"/></inertial></link>',
    "particle": '<link name="a"><inertial><origin xyz="1 0 0"/><mass value="1"/></inertial></link>',
    "drake_ignore": LINKS + '<link name="c" drake_ignore="true"/><joint drake_ignore="true" name="x"/>',
    "actuator": transmission("<actuator name='m'/>", '<limit effort="5"/>'),
    "actuator without limit": transmission("<actuator name='m'/>"),
    "actuator on a prismatic joint": transmission("<actuator name='m'/>", kind="prismatic"),
    "rotor and gear": transmission(
        "<actuator name='m'><drake:rotor_inertia value='.1'/><drake:gear_ratio value='3'/>"
        "<drake:controller_gains p='2' d='3'/></actuator>"
    ),
    "old transmission": LINKS
    + joint()
    + '<transmission type="pr2_mechanism_model/SimpleTransmission" name="t"><actuator name="m"/>'
    '<joint name="j"/>'
    "<mechanicalReduction>1</mechanicalReduction></transmission>",
    "two actuators on a joint": transmission("<actuator name='m'/>")
    + f"<transmission name='u'>{ACTUATOR}<actuator name='n'/></transmission>",
    "effort 0": transmission("<actuator name='m'/>", '<limit effort="0"/>'),
    "fixed and driven": transmission("<actuator name='m'/>", kind="fixed"),
    "differential": transmission("<actuator name='m'/>").replace("Simple", "Differential"),
    "reduction": transmission("<actuator name='m'><mechanicalReduction>50</mechanicalReduction></actuator>"),
    "order": f'{LINKS}<link name="c"/>' + joint(name="z", ends="bc") + joint(name="y"),
}


@pytest.mark.parametrize("name", SAME_AS_DRAKE)
def test_equals_drake(name, assert_same_plant):
    ours, _ = built(SAME_AS_DRAKE[name])
    assert_same_plant(ours, drake(SAME_AS_DRAKE[name]))


# What Drake drops, refuses or does otherwise.


def test_friction_is_used():
    plant, caught = built(LINKS + joint('<dynamics friction=".2" damping=".1"/>'))
    assert plant.joints[0].friction == [0.2]
    assert not caught


def test_limits_of_a_screw_and_infinite_limits():
    inner = '<limit lower="-inf" upper="2" effort="inf" velocity="Infinity"/>'
    inner += '<drake:screw_thread_pitch value=".1"/>'
    plant, _ = built(LINKS + joint(inner, "screw", "drake:joint"))
    np.testing.assert_array_equal(plant.joints[0].position_limits, [[-np.inf], [2.0]])


def test_locked_continuous_joint_is_freed_and_reported():
    plant, _ = built(LINKS + joint('<limit lower="0" upper="0"/>', "continuous"))
    np.testing.assert_array_equal(plant.joints[0].position_limits, [[-np.inf], [np.inf]])
    assert reported(plant, "repaired", "locked")


def test_one_number_of_planar_damping_counts_for_all():
    plant, _ = built(LINKS + joint('<dynamics damping="2"/>', "planar"))
    np.testing.assert_array_equal(plant.joints[0].damping, [2.0, 2.0, 2.0])


def test_floating_joint_is_one():
    plant, caught = built(LINKS + joint(kind="floating"))
    assert plant.joints[0].kind == "quaternion_floating"
    assert plant.joints[0].name == "j"
    assert not caught
    np.testing.assert_array_equal(plant.joints[0].parent.X_PF.translation, [1.0, 2.0, 3.0])


def test_quaternion_of_urdf_1_2_equals_rpy():
    def rotation(origin):
        plant, _ = built(LINKS + joint(kind="fixed").replace(ORIGIN, origin))
        return plant.joints[0].parent.X_PF.rotation

    half = np.array([0.2, -0.3, 0.4])
    q = np.array([*half, np.sqrt(1 - half @ half)])
    angle, axis = 2 * np.arctan2(np.linalg.norm(half), q[3]), half / np.linalg.norm(half)
    K = np.cross(np.eye(3), axis)
    expected = np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K
    text = " ".join(str(2 * x) for x in q)
    np.testing.assert_allclose(rotation(f'<origin quat_xyzw="{text}"/>'), expected, atol=1e-14)


def test_mimic_becomes_a_coupler_and_is_reported():
    content = f'{LINKS}<link name="c"/><link name="d"/>' + joint()
    content += joint('<mimic joint="j" multiplier="2" offset=".1"/>', name="k", ends="bc")
    content += joint('<mimic joint="j"/>', name="l", ends="bd")
    plant, caught = built(content)
    assert not caught
    relations = {"k": "q(k) = 2 q(j) + 0.1", "l": "q(l) = 1 q(j) + 0"}
    for name, relation in relations.items():
        assert reported(plant, "used", f"joint '{name}': the mimic relation {relation} is kept by a coupler")
    assert [name.split("::")[1] for name in plant.constraint_names] == ["k mimics j", "l mimics j"]
    k, _ = plant.coupler_constraint_specs().values()
    assert (k.joint0.name, k.joint1.name, k.gear_ratio, k.offset) == ("k", "j", 2.0, 0.1)
    plant, caught = built(content, mimic="free")
    assert not caught
    assert plant.num_constraints == 0
    assert reported(plant, "recorded", f"joint 'k': the mimic relation {relations['k']} is not kept, as asked")


def test_mimic_of_a_joint_with_several_degrees_of_freedom_is_refused():
    content = f'{LINKS}<link name="c"/>' + joint("", "floating") + joint('<mimic joint="j"/>', name="k", ends="bc")
    with pytest.raises(UnsupportedError, match="'j' has 6 degrees of freedom, not one"):
        built(content)
    plant, caught = built(content, on_unsupported="warn")
    assert len(caught) == 1
    assert plant.num_constraints == 0


def test_mimic_of_a_fixed_joint_is_listed():
    content = f'{LINKS}<link name="c"/>' + joint() + joint('<mimic joint="j"/>', "fixed", name="k", ends="bc")
    plant, caught = built(content)
    assert not caught
    assert reported(plant, "ignored", "joint 'k': the mimic relation has no meaning")


def test_reduction_without_gear_ratio_is_warned_of_only_beside_a_rotor():
    reduction = "<mechanicalReduction>50</mechanicalReduction>"
    plant, caught = built(transmission(f"<actuator name='m'>{reduction}</actuator>"))
    assert not caught
    assert reported(plant, "ignored", "mechanicalReduction 50")
    rotor = "<drake:rotor_inertia value='.1'/>"
    _, caught = built(transmission(f"<actuator name='m'>{reduction}{rotor}</actuator>"))
    assert len(caught) == 1
    assert "'m'" in caught[0]
    assert "gear_ratio" in caught[0]


@pytest.mark.parametrize("name", ["effort 0", "fixed and driven", "differential"])
def test_transmissions_without_effect_are_reported(name):
    plant, caught = built(SAME_AS_DRAKE[name])
    assert not plant.actuators
    assert len(caught) == 1
    assert '"t"' in caught[0]
    assert reported(plant, "ignored", '<transmission name="t">')


LEFTOVERS = {
    "gazebo": '<gazebo reference="a"><mu1>1</mu1></gazebo><gazebo/>',
    "sensor": "<sensor name='s'/>",
    "ros2_control": "<ros2_control><joint name='x'/></ros2_control>",
    "foo:bar": "<foo:bar/>",
    "safety_controller": joint("<safety_controller k_velocity='1'/>"),
    "calibration": joint("<calibration rising='1'/>"),
    "dynamics K": joint("<dynamics K='1'/>"),
    "limit jerk": joint("<limit jerk='1'/>"),
    "axis": joint("<axis xyz='0 0 1'/>", "fixed"),
    "limit": joint("<limit lower='0' upper='1'/>", "ball", "drake:joint"),
    "dynamics": joint("<dynamics damping='1'/>", "floating"),
    "hardwareInterface": joint() + f'<transmission name="t">{ACTUATOR}<actuator name="m">'
    "<hardwareInterface>E</hardwareInterface></actuator></transmission>",
    "contact": "<link name='z'><contact/></link>",
    "link type": "<link name='z' type='x'/>",
    "drake:hydroelastic_margin": "<link name='z'><collision><geometry><sphere radius='1'/></geometry>"
    "<drake:proximity_properties><drake:hydroelastic_margin value='0.1'/></drake:proximity_properties></collision>"
    "</link>",
    "texture": "<link name='z'><visual><geometry><sphere radius='1'/></geometry><material name='m'>"
    "<texture filename='x.png'/></material></visual></link>",
}


@pytest.mark.parametrize("name", LEFTOVERS)
def test_leftovers_are_listed_once_each(name):
    plant, _ = built(LINKS + LEFTOVERS[name])
    assert len([e for e in plant.report.entries if e.status == "ignored" and e.element == f"<{name}>"]) == 1
    assert plant.report.entries[-1].status == "used"


def test_every_element_of_the_format_is_classified():
    """The elements are those of ROS's description of the format and of Drake's extensions; an unknown one fails."""
    with (Path(__file__).parent / "urdf_elements.csv").open() as stream:
        rows = [(row["parent"], row["child"]) for row in csv.DictReader(stream)]
    assert len(rows) > 90
    assert not [row for row in rows if not is_classified(*row)]
    assert not is_classified("link", "novelty")


def is_classified(parent: str, child: str) -> bool:
    read = urdf_leftovers.READ.get(parent, (set(), set()))[1]
    return child in read or child in urdf_leftovers.PHYSICS or child in urdf_leftovers.REASONS


def test_count_and_lines_of_leftovers():
    plant, _ = built(LINKS + "\n<gazebo/>\n\n<gazebo/><!-- a comment --><?an instruction?>")
    assert reported(plant, "ignored", "<gazebo>: settings of the Gazebo simulator; found 2 times, lines 2, 4")


def shapes(geometry: str, more: str = "") -> tuple[MultibodyPlant, list[str]]:
    content = f"{ORIGIN}<geometry>{geometry}</geometry>"
    return built(
        f'<link name="a"><visual name="v">{content}{more}</visual><visual>{content}</visual>'
        f"<collision>{content}</collision></link>"
    )


@pytest.mark.parametrize(
    ("xml", "shape"),
    [
        ('<box size="1 2 3"/>', Box((1, 2, 3))),
        ('<sphere radius=".5"/>', Sphere(0.5)),
        ('<cylinder radius=".5" length="2"/>', Cylinder(0.5, 2)),
        ('<capsule radius=".5" length="2"/>', Capsule(0.5, 2)),
        ('<drake:capsule radius=".5" length="2"/>', Capsule(0.5, 2)),
        ('<ellipsoid a="1" b="2" c="3"/>', Ellipsoid(1, 2, 3)),
        ('<drake:ellipsoid a="1" b="2" c="3"/>', Ellipsoid(1, 2, 3)),
    ],
)
def test_shapes(xml, shape):
    plant, caught = shapes(xml)
    body = plant.bodies[1]
    assert [g.name for g in body.visual] == ["v", "a_visual"]
    assert [g.name for g in body.collision] == ["a_collision"]
    assert all(g.shape == shape and g.translation == (1, 2, 3) for g in (*body.visual, *body.collision))
    assert not caught


def test_names_of_shapes_are_kept_by_role_and_changes_reported():
    """A visual and a collision may share a name, in every format and through all of them."""
    ball = '<geometry><sphere radius="1"/></geometry>'
    plant, _ = built(
        '<link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
        f'<visual name="s">{ball}</visual><collision name="s">{ball}</collision><collision name="s">{ball}</collision>'
        "</link>"
    )
    assert [g.name for g in plant.bodies[1].visual] == ["s"]
    assert [g.name for g in plant.bodies[1].collision] == ["s", "s_1"]
    assert reported(plant, "repaired", "called 's_1' here: link 'a' has another <collision> of that name")
    model = plant.finalize()
    for write in (to_urdf, to_sdf, to_mjcf):
        written = load(write(model), contact_model="point").layout
        assert [g.name for g in written.visual[1]][:1] == ["s"]
        assert [g.name for g in written.collision[1]] == ["s", "s_1"]


def test_materials_named_inline_and_defined_later():
    def link(name, material):
        return f'<link name="{name}"><visual><geometry><sphere radius="1"/></geometry>{material}</visual></link>'

    plant, caught = built(
        link("a", '<material name="red"/>')
        + link("b", '<material name=""><color rgba="0 1 0 .5"/></material>')
        + link("c", '<material name="blue"/>')
        + link("d", '<material name="blue"><color rgba="0 0 1 1"/></material>')
        + link("e", '<material name="nowhere"/>')
        + link("f", '<material name="x"><color rgba="255 0 0 1"/></material>')
        + '<material name="red"><color rgba="1 0 0 1"/></material>'
        + '<material name="red"><color rgba="1 0 0 1"/></material>'
    )
    colors = [body.visual[0].rgba for body in plant.bodies[1:]]
    assert colors == [(1, 0, 0, 1), (0, 1, 0, 0.5), (0, 0, 1, 1), (0, 0, 1, 1), None, (1, 0, 0, 1)]
    assert reported(plant, "ignored", '<material name="nowhere">')
    assert reported(plant, "repaired", "clipped")
    assert len(caught) == 1
    assert "several links have no parent joint" in caught[0]


def test_base():
    fixed, _ = built(LINKS + joint(), base="fixed")
    assert [(j.name, j.kind) for j in fixed.joints] == [("j", "revolute"), ("world_welds_to_a", "weld")]
    floating, _ = built(LINKS + joint(), base="floating")
    assert [(j.name, j.kind) for j in floating.joints] == [("j", "revolute"), ("a", "quaternion_floating")]
    on_world = LINKS + joint(kind="fixed").replace('"a"', '"world"').replace('name="b"', 'name="b"')
    both, _ = built(on_world, base="fixed")
    assert [(j.name, j.kind) for j in both.joints] == [("j", "weld"), ("world_welds_to_a", "weld")]


def test_base_floating_of_a_link_that_has_the_name_of_a_joint():
    """The new joint has underscores in front, as that of `finalize`, and stays the one that files leave out."""
    content = LINKS + joint(name="a")
    floating, _ = built(content, base="floating")
    assert [(j.name, j.kind) for j in floating.joints] == [("a", "revolute"), ("_a", "quaternion_floating")]
    model = floating.finalize()
    assert sorted(model.joint_names) == sorted(built(content)[0].finalize().joint_names)
    assert to_urdf(model).count("<joint") == 1


def test_base_floating_of_a_robot_on_the_world_is_refused():
    content = f'<link name="a">{INERTIAL}</link>' + joint().replace('"b"', '"a"').replace('"a"', '"world"', 1)
    with pytest.raises(ValueError, match="attaches 'a' to the world, by joint 'j'"):
        built(content, base="floating")


def test_several_roots_are_warned_of():
    plant, caught = built(LINKS)
    assert len(caught) == 1
    assert "'a' (line 1), 'b' (line 1)" in caught[0]
    assert reported(plant, "kept", "several links have no parent joint")


def test_two_of_one_robot_in_a_plant():
    plant = MultibodyPlant()
    text = f'<robot name="r">{LINKS + joint()}</robot>'
    assert [Parser(plant).add_models(text) for _ in range(3)] == [[2], [3], [4]]
    assert plant.instance_names[2:] == ["r", "r_1", "r_2"]
    assert [body.name for body in plant.bodies[1:]] == ["a", "b"] * 3
    assert reported(plant, "repaired", "'r_1'")


def test_world_with_inertia_is_warned_of():
    plant, caught = built(f'<link name="world">{INERTIAL}</link>' + LINKS + joint(ends="ab"))
    assert len(caught) == 1
    assert "world takes no mass" in caught[0]
    assert plant.bodies[0].inertia is None


def test_file_without_robot_name_lends_its_own(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_bytes('\ufeff\n<?xml version="1.0" encoding="utf-8"?><robot><link name="ä"/></robot>'.encode())
    plant = MultibodyPlant()
    with pytest.warns(ModelWarning, match="called 'arm'"):
        Parser(plant).add_models(path)
    assert plant.instance_names[-1] == "arm"
    assert plant.bodies[1].name == "ä"
    assert plant.bodies[1].source == f"{path}:2"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1", "cp1252"])
def test_encodings(tmp_path, encoding):
    path = tmp_path / "arm.urdf"
    path.write_bytes(f'<?xml version="1.0" encoding="{encoding}"?><robot name="ö"/>'.encode(encoding))
    with pytest.raises(ValueError, match='<robot name="ö"> has no <link>'):
        Parser(MultibodyPlant()).add_models(path)


def test_load_gives_a_model_in_the_asked_dtype():
    model = load(
        f'  \n<robot name="r" xmlns:drake="http://drake.mit.edu">{LINKS + joint()}</robot>',
        base="fixed",
        time_step=0.01,
        dtype=jnp.float32,
    )
    assert model.num_positions == 1
    assert model.parameters.body_mass.dtype == jnp.float32
