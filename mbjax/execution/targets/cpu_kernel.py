"""Few kernels on a CPU: compiles programs of one world, and recursions over the tree, as a single kernel each.

XLA's CPU backend starts a kernel for every few operations, which for one world takes longer than to run them. It
compiles a call that carries a mark to a single kernel, with all its loops, and marks small loops itself. It does not
check what others mark. So only operations that its code generator takes are let in here, only versions of JAX that
this was tested with, and every argument is read. Other programs are compiled as XLA would.
MBJAX_ONE_KERNEL=0 in the environment turns these kernels off.

Within a kernel XLA still copies a formula into each of its readers. `stages.computed_once` keeps it from that.
"""

import contextvars
import functools
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Primitive, jaxpr_as_fun, jaxprs_in_params
from jax.interpreters import batching, mlir, partial_eval

from .cpu_kernel_marks import constant, mark
from .gpu_kernels import is_world_a_thread
from .manual_axes import varying_as
from .platform_rules import register_by_platform

TESTED = (0, 10), (0, 11), (0, 12)  # versions of JAX
LIBRARIES = ("dot_general", "sort", "scatter", "top_k", "cond", "cholesky", "triangular", "lu", "qr", "eigh", "svd")
"""Beginnings of the names of primitives that no kernel takes."""
_in_kernel = contextvars.ContextVar("in_kernel", default=False)  # while tracing
_is_final = contextvars.ContextVar("is_final", default=False)  # while leaving out what a kernel's results do not need
_within_kernel = contextvars.ContextVar("within_kernel", default=False)  # while lowering


def is_in_kernel() -> bool:
    """Whether the code traced now is to be one kernel, which cannot hold products of matrices."""
    return _in_kernel.get()


def in_one_kernel(function: Callable, *args: Any) -> Any:
    """Runs `function(*args)` of trees of arrays, on a CPU as one kernel where it can be. Not differentiated."""
    if is_world_a_thread():  # on a GPU its scans are the kernels
        return function(*args)
    leaves, treedef = jax.tree.flatten(args)
    token = _in_kernel.set(True)
    try:
        jaxpr, out = traced_flat(function, treedef, leaves)
    finally:
        _in_kernel.reset(token)
    return jax.tree.unflatten(out, in_one_kernel_p.bind(*leaves, jaxpr=jaxpr))


def traced_flat(function: Callable, treedef: Any, leaves: Sequence) -> tuple[ClosedJaxpr, Any]:
    """Traces the function from the leaves of its arguments to those of its results; also returns the results' tree."""
    jaxpr, out = jax.make_jaxpr(lambda *x: function(*jax.tree.unflatten(treedef, x)), return_shape=True)(*leaves)
    return jaxpr, jax.tree.structure(out)


in_one_kernel_p = Primitive("in_one_kernel")
in_one_kernel_p.multiple_results = True


def lower_as_one_kernel(
    function: Callable[..., Sequence],
    ctx: mlir.LoweringRuleContext,
    *args: Any,
    default: Callable[..., Sequence] | None = None,
) -> Any:
    """Lowers `function(*args)` as one kernel, or within another kernel as part of it.

    Where that cannot be, it lowers the equal `default(*args)`, or else the function as XLA does.

    XLA ends the process if such a kernel has an argument that nothing reads. Arguments that JAX sees to be unread or
    constant are left out. XLA might find more: so a barrier hides the others from it, and all of them are read for a
    result that is dropped.
    """
    ctx = without_shardings(ctx)
    if _within_kernel.get():
        part, _ = what_is_read(function, ctx.avals_in, instantiate=True)
        return mlir.lower_fun(jaxpr_as_fun(part), multiple_results=True)(ctx, *args)
    if not is_tested(ctx):
        return mlir.lower_fun(default or function, multiple_results=True)(ctx, *args)
    kernel, is_read = what_is_read(function, ctx.avals_in)
    evaluate_kernel = jaxpr_as_fun(kernel)
    read = [i for i, is_used in enumerate(is_read) if is_used]
    values = {i: y for i in read if (y := constant(args[i], ctx.avals_in[i])) is not None}
    given = [i for i in read if i not in values]

    @jax.jit
    def call(*of_given: jax.Array) -> list:
        known = values | dict(zip(given, of_given, strict=True))
        from_all = jnp.stack([jnp.ravel(x)[0].astype(bool) for x in of_given])
        return [from_all, *evaluate_kernel(*(jnp.asarray(known[i]) for i in read))]

    def called(*args: jax.Array) -> list:
        return call(*lax.optimization_barrier([args[i] for i in given]))[1:]

    def as_xla_would(*args: jax.Array) -> list:
        return evaluate_kernel(*(args[i] for i in read))

    if given and ctx.avals_out and not kernel.effects and not calls_a_library(kernel.jaxpr, set()):
        token = _within_kernel.set(True)
        try:
            results = mlir.lower_fun(called, multiple_results=True)(with_functions_of_its_own(ctx), *args)
        finally:
            _within_kernel.reset(token)
        operation = jax.tree.leaves(results)[0].owner
        if mark(ctx.module_context.symbol_table, operation):
            return results
        operation.erase()
    return mlir.lower_fun(default or as_xla_would, multiple_results=True)(ctx, *args)


def calls_a_library(jaxpr: Jaxpr, seen: set[int]) -> bool:
    """Whether a program holds an operation that no kernel takes, so that nothing is lowered in vain.

    `seen` are programs that have been looked at. Operations that are not named here are found once they are lowered.
    """
    if id(jaxpr) in seen:
        return False
    seen.add(id(jaxpr))
    if any(equation.primitive.name.startswith(LIBRARIES) for equation in jaxpr.eqns):
        return True
    inner = [x for equation in jaxpr.eqns for x in lowered_within(equation)]
    return any(calls_a_library(x, seen) for x in inner)


