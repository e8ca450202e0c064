"""Lowering rules that depend on the platform of a program."""

from collections.abc import Callable
from typing import Any

from jax.extend.core import Primitive
from jax.interpreters import mlir


def register_by_platform(primitive: Primitive, default: Callable, **of_platforms: Callable) -> None:
    """Registers lowering rules, none of which is called once for equal operations: `default`, and rules by platform.

    A program exported for several platforms at once has the default, which runs anywhere. JAX would put the rules of
    all into it, which JAX 0.10 cannot do with rules of this kind.
    """

    def rule(ctx: mlir.LoweringRuleContext, *args: Any, **params: Any) -> Any:
        platforms = ctx.module_context.platforms
        chosen = of_platforms.get(platforms[0], default) if len(platforms) == 1 else default
        return chosen(ctx, *args, **params)

    mlir.register_lowering(primitive, rule, cacheable=False)
