"""The composite-body algorithm for the mass matrix, one direction per step (Featherstone 2008, table 6.2).

It departs from the book in that motions and forces are about T, the tree's origin, in W, so that they need no shifts:
M_ij = S_i · I_j S_j, where I_j is the inertia of all that is outboard of j, and i is at or inboard of j.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from mbjax.execution import in_kernels, traced_for
from mbjax.execution.derivative_rules import fit_tangent
from mbjax.execution.recursions import (
    ScannedRow,
    computed_once,
    computed_where_kept,
    in_one_kernel,
    read_all,
    read_row,
    scan_inward,
    scan_outward,
    unpacked,
    walk_plan,
)
from mbjax.kinematics import OtherPoses, calc_position_kinematics, pose_across
from mbjax.kinematics.recursive_poses import cross_joint
from mbjax.linear_algebra import with_entry
from mbjax.model import MultibodyModel
from mbjax.spatial import written_out as wo
from mbjax.topology import TreeTopology, direction_parents

from ..derivatives.cotangent_outward import inertia_about_T, screw_about_T, turned_inertia
from ..derivatives.path_products import products_along_paths
from ..records.direction_rows import DirectionRows, calc_direction_rows, worlds_of
from ..records.inertia_about_origin import calc_inertia_about_T
from ..records.tree_motion import calc_inertia_in_world
from .mass_matrix import calc_mass_matrix


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
    S, inertia = in_one_kernel(place_outward, model, q)

    def from_composites(S: Array, inertia: Array, diagonal: Array) -> Array:
        S = jnp.broadcast_to(S, (*S.shape[:2], *np.broadcast_shapes(S.shape[2:], diagonal.shape[1:])))
        zero = jnp.zeros((10, *S.shape[2:]), S.dtype)
        F, _ = scan_inward(walk_plan(direction_parents(topology)), add_inward, (S, inertia), zero, staged=True)
        products = products_of_all if traced_for().world_a_thread else products_of_pairs
        return products(topology, S, F, diagonal)

    return in_one_kernel(from_composites, S, inertia, diagonal)


def place_outward(model: MultibodyModel, q: Float[Array, " nq"]) -> tuple[Array, Array]:
    """S of every direction, and the inertia of its mobod about T, zero except at the last direction of a joint."""
    topology, v = model.topology, jnp.zeros((model.num_velocities, *(1 for _ in q.shape[1:])), q.dtype)
    rows, others = calc_direction_rows(model, q, v, None, False, None)
    worlds = worlds_of(rows, q)
    identity = jnp.broadcast_to(np.eye(4, 3, dtype=q.dtype).reshape(12, *(1 for _ in worlds)), (12, *worlds))
    within_tree = topology.within_tree[topology.velocity_mobods]
    within_tree = jnp.asarray(within_tree, q.dtype).reshape(-1, *(1 for _ in worlds))

    plan = walk_plan(direction_parents(topology))
    return scan_outward(plan, place_direction, (rows, within_tree), identity, staged=True, tables=(others,))


def place_direction(
    X_TP: Array, given: tuple[DirectionRows, Array], others: OtherPoses | None
) -> tuple[Array, tuple[Array, Array]]:
    """One step outward: pose, S and inertia of a direction; X_TP has the axes of W and the origin T."""
    row, within_tree = given
    R, r = computed_once(cross_joint, X_TP, pose_across(row.joint, others))
    r, h, s = computed_once(directions, X_TP, r, row.hinge_map, within_tree)
    S = computed_where_kept(screw_about_T, r, h, s)
    RJ, c = computed_once(turned_inertia, R, row.inertia)
    inertia = wo.parts(
        *computed_where_kept(inertia_about_T, R, RJ, c, r, row.inertia.m), unpacked(read_all(row.inertia.m))
    )
    return wo.parts(R, r), (wo.parts(S), inertia)


def directions(X_TP: Array, r: wo.Vector, hinge_map: Array, within_tree: Array) -> tuple:
    """p_TM, which is zero at the root of a tree, and the hinge map [h; s] in W."""
    R_WP, _ = wo.take_apart(X_TP, (3, 3), 3)
    h, s = (wo.matvec(R_WP, x) for x in hinge_map)
    return wo.scale(r, within_tree), h, s


def add_inward(outboard: ScannedRow, row: tuple[Array, Array]) -> tuple[Array, Array]:
    """One step inward: the composite inertia of a direction, and the force that accelerates it by S."""
    S, inertia = row
    composite = computed_once(wo.total, outboard, inertia)
    return composite, wo.parts(computed_where_kept(force_of_composite, composite, S))


def force_of_composite(inertia: Array, S: Array) -> wo.Vector:
    """Force I S of a composite inertia I."""
    J, c, m = wo.take_apart(inertia, 6, 3, 1)
    return wo.times_inertia((J, c, m), list(S))


def products_of_all(
    topology: TreeTopology, S: Float[Array, "nd 6 ..."], F: Float[Array, "nd 6 ..."], diagonal: Float[Array, " nd ..."]
) -> Float[Array, "nd nd ..."]:
    """`products_of_pairs` of all pairs at once, one kernel of a GPU; zero for directions on different paths."""
    numbers, ones = np.arange(topology.velocity_mobods.size), (1,) * (S.ndim - 2)
    is_upper = (numbers[:, None] <= numbers).reshape(numbers.size, numbers.size, *ones)
    on_path = is_upper & topology.moves[:, topology.velocity_mobods].reshape(is_upper.shape)

    def products(S: Array, F: Array) -> Array:
        S, F = jnp.swapaxes(S, 0, 1), jnp.swapaxes(F, 0, 1)
        return jnp.where(jnp.asarray(on_path), wo.dot(list(S[:, :, None]), list(F[:, None])), 0.0)

    M = computed_once(products, S, F)
    M = jnp.where(jnp.asarray(is_upper), M, jnp.swapaxes(M, 0, 1))
    return M + jnp.where(jnp.eye(numbers.size, dtype=bool).reshape(is_upper.shape), diagonal, 0.0)


def products_of_pairs(
    topology: TreeTopology, S: Float[Array, "nd 6 ..."], F: Float[Array, "nd 6 ..."], diagonal: Float[Array, " nd ..."]
) -> Float[Array, "nd nd ..."]:
    """Mass matrix from S_i · F_j for i at or inboard of j, mirrored, plus the diagonal; pair by pair along paths."""
    (M,) = products_along_paths(topology, lambda S, F: ([wo.dot(list(S), list(F))], None), S, F, 1)
    diagonal = jnp.broadcast_to(diagonal, M.shape[1:])

    def add_to_diagonal(i: Array, M: Array) -> Array:
        return with_entry(M, read_row(read_row(M, i), i) + read_row(diagonal, i), i, i)

    return lax.fori_loop(0, M.shape[0], add_to_diagonal, M)
