"""A whole program as one GPU kernel, in which a warp computes a world from its arguments to its results.

XLA makes a program on a GPU of kernels that hand one another arrays of all worlds through memory; a loop until all
worlds are done waits for the host at every turn. Here a loop is within the kernel, a world ends when it is done, and
what is between its arguments and results stays in registers and in the memory that its lanes share.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Primitive, jaxprs_in_params
from jax.extend.mlir import ir
from jax.interpreters import batching, mlir

from . import warp_loops, warp_numbers, warp_places, warp_sums
from .cpu_kernel import is_alone
from .gpu_kernels import NotInKernelError, are_warps_on, traced_for_warp
from .warp_arrays import Stored, copied, in_registers, kind_of, positions_of, put, write
from .warp_program import constant_of, run
from .warp_text import FIRST_FREE, LANES, MOST_SHARED, Memory, WarpText

WITH_RULES = warp_loops, warp_numbers, warp_places, warp_sums  # importing them registers the rules
NAME = "world_in_a_warp"


LARGEST_SHARED = (1 << 30, 2048, 512)  # bytes of an array: the first under which all fits is taken
MOST_OPERATIONS = 15_000  # of a program: NVIDIA's compiler takes a second for about five thousand lines


class WarpKernel(NamedTuple):
    """The text of a kernel, how many bytes of shared and of global memory a world has, and what the kernel returns."""

    text: str
    num_shared: int
    num_global: int
    results: tuple  # shape and type of each result of one world


class Layout(NamedTuple):
    """How the numbers of a world lie in an array of all worlds: next to one another, or `stride` numbers apart."""

    has_worlds: bool
    stride: int = 1


def write_kernel(function: Callable, shapes: Sequence, layouts: Sequence[Layout], of_results: Layout) -> WarpKernel:
    """Writes the kernel of a function of one world, from the shapes and types of its arguments.

    Raises `NotInKernelError` if the function has operations that a kernel has not, is too long, or needs too much
    memory.
    """
    jaxpr = traced_for_warp(jax.make_jaxpr(function), *shapes)
    if num_operations(jaxpr.jaxpr) > MOST_OPERATIONS:
        raise NotInKernelError
    for largest_shared in LARGEST_SHARED:
        text = written_with(jaxpr, layouts, of_results, largest_shared)
        if text.most["shared"] <= MOST_SHARED:
            break
    else:
        raise NotInKernelError
    size = min(text.most["shared"] + LANES * 8, MOST_SHARED)
    lines = text.kernel(NAME, len(jaxpr.in_avals) + len(jaxpr.out_avals))
    results = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in jaxpr.out_avals)
    return WarpKernel(lines, size, text.most["global"], results)


def written_with(jaxpr: Any, layouts: Sequence[Layout], of_results: Layout, largest_shared: int) -> WarpText:
    """The lines of the kernel; arrays of more bytes than `largest_shared` are in global memory."""
    text = WarpText(largest_shared)
    write(text, Memory("shared", ""), "u32", np.arange(0, FIRST_FREE, 4), "0")
    arguments = []
    for k, (aval, layout) in enumerate(zip(jaxpr.in_avals, layouts, strict=True)):
        x = in_global(text, k, aval, layout, True)
        arguments.append(copied(text, x) if math.prod(aval.shape) > 1 else in_registers(text, x))
    results = run(text, jaxpr.jaxpr, [constant_of(x) for x in jaxpr.consts], arguments)
    del arguments
    for k, (aval, x) in enumerate(zip(jaxpr.out_avals, results, strict=True), len(jaxpr.in_avals)):
        if math.prod(aval.shape):
            where = in_global(text, k, aval, of_results, False)
            put(text, where.memory, where.addresses, in_registers(text, x))
    return text


def in_global(text: WarpText, place: int, aval: Any, layout: Layout, is_constant: bool) -> Stored:
    """An argument or result of the kernel: the numbers of this warp's world."""
    width = np.dtype(aval.dtype).itemsize
    base = text.at_start(("parameter", place), f"ld.param.u64 {{}}, [parameter{place}];", "u64")
    if layout.has_worlds:
        apart = width * (math.prod(aval.shape) if layout.stride == 1 else 1)
        world = text.special("%ctaid.x")
        offset = text.at_start(("world", apart), f"mul.wide.u32 {{}}, {world}, {apart};", "u64")
        base = text.at_start(("own", place), f"add.u64 {{}}, {base}, {offset};", "u64")
    memory = Memory("global", base, truth="u8", is_constant=is_constant)
    return Stored(aval.shape, kind_of(aval.dtype), memory, width * layout.stride * positions_of(aval.shape))


def num_operations(jaxpr: Any) -> int:
    """How many operations a program has, those of loops and branches included."""
    inner = jaxprs_in_params
    return sum(1 + sum(num_operations(x) for x in inner(e.params)) for e in jaxpr.eqns)


