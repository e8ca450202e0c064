"""The program of one world on a CPU as one kernel.

XLA's CPU backend starts a kernel for every few operations, and for one world to start them takes longer than what they
compute. A call that carries a mark it compiles to a single kernel, with all its loops: so it marks small loops itself.
It does not check what others mark. So only operations that its code generator takes are let in here, only versions of
JAX that this was tested with, and every argument is read. Whatever else a program does, it is compiled as XLA would.
MBJAX_ONE_KERNEL=0 in the environment turns it off.
"""

import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun
from jax.interpreters import mlir, partial_eval
from jax.interpreters.mlir import ir

TESTED = (0, 9), (0, 10)  # versions of JAX
ATTRIBUTE, MARK = "mhlo.frontend_attributes", {"xla_cpu_small_call": "true", "inlineable": "false"}
LARGEST_REDUCED = 3072  # numbers: of 4096 and more, XLA makes a call of a library

# No products of matrices, sorting, scattering, linear algebra or callbacks: those are calls of libraries.
OPERATIONS = """
    abs add and atan2 bitcast_convert broadcast_in_dim cbrt ceil clamp compare concatenate constant convert cosine
    divide dynamic_slice dynamic_update_slice exponential exponential_minus_one floor gather iota is_finite log
    log_plus_one maximum minimum multiply negate not optimization_barrier or pad power reduce remainder reshape return
    reverse round_nearest_afz round_nearest_even rsqrt select shift_left shift_right_arithmetic shift_right_logical sign
    sine slice sqrt subtract tan tanh transpose while xor
"""
NAMES = {"func.call", "func.return", *(f"stablehlo.{name}" for name in OPERATIONS.split())}


def lower_as_one_kernel(function: Callable[..., Sequence], ctx: mlir.LoweringRuleContext, *args: Any) -> Any:
    """Lowers `function(*args)`.

    XLA ends the process if such a kernel has an argument that nothing reads. Those that JAX sees to be unread or
    constant are left out. Lest XLA finds more, it may not see what the others are, and all are read for a result that
    is dropped.
    """
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

    if given and ctx.avals_out and not jaxpr.effects and is_tested(ctx):
        results = mlir.lower_fun(called, multiple_results=True)(ctx.replace(), *args)
        operation = jax.tree.leaves(results)[0].owner
        if mark(ctx.module_context.symbol_table, operation):
            return results
        operation.erase()
    return mlir.lower_fun(as_xla_would, multiple_results=True)(ctx, *args)


def is_tested(ctx: mlir.LoweringRuleContext) -> bool:
    """Whether it is on, and was tested: programs of one device, of numbers, for this process, by these versions."""
    if os.environ.get("MBJAX_ONE_KERNEL") == "0":
        return False
    if ctx.module_context.lowering_parameters.for_export or jax.__version_info__[:2] not in TESTED:
        return False
    num_devices = getattr(ctx.module_context.axis_context, "num_devices", 0)
    are_numbers = all(getattr(getattr(x, "dtype", None), "kind", "none") in "biuf" for x in ctx.avals_in)
    return num_devices == 1 and are_numbers


def constant(x: ir.Value, aval: Any) -> np.ndarray | None:
    """The value of an argument that is constant, or has no numbers."""
    if aval.size == 0:
        return np.zeros(aval.shape, aval.dtype)
    if isinstance(x.owner, ir.Block) or x.owner.name != "stablehlo.constant":
        return None
    return np.array(x.owner.attributes["value"])


def mark(functions: ir.SymbolTable, call: ir.Operation) -> bool:
    """Marks a call, and no call in it, if all that it does can be in one kernel."""
    assert call.name == "func.call", call
    calls, pending = [], [call]
    while pending:
        callee = ir.FlatSymbolRefAttr(pending.pop().attributes["callee"]).value
        for operation in operations_in(functions[callee].operation):
            if not can_be_in_a_kernel(operation):
                return False
            if operation.name == "func.call":
                calls.append(operation)
                pending.append(operation)
    for inner in calls:
        if ATTRIBUTE in inner.attributes:
            del inner.attributes[ATTRIBUTE]
    call.attributes[ATTRIBUTE] = ir.DictAttr.get({name: ir.StringAttr.get(value) for name, value in MARK.items()})
    return True


def can_be_in_a_kernel(operation: ir.Operation) -> bool:
    """Whether XLA's generator of single kernels takes it."""
    if operation.name == "stablehlo.reduce":
        return all(math.prod(ir.RankedTensorType(x.type).shape) <= LARGEST_REDUCED for x in operation.operands)
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
