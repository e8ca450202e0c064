"""Recursions on a GPU as kernels of their own, in which every world is a thread (`gpu_scan.py`).

XLA has no loops within its kernels there: each turn of a recursion is several of them, and all that they hand to one
another goes through memory. What is traced for a kernel of ours are the same steps as on a CPU, of single numbers: a
row is the list of its entries, read where it is met, and nothing is put together.

They are on where there are GPUs that can. MBJAX_GPU_KERNELS=0 in the environment turns them off; with 1 they are on in
what is lowered for a GPU that is elsewhere, too; with "interpret" a CPU runs them by Pallas's interpreter.
"""

import contextvars
import functools
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jaxtyping import Array, Int

LEAST_CAPABILITY = 8.0  # of a GPU that XLA compiles Triton's kernels for: Ampere
SETTING = "MBJAX_GPU_KERNELS"

_for_gpu = contextvars.ContextVar("for_gpu", default=False)


class NotInKernelError(Exception):
    """What is asked for is not among what these kernels do."""


class DeviceRows(NamedTuple):
    """An array in the memory of a GPU, of which a thread reads rows."""

    read: Callable[[Int[Array, ""]], list]


def are_on() -> bool:
    """Whether a GPU is to run them."""
    match os.environ.get(SETTING):
        case "1":
            return True
        case "0" | "interpret":
            return False
        case _:
            return has_capable_gpus()


@functools.cache
def has_capable_gpus() -> bool:
    """Whether JAX computes on GPUs by default, and all can."""
    return jax.default_backend() == "gpu" and all(
        capability_of(device) >= LEAST_CAPABILITY for device in jax.local_devices()
    )


def capability_of(device: Any) -> float:
    """NVIDIA's number; 0 of others, which have names instead."""
    try:
        return float(getattr(device, "compute_capability", 0.0))
    except ValueError:
        return 0.0


def are_interpreted() -> bool:
    """Whether a CPU is to run them, operation by operation: to test them."""
    return os.environ.get(SETTING) == "interpret"


def are_world_threads_expected() -> bool:
    """Whether they will probably run what is traced: to choose between algorithms, all of which run everywhere."""
    return are_interpreted() or (are_on() and jax.default_backend() == "gpu")


def is_world_a_thread() -> bool:
    """Whether what is traced now is for them."""
    return _for_gpu.get()


def traced_for_gpu(function: Callable, *args: Any) -> Any:
    """`function(*args)` by these kernels; raises `NotInKernelError` where it cannot be."""
    token = _for_gpu.set(True)
    try:
        return function(*args)
    finally:
        _for_gpu.reset(token)
