"""Collision geometry in plants and models: registration, settings, leaves, names and setters."""

import dataclasses
import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pydrake.multibody.plant import MultibodyPlantConfig

import mbjax
from mbjax.errors import ModelError
from tests.model.plants import inertia

X_BG = mbjax.RigidTransform.from_rpy_xyz(np.array([0.1, -0.2, 0.3]), np.array([0.4, 0.5, 0.6]))
CORNERS = [(0, 0, 0), (1, 0, 0), (0, 2, 0), (0, 0, 3), (1, 2, 3)]
SHAPES = {
    "ball": (mbjax.Sphere(0.1), (0.1,)),
    "crate": (mbjax.Box((0.1, 0.2, 0.3)), (0.1, 0.2, 0.3)),
    "pill": (mbjax.Capsule(0.1, 0.4), (0.1, 0.4)),
    "tin": (mbjax.Cylinder(0.2, 0.5), (0.2, 0.5)),
    "egg": (mbjax.Ellipsoid(0.1, 0.2, 0.3), (0.1, 0.2, 0.3)),
    "rock": (mbjax.Convex(CORNERS), ()),
}


def scene(**settings) -> mbjax.MultibodyPlant:
    """A half-space and one free body with every shape that meets it."""
    plant = mbjax.MultibodyPlant(0.01, **settings)
    plant.register_collision_geometry("world", np.eye(4), mbjax.HalfSpace(), "ground", 0.8)
    plant.add_model_instance("robot")
    plant.add_rigid_body("foot", inertia(), "robot")
    stiff = mbjax.ProximityProperties(0.9, 0.5, point_stiffness=1e5)
    lossy = mbjax.ProximityProperties(0.7, hunt_crossley_dissipation=3.0, relaxation_time=0.2)
    for name, (shape, _) in SHAPES.items():
        properties = {"crate": stiff, "egg": lossy}.get(name, (0.6, 0.4))
        plant.register_collision_geometry("foot", X_BG, shape, name, properties)
    return plant


@pytest.fixture(scope="module")
def model() -> mbjax.MultibodyModel:
    return scene().finalize()


def test_leaves_are_what_was_registered(model):
    contact, collision = model.layout.contact, model.collision
    assert [g.name for g in contact.geometries] == ["ground", *SHAPES]
    assert contact.pairs == tuple((0, k) for k in range(1, 7))
    for record, (shape, size) in zip(contact.geometries[1:], SHAPES.values(), strict=True):
        assert (record.kind, record.body) == (type(shape).__name__, 1)
        np.testing.assert_array_equal(collision.size[record.sizes], size)
    np.testing.assert_array_equal(collision.vertices[contact.geometries[-1].vertices], CORNERS)
    assert collision.size.shape == (11,)
    np.testing.assert_array_equal(collision.static_friction, [0.8, 0.6, 0.9, 0.6, 0.6, 0.7, 0.6])
    np.testing.assert_array_equal(collision.dynamic_friction, [0.8, 0.4, 0.5, 0.4, 0.4, 0.7, 0.4])
    np.testing.assert_array_equal(collision.relaxation_time, [0.1, 0.1, 0.1, 0.1, 0.1, 0.2, 0.1])
    np.testing.assert_array_equal(collision.stiffness, [1e5])
    np.testing.assert_array_equal(collision.hunt_crossley_dissipation, [3.0])
    assert [g.stiffness_index for g in contact.geometries] == [-1, -1, 0, -1, -1, -1, -1]
    assert [g.dissipation_index for g in contact.geometries] == [-1, -1, -1, -1, -1, 0, -1]
    for g in range(1, 7):
        pose = mbjax.collision_geometry_pose(model, g)
        np.testing.assert_allclose(pose.rotation, X_BG.rotation, atol=1e-15)
        np.testing.assert_allclose(pose.translation, X_BG.translation, atol=1e-15)


def test_settings_are_drakes_save_the_approximation():
    drake, ours = MultibodyPlantConfig(), mbjax.MultibodyPlant().contact_settings
    names = ("penetration_allowance", "stiction_tolerance", "sap_near_rigid_threshold")
    for name in (*names, "adjacent_bodies_collision_filters"):
        assert getattr(ours, name) == getattr(drake, name)
    assert (ours.discrete_contact_approximation, ours.contact_model, ours.max_contacts) == (
        "sap",
        drake.contact_model,
        None,
    )


