"""The integers of a finalized model: frozen, hashable, known when a program is traced.

Bodies that welds hold together move as one *mobilized body* (mobod), the unit that the algorithms count.
Mobod 0 is the world with everything welded to it. The others are numbered depth first, so a parent comes
before its children, a subtree is a run of consecutive mobods, and coordinates follow in the same order.

The velocities of a joint each have a *direction* in which they move what is outboard. A joint that mimics another has a
direction, but no velocity of its own: that of its leader drives both. Directions are counted over all joints,
positions and velocities over those that have their own.
"""

import dataclasses
import functools

import numpy as np

from mbjax.execution import HashedOnce


@dataclasses.dataclass(frozen=True)
class TreeTopology(HashedOnce):
    """Per mobod: parent, joint kind and coordinate range. Per body and frame: where they are attached."""

    # mobilized bodies; index 0 is the world, whose entries are -1, "world" or empty
    mobod_parents: tuple[int, ...]
    mobod_kinds: tuple[str, ...]
    mobod_joints: tuple[int, ...]
    mobod_q_starts: tuple[int, ...]  # among the positions of all joints, those that mimic included
    mobod_v_starts: tuple[int, ...]  # among the directions of all joints
    mobod_num_positions: tuple[int, ...]
    mobod_num_velocities: tuple[int, ...]
    mobod_inboard_frames: tuple[int, ...]  # frame F, on the parent
    mobod_outboard_frames: tuple[int, ...]  # frame M, on the body itself

    # bodies; a body is its mobod's inboard body (level 0) or is welded to a body one level nearer to that
    body_mobods: tuple[int, ...]
    body_weld_levels: tuple[int, ...]
    body_inboard_frames: tuple[int, ...]  # frame F of the weld, on the body it is welded to; else -1
    body_outboard_frames: tuple[int, ...]  # frame M of the inboard joint or weld, on the body; else -1

    # frames; level 0 is a body's own frame, level k is fixed in a frame of level k - 1
    frame_bodies: tuple[int, ...]
    frame_parents: tuple[int, ...]
    frame_levels: tuple[int, ...]

    # mobods whose joint mimics another, each with the mobod it follows, which comes before it if it mimics too
    followers: tuple[tuple[int, int], ...] = ()

    __hash__ = HashedOnce.__hash__

    @property
    def num_mobods(self) -> int:
        return len(self.mobod_parents)

    @property
    def num_bodies(self) -> int:
        return len(self.body_mobods)

    @property
    def num_positions(self) -> int:
        return sum(self.mobod_num_positions) - len(self.followers)

    @property
    def num_velocities(self) -> int:
        return sum(self.mobod_num_velocities) - len(self.followers)

    @property
    def num_directions(self) -> int:
        """Number of directions of all joints, those that mimic included; `num_velocities` where none does."""
        return sum(self.mobod_num_velocities)

    @functools.cached_property
    def leaders(self) -> np.ndarray:
        """(nm,) the mobod whose joint owns the coordinates of each mobod's joint: itself, or a chain of mimics' end."""
        leaders = np.arange(self.num_mobods)
        for mobod, followed in self.followers:
            leaders[mobod] = leaders[followed]
        return leaders

    @functools.cached_property
    def positions_of_joints(self) -> np.ndarray:
        """Per position of all joints, the index of the one in q that it is or follows."""
        return self._among_own(self.mobod_num_positions, self.mobod_q_starts)

    @functools.cached_property
    def velocities_of_directions(self) -> np.ndarray:
        """(nd,) the velocity that drives each direction."""
        return self._among_own(self.mobod_num_velocities, self.mobod_v_starts)

    def _among_own(self, counts: tuple[int, ...], starts: tuple[int, ...]) -> np.ndarray:
        """Per coordinate of all joints, its index among those of joints that have their own."""
        owners = np.repeat(np.arange(self.num_mobods), counts)
        is_own = self.leaders[owners] == owners
        places = np.cumsum(is_own) - 1
        return np.where(is_own, places, places[np.array(starts, int)[self.leaders[owners]]])

    @functools.cached_property
    def height(self) -> int:
        """Mobods on the longest path from the world, the world included."""
        depths = [1]
        for parent in self.mobod_parents[1:]:
            depths.append(depths[parent] + 1)
        return max(depths)

    @functools.cached_property
    def parents(self) -> np.ndarray:
        """(nm,) parent of each mobod, the world being its own."""
        return np.maximum(np.array(self.mobod_parents, dtype=int), 0)

    @functools.cached_property
    def velocity_mobods(self) -> np.ndarray:
        """(nd,) the mobod whose joint owns each direction."""
        return np.repeat(np.arange(self.num_mobods), self.mobod_num_velocities)

    @functools.cached_property
    def is_ancestor(self) -> np.ndarray:
        """(nm, nm) mask [i, j]: whether mobod j is i or an ancestor of i, the world included."""
        mask = np.eye(self.num_mobods, dtype=bool)
        for i, parent in enumerate(self.mobod_parents):
            if parent >= 0:
                mask[i] |= mask[parent]
        return mask

    @functools.cached_property
    def within_tree(self) -> np.ndarray:
        """(nm,) whether a mobod's parent belongs to its tree: false for the world and for the roots of trees."""
        return np.array(self.mobod_parents) > 0

    @functools.cached_property
    def mobod_roots(self) -> np.ndarray:
        """(nm,) the mobod next to the world that carries each; the world itself for the world."""
        roots: list[int] = []
        for mobod, parent in enumerate(self.mobod_parents):
            roots.append(roots[parent] if parent > 0 else mobod)
        return np.array(roots)

    @functools.cached_property
    def moves(self) -> np.ndarray:
        """(nd, nm) whether direction j moves mobod i."""
        return self.is_ancestor[:, self.velocity_mobods].T

    @functools.cached_property
    def body_membership(self) -> np.ndarray:
        """(nb, nm) whether body b belongs to mobod i."""
        return np.array(self.body_mobods)[:, None] == np.arange(self.num_mobods)

    @functools.cached_property
    def mobods_by_kind(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Mobods grouped by the kind of their joint, in order of first appearance."""
        groups: dict[str, list[int]] = {}
        for i, kind in enumerate(self.mobod_kinds[1:], start=1):
            groups.setdefault(kind, []).append(i)
        return tuple((kind, tuple(mobods)) for kind, mobods in groups.items())
