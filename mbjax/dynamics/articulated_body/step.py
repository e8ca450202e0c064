"""Steps of the articulated-body algorithm, beside Featherstone 2008, table 7.1; one step is one velocity of a joint.

    table 7.1                                             here
    I_A = I,  p_A = v x* I v - f_x                        `plus_rigid_mobod`; p_A has I a_0 too: a_0 is due to v alone
    U = I_A S,  D = Sᵀ U,  u = τ - Sᵀ p_A                 `times_hinge`, `pivot`: S = [h; s], D with `diagonal`
    I_a = I_A - U Uᵀ / D,  p_a = p_A + I_a c + U u / D    `give_way`: F is p_A; I_a c is none, as a_0 has c
    I_Aλ += X* I_a X,  p_Aλ += X* p_a                     `coupling_inboard`, `moments_inboard`
    a' = X a_λ + c,  q̈ = (u - Uᵀ a') / D,  a = a' + S q̈   `accelerate`: without c
    u for further right-hand sides                        `pass_force_inward`, with U and D known

Velocities of one joint follow one another at the same point: D is a number, and no matrix is inverted. Quantities are
in the world frame at the body's own origin Mo. `diagonal` (reflected rotor inertia, and what an implicit step adds) is
part of D; for a locked velocity it is infinite, which makes 1 / D and U / D exactly zero. The velocity-product terms of
the book are in the force of each mobod already (`newton_euler/recursion.py`): the accelerations here are those that v̇
adds.

One text for kernels, where fields are lists of entries and each stage is stored once, and for whole arrays, where a
stage is a plain call.
"""

from typing import NamedTuple

from jaxtyping import Array

from mbjax.execution.recursions import kept_stage, read, read_stage, stage
from mbjax.spatial import vector_algebra as va

from ..records.spatial_records import Force, Hinge, Motion, RigidInertia, along, plus, shifted_torque


class ArticulatedInertia(NamedTuple):
    """Articulated inertia [J H; Hᵀ M] about a point: maps angular and linear acceleration to torque and force."""

    J: va.Symmetric
    H: va.Matrix
    M: va.Symmetric
    shapes = 6, (3, 3), 6


class ArticulatedBody(NamedTuple):
    """Articulated inertia, and the force of what is outboard; None where no right-hand side is solved for."""

    inertia: ArticulatedInertia
    force: Force | None
    shapes = ArticulatedInertia, Force


class Pivot(NamedTuple):
    """U / D and 1 / D of a velocity: its row of the factor."""

    U_over_D: Force
    one_over_D: Array
    shapes = Force, 1


def articulate(
    body: ArticulatedBody, hinge: Hinge, diagonal: Array, tau: Array | None
) -> tuple[ArticulatedBody, Pivot, Array | None]:
    """One step inward: what the inboard velocity feels, the pivot, and v̇ with everything inboard at rest.

    U = I h        D = h · U + diag        u = tau - h · F
    I' = I - U Uᵀ / D        F' = F + U u / D        both shifted by p to the inboard point
    """
    U = times_hinge(body, hinge)
    one_over_D, u = pivot(body, U, hinge, diagonal, tau)
    divided = divide(U, one_over_D, u)
    left = give_way(body, U, divided)
    H = coupling_inboard(left.inertia, hinge.p)
    J, t = moments_inboard(left, H, hinge.p)
    inertia = ArticulatedInertia(J, H, left.inertia.M)
    force = None if left.force is None else Force(t, left.force.f)
    U_over_D, vdot = read(divided)
    return ArticulatedBody(inertia, force), Pivot(U_over_D, one_over_D), vdot


@read_stage
def plus_rigid_mobod(outboard: ArticulatedBody, mobod: RigidInertia, force: Force) -> ArticulatedBody:
    """Adds a rigid mobod to what is outboard; its H is the skew matrix of c. Entries only."""
    (J, ((xx, xy, xz), (yx, yy, yz), (zx, zy, zz)), M), (x, y, z) = outboard.inertia, mobod.c
    H = [[xx, xy - z, xz + y], [yx + z, yy, yz - x], [zx - y, zy + x, zz]]
    M = [*(entry + mobod.m for entry in M[:3]), *M[3:]]
    assert outboard.force is not None
    return ArticulatedBody(ArticulatedInertia(va.add(J, mobod.J), H, M), plus(outboard.force, force))


@read_stage
def plus_inertia(outboard: ArticulatedBody, mobod: ArticulatedInertia) -> ArticulatedBody:
    """Adds any inertia to what is outboard."""
    inertia = ArticulatedInertia(*map(va.add, outboard.inertia, mobod))
    return ArticulatedBody(inertia, outboard.force)


