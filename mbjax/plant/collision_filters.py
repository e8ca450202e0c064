"""Finds the collision geometries that may touch: all pairs but those that Drake's filters exclude."""

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Bool

from mbjax.geometry import Geometry
from mbjax.joints import AbstractJoint, QuaternionFloatingJoint
from mbjax.model import Body

from .declarations import CollisionExclusion, RegisteredCollision


def candidate_pairs(
    collisions: Sequence[RegisteredCollision],
    body_mobods: Sequence[int],
    joints: Iterable[AbstractJoint],
    exclusions: Iterable[CollisionExclusion],
    filter_adjacent: bool,
) -> list[tuple[int, int]]:
    """Pairs of geometries, by index, that may touch, as in Drake.

    Geometries of one body, of bodies welded together, or both on bodies welded to the world never touch. With
    `filter_adjacent` neither do those of a joint's two bodies, save where its parent is the world or where it is a
    quaternion_floating joint.
    """
    bodies = np.array([collision.body.index for collision in collisions], int)
    mobods = np.array(body_mobods)[bodies]
    may_touch = mobods[:, None] != mobods
    excluded = [(members(collisions, e.group_A), members(collisions, e.group_B)) for e in exclusions]
    if filter_adjacent:
        excluded += [(bodies == parent, bodies == child) for parent, child in adjacent_bodies(joints)]
    for A, B in excluded:
        may_touch[np.ix_(A, B)] = may_touch[np.ix_(B, A)] = False
    return [(int(a), int(b)) for a, b in np.argwhere(np.triu(may_touch))]


def adjacent_bodies(joints: Iterable[AbstractJoint]) -> set[tuple[int, int]]:
    """Pairs of adjacent bodies, by index, that the filters between adjacent bodies exclude."""
    pairs = ((j, j.parent.body.index, j.child.body.index) for j in joints)
    return {(A, B) for j, A, B in pairs if A != 0 and not isinstance(j, QuaternionFloatingJoint)}


def members(collisions: Sequence[RegisteredCollision], group: Iterable[Body | Geometry]) -> Bool[np.ndarray, " n"]:
    """Mask of the geometries in a group; a Geometry counts wherever that object is registered."""
    wanted = {id(element) for element in group}
    return np.array([id(c.body) in wanted or id(c.geometry) in wanted for c in collisions], bool)
