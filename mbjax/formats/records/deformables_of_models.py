"""Deformable bodies of a model as records, with the numbers that the model has now."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from mbjax.geometry import ProximityProperties, TetrahedralMesh
from mbjax.geometry.proximity_properties import DEFAULT_RELAXATION_TIME
from mbjax.model import DeformableBodies, DeformableBodyInfo, MultibodyModel
from mbjax.spatial import RigidTransform

from ..notes.write_notes import WriteNotes
from .deformable_records import DeformableRecord, WallRecord
from .names import Names
from .numbers import as_double
from .robot_records import RobotRecord

PLACE = "model:0"  # what stands for the place in a file


def deformable_records(
    model: MultibodyModel, names: Names, notes: WriteNotes
) -> Iterator[tuple[int, DeformableRecord]]:
    """A record for each deformable body, by model instance; what no robot file has goes to `notes`."""
    deformables = model.deformables
    if deformables is None:
        return
    list_what_no_format_holds(model, deformables, notes)
    positions = as_double(np.asarray(deformables.reference_positions))
    for body in deformables.layout.bodies:
        name = names.local("deformable", body.index)
        label = f"deformable body '{body.name}'"
        points = positions[deformables.corners(body.index)]
        record = DeformableRecord(
            name, 0, PLACE, None, TetrahedralMesh(points, deformables.tetrahedra(body.index), label),
            RigidTransform(np.eye(3), np.zeros(3)), material_of(deformables, body, label, notes),
            properties_of(deformables, body),
        )  # fmt: skip
        record.walls = walls_of(deformables, body, points, label, notes)
        yield body.model_instance, record


def properties_of(deformables: DeformableBodies, body: DeformableBodyInfo) -> ProximityProperties:
    """Friction, dissipation and relaxation time; the coefficient of friction is also the static one."""
    friction, relaxation_time = (
        float(as_double(np.asarray(x))[body.index]) for x in (deformables.dynamic_friction, deformables.relaxation_time)
    )
    dissipation = None
    if body.dissipation_index >= 0:
        dissipation = float(as_double(np.asarray(deformables.hunt_crossley_dissipation))[body.dissipation_index])
    return ProximityProperties(
        friction,
        hunt_crossley_dissipation=dissipation,
        relaxation_time=None if relaxation_time == DEFAULT_RELAXATION_TIME else relaxation_time,
    )


def material_of(
    deformables: DeformableBodies, body: DeformableBodyInfo, label: str, notes: WriteNotes
) -> dict[str, Any]:
    """The material's numbers and its law; those that differ from element to element are their mean."""
    found: dict[str, Any] = {}
    for name, numbers in deformables.material(body.index).items():
        values = as_double(np.asarray(numbers))
        is_even = np.all(values == values[0])
        if not is_even:
            notes.unsupported(label, f"its {name} differs from element to element, which no robot file says")
        found[name] = float(values[0] if is_even else values.mean())
    found["model"] = body.law
    return found


def walls_of(
    deformables: DeformableBodies, body: DeformableBodyInfo, points: Float[np.ndarray, "n 3"], label: str,
    notes: WriteNotes,
) -> list[WallRecord]:  # fmt: skip
    """The walls that hold nodes of a body, if they still hold the same ones."""
    held = deformables.mesh.is_held[deformables.nodes(body.index)][: len(points)]
    within = np.zeros(len(points), bool)
    for p_WQ, n_W in body.walls:
        within |= (points - np.array(p_WQ)) @ np.array(n_W) < 0.0
    if np.any(within != held):
        notes.unsupported(label, "its walls would hold other nodes now, since its reference positions have changed")
        return []
    return [WallRecord(PLACE, p_WQ, n_W) for p_WQ, n_W in body.walls]


def list_what_no_format_holds(model: MultibodyModel, deformables: DeformableBodies, notes: WriteNotes) -> None:
    """Elements that are not linear, fixed nodes, force densities, gravity and bodies that are off."""
    bodies = deformables.layout.bodies
    for body, kind in zip(bodies, deformables.mesh.kinds_of_bodies, strict=True):
        if kind != "linear":
            notes.unsupported(f"deformable body '{body.name}'", f"its elements are {kind}, and no file says so")
    for fixed in deformables.layout.fixed:
        what = f"{len(fixed.nodes)} of its nodes are fixed to body '{model.layout.bodies[fixed.body].name}'"
        notes.unsupported(f"deformable body '{bodies[fixed.deformable].name}'", f"{what}, which no file says")
    if deformables.force_densities:
        notes.unsupported("force densities", f"{len(deformables.force_densities)} of them, which no robot file has")
    for body, enabled in zip(bodies, np.asarray(deformables.enabled), strict=True):
        if not enabled:
            notes.unsupported(f"deformable body '{body.name}'", "it is disabled, which no robot file says")
        if not body.has_gravity:
            notes.unsupported(f"deformable body '{body.name}'", "it feels no gravity, which no file says")


def refuse_deformable_bodies(robots: Sequence[RobotRecord], notes: WriteNotes) -> None:
    """For formats that have none."""
    for record in (record for robot in robots for record in robot.deformables):
        notes.unsupported(f"deformable body '{record.name}'", f"{notes.format_name} has none; to_sdf writes them")
