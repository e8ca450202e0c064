"""Motion and impacts under contacts with their derivatives in closed form, all columns from one factor.

With x = vdot, ID the inverse dynamics less the contact forces held fixed in the world, and c the rows' second rates,

    M dx - Gᵀ dλ = dtau - dID,     G dx = -dc              (Carpentier, Budhiraja and Mansard 2021)

An impact has x = v⁺ - v⁻, ID at rest, and c = G v⁺. A row is the velocity of a point P along a normal n fixed in the
world. A change of the position by S_j moves P of every mobod outboard; with B and E of `calc_motion_derivatives`, and
X(P) the velocity at P of a motion X about T,

    dv_P / dq_j = s_j x v_P + B_j(P)                       dv_P / dv_j = S_j(P)
    da_P / dq_j = s_j x a_P + 2 b_j x v_P + E_j(P)         da_P / dv_j = 2 s_j x v_P + (B_j + dS_j/dt)(P)

where s_j and b_j are the rotations of S_j and B_j.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from mbjax.dynamics import (
    FixedWrenches,
    FreeMotion,
    MotionDerivatives,
    calc_driven_columns,
    calc_free_motion,
    calc_motion_derivatives,
    calc_turning_of_wrenches,
    matrix_rows,
    rows_as_matrix,
)
from mbjax.execution.arrays import dot_with_mask, take
from mbjax.kinematics import PositionKinematics, VelocityKinematics, calc_velocity_kinematics
from mbjax.linear_algebra import (
    chain,
    factor_semidefinite,
    inverse_of_branches,
    matrix_vector,
    products_of_columns,
    sum_of_outer,
    transposed_matrix_vector,
)
from mbjax.model import ContactConstraint, MultibodyModel, locked_velocities, zero_where_locked
from mbjax.spatial import component_algebra as ca
from mbjax.topology import TreeTopology, sum_directions

from .bound_constraint_set import BoundConstraintSet
from .constrained_dynamics import ConstrainedDynamicsResult
from .constraint_kinematics import per_row
from .pair_rows import PairRows, calc_pair_jacobian, calc_pair_rows, only_where


class ContactDerivatives(eqx.Module):
    """A result x, λ and its derivatives, rows of x first, by the tangent of q, by v, and by tau (impacts have none)."""

    result: ConstrainedDynamicsResult
    x_q: Float[Array, "nv nv"]
    x_v: Float[Array, "nv nv"]
    x_tau: Float[Array, "nv nv"] | None
    force_q: Float[Array, "nc nv"]
    force_v: Float[Array, "nc nv"]
    force_tau: Float[Array, "nc nv"] | None


def are_contacts(cset: BoundConstraintSet) -> bool:
    """Whether the set has contacts and nothing else: the closed forms are theirs."""
    return cset.num_rows > 0 and all(type(c) is ContactConstraint for c in cset.constraints)


def calc_contact_motion_derivatives(
    model: MultibodyModel,
    cset: BoundConstraintSet,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
) -> ContactDerivatives:
    """Accelerations and contact forces under tau and the model's force elements, with all derivatives."""
    v, locked = zero_where_locked(model, v), locked_velocities(model)
    free = calc_free_motion(model, q, v, tau, None, True)
    rows = calc_contact_constraint_rows(model, cset, free.position, free.velocity, v)
    response = calc_response(free.inverse, rows)
    assert rows.of_pairs.rate is not None
    assert rows.of_pairs.bias is not None
    rhs = -rows.of_pairs.bias - rows.double_gain * rows.of_pairs.rate
    multipliers = matrix_vector(response.S_inverse, rhs - matrix_vector(rows.G, free.vdot))
    vdot = free.vdot + transposed_matrix_vector(response.X_T, multipliers)

    points = calc_points(free.position, rows.of_pairs)
    columns, motion = calc_driven_columns(model, free, vdot, calc_wrenches(model.topology, points, multipliers))
    of_rows = calc_row_slopes(model.topology, free, motion, points, rows.double_gain)
    of_q, of_v = (response.solve(-a, -c) for a, c in zip(columns, of_rows, strict=True))
    x_v, force_v = (jnp.where(locked[None], 0.0, x) for x in of_v)
    x_tau, force_tau = response.solve(None, None)
    result = result_of(rows, response, rhs, vdot, multipliers)
    return ContactDerivatives(result, of_q[0], x_v, x_tau, of_q[1], force_v, force_tau)


