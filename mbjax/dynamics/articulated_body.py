"""Articulated-body factorisation: solves (M(q) + diag) x = b in O(n) without forming M.

One rolled loop body serves every joint: the velocities of a joint follow one another at the same point, each
a column of one degree of freedom (Featherstone 2008, ch. 7). The inward pass keeps, per velocity,
`U / D` and `1 / D`, with U = I_A h and D = h · U + diag: a factor of M. Never differentiated, see
`forward_dynamics`. No joint may mimic another: see `mass_matrix_factor`.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from mbjax.kinematics import MobodInertia, PositionKinematics
from mbjax.spatial.component_algebra import cross, dot, matvec, outer, skew, transpose, transposed_matvec
from mbjax.topology import TreeTopology, direction_parents, scan_inward, scan_outward, take, walk_plan


class ArticulatedInertia(NamedTuple):
    """[J H; Hᵀ M] about a point: torque and force that an angular and a linear acceleration take."""

    J: Float[Array, "3 3 ..."]
    H: Float[Array, "3 3 ..."]
    M: Float[Array, "3 3 ..."]


class ArticulatedFactor(NamedTuple):
    """Factor of M(q) + diag, velocities on the first axis."""

    h_W: Float[Array, "nv 6 ..."]
    p_W: Float[Array, "nv 3 ..."]  # from the inboard velocity's point
    U_over_D: Float[Array, "nv 6 ..."]
    one_over_D: Float[Array, "nv ..."]


def calc_articulated_factor(
    topology: TreeTopology,
    position: PositionKinematics,
    inertia_W: MobodInertia,
    diagonal: Float[Array, " nv"],
    locked: Bool[Array, " nv"],
    added: ArticulatedInertia | None = None,
) -> ArticulatedFactor:
    """Inward pass: the inertia each velocity feels, with everything outboard free to move.

    A locked velocity has infinite reflected inertia: 1 / D and U / D are exactly zero, it gives way to nothing.
    What is `added` to the mobods' inertias, about their Mo in W, need not be that of a rigid body.
    """
    diagonal = jnp.where(locked, jnp.inf, diagonal)
    position, inertia_W, diagonal, added = lax.stop_gradient((position, inertia_W, diagonal, added))
    inertia, p = spread_over_velocities(topology, position, inertia_W, added)
    h, p = jnp.swapaxes(position.H_W, 0, 1), jnp.swapaxes(p, 0, 1)

    def step(outboard: ArticulatedInertia, x: tuple) -> tuple[ArticulatedInertia, tuple[Array, Array]]:
        own, h, p, diagonal = x
        J, H, M = (a + b for a, b in zip(outboard, own, strict=True))
        w, v = h[:3], h[3:]
        U_t, U_f = matvec(J, w) + matvec(H, v), transposed_matvec(H, w) + matvec(M, v)
        one_over_D = 1.0 / (dot(w, U_t) + dot(v, U_f) + diagonal)
        t, f = U_t * one_over_D, U_f * one_over_D
        left = ArticulatedInertia(J - outer(U_t, t), H - outer(U_t, f), M - outer(U_f, f))
        return shift_inertia(left, p), (jnp.concatenate([t, f]), one_over_D)

    worlds = jnp.broadcast_shapes(h.shape[2:], p.shape[2:], inertia.J.shape[3:], diagonal.shape[1:])
    nothing = jnp.zeros((3, 3, *worlds), h.dtype)
    plan = walk_plan(direction_parents(topology))
    zero = ArticulatedInertia(nothing, nothing, nothing)
    kept = scan_inward(plan, step, (inertia, h, p, diagonal), zero, bool(worlds))
    return ArticulatedFactor(h, p, *kept)


def shift_inertia(I_Q: ArticulatedInertia, p_PQ: Float[Array, "3 ..."]) -> ArticulatedInertia:
    """The inertia about P from the one about Q: H' = H + [p]M, J' = J + [p]Hᵀ + H'[p]ᵀ."""
    J, H, M = I_Q
    p = p_PQ[:, None]
    H_P = H + cross(p, M)
    return ArticulatedInertia(J + cross(p, transpose(H)) + transpose(cross(p, transpose(H_P))), H_P, M)


def solve_with_factor(topology: TreeTopology, factor: ArticulatedFactor, b: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """x with (M + diag) x = b: forces inward, accelerations outward."""

    def inward(outboard: Array, x: tuple[Array, Array, Array, Array]) -> tuple[Array, Array]:
        b, h, p, U_over_D = x
        u = b - dot(h, outboard)
        t, f = jnp.split(outboard + U_over_D * u, 2)
        return jnp.concatenate([t + cross(p, f), f]), u

    def outward(A_parent: Array, x: tuple[Array, Array, Array, Array, Array]) -> tuple[Array, Array]:
        u, h, p, U_over_D, one_over_D = x
        alpha, a = jnp.split(A_parent, 2)
        A = jnp.concatenate([alpha, a + cross(alpha, p)])
        vdot = u * one_over_D - dot(U_over_D, A)
        return A + h * vdot, vdot

    h, p, U_over_D, one_over_D = factor
    worlds = jnp.broadcast_shapes(h.shape[2:], U_over_D.shape[2:], b.shape[1:])
    plan, nothing = walk_plan(direction_parents(topology)), jnp.zeros((6, *worlds), h.dtype)
    u = scan_inward(plan, inward, (b, h, p, U_over_D), nothing, bool(worlds))
    return scan_outward(plan, outward, (u, h, p, U_over_D, one_over_D), nothing, bool(worlds))


def spread_over_velocities(
    topology: TreeTopology,
    position: PositionKinematics,
    inertia_W: MobodInertia,
    added: ArticulatedInertia | None = None,
) -> tuple[ArticulatedInertia, Float[Array, "3 nv ..."]]:
    """Per velocity: the inertia of the mobod it carries (the last of its joint), and the step from inboard."""
    owner = topology.velocity_mobods
    starts, counts = np.array(topology.mobod_v_starts)[owner], np.array(topology.mobod_num_velocities)[owner]
    index = np.arange(len(owner))
    identity = jnp.eye(3, dtype=inertia_W.mass.dtype).reshape(3, 3, *(1 for _ in inertia_W.mass.shape))

    def of_velocities(x: Array, axis: int, chosen: np.ndarray) -> Array:
        x = take(x, owner, axis)
        return x if np.all(chosen) else jnp.where(chosen.reshape(-1, *(1,) * (x.ndim - axis - 1)), x, 0.0)

    is_last, is_first = index == starts + counts - 1, index == starts
    parts = (inertia_W.rotational, skew(inertia_W.moment), inertia_W.mass * identity)
    if added is not None:
        parts = (a + b for a, b in zip(parts, added, strict=True))
    inertia = ArticulatedInertia(*(jnp.moveaxis(of_velocities(x, 2, is_last), 2, 0) for x in parts))
    return inertia, of_velocities(position.p_PM_W, 1, is_first)
