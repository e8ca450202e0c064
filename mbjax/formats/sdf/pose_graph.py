"""Where everything of an SDFormat file is: poses in the world, and the links that frames move with."""

import dataclasses

from mbjax.spatial import RigidTransform

from .read_scopes import Vertex, look_up
from .values import identity, inverse, product

MAX_STEPS = 32
DEFORMABLE = "drake:deformable_properties"


@dataclasses.dataclass
class PoseGraph:
    """Resolves poses and attachments, each once; names of frames may form no cycle."""

    world: Vertex
    _poses: dict[Vertex, RigidTransform] = dataclasses.field(default_factory=dict)
    _bodies: dict[Vertex, Vertex] = dataclasses.field(default_factory=dict)

    def pose(self, vertex: Vertex) -> RigidTransform:
        """X_WV of a vertex V."""
        chain = self._chain(vertex, self._poses, self.base_of, "poses are relative to one another in a cycle")
        for link in reversed(chain):
            base = self.base_of(link)
            X_WB = self._poses.get(base, identity()) if base is not None else identity()
            self._poses[link] = product(X_WB, self.local_pose(link))
        return self._poses[vertex]

    def relative_pose(self, base: Vertex, vertex: Vertex) -> RigidTransform:
        """X_BV, by way of what both are given relative to, where that is near: then what is given is exact."""
        for end in (base, vertex):
            self.pose(end)  # refuses cycles
        above_base, above_vertex = (self._near(v) for v in (base, vertex))
        common = next((v for v in above_vertex if v in above_base), None)
        if common is None:
            return product(inverse(self.pose(base)), self.pose(vertex))
        if common is base:
            return above_vertex[common]
        return product(inverse(above_base[common]), above_vertex[common])

    def _near(self, vertex: Vertex) -> dict[Vertex, RigidTransform]:
        """The vertex and a few more that its pose is relative to, with X_AV."""
        found, X, at = {vertex: identity()}, identity(), vertex
        while len(found) < MAX_STEPS and (base := self.base_of(at)) is not None:
            X = self.local_pose(at) if at is vertex else product(self.local_pose(at), X)
            found[base] = X
            at = base
        return found

    def pose_in(self, vertex: Vertex, X_VG: RigidTransform, relative_to: str, asking: Vertex) -> RigidTransform:
        """X_LG of what lies on a link L: as given, or from the frame it is relative to."""
        if not relative_to:
            return X_VG
        other = look_up(relative_to, asking.context, asking.element, self.world)
        return product(self.relative_pose(vertex, other), X_VG)

    def body_of(self, vertex: Vertex) -> Vertex:
        """The link that a vertex moves with, or the world."""
        chain = self._chain(vertex, self._bodies, self.carrier_of, "frames are attached to one another in a cycle")
        for link in reversed(chain):
            carrier = self.carrier_of(link)
            self._bodies[link] = link if carrier is None else self._bodies[carrier]
        return self._bodies[vertex]

    def base_of(self, vertex: Vertex) -> Vertex | None:
        """The vertex in whose frame the pose of another is given; None for the world."""
        if vertex is self.world:
            return None
        if vertex.relative_to:
            return look_up(vertex.relative_to, vertex.context, vertex.element, self.world)
        if vertex.kind == "joint" or (vertex.kind == "frame" and vertex.attached_to):
            return self.attached(vertex)
        return vertex.context.home or self.world

    def carrier_of(self, vertex: Vertex) -> Vertex | None:
        """What a vertex is attached to; None for links and the world, which carry themselves."""
        if vertex is self.world or vertex.kind == "link":
            return None
        if vertex.kind == "model":
            link = canonical(vertex)
            return self.world if link is None or is_deformable(link) else link
        if vertex.attached_to:
            return self.attached(vertex)
        return vertex.context.home or self.world

    def attached(self, vertex: Vertex) -> Vertex:
        """The vertex that `attached_to` names."""
        return look_up(vertex.attached_to, vertex.context, vertex.element, self.world)

    def local_pose(self, vertex: Vertex) -> RigidTransform:
        """The pose in the base; a model with a placement frame is where this frame of it lies there."""
        if not vertex.placement_frame:
            return vertex.X
        scope = vertex.context.scope if vertex.inner is None else vertex.inner
        context = dataclasses.replace(vertex.context, scope=scope, home=vertex)
        frame = look_up(vertex.placement_frame, context, vertex.element, self.world)
        return product(vertex.X, inverse(self._pose_within(vertex, frame)))

    def _pose_within(self, model: Vertex, vertex: Vertex) -> RigidTransform:
        """X_MV of something in a model, which does not depend on where the model is."""
        X, seen = identity(), set()
        while vertex is not model:
            base = self.base_of(vertex)
            if base is None or vertex in seen:
                raise model.element.error(
                    f"{model.label}: the placement frame '{model.placement_frame}' is not placed within the model."
                )
            seen.add(vertex)
            X = product(self.local_pose(vertex), X)
            vertex = base
        return X

    def _chain(self, vertex: Vertex, known, step, what: str) -> list[Vertex]:
        """The vertices from this one on that are not known yet."""
        chain: dict[Vertex, None] = {}
        current: Vertex | None = vertex
        while current is not None and current not in known:
            if current in chain:
                cycle = list(chain)[list(chain).index(current) :]
                way = " -> ".join(f"{v.label} (line {v.element.line})" for v in [*cycle, current])
                raise current.element.error(f"{what}: {way}. Give one of them relative to the model.")
            chain[current] = None
            current = step(current)
        return list(chain)


def is_deformable(vertex: Vertex) -> bool:
    """Whether it is a deformable link, which has a pose at the start alone."""
    return vertex.kind == "link" and vertex.element.only(DEFORMABLE) is not None


def canonical(model: Vertex) -> Vertex | None:
    """The link that a model's own frame is attached to: the named one, else the first, else that of a nested model."""
    scope = model.inner
    assert scope is not None
    if model.attached_to:
        context = dataclasses.replace(model.context, scope=scope, home=model)
        return look_up(model.attached_to, context, model.element, model)
    for vertex in scope.members.values():
        if vertex.kind == "link":
            return vertex
    for nested in scope.models:
        assert nested.vertex is not None
        found = canonical(nested.vertex)
        if found is not None:
            return found
    return None
