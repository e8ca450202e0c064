"""The one place that walks the tree.

Three kinds of walk are all the algorithms need:

- Sums along paths and over subtrees are linear: a product with a constant 0/1 matrix, one kernel whatever
  the tree, and its own transpose in reverse mode.
- Products of rotations along paths are a recursion outward (`compose_outward`), rolled into one loop body,
  with the geometric rule for its derivative: the rotation of a body is the sum of those below it.
- The articulated inertias are a recursion inward, `scan_inward`, and their solution one outward,
  `scan_outward`. Neither is ever differentiated: the derivative of forward dynamics needs only its solution.

Arrays keep components first and mobods (or velocities) last.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from mbjax.spatial.component_algebra import matmul, vee_of_antisymmetric_part

from .tree_topology import TreeTopology


def dot_with_mask(x: Float[Array, "*k a"], mask: np.ndarray) -> Float[Array, "*k b"]:
    """x times a constant 0/1 matrix (a, b), at full precision on every device."""
    return jnp.matmul(x, jnp.asarray(mask, dtype=x.dtype), precision=lax.Precision.HIGHEST)


def sum_over_path(topology: TreeTopology, x: Float[Array, "k nm"]) -> Float[Array, "k nm"]:
    """Per mobod, the sum over itself and its ancestors."""
    return dot_with_mask(x, topology.is_ancestor.T)


def sum_over_subtree(topology: TreeTopology, x: Float[Array, "k nm"]) -> Float[Array, "k nm"]:
    """Per mobod, the sum over itself and everything outboard."""
    return dot_with_mask(x, topology.is_ancestor)


def sum_velocities_over_path(topology: TreeTopology, x: Float[Array, "k nv"]) -> Float[Array, "k nm"]:
    """Per mobod, the sum over the velocities that move it."""
    return dot_with_mask(x, topology.moves)


def sum_moved_mobods(topology: TreeTopology, x: Float[Array, "k nm"]) -> Float[Array, "k nv"]:
    """Per velocity, the sum over the mobods it moves."""
    return dot_with_mask(x, topology.moves.T)


MAX_SLICES = 12


def take(x: Float[Array, "*k a"], indices: Any) -> Float[Array, "*k b"]:
    """Columns of x at constant indices: slices where the indices run, which reverse mode turns into pads."""
    indices = np.asarray(indices, dtype=int)
    if indices.size == x.shape[-1] and np.array_equal(indices, np.arange(indices.size)):
        return x
    breaks = np.flatnonzero(np.diff(indices) != 1) + 1
    if breaks.size + 1 > MAX_SLICES or indices.size == 0:
        return x[..., indices]
    runs = np.split(indices, breaks)
    pieces = [x[..., run[0] : run[-1] + 1] for run in runs]
    return pieces[0] if len(pieces) == 1 else jnp.concatenate(pieces, axis=-1)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def compose_outward(topology: TreeTopology, R_PM: Float[Array, "3 3 nm"]) -> Float[Array, "3 3 nm"]:
    """R_WM of every mobod from the rotations R_PM in their parents; the world's own is the identity.

    Derivative: with the rotation vectors dphi defined by dR = [dphi]x R,
    dphi_WM = sum over the path of R_WP dphi_PM   (angular velocities add up along a path).
    """
    rows = jnp.moveaxis(R_PM.reshape(9, -1), -1, 0)

    def step(placed: Array, mobod: tuple[Array, Array, Array]) -> tuple[Array, None]:
        index, parent, local = mobod
        R_WP = lax.dynamic_index_in_dim(placed, parent, 0, keepdims=False)
        product = [sum(R_WP[3 * i + k] * local[3 * k + j] for k in range(3)) for i in range(3) for j in range(3)]
        return lax.dynamic_update_index_in_dim(placed, jnp.stack(product), index, 0), None

    n = topology.num_mobods
    placed = jnp.broadcast_to(jnp.eye(3, dtype=R_PM.dtype).reshape(9), (n, 9))
    order = (jnp.arange(1, n), jnp.asarray(topology.parents[1:]), rows[1:])
    placed, _ = lax.scan(step, placed, order)
    return jnp.moveaxis(placed, 0, -1).reshape(3, 3, n)


@compose_outward.defjvp
def _compose_outward_jvp(topology: TreeTopology, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    (R_PM,), (dR_PM,) = primals, tangents
    R_WM = compose_outward(topology, R_PM)
    R_WP = take(R_WM, topology.parents)
    dphi_PM_P = vee_of_antisymmetric_part(matmul(dR_PM, jnp.swapaxes(R_PM, 0, 1)))
    dphi_PM_W = jnp.sum(R_WP * dphi_PM_P, axis=1)
    x, y, z = sum_over_path(topology, dphi_PM_W)
    zero = jnp.zeros_like(x)
    dphi_cross = jnp.stack([jnp.stack([zero, -z, y]), jnp.stack([z, zero, -x]), jnp.stack([-y, x, zero])])
    return R_WM, matmul(dphi_cross, R_WM)


def velocity_chain(topology: TreeTopology) -> tuple[np.ndarray, np.ndarray]:
    """The tree seen one velocity at a time, 1-based with 0 the world.

    Several velocities of one joint follow one another at the same point. Returns per velocity: the velocity
    inboard of it, and whether it is the last of its joint, the one that carries the body.
    """
    owner = topology.velocity_mobods
    starts, counts = topology.mobod_v_starts, topology.mobod_num_velocities
    inboard = np.zeros(len(owner), dtype=int)
    is_last = np.zeros(len(owner), dtype=bool)
    for j, mobod in enumerate(owner):
        parent = topology.mobod_parents[mobod]
        first = j == starts[mobod]
        inboard[j] = j if not first else (starts[parent] + counts[parent] if parent > 0 else 0)
        is_last[j] = j == starts[mobod] + counts[mobod] - 1
    return inboard, is_last


def scan_inward(
    topology: TreeTopology,
    step: Callable[[Array, Any], tuple[Array, Any]],
    xs: Any,
    size: int,
    dtype: Any,
) -> Any:
    """From the tips to the world, one velocity at a time, adding up in each what comes from outboard.

    `step(collected, x)` gets the (size,) sum of what the outboard velocities handed on, and returns what
    this one hands on, with an output to keep. Returns the outputs stacked over velocities.
    """
    inboard, _ = velocity_chain(topology)
    n = len(inboard)

    def body(collected: Array, element: tuple[Array, Array, Any]) -> tuple[Array, Any]:
        index, parent, x = element
        handed_on, kept = step(lax.dynamic_index_in_dim(collected, index, 0, keepdims=False), x)
        total = lax.dynamic_index_in_dim(collected, parent, 0, keepdims=False) + handed_on
        return lax.dynamic_update_index_in_dim(collected, total, parent, 0), kept

    elements = (jnp.arange(1, n + 1), jnp.asarray(inboard), xs)
    _, kept = lax.scan(body, jnp.zeros((n + 1, size), dtype), elements, reverse=True)
    return kept


def scan_outward(
    topology: TreeTopology,
    step: Callable[[Array, Any], tuple[Array, Any]],
    xs: Any,
    size: int,
    dtype: Any,
) -> Any:
    """From the world to the tips: `step(inboard_value, x)` returns its own (size,) value and an output."""
    inboard, _ = velocity_chain(topology)
    n = len(inboard)

    def body(values: Array, element: tuple[Array, Array, Any]) -> tuple[Array, Any]:
        index, parent, x = element
        value, kept = step(lax.dynamic_index_in_dim(values, parent, 0, keepdims=False), x)
        return lax.dynamic_update_index_in_dim(values, value, index, 0), kept

    elements = (jnp.arange(1, n + 1), jnp.asarray(inboard), xs)
    _, kept = lax.scan(body, jnp.zeros((n + 1, size), dtype), elements)
    return kept
