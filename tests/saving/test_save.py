"""A saved model is the same model: structure, leaves, programs and gradients; bad files are one clear error."""

import dataclasses
import gc
import io
import json
import warnings
import zipfile
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.models import ALL_KINDS, load_robot, random_tree

TEXT = "document"


def saved_and_loaded(model: mbjax.MultibodyModel, **options) -> mbjax.MultibodyModel:
    """Through a file in memory."""
    file = io.BytesIO()
    mbjax.save(model, file)
    file.seek(0)
    return mbjax.load_model(file, **options)


def assert_same_model(ours: mbjax.MultibodyModel, other: mbjax.MultibodyModel) -> None:
    """Structure, and every leaf with its type, bit by bit."""
    assert jax.tree.structure(ours) == jax.tree.structure(other)
    assert hash(jax.tree.structure(ours)) == hash(jax.tree.structure(other))
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(other), strict=True):
        assert type(a) is type(b)
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def everything() -> mbjax.MultibodyModel:
    """A discrete model with force elements, constraints, shapes, actuators, a mimic, a keyframe and a distribution."""
    plant = mbjax.MultibodyPlant(1e-3, discrete_contact_approximation="lagged", contact_smoothing_length=1e-4)
    arm = plant.add_model_instance("arm")
    inertia = mbjax.SpatialInertia.solid_cube_with_mass(1.0, 0.2)
    for name in ("a", "b", "c"):
        plant.add_rigid_body(name, inertia, arm)
    plant.add_rigid_body("ball", inertia)
    j0 = plant.add_joint(mbjax.RevoluteJoint("j0", "world", "a", axis=(0, 1, 0), position_limits=(-1, 1), friction=0.1))
    j1 = plant.add_joint(mbjax.PrismaticJoint("j1", "a", "b", X_PF=np.array([0.1, 0, 0]), X_BM=np.array([0, 0.1, 0])))
    j2 = plant.add_joint(mbjax.RevoluteJoint("j2", "b", "c"))
    plant.add_mimic(j2, j0, 2.0, 0.1)
    plant.add_joint_actuator("motor", j0, 5.0, rotor_inertia=0.01, gear_ratio=20.0, kp=3.0)
    plant.add_frame("tool", "c", np.array([0, 0, 0.3]))
    plant.add_force_element(mbjax.RevoluteSpring(j0, 0.1, 2.0))
    plant.add_force_element(mbjax.PrismaticSpring(j1, 0.1, 2.0))
    plant.add_force_element(mbjax.DoorHinge(j0))
    plant.add_force_element(mbjax.LinearSpringDamper("a", np.zeros(3), "ball", np.ones(3), 0.5, 2.0, 0.1))
    plant.add_force_element(mbjax.LinearBushingRollPitchYaw("tool", "ball", *np.ones((4, 3))))
    plant.add_distance_constraint("b", np.zeros(3), "ball", np.ones(3), 1.0)
    plant.add_coupler_constraint(j0, j1, 0.5)
    ground = mbjax.Geometry("ground", mbjax.HalfSpace())
    plant.register_collision_geometry("world", ground, 0.5)
    corners = tuple((x, y, z) for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1))
    plant.register_collision_geometry("ball", mbjax.Geometry("hull", mbjax.Convex(corners)), (0.5, 0.4))
    properties = mbjax.ProximityProperties(0.5, 0.5, 1e5, 3.0)
    plant.register_collision_geometry("c", mbjax.Geometry("tip", mbjax.Sphere(0.1)), properties)
    plant.register_visual_geometry("c", mbjax.Geometry("look", mbjax.Mesh("c.obj"), rgba=(1, 0, 0, 1)))
    plant.add_keyframe("bent", {j0: (0.4,)})
    model = plant.finalize()
    model = mbjax.set_joint_random_position_distribution(model, "j1", mbjax.UniformDistribution(-0.1, 0.1))
    return mbjax.lock_joint(mbjax.set_mass(model, "a", 1.25), "j1")


