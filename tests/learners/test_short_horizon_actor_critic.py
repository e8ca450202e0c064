"""The learner that comes with the package takes its steps, and leaves a policy to act with."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.environments import CartPoleSwingUp, Episodes
from mbjax.learners.short_horizon_actor_critic import Settings, network_policy, train_by_gradients


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


@pytest.mark.whole_run("the same learner with one robot, and randomised models by themselves")
def test_each_world_may_have_a_robot_of_its_own() -> None:
    """Under the same noise and from the same starts carts that are three to five times as heavy are slower."""
    episodes = Episodes(CartPoleSwingUp(mbjax.load("cart_pole", time_step=0.02)), length=20)
    settings = Settings(worlds=4, horizon=3, critic_passes=1, width=8, updates=1)
    ends = []
    for low, high in ((1.0, 1.0), (3.0, 5.0)):
        heavy = {"mass:*": mbjax.uniform(low, high, relative=True)}
        with jax.numpy_dtype_promotion("standard"):
            learner = train_by_gradients(episodes, settings, tell=lambda _: None, distributions=heavy)
        ends.append(np.asarray(learner.states.env.physics.v[:, 0]))
        assert np.isfinite(ends[-1]).all()
    assert np.abs(ends[1]).max() < 0.6 * np.abs(ends[0]).max(), ends
    assert np.ptp(ends[1] / ends[0]) > 0.01, "each has a mass of its own"
