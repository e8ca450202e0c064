"""The Jacobian of inverse dynamics by q and v, all columns at once (Singh, Russell and Wensing 2022, eqs. 36 to 43).

Composite terms are those of direction k where it is outboard of j's joint, else those of j:

    dtau_k / dq_j = S_k · (I E_j + 𝓑 B_j + Z b_j)                     k outboard
    dtau_k / dq_j = S_k · (I E_j + 𝓑 B_j + Z b_j + S_j x* F_j)        k inboard or in the same joint, there also
                    + dS_k/dq_j · F_j
    dtau_k / dv_j = S_k · (I (B_j + dS_j/dt) + 𝓑 S_j)

where 𝓑 X = [K b; 2 b x hf] with b the rotation of X, K, hf and Z are as in `composite_terms.py`, and b_j is the
rotation of S_j. Indices k and j are directions; those that one velocity drives are summed in the end.
"""

from collections.abc import Sequence
from functools import cache, partial
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.execution import on_cpu
from mbjax.execution.derivative_rules import fit_tangent
from mbjax.execution.recursions import in_one_kernel, rows_of, stage
from mbjax.kinematics import PositionKinematics, VelocityKinematics, calc_velocity_kinematics
from mbjax.linear_algebra import products_of_columns
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import written_out as wo
from mbjax.topology import TreeTopology, sum_directions

from ..records.direction_rows import directions_first
from ..records.inertia_about_origin import shift_inertia_to_T
from ..records.tree_motion import calc_inertia_in_world
from .composite_terms import CompositeTerms, FixedWrenches, calc_composite_terms
from .motion import (
    MotionDerivatives,
    calc_forces_of_hinge_changes,
    calc_motion_derivatives,
    of_same_joint,
)
from .path_products import by_place_on_path, calc_mirrored_products, products_along_paths, products_within_joints

Pairs = Sequence[Float[Array, "k nd"]]  # by q and by v


class TorqueColumns(NamedTuple):
    """Derivatives of S · F by q (its tangent) and v."""

    dq: Float[Array, "nv nv"]
    dv: Float[Array, "nv nv"]


def calc_all_columns(
    model: MultibodyModel,
    position: PositionKinematics,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    vdot: Float[Array, " nv"],
    wrenches: FixedWrenches | None,
) -> tuple[CompositeTerms, TorqueColumns, Float[Array, "nd nd"]]:
    """Composite terms, torque columns by q and v, and columns by the directions' vdot: M without reflected inertia."""
    topology, S = model.topology, position.S_T
    velocity = calc_velocity_kinematics(model, position, q, v)
    motion = calc_motion_derivatives(model, position, velocity, q, v, vdot)
    inertia_T = shift_inertia_to_T(position, calc_inertia_in_world(model, position))
    terms = calc_composite_terms(topology, inertia_T, velocity.V_WM_T, motion.A_WM_T, wrenches)
    columns = calc_torque_columns(topology, position, velocity, motion, terms)
    return terms, columns, calc_mirrored_products(topology, S, terms.inertia_times(S))


def calc_torque_columns(
    topology: TreeTopology,
    position: PositionKinematics,
    velocity: VelocityKinematics,
    motion: MotionDerivatives,
    terms: CompositeTerms,
) -> TorqueColumns:
    """Torque columns by q and v, by the module's equations."""
    S = position.S_T
    by_v = motion.B + velocity.Sdot_T
    G_q = terms.inertia_times(motion.E) + terms.change_by(motion.B) + ca.force_cross(S, terms.F)
    G_v = terms.inertia_times(by_v) + terms.change_by(S)
    left = [terms.inertia_times(S), terms.change_by_transposed(S)]
    right_q, right_v = [motion.E, motion.B[:3]], [by_v, S[:3]]
    if terms.Z is not None:
        G_q = G_q + terms.change_of_wrenches(S)
        left.append(terms.change_of_wrenches_transposed(S))
        right_q.append(S[:3])
        right_v.append(jnp.zeros_like(S[:3]))
    right = [ca.concatenate(x, 0) for x in (right_q, right_v)]
    within = ca.cross(terms.F[3:], position.H_W[3:]) if max(topology.mobod_num_velocities) > 1 else None
    dq, dv = calc_products(topology, S, (G_q, G_v), ca.concatenate(left, 0), right, within)
    of_hinge_changes = calc_forces_of_hinge_changes(topology, position, motion, terms.F)
    if of_hinge_changes is not None:
        dq = dq + of_hinge_changes
    dq, dv = (sum_directions(topology, sum_directions(topology, x, 0), 1) for x in (dq, dv))
    return TorqueColumns(dq, dv)


