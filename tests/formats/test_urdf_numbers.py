"""Numbers in a URDF: how many, how large, and what the smallest change of a file may bring in unnoticed."""

import functools
import re
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pydrake.multibody.parsing import Parser as DrakeParser
from pydrake.multibody.plant import MultibodyPlant as DrakePlant

import mbjax
from mbjax.formats.urdf.bounds import BOUNDS, TEXT
from mbjax.formats.urdf.leftovers import READ

INERTIAL = (
    '<inertial><origin xyz=".1 -.2 .3" rpy=".4 .5 -.6"/><mass value="2"/>'
    '<inertia ixx="1" iyy="1.2" izz="1.3" ixy=".1" ixz="-.2" iyz=".15"/></inertial>'
)


def robot(content: str) -> str:
    return f'<robot name="r">{content}</robot>'


def link(name: str, content: str = INERTIAL) -> str:
    return f'<link name="{name}">{content}</link>'


def joint(inner: str, kind: str = "revolute", tag: str = "joint") -> str:
    ends = '<parent link="a"/><child link="b"/>'
    return robot(f'{link("a")}{link("b")}<{tag} name="j" type="{kind}">{ends}{inner}</{tag}>')


def loaded(text: str, **options):
    """The model and what was warned of; `ParseError` is let through."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = mbjax.load(text, base="fixed", **options)
    return model, " ".join(str(w.message) for w in caught)


def entries(model, status: str) -> list[str]:
    return [f"{e.element}: {e.message}" for e in model.report() if e.status == status]


# How many

PHYSICS = {  # {} stands for the numbers
    "joint origin xyz": (joint('<origin xyz="{}"/>'), 3),
    "joint origin rpy": (joint('<origin rpy="{}"/>'), 3),
    "axis": (joint('<axis xyz="{}"/>'), 3),
    "planar damping": (joint('<dynamics damping="{}"/>', "planar"), 3),
    "mass": (robot(link("a", INERTIAL.replace('"2"', '"{}"'))), 1),
    "moment": (robot(link("a", INERTIAL.replace('"1.2"', '"{}"'))), 1),
    "centre of mass": (robot(link("a", INERTIAL.replace(".1 -.2 .3", "{}"))), 3),
    "centre of mass of nothing": (robot(link("a", '<inertial><origin xyz="{}"/><mass value="0"/></inertial>')), 3),
    "frame": (robot(link("a") + '<frame name="f" link="a" xyz="{}" rpy="0 0 0"/>'), 3),
    "limit": (joint('<limit lower="-1" upper="{}"/>'), 1),
}
SHAPES = {
    "box": ('<visual><geometry><box size="{}"/></geometry></visual>', 3),
    "radius": ('<collision><geometry><sphere radius="{}"/></geometry></collision>', 1),
    "scale": ('<visual><geometry><mesh filename="m.obj" scale="{}"/></geometry></visual>', 3),
    "origin": ('<collision><origin xyz="{}"/><geometry><sphere radius="1"/></geometry></collision>', 3),
    "color": (
        '<visual><geometry><sphere radius="1"/></geometry><material name="m"><color rgba="{}"/></material></visual>',
        4,
    ),
}


def some(count: int) -> str:
    return " ".join(["1"] * count)


def drake_refuses(text: str) -> bool:
    plant = DrakePlant(0.0)  # the parser does not keep it alive
    try:
        DrakeParser(plant).AddModelsFromString(text, "urdf")
    except (RuntimeError, ValueError):
        return True
    return False


@pytest.mark.parametrize("name", PHYSICS)
def test_a_wrong_count_is_refused_where_drake_refuses_it(name):
    text, count = PHYSICS[name]
    mbjax.Parser(mbjax.MultibodyPlant(), inertia="warn").add_models(text.replace("{}", some(count)))
    for wrong in {count - 1, count + 1} - {0, 1 if name == "planar damping" else 0}:
        damaged = text.replace("{}", some(wrong))
        assert drake_refuses(damaged)
        with pytest.raises(mbjax.ParseError, match=rf"{count} numbers? expected, got {wrong}"):
            mbjax.load(damaged, base="fixed")


@pytest.mark.parametrize("name", SHAPES)
def test_what_is_too_many_for_a_shape_is_left_out_and_said(name):
    """Drake's plant without geometry does not look at these, as in the mesh scale="1 1 1 1" of a known race car."""
    shape, count = SHAPES[name]
    text = robot(link("a", INERTIAL + shape))
    surplus = text.replace("{}", some(count + 1))
    assert not drake_refuses(surplus)
    model, said = loaded(surplus)
    (entry,) = entries(model, "repaired")
    assert f'="{some(count + 1)}" has {count + 1} numbers where {count} are expected' in entry
    assert "shapes with too many numbers" in said
    whole, _ = loaded(text.replace("{}", some(count)))
    assert (model.layout.visual, model.layout.collision) == (whole.layout.visual, whole.layout.collision)
    if count > 1:
        with pytest.raises(mbjax.ParseError, match="expected, got"):
            loaded(text.replace("{}", some(count - 1) if name != "scale" else "1 1"))


