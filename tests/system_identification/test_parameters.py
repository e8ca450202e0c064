"""Parameters by name: values, bounds, physical whatever the numbers are, derivatives, and errors that help."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import system_identification as si

from .robots import sliding_box, two_links

EVERYTHING = {
    "body:*": si.physical(),
    "joint_friction:*": si.positive(),
    "joint_damping:*": si.scaled(0.2, 5.0),
    "armature:first": si.between(0.001, 0.1),
    "frame_translation:second_parent": si.free(),
    "frame_rotation:second_parent": si.free(),
    "spring_stiffness:second": si.positive(),
    "gravity:world.z": si.free(),
    "effort_bias:*": si.free(),
    "delay:effort": si.between(-0.02, 0.05),
}


@pytest.fixture(scope="module")
def unknown() -> si.Parameters:
    return si.Parameters(two_links(), EVERYTHING)


def test_start_is_the_model(unknown: si.Parameters) -> None:
    for got, expected in zip(
        jax.tree.leaves(unknown.model(unknown.initial)), jax.tree.leaves(two_links()), strict=True
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)


def test_numbers_invert_the_map_and_models_are_physical(unknown: si.Parameters) -> None:
    theta = unknown.initial + 1.5 * jax.random.normal(jax.random.key(3), unknown.initial.shape)
    system = unknown.system(theta)
    np.testing.assert_allclose(unknown.numbers(system), theta, atol=1e-9)
    assert bool(mbjax.model_status(system.model).is_valid)
    values = dict(zip(unknown.names, unknown.values(theta), strict=True))
    assert 0.001 < values["armature:first"] < 0.1
    np.testing.assert_allclose(values["mass:lower"], mbjax.mass(system.model, "lower"))


def test_extreme_numbers_stay_physical(unknown: si.Parameters) -> None:
    for scale in (-8.0, 8.0):
        assert bool(mbjax.model_status(unknown.model(unknown.initial + scale)).is_valid)


def test_centre_of_mass_keeps_the_central_inertia() -> None:
    unknown = si.Parameters(two_links(), {"center_of_mass:lower": si.free()})
    moved = unknown.model(unknown.initial + 1.0)

    def central(model: mbjax.MultibodyModel) -> jax.Array:
        inertia = mbjax.spatial_inertia_in_body_frame(model, "lower")
        return inertia.unit_inertia.shift_to_center_of_mass(inertia.com).moments_products()

    np.testing.assert_allclose(central(moved), central(two_links()), atol=1e-14)


@pytest.mark.whole_run("fits, which go by them, in test_torque_fits.py")
def test_derivatives(unknown: si.Parameters) -> None:
    values = jax.jit(lambda theta: unknown.values(theta))
    forward = jax.jit(jax.jacfwd(values))(unknown.initial)
    np.testing.assert_allclose(jax.jit(jax.jacrev(values))(unknown.initial), forward, atol=1e-12)
    d = jax.random.normal(jax.random.key(1), unknown.initial.shape)
    h = 1e-5
    numeric = (values(unknown.initial + h * d) - values(unknown.initial - h * d)) / (2.0 * h)
    np.testing.assert_allclose(forward @ d, numeric, atol=1e-7)


def test_priors_are_in_parts_of_masses() -> None:
    unknown = si.Parameters(
        two_links(), {"body:upper": si.physical(prior=0.1), "joint_damping:first": si.free(prior=0.2)}
    )
    theta = unknown.numbers(mbjax.set_joint_damping(mbjax.set_mass(two_links(), "upper", 3.0), "first", 0.5))
    residuals = dict(zip(unknown.names, unknown.prior_residuals(theta), strict=True))
    np.testing.assert_allclose(residuals["mass:upper"], 5.0)
    np.testing.assert_allclose(residuals["joint_damping:first"], 1.0)
    assert all(abs(r) < 1e-9 for name, r in residuals.items() if name.startswith(("inertia", "center")))


def test_an_impossible_inertia_starts_at_the_nearest() -> None:
    model = two_links()
    six = model.parameters.body_unit_inertia
    wrong = dataclasses.replace(model.parameters, body_unit_inertia=six.at[1, 2].set(0.2))  # xx + yy < zz
    model = dataclasses.replace(model, parameters=wrong)
    with pytest.raises(mbjax.ModelError, match=r"'lower' has no mass, or .* physical\(nearest=True\)"):
        si.Parameters(model, {"body:lower": si.physical()})
    unknown = si.Parameters(model, {"body:*": si.physical(nearest=True)})
    start = unknown.model(unknown.initial)
    assert bool(mbjax.model_status(start).is_valid)
    np.testing.assert_allclose(start.parameters.body_unit_inertia[0], six[0], atol=1e-12)
    changed = np.abs(np.asarray(start.parameters.body_unit_inertia[1] - model.parameters.body_unit_inertia[1]))
    assert 0.0 < changed.max() < 0.15
    kept = si.Parameters(model, {"body:*": si.physical(nearest=True), "body:lower": si.fixed()})
    np.testing.assert_array_equal(kept.base.model.parameters.body_unit_inertia, wrong.body_unit_inertia)


def test_later_patterns_replace_earlier_ones() -> None:
    unknown = si.Parameters(two_links(), {"mass:*": si.positive(), "mass:upper": si.fixed()})
    assert unknown.names == ("mass:lower",)


def test_surface_friction_keeps_the_ratio() -> None:
    unknown = si.Parameters(sliding_box(), {"friction:ball::ball": si.positive(), "stiffness:*": si.positive()})
    model = unknown.model(unknown.initial + jnp.log(2.0))
    np.testing.assert_allclose(mbjax.friction(model, "ball"), (0.8, 0.8))


def test_one_component_of_a_rotation() -> None:
    unknown = si.Parameters(two_links(), {"frame_rotation:second_parent.y": si.free()})
    turned = unknown.model(jnp.array([4.0]))  # in steps of 0.05 rad
    np.testing.assert_allclose(unknown.numbers(turned), [4.0], atol=1e-12)
    np.testing.assert_allclose(unknown.values_of(turned), [0.2], atol=1e-12)


def test_two_robots_have_names_of_their_own() -> None:
    plant = mbjax.MultibodyPlant(0.0)
    for robot in ("left", "right"):
        instance = plant.add_model_instance(robot)
        inertia = mbjax.SpatialInertia(1.0, [0.0] * 3, mbjax.UnitInertia(0.1, 0.1, 0.1))
        plant.add_rigid_body("link", inertia, model_instance=instance)
        plant.add_joint(mbjax.RevoluteJoint("hinge", "world", f"{robot}::link", axis=[0.0, 1.0, 0.0]))
        plant.add_force_element(mbjax.RevoluteSpring(f"{robot}::hinge", 0.0, 1.0))
    model = plant.finalize()
    names = si.linear_parameter_names(model)
    assert len(set(names)) == len(names) == 30
    unknown = si.Parameters(model, {"spring_stiffness:*": si.positive(), "mass:*": si.positive()})
    assert len(unknown) == len(set(unknown.names)) == 4


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        ({"mass:uper": si.positive()}, "'mass:uper' matches nothing in this model. Did you mean 'mass:upper'"),
        ({"mas:*": si.positive()}, "the kinds of this model are .* Did you mean 'mass'"),
        ({"inertia:upper": si.positive()}, "belong together and must be physical"),
        ({"inertia:upper.xx": si.physical()}, "'inertia:upper': physical.*1 of the six are unknown"),
        ({"joint_damping:first": si.physical()}, "cannot be physical"),
        ({"joint_damping:first": si.between(1.0, 2.0)}, "is 0.3 in the model, not between 1 and 2"),
        ({"joint_damping:first": si.between(0.1, 2.0, start=3.0)}, "is 3 at start, not between 0.1 and 2"),
        ({"joint_damping:first": si.scaled(0.5, 2.0, start=3.0)}, "is 3 at start, not between 0.15 and 0.6"),
        ({"mass:*": si.shared("m", si.scaled(0.5, 2.0, start=1.5))}, "share 'mass:m' are from 1.2 to 2 in the model"),
        ({"gravity:world.x": si.scaled(0.5, 2.0)}, "is 0 in the model"),
        ({"mass:*": 3.0}, "must have a space"),
        ({}, "no patterns"),
    ],
)
def test_errors_say_the_way_out(patterns: dict, message: str) -> None:
    with pytest.raises(mbjax.ModelError, match=message):
        si.Parameters(two_links(), patterns)


def test_table_shows_bounds_and_units(unknown: si.Parameters) -> None:
    text = str(unknown)
    assert "joint_damping:first" in text
    assert "0.06 … 1.5" in text
    started = si.Parameters(two_links(), {"joint_damping:first": si.scaled(0.2, 5.0, start=1.0)})
    assert "0.06 … 1.5" in str(started), "factors of the model's value"
    np.testing.assert_allclose(started.values(started.initial), 1.0)
    assert "kg m²" in text
