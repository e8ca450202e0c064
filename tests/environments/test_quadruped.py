"""The quadruped's trot in open loop, commands that change, falls, and what standing is worth."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.environments import QuadrupedVelocity

FEET = [f"{end}_{side}_foot" for end in ("front", "rear") for side in ("left", "right")]
RADIUS = 0.022  # m, of a foot


@functools.cache
def environment() -> QuadrupedVelocity:
    model = mbjax.load("quadruped", time_step=0.01, ground=0.8, contact_pairs=[("*foot*", "ground")])
    return QuadrupedVelocity(mbjax.set_controller_gains(model, 60.0, 1.5))


@functools.cache
def feet_at() -> callable:
    """Places of the feet in the trunk's frame by q, compiled once."""

    @jax.jit
    def places(q: jax.Array) -> jax.Array:
        poses = mbjax.body_poses_in_world(environment().model, q)
        index = [environment().model.body_index(name) for name in ["trunk", *FEET]]
        p_BF_W = poses.translation[jnp.array(index[1:])] - poses.translation[index[0]]
        return p_BF_W @ poses.rotation[index[0]]

    return places


def test_home_stands_on_the_ground_and_the_trot_knows_its_feet() -> None:
    env = environment()
    feet = feet_at()(env.home)
    np.testing.assert_allclose(feet, env.trot.feet, atol=1e-12)
    np.testing.assert_allclose(feet[:, 2] + env.home[6], RADIUS, atol=1e-12)
    assert np.sign(feet[:, :2]).tolist() == [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]


def test_legs_move_the_feet_as_the_trot_says() -> None:
    """To first order: joint angles for a hundredth of the displacements, by the robot's own kinematics."""
    env, command = environment(), jnp.array([0.7, -0.4, 0.9])
    for phase in (0.1, 0.35, 0.8):
        wanted = env.trot.displacements(jnp.float64(phase), command)
        q = env.home.at[env.rows[0]].add(0.01 * env.trot.angles(jnp.float64(phase), command))
        moved = feet_at()(q) - feet_at()(env.home)
        np.testing.assert_allclose(moved, 0.01 * wanted, atol=2e-5)


def test_feet_on_the_ground_go_back_as_fast_as_the_command_says() -> None:
    """A foot at r moves with -(velocity + turning × r) in its half of the period, and is lifted in the other."""
    env, command = environment(), np.array([0.7, -0.4, 0.9])
    slope = jax.jacfwd(env.trot.displacements)
    for phase, swinging in ((0.1, [0, 3]), (0.4, [0, 3]), (0.6, [1, 2]), (0.9, [1, 2])):
        rates = np.asarray(slope(jnp.float64(phase), jnp.asarray(command))) / env.trot.period
        lifts = np.asarray(env.trot.displacements(jnp.float64(phase), jnp.asarray(command)))[:, 2]
        assert np.flatnonzero(lifts > 1e-6).tolist() == swinging
        x, y = np.asarray(env.trot.feet[:, 0]), np.asarray(env.trot.feet[:, 1])
        ground = -np.stack([command[0] - command[2] * y, command[1] + command[2] * x], axis=1)
        standing = [i for i in range(4) if i not in swinging]
        np.testing.assert_allclose(rates[standing, :2], ground[standing], atol=1e-12)
    ends = [env.trot.displacements(jnp.float64(phase), jnp.asarray(command)) for phase in (0.5 - 1e-9, 0.5)]
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-7)


def test_standing_still_is_worth_less_than_a_third_of_the_most() -> None:
    """The mean over commands of the tracking terms, which are all that a robot at rest earns."""
    env = environment()
    drawn = jax.random.uniform(jax.random.key(0), (20_000, 4))
    command = np.asarray(jax.vmap(env.drawn_command)(drawn))
    worth = np.exp(-np.sum(command[:, :2] ** 2, axis=1) / 0.15) + 0.5 * np.exp(-(command[:, 2] ** 2) / 0.15)
    assert worth.mean() < 0.5
    assert np.abs(command).max(axis=0) == pytest.approx(env.fastest, rel=1e-2)
    assert np.mean(~command.any(axis=1)) == pytest.approx(0.1, abs=0.01)


def test_commands_change_now_and_then() -> None:
    env = dataclasses.replace(environment(), changing=0.25)
    state, memory = env.start(jax.random.key(3))
    changed = 0
    update = jax.jit(lambda memory, key: env.remembered(state, memory, jnp.zeros(12), key))
    for key in jax.random.split(jax.random.key(4), 80):
        after = update(memory, key)
        changed += not np.array_equal(after.command, memory.command)
        memory = after
    assert 10 <= changed <= 32
    still = dataclasses.replace(env, changing=0.0).remembered(state, memory, jnp.zeros(12), jax.random.key(5))
    np.testing.assert_array_equal(still.command, memory.command)


def test_a_fall_is_a_tilt_or_a_low_trunk() -> None:
    env = environment()
    state = mbjax.State(env.home, jnp.zeros(18))
    assert not env.has_fallen(state)
    assert env.has_fallen(mbjax.State(env.home.at[6].mul(0.49), state.v))
    for angle, fell in ((1.0, False), (1.1, True)):
        tilted = env.home.at[:4].set(
            jnp.array([np.cos(angle / 2), 0.6 * np.sin(angle / 2), 0.8 * np.sin(angle / 2), 0])
        )
        assert bool(env.has_fallen(mbjax.State(tilted, state.v))) == fell


def test_other_numbers_keep_the_controller() -> None:
    """A randomized robot is moved by the trot of the nominal one."""
    env = environment()
    heavy = env.with_model(mbjax.set_mass(env.model, "trunk", 9.0))
    assert heavy.trot is env.trot
    assert heavy.home is env.home


def test_robots_without_four_feet_or_a_free_trunk_are_refused() -> None:
    model = mbjax.load("quadruped", time_step=0.01, ground=0.8, contact_pairs=[("front*foot*", "ground")])
    with pytest.raises(mbjax.ModelError, match="found 2: front_left_foot_collision, front_right_foot_collision"):
        QuadrupedVelocity(mbjax.set_controller_gains(model, 60.0, 1.5))
    fixed = mbjax.load("quadruped", time_step=0.01, ground=0.8, contact_pairs=[("*foot*", "ground")], base="fixed")
    with pytest.raises(mbjax.ModelError, match="the trunk must move freely"):
        QuadrupedVelocity(mbjax.set_controller_gains(fixed, 60.0, 1.5))
