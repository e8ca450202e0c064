"""The learner that comes with the package takes its steps, and leaves a policy to act with."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.environments import CartPoleSwingUp, Episodes
from mbjax.learners.short_horizon_actor_critic import (
    Settings,
    correlated_noise,
    faded,
    negative_return,
    network_policy,
    robots_of,
    start,
    train_by_gradients,
)


@pytest.mark.whole_run("the environments' own gradients: this compiles for half a minute")
def test_a_few_updates_change_the_policy_and_a_stopped_run_goes_on(tmp_path) -> None:
    """Three updates are bit-equal to two, a stop, and one more; what was finished is returned as it was."""
    episodes = Episodes(CartPoleSwingUp(mbjax.load("cart_pole", time_step=0.02)), length=20)
    settings = Settings(worlds=4, horizon=3, critic_passes=1, width=8, updates=3)
    told, again = [], []

    def until_the_second(progress) -> None:
        told.append(progress)
        if progress.updates == 3:
            raise KeyboardInterrupt

    with jax.numpy_dtype_promotion("standard"):  # which optax's schedules need
        whole = train_by_gradients(episodes, settings, every=1, tell=told.append)
        with pytest.raises(KeyboardInterrupt):
            train_by_gradients(episodes, settings, every=1, tell=until_the_second, folder=tmp_path)
        learner = train_by_gradients(episodes, settings, every=1, tell=again.append, folder=tmp_path)
        train_by_gradients(episodes, settings, every=1, tell=again.append, folder=tmp_path)
    assert [progress.steps for progress in told] == [12, 24, 36] * 2
    assert [progress.updates for progress in again] == [3]
    assert told[2].episode_return == again[0].episode_return
    assert "return" in str(again[0])
    assert np.isfinite([progress.episode_return for progress in told]).all()
    for a, b in zip(jax.tree.leaves(eqx.filter(whole.actor, eqx.is_array)),
                    jax.tree.leaves(eqx.filter(learner.actor, eqx.is_array)), strict=True):  # fmt: skip
        np.testing.assert_array_equal(a, b)
    observation = learner.states.env.observation[0]
    action = learner.policy(observation)
    assert action.shape == (1,)
    assert jnp.abs(action[0]) < 1.0
    assert learner.policy(observation) == learner.policy(observation), "without exploration"
    np.testing.assert_allclose(network_policy(learner)(observation), action, rtol=1e-12)
    assert any(bool(jnp.any(x)) for x in jax.tree.leaves(eqx.filter(learner.actor_memory, eqx.is_array)))


@pytest.mark.whole_run("randomised models in tests/randomization, and parts of the learner, below")
def test_each_world_may_have_a_robot_of_its_own() -> None:
    """Under the same noise and from the same starts carts that are three to five times as heavy are slower."""
    episodes = Episodes(CartPoleSwingUp(mbjax.load("cart_pole", time_step=0.02)), length=20)
    settings = Settings(worlds=4, horizon=3, critic_passes=1, width=8, updates=1, policy_rate=0.25)
    ends = []
    for low, high in ((1.0, 1.0), (3.0, 5.0)):
        heavy = {"mass:*": mbjax.uniform(low, high, relative=True)}
        with jax.numpy_dtype_promotion("standard"):
            learner = train_by_gradients(episodes, settings, tell=lambda _: None, distributions=heavy)
        ends.append(np.asarray(learner.states.env.physics.v[:, 0]))
        assert np.isfinite(ends[-1]).all()
    first = start(episodes, settings, robots_of(episodes, settings, None, jax.random.key(0)), jax.random.key(0))
    numbers = (eqx.filter(x, eqx.is_array) for x in (first.actor, learner.actor, learner.average))
    for old, new, average in zip(*map(jax.tree.leaves, numbers), strict=True):
        np.testing.assert_allclose(average, 0.75 * old + 0.25 * new, rtol=1e-12)
    assert learner.policy(learner.states.env.observation[0]) != learner.actor(
        learner.scaling(learner.states.env.observation[0]), jnp.zeros(1)
    )
    assert np.abs(ends[1]).max() < 0.6 * np.abs(ends[0]).max(), ends
    assert np.ptp(ends[1] / ends[0]) > 0.01, "each has a mass of its own"


@pytest.mark.whole_run("the environments' own gradients, and that they fade, below: it compiles for half a minute")
def test_each_action_has_the_gradient_of_its_own_mixed_return() -> None:
    """For every step of a horizon, in which one world is cut off by its time limit: written out from that step on."""
    episodes = Episodes(CartPoleSwingUp(mbjax.load("cart_pole", time_step=0.02)), length=20)
    settings = Settings(worlds=2, horizon=4, width=8, discount=0.9, actor_trace=0.7, reward_scale=0.1)
    learner = start(
        episodes, settings, robots := robots_of(episodes, settings, None, jax.random.key(0)), jax.random.key(0)
    )
    ages = jnp.array([3, 17], learner.states.statistics.num_steps.dtype)
    learner = eqx.tree_at(lambda x: x.states.statistics.num_steps, learner, ages)
    noise = jax.random.normal(jax.random.key(1), (4, 2, 1))

    @jax.jit
    def climbed(noise: jax.Array) -> jax.Array:
        return jax.grad(lambda x: negative_return(learner.actor, learner, episodes, settings, robots, x)[0])(noise)

    def mixed_return(noise: jax.Array, first: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The sum over worlds of the returns from this step on, and which worlds are cut off."""
        states, weight, total, cut = learner.states, jnp.zeros(2), 0.0, []
        for i in range(4):
            actions = jax.vmap(lambda s, x: learner.actor(learner.scaling(s), x))(states.env.observation, noise[i])
            states = jax.vmap(episodes.step)(states, actions)
            value = jax.vmap(learner.target)(jax.vmap(learner.scaling)(states.last_observation))
            is_last = states.env.done | (i == 3)
            weight = jnp.where(i == first, 1.0, weight)
            total += jnp.sum(weight * (0.1 * states.env.reward + 0.9 * jnp.where(is_last, 1.0, 0.3) * value))
            weight = jnp.where(states.env.done, 0.0, weight * 0.9 * 0.7)
            cut.append(states.truncated)
        return total, jnp.stack(cut)

    slopes, cut = jax.jit(jax.vmap(jax.grad(mixed_return, has_aux=True), (None, 0)))(noise, jnp.arange(4))
    expected = jnp.stack([slopes[i, i] for i in range(4)])
    np.testing.assert_allclose(climbed(noise), -expected / 8, rtol=1e-9, atol=1e-14)
    assert cut[0].sum() == 1, "one world restarts within the horizon"
    assert jnp.all(expected != 0.0)


