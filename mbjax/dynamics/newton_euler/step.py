"""Steps of the recursive Newton–Euler algorithm, beside Featherstone 2008, table 5.1; a step is a velocity of a joint.

    table 5.1                            here
    [X_J, S, v_J, c_J] = jcalc(q, q̇)     `joint_in_world`: R and p; `hinge_in_world`: S = [h; s], and [ḣ; ṡ] v
    v = X v_λ + v_J                      `turn`: w
    a = X a_λ + S q̈ + c_J + v x v_J      `turn`: alpha, `translate`: a
    f = I a + v x* I v - f_x             `inertia_in_world`, `net_force`
    τ = Sᵀ f,  f_λ = f_λ + X* f          `gather_force`

Quantities are in the world frame at each mobod's own origin Mo, and a is the acceleration of that point, not the book's
spatial one: v x v_J becomes w_F x h v in alpha, and 2 w_F x s v and w_P x (w_P x p) in a; the velocity of Mo is needed
nowhere. P is what is inboard of a velocity, M what is outboard of it, F the inboard frame of its joint.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from mbjax.execution.recursions import kept_stage, read_stage, stage
from mbjax.kinematics import OtherPoses, Pose, pose_across
from mbjax.spatial import written_out as wo

from ..records.direction_rows import DirectionRows
from ..records.placing_stages import hinge_in_world, turned_inertia
from ..records.spatial_records import (
    Force,
    Hinge,
    HingeMap,
    MassMoment,
    RigidInertia,
    along,
    less,
    plus,
    shifted_torque,
)


class BodyMotion(NamedTuple):
    """Rotation, angular velocity, angular acceleration, and the acceleration of Mo."""

    R: wo.Matrix
    w: wo.Vector
    alpha: wo.Vector
    a: wo.Vector
    w_F: wo.Vector | None = None  # where joints have several velocities
    shapes = (3, 3), 3, 3, 3, 3


class MotionRows(NamedTuple):
    """Rows that the inward recursions read, one for each velocity, in W at Mo."""

    hinge: Hinge
    force: Force  # that the mobod's motion takes less weights and applied forces
    inertia: RigidInertia  # of the mobod


def move_outward(
    inboard: BodyMotion, row: DirectionRows, others: OtherPoses | None, gravity: wo.Vector | None
) -> tuple[BodyMotion, MotionRows]:
    """One step outward: motion of what is outboard of a velocity, the force it takes, and its inertia."""
    R, p = joint_in_world(inboard.R, pose_across(row.joint, others))
    hinge, rate = hinge_in_world(inboard.R, row.hinge_map, row.hinge_map_rate)
    w_F = inboard.w if row.is_first is None else velocity_of_F(inboard.w, inboard.w_F, row.is_first)
    w, alpha = turn(inboard, w_F, hinge, rate, row.v, row.vdot)
    a = translate(inboard, p, w_F, hinge.s, rate, row.v, row.vdot)
    outboard = BodyMotion(R, w, alpha, a, None if row.is_first is None else w_F)
    RJ, c = turned_inertia(R, row.inertia)
    J, turning = inertia_in_world(R, RJ, c, w)
    inertia = RigidInertia(J, c, row.inertia.m)
    force = net_force(outboard, inertia, angular_momenta(J, w, alpha), turning, row.weight, row.F_applied_W, gravity)
    return outboard, MotionRows(Hinge(hinge.h, hinge.s, p), force, inertia)


@stage
def joint_in_world(R_WP: wo.Matrix, X_PM: Pose) -> tuple[wo.Matrix, wo.Vector]:
    """R_WM = R_WP R_PM, and p = R_WP p_PM."""
    R_PM, p_PM = X_PM
    return wo.matmul(R_WP, R_PM), wo.matvec(R_WP, p_PM)


@stage
def velocity_of_F(w_P: wo.Vector, w_F: wo.Vector, is_first: Array) -> wo.Vector:
    """w_F: at a joint's first velocity w_P, at the others what the first handed on."""
    return [jnp.where(is_first > 0.0, x, y) for x, y in zip(w_P, w_F, strict=True)]


@stage
def turn(
    P: BodyMotion, w_F: wo.Vector, hinge: HingeMap, rate: HingeMap | None, v: Array, vdot: Array | None
) -> tuple[wo.Vector, wo.Vector]:
    """w = w_P + h v, and alpha = alpha_P + w_F x h v + ḣ v + h v̇."""
    h_v = wo.scale(hinge.h, v)
    alpha = wo.add(P.alpha, wo.cross(w_F, h_v))
    if rate is not None:
        alpha = wo.add(alpha, rate.h)
    if vdot is not None:
        alpha = wo.add(alpha, wo.scale(hinge.h, vdot))
    return wo.add(P.w, h_v), alpha


@stage
def translate(
    P: BodyMotion, p: wo.Vector, w_F: wo.Vector, s: wo.Vector, rate: HingeMap | None, v: Array, vdot: Array | None
) -> wo.Vector:
    """a = a_P + alpha_P x p + w_P x (w_P x p) + 2 w_F x s v + ṡ v + s v̇."""
    a = wo.add(P.a, wo.cross(P.alpha, p), wo.cross(P.w, wo.cross(P.w, p)), wo.scale(wo.cross(w_F, s), 2.0 * v))
    if rate is not None:
        a = wo.add(a, rate.s)
    if vdot is not None:
        a = wo.add(a, wo.scale(s, vdot))
    return a


@stage
def inertia_in_world(R: wo.Matrix, RJ: wo.Matrix, c: wo.Vector, w: wo.Vector) -> tuple[wo.Vector, wo.Vector]:
    """J = R J Rᵀ in W, and w x (w x c)."""
    return wo.symmetric_product(RJ, R), wo.cross(w, wo.cross(w, c))


@read_stage
def angular_momenta(J: wo.Vector, w: wo.Vector, alpha: wo.Vector) -> tuple[wo.Vector, wo.Vector]:
    """J w and J alpha."""
    return wo.matvec(wo.symmetric(J), w), wo.matvec(wo.symmetric(J), alpha)


@kept_stage
def net_force(
    body: BodyMotion,
    inertia: RigidInertia,
    momenta: tuple[wo.Vector, wo.Vector],
    turning: wo.Vector,
    weight: MassMoment | None,
    applied: Force | None,
    g: wo.Vector | None,
) -> Force:
    """f = m a + alpha x c + w x (w x c), t = J alpha + w x J w + c x a, less weights and applied forces."""
    (R, w, alpha, a, _), (_, c, m), (Jw, J_alpha) = body, inertia, momenta
    f = wo.add(wo.scale(a, m), wo.cross(alpha, c), turning)
    force = Force(wo.add(J_alpha, wo.cross(w, Jw), wo.cross(c, a)), f)
    if weight is not None and g is not None:
        force = less(force, Force(wo.cross(wo.matvec(R, weight.c), g), wo.scale(g, weight.m)))
    return force if applied is None else less(force, applied)


@stage
def gather_force(outboard: Force, hinge: Hinge, force: Force) -> tuple[Force, Array]:
    """One step inward: F = force + what is outboard, handed on about the inboard point, and the torque h · F."""
    F = plus(outboard, force)
    return Force(shifted_torque(F, hinge.p), F.f), along(F, hinge)
