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
import math
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import func, stablehlo
from jax.interpreters import batching, mlir, partial_eval

from .gpu_kernels import is_world_a_thread
from .manual_axes import varying_as
from .stage_marks import take_mark

TESTED = (0, 10), (0, 11), (0, 12)  # versions of JAX
ATTRIBUTE, MARK = "mhlo.frontend_attributes", {"xla_cpu_small_call": "true", "inlineable": "false"}
APART = {"inlineable": "false"}
LARGEST_REDUCED = 3072  # numbers; reductions of 4096 and more are calls of a library in XLA
LARGEST_COST = 100_000  # of a stage; XLA shares out to threads what costs twice as much
AND_CONSTANT = "_and_constant"  # ends the names of stages with a constant result

# No products of matrices, sorting, scattering, linear algebra or callbacks: those are calls of libraries.
OPERATIONS = """
    abs add and atan2 bitcast_convert broadcast_in_dim cbrt ceil clamp compare concatenate constant convert cosine
    divide dynamic_slice dynamic_update_slice exponential exponential_minus_one floor gather iota is_finite log
    log_plus_one maximum minimum multiply negate not optimization_barrier or pad power reduce remainder reshape return
    reverse round_nearest_afz round_nearest_even rsqrt select shift_left shift_right_arithmetic shift_right_logical sign
    sine slice sqrt subtract tan tanh transpose while xor
"""
NAMES = {"func.call", "func.return", *(f"stablehlo.{name}" for name in OPERATIONS.split())}


_in_kernel = contextvars.ContextVar("in_kernel", default=False)  # while tracing
_within_kernel = contextvars.ContextVar("within_kernel", default=False)  # while lowering


def is_in_kernel() -> bool:
    """Whether the code traced now is to be one kernel, which cannot hold products of matrices."""
    return _in_kernel.get()


def has_matrix_products() -> bool:
    """Whether the code traced now may use products of matrices; a kernel cannot, as they are calls of a library."""
    return not is_in_kernel()


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


def lower_as_one_kernel(function: Callable[..., Sequence], ctx: mlir.LoweringRuleContext, *args: Any) -> Any:
    """Lowers `function(*args)` as one kernel, or within another kernel as part of it.

    XLA ends the process if such a kernel has an argument that nothing reads. Arguments that JAX sees to be unread or
    constant are left out. XLA might find more: so a barrier hides the others from it, and all of them are read for a
    result that is dropped.
    """
    ctx = without_shardings(ctx)
    if _within_kernel.get() or not is_tested(ctx):
        return mlir.lower_fun(function, multiple_results=True)(ctx, *args)
    whole = jax.make_jaxpr(jax.jit(lambda *args: tuple(function(*args))))(*ctx.avals_in)
    jaxpr, is_read = partial_eval.dce_jaxpr(whole.jaxpr, [True] * len(whole.jaxpr.outvars))
    evaluate = jaxpr_as_fun(ClosedJaxpr(jaxpr, whole.consts))
    read = [i for i, is_used in enumerate(is_read) if is_used]
    values = {i: y for i in read if (y := constant(args[i], ctx.avals_in[i])) is not None}
    given = [i for i in read if i not in values]

    @jax.jit
    def call(*of_given: jax.Array) -> list:
        known = values | dict(zip(given, of_given, strict=True))
        from_all = jnp.stack([jnp.ravel(x)[0].astype(bool) for x in of_given])
        return [from_all, *evaluate(*(jnp.asarray(known[i]) for i in read))]

    def called(*args: jax.Array) -> list:
        return call(*lax.optimization_barrier([args[i] for i in given]))[1:]

    def as_xla_would(*args: jax.Array) -> list:
        return evaluate(*(args[i] for i in read))

    if given and ctx.avals_out and not jaxpr.effects:
        token = _within_kernel.set(True)
        try:
            results = mlir.lower_fun(called, multiple_results=True)(with_functions_of_its_own(ctx), *args)
        finally:
            _within_kernel.reset(token)
        operation = jax.tree.leaves(results)[0].owner
        if mark(ctx.module_context.symbol_table, operation):
            return results
        operation.erase()
    return mlir.lower_fun(as_xla_would, multiple_results=True)(ctx, *args)


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


def constant(x: ir.Value, aval: Any) -> np.ndarray | None:
    """Value of an argument that is constant or has no numbers; None for other arguments."""
    if aval.size == 0:
        return np.zeros(aval.shape, aval.dtype)
    if isinstance(x.owner, ir.Block) or x.owner.name != "stablehlo.constant":
        return None
    return np.array(x.owner.attributes["value"])


def mark(functions: ir.SymbolTable, call: ir.Operation) -> bool:
    """Marks a call as one kernel, and the stages in it as separate, if a kernel can hold all its operations."""
    assert call.name == "func.call", call
    operations = operations_in_all(functions, callee_of(call))
    if not all(map(can_be_in_a_kernel, operations)):
        return False
    calls = [x for x in operations if x.name == "func.call"]
    are_stages = {name: take_mark(functions[name].operation) for name in {callee_of(x) for x in calls}}
    stages: dict[str, list] = {}
    for inner in calls:
        if are_stages[callee_of(inner)]:
            inner.attributes[ATTRIBUTE] = attribute(APART)
            stages.setdefault(callee_of(inner), []).append(inner)
        elif ATTRIBUTE in inner.attributes:
            del inner.attributes[ATTRIBUTE]
    is_long = {x: not x.endswith(AND_CONSTANT) and cost(functions, x) > LARGEST_COST for x in stages}
    of_long = {name: calls for name, calls in stages.items() if is_long[name]}
    types = {name: call_copy(functions, name, calls) for name, calls in of_long.items()}
    for name in of_long:  # by now they call copies themselves
        copy_with_constant(functions, name, types[name])
    call.attributes[ATTRIBUTE] = attribute(MARK)
    return True