SETTINGS = {
    "contact_model": "none",
    "discrete_contact_approximation": "lagged",
    "penetration_allowance": 0.02,
    "stiction_tolerance": 0.03,
    "sap_near_rigid_threshold": 0.0,
    "adjacent_bodies_collision_filters": False,
    "max_contacts": 4,
    "max_pairs": 5,
    "contact_prediction": True,
    "contact_smoothing_length": 0.001,
    "contact_surface_representation": "triangle",
    "max_faces": 7,
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_can_be_given_or_set(name):
    value, plant = SETTINGS[name], mbjax.MultibodyPlant()
    getattr(plant, f"set_{name}")(value)
    assert plant.contact_settings == mbjax.MultibodyPlant(**{name: value}).contact_settings
    assert plant.contact_settings == dataclasses.replace(mbjax.MultibodyPlant().contact_settings, **{name: value})
    assert plant.adjacent_bodies_collision_filters == (name != "adjacent_bodies_collision_filters")


def test_settings_reach_the_model():
    model = scene(**{**SETTINGS, "contact_model": "point"}).finalize()
    collision, contact = model.collision, model.layout.contact
    assert (contact.prediction, collision.smoothing_length) == (True, 0.001)
    assert mbjax.set_contact_smoothing_length(model, 0.0).collision.smoothing_length == 0.0
    assert (model.contact_model, model.discrete_contact_approximation, contact.max_contacts) == ("point", "lagged", 4)
    for name in ("penetration_allowance", "stiction_tolerance", "sap_near_rigid_threshold"):
        assert getattr(collision, name) == SETTINGS[name]
    off = scene(contact_model="none").finalize()
    assert off.collision_pairs == ()
    assert off.num_collision_geometries == 7
    assert off.collision.static_friction.size == off.collision.size.size == 0


BAD_SETTINGS = {
    "contact_model": ["hydro", None],
    "contact_surface_representation": ["quad", 3],
    "max_faces": [0, 2.5, True],
    "discrete_contact_approximation": ["tamsi"],
    "penetration_allowance": [0.0, -1.0, np.nan, np.inf, "deep"],
    "stiction_tolerance": [0.0, -1.0, np.nan],
    "sap_near_rigid_threshold": [-1.0, np.nan],
    "adjacent_bodies_collision_filters": [1],
    "max_contacts": [0, 2.5, True],
    "max_pairs": [0, 2.5, True],
    "contact_prediction": [1, "yes"],
    "contact_smoothing_length": [-1.0, np.nan],
}


def test_settings_that_the_kind_of_plant_would_ignore_are_refused():
    with pytest.raises(ModelError, match="contact_prediction=True needs a discrete plant"):
        mbjax.MultibodyPlant(contact_prediction=True).finalize()
    with pytest.raises(ModelError, match="choose discrete_contact_approximation='similar' or 'lagged'"):
        mbjax.MultibodyPlant(0.001, contact_smoothing_length=0.001).finalize()


@pytest.mark.parametrize("name", BAD_SETTINGS)
def test_bad_settings_are_refused(name):
    for value in BAD_SETTINGS[name]:
        with pytest.raises(ModelError, match=name):
            mbjax.MultibodyPlant(**{name: value})
        with pytest.raises(ModelError, match=name):
            getattr(mbjax.MultibodyPlant(), f"set_{name}")(value)


def test_the_ways_to_register_agree():
    ball = mbjax.Geometry("ball", mbjax.Sphere(0.1), X_BG.rotation.tolist(), X_BG.translation.tolist())
    plants = [mbjax.MultibodyPlant() for _ in range(3)]
    for plant in plants:
        plant.add_rigid_body("a", inertia())
    one, two, three = plants
    assert one.register_collision_geometry("a", ball, 0.7) is ball
    assert two.register_collision_geometry("a", X_BG, mbjax.Sphere(0.1), "ball", (0.7, 0.7)) == ball
    properties = mbjax.ProximityProperties(0.7)
    assert three.register_collision_geometry("a", X_BG, shape=ball.shape, name="ball", properties=properties) == ball
    for plant in plants:
        assert plant.collisions[0].properties == properties
        assert plant.body("a").collision == [ball]
    assert one.register_visual_geometry("a", ball) is ball
    seen = two.register_visual_geometry("a", np.eye(4), mbjax.Sphere(0.1), "ball", (1, 0, 0, 1))
    assert two.body("a").visual == [seen]
    assert seen.rgba == (1, 0, 0, 1)


BALL = mbjax.Geometry("ball", mbjax.Sphere(0.1))
BAD_REGISTRATIONS = {
    "no friction": (lambda p: p.register_collision_geometry("upper", BALL), "give ProximityProperties or"),
    "negative friction": (lambda p: p.register_collision_geometry("upper", BALL, -1), "static_friction is -1"),
    "no number": (lambda p: p.register_collision_geometry("upper", BALL, "wood"), "got 'wood'"),
    "no shape": (lambda p: p.register_collision_geometry("upper", np.eye(4), None, "x", 1.0), "give a Geometry, or"),
    "no name": (lambda p: p.register_visual_geometry("upper", np.eye(4), mbjax.Sphere(1)), "give a Geometry, or"),
    "two names": (lambda p: p.register_visual_geometry("upper", BALL, name="x"), "name and a color of its own"),
    "no rotation": (
        lambda p: p.register_visual_geometry("upper", np.diag([2.0, 2.0, 2.0, 1.0]), mbjax.Sphere(1), "x"),
        "not a rotation matrix",
    ),
    "unknown body": (lambda p: p.register_collision_geometry("uper", BALL, 1.0), "Did you mean 'upper'"),
    "name taken": (
        lambda p: [p.register_collision_geometry("upper", BALL, 1.0) for _ in range(2)],
        "body 'upper' has a geometry named 'ball' already",
    ),
    "visual name taken": (lambda p: [p.register_visual_geometry("upper", BALL) for _ in range(2)], "named 'ball'"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_REGISTRATIONS)
def test_bad_registrations_are_refused(name):
    act, message = BAD_REGISTRATIONS[name]
    plant = mbjax.MultibodyPlant()
    plant.add_rigid_body("upper", inertia())
    with pytest.raises(ModelError, match=message):
        act(plant)
    assert len(plant.body("upper").collision) == len(plant.collisions) <= 1


def test_pairs_without_signed_distance_are_refused_by_name():
    plant = scene()
    plant.add_rigid_body("tilted", inertia())
    plant.register_collision_geometry("tilted", np.eye(4), mbjax.HalfSpace(), "wall", 1.0)
    with pytest.raises(ModelError, match=r"'world::ground' \(HalfSpace\) and 'tilted::wall' \(HalfSpace\)") as error:
        plant.finalize()
    for other in ("world", "foot"):
        assert f"exclude_collisions_between('{other}', 'tilted')" in str(error.value) or other == "foot"
        plant.exclude_collisions_between(other, "tilted")
    model = plant.finalize()
    assert model.num_collision_geometries == 8
    assert "tilted::wall" not in model.collision_geometry_names


def test_names_and_pairs(model):
    assert model.collision_geometry_names == ("world::ground", *(f"foot::{name}" for name in SHAPES))
    assert model.collision_pairs == tuple(("world::ground", f"foot::{name}") for name in SHAPES)
    for key in ("crate", "foot::crate", "robot::foot::crate", 2):
        assert model.collision_geometry_index(key) == 2
    with pytest.raises(ModelError, match=r"no collision geometry 'crte'.*Did you mean 'foot::crate'"):
        model.collision_geometry_index("crte")
    with pytest.raises(ModelError, match="indices run from 0 to 6"):
        model.collision_geometry_index(7)
    assert "6 pairs may touch (sap)" in " ".join(str(model).split())


def test_names_that_several_bodies_have():
    plant = mbjax.MultibodyPlant()
    for instance in ("left", "right"):
        plant.add_model_instance(instance)
        for body in ("foot", f"{instance}_hand"):
            plant.add_rigid_body(body, inertia(), instance)
            plant.register_collision_geometry(plant.bodies[-1], BALL, 1.0)
    plant.add_joint(mbjax.WeldJoint("weld", "world", "left_hand"))
    plant.exclude_collisions_between("left_hand", "right_hand")
    for i in (1, 3):
        plant.exclude_collisions_between("left_hand", i)
    model = plant.finalize()
    assert model.collision_geometry_names == ("left::foot::ball", "right::foot::ball", "right_hand::ball")
    with pytest.raises(ModelError, match="say which: 'left::foot::ball', 'right::foot::ball'"):
        model.collision_geometry_index("foot::ball")
    assert model.collision_geometry_index("right::foot::ball") == 1
    with pytest.raises(ModelError, match="Body 'left_hand' has it, but it is in none of"):
        model.collision_geometry_index("left_hand::ball")


def test_setters_change_what_they_say_and_nothing_else(model):
    turned = mbjax.RigidTransform.from_rpy_xyz(np.array([0.3, 0.1, 0.2]), np.array([1.0, 2.0, 3.0]))
    corners = np.array(CORNERS) + 0.5
    properties = {"static_friction": 0.3, "dynamic_friction": 0.2, "relaxation_time": 0.0}
    changes = {
        "friction": (lambda m: mbjax.set_friction(m, "tin", 0.3, 0.2), {"static_friction", "dynamic_friction"}),
        "pose": (lambda m: mbjax.set_collision_geometry_pose(m, "tin", turned), {"quaternion", "translation"}),
        "size": (lambda m: mbjax.set_collision_geometry_size(m, "tin", [0.7, 0.8]), {"size"}),
        "vertices": (lambda m: mbjax.set_collision_geometry_vertices(m, "rock", corners), {"vertices"}),
        "stiffness": (lambda m: mbjax.set_proximity_properties(m, "crate", point_stiffness=np.inf), {"stiffness"}),
        "dissipation": (
            lambda m: mbjax.set_proximity_properties(m, "egg", hunt_crossley_dissipation=0.0),
            {"hunt_crossley_dissipation"},
        ),
        "properties": (lambda m: mbjax.set_proximity_properties(m, "egg", **properties), set(properties)),
        "allowance": (lambda m: mbjax.set_penetration_allowance(m, 0.5), {"penetration_allowance"}),
        "tolerance": (lambda m: mbjax.set_stiction_tolerance(m, 0.5), {"stiction_tolerance"}),
        "threshold": (lambda m: mbjax.set_sap_near_rigid_threshold(m, 0.0), {"sap_near_rigid_threshold"}),
    }
    fields = [field.name for field in dataclasses.fields(model.collision)]
    results = {name: change(model) for name, (change, _) in changes.items()}
    for name, (_, expected) in changes.items():
        new, old = results[name].collision, model.collision
        assert {f for f in fields if not np.array_equal(getattr(new, f), getattr(old, f))} == expected
        assert results[name].layout is model.layout
    np.testing.assert_array_equal(mbjax.friction(results["friction"], "tin"), [0.3, 0.2])
    np.testing.assert_array_equal(mbjax.friction(results["friction"], "pill"), [0.6, 0.4])
    pose = mbjax.collision_geometry_pose(results["pose"], "tin")
    np.testing.assert_allclose(pose.rotation, turned.rotation, atol=1e-15)
    np.testing.assert_array_equal(pose.translation, turned.translation)
    np.testing.assert_array_equal(mbjax.collision_geometry_size(results["size"], "tin"), [0.7, 0.8])
    np.testing.assert_array_equal(mbjax.collision_geometry_size(results["size"], "egg"), [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(mbjax.collision_geometry_vertices(results["vertices"], "rock"), corners)
    assert results["properties"].collision.relaxation_time[5] == 0.0


BAD_VALUES = {
    "negative friction": (lambda m: mbjax.set_friction(m, "tin", -0.1), "static_friction must be a finite number >= 0"),
    "NaN": (lambda m: mbjax.set_friction(m, "tin", np.nan), "'tin'.*static_friction must be a finite number"),
    "above static": (lambda m: mbjax.set_proximity_properties(m, "tin", dynamic_friction=0.7), "greater than the stat"),
    "below dynamic": (lambda m: mbjax.set_proximity_properties(m, "tin", static_friction=0.3), "greater than the stat"),
    "size zero": (
        lambda m: mbjax.set_collision_geometry_size(m, "tin", [0.1, 0.0]),
        "size must be a finite number > 0",
    ),
    "three lengths": (
        lambda m: mbjax.set_collision_geometry_size(m, "tin", [1, 2, 3]),
        r"size must be one number or 2 .* shape \(3,\)",
    ),
    "no lengths": (lambda m: mbjax.set_collision_geometry_size(m, "ground", 1.0), "a HalfSpace has no lengths"),
    "no vertices": (lambda m: mbjax.set_collision_geometry_vertices(m, "tin", CORNERS), "a Cylinder has no vertices"),
    "few vertices": (lambda m: mbjax.set_collision_geometry_vertices(m, "rock", CORNERS[:4]), r"shape \(5, 3\)"),
    "default": (
        lambda m: mbjax.set_proximity_properties(m, "tin", point_stiffness=1.0),
        "registered without stiffness",
    ),
    "no stiffness": (
        lambda m: mbjax.set_proximity_properties(m, "crate", point_stiffness=0.0),
        "must be a number > 0, or inf",
    ),
    "infinite": (lambda m: mbjax.set_penetration_allowance(m, np.inf), "penetration_allowance must be a finite number"),
    "zero": (lambda m: mbjax.set_stiction_tolerance(m, 0.0), "must be a finite number > 0"),
    "no smoothing": (lambda m: mbjax.set_contact_smoothing_length(m, 0.1), "built without one"),
    "negative": (lambda m: mbjax.set_sap_near_rigid_threshold(m, -1.0), "must be a finite number >= 0"),
}


@pytest.mark.parametrize("name", BAD_VALUES)
def test_bad_values_are_refused(name, model):
    act, message = BAD_VALUES[name]
    with pytest.raises(ModelError, match=message):
        act(model)


def test_setters_pass_traced_and_batched_numbers(model):
    def total(mu):
        changed = mbjax.set_friction(model, "tin", 2.0 * mu, mu)
        changed = mbjax.set_collision_geometry_size(changed, "tin", jnp.stack([mu, mu**2]))
        static, dynamic = mbjax.friction(changed, "tin")
        return static + 10.0 * dynamic + jnp.sum(mbjax.collision_geometry_size(changed, "tin"))

    value, slope = jax.jit(jax.vmap(jax.value_and_grad(total)))(jnp.array([0.3, 0.5]))
    np.testing.assert_allclose(value, [12 * 0.3 + 0.3 + 0.09, 12 * 0.5 + 0.5 + 0.25], rtol=1e-14)
    np.testing.assert_allclose(slope, [12 + 1 + 0.6, 12 + 1 + 1.0], rtol=1e-14)


def test_setting_numbers_never_recompiles(model):
    traces = []

    @jax.jit
    def total(m):
        traces.append(1)
        return sum(jnp.sum(leaf) for leaf in jax.tree.leaves(m.collision))

    total(model)
    for change in (
        mbjax.set_friction(model, "tin", 0.1),
        mbjax.set_collision_geometry_size(model, "tin", [1.0, 2.0]),
        mbjax.set_proximity_properties(model, "crate", point_stiffness=2),
        mbjax.set_penetration_allowance(model, 1),
        scene().finalize(),
    ):
        total(change)
    assert len(traces) == 1


def test_models_copy_pickle_and_change_type(model):
    hash((model.topology, model.layout))
    again = pickle.loads(pickle.dumps(model))
    assert not {"_hash"} & (vars(again.topology).keys() | vars(again.layout).keys())  # strings hash otherwise elsewhere
    assert again.layout == model.layout
    assert hash(again.layout) == hash(model.layout)
    assert bool(eqx.tree_equal(again, model))
    single = mbjax.astype(model, jnp.float32)
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(single.collision))
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(scene().finalize(jnp.float32).collision))


def test_removed_joints_leave_geometry_and_filters():
    plant = scene()
    plant.add_rigid_body("leg", inertia())
    plant.register_collision_geometry("leg", BALL, 1.0)
    plant.exclude_collisions_between("leg", "world")
    plant.add_joint(mbjax.RevoluteJoint("ankle", "leg", "foot", axis=[0, 0, 1]))
    plant.remove_joint("ankle")
    plant.exclude_collision_geometries_with_collision_filter_group_pair(
        ("leg", ["leg"]), ("hard", [g for g in plant.body("foot").collision if g.name != "ball"])
    )
    assert plant.finalize().collision_pairs[6:] == (("foot::ball", "leg::ball"),)


def test_convex_shapes():
    assert mbjax.Convex(np.array(CORNERS)) == mbjax.Convex(CORNERS)
    for vertices in (CORNERS[:3], [*CORNERS[:3], (0.5, 0.5, 0.0)], [(0, 0, 0)] * 5, []):
        with pytest.raises(ValueError, match="span no volume"):
            mbjax.Convex(vertices)
    with pytest.raises(ValueError, match="finite"):
        mbjax.Convex([*CORNERS, (0, 0, np.nan)])


def test_proximity_properties():
    assert mbjax.ProximityProperties().friction == (1.0, 1.0)
    assert mbjax.ProximityProperties(0.5) == mbjax.ProximityProperties(0.5, 0.5)
    assert mbjax.ProximityProperties(0.5, 0.5, point_stiffness=np.inf).point_stiffness == np.inf
    for options, message in (
        ({"static_friction": 0.1, "dynamic_friction": 0.2}, "dynamic friction 0.2 is greater than the static one 0.1"),
        ({"point_stiffness": np.nan}, "point_stiffness is nan"),
        ({"hunt_crossley_dissipation": np.inf}, "hunt_crossley_dissipation is inf"),
        ({"relaxation_time": "long"}, "relaxation_time is 'long'"),
    ):
        with pytest.raises(ValueError, match=message):
            mbjax.ProximityProperties(**options)