def calc_contact_impulse_derivatives(
    model: MultibodyModel, cset: BoundConstraintSet, q: Float[Array, " nq"], v_minus: Float[Array, " nv"]
) -> ContactDerivatives:
    """Change of velocity x and impulses of an impact that gives rows the rates `v_plus`, with all derivatives."""
    topology, locked = model.topology, locked_velocities(model)
    v_minus, rest = zero_where_locked(model, v_minus), jnp.zeros_like(v_minus)
    free = calc_free_motion(model, q, rest, rest, None, False)
    rows = calc_contact_constraint_rows(model, cset, free.position, None, None)
    response = calc_response(free.inverse, rows)
    v_plus = per_row(model, cset.constraints, [c.v_plus for c in cset.constraints])
    rhs = v_plus - matrix_vector(rows.G, v_minus)
    multipliers = matrix_vector(response.S_inverse, rhs)
    x = transposed_matrix_vector(response.X_T, multipliers)

    points, v = calc_points(free.position, rows.of_pairs), v_minus + x
    columns, _ = calc_driven_columns(model, free, x, calc_wrenches(topology, points, multipliers))
    velocity = calc_velocity_kinematics(model, free.position, q, v)
    B = calc_motion_derivatives(model, free.position, velocity, q, v, rest).B
    of_rows = calc_velocity_slopes(topology, free.position, velocity, B, points)
    x_q, force_q = response.solve(-columns.dq, -of_rows)
    force_v = jnp.where(locked[None], 0.0, -products_of_columns(response.S_inverse, rows.G))
    x_v = products_of_columns(response.X_T, force_v)
    return ContactDerivatives(result_of(rows, response, rhs, x, multipliers), x_q, x_v, None, force_q, force_v, None)


class ContactConstraintRows(NamedTuple):
    """Rows of contacts; those that are not active, and locked columns of G, are zero."""

    of_pairs: PairRows
    G: Float[Array, "nc nv"]
    active: Bool[Array, " nc"]
    double_gain: Float[Array, " nc"]  # 2 / T of the stabilization


def calc_contact_constraint_rows(
    model: MultibodyModel,
    cset: BoundConstraintSet,
    position: PositionKinematics,
    velocity: VelocityKinematics | None,
    v: Float[Array, " nv"] | None,
) -> ContactConstraintRows:
    """Rows of the set, in its order."""
    rows = calc_pair_rows(model, cset.constraints, position, velocity, v)
    active, time = (
        per_row(model, cset.constraints, [getattr(c, x) for c in cset.constraints])
        for x in ("active", "stabilization_time")
    )
    is_active, free = active > 0.5, ~locked_velocities(model)
    G = jnp.where(is_active[:, None] & free[None], calc_pair_jacobian(model, position, rows), 0.0)
    return ContactConstraintRows(rows, G, is_active, 2.0 / time)


class Response(NamedTuple):
    """The inverse of the system, by blocks: S = G M⁻¹ Gᵀ over the rows that are kept, X = M⁻¹ Gᵀ and K = S⁻¹ Xᵀ."""

    inverse: Float[Array, "nv nv"]
    X_T: Float[Array, "nc nv"]
    S_inverse: Float[Array, "nc nc"]
    K: Float[Array, "nc nv"]
    kept: Bool[Array, " nc"]

    def solve(
        self, of_v: Float[Array, "nv n"] | None, of_c: Float[Array, "nc n"] | None
    ) -> tuple[Float[Array, "nv n"], Float[Array, "nc n"]]:
        """Columns of x and λ with M x - Gᵀ λ = of_v and G x = of_c; without columns, those of unit forces."""
        if of_v is None or of_c is None:
            return self.inverse - products_of_columns(self.X_T, self.K), -self.K
        multipliers = products_of_columns(self.S_inverse, of_c) - products_of_columns(ca.transpose(self.K), of_v)
        free = products_of_columns(self.inverse, of_v)
        return free + products_of_columns(self.X_T, multipliers), multipliers


def calc_response(inverse: Float[Array, "nv nv"], rows: ContactConstraintRows) -> Response:
    """Inverts the system. A row that later ones imply is left out."""
    X_T = products_of_columns(ca.transpose(rows.G), inverse)
    S = products_of_columns(ca.transpose(rows.G), ca.transpose(X_T))
    kept = factor_semidefinite(*lax.stop_gradient((S, rows.G))).kept & rows.active
    pairs, size = kept[:, None] & kept[None], S.shape[0]
    one = jnp.eye(size, dtype=S.dtype).reshape(size, size, *(1 for _ in S.shape[2:]))
    S_inverse = jnp.where(pairs, inverse_of_branches(chain(size), jnp.where(pairs, S, one)), 0.0)
    return Response(inverse, X_T, S_inverse, products_of_columns(S_inverse, X_T), kept)


