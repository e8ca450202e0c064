"""A policy as a small network that runs without what trained it: in JAX, in NumPy, and as an ONNX file."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.optional_packages import imported

from .onnx_file import onnx_model

Activation = Callable[[Any, Any], Any]
ACTIVATIONS: dict[str, Activation] = {  # of a module of arrays, jax.numpy or numpy, and an array
    "swish": lambda np, x: 0.5 * x * (1.0 + np.tanh(0.5 * x)),
    "elu": lambda np, x: np.where(x > 0.0, x, np.expm1(np.minimum(x, 0.0))),
    "tanh": lambda np, x: np.tanh(x),
    "clip": lambda np, x: np.clip(x, -1.0, 1.0),
}
BOUNDS = ("clip", "tanh")  # activations that keep actions between -1 and 1


class NetworkPolicy(eqx.Module):
    """Actions by observations: these are scaled and clipped, then go through layers with an activation between them.

        policy = NetworkPolicy.from_brax(params)
        action = policy(observation)                    # JAX; a leading axis for a batch
        action = policy.in_numpy()(observation)         # NumPy alone
        policy.save("walk.npz"); NetworkPolicy.load("walk.npz"); policy.save_onnx("walk.onnx")

    The input is (observation - mean) / spread, clipped to ±`limit`. `last` bounds the actions, "clip" or "tanh".
    """

    mean: Float[Array, " observations"]
    spread: Float[Array, " observations"]
    weights: tuple[Float[Array, "inputs outputs"], ...]
    biases: tuple[Float[Array, " outputs"], ...]
    activation: str = eqx.field(static=True, default="swish")
    last: str = eqx.field(static=True, default="clip")
    limit: float = eqx.field(static=True, default=float("inf"))

    def __check_init__(self) -> None:
        for what, name, known in (("activation", self.activation, ACTIVATIONS), ("last", self.last, BOUNDS)):
            if name not in known:
                raise ModelError(f"NetworkPolicy: {what} must be one of {', '.join(known)}, got '{name}'.")
        if not self.limit > 0.0:
            raise ModelError(f"NetworkPolicy: limit must be a number > 0, or inf for none, got {self.limit}.")

    def __call__(self, observation: Float[Array, "*batch observations"]) -> Float[Array, "*batch actions"]:
        return self.forward(jnp, observation)

    def in_numpy(self) -> Callable[[np.ndarray], np.ndarray]:
        """The same function of NumPy's arrays, which calls nothing of JAX."""
        arrays, options = eqx.partition(self, eqx.is_array)
        policy = eqx.combine(jax.tree.map(np.asarray, arrays), options)
        return lambda observation: policy.forward(np, np.asarray(observation))

    def forward(self, arrays: Any, observation: Any) -> Any:
        """The network, by a module of arrays: jax.numpy or numpy."""
        x = arrays.clip((observation - self.mean) / self.spread, -self.limit, self.limit)
        for weights, biases in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = ACTIVATIONS[self.activation](arrays, x @ weights + biases)
        return ACTIVATIONS[self.last](arrays, x @ self.weights[-1] + self.biases[-1])

    @staticmethod
    def from_brax(params: Any, activation: str = "swish", group: str = "state") -> "NetworkPolicy":
        """The mean action of what brax's PPO returns, (scaling, policy, …), of networks without layers of their own.

        `group` are the observations that the policy sees, where a task has several (`policy_obs_key` of brax).
        """
        scaling, layers = params[0], params[1]["params"]
        is_normal = "MLP_0" in layers  # distribution_type="normal"
        hidden = layers["MLP_0"] if is_normal else layers
        chain = [hidden[f"hidden_{i}"] for i in range(len(hidden))] + ([layers["Dense_0"]] if is_normal else [])
        weights, biases = ([jnp.asarray(layer[name]) for layer in chain] for name in ("kernel", "bias"))
        if not is_normal:  # the last layer has means and spreads, and actions are tanh of what is drawn
            actions = biases[-1].size // 2
            weights[-1], biases[-1] = weights[-1][:, :actions], biases[-1][:actions]
        last = "clip" if is_normal else "tanh"
        parts = (scaling.mean, scaling.std)
        mean, spread = (jnp.asarray(x[group] if isinstance(x, Mapping) else x) for x in parts)
        return NetworkPolicy(mean, spread, tuple(weights), tuple(biases), activation, last)

    def save(self, path: str | Path) -> None:
        """Writes an .npz file that `load` reads, and NumPy alone."""
        options = json.dumps({"activation": self.activation, "last": self.last, "limit": self.limit})
        layers: dict[str, Any] = {f"weights_{i}": x for i, x in enumerate(self.weights)}
        layers |= {f"biases_{i}": x for i, x in enumerate(self.biases)}
        layers |= {"mean": self.mean, "spread": self.spread, "options": np.array(options)}
        with open(path, "wb") as file:  # by a path without ending NumPy would write another file
            np.savez_compressed(file, **layers)

    @staticmethod
    def load(path: str | Path) -> "NetworkPolicy":
        """Reads what `save` wrote."""
        with np.load(path) as file:
            if "options" not in file.files:
                raise ModelError(f"NetworkPolicy.load: {path} was not written by NetworkPolicy.save.")
            count = sum(name.startswith("weights_") for name in file.files)
            weights, biases = (
                tuple(jnp.asarray(file[f"{kind}_{i}"]) for i in range(count)) for kind in ("weights", "biases")
            )
            mean, spread = jnp.asarray(file["mean"]), jnp.asarray(file["spread"])
            return NetworkPolicy(mean, spread, weights, biases, **json.loads(str(file["options"])))

    def save_onnx(self, path: str | Path) -> None:
        """Writes an ONNX file of input `observation` and output `action`, each with a leading axis. Needs onnx."""
        imported("onnx", "NetworkPolicy.save_onnx needs onnx", "onnx").save(onnx_model(self), str(path))
