"""A program of JAX in a kernel in which a warp computes a world: runs its operations by their rules, one by one."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from .gpu_kernels import NotInKernelError
from .known_numbers import ELEMENTWISE, results
from .warp_arrays import Constant, WarpArray
from .warp_text import WarpText

RULES: dict[str, Callable] = {}
INLINED = {
    "jit": "jaxpr",
    "closed_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
}
UNCHANGED = {"stop_gradient", "copy", "optimization_barrier", "is_batched"}


def rule(*names: str) -> Callable:
    """Registers the rule of operations."""

    def register(function: Callable) -> Callable:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


def run(text: WarpText, jaxpr: Any, constants: Sequence, arguments: Sequence[WarpArray]) -> list[WarpArray]:
    """Writes the lines that run a program on arrays of one world; returns its results."""
    known: dict = {}
    last = {v: k for k, e in enumerate(jaxpr.eqns) for v in e.invars if not isinstance(v, Literal)}
    last.update({v: len(jaxpr.eqns) for v in jaxpr.outvars if not isinstance(v, Literal)})
    for v, x in [*zip(jaxpr.constvars, constants, strict=True), *zip(jaxpr.invars, arguments, strict=True)]:
        if v in last:
            known[v] = x
    del constants, arguments

    def value(v: Any) -> WarpArray:
        return known[v] if not isinstance(v, Literal) else Constant(np.asarray(v.val, v.aval.dtype))  # pyright: ignore

    for k, equation in enumerate(jaxpr.eqns):
        inputs = [value(v) for v in equation.invars]
        for v in equation.invars:
            if not isinstance(v, Literal) and last[v] == k:
                known.pop(v, None)
        results = run_equation(text, equation, inputs)
        for v, x in zip(equation.outvars, results, strict=True):
            assert x.shape == v.aval.shape, (equation.primitive, x.shape, v.aval.shape)
            if v in last:
                known[v] = x
    return [value(v) for v in jaxpr.outvars]


def run_equation(text: WarpText, equation: Any, inputs: list) -> Sequence[WarpArray]:
    """Results of one equation."""
    name, params = equation.primitive.name, equation.params
    if name in UNCHANGED:
        return inputs
    if not any(math.prod(v.aval.shape) for v in equation.outvars):
        return [Constant(np.zeros(v.aval.shape, v.aval.dtype)) for v in equation.outvars]
    if name in INLINED:
        inner = params[INLINED[name]]
        return run(text, inner.jaxpr, [constant_of(x) for x in inner.consts], inputs)
    if name in ELEMENTWISE | {"select_n": None} and all(isinstance(x, Constant) for x in inputs):
        return [known_now(equation, inputs)]
    if name in RULES:
        found = RULES[name](text, equation, inputs, **params)
        return found if equation.primitive.multiple_results else [found]
    inner = implementation_of(equation)
    return run(text, inner.jaxpr, [constant_of(x) for x in inner.consts], inputs)


def known_now(equation: Any, inputs: list[Constant]) -> Constant:
    """The result of an operation whose inputs are known."""
    with np.errstate(all="ignore"):
        (found,) = results(equation.primitive, [x.array for x in inputs], equation.params)
    aval = equation.outvars[0].aval
    return Constant(np.broadcast_to(np.asarray(found, aval.dtype), aval.shape))


def implementation_of(equation: Any) -> ClosedJaxpr:
    """A primitive of our own as the operations that it is made of."""
    shapes = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in equation.invars]
    if equation.primitive.name == "by_device":
        return jax.make_jaxpr(equation.params["default"])(*shapes)
    made_of = equation.primitive.impl
    if isinstance(made_of, functools.partial):  # JAX's own
        raise NotInKernelError(equation.primitive.name)
    return jax.make_jaxpr(lambda *x: made_of(*x, **equation.params))(*shapes)


def constant_of(x: Any) -> Constant:
    """A constant of a program."""
    return Constant(np.asarray(x))