def run_in_warps(
    *args: Any, function: Callable, worlds: int | None, batched: Sequence[bool], summed: Sequence[bool], **_: Any
) -> list:
    """Runs a function of one world for all, the first axis of what is batched, as one kernel; adds up what is summed.

    Raises `NotInKernelError` if there is no such kernel.
    """
    of_one = [jax.ShapeDtypeStruct(x.shape[b:], x.dtype) for x, b in zip(args, batched, strict=True)]
    kernel = write_kernel(lambda *x: list(function(*x)), of_one, [Layout(b) for b in batched], Layout(True))
    results = tuple(ShapedArray((worlds or 1, *x.shape), x.dtype) for x in kernel.results)
    found = warp_call_p.bind(*args, kernel=kernel, worlds=worlds or 1, results=results)
    if worlds is None:
        return [x[0] for x in found]
    return [jnp.sum(x, axis=0) if s else x for x, s in zip(found, summed, strict=True)]


def replaced_on_gpu(function: Callable, found: Any, args: Any, has_worlds: bool) -> Any:
    """Returns `found`, but in programs for a GPU with kernels of ours what one kernel computes as `function(*args)`.

    `function` is of one world; arrays among the arguments and in `found` end in an axis of worlds, which is of size 1
    where they share one. What computes `found` is then left out of the program. Neither is differentiated.
    """
    if not has_worlds:
        return found
    leaves, treedef = jax.tree.flatten(args)
    results, out = jax.tree.flatten(found)

    def flat(*leaves: Any) -> list:
        of_one = function(*jax.tree.unflatten(treedef, leaves))
        assert jax.tree.structure(of_one) == out
        return jax.tree.leaves(of_one)

    return jax.tree.unflatten(out, replaced_on_gpu_p.bind(*results, *leaves, function=flat, num_results=len(results)))


def lower_replaced(ctx: Any, *operands: Any, function: Callable, num_results: int) -> Any:
    """Lowers to a kernel where kernels are on and it can be written; else to the results that there are."""
    results, avals = ctx.avals_out, ctx.avals_in[num_results:]
    worlds = max(x.shape[-1] for x in results)
    if not are_warps_on() or not is_alone(ctx) or not worlds or any(x.shape[-1] != worlds for x in results):
        return operands[:num_results]
    of_one = [jax.ShapeDtypeStruct(x.shape[:-1], x.dtype) for x in avals]
    layouts = [Layout(True, worlds) if x.shape[-1] == worlds else Layout(False) for x in avals]
    try:
        kernel = write_kernel(function, of_one, layouts, Layout(True, worlds))
    except NotInKernelError:
        return operands[:num_results]
    ctx = ctx.replace(avals_in=avals)
    return lower_call(ctx, *operands[num_results:], kernel=kernel, worlds=worlds, results=results)


def lower_call(ctx: Any, *operands: Any, kernel: WarpKernel, worlds: int, results: Sequence) -> Any:
    """Lowers the call of a kernel: XLA has the driver compile its text and starts a warp for each world."""
    if kernel.num_global:
        results = [*results, ShapedArray((worlds, kernel.num_global // 4), np.dtype(np.uint32))]
    launch = {"grid_x": worlds, "grid_y": 1, "grid_z": 1, "block_x": LANES, "block_y": 1, "block_z": 1}
    numbers = {k: mlir.ir_attribute(np.int32(n)) for k, n in {**launch, "shared_mem_bytes": kernel.num_shared}.items()}
    # versions of XLA differ in what they call the text
    words = {"name": NAME, "kernel_type": "ptx", "kernel_data": kernel.text, "source": kernel.text}
    places = range(len(operands), len(operands) + len(results))
    outputs = ir.ArrayAttr.get([mlir.ir_attribute(np.int32(k)) for k in places])
    settings = {**numbers, **{k: ir.StringAttr.get(x) for k, x in words.items()}, "output_indices": outputs}
    lower = jax.ffi.ffi_lowering("__gpu$xla.gpu.ptx", backend_config=settings)
    found = lower(ctx.replace(avals_out=results), *operands)
    return found[: len(ctx.avals_out)]


def found_as_it_is(*args: Any, num_results: int, **_: Any) -> list:
    """The results that there are, or their shapes and types."""
    return list(args[:num_results])


def batch_found(args: Sequence, dims: Sequence, *, num_results: int, **_: Any) -> tuple:
    """Batching rule: the results that there are."""
    return list(args[:num_results]), list(dims[:num_results])


replaced_on_gpu_p = Primitive("replaced_on_gpu")
replaced_on_gpu_p.multiple_results = True
replaced_on_gpu_p.def_impl(found_as_it_is)
replaced_on_gpu_p.def_abstract_eval(found_as_it_is)
batching.primitive_batchers[replaced_on_gpu_p] = batch_found
mlir.register_lowering(replaced_on_gpu_p, lambda ctx, *args, num_results, **_: args[:num_results])
mlir.register_lowering(replaced_on_gpu_p, lower_replaced, platform="cuda", cacheable=False)

warp_call_p = Primitive("warp_call")
warp_call_p.multiple_results = True
warp_call_p.def_abstract_eval(lambda *_, results, **__: list(results))
mlir.register_lowering(warp_call_p, lower_call, platform="cuda", cacheable=False)
