"""Steps whose lengths are efforts: derivatives, given grids, and the time-optimal move of a sliding mass."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import trajectory_optimization as to
from mbjax.trajectory_optimization.linearization import differentiate_steps
from tests.gradients.checks import WHOLE_RUN

from .problems import differences_of_steps

SLIDER = """<robot name="slider"><link name="rail"/><link name="cart"><inertial><mass value="2"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="slide" type="prismatic"><parent link="rail"/><child link="cart"/><axis xyz="1 0 0"/>
<limit lower="-9" upper="9" effort="4" velocity="99"/><dynamics damping="0.3"/></joint></robot>"""
STEPS = 16


@pytest.fixture(scope="module")
def slider() -> mbjax.MultibodyModel:
    """Trimmed: a hinge, whose angle has no limits, so that steps compile faster."""
    hinge = SLIDER.replace('type="prismatic"', 'type="continuous"').replace('lower="-9" upper="9" ', "")
    return mbjax.load(SLIDER if WHOLE_RUN else hinge, base="fixed", time_step=0.05, actuators="joints")


def problem_of(model: mbjax.MultibodyModel, dynamics: to.FreeSteps, *running) -> to.Problem:
    end = [to.JointGoal([1.0], 100.0), to.VelocityGoal(weight=100.0)]
    return to.Problem(model, mbjax.default_state(model), STEPS, running, end, dynamics=dynamics)


def test_derivatives_by_the_length_and_by_all_else_are_those_of_the_step(slider):
    """Trimmed: those of differences."""
    dynamics = to.FreeSteps(0.01, 0.2)
    states = mbjax.State(jnp.array([[0.1], [0.3]]), jnp.array([[0.5], [-1.0]]), jnp.array([0.0, 0.1]))
    efforts = jnp.array([[2.0, 0.03], [-1.0, 0.15]])

    closed = jax.jit(lambda states, efforts: dynamics.linearize(slider, states, efforts))(states, efforts)
    if WHOLE_RUN:
        by_steps = jax.jit(lambda *x: differentiate_steps(lambda *y: dynamics(slider, *y), slider, *x, None))
        differentiated, allowed = by_steps(states, efforts), 1e-12
    else:
        differentiated, allowed = differences_of_steps(dynamics, slider, states, efforts), 1e-7
    np.testing.assert_allclose(closed.A, differentiated.A, atol=allowed)
    np.testing.assert_allclose(closed.B, differentiated.B, atol=allowed)


@pytest.mark.whole_run("derivatives by the length of steps")
def test_the_shortest_time_is_that_of_full_efforts_and_given_lengths_are_kept(slider):
    """One program for both. Without damping full push and full brake of short steps would take 2 √(d m / f) s."""
    free = problem_of(slider, to.FreeSteps(jnp.full(STEPS, 0.01), jnp.full(STEPS, 0.4)), to.Duration(), to.Effort(1e-2))
    plan = to.solve(free, jnp.tile(jnp.array([0.5, 0.15]), (STEPS, 1)))
    assert plan.report.converged, str(plan.report)
    time = plan.states.time[-1]
    np.testing.assert_allclose(time, jnp.sum(plan.efforts[:, 1]), rtol=1e-12)
    assert 0.9 * 2.0 * np.sqrt(0.5) < time < 1.2 * 2.0 * np.sqrt(0.5)
    np.testing.assert_allclose(plan.states.q[-1], 1.0, atol=0.01)
    assert jnp.max(plan.efforts[:, 0]) > 3.5
    assert jnp.min(plan.efforts[:, 0]) < -3.0

    lengths = jnp.linspace(0.05, 0.2, STEPS)
    given = to.solve(problem_of(slider, to.FreeSteps(lengths, lengths), to.Duration(), to.Effort(1e-2)))
    assert given.report.converged
    np.testing.assert_allclose(given.efforts[:, 1], lengths, rtol=1e-12)
    np.testing.assert_allclose(jnp.diff(given.states.time), lengths, rtol=1e-9)
    np.testing.assert_allclose(given.states.q[-1], 1.0, atol=0.01)


def test_lengths_that_cannot_be(slider):
    with pytest.raises(mbjax.ModelError, match=r"the dynamics' limits low has shape \(7, 2\)"):
        problem_of(slider, to.FreeSteps(jnp.full(7, 0.01), 0.05))
    with pytest.raises(mbjax.ModelError, match=r"step \[1\] has from 0.2 to 0.1 s"):
        to.FreeSteps([0.1, 0.2], [0.1, 0.1])
    with pytest.raises(mbjax.ModelError, match="more than 0 s"):
        to.FreeSteps(0.0, 0.1)
