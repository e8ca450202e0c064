"""Keyframes: named states of a plant and of its model."""

import warnings

import jax
import numpy as np
import pytest

import mbjax


def make_plant() -> mbjax.MultibodyPlant:
    plant = mbjax.MultibodyPlant()
    plant.add_rigid_body("arm", mbjax.SpatialInertia.solid_cube_with_mass(1.0, 0.2))
    plant.add_rigid_body("ball", mbjax.SpatialInertia.solid_cube_with_mass(1.0, 0.2))
    plant.add_joint(mbjax.RevoluteJoint("hinge", "world", "arm", default_positions=0.2))
    return plant


def test_joints_that_a_keyframe_leaves_out_are_at_their_defaults() -> None:
    plant = make_plant()
    plant.add_keyframe("up", {}, {"hinge": 2.0}, time=0.5)
    model = plant.finalize()
    state = mbjax.keyframe_state(model, "up")
    np.testing.assert_allclose(state.q, [0.2, 1, 0, 0, 0, 0, 0, 0])
    np.testing.assert_allclose(state.v, [2.0, 0, 0, 0, 0, 0, 0])
    assert (model.keyframe_names, float(state.time)) == (("up",), 0.5)


def test_the_numbers_of_a_keyframe_are_leaves() -> None:
    plant = make_plant()
    plant.add_keyframe("up", {"hinge": 1.0})
    model = plant.finalize()
    gradient = jax.grad(lambda m: mbjax.keyframe_state(m, "up").q[0] ** 2)(model)
    assert float(gradient.keyframes[0].q[0]) == 2.0
    assert mbjax.parameters.defaults(model).keyframes[0].q is True


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("", {}), "non-empty"),
        (("up", {}), "keyframe of that name already"),
        (("b", {"hing": 1.0}), "hing"),
        (("b", {"hinge": [1.0, 2.0]}), "positions of joint 'hinge' must be 1 number"),
        (("b", {"hinge": float("nan")}), "finite"),
    ],
)
def test_bad_keyframes_are_refused(arguments, words) -> None:
    plant = make_plant()
    plant.add_keyframe("up", {"hinge": 1.0})
    with pytest.raises(mbjax.ModelError, match=words):
        plant.add_keyframe(*arguments)


def test_numbers_of_joints_that_mimic_count_only_where_they_agree() -> None:
    def with_keyframe(positions: dict, velocities: dict) -> mbjax.MultibodyModel:
        plant = make_plant()
        plant.add_joint(mbjax.RevoluteJoint("wrist", "arm", "ball"))
        plant.add_mimic("wrist", "hinge", 2.0, 0.1)
        plant.add_keyframe("up", positions, velocities)
        return plant.finalize()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = with_keyframe({"hinge": 1.0, "wrist": 2.10001}, {"hinge": 3.0, "wrist": 6.0})
        with_keyframe({"wrist": 0.5}, {"wrist": 0.0})  # where the leader is by default, at rest
    np.testing.assert_array_equal(mbjax.keyframe_state(model, "up").q, [1.0])
    message = r"do not count: 'up' gives joint 'wrist' the position 5, by 'hinge' it is 2.1; .*velocity 1, .* it is 0\."
    with pytest.warns(mbjax.ModelWarning, match=message) as said:
        model = with_keyframe({"hinge": 1.0, "wrist": 5.0}, {"wrist": 1.0})
    assert [w.filename for w in said] == [__file__]
    np.testing.assert_array_equal(mbjax.keyframe_state(model, "up").q, [1.0])
