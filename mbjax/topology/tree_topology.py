"""The integers of a finalized model: frozen, hashable, known when a program is traced.

Bodies that welds hold together move as one *mobilized body* (mobod), which is what the algorithms count.
Mobod 0 is the world with everything welded to it. The others are numbered depth first, so a parent comes
before its children, a subtree is a run of consecutive mobods, and coordinates follow in the same order.
"""

import dataclasses
import functools

import numpy as np


@dataclasses.dataclass(frozen=True)
class TreeTopology:
    """Per mobod: parent, joint kind and coordinate range. Per body and frame: where they are attached."""

    # mobilized bodies; index 0 is the world, whose entries are -1, "world" or empty
    mobod_parents: tuple[int, ...]
    mobod_kinds: tuple[str, ...]
    mobod_joints: tuple[int, ...]
    mobod_q_starts: tuple[int, ...]
    mobod_v_starts: tuple[int, ...]
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

    @functools.cached_property
    def _hash(self) -> int:
        return hash(tuple(getattr(self, field.name) for field in dataclasses.fields(self)))

    def __hash__(self) -> int:  # JAX hashes static data at every call of a compiled function
        return self._hash

    @property
    def num_mobods(self) -> int:
        return len(self.mobod_parents)

    @property
    def num_bodies(self) -> int:
        return len(self.body_mobods)

    @property
    def num_positions(self) -> int:
        return sum(self.mobod_num_positions)

    @property
    def num_velocities(self) -> int:
        return sum(self.mobod_num_velocities)

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
        """(nv,) the mobod whose joint owns each velocity."""
        return np.repeat(np.arange(self.num_mobods), self.mobod_num_velocities)

    @functools.cached_property
    def is_ancestor(self) -> np.ndarray:
        """(nm, nm) whether mobod j is i or lies between i and the world (itself included)."""
        mask = np.eye(self.num_mobods, dtype=bool)
        for i, parent in enumerate(self.mobod_parents):
            if parent >= 0:
                mask[i] |= mask[parent]
        return mask

    @functools.cached_property
    def within_tree(self) -> np.ndarray:
        """(nm,) whether a mobod's parent belongs to its tree: neither the world nor a tree's own root."""
        return np.array(self.mobod_parents) > 0

    @functools.cached_property
    def moves(self) -> np.ndarray:
        """(nv, nm) whether velocity j moves mobod i."""
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
