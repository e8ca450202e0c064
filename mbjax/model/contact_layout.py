"""Static data of contact: the geometries that may touch, and their pairs."""

import dataclasses

import numpy as np
from jaxtyping import Float

from mbjax.errors import ModelError
from mbjax.execution import HashedOnce
from mbjax.geometry.hydroelastic import SurfaceMesh


@dataclasses.dataclass(frozen=True)
class HydroelasticRecord:
    """What is static of a geometry's hydroelastic properties, and the place of its modulus; -1 if it is rigid.

    `surface` has the triangles of a rigid `Mesh`, whose file nobody reads again.
    """

    compliance: str  # "rigid" or "compliant"
    resolution_hint: float | None  # m
    margin: float  # m
    slab_thickness: float | None  # m
    modulus_index: int
    surface: SurfaceMesh | None = None


@dataclasses.dataclass(frozen=True)
class CollisionGeometryRecord:
    """Places of a collision geometry's numbers in `model.collision`; `kind` is the class of its shape.

    Numbers of a geometry that can touch no other one are in `model.collision.others`. A `stiffness_index` or
    `dissipation_index` of -1 means the default that follows from the penetration allowance. `hydroelastic` is None for
    a geometry that touches at points alone.
    """

    name: str
    body: int
    kind: str
    size_start: int
    num_sizes: int
    vertex_start: int
    num_vertices: int
    stiffness_index: int
    dissipation_index: int
    hydroelastic: HydroelasticRecord | None = None

    @property
    def modulus_index(self) -> int:
        """Place of its hydroelastic modulus; -1 if it has none."""
        return -1 if self.hydroelastic is None else self.hydroelastic.modulus_index

    @property
    def sizes(self) -> slice:
        return slice(self.size_start, self.size_start + self.num_sizes)

    @property
    def vertices(self) -> slice:
        return slice(self.vertex_start, self.vertex_start + self.num_vertices)


@dataclasses.dataclass(frozen=True)
class ContactLayout(HashedOnce):
    """The geometries that are in some pair, in the order they were registered, and the pairs that may touch.

    `max_contacts` bounds how many points a world works on at a time. `max_pairs` bounds how many pairs of each two
    kinds of shapes it takes from the broad phase to the narrow phase. None stands for all there may be. With
    `prediction`, points that would touch within the step take part in it. `others` are geometries in no pair.
    `distance_pairs` are the pairs of `signed_distances` where the caller names none: `pairs`, or with contact off what
    they would be. `without_distance` counts, by two kinds of shapes, the pairs missing there for want of a distance.
    Pairs among `surface_pairs` touch by a hydroelastic surface, all others at points. `max_faces` bounds the polygons
    of each surface; None stands for as many as contact of usual depth has.
    """

    geometries: tuple[CollisionGeometryRecord, ...]
    pairs: tuple[tuple[int, int], ...]  # indices of geometries, the first one registered before the second
    contact_model: str  # "point", "hydroelastic", "hydroelastic_with_fallback" or "none"
    approximation: str  # "sap", "similar" or "lagged"
    max_contacts: int | None
    max_pairs: int | None
    prediction: bool
    others: tuple[CollisionGeometryRecord, ...]
    distance_pairs: tuple[tuple[int, int], ...]  # indices of `all_geometries`
    without_distance: tuple[tuple[str, str, int], ...]
    surface_pairs: tuple[int, ...] = ()  # indices of `pairs`
    surface_representation: str = "polygon"  # or "triangle"
    max_faces: int | None = None

    @property
    def all_geometries(self) -> tuple[CollisionGeometryRecord, ...]:
        """Geometries that may touch, then the others."""
        return self.geometries + self.others

    __hash__ = HashedOnce.__hash__

    def refuse_rigid_pairs(self, stiffness: Float[np.ndarray, " k"]) -> None:
        """Refuses pairs of two rigid geometries, for a continuous plant, whose forces would have no limit.

        `stiffness` has the numbers of geometries with a stiffness of their own.
        """
        for a, b in (pair for i, pair in enumerate(self.pairs) if i not in self.surface_pairs):
            A, B = self.geometries[a], self.geometries[b]
            if all(g.stiffness_index >= 0 and np.isinf(stiffness[g.stiffness_index]) for g in (A, B)):
                raise ModelError(
                    f"collision geometries '{A.name}' and '{B.name}' may touch and both have point_stiffness=inf, "
                    "for which a continuous plant has no force. Give one of them a finite point_stiffness in N/m, or "
                    "take steps (a plant with time_step > 0, step or rollout), in which they are as stiff as the step "
                    "allows."
                )
