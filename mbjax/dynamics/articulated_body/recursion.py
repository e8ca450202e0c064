"""The articulated-body algorithm as a recursion, one direction of motion per step (Featherstone 2008, table 7.1).

    outward   velocities, and the forces that all bodies take at v̇ = 0 (`newton_euler/recursion.py`)   book: 1st loop
    inward    articulated inertias and forces, pivots U / D and 1 / D (`articulate_inward`)            book: 2nd loop
    outward   accelerations (`accelerate_outward`)                                                     book: 3rd loop

It departs from the book in four ways:
- The outward pass is that of inverse dynamics at v̇ = 0. It carries the accelerations that velocities alone cause, so
  the velocity-product term c_i of the book is inside the forces of bodies, p_i = I_i a_i + ..., and is added nowhere
  else. The accelerations of the last pass are therefore those that v̇ adds.
- A joint of several degrees of freedom takes several steps, one per direction, at the same point: D is a number, and no
  matrix is inverted.
- Spatial quantities are in the world frame at the body's own origin Mo, not in body coordinates.
- `diagonal` (reflected rotor inertia, and what an implicit step adds) is part of D; for a locked direction it is
  infinite, which makes 1 / D and U / D exactly zero.

`factor.py` computes the same factor of M from the kinematics records, where the recursion does not run as a kernel.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.execution.recursions import (
    Late,
    RowEntries,
    ScannedRow,
    computed_once,
    computed_where_kept,
    computed_where_read,
    in_one_kernel,
    read,
    scan_inward,
    scan_outward,
    walk_plan,
)
from mbjax.kinematics import MobodInertia, PositionKinematics
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import written_out as wo
from mbjax.topology import TreeTopology, direction_parents

from ..newton_euler.recursion import MotionRows
from .factor import inertia_blocks, spread_over_directions


class Pivots(NamedTuple):
    """U / D and 1 / D of each direction, and its acceleration with everything inboard at rest."""

    factor: Float[Array, "nd 7 ..."]
    own: Float[Array, "nd 1 ..."]


ArticulatedSums = tuple[wo.Vector, wo.Matrix, wo.Vector, wo.Vector, wo.Vector]  # J, H, M, t, f


def calc_accelerations(
    topology: TreeTopology, motion: MotionRows, diagonal: Float[Array, "nd 1 ..."], tau: Float[Array, "nd 1 ..."]
) -> tuple[Float[Array, " nd"], Pivots]:
    """Solves (M + diag) v̇ + bias = tau; where locked, `diagonal` is infinite and v̇ zero. Also returns the pivots."""
    plan = walk_plan(direction_parents(topology))

    def inward(*rows: Any) -> Pivots:
        worlds = jnp.broadcast_shapes(motion.force.shape[2:], diagonal.shape[2:], tau.shape[2:])
        zero = jnp.zeros((27, *worlds), motion.force.dtype)
        return scan_inward(plan, articulate_inward, rows, zero, staged=True)[0]

    pivots = in_one_kernel(inward, motion, diagonal, tau)
    return calc_from_own(topology, motion.hinge, pivots), pivots


def solve_with_inertias(
    topology: TreeTopology,
    hinge: Float[Array, "nd 9 ..."],
    inertia: Float[Array, "nd 21 ..."],
    diagonal: Float[Array, " nd"],
    b: Float[Array, " nd"],
) -> Float[Array, " nd"]:
    """Solves (M + diag) x = b for mobods with any inertias [J H; Hᵀ M] about Mo in W, not only rigid ones.

    A row of `inertia` holds J, H and M, J and M by their six entries; it is zero except at the last direction of a
    joint. Where `diagonal` is infinite b must be zero.
    """
    plan = walk_plan(direction_parents(topology))
    worlds = jnp.broadcast_shapes(*(x.shape[2:] for x in (hinge, inertia)), diagonal.shape[1:], b.shape[1:])

    def inward(*rows: Array) -> Pivots:
        return scan_inward(plan, articulate_inertias_inward, rows, jnp.zeros((27, *worlds), b.dtype), staged=True)[0]

    return calc_from_own(topology, hinge, in_one_kernel(inward, hinge, inertia, diagonal[:, None], b[:, None]))


def articulated_rows(
    topology: TreeTopology, position: PositionKinematics, inertia_W: MobodInertia
) -> tuple[Float[Array, "nd 9 ..."], Float[Array, "nd 21 ..."]]:
    """Hinge and inertia rows for `solve_with_inertias`, of the rigid mobods, from the kinematics records."""
    J, H, M = inertia_blocks(inertia_W, None)
    J, M = (jnp.stack([x[3 * i + j] for i, j in wo.SYMMETRIC_PAIRS]) for x in (J, M))
    all_of_them = list(range(topology.num_velocities))
    inertia, p = spread_over_directions(topology, all_of_them, [J, H, M], position.p_PM_W)
    hinge, inertia = ca.concatenate([position.H_W, p], 0), ca.concatenate(inertia, 0)
    return jnp.swapaxes(hinge, 0, 1), jnp.swapaxes(inertia, 0, 1)


def solve_with_pivots(
    topology: TreeTopology, hinge: Float[Array, "nd 9 ..."], factor: Float[Array, "nd 7 ..."], b: Float[Array, " nd"]
) -> Float[Array, " nd"]:
    """Solves (M + diag) x = b with a known factor; b must be zero where locked, and x is zero there."""
    plan = walk_plan(direction_parents(topology))
    worlds = jnp.broadcast_shapes(hinge.shape[2:], factor.shape[2:], b.shape[1:])

    def inward(hinge: Array, factor: Array, b: Array) -> Array:
        zero = jnp.zeros((6, *worlds), hinge.dtype)
        return scan_inward(plan, gather_forces, (hinge, factor, b), zero, staged=True)[0]

    own = in_one_kernel(inward, hinge, factor, b[:, None])
    return calc_from_own(topology, hinge, Pivots(factor, own))


def calc_from_own(topology: TreeTopology, hinge: Float[Array, "nd 9 ..."], pivots: Pivots) -> Float[Array, " nd"]:
    """Outward pass: accelerations from what each would be with everything inboard at rest."""
    plan = walk_plan(direction_parents(topology))

    def outward(hinge: Array, pivots: Pivots) -> Array:
        worlds = jnp.broadcast_shapes(hinge.shape[2:], pivots.factor.shape[2:], pivots.own.shape[2:])
        world = jnp.zeros((6, *worlds), hinge.dtype)
        return scan_outward(plan, accelerate_outward, (hinge, pivots), world, staged=True)

    return in_one_kernel(outward, hinge, pivots)


def articulate_inward(outboard: ScannedRow, row: tuple[MotionRows, Array, Array]) -> tuple[wo.Parts, Pivots]:
    """One step inward, from the articulated inertia [J H; Hᵀ M] and force F of everything outboard.

    U = [J H; Hᵀ M] h,  D = h · U + diag,  v̇ = (tau - h · F) / D  with everything inboard at rest. Inward goes the
    inertia less U Uᵀ / D, and the force F + U v̇, both shifted by p to the inboard point.
    """
    motion, diagonal, tau = row
    sums = computed_where_read(add_rigid_mobod, outboard, motion.inertia, motion.force)
    return give_way_inward(sums, motion.hinge, diagonal, tau)


def articulate_inertias_inward(outboard: ScannedRow, row: tuple[Array, Array, Array, Array]) -> tuple[wo.Parts, Pivots]:
    """`articulate_inward` where no force acts on mobods, and their inertias need not be rigid bodies'."""
    hinge, inertia, diagonal, b = row
    return give_way_inward(computed_where_read(add_inertia, outboard, inertia), hinge, diagonal, b)


