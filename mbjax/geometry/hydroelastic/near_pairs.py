"""Surfaces of those pairs alone that may touch.

Pairs are taken one after another. A branch leaves out those that are apart in every world of a chunk, so that the work
follows what overlaps. On a GPU, whose worlds do not share branches, all pairs are computed side by side.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool

from mbjax.execution import each_world, traced_for

from .contact_surface import ContactSurface


def calc_near_surfaces(
    calc_surface: Callable[..., ContactSurface],
    num_world_axes: int,
    is_near: Bool[Array, " n"],
    *args: Any,
) -> ContactSurface:
    """Surfaces of n pairs, which come last in all arrays, before worlds; empty ones of pairs that are not near."""

    def of_pairs(*args: Any) -> ContactSurface:
        return each_world(jax.vmap(calc_surface, in_axes=-1, out_axes=-1), num_world_axes, *args)

    def where_near(is_near: Bool[Array, " k"], *args: Any) -> ContactSurface:
        shapes = jax.eval_shape(of_pairs, *args)
        return lax.cond(jnp.any(is_near), of_pairs, lambda *_: no_surfaces(shapes), *args)

    if traced_for().expects_world_threads:
        return of_pairs(*args)
    if is_near.shape[0] == 1:
        return where_near(is_near, *args)
    last = -1 - num_world_axes
    each = jax.tree.map(
        lambda x: jnp.moveaxis(x, last, 0)[..., None, *[slice(None)] * num_world_axes], (is_near, *args)
    )
    found = lax.map(lambda x: where_near(*x), each)
    return jax.tree.map(lambda x: jnp.moveaxis(jnp.squeeze(x, last), 0, last), found)


def no_surfaces(shapes: ContactSurface) -> ContactSurface:
    """Surfaces of these shapes in which nothing touches."""
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    up = zeros.normal_W.at[:, 2].set(1.0)
    ones = jnp.ones_like(zeros.gradient_M), jnp.ones_like(zeros.gradient_N)
    return dataclasses.replace(zeros, normal_W=up, gradient_M=ones[0], gradient_N=ones[1])
