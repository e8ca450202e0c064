"""A policy's network is the same function in JAX, in NumPy, in a file, in ONNX, and in what trained it."""

import itertools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.learners.network_policy import ACTIVATIONS, NetworkPolicy

SIZES = (5, 8, 7, 3)
SEEN = np.random.default_rng(0).normal(scale=3.0, size=(20, 5))


def policy(activation: str = "swish", last: str = "clip", limit: float = 2.0) -> NetworkPolicy:
    rng = np.random.default_rng(1)
    weights = tuple(jnp.asarray(rng.normal(scale=0.5, size=size)) for size in itertools.pairwise(SIZES))
    biases = tuple(jnp.asarray(rng.normal(size=size)) for size in SIZES[1:])
    scaling = jnp.asarray(rng.normal(size=5)), jnp.asarray(rng.uniform(0.5, 2.0, size=5))
    return NetworkPolicy(*scaling, weights, biases, activation, last, limit)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_numpy_and_files_hold_the_same_function(activation: str, tmp_path) -> None:
    ours = policy(activation, "tanh" if activation == "elu" else "clip")
    found = ours(jnp.asarray(SEEN))
    assert found.shape == (20, 3)
    assert np.abs(found).max() <= 1.0
    assert len(np.unique(found)) > 20
    in_numpy = ours.in_numpy()(SEEN)
    assert isinstance(in_numpy, np.ndarray)
    np.testing.assert_allclose(in_numpy, found, rtol=1e-12, atol=1e-12)
    for name in ("policy.npz", "policy"):
        ours.save(tmp_path / name)
        np.testing.assert_array_equal(NetworkPolicy.load(tmp_path / name)(jnp.asarray(SEEN)), found)
    np.testing.assert_allclose(ours(jnp.asarray(SEEN[3])), found[3], rtol=1e-12, atol=1e-12)


def test_the_input_is_scaled_and_clipped() -> None:
    ours = policy()
    x = jnp.clip((jnp.asarray(SEEN) - ours.mean) / ours.spread, -2.0, 2.0)
    for weights, biases in zip(ours.weights[:-1], ours.biases[:-1], strict=True):
        x = jax.nn.swish(x @ weights + biases)
    x = jnp.clip(x @ ours.weights[-1] + ours.biases[-1], -1.0, 1.0)
    np.testing.assert_allclose(ours(jnp.asarray(SEEN)), x, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("distribution", ["normal", "tanh_normal"])
def test_policies_of_brax_act_alike(distribution: str) -> None:
    """Its own networks, with the scaling that its learners keep."""
    ppo = pytest.importorskip("brax.training.agents.ppo.networks")
    scaling = types.SimpleNamespace(mean=policy().mean, std=policy().spread)
    with jax.numpy_dtype_promotion("standard"):
        networks = ppo.make_ppo_networks(
            5, 3, lambda x, s: (x - s.mean) / s.std, policy_hidden_layer_sizes=(8, 7), distribution_type=distribution
        )
        params = networks.policy_network.init(jax.random.PRNGKey(0))
        wanted, _ = ppo.make_inference_fn(networks)((scaling, params, None), deterministic=True)(
            jnp.asarray(SEEN), jax.random.PRNGKey(1)
        )
        found = NetworkPolicy.from_brax((scaling, params, None))(jnp.asarray(SEEN))
    groups = types.SimpleNamespace(mean={"state": scaling.mean, "all": None}, std={"state": scaling.std, "all": None})
    for x, y in zip(
        jax.tree.leaves(NetworkPolicy.from_brax((groups, params, None))),
        jax.tree.leaves(NetworkPolicy.from_brax((scaling, params, None))),
        strict=True,
    ):
        np.testing.assert_array_equal(x, y)
    np.testing.assert_allclose(found, np.clip(wanted, -1.0, 1.0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("activation", "last"), [("swish", "clip"), ("elu", "tanh")])
def test_onnx_files_hold_the_same_function(activation: str, last: str, tmp_path) -> None:
    onnx = pytest.importorskip("onnx", reason='pip install "mbjax[onnx]" has it')
    reference = pytest.importorskip("onnx.reference")
    ours = policy(activation, last)
    ours.save_onnx(tmp_path / "policy.onnx")
    session = reference.ReferenceEvaluator(onnx.load(tmp_path / "policy.onnx"))
    (found,) = session.run(None, {"observation": SEEN.astype(np.float32)})
    np.testing.assert_allclose(found, ours(jnp.asarray(SEEN)), atol=2e-5)


def test_what_is_no_policy_is_refused(tmp_path) -> None:
    np.savez(tmp_path / "other.npz", x=np.zeros(2))
    with pytest.raises(mbjax.ModelError, match=r"other\.npz was not written by NetworkPolicy\.save"):
        NetworkPolicy.load(tmp_path / "other.npz")
    with pytest.raises(mbjax.ModelError, match="activation must be one of swish, elu, tanh, clip, got 'relu'"):
        policy("relu")
    with pytest.raises(mbjax.ModelError, match="last must be one of clip, tanh, got 'swish'"):
        policy(last="swish")
    with pytest.raises(mbjax.ModelError, match=r"limit must be a number > 0, or inf for none, got -1\.0"):
        policy(limit=-1.0)
