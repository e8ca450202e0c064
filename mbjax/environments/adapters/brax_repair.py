"""Gives brax's learners the function of JAX that they call and that JAX has no more, in their modules alone."""

import importlib
import types
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

GONE = "device_put_replicated"
CALLERS = ("brax.training.pmap", *(f"brax.training.agents.{agent}.train" for agent in ("ppo", "sac", "apg")))


class JaxAsBraxKnowsIt(types.ModuleType):
    """The module `jax`, and `device_put_replicated` with it."""

    def __getattr__(self, name: str) -> Any:
        return device_put_replicated if name == GONE else getattr(jax, name)


def device_put_replicated(tree: Any, devices: Sequence[Any]) -> Any:
    """Copies of a tree along a new leading axis, one on each device: JAX's own recipe for what it took out."""
    sharding = NamedSharding(Mesh(np.array(devices), "devices"), PartitionSpec("devices"))
    return jax.tree.map(lambda x: jax.device_put(jnp.stack([x] * len(devices)), sharding), tree)


def let_brax_train() -> None:
    """Mends the learners of brax 0.14.2 and older for JAX 0.10 and newer; JAX itself stays as it is.

    They would end in an AttributeError once they have compiled the environment, minutes later. Learners that are not
    there, or lack a package of their own, are left alone.
    """
    if hasattr(jax, GONE):
        return
    mended = JaxAsBraxKnowsIt("jax")
    for name in CALLERS:
        try:
            module: Any = importlib.import_module(name)
        except ImportError:
            continue
        if getattr(module, "jax", None) is jax:
            module.jax = mended