# How large

TEXTUAL = {"name", "type", "version", "drake_ignore", "link", "joint", "filename", "ignore", "rgba"}


def test_every_number_that_is_read_has_bounds():
    for kind, (attributes, _) in READ.items():
        tag = kind.rpartition("/")[2]
        assert attributes - TEXTUAL == set(BOUNDS.get(tag, {})) - {TEXT}, kind


ALL_KINDS = f"""<robot name="r">
{
    link(
        "a",
        INERTIAL + '<collision><origin xyz="0.1 0.2 0.3" rpy="0.1 0.2 0.3"/><geometry><box size="0.1 0.2 0.3"/>'
        '</geometry><drake:proximity_properties><drake:mu_static value="0.5"/><drake:mu_dynamic value="0.4"/>'
        '<drake:point_contact_stiffness value="3000"/><drake:hunt_crossley_dissipation value="2"/>'
        '<drake:relaxation_time value="0.02"/></drake:proximity_properties></collision>',
    )
}
{
    link(
        "b",
        INERTIAL + '<visual><origin xyz="0.1 0.2 0.3"/><geometry><capsule radius="0.1" length="0.3"/></geometry>'
        '</visual><collision><geometry><ellipsoid a="0.1" b="0.2" c="0.3"/></geometry><drake_compliance>'
        "<static_friction>0.7</static_friction><dynamic_friction>0.6</dynamic_friction></drake_compliance></collision>",
    )
}
{link("c", INERTIAL + '<visual><geometry><mesh filename="m.obj" scale="2 3 4"/></geometry></visual>')}
<joint name="i" type="revolute"><origin xyz="0.1 0.2 0.3" rpy="0.1 0.2 0.3"/><axis xyz="0.1 0.2 0.3"/>
<parent link="world"/><child link="a"/><limit lower="-1" upper="1.5" velocity="3" effort="40" acceleration="70"/>
<dynamics damping="0.3" friction="0.2"/></joint>
<joint name="j" type="prismatic"><origin xyz="0.1 0.2 0.3" rpy="0.1 0.2 0.3"/><parent link="a"/><child link="b"/>
<mimic joint="i" multiplier="1.5" offset="0.25"/></joint>
<drake:joint name="k" type="screw"><origin xyz="0.1 0.2 0.3"/><parent link="b"/><child link="c"/>
<drake:screw_thread_pitch value="0.01"/></drake:joint>
<frame name="f" link="b" xyz="0.1 0.2 0.3" rpy="0.1 0.2 0.3"/>
<transmission name="t"><type>SimpleTransmission</type><joint name="i"/><actuator name="m">
<drake:rotor_inertia value="0.001"/><drake:gear_ratio value="30"/><drake:controller_gains p="50" d="7"/></actuator>
</transmission></robot>"""
NUMBER = re.compile(r'(?<=[">\s])-?\d*\.?\d+(?=[\s"<])')
ABSURD = ("1e308", "-1e308", "1e200", "1e60", "1e39", "-1e25", "1e17", "1e16")
ODD = ("nan", "inf", "-1", "0", "1e-308", "1e-30", "1 2", "x", "", "1e400", "0x10", "1_0", "١")


@functools.cache
def untouched() -> mbjax.MultibodyModel:
    return loaded(ALL_KINDS, dtype="float32", time_step=1e-3, contact_model="point", mimic="eliminate")[0]


@jax.jit
def motion(model):
    """What the numbers of a model become together: inertia and the acceleration under everything it has."""
    q, v = jnp.full(model.num_positions, 0.3, jnp.float32), jnp.full(model.num_velocities, 0.1, jnp.float32)
    return mbjax.mass_matrix(model, q), mbjax.forward_dynamics(model, q, v, jnp.ones_like(v), force_elements=True)


@pytest.mark.whole_run("wrong counts are refused, above, and what overflows, below")
def test_no_absurd_number_gets_through_without_a_word():
    """One number of a small file changed at a time: refused by name and place, or reported, or nothing to report."""
    random, places = np.random.default_rng(12), list(NUMBER.finditer(ALL_KINDS))
    assert len(places) > 75
    seen = {"refused": 0, "reported": 0, "read": 0}
    for trial in range(200):
        words = ABSURD if trial % 2 else ODD
        place, word = places[random.integers(len(places))], words[random.integers(len(words))]
        text = ALL_KINDS[: place.start()] + word + ALL_KINDS[place.end() :]
        line = text.count("\n", 0, place.start()) + 1
        try:
            model, said = loaded(text, dtype="float32", time_step=1e-3, contact_model="point", mimic="eliminate")
        except mbjax.ParseError as refusal:
            seen["refused"] += refusal.line is not None and str(refusal).startswith("<XML text>:")
            continue
        seen["read"] += 1
        matrix, vdot = motion(eqx.tree_at(lambda m: m.parameters, untouched(), model.parameters))
        assert np.isfinite(matrix).all(), (place, word)
        assert np.isfinite(vdot).all(), (place, word)
        if word in ABSURD:
            here = [e for e in model.report() if e.place == f"<XML text>:{line}"]
            kept = [e for e in here if e.status == "kept" and word in e.message and "taken as it stands" in e.message]
            assert kept or any("stands for none" in e.message for e in here), (place, word)
            assert word in said or not kept or "limit" in kept[0].element
            seen["reported"] += 1
    assert seen["refused"] + seen["read"] == 200  # every refusal says where
    assert min(seen.values()) > 20


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_overflows_in_the_dtype_of_the_model_is_refused(dtype):
    """1e25 kg squared is more than float32 holds, and less than float64 does."""
    text = robot(link("a", INERTIAL.replace('value="2"', 'value="1e25"')) + "\n" + link("b"))
    if dtype == "float64":
        assert any("1e25" in entry for entry in entries(loaded(text, dtype=dtype)[0], "kept"))
        return
    with pytest.raises(mbjax.ParseError, match=r"<XML text>:1: .*body 'a'.*float32.*float64"):
        loaded(text, dtype=dtype)
    plant = mbjax.MultibodyPlant()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbjax.ModelWarning)
        mbjax.Parser(plant, base="fixed").add_models(text)  # in double precision, as the tests run
    with pytest.raises(mbjax.ModelError, match=r"<XML text>:1: .*body 'a'.*float32"):
        plant.finalize(jnp.float32)


