"""Tangents in the rules of closed forms: trees of arrays in which None is known to be zero."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array

from .manual_axes import keeping_axes, varying_alike


def add_tangents(*tangents: Any) -> Any:
    """The sum of trees of the same structure."""
    return functools.reduce(lambda a, b: jax.tree.map(_add, a, b, is_leaf=is_none), tangents)


def fit_tangent(tangent: Any, like: Any) -> Any:
    """The tangent with the worlds of what moves; what all worlds share and the tangent has for each does not move."""
    return jax.tree.map(_fit, tangent, like, is_leaf=is_none)


def no_tangent(like: Any) -> Any:
    """None for every array."""
    return jax.tree.map(lambda _: None, like)


def varying_with(tangent: Any, like: Any) -> Any:
    """The tangent, said to differ between devices where what moves does, as `moving_with` says."""
    return jax.tree.map(lambda x, y: None if x is None else varying_alike((x, y))[0], tangent, like, is_leaf=is_none)


def with_zeros(tangent: Any, like: Any) -> Any:
    """The tangent with arrays of zeros for None, or None where nothing moves."""
    if not jax.tree.leaves(tangent):
        return None
    return jax.tree.map(lambda x, y: jnp.zeros_like(y) if x is None else x, tangent, like, is_leaf=is_none)


def moving_with(tree: Any, *moved: Any) -> Any:
    """The arrays as they are, of each world its own where any of `moved` is: constants' tangents follow those too.

    For the results of a function with a rule. Where `vmap` comes first and derivatives later, JAX takes for granted
    that what has its own tangent in each world is itself each world's own.
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