def lowered_within(equation: JaxprEqn) -> list[Jaxpr]:
    """Programs that are lowered as parts of an equation; a linear solve also has others, for its derivatives."""
    if equation.primitive.name == "custom_linear_solve":
        return [equation.params["jaxprs"].solve.jaxpr]
    return list(jaxprs_in_params(equation.params))


def what_is_read(
    function: Callable[..., Sequence], shapes: Sequence, instantiate: bool = False
) -> tuple[ClosedJaxpr, list[bool]]:
    """The function without what its results do not need, and which arguments it reads.

    What is left out might hold operations that no kernel takes. With `instantiate` it keeps unread arguments.
    """
    whole = jax.make_jaxpr(jax.jit(lambda *args: tuple(function(*args))))(*shapes)
    token = _is_final.set(True)
    try:
        jaxpr, is_read = partial_eval.dce_jaxpr(whole.jaxpr, [True] * len(whole.jaxpr.outvars), instantiate)
    finally:
        _is_final.reset(token)
    return ClosedJaxpr(jaxpr, whole.consts), is_read


def is_final() -> bool:
    """Whether a program is being lowered: what it does not read will not be differentiated either."""
    return _is_final.get()


def with_functions_of_its_own(ctx: mlir.LoweringRuleContext) -> mlir.LoweringRuleContext:
    """A context whose functions are not shared with the program around, which may be kernels themselves."""
    module_context = ctx.module_context.replace(lowering_cache={}, cached_primitive_lowerings={})
    return ctx.replace(module_context=module_context)


def is_tested(ctx: mlir.LoweringRuleContext) -> bool:
    """Whether kernels are on and may be made here: arguments are numbers, and `is_alone`."""
    are_numbers = all(getattr(getattr(x, "dtype", None), "kind", "none") in "biuf" for x in ctx.avals_in)
    return os.environ.get("MBJAX_ONE_KERNEL") != "0" and are_numbers and is_alone(ctx)


def is_alone(ctx: mlir.LoweringRuleContext) -> bool:
    """Whether the program is for devices by themselves, in this process, by a version of JAX that was tested."""
    if ctx.module_context.lowering_parameters.for_export:
        return False
    return is_each_device_alone(ctx.module_context.axis_context) and is_tested_version()


@functools.cache
def is_tested_version() -> bool:
    """Whether kernels were tested with this version of JAX; warns once if not."""
    if jax.__version_info__[:2] in TESTED:
        return True
    tested = ", ".join(f"{major}.{minor}" for major, minor in TESTED)
    warnings.warn(
        f"mbjax was not tested with JAX {jax.__version__}, only with {tested}: it makes no kernels of its own, and is "
        "right but several times slower. Install a newer mbjax or an older JAX, or say MBJAX_ONE_KERNEL=0",
        stacklevel=2,
    )
    return False


def is_each_device_alone(axis_context: Any) -> bool:
    """Whether XLA has nothing to share out: one device, or `shard_map` over all axes of the mesh."""
    mesh = getattr(axis_context, "mesh", None)
    if mesh is None:
        return getattr(axis_context, "num_devices", 0) == 1
    return axis_context.manual_axes == frozenset(mesh.axis_names)


def evaluate_kernel(*args: Any, jaxpr: ClosedJaxpr, **_: Any) -> list:
    """Runs the function outside `jax.jit`, operation by operation."""
    return jaxpr_as_fun(jaxpr)(*args)


def shapes_of_kernel_results(*args: Any, jaxpr: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    """Shapes and types of the primitive's results."""
    return varying_as(args, jaxpr.out_avals)


def batch_kernel(args: Sequence, dims: Sequence, *, jaxpr: ClosedJaxpr) -> tuple[list, list]:
    """Batching rule of `in_one_kernel_p`."""
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    several = jax.vmap(jaxpr_as_fun(jaxpr), in_axes=tuple(dims), axis_size=size)
    found = in_one_kernel_p.bind(*args, jaxpr=jax.make_jaxpr(several)(*args))
    return found, [0] * len(found)


def lower_marked(ctx: mlir.LoweringRuleContext, *args: Any, jaxpr: ClosedJaxpr) -> Any:
    """Lowers the primitive for a CPU, as one kernel."""
    return lower_as_one_kernel(jaxpr_as_fun(jaxpr), ctx, *args)


def lowered(function: Callable) -> Callable:
    """Makes a lowering rule of a function from arrays to a list of arrays."""
    lower = mlir.lower_fun(function, multiple_results=True)
    return lambda ctx, *args, **params: lower(without_shardings(ctx), *args, **params)


def without_shardings(ctx: mlir.LoweringRuleContext) -> mlir.LoweringRuleContext:
    """A context whose arguments belong to no mesh, as does all that is made while lowering."""
    return ctx.replace(avals_in=[without_sharding(x) for x in ctx.avals_in])


def without_sharding(x: Any) -> ShapedArray:
    """Shape and type of x without its sharding."""
    return ShapedArray(x.shape, x.dtype, weak_type=x.weak_type)


in_one_kernel_p.def_impl(evaluate_kernel)
in_one_kernel_p.def_abstract_eval(shapes_of_kernel_results)
batching.primitive_batchers[in_one_kernel_p] = batch_kernel
register_by_platform(in_one_kernel_p, lowered(evaluate_kernel), cpu=lower_marked)