def give_way_inward(
    sums: ArticulatedSums | Late, hinge: ScannedRow, diagonal: ScannedRow, tau: ScannedRow
) -> tuple[wo.Parts, Pivots]:
    """Inertia and force handed inward, and the pivot, from the sums J, H, M, t and f."""
    U_t, U_f = computed_once(times_direction, sums, hinge)
    one_over_D, left = computed_once(pivot, sums, U_t, U_f, hinge, diagonal, tau)
    divided = computed_where_read(divide, U_t, U_f, one_over_D, left)
    J, H, M, t, f = computed_once(give_way, sums, U_t, U_f, divided)
    H_P = computed_where_read(shift_coupling, H, M, hinge)
    J_P, t_P = computed_where_kept(shift_moments, J, H, H_P, t, f, hinge)
    by_t, by_f, vdot = read(divided)
    return wo.parts(J_P, read(H_P), M, t_P, f), Pivots(wo.parts(by_t, by_f, one_over_D), wo.parts(vdot))


def add_rigid_mobod(outboard: RowEntries, inertia: RowEntries, force: RowEntries) -> ArticulatedSums:
    """Adds the rigid mobod to the sums over what is outboard; its H is the skew matrix of c = m p_MoMcm."""
    (J, H, M, *F), (J_M, c, m) = wo.take_apart(outboard, 6, (3, 3), 6, 3, 3), wo.take_apart(inertia, 6, 3, 1)
    (x, y, z), ((xx, xy, xz), (yx, yy, yz), (zx, zy, zz)) = c, H
    H = [[xx, xy - z, xz + y], [yx + z, yy, yz - x], [zx - y, zy + x, zz]]
    t, f = (wo.add(a, b) for a, b in zip(F, wo.take_apart(force, 3, 3), strict=True))
    return wo.add(J, J_M), H, [x + m for x in M[:3]] + M[3:], t, f


