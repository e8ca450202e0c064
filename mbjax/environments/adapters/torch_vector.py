"""Environments for PyTorch: worlds as rsl_rl's runner takes them, and functions of JAX as differentiable ones of torch.

Arrays are handed over by DLPack, without a copy where JAX and torch share a device.
"""

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax

from mbjax.optional_packages import imported

from ..counts import require_count
from ..episodes import Episodes, require_episodes, worlds_status


class TorchWorlds:
    """Worlds with torch tensors in and out, by the members that rsl_rl's `OnPolicyRunner` reads.

    `step(actions)` returns (observations, rewards, dones, extras); `extras["time_outs"]` marks time limits, and
    `extras["log"]` has totals of the episodes. Observations have the group "policy", in a `TensorDict` where that
    package is installed, as it is beside rsl_rl, else in a dict.
    """

    def __init__(self, episodes: Episodes, worlds: int, seed: int = 0):
        self.torch = imported("torch", "as_torch needs torch")
        has_groups = importlib.util.find_spec("tensordict") is not None
        self.tensor_dict = importlib.import_module("tensordict").TensorDict if has_groups else None
        environment = episodes.environment
        self.num_envs, self.num_actions, self.num_obs = worlds, environment.action_size, environment.observation_size
        self.max_episode_length = episodes.length
        self.cfg: dict = {}
        self.started, self.stepped = jax.jit(jax.vmap(episodes.reset)), jax.jit(episodes.step_worlds)
        self.status = jax.jit(worlds_status)
        self.states = self.started(jax.random.split(jax.random.key(seed), worlds))
        self.device = str(self.tensor(self.states.env.reward).device)

    @property
    def episode_length_buf(self) -> Any:
        """How many steps the running episode of each world has taken; rsl_rl sets it, so that not all end at once."""
        return self.tensor(self.states.statistics.num_steps)

    @episode_length_buf.setter
    def episode_length_buf(self, steps: Any) -> None:
        before = self.states.statistics.num_steps
        new = jax.dlpack.from_dlpack(steps.contiguous()).astype(before.dtype)
        self.states = eqx.tree_at(lambda states: states.statistics.num_steps, self.states, new)

    def reset(self) -> tuple[Any, dict]:
        """Starts all worlds anew."""
        self.states = self.started(self.states.env.key)
        return self.get_observations(), {}

    def get_observations(self) -> Any:
        """The observations of now."""
        seen = {"policy": self.tensor(self.states.env.observation)}
        return seen if self.tensor_dict is None else self.tensor_dict(seen, [self.num_envs])

    def step(self, actions: Any) -> tuple[Any, Any, Any, dict]:
        """Advances all worlds."""
        states = self.states = self.stepped(self.states, jax.dlpack.from_dlpack(actions.detach().contiguous()))
        log = {name: self.tensor(x) for name, x in self.status(states).items()}  # nothing waits for the device
        extras = {"time_outs": self.tensor(states.truncated), "log": log}
        return self.get_observations(), self.tensor(states.env.reward), self.tensor(states.env.done).long(), extras

    def tensor(self, array: jax.Array) -> Any:
        """A tensor of an array; truth values are copied, which DLPack does not have everywhere."""
        if array.dtype == bool:
            return self.torch.from_dlpack(array.astype("uint8")).bool()
        return self.torch.from_dlpack(array)


def as_torch(episodes: Episodes, worlds: int, seed: int = 0) -> TorchWorlds:
    """The episodes of many worlds for PyTorch: rsl_rl's vectorised environment. Needs torch."""
    require_episodes("as_torch", episodes)
    require_count("as_torch", "worlds", worlds)
    return TorchWorlds(episodes, worlds, seed)


def torch_function(function: Callable) -> Callable:
    """A function of float tensors with the gradient of JAX's: for layers, losses and rollouts within PyTorch.

    `function` takes arrays and returns one array. `torch_function(f)(*tensors)` may stand in a graph of torch's
    autograd; its backward pass is JAX's reverse mode, compiled. Needs torch.
    """
    torch = imported("torch", "torch_function needs torch")
    value = jax.jit(function)
    pulled = jax.jit(lambda arrays, cotangent: jax.vjp(function, *arrays)[1](cotangent))

    class OfJax(torch.autograd.Function):
        """A node of torch's graph that is computed by JAX."""

        @staticmethod
        def forward(ctx: Any, *tensors: Any) -> Any:
            arrays = [jax.dlpack.from_dlpack(x.detach().contiguous()) for x in tensors]
            ctx.arrays = arrays
            return torch.from_dlpack(value(*arrays))

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> tuple:
            cotangent = jax.dlpack.from_dlpack(cotangents[0].contiguous())
            return tuple(torch.from_dlpack(x) for x in pulled(ctx.arrays, cotangent))

    return OfJax.apply
