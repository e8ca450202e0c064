"""Runs functions of arrays anywhere: how many worlds, on which device, in how many kernels. It knows no bodies.

Other folders import these modules and nothing deeper:

- `mbjax.execution` runs functions: for many worlds, compiled as a whole, in kernels where there are any.
- `mbjax.execution.arrays` has operations on arrays with worlds last: selections, sums, loops.
- `mbjax.execution.recursions` has what recursions over the tree are written in.
- `mbjax.execution.derivative_rules` has what derivative rules written by hand need.
- `mbjax.execution.gpu_blocks` has what a kernel of a GPU on one world's matrix is written in.
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
from .targets.cpu_kernel import in_one_kernel as in_one_kernel
from .targets.kernels_in_use import kernels_in_use as kernels_in_use
from .targets.trace_target import traced_for as traced_for
from .worlds.loops import as_one_kernel as as_one_kernel
from .worlds.loops import called_if as called_if
from .worlds.chunks import ResumedSearch as ResumedSearch
from .worlds.chunks import CHUNK as WORLDS_IN_CACHE
from .calls.known_numbers import call_now as call_now
from .calls.kept_programs import keep_compiled_programs as keep_compiled_programs
from .worlds.traces import forget_traces as forget_traces
from .targets.library_calls import call_library as call_library
from .calls.static_data import HashedOnce as HashedOnce
