"""Derivatives of solutions, forward and reverse, against differences of solutions found anew.

By goals, weights, limits and leaves of the model; where residuals are zero and where they are not; at limits; with
constraints and closed loops. A search that starts at the solution finds the nearest of solutions that are not isolated.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import trajectory_optimization as to
from tests.constraints import mechanisms
from tests.gradients.checks import OFFSETS, WEIGHTS, WHOLE_RUN

ARM = mbjax.load("arm")
Q = mbjax.random_state_within_limits(ARM, jax.random.key(3)).q
X_WT = mbjax.relative_transform(ARM, Q, "world", "tool")
COM = mbjax.center_of_mass_position_in_world(ARM, Q)
STEP = 3e-4


def moved_model(t: jax.Array) -> mbjax.MultibodyModel:
    """The arm with frames, masses and limits that change with t."""

    def leaves(m: mbjax.MultibodyModel) -> tuple:
        p = m.parameters
        return p.frame_translation, p.frame_quaternion, p.body_mass, p.position_upper_limits

    translation, quaternion, mass, upper = leaves(ARM)
    direction = jnp.sin(jnp.arange(quaternion.size, dtype=float)).reshape(quaternion.shape)
    mass = mass * (1.0 + t * jnp.arange(1.0, mass.size + 1.0) / mass.size)
    return eqx.tree_at(leaves, ARM, (translation * (1.0 + t), quaternion + 0.1 * t * direction, mass, upper + 0.3 * t))


def moved_pose(t: jax.Array) -> mbjax.RigidTransform:
    turn = mbjax.spatial.rotation_exp(t * jnp.array([0.3, -0.5, 0.2]))
    return mbjax.RigidTransform(turn @ X_WT.rotation, X_WT.translation + t * jnp.array([0.2, 0.1, -0.3]))


def reached_pose(t: jax.Array, guess: jax.Array) -> mbjax.InverseKinematicsResult:
    """Residuals are zero, and the arm has a spare joint."""
    return mbjax.inverse_kinematics(
        moved_model(t), to.PoseGoal("tool", moved_pose(t)), guess, local=True, tolerance=1e-12
    )


def compromise(t: jax.Array, guess: jax.Array) -> mbjax.InverseKinematicsResult:
    """Residuals are not zero: goals pull against each other, at a limit of joint 3."""
    model = moved_model(t)
    posture = model.position_upper_limits + 0.5 * t
    goals = {
        "hand": to.PointGoal("tool", moved_pose(t).translation + 0.1, p_FP=[0.0, 0.1, t]),
        "view": to.LookAt("tool", jnp.array([1.0, t, 0.2]), weight=0.3 * (1.0 + t)),
        "mass": to.CenterOfMass(jnp.array([0.1, t, 0.3]), weight=0.5),
        "posture": to.JointGoal(jnp.zeros(7).at[3].set(posture[3] + 0.5), jnp.full(7, 0.4).at[3].set(2.0)),
    }
    return mbjax.inverse_kinematics(model, goals, guess, local=True, tolerance=1e-12, max_iterations=300)


def constrained(t: jax.Array, guess: jax.Array) -> mbjax.InverseKinematicsResult:
    """An equality and a bound that acts, before a posture."""
    model = moved_model(t)
    hand = to.PointGoal("tool", moved_pose(t).translation)
    elbow = to.Constraint(to.CenterOfMass(COM), -9.0, jnp.array([9.0, 9.0, -0.01]) + t)
    posture = to.JointGoal(jnp.zeros(7) + t, 1.0)
    held = {"hand": hand, "mass": elbow}
    return mbjax.inverse_kinematics(
        model, {"posture": posture}, guess, constraints=held, local=True, tolerance=1e-12, max_iterations=300
    )


def closed(t: jax.Array, guess: jax.Array) -> mbjax.InverseKinematicsResult:
    """The joints of a four-bar as near to others as its loop allows."""
    case = mechanisms.four_bar()
    goal = case.q + jnp.array([0.3, 0.1, -0.2]) * (1.0 + t)
    return mbjax.inverse_kinematics(
        case.model, to.JointGoal(goal), guess, cset=case.cset, local=True, tolerance=1e-12, max_iterations=300
    )


CASES = {"reached": reached_pose, "compromise": compromise, "constraints": constrained, "closed loop": closed}


WHOLE = {
    case: pytest.mark.whole_run("a compromise, whose goal and limits both pull")
    for case in CASES
    if case != "compromise"
}


@pytest.mark.parametrize("case", [pytest.param(case, marks=WHOLE.get(case, ())) for case in CASES])
def test_derivatives_are_those_of_differences(case: str) -> None:
    """Whole run: in forward mode too."""
    function: Callable = jax.jit(CASES[case])
    zero = jnp.zeros(())
    guess = mechanisms.four_bar().q if case == "closed loop" else Q
    for _ in range(2):  # the second search shows that the first ended at a solution
        start = function(zero, guess)
        assert start.converged
        guess = start.q
    if case == "compromise":
        assert start.at_limit[3]
        assert float(jnp.max(jnp.abs(start.residuals["hand"]))) > 1e-3
    if case == "constraints":
        assert abs(float(mbjax.center_of_mass_position_in_world(ARM, guess)[2] - COM[2]) + 0.01) < 1e-9
    values = np.stack([function(zero + o * STEP, guess).q for o in OFFSETS])
    expected = np.tensordot(WEIGHTS, values, 1) / STEP
    direction = jnp.cos(jnp.arange(float(guess.size)))

    size = max(1.0, float(np.max(np.abs(expected))))
    reverse = jax.jit(jax.grad(lambda t: direction @ CASES[case](t, guess).q))(zero)
    if not WHOLE_RUN:
        np.testing.assert_allclose(reverse, direction @ expected, atol=1e-6 * size)
        return
    forward = jax.jit(lambda t: jax.jvp(lambda t: CASES[case](t, guess).q, (t,), (jnp.ones(()),))[1])(zero)
    np.testing.assert_allclose(forward, expected, atol=1e-6 * size)
    np.testing.assert_allclose(reverse, direction @ forward, atol=1e-9)
