"""Every class that a model can hold is known to `save`: by the types of fields, and in models of robot files."""

import dataclasses
import functools
import importlib.util
import io
import pathlib
import sysconfig
import typing
import warnings
from collections.abc import Iterator

import jax
import numpy as np
import pytest

import mbjax
from mbjax.model import ForceDensity
from mbjax.saving.classes import KNOWN_CLASSES

CODE = {mbjax.CustomConstraint, ForceDensity}  # they hold a function of the user
EDGES = ("mbjax.visualization", "mbjax.command_line")  # what they make of a model's parts is in no model
ROBOTS = pathlib.Path(sysconfig.get_path("purelib")) / "cmeel.prefix/share/example-robot-data/robots"
TEXT = """<mujoco>
<option timestep="0.002"/>
<worldbody>
<geom name="floor" type="plane" size="1 1 0.1"/>
<body name="arm"><joint name="hinge" axis="0 1 0" damping="0.1"/><geom type="capsule" size="0.1" fromto="0 0 0 0 0 -1"/>
<body name="hand" pos="0 0 -1.3"><joint name="slide" type="slide"/><geom type="box" size="0.1 0.1 0.1"/></body></body>
</worldbody>
<equality><joint joint1="slide" joint2="hinge" polycoef="0 0.2 0 0 0"/></equality>
<actuator><motor name="push" joint="slide" gear="3"/><position name="servo" joint="hinge" kp="5" kv="1"/></actuator>
<keyframe><key name="bent" qpos="0.3 0.1"/></keyframe>
</mujoco>"""


def parts_of(annotation: object) -> Iterator[type]:
    """The classes that an annotation names, those in unions and tuples included."""
    if isinstance(annotation, type):
        yield annotation
    for argument in typing.get_args(annotation):
        yield from parts_of(argument)


def with_subclasses(cls: type) -> Iterator[type]:
    yield cls
    for sub in cls.__subclasses__():
        yield from with_subclasses(sub)


def is_concrete(cls: type) -> bool:
    return (
        dataclasses.is_dataclass(cls) and not getattr(cls, "__abstractmethods__", ()) and "Abstract" not in cls.__name__
    )


def test_every_class_of_every_field_is_known() -> None:
    """From the model through the annotations of fields, and all of mbjax's classes that may stand there."""
    waiting, seen = [mbjax.MultibodyModel], set()
    while waiting:
        cls = waiting.pop()
        if cls in seen or cls in CODE or not cls.__module__.startswith("mbjax") or cls.__module__.startswith(EDGES):
            continue
        seen.add(cls)
        if not dataclasses.is_dataclass(cls):
            continue
        hints = typing.get_type_hints(cls)
        named = [part for field in dataclasses.fields(cls) for part in parts_of(hints[field.name])]
        waiting += [sub for part in named if part.__module__.startswith("mbjax") for sub in with_subclasses(part)]
    missing = {cls for cls in seen if is_concrete(cls) and KNOWN_CLASSES.get(cls.__name__) is not cls}
    assert not missing
    assert {"Control", "Sphere", "RevoluteSpring", "CouplerConstraint"} <= {cls.__name__ for cls in seen}


def saved_and_loaded(model: mbjax.MultibodyModel) -> mbjax.MultibodyModel:
    file = io.BytesIO()
    mbjax.save(model, file)
    file.seek(0)
    return mbjax.load_model(file)


def assert_same(model: mbjax.MultibodyModel) -> None:
    loaded = saved_and_loaded(model)
    assert jax.tree.structure(model) == jax.tree.structure(loaded)
    for ours, theirs in zip(jax.tree.leaves(model), jax.tree.leaves(loaded), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_an_mjcf_model_with_actuators_is_saved() -> None:
    model = mbjax.load(TEXT, time_step=0.002, contact_model="point")
    assert_same(model)
    ctrl = np.array([0.4, -0.2])
    inputs = [mbjax.inputs_from_mujoco(m, ctrl) for m in (model, saved_and_loaded(model))]
    for ours, theirs in zip(*map(jax.tree.leaves, inputs), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@functools.cache
def corpora() -> tuple[pathlib.Path, ...]:
    """The robot files of the packages that tests install, and the bundled ones."""
    files = [mbjax.reference_models.path(name) for name in mbjax.reference_models.REFERENCE_MODELS]
    files += sorted(ROBOTS.rglob("*.urdf"))
    for package in ("gymnasium", "brax", "mujoco", "mujoco_playground"):
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            found = sorted(pathlib.Path(spec.origin).parent.rglob("*.xml"))
            files += [path for path in found if "<mujoco" in path.read_text(errors="replace")]
    return tuple(files)


@pytest.mark.whole_run("the classes of every field, above")
def test_models_of_all_corpora_are_saved() -> None:
    saved = 0
    for path in corpora():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model = mbjax.load(
                    path, on_unsupported="warn", contact_model="point" if path.suffix == ".xml" else None
                )
            except mbjax.ModelError:  # what loads is for the tests of readers
                continue
            assert_same(model)
        saved += 1
    assert saved > 100
