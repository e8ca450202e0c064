"""Hydroelastic properties of shapes: what a plant takes and refuses, what files say, and names of the modulus."""

import logging
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pydrake.multibody.parsing import Parser as DrakeParser
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph
from pydrake.systems.framework import DiagramBuilder

import mbjax
from mbjax import system_identification as si
from mbjax.geometry import Box, Geometry, HalfSpace, ProximityProperties, Sphere
from mbjax.model import find_number_by_number

INERTIA = mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1)
SOFT = ProximityProperties(0.6, 0.4).add_compliant_hydroelastic_properties(0.05, 2e5, margin=0.001)
TAGS = (
    ("drake:mu_static", 0.7), ("drake:hydroelastic_modulus", 3e5), ("drake:mesh_resolution_hint", 0.02),
    ("drake:hydroelastic_margin", 0.002), ("drake:hunt_crossley_dissipation", 1.5),
)  # fmt: skip


def plant_of_ball_and_box(**settings) -> mbjax.MultibodyPlant:
    plant = mbjax.MultibodyPlant(0.01, **settings)
    hard = ProximityProperties(0.5).add_rigid_hydroelastic_properties()
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), hard)
    for name, shape in (("ball", Sphere(0.1)), ("box", Box((0.1, 0.2, 0.3)))):
        plant.add_rigid_body(name, INERTIA)
        plant.register_collision_geometry(name, Geometry("skin", shape), SOFT)
    return plant


def test_properties_are_named_as_in_drake() -> None:
    compliant = SOFT.hydroelastic
    assert compliant == mbjax.HydroelasticProperties("compliant", 2e5, 0.05, 0.001)
    assert SOFT.friction == (0.6, 0.4)
    of_ground = ProximityProperties().add_compliant_hydroelastic_properties_for_half_space(0.3, 1e6)
    assert of_ground.hydroelastic == mbjax.HydroelasticProperties("compliant", 1e6, slab_thickness=0.3)
    rigid = ProximityProperties().add_rigid_hydroelastic_properties(0.1).hydroelastic
    assert rigid == mbjax.HydroelasticProperties("rigid", resolution_hint=0.1)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        (("soft",), "compliance is 'soft'; give 'rigid' or 'compliant'"),
        (("compliant",), "a compliant shape needs a hydroelastic modulus in Pa"),
        (("rigid", 1e5), "a rigid shape has no hydroelastic modulus, got 100000.0"),
        (("compliant", 0.0), "modulus is 0.0; give a finite number of Pa > 0"),
        (("compliant", np.inf), "modulus is inf; give a finite number of Pa > 0"),
        (("compliant", 1e5, -0.1), "resolution_hint is -0.1; give a finite number of m > 0"),
        (("compliant", 1e5, 0.1, -1.0), "margin is -1.0; give a finite number of m >= 0"),
        (("compliant", 1e5, None, 0.0, "thick"), "slab_thickness is 'thick'; give a finite number of m > 0"),
    ],
)
def test_bad_properties_are_refused(numbers, message) -> None:
    with pytest.raises(ValueError, match=message):
        mbjax.HydroelasticProperties(*numbers)


def test_a_shape_needs_the_numbers_of_its_mesh() -> None:
    plant = mbjax.MultibodyPlant()
    plant.add_rigid_body("ball", INERTIA)
    rigid = ProximityProperties().add_rigid_hydroelastic_properties()
    with pytest.raises(
        mbjax.ModelError, match=r"'ball', 'skin'\): a rigid hydroelastic Sphere needs a resolution_hint"
    ):
        plant.register_collision_geometry("ball", Geometry("skin", Sphere(0.1)), rigid)
    without_slab = ProximityProperties().add_compliant_hydroelastic_properties(None, 1e5)
    with pytest.raises(mbjax.ModelError, match="compliant hydroelastic HalfSpace needs a slab_thickness"):
        plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), without_slab)
    plant.register_collision_geometry("ball", Geometry("skin", Box((1, 1, 1))), without_slab)


