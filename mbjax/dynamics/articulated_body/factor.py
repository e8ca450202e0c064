"""Articulated-body factorisation: solves (M(q) + diag) x = b in O(n) without forming M.

It follows Featherstone 2008, ch. 7. One rolled loop body serves every joint: the velocities of a joint follow one
another at the same point, each a column of one degree of freedom. The inward pass keeps, per velocity, `U / D` and
`1 / D`, with U = I_A h and D = h · U + diag: a factor of M. The six velocities of a floating base may be solved for
together, D then being a matrix. Never differentiated: `forward_dynamics.py` has the rule. No joint may mimic another:
`mass_matrix_factor.py` treats those.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from mbjax.execution import sum_over_axis, take
from mbjax.execution.recursions import scan_inward, scan_outward, walk_plan
from mbjax.kinematics import MobodInertia, PositionKinematics
from mbjax.linear_algebra import SmallFactor, factor_small, solve_small_inward, solve_small_outward
from mbjax.spatial.component_algebra import (
    concatenate,
    cross,
    dot,
    matmul,
    matvec,
    skew,
    sum_products,
    transpose,
    transposed_matvec,
)
from mbjax.topology import TreeTopology, free_base, parents_beyond


class ArticulatedInertia(NamedTuple):
    """Articulated inertia [J H; Hᵀ M] about a point: maps angular and linear acceleration to torque and force."""

    J: Float[Array, "3 3 ..."]
    H: Float[Array, "3 3 ..."]
    M: Float[Array, "3 3 ..."]


class BaseFactor(NamedTuple):
    """Factor for the six velocities of a floating base, with everything outboard free to move."""

    h_W: Float[Array, "6 6 ..."]
    D: SmallFactor


class ArticulatedFactor(NamedTuple):
    """Factor of M(q) + diag, one row a velocity; those of a base that is solved for together are in `base`."""

    directions: Float[Array, "k 9 ..."]  # h_W, and p_W from the inboard velocity's point
    pivots: Float[Array, "k 7 ..."]  # U / D and 1 / D
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

    def step(outboard: tuple[ArticulatedInertia, Array | None], x: Array) -> tuple[tuple, Array]:
        own, h, p, numbers = jnp.split(x, [27, 33, 36])
        J, H, M = add_mobod_inertia(outboard[0], jnp.split(own, 3))
        w, v = jnp.split(h, 2)
        U_t, U_f = matvec(J, w) + matvec(H, v), transposed_matvec(H, w) + matvec(M, v)
        D = dot(w, U_t) + dot(v, U_f) + numbers[0]
        one_over_D = 1.0 / D
        t, f, U_J, U_M = U_t * one_over_D, U_f * one_over_D, U_t[:, None], U_f[:, None]
        handed_on = shift_inertia(ArticulatedInertia(J - U_J * t, H - U_J * f, M - U_M * f), p)
        pivot, z = [t, f, one_over_D[None]], outboard[1]
        if z is None:
            return (handed_on, None), jnp.concatenate(pivot)
        vdot = (numbers[1] - dot(h, z)) / D
        z_t, z_f = z[:3] + U_t * vdot, z[3:] + U_f * vdot
        return (handed_on, shift_force(z_t, z_f, p)), jnp.concatenate([*pivot, vdot[None]])

    worlds = xs.shape[2:]
    nothing, no_force = jnp.zeros((3, 3, *worlds), xs.dtype), jnp.zeros((6, *worlds), xs.dtype)
    zero = ArticulatedInertia(nothing, nothing, nothing), None if b is None else no_force
    plan = walk_plan(parents_beyond(topology, base))
    kept, (inertia_at_base, z) = scan_inward(plan, step, xs, zero, bool(worlds))
    factor = ArticulatedFactor(concatenate([h, p], 1), kept[:, :7], None)
    if base:
        mobod, h_W = topology.velocity_mobods[base[0]], take(position.H_W, base, 1)
        inertia_at_base = add_mobod_inertia(inertia_at_base, [x[:, mobod] for x in inertia])
        numbers = [take(x, base, 0) for x in (diagonal, jnp.zeros_like(diagonal) if b is None else b)]
        factor = factor._replace(base=factor_base(inertia_at_base, z, h_W, *numbers))
    return factor, None if b is None else accelerate_all_outward(topology, factor, kept)


def factor_base(
    inertia: ArticulatedInertia,
    z: Float[Array, "6 ..."] | None,
    h_W: Float[Array, "6 6 ..."],
    diagonal: Float[Array, "6 ..."],
    b: Float[Array, "6 ..."],
) -> BaseFactor:
    """Factors D = hᵀ I_A h + diag of a base, for the right-hand side b - hᵀ z with z the force of what is outboard."""
    (J, H, M), (w, v) = inertia, jnp.split(h_W, 2)
    U = concatenate([matmul(J, w) + matmul(H, v), matmul(transpose(H), w) + matmul(M, v)], 0)
    D = sum_products(jnp.unstack(h_W[:, :, None]), jnp.unstack(U[:, None]))
    own = np.eye(6, dtype=bool).reshape(6, 6, *(1 for _ in diagonal.shape[1:]))
    b = b if z is None else b - sum_products(jnp.unstack(h_W), jnp.unstack(z))
    return BaseFactor(h_W, factor_small(D + jnp.where(own, diagonal, 0.0), b))


def shift_inertia(I_Q: ArticulatedInertia, p_PQ: Float[Array, "3 ..."]) -> ArticulatedInertia:
    """Shifts an articulated inertia from Q to P: H' = H + [p]M, J' = J + [p]Hᵀ + H'[p]ᵀ."""
    J, H, M = I_Q
    p = p_PQ[:, None]
    H_P = H + cross(p, M)
    return ArticulatedInertia(J + cross(p, transpose(H)) + transpose(cross(p, transpose(H_P))), H_P, M)


