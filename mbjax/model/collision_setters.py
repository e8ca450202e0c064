"""Reads and sets numbers of contact by a geometry's name. A setter returns a new model; nothing recompiles."""

import dataclasses
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.execution import of_one_model, takes_model_first
from mbjax.number_rules import is_known, shown
from mbjax.spatial import RigidTransform, matrix_to_quaternion, quaternion_to_matrix

from .collision_parameters import CollisionParameters, GeometryParameters
from .contact_layout import CollisionGeometryRecord
from .hydroelastic_meshes import WHAT_FITS, geometries_with_surfaces, is_mesh_inside_out, numbers_of_shape
from .leaf_setting import checked_pose, set_rows
from .multibody_model import MultibodyModel
from .poses import PoseLike

WHY_WITHOUT = {
    **dict.fromkeys(("stiffness", "hunt_crossley_dissipation"), "it follows from the penetration allowance"),
    "hydroelastic_modulus": "for it is not compliant in hydroelastic contact",
}


@of_one_model
def friction(model: MultibodyModel, geometry: str | int) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Static and dynamic coefficients of friction of a collision geometry."""
    g = model.collision_geometry_index(geometry)
    return model.collision.static_friction[g], model.collision.dynamic_friction[g]


def set_friction(
    model: MultibodyModel, geometry: str | int, static_friction: ArrayLike, dynamic_friction: ArrayLike | None = None
) -> MultibodyModel:
    """Sets the coefficients of friction of a collision geometry; the dynamic one defaults to the static one."""
    dynamic_friction = static_friction if dynamic_friction is None else dynamic_friction
    return set_proximity_properties(model, geometry, static_friction=static_friction, dynamic_friction=dynamic_friction)


@of_one_model
def set_proximity_properties(
    model: MultibodyModel,
    geometry: str | int,
    *,
    static_friction: ArrayLike | None = None,
    dynamic_friction: ArrayLike | None = None,
    point_stiffness: ArrayLike | None = None,
    hunt_crossley_dissipation: ArrayLike | None = None,
    relaxation_time: ArrayLike | None = None,
    hydroelastic_modulus: ArrayLike | None = None,
) -> MultibodyModel:
    """Sets a geometry's numbers of contact; None leaves one as it is.

    They are its friction, stiffness (N/m), dissipation (s/m), relaxation time (s) and hydroelastic modulus (Pa). A
    stiffness or dissipation can be set where one was given at registration; elsewhere it follows from the penetration
    allowance. A modulus can be set where the geometry was registered as compliant.
    """
    g = model.collision_geometry_index(geometry)
    record = model.layout.contact.geometries[g]
    for name, row, value in (
        ("static_friction", g, static_friction),
        ("dynamic_friction", g, dynamic_friction),
        ("relaxation_time", g, relaxation_time),
        ("stiffness", record.stiffness_index, point_stiffness),
        ("hunt_crossley_dissipation", record.dissipation_index, hunt_crossley_dissipation),
        ("hydroelastic_modulus", record.modulus_index, hydroelastic_modulus),
    ):
        if value is not None:
            if row < 0:
                raise ModelError(
                    f"set_proximity_properties('{geometry}'): the geometry was registered without {name}, "
                    f"{WHY_WITHOUT[name]}. Register it with ProximityProperties that have one."
                )
            model = set_rows(model, f"set_proximity_properties('{geometry}')", name, row, value, of="collision")
    if point_stiffness is not None and not model.is_discrete and is_known(model.collision.stiffness):
        model.layout.contact.refuse_rigid_pairs(np.asarray(model.collision.stiffness))
    static, dynamic = friction(model, geometry)
    if is_known(static, dynamic) and np.any(np.asarray(dynamic) > np.asarray(static)):
        raise ModelError(
            f"set_proximity_properties('{geometry}'): the dynamic friction {dynamic} is greater than the static one "
            f"{static}; set both."
        )
    return model


@of_one_model
def collision_geometry_pose(model: MultibodyModel, geometry: str | int) -> RigidTransform:
    """Pose X_BG of a collision geometry in its body."""
    place = _place(model, geometry)
    numbers = place.numbers(model)
    return RigidTransform(quaternion_to_matrix(numbers.quaternion[place.row]), numbers.translation[place.row])


@takes_model_first
def set_collision_geometry_pose(model: MultibodyModel, geometry: str | int, X_BG: PoseLike) -> MultibodyModel:
    """Sets the pose X_BG of a collision geometry in its body."""
    place = _place(model, geometry)
    call = f"set_collision_geometry_pose('{geometry}')"
    X_BG = checked_pose(call, "X_BG", X_BG)
    quaternion = matrix_to_quaternion(jnp.asarray(X_BG.rotation, model.dtype))
    model = set_rows(model, call, "quaternion", place.row, quaternion, of=place.of)
    return set_rows(model, call, "translation", place.row, X_BG.translation, of=place.of)


@of_one_model
def collision_geometry_size(model: MultibodyModel, geometry: str | int) -> Float[Array, " s"]:
    """Lengths of a collision geometry's shape in m, in the order of the shape's fields; for a Box along x, y, z."""
    place = _place(model, geometry)
    return place.numbers(model).size[place.record.sizes]


@takes_model_first
def set_collision_geometry_size(model: MultibodyModel, geometry: str | int, size: ArrayLike) -> MultibodyModel:
    """Sets the lengths of a collision geometry's shape in m, in the order of the shape's fields.

    Known lengths must fit the mesh of a hydroelastic geometry, whose connectivity is that of the registered shape.
    """
    place = _place(model, geometry)
    call, record = f"set_collision_geometry_size('{geometry}')", place.record
    if record.num_sizes == 0:
        raise ModelError(f"{call}: a {record.kind} has no lengths.")
    return with_fitting_mesh(
        set_rows(model, call, "size", record.sizes, size, of=place.of, is_repeated=True), call, place
    )


@of_one_model
def collision_geometry_vertices(model: MultibodyModel, geometry: str | int) -> Float[Array, "n 3"]:
    """Vertices of a Convex in its frame, in m."""
    place = _convex(model, "collision_geometry_vertices", geometry)
    return place.numbers(model).vertices[place.record.vertices]


@takes_model_first
def set_collision_geometry_vertices(model: MultibodyModel, geometry: str | int, vertices: ArrayLike) -> MultibodyModel:
    """Sets the vertices of a Convex in its frame, in m, as many as before."""
    call = "set_collision_geometry_vertices"
    place = _convex(model, call, geometry)
    rows = place.record.vertices
    call = f"{call}('{geometry}')"
    return with_fitting_mesh(set_rows(model, call, "vertices", rows, vertices, of=place.of), call, place)


def with_fitting_mesh(model: MultibodyModel, call: str, place: "_Place") -> MultibodyModel:
    """The model, unless known numbers of a shape do not fit its hydroelastic mesh, whose connectivity is frozen."""
    if place.of == "others" or place.row not in geometries_with_surfaces(model):
        return model
    numbers = numbers_of_shape(model, place.row)
    if is_known(numbers):
        with jax.ensure_compile_time_eval():
            is_bad = bool(is_mesh_inside_out(model, place.row))
        if is_bad:
            raise ModelError(
                f"{call}: {shown(np.asarray(numbers))} m does not fit the {place.record.kind}'s hydroelastic mesh. "
                f"It must be {WHAT_FITS}. Register the shape with other numbers, which makes another mesh."
            )
    return model


def set_penetration_allowance(model: MultibodyModel, penetration_allowance: ArrayLike) -> MultibodyModel:
    """Sets how far, in m, the heaviest body sinks under its weight where no stiffness is given."""
    return set_rows(
        model, "set_penetration_allowance", "penetration_allowance", ..., penetration_allowance, of="collision"
    )


def set_stiction_tolerance(model: MultibodyModel, stiction_tolerance: ArrayLike) -> MultibodyModel:
    """Sets the slip speed in m/s below which friction is less than its full amount."""
    return set_rows(model, "set_stiction_tolerance", "stiction_tolerance", ..., stiction_tolerance, of="collision")


def set_sap_near_rigid_threshold(model: MultibodyModel, near_rigid_threshold: ArrayLike) -> MultibodyModel:
    """Sets the factor by which contacts too stiff for the time step are softened; 0: not at all."""
    return set_rows(
        model, "set_sap_near_rigid_threshold", "sap_near_rigid_threshold", ..., near_rigid_threshold, of="collision"
    )


@takes_model_first
def set_contact_smoothing_length(model: MultibodyModel, contact_smoothing_length: ArrayLike) -> MultibodyModel:
    """Sets the depth in m over which contact force rises from zero; the plant must have been built with one."""
    if model.collision.smoothing_length is None:
        raise ModelError(
            "set_contact_smoothing_length: the plant was built without one, which is another program. "
            "Use MultibodyPlant(..., contact_smoothing_length=...)."
        )
    return set_rows(
        model, "set_contact_smoothing_length", "smoothing_length", ..., contact_smoothing_length, of="collision"
    )


@dataclasses.dataclass(frozen=True)
class _Place:
    """Row of a collision geometry's numbers: among the geometries that may touch, or among the others."""

    record: CollisionGeometryRecord
    row: int
    of: Literal["collision", "others"]

    def numbers(self, model: MultibodyModel) -> CollisionParameters | GeometryParameters:
        others = model.collision.others
        return model.collision if self.of == "collision" or others is None else others


def _place(model: MultibodyModel, geometry: str | int) -> _Place:
    contact, g = model.layout.contact, model.collision_geometry_place(geometry)
    number = len(contact.geometries)
    return _Place(contact.all_geometries[g], g if g < number else g - number, "collision" if g < number else "others")


def _convex(model: MultibodyModel, call: str, geometry: str | int) -> _Place:
    place = _place(model, geometry)
    if place.record.kind != "Convex":
        raise ModelError(f"{call}('{geometry}'): a {place.record.kind} has no vertices.")
    return place
