"""Numbers of an MJCF file that no robot has are warned of by element and line, as in the other formats."""

import warnings

import numpy as np
import pytest

import mbjax

ROBOT = """<mujoco>
<worldbody>
<geom name="floor" type="plane" size="1e7 1e7 1e-12"/>
<body name="arm" pos="0 0 0.1">
<inertial pos="0 0 0" mass="1" diaginertia="0.1 0.1 0.1"/>
<joint name="hinge" type="hinge" axis="0 1 0" range="-1 1" limited="true" stiffness="2" damping="0.1" armature="0.1"/>
<geom name="rod" size="0.05" friction="1 0 0"/>
<site name="tip" pos="0 0 0.3"/>
</body>
</worldbody>
<actuator><motor name="drive" joint="hinge" gear="1"/></actuator>
</mujoco>"""


def loaded(text: str) -> tuple[mbjax.MultibodyModel, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = mbjax.load(text, base="fixed")
    return model, [str(w.message) for w in caught if "no robot has" in str(w.message)]


def test_a_sound_file_is_not_warned_of() -> None:
    """Nor are planes, whose size says how far they are drawn."""
    assert not loaded(ROBOT)[1]


@pytest.mark.parametrize(
    ("old", "new", "element", "line"),
    [
        ('mass="1"', 'mass="1e20"', "body 'arm'", 4),
        ('mass="1"', 'mass="1e-12"', "body 'arm'", 4),
        ('pos="0 0 0.1"', 'pos="0 0 1e9"', "body 'arm'", 4),
        ('diaginertia="0.1 0.1 0.1"', 'diaginertia="1e15 1e15 1e15"', "body 'arm'", 4),
        ('stiffness="2"', 'stiffness="1e20"', "joint 'hinge'", 6),
        ('damping="0.1"', 'damping="1e12"', "joint 'hinge'", 6),
        ('armature="0.1"', 'armature="1e9"', "joint 'hinge'", 6),
        ('size="0.05"', 'size="1e7"', "geom 'rod'", 7),
        ('friction="1 0 0"', 'friction="1e6 0 0"', "geom 'rod'", 7),
        ('pos="0 0 0.3"', 'pos="0 0 1e12"', "site 'tip'", 8),
        ('gear="1"', 'gear="1e9"', "actuator 'drive'", 11),
    ],
)
def test_absurd_numbers_are_warned_of_and_kept(old: str, new: str, element: str, line: int) -> None:
    assert ROBOT.count(old) == 1
    model, said = loaded(ROBOT.replace(old, new))
    assert len(said) == 1
    assert f"{element} (line {line})" in said[0]
    entries = [entry for entry in model.report() if entry.element == element and entry.status == "kept"]
    assert any("robots have" in entry.message and entry.place == f"<XML text>:{line}" for entry in entries)


@pytest.mark.parametrize(
    ("given", "lower", "upper"),
    [("-1e10 1e10", -np.inf, np.inf), ("-1e10 0.5", -np.inf, 0.5), ("-0.5 1e12", -0.5, np.inf), ("-9e9 1", -9e9, 1.0)],
)
def test_ends_of_ranges_that_no_position_gets_to_are_infinite(given: str, lower: float, upper: float) -> None:
    """MuJoCo starts anew where a position is beyond 1e10, and its ranges have two ends."""
    text = ROBOT.replace("<worldbody>", '<compiler angle="radian"/><worldbody>').replace('"-1 1"', f'"{given}"')
    model, said = loaded(text)
    assert (float(model.position_lower_limits[0]), float(model.position_upper_limits[0])) == (lower, upper)
    assert not said
    found = [e for e in model.report() if e.element == "joint 'hinge'" and "stands for none" in e.message]
    assert [e.status for e in found] == (["used"] if np.isinf([lower, upper]).any() else [])
    again = mbjax.load(mbjax.to_mjcf(model))
    assert (float(again.position_lower_limits[0]), float(again.position_upper_limits[0])) == (lower, upper)