def shift_force(t: Float[Array, "3 ..."], f: Float[Array, "3 ..."], p_PQ: Float[Array, "3 ..."]) -> Array:
    """Shifts a spatial force from Q to P: t' = t + p x f."""
    return jnp.concatenate([t + cross(p_PQ, f), f])


def solve_with_factor(topology: TreeTopology, factor: ArticulatedFactor, b: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """Solves (M + diag) x = b with the factor: forces inward, accelerations outward."""

    def step(outboard: Array, x: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        b, (h, p), (U_over_D, one_over_D) = x[0], jnp.split(x[1], [6]), jnp.split(x[2], [6])
        u = b - dot(h, outboard)
        t, f = jnp.split(outboard + U_over_D * u, 2)
        return shift_force(t, f, p), concatenate([x[2], one_over_D * u], 0)

    directions, pivots, of_base = factor
    base = base_of(topology, factor)
    worlds = jnp.broadcast_shapes(directions.shape[2:], pivots.shape[2:], b.shape[1:])
    plan, nothing = walk_plan(parents_beyond(topology, base)), jnp.zeros((6, *worlds), directions.dtype)
    beyond = take(b, velocities_beyond(topology, base), 0)
    kept, z = scan_inward(plan, step, (beyond, directions, pivots), nothing, bool(worlds))
    if of_base is not None:
        rest = take(b, base, 0) - sum_products(jnp.unstack(of_base.h_W), jnp.unstack(z))
        of_base = of_base._replace(D=solve_small_inward(of_base.D, rest))
    return accelerate_all_outward(topology, factor._replace(base=of_base), kept)


def accelerate_all_outward(
    topology: TreeTopology, factor: ArticulatedFactor, kept: Float[Array, "k 8 ..."]
) -> Float[Array, " nv"]:
    """Outward pass: accelerations from pivots, and from each velocity's own with everything inboard at rest."""

    def step(A_parent: Array, x: tuple[Array, Array]) -> tuple[Array, Array]:
        (h, p), (U_over_D, own) = jnp.split(x[0], [6]), (x[1][:6], x[1][7])
        alpha, a = jnp.split(A_parent, 2)
        A = jnp.concatenate([alpha, a + cross(alpha, p)])
        vdot = own - dot(U_over_D, A)
        return A + h * vdot, vdot

    worlds = jnp.broadcast_shapes(factor.directions.shape[2:], kept.shape[2:])
    base = base_of(topology, factor)
    plan, nothing = walk_plan(parents_beyond(topology, base)), jnp.zeros((6, *worlds), kept.dtype)
    if factor.base is None:
        return scan_outward(plan, step, (factor.directions, kept), nothing, bool(worlds))
    of_base = solve_small_outward(factor.base.D)
    A_base = sum_over_axis(factor.base.h_W * of_base[None], 1)
    beyond = scan_outward(plan, step, (factor.directions, kept), nothing, bool(worlds), A_base)
    return jnp.concatenate([beyond[: base[0]], of_base, beyond[base[0] :]])


def base_of(topology: TreeTopology, factor: ArticulatedFactor) -> Sequence[int]:
    """Velocities of the base that the factor solves for together; none if it has no base."""
    return () if factor.base is None else free_base(topology)


def velocities_beyond(topology: TreeTopology, base: Sequence[int]) -> list[int]:
    """Velocities that are not in the base."""
    return [j for j in range(topology.num_velocities) if j not in base]


def add_mobod_inertia(inertia: ArticulatedInertia, rows: list[Float[Array, "9 ..."]]) -> ArticulatedInertia:
    """Adds to an articulated inertia that of a mobod, whose J, H and M are given row by row."""
    return ArticulatedInertia(*(a + b.reshape(3, 3, *b.shape[1:]) for a, b in zip(inertia, rows, strict=True)))


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
