"""`model_status` counts what is wrong with a model, traced or by world; `diagnose` says it in words."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.model import find_numbers
from tests.deformable_meshes import box_mesh
from tests.model.test_numbers_in_setters import small_robot

NAN, INF = np.nan, np.inf


@pytest.fixture(scope="module")
def model() -> mbjax.MultibodyModel:
    return small_robot()


def changed(model: mbjax.MultibodyModel, place: str, value: object, row: object = ...) -> mbjax.MultibodyModel:
    """Another number put in behind the setters' back, as an optimizer does."""

    def leaf(m: mbjax.MultibodyModel) -> jax.Array:
        for name in place.split("."):
            m = m[int(name)] if name.isdigit() else getattr(m, name)
        return m

    return eqx.tree_at(leaf, model, leaf(model).at[row].set(value))


BROKEN = {
    ("parameters.body_mass", -1.0, 1): ("negative_masses", "mass of 'hand' is -1 kg; must be a finite number >= 0."),
    ("parameters.body_mass", NAN, 0): ("not_finite", "mass of 'arm' is nan kg"),
    ("parameters.body_com", INF, (2, 1)): ("not_finite", "centre of mass of 'crate' is [0.1, inf, 0.2] m"),
    ("parameters.body_unit_inertia", 9.0, (1, 0)): ("impossible_inertias", "unit inertia about the origin of 'hand'"),
    ("parameters.frame_quaternion", 0.0, 0): ("zero_directions", "quaternion of 'elbow_parent' is [0, 0, 0, 0]"),
    ("parameters.joint_axis", 0.0, 1): ("zero_directions", "axis of 'wrist' is [0, 0, 0]"),
    ("parameters.joint_damping", -2.0, 0): ("wrong_signs", "damping of 'elbow' is -2; must be a finite number >= 0"),
    ("parameters.effort_limit", -3.0, 0): (
        "wrong_signs",
        "effort limit of 'motor' is -3; must be a number >= 0, or inf",
    ),
    ("parameters.proportional_gain", -1.0, 0): ("wrong_signs", "kp of 'motor' is -1"),
    ("parameters.rotor_inertia", INF, 0): ("not_finite", "rotor inertia of 'motor' is inf"),
    ("parameters.position_lower_limits", 2.0, 0): ("crossed_limits", "position limits of 'elbow' is [2, 1]"),
    ("parameters.position_lower_limits", INF, 1): ("not_finite", "lower position limit of 'wrist' is inf"),
    ("parameters.gravity", NAN, 2): ("not_finite", "gravity of 'z' is nan m/s²"),
    ("parameters.time_step", -0.1): ("time_step", "time step is -0.1 s; must be a finite number > 0"),
    ("parameters.default_positions", 0.0): ("zero_directions", "default quaternion of joint 'crate' is [0, 0, 0, 0]"),
    ("collision.size", -0.1, 0): ("wrong_signs", "size of 'ball' is -0.1 m"),
    ("collision.static_friction", 0.3, 0): ("crossed_limits", "dynamic and static friction of 'ball' is [0.4, 0.3]"),
    ("collision.stiffness", 0.0, 0): (
        "wrong_signs",
        "point_stiffness of 'ball' is 0 N/m; must be a number > 0, or inf",
    ),
    ("collision.stiction_tolerance", 0.0): ("wrong_signs", "stiction_tolerance is 0 m/s"),
    ("force_elements.0.stiffness", -1.0): ("wrong_signs", "stiffness of force element 'RevoluteSpring 0' is -1"),
    ("constraints.0.distance", 0.0): ("wrong_signs", "distance of constraint 'distance_0' is 0; must be"),
}


def counts(status: mbjax.ModelStatus) -> dict[str, np.ndarray]:
    """The counts by name."""
    return {field.name: np.asarray(getattr(status, field.name)) for field in dataclasses.fields(status)}


def test_each_broken_number_is_counted_and_named(model) -> None:
    """In one batch of models, compiled once: each world has one wrong number, the first none."""
    models = [model, *(changed(model, *where) for where in BROKEN)]
    status = jax.jit(jax.vmap(mbjax.model_status))(jax.tree.map(lambda *x: jnp.stack(x), *models))
    np.testing.assert_array_equal(status.is_valid, np.arange(len(models)) == 0)
    for k, (where, (rule, words)) in enumerate(BROKEN.items(), start=1):
        found = {name: x[k] for name, x in counts(status).items()}
        assert found.pop(rule) == 1, where
        assert not any(found.values()), (where, found)
        assert any(words in sentence for sentence in mbjax.diagnose(models[k]).findings), (
            where,
            mbjax.diagnose(models[k]),
        )
    assert not mbjax.diagnose(model)
    assert str(mbjax.diagnose(model)) == "nothing wrong was found"


def test_numbers_of_deformable_bodies_are_checked_too() -> None:
    plant = mbjax.MultibodyPlant(0.01)
    cube = box_mesh((1, 1, 1), (0.02, 0.02, 0.02))
    plant.add_deformable_body("soft", cube, mbjax.DeformableMaterial(1e4, 0.3))
    plant.add_deformable_body("hard", cube, mbjax.DeformableMaterial(np.linspace(1e5, 2e5, 6), 0.3))
    model = plant.finalize()
    assert mbjax.model_status(model).is_valid
    for (place, value, row), words in {
        ("deformables.youngs_modulus", 0.0, 3): "Young's modulus of 'hard' is 0 Pa; must be a finite number > 0",
        ("deformables.poissons_ratio", 0.5, 0): "Poisson's ratio of 'soft' is 0.5; must be a number between -1 and 0.5",
        ("deformables.enabled", NAN, 1): "enabled of 'hard' is nan",
    }.items():
        broken = changed(model, place, value, row)
        assert not mbjax.model_status(broken).is_valid
        assert any(words in sentence for sentence in mbjax.diagnose(broken).findings), mbjax.diagnose(broken)


def test_status_agrees_with_the_reports_of_inertias() -> None:
    """At, within and beyond the border, in both precisions: the same verdict as the constructor's."""
    with jax.enable_x64(True):
        plant = mbjax.MultibodyPlant()
        moments = [(1.0, 1.0, 2.0), (1.0, 1.0, 2.0 + 1e-9), (0.2, 0.3, 0.4), (-0.1, 0.3, 0.3), (0.0, 0.5, 0.5)]
        for k, m in enumerate(moments):
            G = mbjax.UnitInertia.from_moments_products(jnp.array([*m, 0.0, 0.0, 0.0]))
            M = mbjax.SpatialInertia(1.0, np.zeros(3), G, True).shift(np.array([-0.3, 0.2, 0.1]))
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("warnings.warn", lambda *_, **__: None)
                plant.add_rigid_body(f"b{k}", M, on_invalid_inertia="warn")
        model = plant.finalize()
        expected = [mbjax.spatial_inertia_in_body_frame(model, b).is_physically_valid() for b in model.body_names[1:]]
        (finding,) = [f for f in find_numbers(model) if f.counted_as == "impossible_inertias"]
        assert expected == [True, False, True, False, True]
        np.testing.assert_array_equal(np.asarray(finding.is_bad), ~np.array(expected))


def test_names_of_several_instances_are_told_apart() -> None:
    plant = mbjax.MultibodyPlant()
    for instance in ("left", "right"):
        plant.add_model_instance(instance)
        plant.add_rigid_body("hand", mbjax.SpatialInertia.solid_cube_with_mass(1.0, 0.1), instance)
    model = changed(plant.finalize(), "parameters.body_mass", -1.0, 1)
    assert "mass of 'right::hand' is -1 kg" in str(mbjax.diagnose(model))