def test_the_modulus_has_a_name_everywhere(tmp_path: Path) -> None:
    model = plant_of_ball_and_box().finalize()
    np.testing.assert_allclose(model.collision.hydroelastic_modulus, [2e5, 2e5])
    stiffer = mbjax.set_proximity_properties(model, "box::skin", hydroelastic_modulus=5e5)
    np.testing.assert_allclose(stiffer.collision.hydroelastic_modulus, [2e5, 5e5])
    with pytest.raises(mbjax.ModelError, match="not compliant in hydroelastic contact"):
        mbjax.set_proximity_properties(model, "ground", hydroelastic_modulus=5e5)
    with pytest.raises(mbjax.ModelError, match="hydroelastic_modulus"):
        mbjax.set_proximity_properties(model, "box::skin", hydroelastic_modulus=-1.0)
    unknown = si.Parameters(model, {"hydroelastic_modulus:ball*": si.positive()})
    assert unknown.names == ("hydroelastic_modulus:ball::skin",)
    spread = {"hydroelastic_modulus:*": mbjax.uniform(0.5, 2.0, relative=True)}
    worlds, in_axes = mbjax.randomize(model, jax.random.key(0), 3, spread)
    assert worlds.collision.hydroelastic_modulus.shape == (3, 2)
    assert in_axes.collision.hydroelastic_modulus == 0
    assert mbjax.parameters.contact(model).collision.hydroelastic_modulus
    bad = mbjax.astype(model, jnp.float32)
    bad = bad.__class__(**{**vars(bad), "collision": with_modulus(bad.collision, [1e5, -1.0])})
    (finding,) = [f for f in find_number_by_number(bad) if np.any(f.is_bad)]
    assert finding.leaf.what == "hydroelastic_modulus"
    mbjax.save(stiffer, tmp_path / "model.npz")
    kept = mbjax.load_model(tmp_path / "model.npz")
    assert jax.tree.structure(kept) == jax.tree.structure(stiffer)
    np.testing.assert_array_equal(kept.collision.hydroelastic_modulus, stiffer.collision.hydroelastic_modulus)


def with_modulus(collision: mbjax.CollisionParameters, modulus: list[float]) -> mbjax.CollisionParameters:
    return collision.__class__(**{**vars(collision), "hydroelastic_modulus": jnp.asarray(modulus)})


def test_a_model_without_such_shapes_has_no_modulus() -> None:
    plant = mbjax.MultibodyPlant(0.01)
    plant.add_rigid_body("ball", INERTIA)
    plant.register_collision_geometry("ball", Geometry("skin", Sphere(0.1)), 0.5)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), 0.5)
    assert plant.finalize().collision.hydroelastic_modulus is None


def urdf_of(inner: str, shape: str = '<sphere radius="0.1"/>') -> str:
    return (
        '<robot name="r" xmlns:drake="http://drake.mit.edu"><link name="a"><inertial><mass value="1"/>'
        '<inertia ixx="1" iyy="1" izz="1"/></inertial>\n'
        f'<collision name="skin"><geometry>{shape}</geometry><drake:proximity_properties>{inner}'
        "</drake:proximity_properties></collision></link></robot>"
    )


def sdf_of(inner: str, shape: str = "<sphere><radius>0.1</radius></sphere>") -> str:
    return (
        '<sdf version="1.9" xmlns:drake="http://drake.mit.edu"><model name="r"><link name="a">\n'
        f'<collision name="skin"><geometry>{shape}</geometry><drake:proximity_properties>{inner}'
        "</drake:proximity_properties></collision></link></model></sdf>"
    )


