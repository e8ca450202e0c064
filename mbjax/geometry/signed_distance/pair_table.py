"""The table of pairs of kinds of shapes that have a signed distance, with their functions."""

from .box_capsule import BOX_CAPSULE_PAIRS
from .capsule import CAPSULE_PAIRS
from .half_space import HALF_SPACE_PAIRS
from .polyhedron_pairs import POLYHEDRON_PAIRS
from .sphere import SPHERE_PAIRS
from .witnesses import PairFunction

PAIRS: dict[tuple[str, str], PairFunction] = {
    **HALF_SPACE_PAIRS,
    **SPHERE_PAIRS,
    **CAPSULE_PAIRS,
    **BOX_CAPSULE_PAIRS,
    **POLYHEDRON_PAIRS,
}


def supported_pairs() -> frozenset[tuple[str, str]]:
    """Pairs of kinds of shapes that have a signed distance, in both orders."""
    return frozenset(PAIRS) | frozenset((kind_B, kind_A) for kind_A, kind_B in PAIRS)


def pair_function(kind_A: str, kind_B: str) -> tuple[PairFunction, bool]:
    """The pair function of two kinds, and whether it is that of (B, A), which takes B first and works in B's frame."""
    if (kind_A, kind_B) in PAIRS:
        return PAIRS[kind_A, kind_B], False
    if (kind_B, kind_A) in PAIRS:
        return PAIRS[kind_B, kind_A], True
    raise KeyError(f"No signed distance of {kind_A} and {kind_B}; supported_pairs() lists the pairs that have one.")
