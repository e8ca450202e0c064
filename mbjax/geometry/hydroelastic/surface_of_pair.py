"""The contact surface of two hydroelastic geometries: which ones have one, and the way to it."""

from mbjax.spatial import RigidTransform

from .contact_surface import ContactSurface
from .faces import Polygons, Representation, faces_of, swapped
from .half_space_surfaces import rigid_half_space
from .pressure_field import PressureField
from .topology import HydroelasticTopology


def contact_surface(
    topology_A: HydroelasticTopology,
    field_A: PressureField,
    X_WA: RigidTransform,
    topology_B: HydroelasticTopology,
    field_B: PressureField,
    X_WB: RigidTransform,
    *,
    representation: Representation = "polygon",
    bound: int | None = None,
) -> ContactSurface:
    """The surface of equal pressure of two geometries in poses X_WA and X_WB, at least one of which is compliant.

    `bound` is how many polygons there may be; None takes `largest_number_of_faces`. What goes beyond is counted in
    `left_out`. With `representation="triangle"` each polygon becomes as many triangles as it has edges.
    """
    bound = largest_number_of_faces(topology_A, topology_B) if bound is None else bound
    if topology_A.is_rigid:
        polygons = swapped(polygons_between(topology_B, field_B, X_WB, topology_A, field_A, X_WA, bound))
        return faces_of(polygons, X_WB, representation)
    polygons = polygons_between(topology_A, field_A, X_WA, topology_B, field_B, X_WB, bound)
    return faces_of(polygons, X_WA, representation)


def polygons_between(
    topology_C: HydroelasticTopology,
    field_C: PressureField,
    X_WC: RigidTransform,
    topology_D: HydroelasticTopology,
    field_D: PressureField,
    X_WD: RigidTransform,
    bound: int,
) -> Polygons:
    """Polygons between a compliant geometry C and another one D, in C."""
    X_CD = X_WC.inverse() @ X_WD
    if topology_D.is_rigid and topology_D.is_half_space and not topology_C.is_half_space:
        return rigid_half_space(topology_C, field_C, X_CD, bound)
    raise NotImplementedError(f"{topology_C.shape} against {topology_D.shape}")


def largest_number_of_faces(topology_A: HydroelasticTopology, topology_B: HydroelasticTopology) -> int:
    """A bound on the polygons of two geometries that contact of usual depth does not reach."""
    return min(64, topology_A.num_elements + topology_B.num_elements)
