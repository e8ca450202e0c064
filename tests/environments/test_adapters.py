"""Adapters: brax's wrappers, Gymnasium's vector API, checkpoints; what is missing says what to install."""

import dataclasses
import functools
import importlib
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.environments import (
    CartPoleSwingUp,
    Episodes,
    as_brax,
    as_gymnasium,
    as_torch,
    restore_checkpoint,
    save_checkpoint,
)
from mbjax.errors import MissingPackageError
from mbjax.learners.gymnasium_names import register_with_gymnasium
from tests.gradients.checks import WHOLE_RUN

MODEL = mbjax.load("cart_pole", time_step=0.02, dtype=jnp.float32)
TASK = CartPoleSwingUp(MODEL)
LENGTH, WORLDS = 5, 3


def missing(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """Makes a package look as if it were not installed."""
    real = importlib.import_module

    def without(name: str, *args: Any) -> Any:
        if name.split(".")[0] == package:
            raise ImportError(name, name=package)
        return real(name, *args)

    monkeypatch.setattr(importlib, "import_module", without)


def test_brax_wrappers_restart_and_randomize() -> None:
    """Stock wrappers of brax.training: vmap with randomised models, episodes, restarts, which repeat no random key."""
    from brax.envs.wrappers.training import wrap

    with jax.numpy_dtype_promotion("standard"), jax.enable_x64(False):
        randomizer = mbjax.domain_randomizer({"mass:pole": mbjax.uniform(0.5, 2.0, relative=True)})
        keys = jax.random.split(jax.random.PRNGKey(1), WORLDS)
        env = wrap(as_brax(TASK), LENGTH, 1, lambda sys: randomizer(sys, keys))
        state = jax.jit(env.reset)(jax.random.split(jax.random.PRNGKey(0), WORLDS))
        step = jax.jit(env.step)
        done, keys = [], [jax.random.key_data(state.info["mbjax_key"])]
        for _ in range(LENGTH + 1):
            state = step(state, jnp.full((WORLDS, 1), 0.5))
            done.append(np.asarray(state.done).tolist())
            keys.append(jax.random.key_data(state.info["mbjax_key"]))
    drawn = {tuple(key) for each in keys for key in np.asarray(each).tolist()}
    assert len(drawn) == WORLDS * (LENGTH + 2)
    assert done == [[0.0] * WORLDS] * (LENGTH - 1) + [[1.0] * WORLDS, [0.0] * WORLDS]
    assert len(set(np.asarray(state.obs[:, 4]).tolist())) == WORLDS
    assert np.asarray(state.metrics["broken"]).tolist() == [0.0] * WORLDS
    assert (env.observation_size, env.action_size) == (5, 1)


FEW = {"num_envs": 4, "num_eval_envs": 2, "num_evals": 2, "episode_length": LENGTH, "normalize_observations": True}
LEARNERS: dict[str, tuple[dict[str, Any], list[str]]] = {  # settings, and whose layers are made few
    "ppo": (
        {"num_timesteps": 32, "unroll_length": 2, "batch_size": 4, "num_minibatches": 2},
        ["policy_hidden_layer_sizes", "value_hidden_layer_sizes"],
    ),
    "sac": (
        {"num_timesteps": 32, "batch_size": 4, "min_replay_size": 8, "max_replay_size": 64},
        ["hidden_layer_sizes"],
    ),
    "apg": ({"policy_updates": 2, "horizon_length": 2}, ["hidden_layer_sizes"]),
}


@pytest.fixture
def plain_compilation():
    """Programs that run for moments need no optimization."""
    before = jax.config.values["jax_disable_most_optimizations"]
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.mark.parametrize("method", LEARNERS)
@pytest.mark.usefixtures("plain_compilation")
@pytest.mark.whole_run("that learners find what JAX has no more, and the wrappers under them")
def test_learners_of_brax_change_a_policy(method: str) -> None:
    """A few updates of each, unchanged; what they reach is measured by benchmarks/policies.py."""
    agent, (settings, layers) = f"brax.training.agents.{method}", LEARNERS[method]
    train = importlib.import_module(f"{agent}.train").train
    made = getattr(importlib.import_module(f"{agent}.networks"), f"make_{method}_networks")
    settings = {**FEW, **settings, "network_factory": functools.partial(made, **dict.fromkeys(layers, (8,)))}
    found: list[dict] = []
    with jax.numpy_dtype_promotion("standard"), jax.enable_x64(False):
        _, (_, policy, *_), _ = train(as_brax(TASK), progress_fn=lambda _, log: found.append(log), **settings)
    assert [float(log["eval/episode_reward"]) > 0.0 for log in found] == [True, True]
    assert found[0]["eval/episode_reward"] != found[1]["eval/episode_reward"]
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(policy))


