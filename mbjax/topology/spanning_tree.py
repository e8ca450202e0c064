"""Builds the depth-first tree of mobilized bodies from bodies and joints; errors name cycles and second parents."""

import dataclasses
from collections.abc import Sequence

from mbjax.errors import ModelError

WORLD = 0


@dataclasses.dataclass(frozen=True)
class JointEdge:
    """A joint as an edge of the graph of bodies."""

    joint: int
    name: str
    parent_body: int
    child_body: int
    is_weld: bool
    place: str = ""


@dataclasses.dataclass(frozen=True)
class TreeNode:
    """A body in depth-first order: its inboard edge (None for a body that floats) and its mobod."""

    body: int
    edge: JointEdge | None
    parent_body: int
    mobod: int


def build_spanning_tree(body_names: Sequence[str], edges: Sequence[JointEdge]) -> list[TreeNode]:
    """All bodies but the world in depth-first order by declaration; those without a joint float."""
    inboard = inboard_edges(body_names, edges)
    reject_cycles(body_names, inboard)
    outboard: dict[int, list[JointEdge]] = {}
    for edge in edges:
        outboard.setdefault(edge.parent_body, []).append(edge)

    nodes: list[TreeNode] = []
    mobod_of = {WORLD: 0}
    num_mobods = 1
    floating = [body for body in range(1, len(body_names)) if body not in inboard]
    # A stack of bodies to place; the world's joints come first, then the bodies that float.
    stack: list[tuple[int, JointEdge | None, int]] = [(body, None, WORLD) for body in reversed(floating)]
    stack += [(edge.child_body, edge, WORLD) for edge in reversed(outboard.get(WORLD, []))]
    while stack:
        body, edge, parent = stack.pop()
        if edge is not None and edge.is_weld:
            mobod = mobod_of[parent]
        else:
            mobod, num_mobods = num_mobods, num_mobods + 1
        mobod_of[body] = mobod
        nodes.append(TreeNode(body, edge, parent, mobod))
        # welded bodies first, though what is welded to them may be on joints and numbered before their siblings
        children = sorted(outboard.get(body, []), key=lambda e: not e.is_weld)
        stack += [(e.child_body, e, body) for e in reversed(children)]
    return nodes


def inboard_edges(body_names: Sequence[str], edges: Sequence[JointEdge]) -> dict[int, JointEdge]:
    """Finds the joint that carries each body; raises where a body has a second one."""
    inboard: dict[int, JointEdge] = {}
    for edge in edges:
        first = inboard.get(edge.child_body)
        if first is not None:
            place = "".join(f" ({e.place})" for e in (edge,) if e.place)
            raise ModelError(
                f"body '{body_names[edge.child_body]}' is the child of two joints, '{first.name}' and "
                f"'{edge.name}'{place}. A tree allows one: turn one joint around, or cut the loop there and "
                "close it with a constraint."
            )
        inboard[edge.child_body] = edge
    return inboard


def reject_cycles(body_names: Sequence[str], inboard: dict[int, JointEdge]) -> None:
    """Raises where a body does not reach the world or a floating body by going inboard."""
    rooted: set[int] = {WORLD}
    for start in inboard:
        path: dict[int, None] = {}  # in order
        body = start
        while body in inboard and body not in rooted:
            if body in path:
                walked = list(path)
                loop = [*walked[walked.index(body) :], body]
                names = " <- ".join(f"'{body_names[b]}'" for b in loop)
                joints = ", ".join(f"'{inboard[b].name}'" for b in loop[:-1])
                raise ModelError(
                    f"the joints {joints} form a cycle: {names}. Remove one of them and close the loop with "
                    "a constraint."
                )
            path[body] = None
            body = inboard[body].parent_body
        rooted.update(path)
