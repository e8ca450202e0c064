"""Sums and products along the paths of the tree.

- Sums along paths and over subtrees are linear: products with a constant 0/1 matrix, one kernel whatever the tree, and
  again such sums in reverse mode. For one world and in large trees, on a CPU, they are a rolled loop (`roll`).
- Products of rotations along paths (`compose_outward`) are a recursion outward, rolled into one loop body; for many
  worlds on an accelerator, log2(depth) products of all mobods at once. The derivative of poses does not go through it.

All other recursions are scans, outward or inward (`mbjax.execution`). Here arrays keep components first, then mobods
(or velocities), then worlds if there are several.
"""

import functools
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Bool, Float

from mbjax.execution.arrays import dot_with_mask, take
from mbjax.execution.derivative_rules import keeping_axes
from mbjax.execution.recursions import scan_inward, scan_outward, walk_plan
from mbjax.spatial.component_algebra import matmul

from .parents import direction_parents, last_velocities, mobod_parents
from .tree_topology import TreeTopology

LARGEST_IN_PRODUCTS = 48  # mobods


def sum_over_path(topology: TreeTopology, x: Float[Array, "k nm"]) -> Float[Array, "k nm"]:
    """Per mobod, the sum over itself and its ancestors."""
    if is_rolled(topology, x):
        return roll_p.bind(x, parents=mobod_parents(topology), inward=False)
    return dot_with_mask(x, topology.is_ancestor.T, 1)


def sum_over_subtree(topology: TreeTopology, x: Float[Array, "k nm"]) -> Float[Array, "k nm"]:
    """Per mobod, the sum over itself and everything outboard."""
    if is_rolled(topology, x):
        return roll_p.bind(x, parents=mobod_parents(topology), inward=True)
    return dot_with_mask(x, topology.is_ancestor, 1)


def sum_velocities_over_path(topology: TreeTopology, x: Float[Array, "k nd"]) -> Float[Array, "k nm"]:
    """Per mobod, the sum over the directions that move it."""
    if is_rolled(topology, x):
        sums = roll_p.bind(x, parents=direction_parents(topology), inward=False)
        of_world = jnp.zeros_like(x, shape=(x.shape[0], 1, *x.shape[2:]))
        return take(jnp.concatenate([of_world, sums], 1), last_velocities(topology), 1)
    return dot_with_mask(x, topology.moves, 1)


def sum_moved_mobods(topology: TreeTopology, x: Float[Array, "k nm"]) -> Float[Array, "k nd"]:
    """Per direction, the sum over the mobods it moves."""
    if is_rolled(topology, x):
        return take(roll_p.bind(x, parents=mobod_parents(topology), inward=True), topology.velocity_mobods, 1)
    return dot_with_mask(x, topology.moves.T, 1)


def is_rolled(topology: TreeTopology, x: Float[Array, "k n *w"]) -> bool:
    """Whether sums are rolled loops over nodes, O(n) without matrix products: for one world, and in large trees."""
    return x.ndim == 2 or len(topology.parents) > LARGEST_IN_PRODUCTS


def roll(x: Float[Array, "k n *w"], *, parents: tuple[int, ...], inward: bool) -> Float[Array, "k n *w"]:
    """Per node, the sum over itself and, with `inward`, all nodes outboard of it, else all inboard of it."""

    def step(neighbours: Array, own: Array) -> tuple[Array, Array]:
        total = neighbours + own
        return total, total

    plan, rows, several_worlds = walk_plan(parents), jnp.moveaxis(x, 1, 0), x.ndim > 2
    zero = jnp.zeros_like(x, shape=(x.shape[0], *x.shape[2:]))
    if inward:
        return jnp.moveaxis(scan_inward(plan, step, rows, zero, several_worlds)[0], 0, 1)
    return jnp.moveaxis(scan_outward(plan, step, rows, zero, several_worlds), 0, 1)


