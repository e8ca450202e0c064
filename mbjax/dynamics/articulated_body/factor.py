"""Factor of M(q) + diag by articulated bodies, from the kinematics records: solves (M(q) + diag) x = b in O(n).

It runs the steps of `step.py` with whole arrays, where the recursion is not a kernel, and has two things that kernels
have not: mobods with inertias of any kind besides their own, and a floating base whose six velocities are solved for
together, D then being a matrix. Never differentiated: `forward_dynamics.py` has the rule. No joint may mimic another:
`mass_matrix_factor.py` treats those.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from mbjax.execution.arrays import sum_over_axis, take
from mbjax.execution.recursions import scan_inward, scan_outward, walk_plan
from mbjax.kinematics import MobodInertia, PositionKinematics
from mbjax.linear_algebra import SmallFactor, factor_small, solve_small_inward, solve_small_outward
from mbjax.spatial.component_algebra import (
    concatenate,
    matmul,
    skew,
    sum_products,
    transpose,
)
from mbjax.topology import TreeTopology, free_base, parents_beyond

from ..records.spatial_records import Force, Hinge, Motion
from .step import ArticulatedBody, ArticulatedInertia, Pivot, accelerate, articulate, pass_force_inward


class BaseFactor(NamedTuple):
    """Factor for the six velocities of a floating base, with everything outboard free to move."""

    h_W: Float[Array, "6 6 ..."]
    D: SmallFactor


class ArticulatedFactor(NamedTuple):
    """Factor of M(q) + diag, one row a velocity; those of a base that is solved for together are in `base`."""

    directions: Float[Array, "k 9 ..."]  # `Hinge`
    pivots: Float[Array, "k 7 ..."]  # `Pivot`
    base: BaseFactor | None


def factor_articulated_bodies(
    topology: TreeTopology,
    position: PositionKinematics,
    inertia_W: MobodInertia,
    diagonal: Float[Array, " nv"],
    locked: Bool[Array, " nv"],
    b: Float[Array, " nv"] | None,
    added: ArticulatedInertia | None = None,
    base_together: bool = False,
) -> tuple[ArticulatedFactor, Float[Array, " nv"] | None]:
    """Factors M + diag, and solves (M + diag) x = b in the same inward pass where b is given.

    Each velocity feels the articulated inertia of everything outboard. A locked one has infinite reflected inertia:
    1 / D and U / D are exactly zero, it gives way to nothing, and its b must be zero. The inertia `added` to those of
    the mobods, about their Mo in W, need not be that of a rigid body. With `base_together` the velocities of a floating
    base, if there is one, are solved for together: fewer turns of the loop, but more to compile.
    """
    diagonal = jnp.where(locked, jnp.inf, diagonal)
    position, inertia_W, diagonal, b, added = lax.stop_gradient((position, inertia_W, diagonal, b, added))
    base = free_base(topology) if base_together else []
    beyond, inertia = velocities_beyond(topology, base), inertia_blocks(inertia_W, added)
    of_each, p = spread_over_directions(topology, beyond, inertia, position.p_PM_W)
    *of_each, h, p = (jnp.swapaxes(x, 0, 1) for x in (*of_each, take(position.H_W, beyond, 1), p))
    numbers = [take(x, beyond, 0)[:, None] for x in ((diagonal,) if b is None else (diagonal, b))]
    xs = concatenate([*of_each, h, p, *numbers], 1)

    def step(outboard: Array, x: Array) -> tuple[Array, Array]:
        mobod, hinge, numbers = jnp.split(x, [27, 36])
        force, tau = (None, None) if b is None else (force_of(outboard[27:]), numbers[1])
        body = ArticulatedBody(inertia_of(outboard[:27] + mobod), force)
        handed_on, pivot, own = articulate(body, hinge_of(hinge), numbers[0], tau)
        numbers = [x[None] for x in (pivot.one_over_D, own) if x is not None]
        return row_of_body(handed_on), concatenate([*pivot.U_over_D, *numbers], 0)

    worlds, count = xs.shape[2:], 27 if b is None else 33
    plan, zero = walk_plan(parents_beyond(topology, base)), jnp.zeros((count, *worlds), xs.dtype)
    kept, at_base = scan_inward(plan, step, xs, zero, bool(worlds))
    factor = ArticulatedFactor(concatenate([h, p], 1), kept[:, :7], None)
    if base:
        mobod, h_W = topology.velocity_mobods[base[0]], take(position.H_W, base, 1)
        of_base = inertia_of(at_base[:27] + jnp.concatenate([x[:, mobod] for x in inertia]))
        body = ArticulatedBody(of_base, None if b is None else force_of(at_base[27:]))
        numbers = [take(x, base, 0) for x in (diagonal, jnp.zeros_like(diagonal) if b is None else b)]
        factor = factor._replace(base=factor_base(body, h_W, *numbers))
    return factor, None if b is None else accelerate_all_outward(topology, factor, kept)


def factor_base(
    body: ArticulatedBody,
    h_W: Float[Array, "6 6 ..."],
    diagonal: Float[Array, "6 ..."],
    b: Float[Array, "6 ..."],
) -> BaseFactor:
    """Factors D = hᵀ I_A h + diag of a base, for the right-hand side b - hᵀ F with F the force of what is outboard."""
    (J, H, M), (w, v) = body.inertia, jnp.split(h_W, 2)
    U = concatenate([matmul(J, w) + matmul(H, v), matmul(transpose(H), w) + matmul(M, v)], 0)
    D = sum_products(jnp.unstack(h_W[:, :, None]), jnp.unstack(U[:, None]))
    own = np.eye(6, dtype=bool).reshape(6, 6, *(1 for _ in diagonal.shape[1:]))
    b = b if body.force is None else b - along_base(h_W, body.force)
    return BaseFactor(h_W, factor_small(D + jnp.where(own, diagonal, 0.0), b))


def along_base(h_W: Float[Array, "6 6 ..."], force: Force) -> Float[Array, "6 ..."]:
    """Torques and forces hᵀ F along the velocities of a base."""
    return sum_products(jnp.unstack(h_W), [*jnp.unstack(force.t), *jnp.unstack(force.f)])


def solve_with_factor(topology: TreeTopology, factor: ArticulatedFactor, b: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """Solves (M + diag) x = b with the factor: forces inward, accelerations outward."""

    def step(outboard: Array, x: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        b, hinge, pivot = x
        handed_on, own = pass_force_inward(force_of(outboard), hinge_of(hinge), pivot_of(pivot), b)
        return concatenate(handed_on, 0), concatenate([pivot, own[None]], 0)

    directions, pivots, of_base = factor
    base = base_of(topology, factor)
    worlds = jnp.broadcast_shapes(directions.shape[2:], pivots.shape[2:], b.shape[1:])
    plan, nothing = walk_plan(parents_beyond(topology, base)), jnp.zeros((6, *worlds), directions.dtype)
    beyond = take(b, velocities_beyond(topology, base), 0)
    kept, force = scan_inward(plan, step, (beyond, directions, pivots), nothing, bool(worlds))
    if of_base is not None:
        rest = take(b, base, 0) - along_base(of_base.h_W, force_of(force))
        of_base = of_base._replace(D=solve_small_inward(of_base.D, rest))
    return accelerate_all_outward(topology, factor._replace(base=of_base), kept)


def accelerate_all_outward(
    topology: TreeTopology, factor: ArticulatedFactor, kept: Float[Array, "k 8 ..."]
) -> Float[Array, " nv"]:
    """Outward pass: accelerations from pivots, and from each velocity's own with everything inboard at rest."""

    def step(A: Array, x: tuple[Array, Array]) -> tuple[Array, Array]:
        motion, vdot = accelerate(Motion(*jnp.split(A, 2)), hinge_of(x[0]), pivot_of(x[1][:7]), x[1][7])
        return concatenate(motion, 0), vdot

    worlds = jnp.broadcast_shapes(factor.directions.shape[2:], kept.shape[2:])
    base = base_of(topology, factor)
    plan, nothing = walk_plan(parents_beyond(topology, base)), jnp.zeros((6, *worlds), kept.dtype)
    if factor.base is None:
        return scan_outward(plan, step, (factor.directions, kept), nothing, bool(worlds))
    of_base = solve_small_outward(factor.base.D)
    A_base = sum_over_axis(factor.base.h_W * of_base[None], 1)
    beyond = scan_outward(plan, step, (factor.directions, kept), nothing, bool(worlds), A_base)
    return jnp.concatenate([beyond[: base[0]], of_base, beyond[base[0] :]])


