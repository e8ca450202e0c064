"""Factors M(q) + diag and solves with the factor: by articulated bodies, or by LᵀDL of the matrix.

The matrix is factored only where joints mimic others, which couples branches of the tree.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from mbjax.execution import WORLDS_IN_CACHE, in_kernels
from mbjax.kinematics import MobodInertia, PositionKinematics
from mbjax.linear_algebra import BranchFactor, factor_branches, inverse_of_branches, solve_branches
from mbjax.topology import TreeTopology, velocity_parents

from .articulated_body.factor import ArticulatedFactor, factor_articulated_bodies, solve_with_factor
from .articulated_body.recursion import solve_with_pivots
from .composite_body.mass_matrix import calc_mass_matrix
from .records.inertia_about_origin import shift_inertia_to_T

MassMatrixFactor = ArticulatedFactor | BranchFactor


def factor_mass_matrix(
    topology: TreeTopology,
    position: PositionKinematics,
    inertia_W: MobodInertia,
    diagonal: Float[Array, " nv"],
    locked: Bool[Array, " nv"],
    b: Float[Array, " nv"] | None = None,
) -> tuple[MassMatrixFactor, Float[Array, " nv"] | None]:
    """Factors M + diag, and solves (M + diag) x = b if b is given; never differentiated. Locked velocities are held."""
    if not topology.followers:
        return factor_articulated_bodies(topology, position, inertia_W, diagonal, locked, b)
    position, inertia_W, diagonal = lax.stop_gradient((position, inertia_W, diagonal))
    M = calc_mass_matrix(topology, position, shift_inertia_to_T(position, inertia_W), diagonal)
    identity = np.eye(topology.num_velocities).reshape(*M.shape[:2], *(1 for _ in M.shape[2:]))
    M = jnp.where(locked[:, None] | locked[None], jnp.asarray(identity, M.dtype), M)
    parents = velocity_parents(topology)
    factor, _ = factor_branches(parents, M)
    return factor, None if b is None else solve_branches(parents, factor, lax.stop_gradient(b))


def solve_factored(topology: TreeTopology, factor: MassMatrixFactor, b: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """Solves (M + diag) x = b with the factor; b must be zero where locked, and x is zero there."""
    if isinstance(factor, ArticulatedFactor) and factor.base is None:
        return in_kernels(partial(solve_with_pivots, topology), partial(solve_with_both, topology), *factor[:2], b)
    if isinstance(factor, ArticulatedFactor):
        return solve_with_factor(topology, factor, b)
    return solve_branches(velocity_parents(topology), factor, b)


def solve_many_factored(
    topology: TreeTopology, factor: MassMatrixFactor, b: Float[Array, "k nv"]
) -> Float[Array, "k nv"]:
    """Solves (M + diag) x = b for k right-hand sides, each treated as further worlds, a chunk of them at a time."""
    k, n, *worlds = b.shape
    together = min(k, max(WORLDS_IN_CACHE // math.prod(worlds), 1))
    turns = -(-k // together)

    def repeated(x: Array) -> Array:
        before, own = x.shape[: x.ndim - len(worlds)], x.shape[x.ndim - len(worlds) :]
        x = jnp.broadcast_to(x.reshape(*before, 1, *own), (*before, together, *worlds))
        return x.reshape(*before, -1)

    def solve(b: Float[Array, "together nv"]) -> Float[Array, "together nv"]:
        x = solve_factored(topology, of_all, jnp.swapaxes(b, 0, 1).reshape(n, -1))
        return jnp.swapaxes(x.reshape(n, together, *worlds), 0, 1)

    of_all = jax.tree.map(repeated, factor)
    b = jnp.concatenate([b, jnp.zeros((turns * together - k, *b.shape[1:]), b.dtype)])
    return lax.map(solve, b.reshape(turns, together, *b.shape[1:])).reshape(b.shape)[:k]


def solve_with_both(topology: TreeTopology, directions: Array, pivots: Array, b: Array) -> Float[Array, " nv"]:
    """`solve_with_factor` from directions and pivots, for a factor without a base."""
    return solve_with_factor(topology, ArticulatedFactor(directions, pivots, None), b)


def inverse_of_free(
    topology: TreeTopology, M: Float[Array, "nv nv"], locked: Bool[Array, " nv"]
) -> Float[Array, "nv nv"]:
    """Inverse of M over the free velocities; rows and columns of locked joints are zero."""
    is_held = locked[:, None] | locked[None]
    M = jnp.where(is_held, diagonal_matrix(jnp.ones(M.shape[1:], M.dtype)), M)
    return jnp.where(is_held, 0.0, inverse_of_branches(velocity_parents(topology), M))


def diagonal_matrix(x: Float[Array, "n *w"]) -> Float[Array, "n n *w"]:
    """Diagonal matrix with x on its diagonal."""
    n = x.shape[0]
    identity = jnp.eye(n, dtype=bool).reshape(n, n, *(1 for _ in x.shape[1:]))
    return jnp.where(identity, x[None], 0.0)
