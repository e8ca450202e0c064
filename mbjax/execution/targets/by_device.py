"""Any device: picks a function's implementation for a CPU's kernels, a GPU's kernels or any other device.

All implementations give the same numbers. The choice falls when a program is lowered for a device. None of them is
differentiated.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun
from jax.interpreters import batching, mlir

from .cpu_kernel import evaluate_kernel, is_alone, is_tested, lowered, shapes_of_kernel_results, traced_flat
from .gpu_kernels import NotInKernelError, are_interpreted, are_on, traced_for_gpu
from .platform_rules import register_by_platform


def in_kernels(function: Callable, default: Callable, *args: Any) -> Any:
    """Runs `function(*args)` in a CPU's or a GPU's kernels where they are on, else the equal `default(*args)`.

    `gpu_kernels.py` says where a GPU's are on. Arguments are trees of arrays. The result is not differentiated.
    """
    return by_device(function, default, function, *args)


def on_cpu(function: Callable, default: Callable, *args: Any) -> Any:
    """Runs `function(*args)` on a CPU where kernels are on, else the equal `default(*args)`. Not differentiated.

    Arguments are trees of arrays. `default` is traced only where it is to run.
    """
    return by_device(function, default, None, *args)


def on_gpu(function: Callable, default: Callable, *args: Any) -> Any:
    """Runs `function(*args)` on a GPU where kernels are on, else the equal `default(*args)`. Not differentiated.

    Arguments are trees of arrays. `function` is traced only where it is to run.
    """
    return by_device(default, default, function, *args)


def by_device(function: Callable, default: Callable, of_gpu: Callable | None, *args: Any) -> Any:
    """Binds the primitive `by_device_p` to trees of arrays: one implementation each for a CPU, others, and a GPU."""
    leaves, treedef = jax.tree.flatten(args)
    jaxpr, out = traced_flat(function, treedef, leaves)

    def of_leaves(function: Callable) -> Callable:
        def flat(*leaves: Any) -> list:
            found, nested = jax.tree.flatten(function(*jax.tree.unflatten(treedef, leaves)))
            assert nested == out, (nested, out)
            # one implementation may find that worlds share what another has for each
            return [jnp.broadcast_to(x, like.shape) for x, like in zip(found, jaxpr.out_avals, strict=True)]

        return flat

    of_gpu = None if of_gpu is None else of_leaves(of_gpu)
    found = by_device_p.bind(*leaves, jaxpr=jaxpr, default=of_leaves(default), of_gpu=of_gpu)
    return jax.tree.unflatten(out, found)


def batch_ways(
    args: Sequence, dims: Sequence, *, jaxpr: ClosedJaxpr, default: Callable, of_gpu: Callable | None
) -> tuple[list, list]:
    """Batching rule of `by_device_p`: each implementation under `vmap`."""
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    axes = tuple(dims)

    def several(function: Callable) -> Callable:
        return jax.vmap(function, in_axes=axes, axis_size=size)

    batched = jax.make_jaxpr(several(jaxpr_as_fun(jaxpr)))(*args)
    of_gpu = None if of_gpu is None else several(of_gpu)
    found = by_device_p.bind(*args, jaxpr=batched, default=several(default), of_gpu=of_gpu)
    return found, [0] * len(found)


def lower_way_on_cpu(
    ctx: mlir.LoweringRuleContext, *args: Any, jaxpr: ClosedJaxpr, default: Callable, of_gpu: Callable | None
) -> Any:
    """Lowers for a CPU: kernels where they are on, else `default`, as recursions without kernels are slower."""
    if are_interpreted():
        return lower_way_on_gpu(ctx, *args, default=default, of_gpu=of_gpu)
    function = jaxpr_as_fun(jaxpr) if is_tested(ctx) else default
    return lowered(lambda *args: function(*args))(ctx, *args)


def lower_way_on_gpu(
    ctx: mlir.LoweringRuleContext, *args: Any, default: Callable, of_gpu: Callable | None, **_: Any
) -> Any:
    """Lowers to GPU kernels where they are enabled and supported, else to `default`."""
    if of_gpu is not None and (are_on() or are_interpreted()) and is_alone(ctx):
        try:
            with warnings.catch_warnings():  # a version of JAX without it will be one that was not tested
                warnings.filterwarnings("ignore", "The Pallas Triton backend is deprecated", DeprecationWarning)
                return lowered(partial(traced_for_gpu, of_gpu))(ctx, *args)
        except NotInKernelError:
            pass
    return lowered(default)(ctx, *args)


def run_default(*args: Any, default: Callable, **_: Any) -> list:
    """Runs `default`, as devices without kernels do."""
    return default(*args)


by_device_p = Primitive("by_device")
by_device_p.multiple_results = True
by_device_p.def_impl(evaluate_kernel)
by_device_p.def_abstract_eval(shapes_of_kernel_results)
batching.primitive_batchers[by_device_p] = batch_ways
register_by_platform(by_device_p, lowered(run_default), cpu=lower_way_on_cpu, cuda=lower_way_on_gpu)