def test_learners_of_brax_find_what_jax_has_no_more() -> None:
    """Copies of a tree, one for each device, in brax's modules alone."""
    as_brax(TASK)
    train = importlib.import_module("brax.training.agents.ppo.train")
    copies = train.jax.device_put_replicated({"x": jnp.arange(3.0)}, jax.local_devices()[:1])
    assert copies["x"].shape == (1, 3)
    assert train.jax.vmap is jax.vmap
    assert hasattr(jax, "device_put_replicated") == (train.jax is jax)


def test_gymnasium_worlds() -> None:
    import gymnasium

    with jax.enable_x64(False):
        worlds = as_gymnasium(Episodes(TASK, LENGTH), WORLDS)
        seen, _ = worlds.reset(seed=3)
        assert isinstance(worlds, gymnasium.vector.VectorEnv)
        assert worlds.observation_space.contains(seen)
        worlds.action_space.seed(0)
        for i in range(LENGTH):
            seen, reward, ended, truncated, infos = worlds.step(worlds.action_space.sample())
            assert truncated.tolist() == [i == LENGTH - 1] * WORLDS
            assert not ended.any()
        assert infos["_final_obs"].all()
        assert infos["episode"]["l"].tolist() == [LENGTH] * WORLDS
        assert reward.shape == (WORLDS,)
        assert np.abs(infos["final_obs"] - seen).max() > 1e-3
        again, _ = worlds.reset(seed=3)
        first, _ = worlds.reset(seed=3)
        np.testing.assert_array_equal(first, again)


@pytest.mark.whole_run("worlds of Gymnasium, above")
def test_gymnasium_makes_tasks_by_name() -> None:
    """One world with Gymnasium's own checks and time limit, and many in one program; options go to the task.

    Trimmed: many are those of `as_gymnasium`, above.
    """
    import gymnasium

    names = register_with_gymnasium()
    assert {"mbjax/Quadruped-v0", "mbjax/CartPole-v0"} <= set(names)
    assert register_with_gymnasium() == names, "a second time changes nothing"
    with jax.enable_x64(False), jax.numpy_dtype_promotion("standard"):
        world = gymnasium.make("mbjax/CartPole-v0", max_episode_steps=2, force=5.0)
        first, _ = world.reset(seed=3)
        again, _ = world.reset(seed=3)
        np.testing.assert_array_equal(first, again)
        assert world.observation_space.contains(first)
        found = [world.step(np.array([0.5], np.float32)) for _ in range(2)]
        assert [(ended, truncated) for _, _, ended, truncated, _ in found] == [(False, False), (False, True)]
        assert 0.0 < found[0][1] < 1.0
        assert "upright" in found[0][4]
        assert world.unwrapped.environment.force == 5.0
        inner = world.unwrapped
        inner.state = dataclasses.replace(inner.state, physics=jax.tree.map(lambda x: x * jnp.nan, inner.state.physics))
        seen, reward, ended, _, _ = inner.step(np.array([0.5], np.float32))
        assert (ended, reward, np.abs(seen).max()) == (True, 0.0, 0.0), "what is not finite ends the episode"
        if WHOLE_RUN:
            worlds = gymnasium.make_vec("mbjax/CartPole-v0", num_envs=WORLDS)
            seen, _ = worlds.reset(seed=3)
            assert seen.shape == (WORLDS, 5)
        quadruped = gymnasium.make("mbjax/Quadruped-v0", scale=0.5)
        assert quadruped.action_space.shape == (12,)
        assert quadruped.unwrapped.environment.scale == 0.5