def add_inertia(outboard: RowEntries, inertia: RowEntries) -> ArticulatedSums:
    """Adds the mobod's J, H and M to the sums over what is outboard."""
    (J, H, M, t, f), own = wo.take_apart(outboard, 6, (3, 3), 6, 3, 3), wo.take_apart(inertia, 6, (3, 3), 6)
    H = [wo.add(x, y) for x, y in zip(H, own[1], strict=True)]
    return wo.add(J, own[0]), H, wo.add(M, own[2]), t, f


def times_direction(sums: ArticulatedSums, hinge: RowEntries) -> tuple:
    """U = [J H; Hᵀ M] h, as torque and force."""
    (J, H, M, _, _), (w, v, _) = sums, wo.take_apart(hinge, 3, 3, 3)
    U_t = wo.add(wo.matvec(wo.symmetric(J), w), wo.matvec(H, v))
    return U_t, wo.add(wo.matvec(wo.transpose(H), w), wo.matvec(wo.symmetric(M), v))


def pivot(
    sums: ArticulatedSums, U_t: wo.Vector, U_f: wo.Vector, hinge: RowEntries, diagonal: Array, tau: Array
) -> tuple:
    """1 / D with D = h · U + diag, and tau - h · F."""
    (_, _, _, t, f), (w, v, _) = sums, wo.take_apart(hinge, 3, 3, 3)
    D = wo.dot(w, U_t) + wo.dot(v, U_f) + diagonal[0]
    return 1.0 / D, tau[0] - (wo.dot(w, t) + wo.dot(v, f))


def divide(U_t: wo.Vector, U_f: wo.Vector, one_over_D: Array, left: Array) -> tuple:
    """U / D and v̇ by products with 1 / D: eight divisions would take longer."""
    return [x * one_over_D for x in U_t], [x * one_over_D for x in U_f], left * one_over_D


def give_way(
    sums: ArticulatedSums, U_t: wo.Vector, U_f: wo.Vector, divided: tuple[wo.Vector, wo.Vector, Array]
) -> ArticulatedSums:
    """Inertia less U Uᵀ / D, and force F + U v̇, still at the direction's own point."""
    (J, H, M, t, f), (by_t, by_f, vdot) = sums, divided
    J, M = wo.subtract(J, wo.symmetric_outer(U_t, by_t)), wo.subtract(M, wo.symmetric_outer(U_f, by_f))
    H = [[x - a * b for x, b in zip(row, by_f, strict=True)] for row, a in zip(H, U_t, strict=True)]
    return J, H, M, wo.add(t, wo.scale(U_t, vdot)), wo.add(f, wo.scale(U_f, vdot))


