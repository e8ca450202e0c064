"""Spatial quantities by name, as the steps of recursions see them in rows: motions, forces, inertias, hinges.

`shapes` says how a row holds them (`rows_of` of `mbjax.execution.recursions`): vectors one after the other, a symmetric
matrix by its six entries. A step of entries sees lists of them, a step of whole arrays sees arrays.
"""

from typing import NamedTuple

from jaxtyping import Array

from mbjax.spatial import vector_algebra as va


class HingeMap(NamedTuple):
    """Motion [h; s] of a unit of a velocity: angular, and translational at the mobod's own origin Mo."""

    h: va.Vector
    s: va.Vector
    shapes = 3, 3


class Hinge(NamedTuple):
    """Motion [h; s] of a unit of a velocity; p points from the inboard velocity's point to this one's."""

    h: va.Vector
    s: va.Vector
    p: va.Vector
    shapes = 3, 3, 3


class Motion(NamedTuple):
    """Spatial acceleration of a point: angular and translational."""

    alpha: va.Vector
    a: va.Vector
    shapes = 3, 3


class Force(NamedTuple):
    """Spatial force: torque and force."""

    t: va.Vector
    f: va.Vector
    shapes = 3, 3


class MassMoment(NamedTuple):
    """First moment c = m p_MoMcm and mass of what gravity acts on."""

    c: va.Vector
    m: Array
    shapes = 3, 1


class RigidInertia(NamedTuple):
    """Inertia of a rigid mobod about Mo: moments, c = m p_MoMcm, and the mass."""

    J: va.Symmetric
    c: va.Vector
    m: Array
    shapes = 6, 3, 1


def plus(a: Force, b: Force) -> Force:
    """Sum of two forces at one point."""
    return Force(va.add(a.t, b.t), va.add(a.f, b.f))


def less(a: Force, b: Force) -> Force:
    """Difference of two forces at one point."""
    return Force(va.subtract(a.t, b.t), va.subtract(a.f, b.f))


def along(force: Force, hinge: Hinge) -> Array:
    """Torque or force h · t + s · f along a hinge."""
    return va.dot(hinge.h, force.t) + va.dot(hinge.s, force.f)


def shifted_torque(force: Force, p: va.Vector) -> va.Vector:
    """Torque about a point from which p leads to the force's own: t + p x f."""
    return va.add(force.t, va.cross(p, force.f))
