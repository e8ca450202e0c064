"""Every URDF of example-robot-data loads, and is read as Drake reads it."""

import functools
import logging
import sysconfig
import warnings
from pathlib import Path

import numpy as np
import pytest
from pydrake.multibody.parsing import Parser as DrakeParser
from pydrake.multibody.plant import MultibodyPlant as DrakePlant
from pydrake.multibody.tree import BodyIndex

from mbjax.errors import ModelError, ModelWarning, ParseError, UnsupportedError
from mbjax.formats import Parser
from mbjax.plant import MultibodyPlant

ROBOTS = Path(sysconfig.get_path("purelib")) / "cmeel.prefix/share/example-robot-data/robots"
FILES = {str(path.relative_to(ROBOTS)): path for path in sorted(ROBOTS.rglob("*.urdf"))}
if not FILES:
    raise RuntimeError("example-robot-data is missing: install the test extra, these tests must not be skipped")

# Load only with on_unsupported="warn": they name joints that they do not have.
DANGLING = {
    "alex_description/urdf/alex_psyonic_hands.urdf": "mimics joint 'index_q1', which does not exist",
    "talos_data/robots/talos_left_arm.urdf": "drives joint 'arm_left_1_joint', which does not exist",
}
# Cannot be loaded: the file holds an empty <robot>.
EMPTY = "ur_description/urdf/ur3.urdf"
# Drake refuses these as well: mimic relations of fixed joints.
NOT_LIKE_DRAKE = {
    # A mass of 0 with moments of inertia: Drake makes up a ball of 1 kg, mbjax takes the body as massless.
    "bolt_description/robots/bolt.urdf",
    # Continuous joints with lower = upper = 0: Drake locks them, in URDF they have no limits.
    "double_pendulum_description/urdf/double_pendulum_continuous.urdf",
}
REFUSED_BY_DRAKE = {f"talos_data/robots/talos_reduced{variant}.urdf" for variant in ("", "_box", "_corrected")}
READ = [name for name in FILES if name != EMPTY]


@functools.cache
def read(name: str) -> tuple[MultibodyPlant, list[warnings.WarningMessage]]:
    """The plant and the warnings of a file."""
    plant = MultibodyPlant()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Parser(plant, on_unsupported="warn" if name in DANGLING else "error").add_models(FILES[name])
    return plant, caught


def test_corpus_is_whole():
    assert len(FILES) >= 60
    assert EMPTY in FILES
    assert set(DANGLING) <= set(FILES)


@pytest.mark.parametrize("name", READ)
def test_loads(name):
    plant, caught = read(name)
    assert len(plant.bodies) > 1
    assert [entry.status for entry in plant.report.entries].count("used") >= 1
    assert all(warning.category is ModelWarning for warning in caught)
    assert len(caught) == len({str(warning.message).split(": ")[1] for warning in caught}) <= 5


@pytest.mark.parametrize("name", sorted(set(READ) - set(DANGLING) - REFUSED_BY_DRAKE - NOT_LIKE_DRAKE))
def test_equals_drake(name, assert_same_plant):
    theirs = drake_plant(FILES[name])
    ours, _ = read(name)
    assert_same_plant(ours, theirs)
    assert ours.instance_names[2:] == [theirs.GetModelInstanceName(theirs.get_body(BodyIndex(1)).model_instance())]
    masses = [0.0 if body.inertia is None else float(body.inertia.mass) for body in ours.bodies]
    reference = sum(theirs.get_body(BodyIndex(i)).default_mass() for i in range(1, theirs.num_bodies()))
    np.testing.assert_allclose(sum(masses), reference, rtol=1e-6)


@pytest.mark.parametrize("name", sorted(NOT_LIKE_DRAKE))
def test_differs_from_drake_where_it_says_so(name):
    theirs = drake_plant(FILES[name])
    ours, _ = read(name)
    repaired = [entry for entry in ours.report.entries if entry.status == "repaired"]
    assert repaired
    if "bolt" in name:
        assert [entry.element for entry in repaired] == ["link 'base_link_inertia'"] or all(
            "taken as massless" in entry.message for entry in repaired
        )
        for entry in repaired:
            assert theirs.GetBodyByName(entry.element.split("'")[1]).default_mass() == pytest.approx(1.0)
    else:
        assert all("would be locked" in entry.message for entry in repaired)
        for joint in ours.joints:
            if joint.kind == "revolute":
                assert np.all(np.isinf(joint.position_limits))
                assert theirs.GetJointByName(joint.name).position_upper_limits() == [0.0]


@pytest.mark.parametrize("name", DANGLING)
def test_names_what_is_missing(name):
    plant = MultibodyPlant()
    with pytest.raises(UnsupportedError, match=DANGLING[name]):
        Parser(plant).add_models(FILES[name])
    assert len(plant.bodies) == 1


def test_empty_robot_is_refused():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        with pytest.raises(ParseError, match="<link>"):
            Parser(MultibodyPlant()).add_models(FILES[EMPTY])


@pytest.mark.whole_run("the same robots load, and what is refused in small files")
@pytest.mark.parametrize("name", READ)
def test_inertias_refused_in_strict_mode_are_those_reported(name):
    plant, _ = read(name)
    lenient = any(
        e.status in ("kept", "repaired") and ("non-physical" in e.message or "mass is 0" in e.message)
        for e in plant.report.entries
    )
    options = {"inertia": "error", "on_unsupported": "warn"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        if lenient:
            with pytest.raises(ModelError, match="not physical"):
                Parser(MultibodyPlant(), **options).add_models(FILES[name])
        else:
            Parser(MultibodyPlant(), **options).add_models(FILES[name])


def drake_plant(path: Path) -> DrakePlant:
    logging.getLogger("drake").setLevel(logging.ERROR)
    plant = DrakePlant(0.0)
    DrakeParser(plant).AddModels(str(path))
    return plant
