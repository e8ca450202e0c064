"""Marks in a lowered program by which XLA's CPU backend makes one kernel of a call, and keeps its stages apart.

What is marked may hold only operations that the backend's code generator takes: it checks nothing. Stages are found by
the mark that `stage_marks` puts on them.
"""

import math
from typing import Any

import numpy as np
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import func, stablehlo

from .stage_marks import take_mark

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