FORMATS = {
    "urdf": (urdf_of, lambda tag, value: f'<{tag} value="{value}"/>'),
    "sdf": (sdf_of, lambda tag, value: f"<{tag}>{value}</{tag}>"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_files_say_what_they_say_to_drake(name) -> None:
    of, tag = FORMATS[name]
    text = of("<drake:compliant_hydroelastic/>" + "".join(tag(*pair) for pair in TAGS))
    ours = collision_of(text).hydroelastic
    theirs = drake_properties_of(text, name)
    assert theirs.HasProperty("hydroelastic", "compliance_type")
    for key, value in (
        ("hydroelastic_modulus", ours.modulus), ("resolution_hint", ours.resolution_hint), ("margin", ours.margin),
    ):  # fmt: skip
        assert theirs.GetProperty("hydroelastic", key) == value
    rigid = of("<drake:rigid_hydroelastic/>" + tag("drake:mesh_resolution_hint", 0.03))
    assert collision_of(rigid).hydroelastic == mbjax.HydroelasticProperties("rigid", resolution_hint=0.03)


@pytest.mark.parametrize("name", FORMATS)
def test_what_a_file_says_in_vain_is_listed_or_refused(name) -> None:
    of, tag = FORMATS[name]
    plant = mbjax.MultibodyPlant()
    rigid = "<drake:rigid_hydroelastic/>" + tag("drake:mesh_resolution_hint", 0.03)
    mbjax.Parser(plant).add_models(of(rigid + tag("drake:hydroelastic_modulus", 1e5)))
    found = [e for e in plant.report.entries if e.element == "<drake:hydroelastic_modulus>"]
    assert [e.status for e in found] == ["ignored"]
    assert "a rigid hydroelastic shape has no pressure field" in found[0].message
    for inner, message in (
        (tag("drake:soft_hydroelastic", 1), "write <drake:compliant_hydroelastic/>"),
        ("<drake:compliant_hydroelastic/>", "a compliant shape needs a hydroelastic modulus"),
        ("<drake:compliant_hydroelastic/>" + rigid, "both rigid and compliant"),
        ("<drake:compliant_hydroelastic/>" + tag("drake:hydroelastic_modulus", -1), "modulus is -1.0"),
        ("<drake:compliant_hydroelastic/>" + tag("drake:hydroelastic_modulus", 1e5), "needs a resolution_hint"),
    ):
        with pytest.raises(mbjax.ModelError, match=message) as caught:
            mbjax.load(of(inner))
        assert "2" in str(caught.value).split(message.split()[0])[0]  # the line


@pytest.mark.parametrize("write", [mbjax.to_urdf, mbjax.to_sdf])
def test_writers_keep_them(write) -> None:
    plant = plant_of_ball_and_box()
    plant.exclude_collisions_between("world", "box")
    model = mbjax.set_proximity_properties(plant.finalize(), "box::skin", hydroelastic_modulus=7e5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbjax.ModelWarning)
        text = write(model, on_unsupported="warn")
        again = mbjax.MultibodyPlant(0.01)
        mbjax.Parser(again).add_models(text)
    found = {c.body.name: c.properties.hydroelastic for c in again.collisions}
    assert found["ball"] == SOFT.hydroelastic
    assert found["box"] == mbjax.HydroelasticProperties("compliant", 7e5, 0.05, 0.001)


def test_what_no_file_says_is_refused() -> None:
    plant = mbjax.MultibodyPlant(0.01)
    plant.add_rigid_body("ball", INERTIA)
    slab = ProximityProperties().add_compliant_hydroelastic_properties_for_half_space(0.3, 1e6)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), slab)
    plant.register_collision_geometry("ball", Geometry("skin", Sphere(0.1)), 0.5)
    model = plant.finalize()
    with pytest.raises(mbjax.ModelError, match="the slab_thickness of a compliant half space"):
        mbjax.to_sdf(model)
    with pytest.raises(mbjax.ModelError, match="its hydroelastic properties are not MuJoCo's"):
        mbjax.to_mjcf(plant_of_ball_and_box().finalize())


def collision_of(text: str) -> ProximityProperties:
    plant = mbjax.MultibodyPlant()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbjax.ModelWarning)
        mbjax.Parser(plant).add_models(text)
    return plant.collisions[0].properties


def drake_properties_of(text: str, name: str):
    logging.getLogger("drake").setLevel(logging.CRITICAL)
    plant, scene_graph = AddMultibodyPlantSceneGraph(DiagramBuilder(), 0.01)
    DrakeParser(plant).AddModelsFromString(text, name)
    (geometry,) = plant.GetCollisionGeometriesForBody(plant.GetBodyByName("a"))
    return scene_graph.model_inspector().GetProximityProperties(geometry)
