"""Programs on a CPU as one kernel: those of one world, and recursions over the tree of one or many.

XLA's CPU backend starts a kernel for every few operations, and for one world to start them takes longer than what they
compute. A call that carries a mark it compiles to a single kernel, with all its loops: so it marks small loops itself.
It does not check what others mark. So only operations that its code generator takes are let in here, only versions of
JAX that this was tested with, and every argument is read. Whatever else a program does, it is compiled as XLA would.
MBJAX_ONE_KERNEL=0 in the environment turns it off.

Within a kernel XLA still fuses: it copies a formula into each that reads it. `stages.computed_once` keeps it from that.
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
LARGEST_REDUCED = 3072  # numbers: of 4096 and more, XLA makes a call of a library
LARGEST_COST = 100_000  # of a stage: what costs twice as much, XLA shares out to threads
AND_CONSTANT = "_and_constant"  # the end of the names of such stages

# No products of matrices, sorting, scattering, linear algebra or callbacks: those are calls of libraries.
OPERATIONS = """
    abs add and atan2 bitcast_convert broadcast_in_dim cbrt ceil clamp compare concatenate constant convert cosine
    divide dynamic_slice dynamic_update_slice exponential exponential_minus_one floor gather iota is_finite log
    log_plus_one maximum minimum multiply negate not optimization_barrier or pad power reduce remainder reshape return
    reverse round_nearest_afz round_nearest_even rsqrt select shift_left shift_right_arithmetic shift_right_logical sign
    sine slice sqrt subtract tan tanh transpose while xor
"""
NAMES = {"func.call", "func.return", *(f"stablehlo.{name}" for name in OPERATIONS.split())}


_in_kernel = contextvars.ContextVar("in_kernel", default=False)  # what is traced
_within_kernel = contextvars.ContextVar("within_kernel", default=False)  # what is lowered


def is_in_kernel() -> bool:
    """Whether what is traced now is to be in one kernel, where products of matrices have no place."""
    return _in_kernel.get()


def has_matrix_products() -> bool:
    """Whether what is traced now may call products of matrices: not in a kernel, which has no calls of libraries."""
    return not is_in_kernel()


def in_one_kernel(function: Callable, *args: Any) -> Any:
    """`function(*args)` of trees of arrays, on a CPU as one kernel where it can be. Not differentiated."""
    if is_world_a_thread():  # where its scans are the kernels
        return function(*args)
    leaves, treedef = jax.tree.flatten(args)
    token = _in_kernel.set(True)
    try:
        jaxpr, out = traced_flat(function, treedef, leaves)
    finally:
        _in_kernel.reset(token)
    return jax.tree.unflatten(out, in_one_kernel_p.bind(*leaves, jaxpr=jaxpr))


def traced_flat(function: Callable, treedef: Any, leaves: Sequence) -> tuple[ClosedJaxpr, Any]:
    """The function from the leaves of its arguments to those of its results, and how these are nested."""
    jaxpr, out = jax.make_jaxpr(lambda *x: function(*jax.tree.unflatten(treedef, x)), return_shape=True)(*leaves)
    return jaxpr, jax.tree.structure(out)


in_one_kernel_p = Primitive("in_one_kernel")
in_one_kernel_p.multiple_results = True


def lower_as_one_kernel(function: Callable[..., Sequence], ctx: mlir.LoweringRuleContext, *args: Any) -> Any:
    """Lowers `function(*args)`, within another kernel as part of that.

    XLA ends the process if such a kernel has an argument that nothing reads. Those that JAX sees to be unread or
    constant are left out. Lest XLA finds more, it may not see what the others are, and all are read for a result that
    is dropped.
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
    """Whose functions are not those of the program around, which may be kernels themselves."""
    module_context = ctx.module_context.replace(lowering_cache={}, cached_primitive_lowerings={})
    return ctx.replace(module_context=module_context)


def is_tested(ctx: mlir.LoweringRuleContext) -> bool:
    """Whether it is on, and was tested: of numbers, and where `is_alone`."""
    are_numbers = all(getattr(getattr(x, "dtype", None), "kind", "none") in "biuf" for x in ctx.avals_in)
    return os.environ.get("MBJAX_ONE_KERNEL") != "0" and are_numbers and is_alone(ctx)


def is_alone(ctx: mlir.LoweringRuleContext) -> bool:
    """Whether it was tested: for devices by themselves, in this process, by these versions."""
    if ctx.module_context.lowering_parameters.for_export:
        return False
    return is_each_device_alone(ctx.module_context.axis_context) and is_tested_version()


@functools.cache
def is_tested_version() -> bool:
    """Whether JAX is; it says so once if not."""
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
    """Whether XLA has nothing to share out: there is one device, or `shard_map` gave each its part, by all axes."""
    mesh = getattr(axis_context, "mesh", None)
    if mesh is None:
        return getattr(axis_context, "num_devices", 0) == 1
    return axis_context.manual_axes == frozenset(mesh.axis_names)


def constant(x: ir.Value, aval: Any) -> np.ndarray | None:
    """The value of an argument that is constant, or has no numbers."""
    if aval.size == 0:
        return np.zeros(aval.shape, aval.dtype)
    if isinstance(x.owner, ir.Block) or x.owner.name != "stablehlo.constant":
        return None
    return np.array(x.owner.attributes["value"])


