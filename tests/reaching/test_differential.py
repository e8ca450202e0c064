"""Velocities of inverse kinematics: what pseudo-inverses give, within limits, on closed loops, with derivatives."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import mbjax
from mbjax import trajectory_optimization as to
from mbjax.reaching.differential import velocity_bounds
from tests.constraints import mechanisms
from tests.gradients.checks import OFFSETS, WEIGHTS

ARM = mbjax.load("arm")
Q = mbjax.random_state_within_limits(ARM, jax.random.key(3)).q
V = jnp.array([0.1, -0.2, 0.3, 0.2, 0.1, -0.1])


@pytest.mark.whole_run("the least velocity within limits, below")
def test_it_is_the_least_velocity_and_decreases_positions_at_the_gain() -> None:
    v = mbjax.differential_inverse_kinematics(ARM, Q, to.FrameVelocity("tool", V), damping=1e-6)
    J = np.asarray(mbjax.jacobian_spatial_velocity(ARM, Q, "tool", jnp.zeros(3), "world", "world"))
    np.testing.assert_allclose(v, np.linalg.pinv(J) @ V, atol=1e-6)
    p = mbjax.points_positions(ARM, Q, "tool", jnp.zeros(3), "world")
    goal = to.PointGoal("tool", p + 0.01)
    v = mbjax.differential_inverse_kinematics(ARM, Q, goal, gain=2.0, damping=1e-6)
    np.testing.assert_allclose(J[3:] @ v, 0.02, atol=1e-7)


def test_limits_hold_and_the_rest_is_a_minimum() -> None:
    wanted = 40.0 * V
    step = 0.05
    v = mbjax.differential_inverse_kinematics(ARM, Q, to.FrameVelocity("tool", wanted), time_step=step)
    low = np.maximum(ARM.velocity_lower_limits, (ARM.position_lower_limits - Q) / step)
    high = np.minimum(ARM.velocity_upper_limits, (ARM.position_upper_limits - Q) / step)
    assert np.all((v >= low) & (v <= high))
    assert np.any((v == low) | (v == high))
    J = np.asarray(mbjax.jacobian_spatial_velocity(ARM, Q, "tool", jnp.zeros(3), "world", "world"))
    damped = np.concatenate([J, 1e-3 * np.sqrt(np.max(np.diag(J.T @ J))) * np.eye(7)])
    best = scipy.optimize.lsq_linear(damped, np.concatenate([wanted, np.zeros(7)]), (low, high), tol=1e-14)
    np.testing.assert_allclose(v, best.x, atol=1e-6)


@pytest.mark.whole_run("loops in inverse kinematics")
def test_loops_stay_closed_and_derivatives_are_those_of_differences() -> None:
    case = mechanisms.four_bar()
    wanted = to.VelocityGoal(jnp.arange(1.0, len(case.q) + 1.0))
    v = mbjax.differential_inverse_kinematics(case.model, case.q, wanted, cset=case.cset)
    G = mbjax.constraints_jacobian(case.model, case.cset, case.q)
    np.testing.assert_allclose(G @ v, 0.0, atol=1e-8)
    assert np.max(np.abs(v)) > 0.1

    def along(t: jax.Array) -> jax.Array:
        goal = to.FrameVelocity("tool", V * (30.0 + t))
        model = eqx.tree_at(lambda m: m.parameters.frame_translation, ARM, ARM.parameters.frame_translation * (1.0 + t))
        return mbjax.differential_inverse_kinematics(model, Q + t, goal)

    direction = jnp.arange(1.0, 8.0)

    @jax.jit
    def slopes(t: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        value, forward = jax.jvp(along, (t,), (jnp.ones(()),))
        return value, forward, jax.grad(lambda t: direction @ along(t))(t)

    zero, h = jnp.zeros(()), 1e-3
    values = np.stack([slopes(zero + o * h)[0] for o in OFFSETS])
    _, forward, reverse = slopes(zero)
    np.testing.assert_allclose(forward, np.tensordot(WEIGHTS, values, 1) / h, atol=1e-6)
    np.testing.assert_allclose(reverse, direction @ forward, atol=1e-9)


def test_the_time_step_has_a_derivative_where_only_some_joints_have_limits() -> None:
    without = jnp.full(7, jnp.inf)
    model = eqx.tree_at(
        lambda m: (
            m.parameters.position_lower_limits,
            m.parameters.position_upper_limits,
            m.parameters.velocity_lower_limits,
            m.parameters.velocity_upper_limits,
        ),
        ARM,
        ((-without).at[0].set(-0.1), without.at[0].set(0.3), -without, without),
    )

    def bounds(step: jax.Array) -> jax.Array:
        return jnp.stack(velocity_bounds(model, jnp.zeros(7), step))

    value, slope = jax.jit(lambda step: jax.jvp(bounds, (step,), (jnp.ones(()),)))(jnp.array(0.5))
    np.testing.assert_allclose(value[:, :2], [[-0.2, -np.inf], [0.6, np.inf]])
    np.testing.assert_allclose(slope[:, :2], [[0.4, 0.0], [-1.2, 0.0]])


def test_what_is_not_finite_gives_no_motion() -> None:
    """Known numbers are refused; traced ones give NaN, and not full speed, in their own world alone."""

    @jax.jit
    @jax.vmap
    def moves(q: jax.Array, V: jax.Array) -> jax.Array:
        return mbjax.differential_inverse_kinematics(ARM, q, to.FrameVelocity("tool", V))

    spoiled = jnp.full(6, jnp.nan), jnp.full(6, jnp.inf), V
    v = moves(jnp.stack([Q, Q, Q.at[2].set(jnp.nan)]), jnp.stack(spoiled))
    assert jnp.isnan(v).all()
    mixed = moves(jnp.stack([Q, Q, Q]), jnp.stack([V, spoiled[0], V]))
    assert jnp.isfinite(mixed[0]).all()
    np.testing.assert_array_equal(mixed[0], mixed[2])
    goal, words = to.FrameVelocity("tool", spoiled[0]), "goal 'FrameVelocity of tool' has a number that is"
    with pytest.raises(mbjax.ModelError, match=f"{words} NaN, in V_WF"):
        mbjax.differential_inverse_kinematics(ARM, Q, goal)
    with pytest.raises(mbjax.ModelError, match=f"{words} infinite, in V_WF"):
        mbjax.differential_inverse_kinematics(ARM, Q, to.FrameVelocity("tool", spoiled[1]))
    with pytest.raises(mbjax.ModelError, match="q must be finite"):
        mbjax.differential_inverse_kinematics(ARM, Q.at[0].set(jnp.inf), to.FrameVelocity("tool", V))


def test_errors() -> None:
    with pytest.raises(mbjax.ModelError, match=r"give the goal to\.Barrier\(to\.Clearance"):
        mbjax.differential_inverse_kinematics(ARM, Q, to.Clearance(), gain=1.0)
    with pytest.raises(mbjax.ModelError, match="here are goals alone, such as"):
        mbjax.differential_inverse_kinematics(ARM, Q, to.at_least(to.Clearance(), 0.01), gain=1.0)
    with pytest.raises(mbjax.ModelError, match=r"FrameVelocity of 'tool': V_WF must be one number or 6 number\(s\)"):
        to.FrameVelocity("tool", jnp.ones(3))
    for wrong in ({"gain": -1.0}, {"gain": "a"}, {"damping": [1.0, 2.0]}, {"time_step": 0.0}, {"time_step": "a"}):
        with pytest.raises(mbjax.ModelError, match=f"differential_inverse_kinematics: {next(iter(wrong))} must be"):
            mbjax.differential_inverse_kinematics(ARM, Q, to.FrameVelocity("tool", V), **wrong)
    with pytest.raises(mbjax.ModelError, match="there are no goals"):
        mbjax.differential_inverse_kinematics(ARM, Q, [])
    with pytest.raises(mbjax.ModelError, match="goal 'PointGoal of tool' is of positions; give gain="):
        mbjax.differential_inverse_kinematics(ARM, Q, [to.VelocityGoal(), to.PointGoal("tool", jnp.zeros(3))])
