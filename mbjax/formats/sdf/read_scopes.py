"""The models of an SDFormat file as scopes of names: what bears a frame, and where its pose is given."""

import dataclasses

from mbjax.errors import ParseError
from mbjax.spatial import RigidTransform

from ..files.resource_paths import ResourceFinder
from ..records.robot_records import WORLD, RobotRecord
from ..xml.tree import XmlElement
from ..xml.values import did_you_mean
from .values import identity

MODEL_FRAME = "__model__"
DELIMITER = "::"


def is_reserved(name: str) -> bool:
    """Whether a name has a meaning of its own in SDFormat."""
    return name == WORLD or (name.startswith("__") and name.endswith("__"))


@dataclasses.dataclass(eq=False)
class Vertex:
    """Something with a frame: the world, a model, a link, a joint or a frame.

    `X` is its pose in the frame `relative_to`, or, where that is empty, in what it is `attached_to` or else in `home`.
    `attached_to` names what it moves with: for a joint its child, for a model its canonical link.
    """

    kind: str
    name: str
    element: XmlElement
    context: "Context"
    X: RigidTransform = dataclasses.field(default_factory=identity)
    relative_to: str = ""
    attached_to: str = ""
    inner: "Scope | None" = None
    placement_frame: str = ""

    @property
    def label(self) -> str:
        return f"{self.kind} '{self.name}'"


@dataclasses.dataclass(eq=False)
class Context:
    """Where an element stands: names are looked up in `scope`, and `home` is what it calls __model__."""

    scope: "Scope"
    home: Vertex | None
    finder: ResourceFinder
    version: tuple[int, int]


@dataclasses.dataclass(eq=False)
class Part:
    """An element with the context it stands in."""

    element: XmlElement
    context: Context


@dataclasses.dataclass(eq=False)
class Scope:
    """The world or one model: its own elements and the models in it."""

    name: str  # absolute, like outer::inner; empty for the world
    element: XmlElement
    parent: "Scope | None" = None
    vertex: Vertex | None = None
    members: dict[str, Vertex] = dataclasses.field(default_factory=dict)
    links: list[Vertex] = dataclasses.field(default_factory=list)
    joints: list[Vertex] = dataclasses.field(default_factory=list)
    frames: list[Vertex] = dataclasses.field(default_factory=list)
    custom: list[Part] = dataclasses.field(default_factory=list)
    models: list["Scope"] = dataclasses.field(default_factory=list)
    urdfs: list[tuple[RobotRecord, Context]] = dataclasses.field(default_factory=list)
    is_static: bool = False

    @property
    def is_world(self) -> bool:
        return self.parent is None

    def add(self, vertex: Vertex) -> None:
        """Gives it a name in this scope; names of links, joints, frames and models differ."""
        first = self.members.get(vertex.name)
        if first is not None:
            raise vertex.element.error(
                f"{vertex.label} has the name of a {first.kind} (line {first.element.line}) of the same model; "
                "rename one."
            )
        self.members[vertex.name] = vertex

    def all_models(self) -> list["Scope"]:
        """This model and those in it, each before what it holds."""
        return [self, *(scope for model in self.models for scope in model.all_models())]


def look_up(name: str, context: Context, asking: XmlElement, world: Vertex) -> Vertex:
    """What a name means where it stands; `a::b` is b in the model a."""
    parts = name.split(DELIMITER)
    scope: Scope | None = context.scope
    found: Vertex | None = None
    for depth, part in enumerate(parts):
        if scope is None:
            raise no_frame(name, context, asking)
        if part == MODEL_FRAME:
            found = context.home if depth == 0 else scope.vertex
        elif part == WORLD and depth == 0 and part not in scope.members:
            found = world
        else:
            found = scope.members.get(part)
        if found is None:
            raise no_frame(name, context, asking)
        scope = found.inner
    assert found is not None
    return found


def no_frame(name: str, context: Context, asking: XmlElement) -> ParseError:
    """The error for a name that means nothing."""
    where = f"model '{context.scope.name}'" if context.scope.name else "the world"
    known = known_names(context.scope)
    return asking.error(
        f"{asking.label}: {where} has no link, joint, frame or model '{name[:200]}'. {did_you_mean(name, known)}"
    )


def known_names(scope: Scope, limit: int = 200) -> list[str]:
    """Names that may be meant, those of nested models last."""
    names = list(scope.members)
    for model in scope.models:
        if len(names) > limit:
            break
        local = model.name.rsplit(DELIMITER, 1)[-1]
        names += [f"{local}{DELIMITER}{name}" for name in model.members]
    return names
