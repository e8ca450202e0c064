"""Pair functions of two boxes and of general convex shapes, with their numbers of points."""

import functools

from .box_box import box_box, nearest_points
from .convex_convex import convex_convex, num_points
from .witnesses import PairFunction

CONVEX_PAIRS = (
    ("Cylinder", "Box"),
    ("Cylinder", "Capsule"),
    ("Cylinder", "Cylinder"),
    ("Ellipsoid", "Box"),
    ("Ellipsoid", "Capsule"),
    ("Ellipsoid", "Cylinder"),
    ("Ellipsoid", "Ellipsoid"),
    ("Convex", "Sphere"),
    ("Convex", "Box"),
    ("Convex", "Capsule"),
    ("Convex", "Cylinder"),
    ("Convex", "Ellipsoid"),
    ("Convex", "Convex"),
)

POLYHEDRON_PAIRS: dict[tuple[str, str], PairFunction] = {
    ("Box", "Box"): PairFunction(box_box, 4, nearest_points),
    **{
        kinds: PairFunction(
            functools.partial(convex_convex, *kinds),
            num_points(*kinds),
            functools.partial(convex_convex, *kinds, flat=False),
        )
        for kinds in CONVEX_PAIRS
    },
}