def test_gradients_fade_and_are_shortened() -> None:
    """In each world by its own length; what is not finite is left out."""
    slopes = jnp.array([[0.3, 0.4], [30.0, 40.0], [jnp.inf, 1.0], [jnp.nan, 1.0]])
    found = jax.vmap(lambda slope: jax.grad(lambda x: jnp.vdot(faded(x, 0.9, 10.0), slope))(jnp.zeros(2)))(slopes)
    np.testing.assert_allclose(found, [[0.27, 0.36], [6.0, 8.0], [0.0, 0.0], [0.0, 0.0]], rtol=1e-12)


def test_episodes_without_last_observations_are_refused() -> None:
    episodes = Episodes(CartPoleSwingUp(mbjax.load("cart_pole", time_step=0.02)), length=20, keep_last=False)
    with pytest.raises(mbjax.ModelError, match="reads last_observation; make Episodes with keep_last=True"):
        train_by_gradients(episodes)


def test_noise_of_actions_is_correlated_from_step_to_step() -> None:
    settings = Settings(worlds=4000, horizon=5, correlation=0.9)
    noise = np.asarray(correlated_noise(jax.random.key(0), settings, 2))
    np.testing.assert_allclose(noise.std(axis=(1, 2)), 1.0, atol=0.03)
    steps = noise.reshape(5, -1)
    np.testing.assert_allclose(np.corrcoef(steps)[0], 0.9 ** np.arange(5), atol=0.03)
    white = np.asarray(correlated_noise(jax.random.key(0), Settings(worlds=4000, horizon=5), 2)).reshape(5, -1)
    assert abs(np.corrcoef(white)[0, 1]) < 0.03