def inertia_of(x: Float[Array, "27 ..."]) -> ArticulatedInertia:
    """J, H and M, given row by row."""
    return ArticulatedInertia(*x.reshape(3, 3, 3, *x.shape[1:]))


def hinge_of(x: Float[Array, "9 ..."]) -> Hinge:
    """The hinge in a row of `ArticulatedFactor.directions`."""
    return Hinge(*jnp.split(x, 3))


def pivot_of(x: Float[Array, "7 ..."]) -> Pivot:
    """The pivot in a row of `ArticulatedFactor.pivots`."""
    t, f, one_over_D = jnp.split(x, [3, 6])
    return Pivot(Force(t, f), one_over_D[0])


def force_of(x: Float[Array, "6 ..."]) -> Force:
    """Torque and force, one after the other."""
    return Force(*jnp.split(x, 2))


def row_of_body(body: ArticulatedBody) -> Float[Array, "k ..."]:
    """J, H and M row by row, and the force if there is one."""
    matrices = (x.reshape(9, *x.shape[2:]) for x in body.inertia)
    return concatenate([*matrices, *(body.force or ())], 0)


def base_of(topology: TreeTopology, factor: ArticulatedFactor) -> Sequence[int]:
    """Velocities of the base that the factor solves for together; none if it has no base."""
    return () if factor.base is None else free_base(topology)


