"""Torques under constraints: forward dynamics gives the motion back, and of all such torques they are the smallest."""

import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.gradients.checks import check_gradients, compiled
from tests.models import relative_error

from . import mechanisms
from .test_constrained_forward_dynamics import compiled_forward, forward, torques


def inverse(model, cset, q, v, vdot, actuated, torque_weight=None):
    """With gravity, springs and damping; and what they give in forward dynamics, by another way."""
    forces = mbjax.force_elements_contribution(model, q, v)
    result = mbjax.constrained_inverse_dynamics(
        model, cset, q, v, vdot, forces, actuated=actuated, torque_weight=torque_weight
    )
    given_force = mbjax.inverse_dynamics_with_constraints(model, cset, q, v, result.vdot, result.force, forces)
    G = mbjax.constraints_jacobian(model, cset, q)
    return result, given_force, G, forward(model, cset, q, v, result.tau)


compiled_inverse = compiled(inverse)


def reachable_acceleration(case: mechanisms.Mechanism):
    return compiled_forward(case.model, case.cset, case.q, case.v, torques(case, 4)).vdot


@pytest.mark.whole_run("a standing robot, below, whose base is not actuated")
def test_every_velocity_actuated() -> None:
    """The motion is met, and the torque has no part along the rows of G."""
    case = mechanisms.spring_leg()
    asked, all_of_them = reachable_acceleration(case), jnp.ones(case.model.num_velocities, bool)
    result, given_force, G, moved = compiled_inverse(case.model, case.cset, case.q, case.v, asked, all_of_them)
    assert relative_error(result.vdot, asked) < 1e-9
    assert relative_error(moved.vdot, asked) < 1e-9
    assert relative_error(moved.force, result.force) < 1e-9
    assert relative_error(given_force, result.tau) < 1e-9
    assert np.max(np.abs(G @ result.tau)) < 1e-8 * np.max(np.abs(result.tau))


def test_a_standing_robot() -> None:
    """Four feet hold the base of A1: the twelve joints give any motion that keeps them, base included."""
    case = mechanisms.quadruped()
    actuated = np.ones(case.model.num_velocities, bool)
    base = next(j for j in case.model.layout.joints if j.kind == "quaternion_floating")
    actuated[base.v] = False
    assert np.sum(actuated) == 12
    asked = reachable_acceleration(case)
    result, given_force, G, _ = compiled_inverse(case.model, case.cset, case.q, case.v, asked, jnp.asarray(actuated))
    assert relative_error(result.vdot, asked) < 1e-8
    np.testing.assert_array_equal(np.asarray(result.tau)[~actuated], 0.0)
    assert relative_error(given_force, result.tau) < 1e-8
    # A smaller torque would change along the λ that leave the base's equations alone.
    free = np.asarray(G)[:, ~actuated].T
    _, s, Vt = np.linalg.svd(free)
    directions = Vt[np.sum(s > 1e-9) :] @ np.asarray(G)[:, actuated]
    assert np.max(np.abs(directions @ result.tau[actuated])) < 1e-7 * np.max(np.abs(result.tau))


@pytest.mark.whole_run("a standing robot")
def test_motions_out_of_reach() -> None:
    """One motor of a five-bar has one acceleration to choose: the nearest in the metric of M, of all torques."""
    case = mechanisms.five_bar()
    actuated = jnp.array([True, False, False, False])
    asked = jnp.array([1.0, -2.0, 0.5, 3.0])
    result, *_ = compiled_inverse(case.model, case.cset, case.q, case.v, asked, actuated)
    M = mbjax.mass_matrix(case.model, case.q)

    def distance(torque: float) -> float:
        tau = jnp.zeros(4).at[0].set(torque)
        away = compiled_forward(case.model, case.cset, case.q, case.v, tau).vdot - asked
        return float(away @ M @ away)

    best, h = float(result.tau[0]), 0.1
    np.testing.assert_allclose(distance(best + h), distance(best - h), rtol=1e-9)  # a parabola about its lowest point
    assert distance(best) < distance(best + h)


@pytest.mark.whole_run("a standing robot")
def test_torques_that_cost() -> None:
    """With a weight the sum of both costs is least: smaller torques, and a motion farther away."""
    case = mechanisms.five_bar()
    actuated, asked, weight = jnp.array([True, False, True, False]), jnp.array([1.0, -2.0, 0.5, 3.0]), jnp.asarray(0.7)
    exact, *_ = compiled_inverse(case.model, case.cset, case.q, case.v, asked, actuated)
    relaxed, *_ = compiled_inverse(case.model, case.cset, case.q, case.v, asked, actuated, weight)
    M = mbjax.mass_matrix(case.model, case.q)

    def cost(tau) -> float:
        away = compiled_forward(case.model, case.cset, case.q, case.v, tau).vdot - asked
        return float(away @ M @ away + weight * tau @ tau)

    assert jnp.linalg.norm(relaxed.tau) < jnp.linalg.norm(exact.tau)
    for direction in jnp.eye(4)[jnp.array([0, 2])]:
        up, down = cost(relaxed.tau + 0.1 * direction), cost(relaxed.tau - 0.1 * direction)
        np.testing.assert_allclose(up, down, rtol=1e-9)


@pytest.mark.whole_run("derivatives of motion under contacts")
def test_gradients() -> None:
    case = mechanisms.five_bar()
    actuated = jnp.array([True, False, True, False])

    def torque(q, v, vdot):
        return mbjax.constrained_inverse_dynamics(case.model, case.cset, q, v, vdot, actuated=actuated).tau

    check_gradients(torque, case.q, case.v, jnp.array([1.0, -2.0, 0.5, 3.0]))


def test_wrong_sizes() -> None:
    case = mechanisms.five_bar()
    with pytest.raises(ValueError, match="actuated has shape"):
        mbjax.constrained_inverse_dynamics(case.model, case.cset, case.q, case.v, case.v, actuated=[True])
    for weight in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(mbjax.ModelError, match=r"torque_weight must be a finite number > 0, got .* Leave it out"):
            mbjax.constrained_inverse_dynamics(case.model, case.cset, case.q, case.v, case.v, torque_weight=weight)
    with pytest.raises(mbjax.ModelError, match=r"torque_weight must be one number, got shape \(2,\)"):
        mbjax.constrained_inverse_dynamics(case.model, case.cset, case.q, case.v, case.v, torque_weight=[1.0, 2.0])
    for indices in ([0, 1], ["left_shoulder"], np.array([1.0, 0.0, 1.0, 0.0]), np.array([1, 0, 1, 0])):
        with pytest.raises(mbjax.ModelError, match=r"actuated must be 4 truth values of type bool.*np\.isin"):
            mbjax.constrained_inverse_dynamics(case.model, case.cset, case.q, case.v, case.v, actuated=indices)
    with pytest.raises(ValueError, match="force has shape"):
        mbjax.inverse_dynamics_with_constraints(case.model, case.cset, case.q, case.v, case.v, jnp.zeros(1))