def batch_roll(args: tuple, dims: tuple, **params: Any) -> tuple[Array, int]:
    """Rule of `vmap` for `roll`: worlds become further rows."""
    x = jnp.moveaxis(args[0], dims[0], 0)
    worlds, k, *rest = x.shape
    return roll_p.bind(x.reshape(worlds * k, *rest), **params).reshape(x.shape), 0


def transpose_roll(cotangent: Array, _: Any, *, parents: tuple[int, ...], inward: bool) -> list[Array]:
    """Transpose of `roll`: sums the other way. JAX's own would keep a stack of values that the loop never reads."""
    return [roll_p.bind(cotangent, parents=parents, inward=not inward)]


def sum_by_product(x: Float[Array, "k n *w"], *, parents: tuple[int, ...], inward: bool) -> Float[Array, "k n *w"]:
    """`roll` as a product of matrices: one kernel, for devices where starting a kernel takes long."""
    is_ancestor = ancestors(parents)
    return dot_with_mask(x, is_ancestor if inward else is_ancestor.T, 1)


@functools.lru_cache(maxsize=256)
def ancestors(parents: tuple[int, ...]) -> Bool[np.ndarray, "n n"]:
    """Mask [a, b] of nodes 1..n: whether b is a or inboard of a."""
    is_ancestor = np.eye(len(parents) + 1, dtype=bool)
    for node, parent in enumerate(parents, start=1):
        is_ancestor[node] |= is_ancestor[parent]
    return is_ancestor[1:, 1:]


roll_p = Primitive("roll")
roll_p.def_impl(jax.jit(roll, static_argnames=("parents", "inward")))
roll_p.def_abstract_eval(keeping_axes(lambda x, **_: ShapedArray(x.shape, x.dtype)))
ad.deflinear2(roll_p, transpose_roll)
batching.primitive_batchers[roll_p] = batch_roll
mlir.register_lowering(roll_p, mlir.lower_fun(sum_by_product, multiple_results=False))
mlir.register_lowering(roll_p, mlir.lower_fun(roll, multiple_results=False), platform="cpu")


def compose_outward(topology: TreeTopology, R_PM: Float[Array, "3 3 nm *w"]) -> Float[Array, "3 3 nm *w"]:
    """Rotations R_WM of all mobods from R_PM in their parents; the world's own is the identity."""
    roll = partial(roll_rotations_outward, topology.mobod_parents[1:])
    if R_PM.ndim == 3:
        return roll(R_PM)
    return lax.platform_dependent(R_PM, cpu=roll, default=partial(jump_rotations_outward, topology.mobod_parents))


@partial(jax.jit, static_argnums=0, inline=True)  # called outside `jit`, JAX would compile the loop anew at every call
def roll_rotations_outward(parents: tuple[int, ...], R_PM: Float[Array, "3 3 nm *w"]) -> Float[Array, "3 3 nm *w"]:
    """Products of rotations along paths, mobod by mobod; `parents` are those of all mobods but the world."""
    worlds = R_PM.shape[3:]
    identity = jnp.eye(3, dtype=R_PM.dtype).reshape(3, 3, *(1 for _ in worlds))
    identity = jnp.broadcast_to(identity, (3, 3, *worlds))

    def step(R_WP: Array, R_PM: Array) -> tuple[Array, Array]:
        R_WM = matmul(R_WP, R_PM)
        return R_WM, R_WM

    plan, several_worlds = walk_plan(parents), bool(worlds)
    R_WM = scan_outward(plan, step, jnp.moveaxis(R_PM[:, :, 1:], 2, 0), identity, several_worlds)
    return jnp.moveaxis(jnp.concatenate([identity[None], R_WM]), 0, 2)


def jump_rotations_outward(parents: tuple[int, ...], R_PM: Float[Array, "3 3 nm w"]) -> Float[Array, "3 3 nm w"]:
    """R_WM in log2(depth) products of all mobods at once: each with that of the mobod 1, 2, 4, … steps inboard."""
    inboard, R = np.maximum(np.array(parents), 0), R_PM
    while inboard.any():
        R = matmul(take(R, inboard, 2), R)
        inboard = inboard[inboard]
    return R