def test_torch_worlds_have_gradients() -> None:
    torch = pytest.importorskip("torch", reason="no extra has torch: pip install torch")
    with jax.enable_x64(False):
        worlds = as_torch(Episodes(TASK, LENGTH), WORLDS)
        seen, reward, done, extras = worlds.step(torch.zeros(WORLDS, 1))
        assert seen["policy"].shape == (WORLDS, 5)
        assert reward.shape == done.shape == extras["time_outs"].shape == (WORLDS,)
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        mbjax.environments.torch_function(lambda x: jnp.sum(x**2))(x).backward()
        assert x.grad.tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    ("package", "call", "way_out"),
    [
        ("gymnasium", lambda: as_gymnasium(Episodes(TASK), 1), r'pip install "mbjax\[learn\]"'),
        ("torch", lambda: as_torch(Episodes(TASK), 1), "pip install torch"),
        ("brax", lambda: as_brax(TASK), r'pip install "mbjax\[learn\]"'),
        ("orbax", lambda: save_checkpoint("nowhere", 0, {}), r'pip install "mbjax\[learn\]"'),
    ],
)
def test_a_missing_package_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, package: str, call: Any, way_out: str
) -> None:
    from mbjax.environments.adapters import brax_training, gymnasium_vector

    brax_training.brax_class.cache_clear()
    gymnasium_vector.gymnasium_class.cache_clear()
    missing(monkeypatch, package)
    with pytest.raises(MissingPackageError, match=way_out):
        call()


@pytest.mark.parametrize("adapter", [as_gymnasium, as_torch])
def test_an_environment_without_episodes_says_how_to_make_them(adapter: Any) -> None:
    with pytest.raises(mbjax.ModelError, match=r"must be mbjax\.environments\.Episodes\(environment\), got CartPole"):
        adapter(TASK, 2)


@pytest.mark.skipif(sys.platform != "linux", reason="orbax's own tests run on Linux")
def test_a_resumed_run_continues_bit_equal(tmp_path) -> None:
    episodes = Episodes(TASK, LENGTH)
    with jax.enable_x64(False):
        step = jax.jit(jax.vmap(episodes.step))
        first = jax.vmap(episodes.reset)(jax.random.split(jax.random.key(2), WORLDS))
        action, states = jnp.full((WORLDS, 1), 0.7), first
        for i in range(2 * LENGTH):
            if i == LENGTH - 2:
                save_checkpoint(tmp_path, i, states)
            states = step(states, action)
        at, resumed = restore_checkpoint(tmp_path, first)
        for _ in range(at, 2 * LENGTH):
            resumed = step(resumed, action)
        for a, b in zip(jax.tree.leaves(states), jax.tree.leaves(resumed), strict=True):
            if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
                a, b = jax.random.key_data(a), jax.random.key_data(b)
            np.testing.assert_array_equal(a, b)
    with pytest.raises(mbjax.ModelError, match="has no checkpoint 7"):
        restore_checkpoint(tmp_path, first, 7)


def test_what_no_learner_can_use_is_refused() -> None:
    gymnasium = pytest.importorskip("gymnasium", reason='pip install "mbjax[learn]" has it')
    episodes = Episodes(TASK, LENGTH)
    for worlds in (0, -2, 2.5):
        with pytest.raises(mbjax.ModelError, match="as_gymnasium: worlds must be a whole number of at least 1"):
            as_gymnasium(episodes, worlds)
    with jax.enable_x64(False), pytest.raises(mbjax.ModelError, match=r"call reset\(\) first"):
        as_gymnasium(episodes, 2).step(np.zeros((2, 1)))
    with pytest.raises(mbjax.ModelError, match=r"as_brax: .* got Episodes.* give episodes\.environment"):
        as_brax(episodes)
    register_with_gymnasium()
    with jax.enable_x64(False), jax.numpy_dtype_promotion("standard"):
        starts = [gymnasium.make_vec("mbjax/CartPole-v0", num_envs=2).reset()[0] for _ in range(2)]
    assert np.abs(starts[0] - starts[1]).max() > 0.0  # until they are seeded
