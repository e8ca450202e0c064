"""The pairs of polyhedra, and of convex shapes in general, and how many points each gives."""

from .box_box import box_box
from .witnesses import PairFunction

POLYHEDRON_PAIRS: dict[tuple[str, str], PairFunction] = {
    ("Box", "Box"): PairFunction(box_box, 4),
}