def mark(functions: ir.SymbolTable, call: ir.Operation) -> bool:
    """Marks a call, and of those in it only what is computed once, if all that it does can be in one kernel."""
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
    for name in of_long:  # their own calls of others are those of copies by now
        copy_with_constant(functions, name, types[name])
    call.attributes[ATTRIBUTE] = attribute(MARK)
    return True


def callee_of(call: ir.Operation) -> str:
    """The name of the function."""
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value


def operations_in_all(functions: ir.SymbolTable, name: str) -> list[ir.Operation]:
    """The operations in a function and in those it calls, of each function once."""
    found, pending, seen = [], [name], {name}
    while pending:
        operations = operations_in(functions[pending.pop()].operation)
        found += operations
        called = {callee_of(x) for x in operations if x.name == "func.call"} - seen
        pending += sorted(called)
        seen |= called
    return found


def cost(functions: ir.SymbolTable, name: str) -> int:
    """At least what XLA thinks that any part of a stage costs: most are the numbers that it reads and writes."""
    block = functions[name].operation.regions[0].blocks[0]
    stored = sum(map(size_read, block.arguments)) + sum(map(size, block.operations[-1].operands))
    operations = operations_in_all(functions, name)
    calculated = [x for y in operations for x in (y.operands if y.name == "stablehlo.reduce" else y.results)]
    return 80 * stored + 2 * sum(map(size, calculated))


def size_read(x: ir.Value) -> int:
    """The numbers that are read of it, which are few if only rows are."""
    users = [use.owner.operation for use in x.uses]
    if all(user.name == "stablehlo.dynamic_slice" for user in users):
        return sum(size(user.results[0]) for user in users)
    return size(x)


def size(x: ir.Value) -> int:
    """The numbers in it."""
    return math.prod(ir.RankedTensorType(x.type).shape)


def call_copy(functions: ir.SymbolTable, name: str, calls: list[ir.Operation]) -> list[ir.Type]:
    """Calls a copy of a stage that has another result, a constant, lest XLA shares its calculation out to threads.

    XLA does so where the whole result of a function is one long calculation. A kernel has no threads, so that it could
    not be linked. Returns the types of the copy's results.
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
    """The copy, if there is none yet."""
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
    """As XLA reads it."""
    return ir.DictAttr.get({name: ir.StringAttr.get(value) for name, value in values.items()})


def can_be_in_a_kernel(operation: ir.Operation) -> bool:
    """Whether XLA's generator of single kernels takes it."""
    if operation.name == "stablehlo.reduce":
        return all(size(x) <= LARGEST_REDUCED for x in operation.operands)
    return operation.name in NAMES


def operations_in(operation: ir.Operation) -> list[ir.Operation]:
    """All operations in its regions, and in theirs."""
    found, pending = [], [operation]
    while pending:
        for region in pending.pop().regions:
            inner = [x.operation for block in region for x in block]
            found += inner
            pending += inner
    return found


def evaluate(*args: Any, jaxpr: ClosedJaxpr, **_: Any) -> list:
    """Outside `jax.jit`, operation by operation."""
    return jaxpr_as_fun(jaxpr)(*args)


def shapes_of_results(*args: Any, jaxpr: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    """Shapes and types."""
    return varying_as(args, jaxpr.out_avals)


def batch(args: Sequence, dims: Sequence, *, jaxpr: ClosedJaxpr) -> tuple[list, list]:
    """The rule of `vmap`."""
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    several = jax.vmap(jaxpr_as_fun(jaxpr), in_axes=tuple(dims), axis_size=size)
    found = in_one_kernel_p.bind(*args, jaxpr=jax.make_jaxpr(several)(*args))
    return found, [0] * len(found)


def lower_marked(ctx: mlir.LoweringRuleContext, *args: Any, jaxpr: ClosedJaxpr) -> Any:
    """The kernel."""
    return lower_as_one_kernel(jaxpr_as_fun(jaxpr), ctx, *args)


def lowered(function: Callable) -> Callable:
    """The rule to lower a function of arrays, to a list of arrays."""
    lower = mlir.lower_fun(function, multiple_results=True)
    return lambda ctx, *args, **params: lower(without_shardings(ctx), *args, **params)


def without_shardings(ctx: mlir.LoweringRuleContext) -> mlir.LoweringRuleContext:
    """With arguments that are of no mesh, as all is that is made while lowering."""
    return ctx.replace(avals_in=[without_sharding(x) for x in ctx.avals_in])


def without_sharding(x: Any) -> ShapedArray:
    """Shape and type."""
    return ShapedArray(x.shape, x.dtype, weak_type=x.weak_type)


in_one_kernel_p.def_impl(evaluate)
in_one_kernel_p.def_abstract_eval(shapes_of_results)
batching.primitive_batchers[in_one_kernel_p] = batch
mlir.register_lowering(in_one_kernel_p, lowered(evaluate))
mlir.register_lowering(in_one_kernel_p, lower_marked, platform="cpu", cacheable=False)
