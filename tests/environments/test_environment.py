"""Environments as pure functions, their episodes, and worlds that break beside neighbours that go on."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.environments import CartPoleSwingUp, Episodes, EpisodeState, QuadrupedVelocity, worlds_status
from tests.gradients.checks import WHOLE_RUN

WORLDS, LENGTH = 4, 6
MODEL = mbjax.load("cart_pole", time_step=0.02)
EPISODES = Episodes(CartPoleSwingUp(MODEL), LENGTH)
RESET, STEP = jax.jit(jax.vmap(EPISODES.reset)), jax.jit(jax.vmap(EPISODES.step))
KEYS = jax.random.split(jax.random.key(0), WORLDS)


def actions(seed: int) -> jax.Array:
    return jax.random.uniform(jax.random.key(seed), (WORLDS, 1), minval=-1.0, maxval=1.0)


def test_a_step_is_the_models_and_the_reward_that_of_the_task() -> None:
    first = RESET(KEYS)
    second = STEP(first, actions(1))
    state = jax.tree.map(lambda x: x[1], first.env.physics)
    after, _ = mbjax.step(MODEL, state, 20.0 * actions(1)[1])
    np.testing.assert_allclose(second.env.physics.q[1], after.q, rtol=1e-12)
    upright = 0.5 * (1.0 + np.cos(after.q[1]))
    np.testing.assert_allclose(second.env.metrics["upright"][1], upright, rtol=1e-12)
    expected = [after.q[0], after.v[0], np.cos(after.q[1]), np.sin(after.q[1]), after.v[1]]
    np.testing.assert_allclose(second.env.observation[1], expected, rtol=1e-12)
    assert np.all((np.asarray(second.env.reward) > 0.0) & (np.asarray(second.env.reward) < 1.0))


def with_a_broken_world(states: EpisodeState, world: int) -> EpisodeState:
    """NaN in the velocity of one world."""
    return eqx.tree_at(lambda x: x.env.physics.v, states, states.env.physics.v.at[world].set(jnp.nan))


def run(states: EpisodeState, steps: int, spoil: int | None = None) -> list[EpisodeState]:
    """Some steps; the first puts NaN into the velocity of one world."""
    if spoil is not None:
        states = with_a_broken_world(states, spoil)
    found = []
    for i in range(steps):
        states = STEP(states, actions(i))
        found.append(states)
    return found


def test_episodes_restart_at_their_length_and_are_counted() -> None:
    way = run(RESET(KEYS), LENGTH + 2)
    end, after = way[LENGTH - 1], way[LENGTH]
    assert np.all(end.env.done)
    assert np.all(end.truncated)
    assert not np.any(way[LENGTH - 2].env.done)
    returns = sum(np.asarray(states.env.reward) for states in way[:LENGTH])
    np.testing.assert_allclose(end.statistics.last_return, returns, rtol=1e-12)
    assert end.statistics.last_length.tolist() == [LENGTH] * WORLDS
    assert end.statistics.num_steps.tolist() == [0] * WORLDS
    assert np.all(np.asarray(end.env.physics.time) == 0.0)
    assert np.abs(np.asarray(end.env.physics.q[:, 1]) - np.pi).max() < 0.2
    assert np.abs(np.asarray(end.last_observation - end.env.observation)).max(1).min() > 1e-3
    np.testing.assert_array_equal(after.last_observation, after.env.observation)
    assert len({float(x) for x in end.env.physics.q[:, 1]}) == WORLDS  # each starts anew from its own draw
    assert int(worlds_status(end)["episodes"]) == WORLDS


def test_worlds_may_repeat_their_start() -> None:
    """Each its own, drawn once: nothing is drawn while they run."""
    episodes = Episodes(EPISODES.environment, LENGTH, keep_last=False, same_start=True)
    start = jax.jit(jax.vmap(episodes.reset))(KEYS)
    step, states = jax.jit(jax.vmap(episodes.step)), start
    for _ in range(LENGTH):
        states = step(states, jnp.zeros((WORLDS, 1)))
    assert states.env.done.all()
    np.testing.assert_array_equal(states.env.physics.q, start.env.physics.q)
    np.testing.assert_array_equal(states.env.observation, start.env.observation)
    assert len({float(x) for x in start.env.physics.q[:, 1]}) == WORLDS
    assert "random_bits" not in str(jax.make_jaxpr(episodes.step)(jax.tree.map(lambda x: x[0], start), jnp.zeros(1)))


def test_worlds_that_step_together_are_those_that_step_alone() -> None:
    """Through steps in which none, one and all of them end, and one that breaks a world."""
    alone = RESET(KEYS)
    alone = eqx.tree_at(lambda x: x.statistics.num_steps, alone, alone.statistics.num_steps.at[1].set(2))
    together, step = alone, jax.jit(EPISODES.step_worlds)
    ends = []
    for i in range(LENGTH + 2):
        if i == 3:
            alone, together = with_a_broken_world(alone, 2), with_a_broken_world(together, 2)
        alone, together = STEP(alone, actions(i)), step(together, actions(i))
        for x, y in zip(jax.tree.leaves(alone), jax.tree.leaves(together), strict=True):
            x, y = (jax.random.key_data(z) if jnp.issubdtype(z.dtype, jax.dtypes.prng_key) else z for z in (x, y))
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)
        ends.append(int(together.env.done.sum()))
    assert ends == [0, 0, 0, 2, 0, 2, 0, 0]
    if not WHOLE_RUN:
        return  # actions have gradients, below
    slope = jax.jit(jax.grad(lambda u: jnp.sum(EPISODES.step_worlds(alone, u).env.reward)))(actions(0))
    expected = jax.jit(jax.grad(lambda u: jnp.sum(jax.vmap(EPISODES.step)(alone, u).env.reward)))(actions(0))
    np.testing.assert_allclose(slope, expected, rtol=1e-10)


@pytest.mark.parametrize("spoiled", [0, 2])
def test_a_world_that_breaks_restarts_and_its_neighbours_are_bit_equal(spoiled: int) -> None:
    healthy, broken = run(RESET(KEYS), LENGTH), run(RESET(KEYS), LENGTH, spoiled)
    others = np.arange(WORLDS) != spoiled
    for a, b in zip(healthy, broken, strict=True):
        for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
            if not jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
                np.testing.assert_array_equal(np.asarray(x)[others], np.asarray(y)[others])
        assert all(np.isfinite(x).all() for x in jax.tree.leaves((b.env.physics, b.env.observation, b.env.reward)))
    assert broken[0].broken.tolist() == [i == spoiled for i in range(WORLDS)]
    assert float(broken[0].env.reward[spoiled]) == 0.0
    assert broken[-1].statistics.num_broken.tolist() == [int(i == spoiled) for i in range(WORLDS)]
    assert not broken[1].broken.any()
    assert int(worlds_status(broken[-1])["broken"]) == 1


def test_a_world_that_an_action_breaks_has_no_gradient() -> None:
    """By NaN: zero for its world, and for the others what it is without it, bit by bit."""
    first = RESET(KEYS)

    @jax.jit
    def slopes(actions: jax.Array) -> tuple[jax.Array, EpisodeState]:
        def total(actions: jax.Array) -> tuple[jax.Array, EpisodeState]:
            after = STEP(first, actions)
            return jnp.sum(after.env.reward), after

        return jax.grad(total, has_aux=True)(actions)

    slope, after = slopes(actions(0).at[1].set(jnp.nan))
    expected, _ = slopes(actions(0))
    np.testing.assert_array_equal(slope, expected.at[1].set(0.0))
    assert after.broken.tolist() == [i == 1 for i in range(WORLDS)]
    assert float(expected[1, 0]) != 0.0


def test_actions_have_gradients_and_are_clipped() -> None:
    first = jax.tree.map(lambda x: x[0], RESET(KEYS)).env

    def reward(action: jax.Array) -> jax.Array:
        return EPISODES.environment.step(first, action).reward

    gradient = jax.jit(jax.grad(reward))
    step = 1e-6
    value = jax.jit(reward)
    numeric = (value(jnp.array([0.3 + step])) - value(jnp.array([0.3 - step]))) / (2.0 * step)
    np.testing.assert_allclose(gradient(jnp.array([0.3]))[0], numeric, rtol=1e-5)
    np.testing.assert_array_equal(gradient(jnp.array([1.5])), 0.0)


@pytest.mark.whole_run("randomised models in brax's wrappers, in test_adapters")
def test_worlds_differ_by_randomized_models() -> None:
    """The batch of models goes into the environment; each world equals an environment of its own."""
    models, axes = mbjax.randomize(MODEL, KEYS[0], WORLDS, {"mass:pole": mbjax.uniform(0.5, 2.0, relative=True)})

    def one_step(model: mbjax.MultibodyModel, key: jax.Array) -> jax.Array:
        env = EPISODES.environment.with_model(model)
        return env.step(env.reset(key), jnp.array([0.5])).observation

    found = jax.jit(jax.vmap(one_step, (axes, 0)))(models, KEYS)
    masses = np.asarray(models.parameters.body_mass[:, 2])
    alone = jax.jit(one_step)
    for world in (0, WORLDS - 1):
        wanted = alone(mbjax.set_mass(MODEL, "pole", masses[world]), KEYS[world])
        np.testing.assert_allclose(found[world], wanted, rtol=1e-10)


def test_misuse_is_refused_in_words() -> None:
    with pytest.raises(mbjax.ModelError, match="time_step="):
        CartPoleSwingUp(mbjax.load("cart_pole"))
    with pytest.raises(mbjax.ModelError, match="ground=True"):
        QuadrupedVelocity(mbjax.set_controller_gains(mbjax.load("quadruped", time_step=0.004), 60.0, 1.5))
    with pytest.raises(mbjax.ModelError, match=r"must have shape \(1,\), got \(2,\)"):
        EPISODES.environment.step(jax.tree.map(lambda x: x[0], RESET(KEYS)).env, jnp.zeros(2))
    for length in (0, True, 5.0):
        with pytest.raises(mbjax.ModelError, match="Episodes: length must be a whole number of at least 1"):
            Episodes(EPISODES.environment, length)
    assert Episodes(EPISODES.environment, np.int64(5)).length == 5
    with pytest.raises(mbjax.ModelError, match=r"must be an environment, such as .*, got MultibodyModel"):
        Episodes(MODEL)
    for substeps in (0, -1):
        with pytest.raises(mbjax.ModelError, match="CartPoleSwingUp: substeps must be a whole number of at least 1"):
            CartPoleSwingUp(MODEL, substeps=substeps)
