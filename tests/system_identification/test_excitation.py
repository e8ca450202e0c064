"""Exciting motions stay within limits and show more than where they started."""

import numpy as np
import pytest

import mbjax
from mbjax import system_identification as si

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


def test_condition_number_does_not_depend_on_units() -> None:
    Y = np.random.default_rng(0).normal(size=(30, 4))
    scaled = Y * np.array([1.0, 1e3, 1e-3, 10.0])
    np.testing.assert_allclose(si.condition_number(scaled), si.condition_number(Y), rtol=1e-9)
