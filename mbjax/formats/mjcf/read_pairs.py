"""Which geoms may touch, as MuJoCo decides it: contype and conaffinity, parents, <exclude>, <pair>."""

import dataclasses

import numpy as np

from .compiled import Compiled


@dataclasses.dataclass
class Touching:
    """Pairs (a, b) of geoms with a < b; which geoms take part in contact, and which never with friction."""

    pairs: set[tuple[int, int]]
    taking_part: set[int]
    frictionless: set[int]


def touching_pairs(compiled: Compiled) -> Touching:
    """Pairs of geoms on bodies that move apart, with those that <pair> names."""
    m = compiled.m
    if compiled.disabled("CONTACT"):
        return Touching(set(), set(), set())
    allowed = dynamic_pairs(compiled)
    named = [(int(min(a, b)), int(max(a, b))) for a, b in zip(m.pair_geom1, m.pair_geom2, strict=True)]
    bits = (np.asarray(m.geom_contype) != 0) | (np.asarray(m.geom_conaffinity) != 0)
    taking_part = {int(g) for g in np.flatnonzero(bits)} | {g for pair in named for g in pair}
    pairs = {(int(a), int(b)) for a, b in np.argwhere(np.triu(allowed, 1))}
    dimensions = {pair: max(int(m.geom_condim[g]) for g in pair) for pair in pairs}
    dimensions |= {pair: int(m.pair_dim[k]) for k, pair in enumerate(named)}
    with_friction = {g for pair, dimension in dimensions.items() if dimension > 1 for g in pair}
    own = {g for g in taking_part if m.geom_condim[g] == 1}
    frictionless = {g for g in taking_part - with_friction if g in own or any(g in pair for pair in named)}
    return Touching(pairs | set(named), taking_part, frictionless)


def dynamic_pairs(compiled: Compiled) -> np.ndarray:
    """(ngeom, ngeom) truth values: what MuJoCo's broad phase lets through."""
    m = compiled.m
    types, affinities = np.asarray(m.geom_contype), np.asarray(m.geom_conaffinity)
    body = np.asarray(m.geom_bodyid)
    weld = np.asarray(m.body_weldid)
    parent = weld[np.asarray(m.body_parentid)[weld]]
    moving, of_parent = weld[body], parent[body]
    allowed = (types[:, None] & affinities) | (types & affinities[:, None])
    allowed = (allowed != 0) & (moving[:, None] != moving)
    if not compiled.disabled("FILTERPARENT"):
        are_adjacent = (moving[:, None] == of_parent) | (moving == of_parent[:, None])
        allowed &= ~(are_adjacent & (moving[:, None] != 0) & (moving != 0))
    for signature in m.exclude_signature:
        A, B = body == int(signature) >> 16, body == int(signature) & 0xFFFF
        allowed &= ~(A[:, None] & B | B[:, None] & A)
    return allowed
