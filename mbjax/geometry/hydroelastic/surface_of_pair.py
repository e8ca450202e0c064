"""The contact surface of two hydroelastic geometries: which ones have one, and the way to it."""

import math

from mbjax.spatial import RigidTransform

from ..shapes import Box, Convex, Cylinder, HalfSpace, Shape
from .contact_surface import ContactSurface
from .faces import Polygons, Representation, faces_of, seen_from_other
from .half_space_surfaces import polygons_in_compliant_half_space, polygons_with_rigid_half_space
from .mesh_surfaces import polygons_with_compliant_mesh, polygons_with_rigid_mesh
from .pressure_field import PressureField
from .reached_elements import reached_elements
from .topology import HydroelasticTopology

SMALL_MESH = 64  # triangles of a mesh of a file, up to which a bound takes all
AROUND = 4  # times the bound on faces: elements near a mesh of a file, which may have the other shape all around
SHARE_IN_CONTACT = 4  # a larger mesh of a file, whose dents may be touched: one in four of its triangles
FLAT_SIDED = Box, Cylinder, Convex  # where sides of two such shapes lie on each other, their elements cross often
FLUSH = 1.5  # faces that such sides have for each element that is reached


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
    sides = [(topology.compliance, topology.shape) for topology in (topology_A, topology_B)]
    reason = reason_for_no_surface(*sides)
    if reason is not None:
        raise ValueError(f"contact_surface: the geometries have none, as {reason}.")
    if representation not in ("polygon", "triangle"):
        raise ValueError(f"contact_surface: representation is {representation!r}; give 'polygon' or 'triangle'.")
    bound = largest_number_of_faces(topology_A, topology_B) if bound is None else bound
    if topology_A.is_rigid:
        polygons = polygons_between(topology_B, field_B, topology_A, field_A, X_WB.inverse() @ X_WA, bound)
        return seen_from_other(faces_of(polygons, X_WB, representation))
    polygons = polygons_between(topology_A, field_A, topology_B, field_B, X_WA.inverse() @ X_WB, bound)
    return faces_of(polygons, X_WA, representation)


def reason_for_no_surface(A: tuple[str, Shape], B: tuple[str, Shape]) -> str | None:
    """Why geometries of these compliances and shapes touch at points, as in Drake; None where they have a surface."""
    compliances, are_planes = {A[0], B[0]}, [isinstance(shape, HalfSpace) for _, shape in (A, B)]
    if compliances == {"rigid"}:
        return "both are rigid, and a surface needs one that is compliant"
    if all(are_planes):
        return "both are half spaces"
    if any(are_planes) and compliances == {"compliant"}:
        return "a compliant half space has a surface with rigid shapes alone"
    return None


def polygons_between(
    topology_C: HydroelasticTopology,
    field_C: PressureField,
    topology_D: HydroelasticTopology,
    field_D: PressureField,
    X_CD: RigidTransform,
    bound: int,
) -> Polygons:
    """Polygons between a compliant geometry C and another one D, in C."""
    if topology_C.is_half_space:
        return polygons_in_compliant_half_space(field_C, field_D, X_CD, bound)
    if topology_D.is_half_space:
        return polygons_with_rigid_half_space(field_C, X_CD, bound)
    if topology_D.is_rigid:
        near = bound if topology_D.surface is None else AROUND * bound
        return polygons_with_rigid_mesh(field_C, field_D, X_CD, bound, near)
    return polygons_with_compliant_mesh(field_C, field_D, X_CD, bound)


def largest_number_of_faces(topology_A: HydroelasticTopology, topology_B: HydroelasticTopology) -> int:
    """A bound on the polygons of two geometries that contact of usual depth does not reach.

    That is 15 % of the smallest width of a mesh. Where flat sides may lie on each other a factor is added, measured
    with boxes and cylinders: of poses at random and with sides nearly parallel, 4 % have more faces at most.
    """
    pair = topology_A, topology_B
    reached = sum(elements_in_contact(topology) for topology in pair)
    may_be_flush = all(isinstance(topology.shape, FLAT_SIDED) for topology in pair)
    return math.ceil(FLUSH * reached) if may_be_flush else reached


def elements_in_contact(topology: HydroelasticTopology) -> int:
    """How many elements of a mesh usual contact reaches."""
    if topology.surface is None:
        return reached_elements(topology)
    return max(min(topology.num_elements, SMALL_MESH), topology.num_elements // SHARE_IN_CONTACT)