def test_numbers_that_overflow_only_together_are_refused():
    """Each is computed with, but masses times squared distances are not."""
    far = robot(link("a") + link("b") + '<joint name="j" type="fixed"><origin xyz="1e18 0 0"/>'
                '<parent link="a"/><child link="b"/></joint>')  # fmt: skip
    with pytest.raises(mbjax.ParseError, match=r"in all.*float32"):
        loaded(far, dtype="float32")


# Degrees in place of radians


@pytest.mark.parametrize("kind", ["revolute", "continuous"])
def test_limits_that_look_like_degrees_are_warned_of(kind: str) -> None:
    model, said = loaded(joint('<limit lower="-180" upper="90" effort="1" velocity="1"/>', kind))
    assert "limits of joints look like degrees" in said
    assert "joint 'j': limits -180 to 90 rad" in said
    (entry,) = entries(model, "kept")
    assert "29 turns; if they are in degrees, write -3.142 to 1.571 rad" in entry
    np.testing.assert_allclose(model.position_lower_limits, -180.0)


@pytest.mark.parametrize(
    ("limits", "kind"),
    [('lower="-6.3" upper="6.3"', "revolute"), ('lower="-1000" upper="1e16"', "revolute"),
     ('lower="-90" upper="90"', "prismatic")],
)  # fmt: skip
def test_other_limits_are_none_in_degrees(limits: str, kind: str) -> None:
    assert "degrees" not in loaded(joint(f'<limit {limits} effort="1" velocity="1"/>', kind))[1]


@pytest.mark.parametrize("kind", ["revolute", "continuous", "prismatic"])
def test_ends_of_limits_that_stand_for_none_are_infinite(kind: str) -> None:
    """±1e16 is what SDFormat has for none, also in URDF files made of it; other limits say none by being left out."""
    model, said = loaded(joint('<limit lower="-1e16" upper="1e17" effort="1" velocity="1"/>', kind))
    assert not np.isfinite([model.position_lower_limits, model.position_upper_limits]).any()
    assert [e for e in entries(model, "used") if "position limits -1e+16 to 1e+17" in e and "stands for none" in e]
    assert not entries(model, "kept")
    assert "no robot has" not in said
    model, _ = loaded(joint('<limit lower="-9e15" upper="1e16" effort="1e16" velocity="1e16"/>', kind))
    np.testing.assert_array_equal(model.position_lower_limits, [-9e15])
    np.testing.assert_array_equal(model.position_upper_limits, [np.inf])
    np.testing.assert_array_equal(model.velocity_upper_limits, [1e16])
    assert len([entry for entry in entries(model, "kept") if "taken as it stands" in entry]) == 1 + 2
    for limits in ('lower="1e16" upper="1e17"', 'lower="-1e17" upper="-1e16"'):  # the wrong way round
        model, _ = loaded(joint(f'<limit {limits} effort="1" velocity="1"/>', kind))
        assert np.isfinite([model.position_lower_limits, model.position_upper_limits]).sum() == 1


def test_rotations_that_look_like_degrees_are_warned_of() -> None:
    model, said = loaded(joint('<origin rpy="0 0 45"/>'))
    assert """numbers that no robot has are taken as they stand""" in said
    assert any("a rotation of 45 rad" in entry and "is it in degrees?" in entry for entry in entries(model, "kept"))
    assert "no robot has" not in loaded(joint('<origin rpy="0 0 6.3"/>'))[1]


@pytest.mark.parametrize(("attributes", "is_odd"), [("", True), ('degrees="true"', False)])
def test_poses_in_degrees_of_sdf(attributes: str, is_odd: bool) -> None:
    pose = f"<pose {attributes}>0 0 0 0 0 90</pose>"
    said = loaded(f'<sdf version="1.9"><model name="m"><link name="a">{pose}</link></model></sdf>')[1]
    assert ("numbers that no robot has" in said) == is_odd
