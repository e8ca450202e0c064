"""How records of one model name what is in another: by its scoped name in the file."""

import dataclasses

from ..records.robot_records import WORLD
from ..xml.tree import XmlElement
from .pose_graph import PoseGraph, is_deformable
from .read_scopes import DELIMITER, MODEL_FRAME, Scope, Vertex


@dataclasses.dataclass
class References:
    """Names of links and frames as records hold them."""

    graph: PoseGraph

    def body_name(self, body: Vertex, scope: Scope, asking: XmlElement) -> str:
        """A link's name in a model: its own, or scoped; an error where the link is deformable."""
        if is_deformable(body):
            raise asking.error(
                f"{asking.label}: it is attached to the deformable link '{body.name}', which has no frame that moves "
                "with it, as in Drake. Attach it to a rigid link, and that one to nodes of the body by "
                "plant.add_fixed_constraint."
            )
        if body is self.graph.world:
            return WORLD
        return body.name if body.context.scope is scope else self.absolute_name(body)

    def absolute_name(self, body: Vertex) -> str:
        """A link's scoped name."""
        return WORLD if body is self.graph.world else f"{body.context.scope.name}{DELIMITER}{body.name}"

    def frame_name(self, vertex: Vertex, scope: Scope, asking: XmlElement) -> str:
        """The name of a link or frame; a model's is that of its own frame, and a joint's that of its child link."""
        if vertex.kind == "model":
            assert vertex.inner is not None
            return MODEL_FRAME if vertex.inner is scope else f"{vertex.inner.name}{DELIMITER}{MODEL_FRAME}"
        if vertex.kind == "joint":
            return self.body_name(self.graph.body_of(vertex), scope, asking)
        return self.body_name(vertex, scope, asking)
