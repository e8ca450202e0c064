"""Few kernels: marks the stages of a program, by which `cpu_kernel.py` finds them in the lowered program.

A stage is a function of the lowered program. Its body holds an identity, `of_stage`; where that is lowered for a CPU,
it sets an attribute on the function around it. Nothing else of it is left in the program.
"""

from typing import Any

from jax.extend.core import Primitive
from jax.extend.mlir import ir
from jax.interpreters import ad, batching, mlir

from .platform_rules import register_by_platform

STAGE = "mbjax.stage"  # the attribute

of_stage_p = Primitive("of_stage")


def of_stage(x: Any) -> Any:
    """Returns x, a result of a stage, and marks the function traced around it as a stage."""
    return of_stage_p.bind(x)


def take_mark(function: ir.Operation) -> bool:
    """Takes off a function's mark, so that it does not reach XLA; returns whether there was one."""
    if STAGE not in function.attributes:
        return False
    del function.attributes[STAGE]
    return True


def set_mark(ctx: mlir.LoweringRuleContext, x: ir.Value) -> list[ir.Value]:
    """Lowering rule of `of_stage_p` for a CPU: marks the function around."""
    if not ctx.module_context.lowering_parameters.for_export:
        function = ir.InsertionPoint.current.block.owner  # pyright: ignore[reportAttributeAccessIssue]
        function.attributes[STAGE] = ir.UnitAttr.get()
    return [x]


of_stage_p.def_impl(lambda x: x)
of_stage_p.def_abstract_eval(lambda x: x)
ad.deflinear2(of_stage_p, lambda cotangent, _: [cotangent])
batching.primitive_batchers[of_stage_p] = lambda args, dims: (of_stage_p.bind(args[0]), dims[0])
register_by_platform(of_stage_p, lambda _, x: [x], cpu=set_mark)
