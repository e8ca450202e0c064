"""Few kernels: the order in which one rolled loop meets the nodes of a tree, and where values wait for children."""

import functools
from typing import Any, NamedTuple

import jax
import numpy as np

from ..linear.columns import take

ON_BASE = -1  # the parent of nodes that are on a body which is not among the nodes


class WalkPlan(NamedTuple):
    """Order in which a scan meets the nodes 1..n of a tree, depth first, and the places of their values.

    A node's value for its children waits in one of `num_places` places until the last of them was met. The first place
    is the world's, the second that of a base that is not met. The nodes are met as numbered where few places are
    enough, else with the largest subtree of each node last: then at most log2(n) wait at a time, whatever the tree.
    """

    order: np.ndarray | None  # (n,) the node met at each step, from 0; None: as numbered
    parent: np.ndarray  # (n,) by step: the step of the node's parent, from 1; 0 the world
    place: np.ndarray  # (n,) by step: the place of the node's own value
    inboard: np.ndarray  # (n,) by step: the place of its parent's value
    has_children: np.ndarray  # (n,) by step: whether the node has children
    is_last: np.ndarray  # (n,) by step: whether it is the last child of its parent
    num_places: int


WORLD, BASE = 0, 1  # places
FEW_PLACES = 3  # besides `WORLD` and `BASE`: another order of the nodes costs a copy of all rows


@functools.lru_cache(maxsize=256)
def walk_plan(parents: tuple[int, ...]) -> WalkPlan:
    """Plans the walk of nodes 1..n with these parents, each numbered after its parent."""
    plan = plan_as_numbered(parents)
    if plan.num_places <= 2 + FEW_PLACES:
        return plan
    order = largest_subtree_last(parents)
    step_of = {node: step for step, node in enumerate(order, start=1)} | {0: 0, ON_BASE: ON_BASE}
    plan = plan_as_numbered(tuple(step_of[parents[node - 1]] for node in order))
    return plan._replace(order=np.array(order) - 1)


def plan_as_numbered(parents: tuple[int, ...]) -> WalkPlan:
    """Plans the walk of nodes that are numbered depth first, in that order."""
    last_child = {parent: node for node, parent in enumerate(parents, start=1)}
    places, free = {0: WORLD, ON_BASE: BASE}, []
    num_places = 2
    for node, parent in enumerate(parents, start=1):
        if parent > 0 and last_child[parent] == node:
            free.append(places[parent])
        if not free:
            free.append(num_places)
            num_places += 1
        places[node] = free[-1]
        if node in last_child:
            free.pop()
    nodes = range(1, len(parents) + 1)
    return WalkPlan(
        order=None,
        parent=np.array(parents, np.int32),
        place=np.array([places[node] for node in nodes], np.int32),
        inboard=np.array([places[parent] for parent in parents], np.int32),
        has_children=np.array([node in last_child for node in nodes], bool),
        is_last=np.array([last_child[parent] == node for node, parent in enumerate(parents, start=1)], bool),
        num_places=num_places,
    )


def largest_subtree_last(parents: tuple[int, ...]) -> list[int]:
    """The nodes depth first, the children of each in order of the size of their subtrees."""
    n = len(parents)
    sizes = [1] * (n + 1)
    children: list[list[int]] = [[] for _ in range(n + 1)]
    for node in range(n, 0, -1):
        parent = max(parents[node - 1], 0)
        sizes[parent] += sizes[node]
        children[parent].append(node)
    order, to_visit = [], [0]
    while to_visit:
        node = to_visit.pop()
        order.append(node)
        to_visit += sorted(children[node], key=lambda child: -sizes[child])
    return order[1:]


def in_order_of_walk(plan: WalkPlan, tree: Any) -> Any:
    """Reorders arrays over nodes into the order of the walk."""
    return tree if plan.order is None else jax.tree.map(lambda x: take(x, plan.order, 0), tree)


def as_numbered(plan: WalkPlan, tree: Any) -> Any:
    """Reorders arrays over nodes from the order of the walk to that of their numbers: undoes `in_order_of_walk`."""
    if plan.order is None:
        return tree
    step_of = np.argsort(plan.order)
    return jax.tree.map(lambda x: take(x, step_of, 0), tree)


def as_numbered_after_world(plan: WalkPlan, tree: Any) -> Any:
    """Reorders arrays from the order of the walk to that of numbers, the world's row staying first."""
    if plan.order is None:
        return tree
    row_of = np.append(0, np.argsort(plan.order) + 1)
    return jax.tree.map(lambda x: take(x, row_of, 0), tree)