def shift_coupling(H: wo.Matrix, M: wo.Vector, hinge: RowEntries) -> wo.Matrix:
    """Shifts H to the inboard point: H_P = H + [p]M."""
    return [wo.add(x, y) for x, y in zip(H, wo.cross_columns(list(hinge[6:]), wo.symmetric(M)), strict=True)]


def shift_moments(
    J: wo.Vector, H: wo.Matrix, H_P: wo.Matrix, t: wo.Vector, f: wo.Vector, hinge: Array
) -> tuple[wo.Vector, wo.Vector]:
    """Shifts J and t to the inboard point: J_P = J + [p]Hᵀ + H_P[p]ᵀ and t_P = t + p x f."""
    p = list(hinge[6:])
    return wo.add(J, shifted_moments(H, H_P, p)), wo.add(t, wo.cross(p, f))


def shifted_moments(H: wo.Matrix, H_P: wo.Matrix, p: wo.Vector) -> wo.Vector:
    """Change [p]Hᵀ + H_P[p]ᵀ of J under a shift by p, symmetric because H_P = H + [p]M."""
    left, right = [wo.cross(p, row) for row in H], [wo.cross(p, row) for row in H_P]  # columns, rows
    return [left[j][i] + right[i][j] for i, j in wo.SYMMETRIC_PAIRS]


def gather_forces(outboard: ScannedRow, row: tuple[Array, Array, Array]) -> tuple[Array, Array]:
    """One step inward: the direction's own (b - h · F) / D, with F the force of everything outboard."""
    left, own = computed_once(left_of_b, outboard, *row)
    return wo.parts(computed_once(hand_on_force, outboard, left, *row[:2])), wo.parts(own)


def left_of_b(outboard: RowEntries, hinge: RowEntries, factor: RowEntries, b: RowEntries) -> tuple:
    """b - h · F, and (b - h · F) / D."""
    left = b[0] - wo.dot(list(hinge[:6]), list(outboard))
    return left, left * factor[6]


def hand_on_force(outboard: RowEntries, left: Array, hinge: RowEntries, factor: RowEntries) -> wo.Vector:
    """Force F + (U / D) (b - h · F), shifted to the inboard point."""
    F = wo.add(list(outboard), wo.scale(list(factor[:6]), left))
    return [*wo.add(F[:3], wo.cross(list(hinge[6:]), F[3:])), *F[3:]]


def accelerate_outward(A: ScannedRow, row: tuple[Array, Pivots]) -> tuple[Array, Array]:
    """One step outward: v̇ = own - U / D · A, with A the acceleration of what is inboard, at this direction's point."""
    alpha, a = computed_once(move_to_point, A, row[0])
    vdot = computed_once(give_way_to, alpha, a, row[1])
    return wo.parts(computed_where_kept(accelerate, alpha, a, vdot, row[0])), vdot


def move_to_point(A: RowEntries, hinge: RowEntries) -> tuple:
    """Moves the inboard acceleration to the point at p: a + alpha x p."""
    (alpha, a), (_, _, p) = wo.take_apart(A, 3, 3), wo.take_apart(hinge, 3, 3, 3)
    return alpha, wo.add(a, wo.cross(alpha, p))


def give_way_to(alpha: wo.Vector, a: wo.Vector, pivots: Pivots) -> Array:
    """v̇ = own - U / D · A."""
    by_t, by_f, _ = wo.take_apart(pivots.factor, 3, 3, 1)
    return pivots.own[0] - (wo.dot(by_t, alpha) + wo.dot(by_f, a))


def accelerate(alpha: wo.Vector, a: wo.Vector, vdot: Array, hinge: RowEntries) -> wo.Vector:
    """A + h v̇: the acceleration outboard of the direction."""
    h, s, _ = wo.take_apart(hinge, 3, 3, 3)
    return [*wo.add(alpha, wo.scale(h, vdot)), *wo.add(a, wo.scale(s, vdot))]
