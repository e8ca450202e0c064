"""The learner that comes with the package takes its steps, and leaves a policy to act with."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.environments import CartPoleSwingUp, Episodes
from mbjax.learners.short_horizon_actor_critic import Settings, train


@pytest.mark.whole_run("the environments' own gradients: this compiles for half a minute")
def test_a_few_updates_change_the_policy_and_are_told(capsys) -> None:
    episodes = Episodes(CartPoleSwingUp(mbjax.load("cart_pole", time_step=0.02)), length=20)
    settings = Settings(worlds=4, horizon=3, critic_passes=1, width=8, updates=2)
    told = []
    with jax.numpy_dtype_promotion("standard"):  # which optax's schedules need
        learner = train(episodes, settings, 2, every=1, tell=lambda steps, found: told.append((steps, found)))
    assert [steps for steps, _ in told] == [12, 24]
    assert np.isfinite([found for _, found in told]).all()
    assert capsys.readouterr().out.count("return") == 2
    observation = learner.states.env.observation[0]
    action = learner.policy(observation)
    assert action.shape == (1,)
    assert jnp.abs(action[0]) < 1.0
    assert learner.policy(observation) == learner.policy(observation), "without exploration"
    assert any(bool(jnp.any(x)) for x in jax.tree.leaves(eqx.filter(learner.actor_memory, eqx.is_array)))
