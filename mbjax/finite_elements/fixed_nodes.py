"""What nodes that are fixed to moving points ask of a step: near-rigid springs, with the nodes' motion eliminated.

A node i is pulled to its anchor by an impulse γ_i, equal and opposite on the anchor:

    R γ = v̂ - (v_anchor⁺ - v_node⁺),   v_node⁺ = v* - C γ,   C = E (dt T)⁻¹ Eᵀ

with the free motion v*, the tangent T there, and E that picks the fixed nodes. So (R + C) γ = v̂ + v* - v_anchor⁺, which
is linear: seen from the rigid bodies, a deformable body is a spring and damper whose matrix is dense.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from mbjax.linear_algebra import cholesky, solve_lower_triangular
from mbjax.linear_algebra.block_tridiagonal import (
    BlockTridiagonal,
    factor_block_tridiagonal,
    solve_block_tridiagonal,
    times_block_tridiagonal,
)
from mbjax.spatial import safe_sqrt

from .assembly import from_layers, to_layers
from .mesh_structure import MeshStructure


class FixedNodeRows(NamedTuple):
    """Springs `R γ = aim - G dv + dv_node` of nodes fixed to bodies, and the response of nodes to their impulses γ.

    `response` is (dt T)⁻¹ Eᵀ: the nodes' velocities per unit of γ, with its sign turned around.
    """

    G: Float[Array, "r nv"]
    aim: Float[Array, " r"]
    R: Float[Array, " r"]
    response: Float[Array, "n 3 r"]


class EliminatedRows(NamedTuple):
    """Rows `impulse = start - G dv` in axes in which R + C is the identity, and what turns their impulses to γ.

    With R + C = L Lᵀ, γ = L⁻ᵀ impulse.
    """

    G: Float[Array, "r nv"]
    start: Float[Array, " r"]
    L: Float[Array, "r r"]


def calc_node_response(
    mesh: MeshStructure, tangent: BlockTridiagonal, time_step: Array, nodes: Int[Array | np.ndarray, " k"]
) -> Float[Array, "n 3 3k"]:
    """Change of all velocities by unit impulses at some nodes, along x, y and z of each: (dt T)⁻¹ Eᵀ.

    A node that a wall holds does not move.
    """
    k = nodes.shape[0]
    unit = jnp.zeros((mesh.num_nodes, 3, k, 3), time_step.dtype)
    unit = unit.at[nodes[:, None], jnp.arange(3)[None, :], jnp.arange(k)[:, None], jnp.arange(3)[None, :]].set(1.0)
    unit = jnp.where(mesh.is_held[:, None, None], 0.0, unit.reshape(mesh.num_nodes, 3, 3 * k))
    factors = factor_block_tridiagonal(lax.stop_gradient(tangent))
    x = lax.custom_linear_solve(
        lambda x: times_block_tridiagonal(tangent, x),
        to_layers(mesh, unit),
        lambda _, b: solve_block_tridiagonal(factors, b),
        symmetric=True,
    )
    return from_layers(mesh, x) / time_step


def calc_fixed_node_rows(
    response: Float[Array, "n 3 r"],
    nodes: Int[Array | np.ndarray, " k"],
    owner: Int[Array, " k"],
    G: Float[Array, "r nv"],
    v: Float[Array, " nv"],
    diagonal: Float[Array, " nv"],
    v_free: Float[Array, "n 3"],
    error: Float[Array, "k 3"],
    time_step: Float[Array, ""],
    near_rigid: float,
) -> FixedNodeRows:
    """The rows of fixed nodes; `error` is anchor less node at the step's start, `owner` numbers the constraints.

    As in Drake, R is `near_rigid` times the response |W| / n of the n rows of a constraint, with W = J diag(A)⁻¹ Jᵀ, in
    which A is the mass matrix of the rigid bodies, and the Schur complement of dt T on the fixed nodes.
    """
    rows = G.shape[0]
    C = response_of_fixed(response, nodes)
    complement = jnp.diagonal(inverse_of(C))
    W = (G / diagonal) @ G.T + jnp.diag(1.0 / complement)
    owners = jnp.repeat(owner, 3)
    together = owners[:, None] == owners[None, :]
    squares = jnp.sum(jnp.where(together, W * W, 0.0), axis=1)
    per_constraint = jnp.sum(jnp.where(together, squares[None, :], 0.0), axis=1)
    R = near_rigid * safe_sqrt(per_constraint) / jnp.sum(together.astype(G.dtype), axis=1)
    aim = -error.reshape(rows) / (2.0 * time_step) + v_free[nodes].reshape(rows)
    return FixedNodeRows(G, aim - G @ v, R, response)


def eliminate_nodes_of_mesh(rows: FixedNodeRows, nodes: Int[Array | np.ndarray, " k"]) -> EliminatedRows:
    """The rows with the nodes' motion eliminated."""
    L = cholesky(response_of_fixed(rows.response, nodes) + jnp.diag(rows.R))
    return EliminatedRows(solve_lower_triangular(L, rows.G), solve_lower_triangular(L, rows.aim), L)


def response_of_fixed(response: Float[Array, "n 3 r"], nodes: Int[Array | np.ndarray, " k"]) -> Float[Array, "r r"]:
    """C: the response of the fixed nodes to impulses on them."""
    rows = response.shape[2]
    C = response[nodes].reshape(rows, rows)
    return 0.5 * (C + C.T)


def inverse_of(C: Float[Array, "r r"]) -> Float[Array, "r r"]:
    """The inverse of a symmetric positive definite matrix."""
    half = solve_lower_triangular(cholesky(C), jnp.eye(C.shape[0], dtype=C.dtype))
    return half.T @ half
