"""Finds numbers that a model's dtype cannot compute with, because their squares and products overflow."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mbjax.errors import ModelError
from mbjax.geometry import Convex, shape_lengths
from mbjax.model import CouplerConstraint
from mbjax.model.deformable_bodies import MATERIAL_NUMBERS
from mbjax.number_rules import shown

from .queries import PlantQueries


class Overflow(NamedTuple):
    """A message on a number that overflows, and the `file:line` it comes from, where that is known."""

    message: str
    source: str | None


def float_type(call: str, dtype: Any) -> Any:
    """The dtype of a model's leaves, JAX's default float for None; a `ModelError` for what is no float type."""
    try:
        found = jnp.dtype(jax.dtypes.canonicalize_dtype(float) if dtype is None else dtype)
    except TypeError:
        found = None
    if found is None or not jnp.issubdtype(found, jnp.floating):
        got = shown(dtype) if found is None else found
        raise ModelError(f"{call}: dtype must be a float type, like jnp.float32, got {got}.")
    return found


def find_overflow(plant: PlantQueries, dtype: Any) -> Overflow | None:
    """Finds the first number whose square overflows in a dtype, or mass that vanishes in it; limits are exempt."""
    largest = largest_computed_with(dtype)
    reach = 0.0
    for what, value, unit, source in numbers_of_plant(plant):
        size = float(np.max(np.abs(np.asarray(value, dtype=float)), initial=0.0))
        if not size < largest or (what.startswith("mass") and 0.0 < size < 1.0 / largest):
            return Overflow(f"the {what} of {size:g}{unit} {beyond(dtype, largest)}", source)
    for frame in plant.frames:
        reach += 0.0 if frame.X_PF is None else float(np.linalg.norm(np.asarray(frame.X_PF.translation, float)))
    inertias = [(b, b.inertia) for b in plant.bodies if b.inertia is not None]
    coms = [float(np.linalg.norm(np.asarray(M.com, float))) for _, M in inertias]
    mass = math.fsum(float(M.mass) for _, M in inertias)
    inertia = mass * (1.0 + reach + max(coms, default=0.0)) ** 2
    if not inertia < largest:
        message = f"masses of {mass:g} kg in all and frames {reach:g} m apart in all make moments of inertia that "
        return Overflow(message + f"reach {inertia:g} kg m², which {beyond(dtype, largest)}", None)
    return None


def largest_computed_with(dtype: Any) -> float:
    """Bound below which squares and products are finite; the largest number for float16, which has few such."""
    most = float(jnp.finfo(dtype).max)
    return math.sqrt(most) if most > 1e30 else most


def beyond(dtype: Any, largest: float) -> str:
    """Says why a number is refused, and the remedy."""
    name = np.dtype(dtype).name
    other = "" if name == "float64" else ', or compute in double precision (dtype="float64", with jax_enable_x64)'
    return (
        f"is beyond what {name} computes with, for products of numbers outside {1.0 / largest:.2g} to {largest:.2g} "
        f"overflow. Check the units (kg, m, s, rad){other}."
    )


def numbers_of_plant(plant: PlantQueries) -> Iterator[tuple[str, Any, str, str | None]]:
    """Description, value, unit and source of every number that enters products."""
    for soft in getattr(plant, "deformables", ()):
        for name in MATERIAL_NUMBERS:
            yield f"material's {name} of deformable body '{soft.name}'", getattr(soft.material, name), "", soft.source
        yield f"node position of deformable body '{soft.name}'", soft.points, " m", soft.source
    for body in plant.bodies:
        if body.inertia is not None:
            mass, G = float(body.inertia.mass), body.inertia.unit_inertia
            moments = np.concatenate([np.asarray(G.moments, float), np.asarray(G.products, float)])
            yield f"mass of body '{body.name}'", mass, " kg", body.source
            yield f"centre of mass of body '{body.name}'", body.inertia.com, " m", body.source
            yield f"unit inertia of body '{body.name}'", moments, " m²", body.source
            with np.errstate(over="ignore"):
                yield f"moment of inertia of body '{body.name}'", mass * moments, " kg m²", body.source
    for frame in plant.frames:
        if frame.X_PF is not None:
            yield f"translation of frame '{frame.name}'", frame.X_PF.translation, " m", frame.source
    for joint in plant.joints:
        for name in ("damping", "friction", "armature", "screw_pitch", "default_positions"):
            value = getattr(joint, name)
            yield f"{name} of joint '{joint.name}'", 0.0 if value is None else value, "", joint.source
    for actuator in plant.actuators:
        for name in ("gear_ratio", "rotor_inertia", "kp", "kd"):
            yield f"{name} of actuator '{actuator.name}'", getattr(actuator, name) or 0.0, "", actuator.source
        with np.errstate(over="ignore"):
            reflected = np.float64(actuator.rotor_inertia) * np.float64(actuator.gear_ratio) ** 2
        yield f"reflected rotor inertia of actuator '{actuator.name}'", reflected, "", actuator.source
    for mimic in plant.mimics:
        for name in ("multiplier", "offset"):
            yield f"{name} of mimicking joint '{mimic.follower.name}'", getattr(mimic, name), "", mimic.follower.source
    for record in plant.constraints:
        if isinstance(record, CouplerConstraint):
            yield f"gear ratio of {record.label}", record.gear_ratio, "", None
            yield f"offset of {record.label}", record.offset, "", None
    yield from numbers_of_contact(plant)


def numbers_of_contact(plant: PlantQueries) -> Iterator[tuple[str, Any, str, str | None]]:
    """Description, value, unit and source of the numbers of collision geometries."""
    for collision in plant.collisions:
        geometry, properties = collision.geometry, collision.properties
        stiffness = properties.point_stiffness
        name = f"collision geometry '{geometry.name}'"
        vertices = geometry.shape.vertices if isinstance(geometry.shape, Convex) else ()
        for what, value, unit in (
            ("place", geometry.translation, " m"),
            ("size", list(shape_lengths(geometry.shape)), " m"),
            ("vertex", np.asarray(vertices, float), " m"),
            ("friction", properties.friction, ""),
            ("point stiffness", 0.0 if stiffness in (None, math.inf) else stiffness, " N/m"),
            ("dissipation", properties.hunt_crossley_dissipation or 0.0, " s/m"),
            ("relaxation time", properties.relaxation_time or 0.0, " s"),
            ("hydroelastic modulus", (properties.hydroelastic and properties.hydroelastic.modulus) or 0.0, " Pa"),
        ):
            yield f"{what} of {name}", value, unit, collision.source
