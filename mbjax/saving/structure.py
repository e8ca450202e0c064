"""Whether the layout of a decoded model says what its tree says."""

from collections.abc import Iterable, Iterator
from typing import Any

from mbjax.joints import JOINT_KINDS
from mbjax.model.model_layout import ModelLayout
from mbjax.topology import TreeTopology


def find_misfit(topology: TreeTopology, layout: ModelLayout) -> str | None:
    """What is wrong with the structure of a model, in words; None where nothing is."""
    for what, indices, count in indices_of(topology, layout):
        wrong = [index for index in indices if not 0 <= index < count]
        if wrong:
            return f"{what} has index {wrong[0]} of {count}"
    if any(parent >= mobod for mobod, parent in enumerate(topology.mobod_parents)):
        return "a body comes before the one that carries it"
    return next((f"its {what} are not those of its tree" for what, a, b in pairs_of(topology, layout) if a != b), None)


def indices_of(topology: TreeTopology, layout: ModelLayout) -> Iterator[tuple[str, Iterable[int], int]]:
    """Indices, by what holds them, and how many there are of what they name."""
    nm, nb, nf, nj = topology.num_mobods, topology.num_bodies, len(topology.frame_bodies), len(layout.joints)
    elements = (*layout.bodies, *layout.frames, *layout.joints, *layout.actuators)
    yield "the tree", topology.mobod_parents[1:], nm
    yield "the body of a joint", (b for j in layout.joints for b in (j.parent_body, j.child_body)), nb
    yield "the frame of a joint", (f for j in layout.joints for f in (j.parent_frame, j.child_frame)), nf
    yield "the frame of a body", layout.body_frames, nf
    yield "the parent of a frame", (f.parent for f in layout.frames if f.parent is not None), nf
    yield "the joint of an actuator", (a.joint for a in layout.actuators), nj
    yield "the velocity of an actuator", layout.velocities_of_actuators, topology.num_velocities
    yield "a joint with an axis", (*layout.axis_joints, *layout.screw_joints), nj
    yield "a frame with an offset", layout.offset_frames, nf
    yield "the model instance of an element", (e.model_instance for e in elements), len(layout.instance_names)


def pairs_of(topology: TreeTopology, layout: ModelLayout) -> Iterator[tuple[str, Any, Any]]:
    """What the layout says, and beside it the same of the tree."""
    moving = sorted((j for j in layout.joints if j.mobod >= 0), key=lambda j: j.mobod)
    counts = [(JOINT_KINDS[j.kind].num_positions, JOINT_KINDS[j.kind].num_velocities) for j in moving]
    for elements in (layout.bodies, layout.frames, layout.joints, layout.actuators):
        yield "indices", [e.index for e in elements], list(range(len(elements)))
    for elements in (layout.bodies, layout.joints, layout.actuators):
        yield "names", len({(e.model_instance, e.name) for e in elements}), len(elements)
    yield "bodies", tuple(b.mobod_index for b in layout.bodies), topology.body_mobods
    yield "frames", tuple(f.body for f in layout.frames), topology.frame_bodies
    yield "joints", tuple(j.index for j in moving), topology.mobod_joints[1:]
    yield "kinds of joints", tuple(j.kind for j in moving), topology.mobod_kinds[1:]
    yield "positions", tuple(j.all_q_start for j in moving), topology.mobod_q_starts[1:]
    yield "velocities", tuple(j.all_v_start for j in moving), topology.mobod_v_starts[1:]
    starts = [
        (topology.positions_of_joints[j.all_q_start], topology.velocities_of_directions[j.all_v_start]) for j in moving
    ]
    yield "coordinates", [(j.q_start, j.v_start) for j in moving], starts
    sizes = zip(topology.mobod_num_positions[1:], topology.mobod_num_velocities[1:], strict=True)
    yield "numbers of coordinates", counts, list(sizes)
    of_bodies = [b.inboard_joint for b in layout.bodies if b.inboard_joint is not None]
    yield "joints of bodies", of_bodies, [layout.joints[j.index] for j in of_bodies]
