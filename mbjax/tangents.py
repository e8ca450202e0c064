"""Tangents in the rules of closed forms: trees of arrays in which None is known to be zero."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array


def add_tangents(*tangents: Any) -> Any:
    """The sum of trees of the same structure."""
    return functools.reduce(lambda a, b: jax.tree.map(_add, a, b, is_leaf=is_none), tangents)


def fit_tangent(tangent: Any, like: Any) -> Any:
    """The tangent with the worlds of what moves; what all worlds share and the tangent has for each does not move."""
    return jax.tree.map(_fit, tangent, like, is_leaf=is_none)


def no_tangent(like: Any) -> Any:
    """None for every array."""
    return jax.tree.map(lambda _: None, like)


def is_none(x: Any) -> bool:
    """Whether x is None."""
    return x is None


def _add(a: Array | None, b: Array | None) -> Array | None:
    return b if a is None else a if b is None else a + b


def _fit(x: Array | None, like: Array) -> Array | None:
    if x is None or (x.ndim == like.ndim > 0 and x.shape[-1] > like.shape[-1]):
        return None
    return jnp.broadcast_to(x, like.shape)
