"""A factor of M(q) + diag: articulated bodies, or that of the matrix.

The matrix is factored where joints mimic others, and couple branches; and of one small robot in float64, where its
loops are one kernel each of XLA's CPU backend. In float32 M has lost the inertia of distal links (see `decisions.md`).
"""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from mbjax.kinematics import MobodInertia, PositionKinematics
from mbjax.linear_algebra import MOST_DEPTH, BranchFactor, factor_branches, factor_one_world, paths, solve_branches
from mbjax.topology import TreeTopology, velocity_parents

from .articulated_body import ArticulatedFactor, factor_articulated_bodies, solve_with_factor
from .inertia_about_origin import shift_inertia_to_T
from .mass_matrix import calc_mass_matrix

MassMatrixFactor = ArticulatedFactor | BranchFactor


def factor_mass_matrix(
    topology: TreeTopology,
    position: PositionKinematics,
    inertia_W: MobodInertia,
    diagonal: Float[Array, " nv"],
    locked: Bool[Array, " nv"],
    b: Float[Array, " nv"] | None = None,
) -> tuple[MassMatrixFactor, Float[Array, " nv"] | None]:
    """The factor, and x with (M + diag) x = b; never differentiated. Locked velocities give way to nothing."""
    parents, is_one_world = velocity_parents(topology), inertia_W.mass.ndim == diagonal.ndim == 1
    is_shallow = paths(parents).ancestors.shape[1] <= MOST_DEPTH
    if not topology.followers and not (is_one_world and is_shallow and diagonal.dtype == jnp.float64):
        return factor_articulated_bodies(topology, position, inertia_W, diagonal, locked, b)
    position, inertia_W, diagonal = lax.stop_gradient((position, inertia_W, diagonal))
    M = calc_mass_matrix(topology, position, shift_inertia_to_T(position, inertia_W), diagonal)
    identity = np.eye(topology.num_velocities).reshape(*M.shape[:2], *(1 for _ in M.shape[2:]))
    M = jnp.where(locked[:, None] | locked[None], jnp.asarray(identity, M.dtype), M)
    factor = factor_one_world(parents, M) if is_one_world and is_shallow else factor_branches(parents, M)[0]
    return factor, None if b is None else solve_branches(parents, factor, lax.stop_gradient(b))


def solve_factored(topology: TreeTopology, factor: MassMatrixFactor, b: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """x with (M + diag) x = b; where locked b is zero, and so is x."""
    if isinstance(factor, ArticulatedFactor):
        return solve_with_factor(topology, factor, b)
    return solve_branches(velocity_parents(topology), factor, b)
