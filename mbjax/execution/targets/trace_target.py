"""What the code that is traced now will become: the one place where algorithms ask it."""

from typing import NamedTuple

from .cpu_kernel import is_in_kernel
from .gpu_kernels import are_world_threads_expected, is_world_a_thread


class TraceTarget(NamedTuple):
    """What the code that is traced now will become."""

    one_kernel: bool  # of a CPU; it cannot hold products of matrices, which are calls of a library
    world_a_thread: bool  # a kernel of a GPU with a thread a world
    expects_world_threads: bool  # such kernels will probably run it; all algorithms that this chooses from run anywhere


def traced_for() -> TraceTarget:
    """The target of the code that is traced now."""
    return TraceTarget(is_in_kernel(), is_world_a_thread(), are_world_threads_expected())