def callee_of(call: ir.Operation) -> str:
    """Name of the function that a call calls."""
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value


def operations_in_all(functions: ir.SymbolTable, name: str) -> list[ir.Operation]:
    """Operations in a function and in those it calls, each function once."""
    found, pending, seen = [], [name], {name}
    while pending:
        operations = operations_in(functions[pending.pop()].operation)
        found += operations
        called = {callee_of(x) for x in operations if x.name == "func.call"} - seen
        pending += sorted(called)
        seen |= called
    return found


def cost(functions: ir.SymbolTable, name: str) -> int:
    """Upper bound on the cost that XLA estimates for any part of a stage; numbers read and written are most of it."""
    block = functions[name].operation.regions[0].blocks[0]
    stored = sum(map(size_read, block.arguments)) + sum(map(size, block.operations[-1].operands))
    operations = operations_in_all(functions, name)
    calculated = [x for y in operations for x in (y.operands if y.name == "stablehlo.reduce" else y.results)]
    return 80 * stored + 2 * sum(map(size, calculated))


def size_read(x: ir.Value) -> int:
    """Count of the numbers of x that are read: few where only rows are."""
    users = [use.owner.operation for use in x.uses]
    if all(user.name == "stablehlo.dynamic_slice" for user in users):
        return sum(size(user.results[0]) for user in users)
    return size(x)


def size(x: ir.Value) -> int:
    """Count of the numbers in x."""
    return math.prod(ir.RankedTensorType(x.type).shape)


def call_copy(functions: ir.SymbolTable, name: str, calls: list[ir.Operation]) -> list[ir.Type]:
    """Calls a copy of a stage with a constant as one more result, lest XLA shares its calculation out to threads.

    XLA does so where the whole result of a function is one long calculation. A kernel has no threads, and could not be
    linked. Returns the types of the copy's results.
    """
    of_stage = ir.FunctionType(ir.TypeAttr(functions[name].operation.attributes["function_type"]).value)
    types = [*of_stage.results, ir.RankedTensorType.get([], ir.IntegerType.get_signless(1))]
    for call in calls:
        with ir.InsertionPoint(call), call.location:
            new = func.CallOp(types, ir.FlatSymbolRefAttr.get(name + AND_CONSTANT), list(call.operands))
        new.operation.attributes[ATTRIBUTE] = call.attributes[ATTRIBUTE]
        for old, y in zip(call.results, new.results, strict=False):
            old.replace_all_uses_with(y)
        call.erase()
    return types


def copy_with_constant(functions: ir.SymbolTable, name: str, types: list[ir.Type]) -> None:
    """Adds the copy of a stage that returns a constant too, if there is none yet."""
    if name + AND_CONSTANT in functions:
        return
    stage = functions[name].operation
    of_stage = ir.FunctionType(ir.TypeAttr(stage.attributes["function_type"]).value)
    copy = stage.clone(ir.InsertionPoint(stage))
    copy.attributes["sym_name"] = ir.StringAttr.get(name + AND_CONSTANT)
    copy.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(of_stage.inputs, types))
    if "res_attrs" in copy.attributes:
        del copy.attributes["res_attrs"]
    functions.insert(copy)
    returned = copy.regions[0].blocks[0].operations[-1]
    with ir.InsertionPoint(returned), returned.location:
        constant = stablehlo.constant(ir.DenseElementsAttr.get_splat(types[-1], ir.BoolAttr.get(False)))
        func.ReturnOp([*returned.operands, constant])
    returned.operation.erase()


def attribute(values: dict[str, str]) -> ir.DictAttr:
    """Attribute of a call in the form that XLA reads."""
    return ir.DictAttr.get({name: ir.StringAttr.get(value) for name, value in values.items()})


def can_be_in_a_kernel(operation: ir.Operation) -> bool:
    """Whether XLA's generator of single kernels takes an operation."""
    if operation.name == "stablehlo.reduce":
        return all(size(x) <= LARGEST_REDUCED for x in operation.operands)
    return operation.name in NAMES


def operations_in(operation: ir.Operation) -> list[ir.Operation]:
    """All operations in an operation's regions, nested ones included."""
    found, pending = [], [operation]
    while pending:
        for region in pending.pop().regions:
            inner = [x.operation for block in region for x in block]
            found += inner
            pending += inner
    return found


def evaluate(*args: Any, jaxpr: ClosedJaxpr, **_: Any) -> list:
    """Runs the function outside `jax.jit`, operation by operation."""
    return jaxpr_as_fun(jaxpr)(*args)


def shapes_of_results(*args: Any, jaxpr: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    """Shapes and types of the primitive's results."""
    return varying_as(args, jaxpr.out_avals)


def batch(args: Sequence, dims: Sequence, *, jaxpr: ClosedJaxpr) -> tuple[list, list]:
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


in_one_kernel_p.def_impl(evaluate)
in_one_kernel_p.def_abstract_eval(shapes_of_results)
batching.primitive_batchers[in_one_kernel_p] = batch
mlir.register_lowering(in_one_kernel_p, lowered(evaluate))
mlir.register_lowering(in_one_kernel_p, lower_marked, platform="cpu", cacheable=False)
