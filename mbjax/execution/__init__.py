"""Runs functions of arrays anywhere: how many worlds, on which device, in how many kernels. It knows no bodies.

Other folders import three modules and nothing deeper:

- `mbjax.execution` runs functions: for many worlds, compiled as a whole, in kernels where there are any.
- `mbjax.execution.recursions` has what recursions over the tree are written in.
- `mbjax.execution.derivative_rules` has what derivative rules written by hand need.
"""

from .worlds.many_worlds import for_worlds as for_worlds
from .worlds.many_worlds import each_world as each_world
from .worlds.many_worlds import is_batched as is_batched
from .worlds.worlds_primitive import keeps_found as keeps_found
from .calls.compiled_calls import call_compiled as call_compiled
from .calls.compiled_calls import compiled_outside_jit as compiled_outside_jit
from .calls.compiled_calls import is_traced as is_traced
from .calls.compiled_calls import of_one_model as of_one_model
from .calls.compiled_calls import takes_model_first as takes_model_first
from .calls.compiled_calls import require_one_model as require_one_model
from .targets.by_device import in_kernels as in_kernels
from .targets.by_device import on_cpu as on_cpu
from .targets.by_device import on_gpu as on_gpu
from .targets.cpu_kernel import has_matrix_products as has_matrix_products
from .targets.cpu_kernel import in_one_kernel as in_one_kernel
from .targets.cpu_kernel import is_in_kernel as is_in_kernel
from .targets.gpu_kernels import are_world_threads_expected as are_world_threads_expected
from .targets.gpu_kernels import is_world_a_thread as is_world_a_thread
from .targets.gpu_kernels import NotInKernelError as NotInKernelError
from .targets.gpu_blocks import load_tile as load_tile
from .targets.gpu_blocks import run_blocks as run_blocks
from .targets.gpu_blocks import store_tile as store_tile
from .targets.kernels_in_use import kernels_in_use as kernels_in_use
from .worlds.loops import as_one_kernel as as_one_kernel
from .worlds.loops import one_by_one as one_by_one
from .worlds.chunks import ResumedSearch as ResumedSearch
from .worlds.chunks import compiled_apart as compiled_apart
from .worlds.chunks import stored as stored
from .worlds.chunks import CHUNK as WORLDS_IN_CACHE
from .linear.columns import take as take
from .linear.mask_products import dot_with_mask as dot_with_mask
from .linear.sums import largest_over_first as largest_over_first
from .linear.sums import repeat as repeat
from .linear.sums import sum_over_axis as sum_over_axis
from .linear.sums import sum_over_first as sum_over_first
from .targets.manual_axes import repeat_turns as repeat_turns
from .targets.manual_axes import scan as scan
from .calls.known_numbers import call_now as call_now
from .calls.kept_programs import keep_compiled_programs as keep_compiled_programs
from .worlds.traces import forget_traces as forget_traces
from .targets.library_calls import call_library as call_library
from .calls.static_data import HashedOnce as HashedOnce
