"""Tangents in derivative rules written by hand: trees of arrays, where None is known to be zero."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array

from ..targets.manual_axes import keeping_axes, varying_alike


def add_tangents(*tangents: Any) -> Any:
    """Sum of trees of the same structure, with None for zero."""
    return functools.reduce(lambda a, b: jax.tree.map(_add, a, b, is_leaf=is_none), tangents)


def fit_tangent(tangent: Any, like: Any) -> Any:
    """Gives a tangent the worlds of its primal; None where the tangent has worlds and all worlds share the primal."""
    return jax.tree.map(_fit, tangent, like, is_leaf=is_none)


def no_tangent(like: Any) -> Any:
    """Zero tangent: None for every array."""
    return jax.tree.map(lambda _: None, like)


def varying_with(tangent: Any, like: Any) -> Any:
    """Declares a tangent to differ between devices where `like` does, as it does after `moving_with`."""
    return jax.tree.map(lambda x, y: None if x is None else varying_alike((x, y))[0], tangent, like, is_leaf=is_none)


def with_zeros(tangent: Any, like: Any) -> Any:
    """Replaces None in a tangent by arrays of zeros; returns None where nothing moves."""
    if not jax.tree.leaves(tangent):
        return None
    return jax.tree.map(lambda x, y: jnp.zeros_like(y) if x is None else x, tangent, like, is_leaf=is_none)


def moving_with(tree: Any, *moved: Any) -> Any:
    """Returns the arrays of `tree`, batched by `vmap` wherever any of `moved` is; constants too.

    It is for the results of a function with a derivative rule. Where `vmap` comes first and derivatives later, JAX
    takes for granted that an array whose tangent differs between worlds itself differs between them.
    """
    leaves = jax.tree.leaves(moved)
    return jax.tree.map(lambda x: moving_with_p.bind(*varying_alike([x, *leaves])), tree)


def is_none(x: Any) -> bool:
    """Whether x is None."""
    return x is None


def _add(a: Array | None, b: Array | None) -> Array | None:
    return b if a is None else a if b is None else a + b


def _fit(x: Array | None, like: Array) -> Array | None:
    if x is None or (x.ndim == like.ndim > 0 and x.shape[-1] > like.shape[-1]):
        return None
    return jnp.broadcast_to(varying_alike((x, like))[0], like.shape)


def _differentiate_moving_with(primals: tuple, tangents: tuple) -> tuple:
    return moving_with_p.bind(*primals), tangents[0]


def _batch_moving_with(args: tuple, dims: tuple) -> tuple[Array, int]:
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    return moving_with_p.bind(*(batching.bdim_at_front(x, d, size) for x, d in zip(args, dims, strict=True))), 0


moving_with_p = Primitive("moving_with")
moving_with_p.def_impl(lambda x, *_: x)
moving_with_p.def_abstract_eval(keeping_axes(lambda x, *_: ShapedArray(x.shape, x.dtype)))
ad.primitive_jvps[moving_with_p] = _differentiate_moving_with
batching.primitive_batchers[moving_with_p] = _batch_moving_with
mlir.register_lowering(moving_with_p, mlir.lower_fun(lambda x, *_: x, multiple_results=False))
