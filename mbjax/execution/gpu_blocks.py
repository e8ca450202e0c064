"""Kernels of a GPU in which a block of threads works on one world's matrix."""

from .targets.gpu_blocks import load_tile as load_tile
from .targets.gpu_blocks import run_blocks as run_blocks
from .targets.gpu_blocks import store_tile as store_tile
from .targets.gpu_kernels import NotInKernelError as NotInKernelError
