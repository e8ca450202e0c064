"""Articulated-body factorisation: solves (M(q) + diag) x = b in O(n) without forming M.

One rolled loop body serves every joint: the velocities of a joint follow one another at the same point, each
a column of one degree of freedom (Featherstone 2008, ch. 7). The inward pass keeps, per velocity,
`U / D` and `1 / D`, with U = I_A h and D = h · U + diag: a factor of M. Never differentiated, see
`forward_dynamics`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from mbjax.kinematics import MobodInertia, PositionKinematics
from mbjax.spatial.component_algebra import SYMMETRIC_INDEX, SYMMETRIC_PAIRS, dot, sum_products
from mbjax.topology import TreeTopology, scan_inward, scan_outward, take, velocity_chain

# An articulated inertia [J H; Hᵀ M] about a point: 6 numbers of J, 9 of H by rows, 6 of M.
J, H, M = slice(0, 6), slice(6, 15), slice(15, 21)
NUM_COMPONENTS = 21


class ArticulatedFactor(NamedTuple):
    """Factor of M(q) + diag; velocities on the last axis."""

    h_W: Float[Array, "6 nv"]
    p_W: Float[Array, "3 nv"]  # from the inboard velocity's point
    U_over_D: Float[Array, "6 nv"]
    one_over_D: Float[Array, " nv"]


def calc_articulated_factor(
    topology: TreeTopology,
    position: PositionKinematics,
    inertia_W: MobodInertia,
    diagonal: Float[Array, " nv"],
    locked: Bool[Array, " nv"],
) -> ArticulatedFactor:
    """Inward pass: the inertia each velocity feels, with everything outboard free to move.

    A locked velocity has infinite reflected inertia: 1 / D and U / D are exactly zero, it gives way to nothing.
    """
    diagonal = jnp.where(locked, jnp.inf, diagonal)
    position, inertia_W, diagonal = lax.stop_gradient((position, inertia_W, diagonal))
    inertia, p = spread_over_velocities(topology, position, inertia_W)
    h = position.H_W

    def step(outboard: Array, x: tuple[Array, Array, Array, Array]) -> tuple[Array, tuple[Array, Array]]:
        inertia_i, h_i, p_i, diagonal_i = x
        h = jnp.unstack(h_i)
        I_A = list(jnp.unstack(outboard + inertia_i))
        U = multiply(I_A, h)
        one_over_D = 1.0 / (sum_products(h, U) + diagonal_i)
        U_over_D = [u * one_over_D for u in U]
        handed_on = shift(subtract_outer(I_A, U, U_over_D), jnp.unstack(p_i))
        return jnp.stack(handed_on), (jnp.stack(U_over_D), one_over_D)

    xs = (inertia.T, h.T, p.T, diagonal)
    U_over_D, one_over_D = scan_inward(topology, step, xs, NUM_COMPONENTS, h.dtype)
    return ArticulatedFactor(h, p, U_over_D.T, one_over_D)


def solve_with_factor(topology: TreeTopology, factor: ArticulatedFactor, b: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """x with (M + diag) x = b: forces inward, accelerations outward."""

    def inward(outboard: Array, x: tuple[Array, Array, Array, Array]) -> tuple[Array, Array]:
        b_i, h_i, p_i, U_over_D = x
        u = b_i - dot(h_i, outboard)
        total = jnp.unstack(outboard + U_over_D * u)
        moment = cross(jnp.unstack(p_i), total[3:])
        return jnp.stack([total[k] + moment[k] for k in range(3)] + list(total[3:])), u

    def outward(A_parent: Array, x: tuple[Array, Array, Array, Array, Array]) -> tuple[Array, Array]:
        u, h_i, p_i, U_over_D, one_over_D = x
        A = jnp.unstack(A_parent)
        lever = cross(A[:3], jnp.unstack(p_i))
        A_shifted = jnp.stack(list(A[:3]) + [A[3 + k] + lever[k] for k in range(3)])
        x_i = u * one_over_D - dot(U_over_D, A_shifted)
        return A_shifted + h_i * x_i, x_i

    h, p, U_over_D, one_over_D = factor.h_W.T, factor.p_W.T, factor.U_over_D.T, factor.one_over_D
    u = scan_inward(topology, inward, (b, h, p, U_over_D), 6, h.dtype)
    return scan_outward(topology, outward, (u, h, p, U_over_D, one_over_D), 6, h.dtype)


def spread_over_velocities(
    topology: TreeTopology, position: PositionKinematics, inertia_W: MobodInertia
) -> tuple[Float[Array, "21 nv"], Float[Array, "3 nv"]]:
    """Per velocity: the inertia of the mobod it carries (the last of its joint), and the step from inboard."""
    owner = topology.velocity_mobods
    _, is_last = velocity_chain(topology)
    is_first = np.array([j == topology.mobod_v_starts[mobod] for j, mobod in enumerate(owner)], dtype=bool)
    (x, y, z), m = inertia_W.moment, inertia_W.mass
    zero = jnp.zeros_like(m)
    inertia = jnp.concatenate(
        [inertia_W.rotational, jnp.stack([zero, -z, y, z, zero, -x, -y, x, zero, m, m, m, zero, zero, zero])]
    )
    inertia, p = take(inertia, owner), take(position.p_PM_W, owner)
    if not np.all(is_last):
        inertia, p = jnp.where(is_last, inertia, 0.0), jnp.where(is_first, p, 0.0)
    return inertia, p


# The algebra of one loop body, on lists of scalars: under vmap each scalar is a vector over the batch.


def cross(a: Sequence, b: Sequence) -> list:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def symmetric_rows(S: list) -> list[list]:
    return [[S[k] for k in row] for row in SYMMETRIC_INDEX]


def rows(A: list) -> list[list]:
    return [A[0:3], A[3:6], A[6:9]]


def columns(A: list) -> list[list]:
    return [A[0::3], A[1::3], A[2::3]]


def multiply(I_A: list, h: Sequence) -> list:
    """I_A h: [J a + H b, Hᵀ a + M b]."""
    a, b = h[:3], h[3:]
    J_rows, H_rows, H_columns, M_rows = (
        symmetric_rows(I_A[J]),
        rows(I_A[H]),
        columns(I_A[H]),
        symmetric_rows(I_A[M]),
    )
    moment = [sum_products(J_rows[i], a) + sum_products(H_rows[i], b) for i in range(3)]
    force = [sum_products(H_columns[i], a) + sum_products(M_rows[i], b) for i in range(3)]
    return moment + force


def subtract_outer(I_A: list, U: list, U_over_D: list) -> list:
    """I_A - U Uᵀ / D: the inertia left when this velocity gives way."""
    J_new = [I_A[J][k] - U[i] * U_over_D[j] for k, (i, j) in enumerate(SYMMETRIC_PAIRS)]
    H_new = [I_A[H][3 * i + j] - U[i] * U_over_D[3 + j] for i in range(3) for j in range(3)]
    M_new = [I_A[M][k] - U[3 + i] * U_over_D[3 + j] for k, (i, j) in enumerate(SYMMETRIC_PAIRS)]
    return J_new + H_new + M_new


def shift(I_A: list, p: Sequence) -> list:
    """The inertia about a point P from the one about Q, with p = p_PQ: H' = H + [p]M, J' = J + [p]Hᵀ + H'[p]ᵀ."""
    H_rows = rows(I_A[H])
    p_cross_M = [cross(p, row) for row in symmetric_rows(I_A[M])]  # columns of [p]M
    H_shifted = [[H_rows[i][j] + p_cross_M[j][i] for j in range(3)] for i in range(3)]
    p_cross_H = [cross(p, row) for row in H_rows]  # columns of [p]Hᵀ
    p_cross_H_shifted = [cross(p, row) for row in H_shifted]  # rows of H'[p]ᵀ
    J_shifted = [I_A[J][k] + p_cross_H[j][i] + p_cross_H_shifted[i][j] for k, (i, j) in enumerate(SYMMETRIC_PAIRS)]
    return J_shifted + H_shifted[0] + H_shifted[1] + H_shifted[2] + list(I_A[M])