@stage
def times_hinge(body: ArticulatedBody, hinge: Hinge) -> Force:
    """U = I h."""
    (J, H, M), (h, s, _) = body.inertia, hinge
    t = va.add(va.symmetric_matvec(J, h), va.matvec(H, s))
    return Force(t, va.add(va.transposed_matvec(H, h), va.symmetric_matvec(M, s)))


@stage
def pivot(
    body: ArticulatedBody, U: Force, hinge: Hinge, diagonal: Array, tau: Array | None
) -> tuple[Array, Array | None]:
    """1 / D with D = h · U + diag, and u = tau - h · F."""
    one_over_D = 1.0 / (along(U, hinge) + diagonal)
    return one_over_D, None if tau is None or body.force is None else tau - along(body.force, hinge)


@read_stage
def divide(U: Force, one_over_D: Array, u: Array | None) -> tuple[Force, Array | None]:
    """U / D and u / D by products with 1 / D: eight divisions would take longer."""
    return Force(va.scale(U.t, one_over_D), va.scale(U.f, one_over_D)), None if u is None else u * one_over_D


@stage
def give_way(body: ArticulatedBody, U: Force, divided: tuple[Force, Array | None]) -> ArticulatedBody:
    """Inertia less U Uᵀ / D, and force F + U v̇, still at the velocity's own point."""
    ((J, H, M), F), ((t, f), vdot) = body, divided
    J, M = va.subtract(J, va.symmetric_outer(U.t, t)), va.subtract(M, va.symmetric_outer(U.f, f))
    inertia = ArticulatedInertia(J, va.subtract(H, va.outer(U.t, f)), M)
    if F is None or vdot is None:
        return ArticulatedBody(inertia, None)
    return ArticulatedBody(inertia, plus(F, Force(va.scale(U.t, vdot), va.scale(U.f, vdot))))


@read_stage
def coupling_inboard(inertia: ArticulatedInertia, p: va.Vector) -> va.Matrix:
    """Shifts H to the inboard point."""
    return va.shift_coupling(inertia.H, inertia.M, p)


@kept_stage
def moments_inboard(own: ArticulatedBody, H_P: va.Matrix, p: va.Vector) -> tuple[va.Symmetric, va.Vector | None]:
    """Shifts J and the torque to the inboard point: J + [p]Hᵀ + H_P[p]ᵀ and t + p x f."""
    (J, H, _), F = own
    return va.shift_moments(J, H, H_P, p), None if F is None else shifted_torque(F, p)


def pass_force_inward(outboard: Force, hinge: Hinge, row: Pivot, b: Array) -> tuple[Force, Array]:
    """One step inward with a known factor: F + (U / D) u shifted inward, and u / D, with u = b - h · F."""
    u, vdot = residual_force(outboard, hinge, row, b)
    return hand_on(outboard, u, hinge.p, row), vdot


@stage
def residual_force(outboard: Force, hinge: Hinge, row: Pivot, b: Array) -> tuple[Array, Array]:
    """u = b - h · F, and u / D."""
    u = b - along(outboard, hinge)
    return u, u * row.one_over_D


@stage
def hand_on(outboard: Force, u: Array, p: va.Vector, row: Pivot) -> Force:
    """F + (U / D) u, shifted to the inboard point."""
    t, f = row.U_over_D
    force = plus(outboard, Force(va.scale(t, u), va.scale(f, u)))
    return Force(shifted_torque(force, p), force.f)


def accelerate(inboard: Motion, hinge: Hinge, row: Pivot, own: Array) -> tuple[Motion, Array]:
    """One step outward: v̇ = u / D - (U / D) · A, with A the acceleration of what is inboard, at this point."""
    A = move_to_point(inboard, hinge.p)
    vdot = give_way_to(A, row.U_over_D, own)
    return add_motion(A, vdot, hinge), vdot


@stage
def move_to_point(A: Motion, p: va.Vector) -> Motion:
    """Moves the inboard acceleration to the point at p: a + alpha x p."""
    return Motion(A.alpha, va.add(A.a, va.cross(A.alpha, p)))


@stage
def give_way_to(A: Motion, U_over_D: Force, own: Array) -> Array:
    """v̇ = u / D - (U / D) · A."""
    return own - (va.dot(U_over_D.t, A.alpha) + va.dot(U_over_D.f, A.a))


@kept_stage
def add_motion(A: Motion, vdot: Array, hinge: Hinge) -> Motion:
    """A + h v̇: the acceleration outboard of the velocity."""
    return Motion(va.add(A.alpha, va.scale(hinge.h, vdot)), va.add(A.a, va.scale(hinge.s, vdot)))
