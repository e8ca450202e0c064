"""XML of an SDFormat file → scopes: models in models, includes expanded, frames under their names."""

import dataclasses
import re

from ..xml.source import XmlDocument
from ..xml.tree import XmlElement
from ..xml.values import required_text
from .includes import IncludeReader, add_urdf, included_model
from .read_scopes import DELIMITER, MODEL_FRAME, Context, Part, Scope, Vertex, is_reserved
from .values import child_flag, child_text, flag, raw_pose, text_of

VERSION = re.compile(r"(\d{1,6})\.(\d{1,6})")
MAX_PARTS = 100_000
MERGED = ("link", "joint", "frame", "model", "include")  # and what has a prefix, like drake:joint


@dataclasses.dataclass
class ScopeBuilder:
    """Builds the scopes of one file and of all it includes."""

    includes: IncludeReader
    num_parts: int = 0

    def add_contents(self, holder: XmlElement, context: Context) -> None:
        """All elements of a model or world into the scope of the context."""
        self.num_parts += len(holder.children)
        if self.num_parts > MAX_PARTS:
            raise holder.error(f"{holder.label}: with all includes more than {MAX_PARTS} elements; no file needs that.")
        for child in holder.children:
            if child.tag in ("link", "joint", "frame"):
                self._add_vertex(child, context)
            elif child.tag == "model":
                self.add_model(child, context)
            elif child.tag == "include":
                self._include(child, context)
            elif ":" in child.tag:
                context.scope.custom.append(Part(child, context))

    def add_model(
        self, element: XmlElement, outer: Context, inside: Context | None = None, include: XmlElement | None = None
    ) -> None:
        """A model in the scope of `outer`; what an <include> says of it goes before what it says itself."""
        where = element if include is None else include
        name = required_text(element, "name") if include is None else included_name(include, element)
        vertex = self._model_vertex(name, where, posed(element, include), outer, element)
        assert vertex.inner is not None
        vertex.attached_to = element.attributes.get("canonical_link", "").strip()
        vertex.placement_frame = placement_frame(element, include)
        static = child_flag(element, "static")
        vertex.inner.is_static = static if include is None else child_flag(include, "static", static)
        base = outer if inside is None else inside
        self.add_contents(element, dataclasses.replace(base, scope=vertex.inner, home=vertex))

    def _model_vertex(
        self, name: str, where: XmlElement, holder: XmlElement, outer: Context, element: XmlElement
    ) -> Vertex:
        """A new scope in that of `outer`, and the vertex that stands for it there; its <pose> is in `holder`."""
        X, relative_to = raw_pose(holder)
        scope_name = f"{outer.scope.name}{DELIMITER}{name}" if outer.scope.name else name
        scope = Scope(scope_name, element, outer.scope)
        scope.vertex = vertex = Vertex("model", checked_name(name, where), where, outer, X, relative_to, inner=scope)
        outer.scope.add(vertex)
        outer.scope.models.append(scope)
        return vertex

    def _add_vertex(self, element: XmlElement, context: Context) -> None:
        X, relative_to = raw_pose(element)
        name = checked_name(required_text(element, "name"), element)
        vertex = Vertex(element.tag, name, element, context, X, relative_to)
        scope = context.scope
        match element.tag:
            case "link":
                scope.links.append(vertex)
            case "joint":
                vertex.attached_to = child_text(element, "child")
                scope.joints.append(vertex)
            case _:
                vertex.attached_to = element.attributes.get("attached_to", "").strip()
                scope.frames.append(vertex)
        scope.add(vertex)

    def _include(self, include: XmlElement, context: Context) -> None:
        """The model of another file, as a model of its own or merged into this one."""
        merge = flag(include, include.attributes.get("merge", "false"))
        if merge and context.scope.is_world:
            raise include.error('<include merge="true"> stands in a world; it merges into a <model> only.')
        document = self.includes.read(include, context.finder)
        with self.includes.within(document, include):
            if document.root.tag == "robot":
                self._include_urdf(include, context, document, merge)
                return
            model = included_model(document, include)
            finder = self.includes.finder_for(document)
            inside = dataclasses.replace(context, finder=finder, version=version_of(document.root))
            if merge:
                self._merge(model, include, context, inside)
            else:
                self.add_model(model, context, inside, include)

    def _merge(self, model: XmlElement, include: XmlElement, context: Context, inside: Context) -> None:
        """The model's elements into the scope; a frame stands for what they call __model__."""
        proxy = self._proxy(included_name(include, model), include, posed(model, include), context)
        carried = [child.attributes.get("name", "") for tag in ("link", "model") for child in model.all(tag)]
        proxy.attached_to = model.attributes.get("canonical_link", "").strip() or next(iter(carried), "")
        proxy.placement_frame = placement_frame(model, include)
        self.add_contents(kept_in_merge(model), dataclasses.replace(inside, home=proxy))

    def _proxy(self, name: str, include: XmlElement, holder: XmlElement, context: Context) -> Vertex:
        """The frame of a merged model."""
        X, relative_to = raw_pose(holder)
        proxy = Vertex("frame", f"_merged__{name}__model__", include, context, X, relative_to or MODEL_FRAME)
        context.scope.add(proxy)
        context.scope.frames.append(proxy)
        return proxy

    def _include_urdf(self, include: XmlElement, context: Context, document: XmlDocument, merge: bool) -> None:
        robot = self.includes.robot(document)
        name = child_text(include, "name", "") or robot.name
        if child_flag(include, "static"):
            raise include.error(f"{include.label}: <static> has no meaning for an included URDF file; weld its links.")
        if merge:
            home = self._proxy(name, include, include, context)
            home.attached_to = robot.links[0].name
            scope = context.scope
        else:
            home = self._model_vertex(name, include, include, context, include)
            assert home.inner is not None
            scope = home.inner
        home.placement_frame = placement_frame(include, include)
        add_urdf(robot, dataclasses.replace(context, scope=scope, home=home), include)


