"""Properties of the tree on random graphs of bodies: order, subtrees, coordinates, height."""

import numpy as np
import pytest

from mbjax.errors import ModelError
from mbjax.topology import JointEdge, build_spanning_tree
from tests.models import ALL_KINDS, random_tree

KINDS = ("revolute", "weld", "universal", "prismatic", "weld", "planar", "revolute", "screw", "ball_rpy", "weld")
SEEDS = range(6)


def shuffled(seed: int) -> tuple[str, ...]:
    return tuple(np.random.default_rng(seed).permutation(KINDS * 2).tolist())


@pytest.fixture(params=SEEDS, scope="module")
def twin(request):
    return random_tree(100 + request.param, shuffled(request.param))


def test_parents_come_before_children(twin):
    parents = twin.model.topology.mobod_parents
    assert parents[0] == -1
    assert all(0 <= parent < mobod for mobod, parent in enumerate(parents) if mobod)


def test_subtrees_are_runs(twin):
    topology = twin.model.topology
    for mobod in range(topology.num_mobods):
        members = np.flatnonzero(topology.is_ancestor[:, mobod])
        np.testing.assert_array_equal(members, np.arange(mobod, mobod + members.size))


def test_coordinates_follow_the_mobods(twin):
    topology = twin.model.topology
    assert np.all(np.diff(topology.velocity_mobods) >= 0)
    q_ends = np.cumsum(topology.mobod_num_positions)
    np.testing.assert_array_equal(topology.mobod_q_starts[1:], q_ends[:-1])
    assert topology.num_positions == q_ends[-1] == twin.plant.num_positions()
    assert topology.num_velocities == twin.plant.num_velocities()


def test_masks_agree_with_walking_the_parents(twin):
    topology = twin.model.topology
    for mobod in range(topology.num_mobods):
        path = {mobod}
        while topology.mobod_parents[min(path)] >= 0:
            path.add(topology.mobod_parents[min(path)])
        assert set(np.flatnonzero(topology.is_ancestor[mobod])) == path
        moving = {j for j, owner in enumerate(topology.velocity_mobods) if owner in path}
        assert set(np.flatnonzero(topology.moves[:, mobod])) == moving


def test_welded_bodies_share_a_mobod(twin):
    topology = twin.model.topology
    for joint in twin.model.layout.joints:
        parent, child = (
            topology.body_mobods[topology.frame_bodies[f]] for f in (joint.parent_frame, joint.child_frame)
        )
        assert (parent == child) == (joint.kind == "weld")
        if joint.kind != "weld":
            assert topology.mobod_parents[child] == parent
    assert topology.body_membership.sum() == twin.model.num_bodies


def test_height_counts_levels(twin):
    topology = twin.model.topology
    assert topology.height == topology.is_ancestor.sum(axis=1).max()


def test_joints_of_one_parent_keep_the_order_of_declaration(twin):
    """Siblings that no weld lies between are numbered as they were declared."""
    topology, model = twin.model.topology, twin.model
    by_body: dict[int, list[int]] = {}
    for joint in model.layout.joints:
        if joint.kind != "weld" and not joint.name.startswith("body"):
            by_body.setdefault(topology.frame_bodies[joint.parent_frame], []).append(joint.mobod)
    assert all(mobods == sorted(mobods) for mobods in by_body.values())


def test_without_welds_the_coordinates_are_drakes():
    """Drake and mbjax number the same tree alike where no bodies merge."""
    kinds = tuple(k for k in ALL_KINDS if k != "weld" and not k.endswith("floating"))
    for seed in SEEDS:
        twin = random_tree(200 + seed, kinds)
        np.testing.assert_array_equal(twin.to_drake_q, np.arange(twin.model.num_positions))
        np.testing.assert_array_equal(twin.to_drake_v, np.arange(twin.model.num_velocities))


def test_long_chain_needs_no_recursion():
    n = 5000
    names = ["world", *(f"b{i}" for i in range(n))]
    edges = [JointEdge(i, f"j{i}", i, i + 1, False) for i in range(n)]
    nodes = build_spanning_tree(names, edges)
    assert [node.mobod for node in nodes] == list(range(1, n + 1))


def test_cycle_and_second_parent_are_named():
    names = ["world", "a", "b", "c"]
    loop = [JointEdge(i, f"j{i}", 1 + i, 1 + (i + 1) % 3, False) for i in range(3)]
    with pytest.raises(ModelError, match=r"cycle.*constraint"):
        build_spanning_tree(names, loop)
    twice = [JointEdge(0, "first", 0, 1, False), JointEdge(1, "second", 2, 1, False, "robot.urdf:7")]
    with pytest.raises(ModelError, match=r"'a' is the child of two joints, 'first' and 'second' \(robot\.urdf:7\)"):
        build_spanning_tree(names, twice)
