"""Computes functions of known numbers by NumPy, while the program that calls them is traced.

Such a function runs once, and to compile it would take a hundred times as long. JAX computes the operations that have
no rule here.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal, Primitive

from .compiled_calls import Flattened, compiled_whole, flatten

ELEMENTWISE = {
    "abs": np.abs, "add": np.add, "and": np.bitwise_and, "cos": np.cos, "div": np.divide, "eq": np.equal,
    "exp": np.exp, "ge": np.greater_equal, "gt": np.greater, "is_finite": np.isfinite, "le": np.less_equal,
    "log": np.log, "lt": np.less, "max": np.maximum, "min": np.minimum, "mul": np.multiply, "ne": np.not_equal,
    "neg": np.negative, "not": np.invert, "or": np.bitwise_or, "sign": np.sign, "sin": np.sin, "sqrt": np.sqrt,
    "square": np.square, "sub": np.subtract, "tan": np.tan,
}  # fmt: skip
CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "custom_jvp_call": "call_jaxpr"}


def call_now(function: Callable, *args: Any) -> Any:
    """Computes `function(*args)` of known arguments now, also while a function that calls this is being traced."""
    leaves, flat = flatten(function, *jax.tree.flatten(args))
    leaves = [np.asarray(x, jax.dtypes.canonicalize_dtype(x.dtype)) for x in leaves]
    default_dtype = jax.dtypes.canonicalize_dtype(float)
    with jax.disable_jit(False):
        jaxpr, treedef = operations_of(flat, tuple((x.shape, x.dtype) for x in leaves), default_dtype)
        # outside of the program that is being traced; users' numbers may be infinite or NaN
        with jax.ensure_compile_time_eval(), np.errstate(all="ignore"):
            return jax.tree.unflatten(treedef, jax.device_put(evaluate_now(jaxpr, leaves)))


@functools.lru_cache(maxsize=256)
def operations_of(flat: Flattened, like: tuple[tuple[tuple[int, ...], np.dtype], ...], default_dtype: Any) -> tuple:
    """Traces a function of arrays to its operations; also returns the tree of its results."""
    del default_dtype  # the operations depend on it
    arguments = [jax.ShapeDtypeStruct(*x) for x in like]
    jaxpr, out = jax.make_jaxpr(compiled_whole(flat), return_shape=True)(*arguments)
    return jaxpr, jax.tree.structure(out)


def evaluate_now(jaxpr: ClosedJaxpr, args: Sequence) -> list:
    """Evaluates traced operations one by one."""
    values = dict(zip(jaxpr.jaxpr.constvars, map(np.asarray, jaxpr.consts), strict=True))
    values |= zip(jaxpr.jaxpr.invars, args, strict=True)

    def value(x: Any) -> np.ndarray:
        return np.asarray(x.val, dtype_of(x)) if isinstance(x, Literal) else values[x]

    for equation in jaxpr.jaxpr.eqns:
        found = results(equation.primitive, list(map(value, equation.invars)), equation.params)
        for variable, x in zip(equation.outvars, found, strict=True):
            values[variable] = np.asarray(x, dtype_of(variable))
    return list(map(value, jaxpr.jaxpr.outvars))


def dtype_of(x: Any) -> np.dtype:
    """Type of a variable's numbers."""
    return x.aval.dtype


def results(primitive: Primitive, args: list, params: dict) -> list:
    """Results of one operation: by NumPy where it has a rule, else by JAX."""
    name = primitive.name
    if name in CALLS:
        return evaluate_now(params[CALLS[name]], args)
    if name in ELEMENTWISE:
        return [ELEMENTWISE[name](*args)]
    if name in RULES:
        found = RULES[name](*args, **params)
    else:
        found = primitive.bind(*args, **params)
    return list(found) if primitive.multiple_results else [found]


RULES: dict[str, Callable] = {}


def has_rule(name: str) -> Callable[[Callable], Callable]:
    """Registers NumPy's rule for operations of this name, a function of arrays and the operation's parameters."""

    def register(rule: Callable) -> Callable:
        RULES[name] = rule
        return rule

    return register


@has_rule("broadcast_in_dim")
def _broadcast(x: np.ndarray, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], **_: Any) -> np.ndarray:
    own = [1] * len(shape)
    for axis, size in zip(broadcast_dimensions, x.shape, strict=True):
        own[axis] = size
    return np.broadcast_to(x.reshape(own), shape)


@has_rule("concatenate")
def _concatenate(*parts: np.ndarray, dimension: int) -> np.ndarray:
    return np.concatenate(parts, dimension)


@has_rule("convert_element_type")
def _convert(x: np.ndarray, *, new_dtype: Any, **_: Any) -> np.ndarray:
    return x.astype(new_dtype)


@has_rule("reduce_sum")
def _sum(x: np.ndarray, *, axes: Sequence[int], **_: Any) -> np.ndarray:
    return np.sum(x, tuple(axes))


@has_rule("reshape")
def _reshape(x: np.ndarray, *, new_sizes: Sequence[int], dimensions: Any, **_: Any) -> np.ndarray:
    assert dimensions is None
    return x.reshape(new_sizes)


@has_rule("select_n")
def _select(which: np.ndarray, *cases: np.ndarray) -> np.ndarray:
    return np.choose(which, cases)


@has_rule("slice")
def _slice(x: np.ndarray, *, start_indices: Any, limit_indices: Any, strides: Any) -> np.ndarray:
    strides = strides or (None,) * x.ndim
    return x[tuple(map(slice, start_indices, limit_indices, strides))]


@has_rule("split")
def _split(x: np.ndarray, *, sizes: Sequence[int], axis: int) -> list[np.ndarray]:
    return np.split(x, np.cumsum(sizes)[:-1], axis)


@has_rule("squeeze")
def _squeeze(x: np.ndarray, *, dimensions: Sequence[int]) -> np.ndarray:
    return np.squeeze(x, tuple(dimensions))


@has_rule("stack")
def _stack(*parts: np.ndarray, axis: int) -> np.ndarray:
    return np.stack(parts, axis)


@has_rule("stop_gradient")
def _as_it_is(x: np.ndarray) -> np.ndarray:
    return x


@has_rule("transpose")
def _transpose(x: np.ndarray, *, permutation: Sequence[int]) -> np.ndarray:
    return np.transpose(x, permutation)


@has_rule("unstack")
def _unstack(x: np.ndarray, *, axis: int) -> list[np.ndarray]:
    return list(np.moveaxis(x, axis, 0))
