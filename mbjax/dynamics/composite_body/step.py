"""Steps of the composite-rigid-body algorithm, beside Featherstone 2008, table 6.2; a step is a velocity of a joint.

    table 6.2                    here
    S, I                         `place_outward`: S and the inertia of the mobod, placed in the world
    I_c = I,  I_cλ += X* I_c X   `add_inward`: about one point for the whole tree, inertias add up without shifts
    F = I_c S                    `force_of_composite`
    H = Fᵀ S, along the path     `inertia_between`, for each two velocities of one path; the path (while λ(j) ≠ 0)
                                 is walked by `products_along_paths` in `derivatives/path_products.py`

Motions [w; v] and forces [t; f] are about T, the tree's origin, in W, so that X of the book is the identity.
"""

from typing import NamedTuple

from jaxtyping import Array

from mbjax.execution.recursions import kept_stage, stage, sum_of_rows
from mbjax.kinematics import OtherPoses, Pose, cross_joint, pose_across
from mbjax.spatial import written_out as wo

from ..records.direction_rows import DirectionRows
from ..records.placing_stages import inertia_about_T, screw_about_T, turned_hinge, turned_inertia
from ..records.spatial_records import HingeMap, RigidInertia


class ScrewRows(NamedTuple):
    """Motion S of a unit of each velocity, and the inertia of its mobod, which stands at the joint's last velocity."""

    S: wo.Vector
    inertia: RigidInertia


def place_outward(X_TP: Pose, row: tuple[DirectionRows, Array], others: OtherPoses | None) -> tuple[Pose, ScrewRows]:
    """One step outward: pose, S and inertia; X_TP has the axes of W and the origin T."""
    directions, within_tree = row
    R, p = cross_joint(X_TP, pose_across(directions.joint, others))
    r, hinge = point_and_hinge(X_TP.R, p, directions.hinge_map, within_tree)
    RJ, c = turned_inertia(R, directions.inertia)
    inertia = inertia_about_T(R, RJ, c, r, directions.inertia.m)
    return Pose(R, r), ScrewRows(screw_to_keep(r, hinge), inertia)


@stage
def point_and_hinge(
    R_WP: wo.Matrix, p: wo.Vector, hinge_map: HingeMap, within_tree: Array
) -> tuple[wo.Vector, HingeMap]:
    """r = p_TM, which is zero at the root of a tree, and [h; s] in W."""
    return wo.scale(p, within_tree), turned_hinge(R_WP, hinge_map)


@kept_stage
def screw_to_keep(r: wo.Vector, hinge: HingeMap) -> wo.Vector:
    """S = [h; s + r x h]."""
    return screw_about_T(r, hinge)


def add_inward(outboard: RigidInertia, row: ScrewRows) -> tuple[RigidInertia, wo.Vector]:
    """One step inward: the composite inertia I_c = I + what is outboard, and the force F = I_c S."""
    composite = sum_of_rows(outboard, row.inertia)
    return composite, force_of_composite(composite, row.S)


@kept_stage
def force_of_composite(composite: RigidInertia, S: wo.Vector) -> wo.Vector:
    """F = I_c S."""
    return wo.times_inertia(composite, S)


@stage
def inertia_between(S: wo.Vector, F: wo.Vector) -> Array:
    """H_ij = S_i · F_j."""
    return wo.dot(S, F)