def velocities_beyond(topology: TreeTopology, base: Sequence[int]) -> list[int]:
    """Velocities that are not in the base."""
    return [j for j in range(topology.num_velocities) if j not in base]


def inertia_blocks(inertia_W: MobodInertia, added: ArticulatedInertia | None) -> list[Float[Array, "9 nm ..."]]:
    """J, H and M of each mobod, plus what is `added`, each matrix row by row."""
    identity = jnp.eye(3, dtype=inertia_W.mass.dtype).reshape(3, 3, *(1 for _ in inertia_W.mass.shape))
    parts = [inertia_W.rotational, skew(inertia_W.moment), inertia_W.mass * identity]
    if added is not None:
        parts = [a + b for a, b in zip(parts, added, strict=True)]
    return [x.reshape(9, *x.shape[2:]) for x in parts]


def spread_over_directions(
    topology: TreeTopology,
    velocities: list[int],
    inertia: list[Float[Array, "9 nm ..."]],
    p_PM_W: Float[Array, "3 nm ..."],
) -> tuple[list[Float[Array, "9 k ..."]], Float[Array, "3 k ..."]]:
    """Mobod inertia at each joint's last velocity, and offset from the parent at its first; zero at the others."""
    owner = topology.velocity_mobods[velocities]
    starts, counts = np.array(topology.mobod_v_starts)[owner], np.array(topology.mobod_num_velocities)[owner]
    index = np.array(velocities, int)

    def of_velocities(x: Array, chosen: np.ndarray) -> Array:
        x = take(x, owner, 1)
        return x if np.all(chosen) else jnp.where(chosen.reshape(-1, *(1,) * (x.ndim - 2)), x, 0.0)

    return [of_velocities(x, index == starts + counts - 1) for x in inertia], of_velocities(p_PM_W, index == starts)
