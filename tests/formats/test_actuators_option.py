"""`actuators=`: those of a file, with a warning where it has none, or one for each joint; errors name the option."""

import math
import warnings

import jax.numpy as jnp
import pytest

import mbjax
from mbjax import trajectory_optimization as to
from mbjax.errors import ModelError, ModelWarning, ParseError
from mbjax.formats import Parser, load
from mbjax.plant import MultibodyPlant

LINK = {name: f'<link name="{name}"/>' for name in "abcdef"}
LINKS = "".join(LINK.values())
INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'


def joint(name: str, ends: str, inner: str = "", kind: str = "revolute") -> str:
    return f'<joint name="{name}" type="{kind}"><parent link="{ends[0]}"/><child link="{ends[1]}"/>{inner}</joint>'


def limit(effort: float) -> str:
    return f'<limit lower="-1" upper="1" effort="{effort}" velocity="1"/>'


DRIVER = '<joint name="first"/><actuator name="second"/>'
DRIVEN = f'<transmission name="t"><type>SimpleTransmission</type>{DRIVER}</transmission>'
ROBOT = (
    f'<robot name="r">{LINKS}{joint("first", "ab", limit(3))}{joint("second", "bc", limit(5), "prismatic")}'
    f"{joint('third', 'cd', '', 'continuous')}{joint('free', 'de', '', 'floating')}"
    f"{joint('idle', 'ef', limit(0))}{DRIVEN}</robot>"
)


def plant_of(text: str, **options) -> MultibodyPlant:
    plant = MultibodyPlant()
    Parser(plant, **options).add_models(text)
    return plant


def actuators(plant: MultibodyPlant) -> list[tuple[str, str, float]]:
    return [(a.name, a.joint.name, a.effort_limit) for a in plant.actuators]


def test_only_those_of_the_file():
    assert actuators(plant_of(ROBOT)) == [("second", "first", 3.0)]


def test_one_for_each_joint_without():
    """A name that is taken is changed, multi-dof and fixed joints and those without effort get none."""
    plant = plant_of(ROBOT, actuators="joints")
    assert actuators(plant) == [("second", "first", 3.0), ("second_1", "second", 5.0), ("third", "third", math.inf)]
    assert any("effort limit 0" in entry.message for entry in plant.report.entries)


def test_those_of_the_joints_that_are_named():
    """Others of the file are left out, and the report says so; a pattern means the joints that can be driven."""
    plant = plant_of(ROBOT, actuators=["second", "th*"])
    assert actuators(plant) == [("second", "second", 5.0), ("third", "third", math.inf)]
    assert any("does not name its joint 'first'" in entry.message for entry in plant.report.entries)
    assert actuators(plant_of(ROBOT, actuators=["f*"])) == [("second", "first", 3.0)]
    assert actuators(plant_of(ROBOT, actuators=[])) == []
    in_brackets = ROBOT.replace('"first"', '"first[0]"')
    assert actuators(plant_of(in_brackets, actuators=["first[0]"])) == [("second", "first[0]", 3.0)]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["elbow"], "no joint is called 'elbow'; there are 'first', 'second', 'third', 'free', 'idle'"),
        (["free"], "joint 'free' cannot be driven: it has 6 degrees of freedom"),
        (["idle"], "joint 'idle' cannot be driven: its effort limit is 0"),
    ],
)
def test_names_that_mean_no_joint_that_can_be_driven(names, message):
    with pytest.raises(ParseError, match=message):
        plant_of(ROBOT, actuators=names)


def test_followers_have_none():
    follower = joint("k", "bc", '<mimic joint="j" multiplier="2"/>' + limit(1))
    text = f'<robot name="r">{LINK["a"]}{LINK["b"]}{LINK["c"]}{joint("j", "ab", limit(2))}{follower}</robot>'
    for mimic in ("couple", "eliminate"):
        assert actuators(plant_of(text, actuators="joints", mimic=mimic)) == [("j", "j", 2.0)]
    assert len(actuators(plant_of(text, actuators="joints", mimic="free"))) == 2


