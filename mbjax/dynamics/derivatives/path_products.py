"""Matrices of products for each two directions on one path.

For many worlds on a CPU they are computed pair by pair: directions in different branches have no product, and products
of matrices would need the axis of worlds first.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from mbjax.execution import on_cpu
from mbjax.execution.derivative_rules import fit_tangent
from mbjax.execution.recursions import in_one_kernel, read_all, read_row, row_of, rows_of, stage
from mbjax.linear_algebra import products_of_columns, with_entry
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import written_out as wo
from mbjax.topology import TreeTopology, direction_parents

from ..records.direction_rows import directions_first

ColumnPair = Callable[[Any, Any], tuple[wo.Vector, wo.Vector | None]]


@eqx.filter_custom_jvp
def calc_mirrored_products(
    topology: TreeTopology, S: Float[Array, "k nd"], F: Float[Array, "k nd"]
) -> Float[Array, "nd nd"]:
    """Symmetric matrix of S_i · F_j for i at or inboard of j, mirrored; zero between branches."""
    if S.ndim == 2 or topology.followers:
        return mirrored_products_at_once(topology, S, F)

    def pair_by_pair(S: Array, F: Array) -> Array:
        S, F = (rows_of(x.shape[1], x) for x in (S, F))
        (M,) = products_along_paths(topology, lambda S, F: ([scalar_product(S, F)], None), S, F, 1)
        return M

    def in_kernel(S: Array, F: Array) -> Array:
        return in_one_kernel(pair_by_pair, directions_first(S), directions_first(F))

    return on_cpu(in_kernel, partial(mirrored_products_at_once, topology), S, F)


@stage
def scalar_product(S: wo.Vector, F: wo.Vector) -> Array:
    """S · F."""
    return wo.dot(S, F)


@calc_mirrored_products.def_jvp
def _calc_mirrored_products_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    M = calc_mirrored_products(*primals)
    return M, fit_tangent(eqx.filter_jvp(mirrored_products_at_once, primals, tangents)[1], M)


def mirrored_products_at_once(topology: TreeTopology, S: Array, F: Array) -> Float[Array, "nd nd"]:
    """`calc_mirrored_products` by one product of matrices."""
    products = products_of_columns(S, F)
    return by_place_on_path(topology, products, ca.transpose(products))


def by_place_on_path(
    topology: TreeTopology, upper: Float[Array, "nd n"], lower: Float[Array, "nd n"], times: int = 1
) -> Float[Array, "nd n"]:
    """Entry kj of `upper` where k is inboard of j or in its joint, of `lower` where outboard, zero in other branches.

    The matrices have `times` nd columns.
    """
    inboard = topology.moves[:, topology.velocity_mobods]
    outboard = inboard.T & ~inboard
    inboard, outboard = (
        np.tile(x, (1, times)).reshape(*upper.shape[:2], *(1 for _ in upper.shape[2:])) for x in (inboard, outboard)
    )
    return jnp.where(inboard, upper, jnp.where(outboard, lower, 0.0))


def products_along_paths(
    topology: TreeTopology, pair: ColumnPair, X: Any, Y: Any, count: int
) -> list[Float[Array, "nd nd w"]]:
    """`count` matrices of `pair(X_i, Y_j)` for i at or inboard of j: its entries ij, then ji (None: those of ij).

    X and Y are rows, or trees of rows, one for each direction.
    """
    inboard = jnp.asarray(np.array(direction_parents(topology), np.int32) - 1)
    arrays = jax.tree.leaves((X, Y))
    directions, worlds = arrays[0].shape[0], jnp.broadcast_shapes(*(x.shape[2:] for x in arrays))

    def to_next(carry: tuple[list[Array], Array, Array]) -> tuple[list[Array], Array, Array]:
        matrices, i, j = carry
        at_ij, at_ji = read_all(pair(row_of(X, i, late=True), row_of(Y, j, late=True)))
        matrices = [with_entry(M, value, j, i) for M, value in zip(matrices, at_ji or at_ij, strict=True)]
        matrices = [with_entry(M, value, i, j) for M, value in zip(matrices, at_ij, strict=True)]
        next_i = read_row(inboard, i)
        return matrices, jnp.where(next_i < 0, jnp.maximum(j - 1, 0), next_i), jnp.where(next_i < 0, j - 1, j)

    matrices = [jnp.zeros((directions, directions, *worlds), arrays[0].dtype) for _ in range(count)]
    if directions == 0:
        return matrices
    start = jnp.asarray(directions - 1, jnp.int32)
    return lax.while_loop(lambda carry: carry[2] >= 0, to_next, (matrices, start, start))[0]


def products_within_joints(
    topology: TreeTopology,
    pair: ColumnPair,
    X: Any,
    Y: Any,
    matrices: list[Array],
) -> list[Float[Array, "nd nd w"]]:
    """Sets entries ij to `pair(X_i, Y_j)` where i and j are of one joint that has several directions."""
    owner = topology.velocity_mobods
    has_several = np.array(topology.mobod_num_velocities)[owner] > 1
    first, second = (jnp.asarray(x, jnp.int32) for x in np.nonzero((owner[:, None] == owner) & has_several))

    def to_next(n: Array, matrices: list[Array]) -> list[Array]:
        i, j = read_row(first, n), read_row(second, n)
        values, _ = read_all(pair(row_of(X, i, late=True), row_of(Y, j, late=True)))
        return [with_entry(M, value, i, j) for M, value in zip(matrices, values, strict=True)]

    return lax.fori_loop(0, first.shape[0], to_next, matrices)
