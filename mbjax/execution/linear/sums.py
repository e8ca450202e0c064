"""Few kernels: sums over an axis and repetition along a new one, each the other's transpose; the largest number.

XLA's CPU backend takes ten times longer for its own reduction over a short axis than for sums by halves. JAX would
transpose a sum by halves, slice by slice, into as many kernels of padding, and a broadcast into XLA's reduction.
"""

import functools
import operator
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Float

from ..targets.manual_axes import keeping_axes

sum_over_axis_p = Primitive("sum_over_axis")
repeat_p = Primitive("repeat")


def sum_over_first(x: Float[Array, "n *rest"]) -> Float[Array, "*rest"]:
    """Sum over the first axis."""
    return sum_over_axis(x, 0)


def largest_over_first(x: Float[Array, "n *rest"]) -> Float[Array, "*rest"]:
    """Largest along the first axis, of numbers that are not negative; 0 if there are none."""
    return by_halves(jnp.maximum, x, 0) if x.shape[0] else jnp.zeros(x.shape[1:], x.dtype)


def sum_over_axis(x: Float[Array, "..."], axis: int) -> Float[Array, "..."]:
    """Sum over an axis, which may be empty."""
    if x.shape[axis] == 0:
        return jnp.zeros((*x.shape[:axis], *x.shape[axis + 1 :]), x.dtype)
    return sum_over_axis_p.bind(x, axis=axis)


def repeat(x: Float[Array, "..."], size: int, axis: int) -> Float[Array, "..."]:
    """Repeats x `size` times along a new axis."""
    return repeat_p.bind(x, size=size, axis=axis)


def sum_by_halves(x: Array, *, axis: int) -> Array:
    """Sum over an axis, half by half."""
    return by_halves(operator.add, x, axis)


def by_halves(combine: Callable[[Array, Array], Array], x: Array, axis: int) -> Array:
    """Combines one half of an axis with the other until one entry is left; odd ones out come last."""
    odd = []
    while x.shape[axis] > 1:
        half, is_odd = divmod(x.shape[axis], 2)
        if is_odd:
            odd.append(lax.slice_in_dim(x, 2 * half, 2 * half + 1, axis=axis))
        x = combine(lax.slice_in_dim(x, 0, half, axis=axis), lax.slice_in_dim(x, half, 2 * half, axis=axis))
    return lax.squeeze(functools.reduce(combine, odd, x), (axis,))


def broadcast(x: Array, *, size: int, axis: int) -> Array:
    """Broadcasts x along a new axis."""
    kept = [k for k in range(x.ndim + 1) if k != axis]
    return lax.broadcast_in_dim(x, (*x.shape[:axis], size, *x.shape[axis:]), kept)


def shape_without(x: ShapedArray, *, axis: int) -> ShapedArray:
    """Shape and type of a sum over an axis."""
    return ShapedArray((*x.shape[:axis], *x.shape[axis + 1 :]), x.dtype)


def shape_with(x: ShapedArray, *, size: int, axis: int) -> ShapedArray:
    """Shape and type of an array repeated along a new axis."""
    return ShapedArray((*x.shape[:axis], size, *x.shape[axis:]), x.dtype)


sum_over_axis_p.def_impl(jax.jit(sum_by_halves, static_argnames="axis"))
repeat_p.def_impl(jax.jit(broadcast, static_argnames=("size", "axis")))
sum_over_axis_p.def_abstract_eval(keeping_axes(shape_without))
repeat_p.def_abstract_eval(keeping_axes(shape_with))
ad.deflinear2(sum_over_axis_p, lambda ct, x, *, axis: [repeat(ct, x.aval.shape[axis], axis)])
ad.deflinear2(repeat_p, lambda ct, x, *, size, axis: [sum_over_axis(ct, axis)])


def batch_sum(args: tuple, dims: tuple, *, axis: int) -> tuple[Array, int]:
    """Batching rule of `sum_over_axis_p`."""
    return sum_over_axis(jnp.moveaxis(args[0], dims[0], 0), axis + 1), 0


def batch_repeat(args: tuple, dims: tuple, *, size: int, axis: int) -> tuple[Array, int]:
    """Batching rule of `repeat_p`."""
    return repeat(jnp.moveaxis(args[0], dims[0], 0), size, axis + 1), 0


batching.primitive_batchers[sum_over_axis_p] = batch_sum
batching.primitive_batchers[repeat_p] = batch_repeat
mlir.register_lowering(sum_over_axis_p, mlir.lower_fun(sum_by_halves, multiple_results=False))
mlir.register_lowering(repeat_p, mlir.lower_fun(broadcast, multiple_results=False))
