"""Stages that several recursions share: they place hinges and inertias of mobods in the world.

P is what is inboard of a velocity, M what is outboard of it, T the origin of the tree.
"""

from jaxtyping import Array

from mbjax.execution.recursions import kept_stage, stage
from mbjax.spatial import written_out as wo

from .spatial_records import HingeMap, RigidInertia


@stage
def hinge_in_world(R_WP: wo.Matrix, hinge_map: HingeMap, rate: HingeMap | None) -> tuple[HingeMap, HingeMap | None]:
    """[h; s], and its rate if it changes, from P to W."""
    return turned_hinge(R_WP, hinge_map), None if rate is None else turned_hinge(R_WP, rate)


def turned_hinge(R_WP: wo.Matrix, hinge_map: HingeMap) -> HingeMap:
    """A hinge map in P, expressed in W."""
    return HingeMap(wo.matvec(R_WP, hinge_map.h), wo.matvec(R_WP, hinge_map.s))


@stage
def turned_inertia(R_WM: wo.Matrix, inertia: RigidInertia) -> tuple[wo.Matrix, wo.Vector]:
    """R J, and c in W."""
    return wo.matmul(R_WM, wo.symmetric(inertia.J)), wo.matvec(R_WM, inertia.c)


@kept_stage
def inertia_about_T(R_WM: wo.Matrix, RJ: wo.Matrix, c: wo.Vector, r: wo.Vector, m: Array) -> RigidInertia:
    """Inertia about T in W: R J Rᵀ and c about Mo, shifted by r = p_TM."""
    return shifted_inertia(RigidInertia(wo.symmetric_product(RJ, R_WM), c, m), r)


def shifted_inertia(inertia: RigidInertia, r: wo.Vector) -> RigidInertia:
    """Shifts an inertia by r: J + (r·(2 c + m r)) 1 - (c rᵀ + r cᵀ + m r rᵀ), and c + m r."""
    J, c, m = inertia
    at_T = wo.add(c, wo.scale(r, m))
    trace = wo.dot(r, wo.add(c, at_T))
    outer = [c[i] * r[j] + r[i] * at_T[j] for i, j in wo.SYMMETRIC_PAIRS]
    shifted = [x - y + trace if i == j else x - y for x, y, (i, j) in zip(J, outer, wo.SYMMETRIC_PAIRS, strict=True)]
    return RigidInertia(shifted, at_T, m)


def screw_about_T(r: wo.Vector, hinge: HingeMap) -> wo.Vector:
    """S of a velocity that turns about h through Mo, at r = p_TM, and translates along s: [h; s + r x h]."""
    return [*hinge.h, *wo.add(hinge.s, wo.cross(r, hinge.h))]
