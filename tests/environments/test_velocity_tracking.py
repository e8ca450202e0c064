"""Errors of commanded velocities by their definition, and the same robot standing and trotting in MuJoCo."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.environments import (
    QuadrupedVelocity,
    evaluate_velocity,
    velocity_commands,
)
from mbjax.environments.velocity_tracking import tracking_of
from mbjax.learners.walk_in_mujoco import evaluate_velocity_in_mujoco


@functools.cache
def environment() -> QuadrupedVelocity:
    model = mbjax.load("quadruped", time_step=0.01, ground=0.8, contact_pairs=[("*foot*", "ground")])
    return QuadrupedVelocity(mbjax.set_controller_gains(model, 60.0, 1.5))


def test_errors_are_those_of_their_definition() -> None:
    """Written out with loops: the first second does not count, nor what follows a fall, and strides end within."""
    env, steps = environment(), 120
    rng = np.random.default_rng(0)
    commands = rng.normal(size=(3, 3))
    velocities = commands + rng.normal(size=(steps, 3, 3))
    ends = [steps, 100, 30]
    stands = np.arange(steps)[:, None] < np.array(ends)
    states = mbjax.State(jnp.zeros((steps, 1, 19)), jnp.zeros((steps, 1, 18)), jnp.zeros((steps, 1)))
    found = tracking_of(env, jnp.asarray(commands), jnp.asarray(velocities), jnp.asarray(stands), states)
    assert found.fell.tolist() == [False, True, True]
    assert found.states.q.shape == (1, steps, 19)
    for robot, end in enumerate(ends[:2]):
        wrong = velocities[50:end, robot] - commands[robot]
        np.testing.assert_allclose(found.velocity_error[robot], np.linalg.norm(wrong[:, :2], axis=1).mean(), rtol=1e-12)
        strides = np.stack([wrong[i : i + 25].mean(axis=0) for i in range(len(wrong) - 24)])
        expected = np.linalg.norm(strides[:, :2], axis=1).mean(), np.abs(strides[:, 2]).mean()
        np.testing.assert_allclose([found.stride_error[robot], found.turning_error[robot]], expected, rtol=1e-12)
    assert np.isnan(found.velocity_error[2])
    assert "66.7 % of 3 fell" in str(found)


def test_the_robot_trots_in_mujoco() -> None:
    """Without a policy it stays where it is, on its feet, and follows the trot: legs are lifted in diagonal pairs."""
    env = environment()
    still = jnp.zeros((1, 3))
    seen = []

    def policy(observation: np.ndarray) -> np.ndarray:
        seen.append(observation)
        return np.zeros((1, 12))

    found = evaluate_velocity_in_mujoco(env, policy, still, jax.random.key(0), seconds=1.6)
    assert not found.fell.any()
    q = np.asarray(found.states.q[0])
    assert q.shape == (80, 19)
    assert np.abs(q[:, 4:6]).max() < 0.4
    np.testing.assert_allclose(q[20:, 6], env.home[6], atol=0.06)
    np.testing.assert_allclose(np.asarray(found.states.time[0]), 0.02 * np.arange(1, 81), atol=1e-9)
    assert np.asarray(seen)[:, 0, 9:12].any() == np.False_, "the command"
    clock = np.unwrap(np.arctan2(np.asarray(seen)[:, 0, 12], np.asarray(seen)[:, 0, 13]))
    np.testing.assert_allclose(np.diff(clock), 2.0 * np.pi * 0.02 / 0.5, atol=1e-6)
    knees = q[25:, [9, 12, 15, 18]]
    bend = knees - knees.mean(axis=0)
    assert np.corrcoef(bend.T)[0, 3] > 0.8, "front left and rear right"
    assert np.corrcoef(bend.T)[0, 1] < 0.0, "front left and front right"


@pytest.mark.parametrize("time_step", [0.003, 0.05, 0.0])
def test_a_time_step_that_changes_the_rate_of_control_is_refused(time_step: float) -> None:
    way = environment(), lambda x: x, jnp.zeros((1, 3)), jax.random.key(0)
    with pytest.raises(mbjax.ModelError, match=rf"time_step {time_step:g} s must divide the 0\.02 s between two"):
        evaluate_velocity_in_mujoco(*way, time_step=time_step)


def test_commands_are_within_those_of_the_task() -> None:
    commands = np.asarray(velocity_commands(environment(), jax.random.key(1), 500))
    assert np.abs(commands).max(axis=0) == pytest.approx([0.8, 0.8, 1.0], rel=0.02)
    assert np.abs(commands.mean(axis=0)).max() < 0.1


def test_a_robot_that_is_no_number_has_fallen() -> None:
    env = environment()
    standing = mbjax.State(env.home, jnp.zeros(env.model.num_velocities), jnp.zeros(()))
    lost = dataclasses.replace(standing, q=standing.q * jnp.nan)
    assert [bool(env.has_fallen(state)) for state in (standing, lost)] == [False, True]


def test_a_time_of_less_than_a_stride_is_refused() -> None:
    with pytest.raises(mbjax.ModelError, match=r"more than 1\.5, as the first 1\.0 s"):
        evaluate_velocity(environment(), lambda x: x, jnp.zeros((1, 3)), jax.random.key(0), seconds=1.5)


@pytest.mark.whole_run("the errors' definition, and the same robot in MuJoCo: this compiles the physics")
def test_both_simulators_agree_on_the_trot() -> None:
    """The same start, no command, no action: heights of the trunk and joint angles stay near each other."""
    env = dataclasses.replace(environment(), changing=0.5)  # which no evaluation takes over
    here, there = (
        measure(env, lambda x: jnp.zeros((*x.shape[:-1], 12)), jnp.zeros((1, 3)), jax.random.key(0), 1.6)
        for measure in (evaluate_velocity, evaluate_velocity_in_mujoco)
    )
    assert not here.fell.any()
    a, b = (np.asarray(found.states.q[0]) for found in (here, there))
    np.testing.assert_allclose(a[20:, 6].mean(), b[20:, 6].mean(), atol=0.01)
    assert np.abs(a[20:, 7:] - b[20:, 7:]).mean() < 0.05


@pytest.mark.whole_run("randomised models in brax's wrappers, in test_adapters: this compiles the physics again")
def test_each_command_may_have_a_robot_of_its_own() -> None:
    """Without gains all fall, which the robot itself does not; the environment keeps its own model."""
    env, still = environment(), lambda x: jnp.zeros((*x.shape[:-1], 12))
    weak = {"kp:*": mbjax.uniform(0.01, 0.02, relative=True)}
    found = evaluate_velocity(env, still, jnp.zeros((2, 3)), jax.random.key(0), 1.6, distributions=weak)
    assert found.fell.all()
