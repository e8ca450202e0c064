"""The deformable bodies of `print(model)`, one line for each."""

from collections import Counter

import numpy as np

from .array_summary import range_text
from .deformable_bodies import DeformableBodies, DeformableBodyInfo
from .known_leaves import UNKNOWN, concrete, known_element_masses
from .multibody_model import MultibodyModel
from .whole_table import Column, WholeTable


def deformable_table(model: MultibodyModel) -> WholeTable | None:
    """The table of deformable bodies: mesh, law, mass, modulus, and what holds their nodes; None without any."""
    deformables = model.deformables
    if deformables is None:
        return None
    bodies, mesh = deformables.layout.bodies, deformables.mesh
    names = [body.name for body in bodies]
    return WholeTable(
        "deformable bodies",
        [
            Column("body", [x.name if names.count(x.name) == 1 else x.scoped_name for x in bodies], True),
            Column("nodes", [str(count) for count in mesh.nodes_of_bodies]),
            Column("elements", [elements_text(deformables, x) for x in bodies]),
            Column("law", [body.law for body in bodies], True),
            Column("kg", deformable_masses(deformables)),
            Column("Young's modulus (Pa)", [numbers_of_body(deformables, "youngs_modulus", x) for x in bodies]),
            Column("Poisson's ratio", [numbers_of_body(deformables, "poissons_ratio", x) for x in bodies]),
            Column("held", [held_text(deformables, x) for x in bodies]),
            Column("fixed to", [fixed_text(model, deformables, x) for x in bodies], True),
        ],
    )


def elements_text(deformables: DeformableBodies, body: DeformableBodyInfo) -> str:
    """How many elements a body has, and their kind unless they are linear."""
    count, kind = (x[body.index] for x in (deformables.mesh.elements_of_bodies, deformables.mesh.kinds_of_bodies))
    return f"{count}" if kind == "linear" else f"{count} {kind}"


def deformable_masses(deformables: DeformableBodies) -> list[str]:
    """Mass of each body, in kg."""
    masses = known_element_masses(deformables)
    if masses is None or masses.ndim > 1:
        return [UNKNOWN] * deformables.num_bodies
    return [f"{masses[deformables.mesh.elements_of(i)].sum():.4g}" for i in range(deformables.num_bodies)]


def numbers_of_body(deformables: DeformableBodies, what: str, body: DeformableBodyInfo) -> str:
    """A body's material number of a kind, or the least and the most of its elements."""
    numbers = concrete(getattr(deformables, what))
    if numbers is None:
        return UNKNOWN
    of_body = numbers[deformables.layout.numbers_of(what, body.index)]
    return f"{of_body[0]:.4g}" if np.ptp(of_body) == 0.0 else range_text(of_body)


def held_text(deformables: DeformableBodies, body: DeformableBodyInfo) -> str:
    """Number of a body's nodes that walls hold; empty for none."""
    count = int(deformables.mesh.is_held[deformables.mesh.nodes(body.index)].sum())
    return f"{count} nodes" if count else ""


def fixed_text(model: MultibodyModel, deformables: DeformableBodies, body: DeformableBodyInfo) -> str:
    """The rigid bodies to which nodes of a body are fixed, each with the number of these nodes."""
    counts: Counter[str] = Counter()
    for fixed in deformables.layout.fixed:
        if fixed.deformable == body.index:
            counts[model.body_names[fixed.body]] += len(fixed.nodes)
    return ", ".join(f"{name} ({count} nodes)" for name, count in counts.items())