def result_of(
    rows: ContactConstraintRows,
    response: Response,
    rhs: Float[Array, " nc"],
    x: Float[Array, " nv"],
    multipliers: Array,
) -> ConstrainedDynamicsResult:
    """The result with the number of redundant rows and the largest error of any row."""
    error = jnp.where(rows.active, rhs - matrix_vector(rows.G, x), 0.0)
    redundant = jnp.sum(rows.active & ~response.kept, axis=0).astype(x.dtype)
    residual = jnp.max(jnp.abs(error), axis=0, initial=0.0)
    redundant, residual = lax.stop_gradient((jnp.broadcast_to(redundant, x.shape[1:]), residual))
    return ConstrainedDynamicsResult(x, multipliers, redundant, residual)


class Points(NamedTuple):
    """The point P of each row: its mobod, its position from T, the normal, and the normal as a force about T."""

    mobods: np.ndarray
    p_TP: Float[Array, "3 nc"]
    n: Float[Array, "3 nc"]
    F_T: Float[Array, "6 nc"]


def calc_points(position: PositionKinematics, rows: PairRows) -> Points:
    """Points of all rows, in W."""
    mobods = np.array(rows.pose.mobods_B)[list(rows.pairs)]
    p, n = take(position.p_TM_W, mobods, 1) + take(rows.pose.p_MbSo_W, rows.pairs, 1), rows.force_W
    n = jnp.broadcast_to(n, p.shape)
    return Points(mobods, p, n, ca.concatenate([ca.cross(p, n), n], 0))


def calc_wrenches(topology: TreeTopology, points: Points, multipliers: Float[Array, " nc"]) -> FixedWrenches:
    """Contact forces on mobods, as wrenches that stay fixed in the world while their points move."""
    f = ca.scale(points.n, multipliers)
    Z = calc_turning_of_wrenches(points.p_TP, ca.concatenate([jnp.zeros_like(f), f], 0))
    on_mobods = points.mobods[:, None] == np.arange(topology.num_mobods)
    each = ca.concatenate([ca.scale(points.F_T, multipliers), matrix_rows(Z)], 0)
    F_T, Z = jnp.split(dot_with_mask(each, on_mobods, 1), [6])
    return FixedWrenches(F_T, rows_as_matrix(Z))


def calc_row_slopes(
    topology: TreeTopology,
    free: FreeMotion,
    motion: MotionDerivatives,
    points: Points,
    double_gain: Float[Array, " nc"],
) -> tuple[Float[Array, "nc nv"], Float[Array, "nc nv"]]:
    """Derivatives of n · (a_P + 2/T v_P) by q and v."""
    S, Sdot, V = free.position.S_T, free.velocity.Sdot_T, take(free.velocity.V_WM_T, points.mobods, 1)
    A, p, n = take(motion.A_WM_T, points.mobods, 1), points.p_TP, points.n
    v_P = V[3:] + ca.cross(V[:3], p)
    a_P = A[3:] + ca.cross(A[:3], p) + ca.cross(V[:3], v_P)
    carried, stabilized = 2.0 * ca.cross(v_P, n), ca.scale(points.F_T, double_gain)
    of_rate = ca.concatenate([stabilized[:3] + carried, stabilized[3:]], 0)
    turned = ca.cross(a_P + ca.scale(v_P, double_gain), n)
    left = ca.concatenate([points.F_T, of_rate], 0)
    by_q = ca.concatenate([left, turned], 0), ca.concatenate([motion.E, motion.B, S[:3]], 0)
    by_v = left, ca.concatenate([motion.B + Sdot, S], 0)
    return along_paths(topology, points, *by_q), along_paths(topology, points, *by_v)


def calc_velocity_slopes(
    topology: TreeTopology,
    position: PositionKinematics,
    velocity: VelocityKinematics,
    B: Float[Array, "6 nd"],
    points: Points,
) -> Float[Array, "nc nv"]:
    """Derivatives of n · v_P by q."""
    V = take(velocity.V_WM_T, points.mobods, 1)
    v_P = V[3:] + ca.cross(V[:3], points.p_TP)
    left = ca.concatenate([points.F_T, ca.cross(v_P, points.n)], 0)
    return along_paths(topology, points, left, ca.concatenate([B, position.S_T[:3]], 0))


def along_paths(
    topology: TreeTopology, points: Points, left: Float[Array, "k nc"], right: Float[Array, "k nd"]
) -> Float[Array, "nc nv"]:
    """Products of rows with the directions that move their points, summed per velocity."""
    moves = topology.moves[:, points.mobods].T
    return sum_directions(topology, only_where(moves, sum_of_outer(left, right)), 1)