MODELS = {
    "everything": everything,
    "tree of all joints": lambda: random_tree(0, ALL_KINDS).model,
    "quadruped on a ground": lambda: mbjax.load("quadruped", ground=True, time_step=1e-3),
    "Panda": lambda: load_robot("panda_description/urdf/panda.urdf"),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_is_the_saved_one(name) -> None:
    model = MODELS[name]()
    loaded = saved_and_loaded(model)
    assert_same_model(model, loaded)
    assert str(model) == str(loaded)
    assert model.report() == loaded.report()


def test_programs_and_gradients_are_the_same() -> None:
    model = mbjax.set_mass(mbjax.load("pendulum"), 1, 1.25)
    loaded = saved_and_loaded(model)
    traced = []

    def cost(model):
        traced.append(1)
        return jnp.sum(mbjax.mass_matrix(model, jnp.ones(model.num_positions)) ** 2)

    gradient = jax.jit(jax.grad(cost))
    for a, b in zip(jax.tree.leaves(gradient(model)), jax.tree.leaves(gradient(loaded)), strict=True):
        np.testing.assert_array_equal(a, b)
    assert len(traced) == 1


def test_a_batch_of_models_and_other_types_of_numbers() -> None:
    model = random_tree(1, ("revolute", "screw")).model
    batch = jax.vmap(lambda m: mbjax.set_mass(model, "body0", m))(jnp.array([1.0, 2.0, 3.0]))
    assert_same_model(batch, saved_and_loaded(batch))
    for dtype in (jnp.float32, jnp.bfloat16):
        small = mbjax.astype(model, dtype)
        assert_same_model(small, saved_and_loaded(small))
        assert_same_model(small, saved_and_loaded(model, dtype=dtype))
    for dtype in ("int8", bool):
        with pytest.raises(mbjax.ModelError, match="load_model: dtype must be a float type"):
            saved_and_loaded(model, dtype=dtype)


def test_numbers_that_make_no_sense_are_warned_of() -> None:
    """In one model by name, in a batch by kind; they are kept, and nothing is said of sound ones."""
    model = mbjax.load("cart_pole")
    spoilt = eqx.tree_at(lambda m: m.parameters.body_mass, model, replace_fn=lambda x: x.at[0].set(jnp.nan))
    spoilt = eqx.tree_at(lambda m: m.parameters.joint_damping, spoilt, replace_fn=lambda x: x - 1.0)
    batch = jax.tree.map(lambda *x: jnp.stack(x), model, spoilt)
    for bad, message in (
        (spoilt, "mass of 'rail' is nan kg.*damping of "),
        (batch, "mass must be .* not in every world"),
    ):
        file = io.BytesIO()
        with pytest.warns(mbjax.ModelWarning, match=f"^save: .*{message}"):
            mbjax.save(bad, file)
        file.seek(0)
        with pytest.warns(mbjax.ModelWarning, match=f"^load_model: .*{message}") as caught:
            assert_same_model(bad, mbjax.load_model(file))
        assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        saved_and_loaded(model)


def test_paths_and_their_names(tmp_path) -> None:
    model = mbjax.load("pendulum")
    for path in (tmp_path / "model.mbjax", str(tmp_path / "model")):
        mbjax.save(model, path)
        assert_same_model(model, mbjax.load_model(path))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model", "model.mbjax"]


def test_types_that_jax_does_not_have_are_named() -> None:
    file = io.BytesIO()
    mbjax.save(mbjax.load("pendulum"), file)
    jax.config.update("jax_enable_x64", False)
    try:
        file.seek(0)
        with pytest.raises(mbjax.ParseError, match=r"numbers of float64.*jax_enable_x64.*dtype=jnp.float32"):
            mbjax.load_model(file)
        file.seek(0)
        assert mbjax.load_model(file, dtype=jnp.float32).dtype == jnp.float32
    finally:
        jax.config.update("jax_enable_x64", True)


class Wind(mbjax.AbstractForceElement):
    def resolve(self, plant):
        return self

    def forces(self, model, position, velocity, q, v):
        return mbjax.MultibodyForces.zero(model)

    def potential_energy(self, model, position, q):
        return jnp.zeros(())


def test_classes_of_users_are_refused_by_name() -> None:
    model = mbjax.load("pendulum")
    with pytest.raises(mbjax.ModelError, match=r"force_elements\[0\] is a .*test_save.Wind.*force_elements=…"):
        mbjax.save(dataclasses.replace(model, force_elements=(Wind(),)), io.BytesIO())
    custom = mbjax.CustomConstraint(lambda model, q: q, 1, name="mine")
    with pytest.raises(mbjax.ModelError, match=r"constraints\[0\] is a mbjax.*CustomConstraint"):
        mbjax.save(dataclasses.replace(model, constraints=(custom,)), io.BytesIO())
    with pytest.raises(mbjax.ModelError, match="expected a MultibodyModel, got MultibodyPlant"):
        mbjax.save(cast("Any", mbjax.MultibodyPlant()), io.BytesIO())
    with pytest.raises(mbjax.ModelError, match="is traced"):
        jax.jit(lambda mass: mbjax.save(mbjax.set_mass(model, 1, mass), io.BytesIO()))(1.0)


def parts_of(model) -> dict[str, np.ndarray]:
    file = io.BytesIO()
    mbjax.save(model, file)
    file.seek(0)
    with np.load(file) as parts:
        return dict(parts)


def test_files_that_are_not_ours(tmp_path) -> None:
    path = tmp_path / "model.npz"
    parts = parts_of(mbjax.load("pendulum"))
    text = parts[TEXT].tobytes().decode()

    def refused(match: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(mbjax.ParseError, match=match) as caught:
                mbjax.load_model(path)
        assert str(path) in str(caught.value)
        assert "pickle" not in str(caught.value)

    def write(document: str) -> None:
        changed: dict[str, Any] = {**parts, TEXT: np.frombuffer(document.encode(), np.uint8)}
        np.savez(path, **changed)

    refused("no such file")
    path.write_text("nothing")
    refused("damaged or not one of mbjax.save.*mbjax.load")
    np.savez(path, a=np.zeros(3))
    refused("not a file of mbjax.save")
    np.savez(path, document=np.array([{"a": 1}], dtype=object))
    refused("not one of mbjax.save")
    np.save(path, np.array([print], dtype=object))
    refused("not one of mbjax.save")
    write(text.replace('"schema_version": 1', '"schema_version": 99'))
    refused("schema version is 99, this mbjax reads 1")
    write(text.replace('"schema_version": 1', '"schema_version": true'))
    refused("schema version is True")
    write(text.replace('"class": "RevoluteJoint"', "").replace('"class": "BodyInfo"', '"class": "os.system"'))
    refused("names a class 'os.system'")
    write(text.replace('"mobod_parents"', '"mobod_children"'))
    refused("a TreeTopology has the fields .*mobod_children")
    write(text.replace('"kind": "revolute"', '"kind": "magic"'))
    refused("is of kind 'magic'")
    write(text.replace('{"array": 0,', '{"array": 999,'))
    refused("names array 999")
    write(text.replace('"dtype": "float64"', '"dtype": "float32"'))
    refused("array 0 is of float64, not of float32")
    write(text[:-40])
    refused("damaged")
    document = json.loads(text)
    document["model"]["fields"]["topology"] = 3
    write(json.dumps(document))
    refused("topology of a MultibodyModel is 3, where TreeTopology is expected")
    document = json.loads(text)
    document["model"]["fields"]["topology"]["fields"]["mobod_num_positions"] = [0, "many"]
    write(json.dumps(document))
    refused("mobod_num_positions of a TreeTopology is .*'many'")
    document = json.loads(text)
    masses = document["model"]["fields"]["parameters"]["fields"]["body_mass"]["array"]
    changed: dict[str, Any] = {**parts, f"array_{masses}": np.ones(7)}
    np.savez(path, **changed)
    refused(r"'body_mass' has shape \(7,\), where the model's structure has")
    write(json.dumps({"format": "mbjax model", "schema_version": 1, "model": [1, 2]}))
    refused("it holds a tuple, not a model")
    mbjax.save(mbjax.load("pendulum"), path)
    whole = path.read_bytes()
    for size in (10, len(whole) // 2, len(whole) - 30):
        path.write_bytes(whole[:size])
        refused("damaged")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("document.npy", b"junk")
    refused("damaged|no array")


TAMPERED = {  # what is changed in the fields of a model of two bodies, and the answer
    "a body that is not there": (("layout", "joints", 0, "child_body"), 99, "the body of a joint has index 99 of"),
    "a number as force element": (("force_elements",), [3], r"force_elements of a MultibodyModel is \(3,\)"),
    "a text as keyframe": (("keyframes",), ["x"], "keyframes of a MultibodyModel"),
    "a number as deformable bodies": (("deformables",), 5, "deformables of a MultibodyModel is 5"),
    "no joints": (("layout", "joints"), [], "the joint of an actuator has index 1 of 0"),
    "no frames": (("layout", "frames"), [], "has index 0 of|its frames are not those of its tree"),
    "another kind in the layout": (("layout", "joints", 1, "kind"), "revolute", "its kinds of joints are not those"),
    "a shifted start": (("layout", "joints", 2, "all_q_start"), 0, "its positions are not those of its tree"),
    "a shifted start in q": (("layout", "joints", 2, "q_start"), 0, "its coordinates are not those of its tree"),
    "a name twice": (("layout", "bodies", 1, "name"), "pole", "its names are not those of its tree"),
    "a number as a name": (("layout", "bodies", 1, "name"), 7, "the name of a BodyInfo is 7, where str is expected"),
    "true as an index": (("layout", "bodies", 1, "index"), True, "the index of a BodyInfo is True"),
    "a cycle": (("topology", "mobod_parents"), [-1, 2, 1], "a body comes before the one that carries it"),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_structure_that_contradicts_itself_is_refused(what) -> None:
    place, value, match = TAMPERED[what]
    parts = parts_of(mbjax.load("cart_pole"))
    document = json.loads(parts[TEXT].tobytes())
    at = document["model"]["fields"]
    for key in place[:-1]:
        at = at[key]["fields"] if isinstance(at[key], dict) else at[key]
    at[place[-1]] = value
    file = io.BytesIO()
    np.savez(file, **{**parts, TEXT: np.frombuffer(json.dumps(document).encode(), np.uint8)})
    file.seek(0)
    with pytest.raises(mbjax.ParseError, match=match):
        mbjax.load_model(file)


def test_load_says_that_a_saved_model_is_for_load_model(tmp_path) -> None:
    mbjax.save(mbjax.load("pendulum"), tmp_path / "model.npz")
    with pytest.raises(mbjax.ParseError, match=r"model\.npz: this is a zip archive.*mbjax\.load_model"):
        mbjax.load(tmp_path / "model.npz")


def test_a_damaged_file_does_not_stay_open(tmp_path) -> None:
    path = tmp_path / "damaged.npz"
    mbjax.save(mbjax.load("pendulum"), path)
    path.write_bytes(path.read_bytes()[:2000])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ResourceWarning)
        with pytest.raises(mbjax.ParseError, match="damaged"):
            mbjax.load_model(path)
        gc.collect()
    assert not [each for each in said if issubclass(each.category, ResourceWarning)]