def test_sdf_has_them_from_the_file():
    text = (
        '<sdf version="1.9"><model name="m"><link name="a"/><link name="b"/><joint name="j" type="revolute">'
        "<parent>a</parent><child>b</child><axis/></joint></model></sdf>"
    )
    assert actuators(plant_of(text)) == actuators(plant_of(text, actuators="joints")) == [("j", "j", math.inf)]


def test_negative_effort_is_refused():
    text = f'<robot name="r">{LINK["a"]}{LINK["b"]}\n{joint("j", "ab", limit(-2))}</robot>'
    with pytest.raises(ParseError, match="negative effort limit -2") as caught:
        plant_of(text, actuators="joints")
    assert caught.value.line == 2


def test_load_takes_the_option():
    text = f'<robot name="r"><link name="a"/><link name="b">{INERTIAL}</link>{joint("j", "ab", limit(2))}</robot>'
    assert load(text, base="fixed", actuators="file").num_actuators == 0
    assert load(text, base="fixed", actuators="joints").num_actuators == 1
    with pytest.raises(ModelError, match="actuators='all'"):
        load(text, actuators="all")


ARM = (
    f'<robot name="arm"><link name="a"/><link name="b">{INERTIAL}</link><link name="c">{INERTIAL}</link>'
    f"{joint('j', 'ab', limit(2))}{joint('k', 'bc', limit(3))}</robot>"
)


def test_a_robot_without_actuators_is_warned_of_once() -> None:
    """One warning names the joints and both ways out; the report lists each joint."""
    with pytest.warns(ModelWarning, match="actuators=\"joints\".*actuators=\"file\".*'j'; 'k'") as caught:
        model = load(ARM, base="fixed")
    assert len(caught) == 1
    assert model.num_actuators == 0
    assert sum("no actuator drives it" in entry.message for entry in model.report()) == 2


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        (ARM, "file"),  # said to be meant
        (ARM, "joints"),
        (ARM.replace('effort="2"', 'effort="0"').replace('effort="3"', 'effort="0"'), None),
        (f"<robot name='r'>{LINKS}{joint('j', 'ab')}</robot>", None),  # a swing: nothing says that it has a motor
        (ROBOT, None),  # a transmission on one joint: who wrote it knows of the others
    ],
)
def test_what_is_meant_is_not_warned_of(text: str, choice: str | None) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*has no actuators")
        plant = plant_of(text, actuators=choice)
    is_listed = any("no actuator drives it" in entry.message for entry in plant.report.entries)
    assert is_listed == (text in (ARM, ROBOT) and choice != "joints")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda m: to.Problem(m, mbjax.default_state(m), 5, lambda model, state, u: u),
            "there are no efforts to choose",
        ),
        (
            lambda m: to.Problem(m, mbjax.default_state(m), 5, lambda model, state, u: u, efforts=([-1.0], [1.0])),
            "the model has 0 actuators",
        ),
        (
            lambda m: to.Problem(m, 0.0, 5, lambda model, x, u: u, dynamics=lambda model, x, u: x + u),
            "there are no efforts to choose",
        ),
        (lambda m: mbjax.set_controller_gains(m, 1.0, 1.0), "there is nothing to set"),
        (lambda m: mbjax.set_controller_gains(m, 1.0, 1.0, "j"), "there is nothing to set"),
        (lambda m: mbjax.rollout(m, mbjax.default_state(m), jnp.zeros((5, 2))), "inputs.actuation has shape"),
        (
            lambda m: mbjax.step(m, mbjax.default_state(m), mbjax.Inputs(desired_state=jnp.zeros(4))),
            "inputs.desired_state has shape",
        ),
    ],
)
def test_errors_about_missing_efforts_name_the_option(call, message: str) -> None:
    model = load(ARM, base="fixed", actuators="file", time_step=0.01)
    with pytest.raises(ModelError, match=f'(?s){message}.*actuators="joints"'):
        call(model)
