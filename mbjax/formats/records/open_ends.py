"""Ends of position limits that stand for none: files write huge numbers where a joint has no limit."""

import math

from mbjax.model import USED

from ..notes.load_notes import LoadNotes

NONE_IN_SDF = 1e16  # SDFormat's limit of a joint without one; URDF files that are made of SDFormat have it, too
NONE_IN_MUJOCO = 1e10  # mjMAXVAL: MuJoCo starts anew before a position gets there


def with_open_ends(
    limits: tuple[float, float], none: float, label: str, place: str, notes: LoadNotes
) -> tuple[float, float]:
    """The limits, infinite where the lower one is at most -`none` or the upper one at least `none`; noted then."""
    lower, upper = limits
    ends = -math.inf if lower <= -none else lower, math.inf if upper >= none else upper
    if ends != limits:
        message = f"position limits {lower:g} to {upper:g}: an end of ±{none:g} or beyond stands for none"
        notes.add(USED, label, message, place)
    return ends