def posed(model: XmlElement, include: XmlElement | None) -> XmlElement:
    """The element whose <pose> holds for a model: that of the <include> before its own."""
    return model if include is None or include.only("pose") is None else include


def included_name(include: XmlElement, model: XmlElement) -> str:
    """The name an included model gets."""
    return child_text(include, "name", "") or required_text(model, "name")


def placement_frame(model: XmlElement, include: XmlElement | None) -> str:
    """The frame of a model that its pose places."""
    own = model.attributes.get("placement_frame", "").strip()
    given = None if include is None else include.only("placement_frame")
    if include is None or given is None:
        return own
    if include.only("pose") is None:
        raise given.error(f"{include.label}: <placement_frame> needs a <pose>, which says where that frame is placed.")
    return text_of(given)


def checked_name(name: str, element: XmlElement) -> str:
    """Names are plain: what has a meaning of its own is reserved."""
    if DELIMITER in name:
        raise element.error(
            f"{element.label}: a name may not contain '::', which stands between a model and its parts."
        )
    if is_reserved(name):
        raise element.error(f"{element.label}: the name '{name}' is reserved; choose another.")
    return name


def kept_in_merge(model: XmlElement) -> XmlElement:
    """The model with those of its elements that a merge takes."""
    kept = [child for child in model.children if child.tag in MERGED or ":" in child.tag]
    return dataclasses.replace(model, children=kept)


def version_of(root: XmlElement) -> tuple[int, int]:
    """The version of the format, which decides a few meanings."""
    text = root.attributes.get("version", "").strip()
    found = VERSION.match(text)
    if found is None:
        raise root.error(f'<{root.tag} version="{text[:40]}">: a version like 1.9 expected.')
    return int(found.group(1)), int(found.group(2))
