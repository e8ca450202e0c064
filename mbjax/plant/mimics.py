"""Mimic relations of a plant: how they are declared, ordered, and checked at finalize."""

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np

from mbjax.errors import ModelError
from mbjax.joints import AbstractJoint
from mbjax.number_rules import FINITE, known_numbers

from .declarations import Mimic
from .queries import PlantQueries

Relation = tuple[AbstractJoint, float, float]  # the leader that has the coordinate, multiplier and offset


class PlantMimics(PlantQueries):
    """Method of the plant for joints that mimic others and have no coordinate of their own."""

    def add_mimic(
        self,
        follower: AbstractJoint | str | int,
        leader: AbstractJoint | str | int,
        multiplier: float = 1.0,
        offset: float = 0.0,
    ) -> None:
        """Makes q of the follower exactly multiplier q of the leader + offset: it has no place in q and v.

        Both joints have one degree of freedom, and a leader may mimic another joint in turn. Forces and inertias of the
        follower act on its leader through the multiplier, its position limits tighten the leader's, and its default
        position follows from the leader's. A coupler constraint, by contrast, keeps both coordinates, and has a force.
        """
        self._require_building("add_mimic")
        follower, leader = (self.joint(joint, "add_mimic") for joint in (follower, leader))
        call = f"add_mimic('{follower.name}', '{leader.name}')"
        for joint in (follower, leader):
            if joint.num_velocities != 1:
                raise ModelError(
                    f"{call}: joint '{joint.name}' ({joint.kind}) has {joint.num_velocities} degrees of freedom; "
                    "joints that mimic, and those they follow, have one."
                )
        for what, value in (("multiplier", multiplier), ("offset", offset)):
            known_numbers(call, what, value, FINITE)
        leader_of = {m.follower: m.leader for m in self.mimics}
        if follower in leader_of:
            raise ModelError(f"{call}: joint '{follower.name}' mimics '{leader_of[follower].name}' already.")
        chain = [leader]
        while chain[-1] in leader_of:
            chain.append(leader_of[chain[-1]])
        if follower in chain:
            names = " mimics ".join(f"'{joint.name}'" for joint in (follower, *chain[: chain.index(follower) + 1]))
            raise ModelError(f"{call}: {names}: one of the joints needs a coordinate of its own.")
        self.mimics.append(Mimic(follower, leader, float(multiplier), float(offset)))

    @abc.abstractmethod
    def _require_building(self, call: str) -> None: ...


def leaders_first(mimics: Sequence[Mimic]) -> list[Mimic]:
    """Orders relations so that a leader that itself mimics comes before its followers."""
    leader_of = {m.follower: m.leader for m in mimics}

    def depth(joint: AbstractJoint) -> int:
        return 1 + depth(leader_of[joint]) if joint in leader_of else 0

    return sorted(mimics, key=lambda m: depth(m.follower))


def relations_of(mimics: Sequence[Mimic]) -> dict[AbstractJoint, Relation]:
    """By joint that mimics: the leader at the end of its chain, and multiplier and offset relative to it."""
    relations: dict[AbstractJoint, Relation] = {}
    for mimic in leaders_first(mimics):
        leader, ratio, shift = relations.get(mimic.leader, (mimic.leader, 1.0, 0.0))
        relations[mimic.follower] = leader, mimic.multiplier * ratio, mimic.multiplier * shift + mimic.offset
    return relations


def default_positions_of(mimics: Sequence[Mimic]) -> dict[AbstractJoint, np.ndarray]:
    """Default positions of joints that mimic, from their leaders' defaults; a default of their own must agree."""
    defaults: dict[AbstractJoint, Any] = {}
    for mimic in leaders_first(mimics):
        follower, leader = mimic.follower, mimic.leader
        q = mimic.multiplier * defaults.get(leader, leader.default_positions) + mimic.offset
        own = follower.default_positions
        if np.any(own != follower.zero_positions) and not np.allclose(own, q, rtol=1e-9, atol=1e-12):
            raise ModelError(
                f"joint '{follower.name}' mimics '{leader.name}', whose default position puts it at {q[0]:g}, but its "
                f"own default is {own[0]:g}; leave that out, or change the leader's."
            )
        defaults[follower] = q
    return defaults


def reject_contradicting_limits(mimics: Sequence[Mimic]) -> None:
    """Raises `ModelError` if limits of joints that mimic leave the leader at the end of their chain no position."""
    relations = relations_of(mimics)
    ranges: dict[AbstractJoint, tuple[float, float]] = {}
    for mimic in leaders_first(mimics):
        leader, multiplier, offset = relations[mimic.follower]
        low, high = (float(limit[0]) for limit in mimic.follower.position_limits)
        if multiplier == 0.0:
            implied = (-np.inf, np.inf) if low <= offset <= high else (np.inf, -np.inf)
        else:
            implied = tuple(sorted(((low - offset) / multiplier, (high - offset) / multiplier)))
        least, most = ranges.get(leader, tuple(float(limit[0]) for limit in leader.position_limits))
        ranges[leader] = max(least, implied[0]), min(most, implied[1])
        if ranges[leader][0] > ranges[leader][1]:
            place = "" if mimic.follower.source is None else f"{mimic.follower.source}: "
            raise ModelError(
                f"{place}joint '{mimic.follower.name}' follows '{leader.name}' as {multiplier:g} q + {offset:g}; its "
                f"limits [{low:g}, {high:g}] leave '{leader.name}' no position within [{least:g}, {most:g}]. Change "
                "the limits, the multiplier or the offset."
            )
