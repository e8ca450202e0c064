"""The composite-body algorithm in kernels (Featherstone 2008, table 6.2): its loops; `step.py` has their steps.

outward    poses, and S and the inertia of each mobod about T, the tree's origin, in W
inward     composite inertias I_j, and forces F_j = I_j S_j
in pairs   M_ij = S_i · F_j for i at or inboard of j
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from mbjax.execution import in_kernels, traced_for
from mbjax.execution.derivative_rules import fit_tangent
from mbjax.execution.recursions import (
    array_of,
    computed_once,
    in_one_kernel,
    read_row,
    rows_of,
    scan_inward,
    scan_outward,
    walk_plan,
    zeros_of,
)
from mbjax.kinematics import Pose, calc_position_kinematics
from mbjax.linear_algebra import with_entry
from mbjax.model import MultibodyModel
from mbjax.spatial import written_out as wo
from mbjax.topology import TreeTopology, direction_parents

from ..derivatives.path_products import products_along_paths
from ..records.direction_rows import calc_direction_rows, worlds_of
from ..records.inertia_about_origin import calc_inertia_about_T
from ..records.spatial_records import RigidInertia
from ..records.tree_motion import calc_inertia_in_world
from .mass_matrix import calc_mass_matrix
from .step import ScrewRows, add_inward, inertia_between, place_outward


@eqx.filter_custom_jvp
def calc_mass_matrix_from_state(
    model: MultibodyModel, q: Float[Array, " nq"], diagonal: Float[Array, " nv"]
) -> Float[Array, "nv nv"]:
    """M(q) plus the diagonal from model and state, where nothing else reads the kinematics."""
    if model.topology.followers or model.topology.num_velocities == 0:
        return mass_matrix_by_sums(model, q, diagonal)
    return in_kernels(mass_matrix_by_recursion, mass_matrix_by_sums, model, q, diagonal)


@calc_mass_matrix_from_state.def_jvp
def _calc_mass_matrix_from_state_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    M = calc_mass_matrix_from_state(*primals)
    _, change = eqx.filter_jvp(mass_matrix_by_sums, primals, tangents)
    return M, fit_tangent(change, M)


def mass_matrix_by_sums(model: MultibodyModel, q: Array, diagonal: Array) -> Float[Array, "nv nv"]:
    """M(q) plus the diagonal by sums over the tree, from the kinematics records."""
    position = calc_position_kinematics(model, q)
    inertia_T = calc_inertia_about_T(model, position, calc_inertia_in_world(model, position))
    return calc_mass_matrix(model.topology, position, inertia_T, diagonal)


def mass_matrix_by_recursion(model: MultibodyModel, q: Array, diagonal: Array) -> Float[Array, "nv nv"]:
    """M(q) plus the diagonal: poses outward, composite inertias inward, a product for each two directions on a path."""
    topology = model.topology
    rows = in_one_kernel(place_all_outward, model, q)

    def from_composites(rows: ScrewRows, diagonal: Array) -> Array:
        S = array_of(rows.S)
        S = jnp.broadcast_to(S, (*S.shape[:2], *np.broadcast_shapes(S.shape[2:], diagonal.shape[1:])))
        zero, rows = zeros_of(RigidInertia, S.shape[2:], S.dtype), rows._replace(S=rows_of(6, S))
        F, _ = scan_inward(walk_plan(direction_parents(topology)), add_inward, rows, zero, staged=True)
        products = products_of_all if traced_for().world_a_thread else products_of_pairs
        return products(topology, rows.S, F, diagonal)

    return in_one_kernel(from_composites, rows, diagonal)


def place_all_outward(model: MultibodyModel, q: Float[Array, " nq"]) -> ScrewRows:
    """The outward loop."""
    topology, v = model.topology, jnp.zeros((model.num_velocities, *(1 for _ in q.shape[1:])), q.dtype)
    rows, others = calc_direction_rows(model, q, v, None, False, None)
    worlds = worlds_of(rows, q)
    identity = jnp.broadcast_to(np.eye(4, 3, dtype=q.dtype).reshape(12, *(1 for _ in worlds)), (12, *worlds))
    within_tree = topology.within_tree[topology.velocity_mobods]
    within_tree = jnp.asarray(within_tree, q.dtype).reshape(-1, *(1 for _ in worlds))
    plan, world = walk_plan(direction_parents(topology)), rows_of(Pose, identity)
    return scan_outward(plan, place_outward, (rows, within_tree), world, staged=True, tables=(others,))


def products_of_all(
    topology: TreeTopology, S: wo.Vector, F: wo.Vector, diagonal: Float[Array, " nd ..."]
) -> Float[Array, "nd nd ..."]:
    """`products_of_pairs` of all pairs at once, one kernel of a GPU; zero for directions on different paths."""
    numbers, ones = np.arange(topology.velocity_mobods.size), (1,) * (array_of(S).ndim - 2)
    is_upper = (numbers[:, None] <= numbers).reshape(numbers.size, numbers.size, *ones)
    on_path = is_upper & topology.moves[:, topology.velocity_mobods].reshape(is_upper.shape)

    def products(S: Array, F: Array) -> Array:
        S, F = jnp.swapaxes(S, 0, 1), jnp.swapaxes(F, 0, 1)
        return jnp.where(jnp.asarray(on_path), wo.dot(list(S[:, :, None]), list(F[:, None])), 0.0)

    M = computed_once(products, array_of(S), array_of(F))
    M = jnp.where(jnp.asarray(is_upper), M, jnp.swapaxes(M, 0, 1))
    return M + jnp.where(jnp.eye(numbers.size, dtype=bool).reshape(is_upper.shape), diagonal, 0.0)


def products_of_pairs(
    topology: TreeTopology, S: wo.Vector, F: wo.Vector, diagonal: Float[Array, " nd ..."]
) -> Float[Array, "nd nd ..."]:
    """Mass matrix from S_i · F_j for i at or inboard of j, mirrored, plus the diagonal; pair by pair along paths."""
    (M,) = products_along_paths(topology, lambda S, F: ([inertia_between(S, F)], None), S, F, 1)
    diagonal = jnp.broadcast_to(diagonal, M.shape[1:])

    def add_to_diagonal(i: Array, M: Array) -> Array:
        return with_entry(M, read_row(read_row(M, i), i) + read_row(diagonal, i), i, i)

    return lax.fori_loop(0, M.shape[0], add_to_diagonal, M)
