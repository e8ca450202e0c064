"""Drake's extensions of SDFormat: force elements between bodies, ball and distance constraints."""

from typing import Any

from mbjax.forces import LinearBushingRollPitchYaw, LinearSpringDamper

from ..notes.write_notes import WriteNotes
from ..records.model_records import is_mimic
from ..records.robot_records import RobotRecord
from ..xml.text import Element, add
from .write_scopes import Place, Scopes

POINTS = ("body_A", "p_AP", "body_B", "p_BQ")
SPRING = (*POINTS, "free_length", "stiffness", "damping")
DISTANCE = (*POINTS, "distance", "stiffness", "damping")


def add_custom(models: dict[Place, Element], scopes: Scopes, robot: RobotRecord, notes: WriteNotes) -> None:
    """All of a robot's constraints and force elements but springs in joints and mimic relations."""
    custom = Custom(models, scopes, robot, notes)
    for record in robot.force_elements:
        label = f"{record.element_class.__name__} '{record.name}'"
        if record.element_class is LinearSpringDamper:
            custom.add_points(label, "drake:linear_spring_damper", SPRING, record.options)
        elif record.element_class is LinearBushingRollPitchYaw:
            custom.add_bushing(label, record.options)
    for constraint in robot.constraints:
        label = f"{constraint.kind} constraint '{constraint.name}'"
        if constraint.kind == "ball":
            custom.add_points(label, "drake:ball_constraint", POINTS, constraint.options)
        elif constraint.kind == "distance":
            custom.add_points(label, "drake:distance_constraint", DISTANCE, constraint.options)
        elif not is_mimic(constraint, robot):
            notes.unsupported(label, "SDFormat has no such constraint")


class Custom:
    """Writes elements that name two links or frames, into the innermost model that holds both."""

    def __init__(self, models: dict[Place, Element], scopes: Scopes, robot: RobotRecord, notes: WriteNotes):
        self.models, self.scopes, self.robot, self.notes = models, scopes, robot, notes

    def add_points(self, label: str, tag: str, parts: tuple[str, ...], options: dict[str, Any]) -> None:
        """An element between two points of links, each part under the element's own name."""
        found = self._names(label, options["body_A"], options["body_B"])
        if found is None:
            return
        model, names = found
        element = add(model, tag)
        values = {**options, **dict(zip(("body_A", "body_B"), names, strict=True))}
        for part in parts:
            add(element, f"{tag}_{part}", values[part])

    def add_bushing(self, label: str, options: dict[str, Any]) -> None:
        found = self._names(label, options["frame_A"], options["frame_C"])
        if found is None:
            return
        model, names = found
        element = add(model, "drake:linear_bushing_rpy")
        for end, name in zip("AC", names, strict=True):
            add(element, f"drake:bushing_frame{end}", name)
        for kind in ("torque", "force"):
            for what in ("stiffness", "damping"):
                add(element, f"drake:bushing_{kind}_{what}", options[f"{kind}_{what}_constants"])

    def _names(self, label: str, A: str, B: str) -> tuple[Element, list[str]] | None:
        ends = [self.scopes.find(self.robot, name) for name in (A, B)]
        place = self.scopes.common(*ends)
        if not place:
            self.notes.unsupported(label, "it joins links of different models, which SDFormat cannot say")
            return None
        return self.models[place], [self.scopes.name_in(place, end) for end in ends]