@eqx.filter_custom_jvp
def calc_products(
    topology: TreeTopology,
    S: Float[Array, "6 nd"],
    G: Pairs,
    left: Float[Array, "k nd"],
    right: Pairs,
    within: Float[Array, "3 nd"] | None,
) -> tuple[Float[Array, "nd nd"], Float[Array, "nd nd"]]:
    """Entries S_k · G_j where k is inboard of j or in its joint, left_k · right_j where k is outboard.

    The matrix by q also has h_k · `within`_j where k and j are of one joint; None if no joint has several directions.
    """
    if S.ndim == 2 or topology.followers:
        return products_at_once(topology, S, G, left, right, within)
    ways = partial(products_pair_by_pair, topology), partial(products_at_once, topology)
    return on_cpu(*ways, S, G, left, right, within)


@calc_products.def_jvp
def _calc_products_jvp(primals: tuple, tangents: tuple) -> tuple[tuple, tuple]:
    products = calc_products(*primals)
    return products, fit_tangent(eqx.filter_jvp(products_at_once, primals, tangents)[1], products)


def products_at_once(
    topology: TreeTopology, S: Array, G: Pairs, left: Array, right: Pairs, within: Array | None
) -> tuple[Array, Array]:
    """`calc_products` by products of whole matrices."""
    upper = products_of_columns(S, ca.concatenate(G, 1))
    lower = products_of_columns(left, ca.concatenate(right, 1))
    dq, dv = jnp.split(by_place_on_path(topology, upper, lower, 2), 2, 1)
    if within is not None:
        same = of_same_joint(topology)
        same = same.reshape(*same.shape, *(1 for _ in S.shape[2:]))
        dq = dq + jnp.where(same, products_of_columns(S[:3], within), 0.0)
    return dq, dv


def products_pair_by_pair(
    topology: TreeTopology, S: Array, G: Pairs, left: Array, right: Pairs, within: Array | None
) -> tuple[Array, Array]:
    """`calc_products` by walks along paths, one pair of directions at a time."""

    size = left.shape[0]

    def in_kernel(k: Array, j: Array, within: Array | None) -> list[Array]:
        k, j = rows_of(of_inboard(size), k), rows_of(of_outboard(size), j)
        matrices = products_along_paths(topology, products_of_pair, k, j, 2)
        if within is None:
            return matrices
        return products_within_joints(topology, products_within_joint, k, (j, rows_of(3, within)), matrices)

    # one array for each side: what a pair reads then stands together
    arrays = ca.concatenate([S, *right], 0), ca.concatenate([*G, left], 0), within
    dq, dv = in_one_kernel(in_kernel, *(None if x is None else directions_first(x) for x in arrays))
    return dq, dv


class OfInboard(NamedTuple):
    """Columns of the direction that is inboard: S, and `right` by q and by v."""

    S: wo.Vector
    right_q: wo.Vector
    right_v: wo.Vector


class OfOutboard(NamedTuple):
    """Columns of the direction that is outboard: G by q and by v, and `left`."""

    G_q: wo.Vector
    G_v: wo.Vector
    left: wo.Vector


@cache
def of_inboard(size: int) -> type[OfInboard]:
    """The record of directions that are inboard, with `size` entries of each on the right."""
    return type("OfInboard", (OfInboard,), {"shapes": (6, size, size)})


@cache
def of_outboard(size: int) -> type[OfOutboard]:
    """The record of directions that are outboard, with `size` entries of `left`."""
    return type("OfOutboard", (OfOutboard,), {"shapes": (6, 6, size)})


@stage
def products_of_pair(k: OfInboard, j: OfOutboard) -> tuple[wo.Vector, wo.Vector]:
    """Entries kj, S_k · G_j by q and by v, and entries jk, left_j · right_k."""
    return [wo.dot(k.S, j.G_q), wo.dot(k.S, j.G_v)], [wo.dot(j.left, k.right_q), wo.dot(j.left, k.right_v)]


@stage
def products_within_joint(k: OfInboard, given: tuple[OfOutboard, wo.Vector]) -> tuple[wo.Vector, None]:
    """Entries kj where k and j are of one joint: S_k · G_j, by q also h_k · within_j."""
    j, within = given
    return [wo.dot(k.S, j.G_q) + wo.dot(k.S[:3], within), wo.dot(k.S, j.G_v)], None
