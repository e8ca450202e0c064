"""Exciting motions stay within limits and show more than where they started."""

import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import system_identification as si
from mbjax.system_identification.excitation import middle_of, motion_limits

from .robots import two_links


@pytest.mark.whole_run("condition numbers, below, and base parameters in test_regressor.py")
def test_gradient_finds_a_better_motion_within_limits() -> None:
    model = two_links()
    for name in ("first", "second"):
        model = mbjax.set_position_limits(model, name, -1.5, 1.5)
        model = mbjax.set_effort_limit(model, f"{name}_motor", 60.0)
    found = si.exciting_motion(model, period=4.0, harmonics=2, samples=20, max_steps=15)
    assert found.condition_number < 0.5 * found.condition_number_at_start
    used = np.array([np.abs(found.q).max() / 1.5, np.abs(found.effort).max() / 60.0])
    assert 0.6 < used.max() <= 0.9  # the margin is used, and kept
    log = found.log(model)
    Y = si.regressor_of_log(model, log.q, log.v, log.vdot)
    np.testing.assert_allclose(Y @ si.linear_parameters(model), log.effort, rtol=1e-9, atol=1e-9)
    base = si.base_parameters(model, Y)
    assert base.rank == si.base_parameters(model).rank
    np.testing.assert_allclose(base.condition_number, found.condition_number, rtol=1e-6)
    rate = (np.roll(found.q, -1, 0) - np.roll(found.q, 1, 0)) / (2.0 * 0.2)  # the motion is periodic
    np.testing.assert_allclose(rate, found.v, atol=0.2 * np.abs(found.v).max())


def slider(lower: float, upper: float) -> mbjax.MultibodyModel:
    plant = mbjax.MultibodyPlant(0.0)
    plant.add_rigid_body("cart", mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1))
    joint = mbjax.PrismaticJoint(
        "slide", "world", "cart", axis=[0.0, 0.0, 1.0], position_limits=(lower, upper), velocity_limits=(-np.inf, 0.5)
    )
    plant.add_joint(joint)
    return plant.finalize()


@pytest.mark.parametrize(("lower", "upper"), [(0.0, np.inf), (-np.inf, 2.0)])
def test_a_limit_without_one_opposite_is_kept_beside(lower: float, upper: float) -> None:
    """A slider that may go up without end moves near its lower stop, not halfway to infinity."""
    model = slider(lower, upper)
    least, most = (lower, lower + 2.0) if np.isfinite(lower) else (upper - 2.0, upper)
    middle = middle_of(model.position_lower_limits, model.position_upper_limits)
    (low, high), (slowest, fastest), *_ = motion_limits(model, 0.9, middle)
    np.testing.assert_allclose([low[0], middle[0], high[0]], [least + 0.1, least + 1.0, most - 0.1])
    np.testing.assert_allclose([slowest[0], fastest[0]], [-0.45, 0.45])
    away = motion_limits(model, 1.0, np.array([least + 5.0 if np.isfinite(lower) else most - 5.0]))[0]
    np.testing.assert_allclose(float(away[1][0] - away[0][0]), 10.0)
    both = middle_of(jnp.array([-1.0, -np.inf]), jnp.array([3.0, np.inf]))
    np.testing.assert_allclose(both, [1.0, 0.0])


@pytest.mark.whole_run("the limits that it keeps, above")
def test_a_motion_beside_a_single_limit() -> None:
    model = slider(0.0, np.inf)
    found = si.exciting_motion(model, max_steps=2, samples=20, harmonics=1)
    assert 0.0 < found.q.min() < found.q.max() < 2.0
    assert np.abs(found.v).max() <= 0.45


def test_condition_number_does_not_depend_on_units() -> None:
    Y = np.random.default_rng(0).normal(size=(30, 4))
    scaled = Y * np.array([1.0, 1e3, 1e-3, 10.0])
    np.testing.assert_allclose(si.condition_number(scaled), si.condition_number(Y), rtol=1e-9)
