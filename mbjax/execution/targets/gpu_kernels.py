"""Few kernels on a GPU: says where recursions are kernels of our own, with a thread a world (`gpu_scan.py`).

XLA has no loops within its kernels on a GPU: each turn of a recursion is several kernels, and all that they hand to
one another goes through memory. A kernel of ours is traced from the steps that a CPU runs, with single numbers: a row
is the list of its entries, read where it is met, and nothing is put together.

Our kernels are on where there are capable GPUs. MBJAX_GPU_KERNELS=0 in the environment turns them off; with 1 they are
on in programs lowered for a GPU that is elsewhere, too; with "interpret" a CPU runs them by Pallas's interpreter.
"""

import contextvars
import functools
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jaxtyping import Array, Int

LEAST_CAPABILITY = 8.0  # Ampere's, the least that XLA compiles Triton's kernels for
SETTING = "MBJAX_GPU_KERNELS"

_for_gpu = contextvars.ContextVar("for_gpu", default=False)


class NotInKernelError(Exception):
    """Raised while tracing where GPU kernels do not support what a function does."""


class DeviceRows(NamedTuple):
    """An array in the memory of a GPU, of which a thread reads rows."""

    read: Callable[[Int[Array, ""]], list]


def are_on() -> bool:
    """Whether programs lowered for a GPU have these kernels."""
    match os.environ.get(SETTING):
        case "1":
            return True
        case "0" | "interpret":
            return False
        case _:
            return has_capable_gpus()


@functools.cache
def has_capable_gpus() -> bool:
    """Whether JAX computes on GPUs by default, and all of them are capable."""
    return jax.default_backend() == "gpu" and all(
        capability_of(device) >= LEAST_CAPABILITY for device in jax.local_devices()
    )


def capability_of(device: Any) -> float:
    """Compute capability of an NVIDIA GPU; 0 for others, which have names instead."""
    try:
        return float(getattr(device, "compute_capability", 0.0))
    except ValueError:
        return 0.0


def are_interpreted() -> bool:
    """Whether a CPU is to run the kernels operation by operation, to test them."""
    return os.environ.get(SETTING) == "interpret"


def are_world_threads_expected() -> bool:
    """Whether GPU kernels will probably run the code traced now; chooses between algorithms that all run anywhere."""
    return are_interpreted() or (are_on() and jax.default_backend() == "gpu")


def is_world_a_thread() -> bool:
    """Whether the code traced now is for a GPU kernel with a thread a world."""
    return _for_gpu.get()


def traced_for_gpu(function: Callable, *args: Any) -> Any:
    """Traces `function(*args)` for GPU kernels; raises `NotInKernelError` where they cannot run it."""
    token = _for_gpu.set(True)
    try:
        return function(*args)
    finally:
        _for_gpu.reset(token)
