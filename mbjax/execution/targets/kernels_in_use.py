"""Says in words whether this machine's programs will have kernels of our own."""

import os

import jax

from .cpu_kernel import TESTED
from .gpu_kernels import SETTING, are_interpreted, are_on


def kernels_in_use() -> str:
    """A sentence about the kernels of the device that JAX computes on by default, and what turns them on or off."""
    backend = jax.default_backend()
    if backend == "gpu":
        if are_on():
            return "on: recursions run as GPU kernels"
        return f"off: a GPU of compute capability 8 or newer has them, and {SETTING}=1 forces them"
    if backend != "cpu":
        return f"off: there are none for {backend}; programs are XLA's"
    if are_interpreted():
        return f"GPU kernels are interpreted on this CPU, as {SETTING}=interpret says; only tests want that"
    if os.environ.get("MBJAX_ONE_KERNEL") == "0":
        return "off: MBJAX_ONE_KERNEL=0 turns them off"
    if jax.__version_info__[:2] not in TESTED:
        tested = ", ".join(f"{major}.{minor}" for major, minor in TESTED)
        return f"off: tested with JAX {tested}, and this is {jax.__version__}; right, but several times slower"
    return "on: one world's functions and steps run as one CPU kernel each"
