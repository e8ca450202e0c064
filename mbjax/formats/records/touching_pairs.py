"""Which pairs of links touch in a model, against what a reader of a file would let touch by itself."""

from collections.abc import Callable

from mbjax.geometry.signed_distance.pair_table import supported_pairs
from mbjax.joints import QuaternionFloatingJoint
from mbjax.model import JointInfo, MultibodyModel

Shapes = tuple[str, str]  # names of two geometries


class TouchingPairs:
    """Pairs of bodies with collision shapes: which pairs of their shapes may touch, and which may not.

    Shapes without a signed distance count as neither, since nothing says what they would do.
    """

    def __init__(self, model: MultibodyModel):
        contact, supported = model.layout.contact, supported_pairs()
        geometries, may_touch = contact.all_geometries, set(contact.distance_pairs)
        self.model = model
        self.allowed: dict[tuple[int, int], list[Shapes]] = {}
        self.excluded: dict[tuple[int, int], list[Shapes]] = {}
        mobods = model.topology.body_mobods
        for a, A in enumerate(geometries):
            for b, B in enumerate(geometries[a + 1 :], start=a + 1):
                if mobods[A.body] == mobods[B.body] or (A.kind, B.kind) not in supported:
                    continue
                found = self.allowed if (a, b) in may_touch or (b, a) in may_touch else self.excluded
                names = (A.name, B.name) if A.body <= B.body else (B.name, A.name)
                found.setdefault((min(A.body, B.body), max(A.body, B.body)), []).append(names)

    def differences(
        self, touch_by_default: Callable[[int, int], bool]
    ) -> tuple[list[tuple[int, int]], list[tuple[int, int]], list[tuple[int, int]]]:
        """Pairs of bodies to exclude, to let touch, and to let touch in part, where a reader would do otherwise."""
        exclude, include, partly = [], [], []
        for pair in sorted({*self.allowed, *self.excluded}):
            default = touch_by_default(*pair)
            if pair in self.allowed and pair in self.excluded:
                partly.append(pair)
            elif default and pair in self.excluded:
                exclude.append(pair)
            elif not default and pair in self.allowed:
                include.append(pair)
        return exclude, include, partly


def touch_as_in_drake(model: MultibodyModel, joins_bodies: Callable[[JointInfo], bool]) -> Callable[[int, int], bool]:
    """Drake's rule: all but the two bodies of a joint, save where it is floating or its parent is the world.

    `joins_bodies` says whether a joint of the file is between the same two bodies as in the model.
    """
    adjacent = {
        (joint.parent_body, joint.child_body)
        for joint in model.layout.joints
        if joint.parent_body != 0 and joint.kind != QuaternionFloatingJoint.kind and joins_bodies(joint)
    }
    return lambda A, B: (A, B) not in adjacent and (B, A) not in adjacent
