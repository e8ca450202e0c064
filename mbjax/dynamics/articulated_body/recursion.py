"""The articulated-body algorithm in kernels (Featherstone 2008, table 7.1): its loops; `step.py` has their steps.

    outward   velocities, and the forces that all bodies take at v̇ = 0 (`newton_euler/recursion.py`)   book: 1st loop
    inward    articulated inertias and forces, pivots U / D and 1 / D                                  book: 2nd loop
    outward   accelerations                                                                            book: 3rd loop

The outward pass is that of inverse dynamics at v̇ = 0. It carries the accelerations that velocities alone cause, so the
velocity-product term c_i of the book is inside the forces of bodies, p_i = I_i a_i + ..., and is added nowhere else.
`factor.py` computes the same factor of M from the kinematics records, where the recursion does not run as a kernel.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.execution.recursions import (
    array_of,
    in_one_kernel,
    rows_of,
    scan_inward,
    scan_outward,
    walk_plan,
    zeros_of,
)
from mbjax.kinematics import MobodInertia, PositionKinematics
from mbjax.spatial import component_algebra as ca
from mbjax.topology import TreeTopology, direction_parents

from ..newton_euler.step import MotionRows
from ..records.spatial_records import Force, Hinge, Motion
from .factor import inertia_blocks, spread_over_directions
from .step import (
    ArticulatedBody,
    ArticulatedInertia,
    Pivot,
    accelerate,
    articulate,
    pass_force_inward,
    plus_inertia,
    plus_rigid_mobod,
)


class Pivots(NamedTuple):
    """U / D and 1 / D of each direction, and its acceleration with everything inboard at rest."""

    factor: Pivot
    own: Float[Array, "nd ..."]


def calc_accelerations(
    topology: TreeTopology, motion: MotionRows, diagonal: Float[Array, " nd"], tau: Float[Array, " nd"]
) -> tuple[Float[Array, " nd"], Pivots]:
    """Solves (M + diag) v̇ + bias = tau; where locked, `diagonal` is infinite and v̇ zero. Also returns the pivots."""

    def step(outboard: Any, row: tuple) -> tuple[ArticulatedBody, tuple]:
        motion, diagonal, tau = row
        body = plus_rigid_mobod(outboard, motion.inertia, motion.force)
        handed_on, *pivots = articulate(body, motion.hinge, diagonal, tau)
        return handed_on, tuple(pivots)

    pivots = scan_bodies_inward(topology, step, (motion, numbers_in_rows(diagonal), numbers_in_rows(tau)))
    return calc_from_own(topology, motion.hinge, pivots), pivots


def numbers_in_rows(x: Float[Array, " nd"]) -> Array:
    """A number in each row."""
    return rows_of(1, x[:, None])


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

    def step(outboard: Any, row: tuple) -> tuple[ArticulatedBody, tuple]:
        hinge, mobod, diagonal, b = row
        handed_on, *pivots = articulate(plus_inertia(outboard, mobod), hinge, diagonal, b)
        return handed_on, tuple(pivots)

    hinges = rows_of(Hinge, hinge)
    rows = hinges, rows_of(ArticulatedInertia, inertia), numbers_in_rows(diagonal), numbers_in_rows(b)
    return calc_from_own(topology, hinges, scan_bodies_inward(topology, step, rows))


def scan_bodies_inward(topology: TreeTopology, step: Any, rows: tuple) -> Pivots:
    """Scans inward with articulated bodies, as one kernel."""
    plan = walk_plan(direction_parents(topology))

    def inward(rows: tuple) -> Pivots:
        worlds = np.broadcast_shapes(*(x.shape[2:] for x in jax.tree.leaves(rows)))
        zero = zeros_of(ArticulatedBody, worlds, jax.tree.leaves(rows)[0].dtype)
        return Pivots(*scan_inward(plan, step, rows, zero, staged=True)[0])

    return in_one_kernel(inward, rows)


def articulated_rows(
    topology: TreeTopology, position: PositionKinematics, inertia_W: MobodInertia
) -> tuple[Float[Array, "nd 9 ..."], Float[Array, "nd 21 ..."]]:
    """Hinge and inertia rows for `solve_with_inertias`, of the rigid mobods, from the kinematics records."""
    J, H, M = inertia_blocks(inertia_W, None)
    J, M = (jnp.stack([x[3 * i + j] for i, j in ca.SYMMETRIC_PAIRS]) for x in (J, M))
    all_of_them = list(range(topology.num_velocities))
    inertia, p = spread_over_directions(topology, all_of_them, [J, H, M], position.p_PM_W)
    hinge, inertia = ca.concatenate([position.H_W, p], 0), ca.concatenate(inertia, 0)
    return jnp.swapaxes(hinge, 0, 1), jnp.swapaxes(inertia, 0, 1)


def solve_with_pivots(
    topology: TreeTopology, hinge: Float[Array, "nd 9 ..."], factor: Float[Array, "nd 7 ..."], b: Float[Array, " nd"]
) -> Float[Array, " nd"]:
    """Solves (M + diag) x = b with a known factor; b must be zero where locked, and x is zero there."""
    plan, hinges, pivots = walk_plan(direction_parents(topology)), rows_of(Hinge, hinge), rows_of(Pivot, factor)
    worlds = np.broadcast_shapes(hinge.shape[2:], factor.shape[2:], b.shape[1:])

    def step(outboard: Any, row: tuple) -> tuple[Force, Array]:
        return pass_force_inward(outboard, *row)

    def inward(*rows: Any) -> Array:
        return scan_inward(plan, step, rows, zeros_of(Force, worlds, hinge.dtype), staged=True)[0]

    own = in_one_kernel(inward, hinges, pivots, numbers_in_rows(b))
    return calc_from_own(topology, hinges, Pivots(pivots, own))


def calc_from_own(topology: TreeTopology, hinges: Hinge, pivots: Pivots) -> Float[Array, " nd"]:
    """Outward pass: accelerations from what each would be with everything inboard at rest."""
    plan = walk_plan(direction_parents(topology))

    def step(inboard: Any, row: tuple) -> tuple[Motion, Array]:
        hinge, pivots = row
        return accelerate(inboard, hinge, *pivots)

    def outward(hinges: Hinge, pivots: Pivots) -> Array:
        worlds = np.broadcast_shapes(*(array_of(x).shape[2:] for x in (hinges, pivots.factor)), pivots.own.shape[1:])
        world = zeros_of(Motion, worlds, pivots.own.dtype)
        return scan_outward(plan, step, (hinges, pivots), world, staged=True)

    return in_one_kernel(outward, hinges, pivots)
