"""Drake's extensions of an SDFormat model: constraints, bushings and spring-dampers."""

from typing import Any

import numpy as np

from mbjax.forces import LinearBushingRollPitchYaw, LinearSpringDamper

from ..notes.load_notes import LoadNotes
from ..records.robot_records import ConstraintRecord, ForceElementRecord
from ..xml.tree import XmlElement
from .pose_graph import PoseGraph
from .read_scopes import Part, Scope, look_up
from .references import References
from .values import child_number, child_numbers, child_text

BUSHING, SPRING = "drake:linear_bushing_rpy", "drake:linear_spring_damper"
BALL, DISTANCE = "drake:ball_constraint", "drake:distance_constraint"
NO_PHYSICS = {
    "drake:tendon_constraint": "tendon constraints are not simulated",
    "drake:surface_velocity_axis": "conveyor surfaces are not simulated",
}


class CustomReader:
    """Reads the elements with Drake's prefix that are forces or constraints."""

    def __init__(self, graph: PoseGraph, references: References, notes: LoadNotes):
        self.graph, self.references, self.notes = graph, references, notes

    def forces(self, scope: Scope) -> list[ForceElementRecord]:
        """Bushings first, then spring-dampers, as in Drake."""
        bushings = [self._bushing(part) for part in scope.custom if part.element.tag == BUSHING]
        return bushings + [self._spring(part) for part in scope.custom if part.element.tag == SPRING]

    def constraints(self, scope: Scope) -> list[ConstraintRecord]:
        """Ball constraints first, then distances, as in Drake."""
        balls = [self._ball(part) for part in scope.custom if part.element.tag == BALL]
        return balls + [self._distance(part) for part in scope.custom if part.element.tag == DISTANCE]

    def _bushing(self, part: Part) -> ForceElementRecord:
        element = part.element
        options: dict[str, Any] = {
            f"frame_{end}": self._name(part, f"drake:bushing_frame{end}", bodies_only=False) for end in "AC"
        }
        for kind in ("torque", "force"):
            for what in ("stiffness", "damping"):
                value = child_numbers(element, f"drake:bushing_{kind}_{what}", 3)
                if np.any(value < 0.0):
                    raise element.error(
                        f"{element.label}: <drake:bushing_{kind}_{what}> is negative; give numbers >= 0."
                    )
                options[f"{kind}_{what}_constants"] = value
        return ForceElementRecord("", element.line, element.place, LinearBushingRollPitchYaw, options)

    def _spring(self, part: Part) -> ForceElementRecord:
        element, prefix = part.element, f"{SPRING}_"
        options = self._points(part, prefix)
        options["free_length"] = positive(element, f"{prefix}free_length")
        options["stiffness"] = child_number(element, f"{prefix}stiffness", lowest=0.0)
        options["damping"] = child_number(element, f"{prefix}damping", lowest=0.0)
        return ForceElementRecord("", element.line, element.place, LinearSpringDamper, options)

    def _ball(self, part: Part) -> ConstraintRecord:
        element = part.element
        return ConstraintRecord("", element.line, element.place, "ball", self._points(part, f"{BALL}_"))

    def _distance(self, part: Part) -> ConstraintRecord:
        element, prefix = part.element, f"{DISTANCE}_"
        options = self._points(part, prefix)
        options["distance"] = positive(element, f"{prefix}distance")
        options["stiffness"] = positive(element, f"{prefix}stiffness")
        options["damping"] = child_number(element, f"{prefix}damping", lowest=0.0)
        return ConstraintRecord("", element.line, element.place, "distance", options)

    def _points(self, part: Part, prefix: str) -> dict[str, Any]:
        """Two bodies, and a point of each."""
        options: dict[str, Any] = {}
        for body, point in (("A", "P"), ("B", "Q")):
            options[f"body_{body}"] = self._name(part, f"{prefix}body_{body}", bodies_only=True)
            options[f"p_{body}{point}"] = child_numbers(part.element, f"{prefix}p_{body}{point}", 3)
        return options

    def _name(self, part: Part, tag: str, *, bodies_only: bool) -> str:
        element, scope = part.element, part.context.scope
        name = child_text(element, tag)
        vertex = look_up(name, part.context, element, self.graph.world)
        if bodies_only and vertex.kind not in ("link", "world"):
            raise element.error(f"{element.label}: <{tag}> names {vertex.label}, where a link is expected.")
        return self.references.frame_name(vertex, scope, element)


def positive(element: XmlElement, tag: str) -> float:
    """A number above zero."""
    value = child_number(element, tag, allow_infinite=tag.endswith("stiffness"))
    if value <= 0.0:
        raise element.error(f"{element.label}: <{tag}> is {value:g}; give a number above 0.")
    return value
