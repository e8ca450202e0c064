"""Queries of a finished model's shapes: those of each body, and which of them may touch."""

from collections.abc import Iterable

from mbjax.errors import ModelError
from mbjax.geometry import Geometry

from .collision_parameters import CollisionParameters
from .contact_layout import CollisionGeometryRecord
from .element_queries import ElementQueries
from .geometry_selection import GeometryNames
from .lookup import checked_index, near_matches
from .model_layout import ModelLayout


class GeometryQueries(ElementQueries):
    """Queries of collision geometries by name (`"sole"`, `"foot::sole"` or `"robot::foot::sole"`) or index."""

    layout: ModelLayout
    collision: CollisionParameters

    @property
    def num_visual_geometries(self) -> int:
        return sum(map(len, self.layout.visual))

    @property
    def num_collision_geometries(self) -> int:
        """Number of collision geometries, those that can touch no other one included."""
        return sum(map(len, self.layout.collision))

    def visual_geometries_for_body(self, body: str | int) -> tuple[Geometry, ...]:
        """Visual shapes of a body, in the order they were registered."""
        return self.layout.visual[self.body_index(body)]

    def collision_geometries_for_body(self, body: str | int) -> tuple[Geometry, ...]:
        """Collision shapes of a body, as registered; `model.collision` has their numbers."""
        return self.layout.collision[self.body_index(body)]

    def collect_registered_geometries(self, bodies: Iterable[str | int]) -> tuple[Geometry, ...]:
        """Collision shapes of all the bodies."""
        return tuple(shape for body in bodies for shape in self.collision_geometries_for_body(body))

    # Contact

    @property
    def contact_model(self) -> str:
        """Contact model: `"point"`, `"hydroelastic"`, `"hydroelastic_with_fallback"` or `"none"`."""
        return self.layout.contact.contact_model

    @property
    def contact_surface_representation(self) -> str:
        """Faces of hydroelastic contact surfaces: `"polygon"` or `"triangle"`."""
        return self.layout.contact.surface_representation

    @property
    def discrete_contact_approximation(self) -> str:
        """Approximation of contact in a discrete step: `"sap"`, `"similar"` or `"lagged"`."""
        return self.layout.contact.approximation

    @property
    def collision_geometry_names(self) -> tuple[str, ...]:
        """Names `body::geometry` of geometries that may touch, in the order of the arrays of `model.collision`."""
        return tuple(map(self.collision_geometry_name, range(len(self.layout.contact.geometries))))

    @property
    def collision_pairs(self) -> tuple[tuple[str, str], ...]:
        """Names of the geometries that may touch, after all filters."""
        names = self.collision_geometry_names
        return tuple((names[a], names[b]) for a, b in self.layout.contact.pairs)

    def collision_geometry_index(self, geometry: str | int) -> int:
        """Place of a geometry in the arrays of `model.collision`; an index is checked and returned."""
        contact = self.layout.contact
        if not isinstance(geometry, str):
            return checked_index("collision geometry", geometry, len(contact.geometries))
        place = self.collision_geometry_place(geometry)
        if place >= len(contact.geometries):
            body = self.layout.bodies[contact.all_geometries[place].body]
            raise ModelError(
                f"collision geometry '{geometry}' can touch no other one. Body '{body.name}' has it, but it is in none "
                "of model.collision_pairs: it has a place and a size, but no friction, stiffness or dissipation."
            )
        return place

    def collision_geometry_place(self, geometry: str | int) -> int:
        """Place of a geometry among those that may touch another one, then those that cannot; meshes have none."""
        contact = self.layout.contact
        if not isinstance(geometry, str):
            return checked_index("collision geometry", geometry, len(contact.all_geometries))
        found = [g for g, record in enumerate(contact.all_geometries) if geometry in self._names_of(record).of_geometry]
        if len(found) > 1:
            options = ", ".join(f"'{self.collision_geometry_name(g)}'" for g in found)
            raise ModelError(f"{len(found)} collision geometries are named '{geometry}'; say which: {options}.")
        if not found:
            raise ModelError(f"there is no collision geometry '{geometry}'. {self._hint(geometry)}")
        return found[0]

    def collision_geometry_name(self, place: int) -> str:
        """Name `body::geometry` of the geometry at a place; with the instance where several bodies share that name."""
        record = self.layout.contact.all_geometries[place]
        body = self.layout.bodies[record.body]
        is_unique = self.layout.body_names.count(body.name) == 1
        return f"{body.name if is_unique else body.scoped_name}::{record.name}"

    def _names_of(self, record: CollisionGeometryRecord) -> GeometryNames:
        body = self.layout.bodies[record.body]
        return GeometryNames(body.name, body.scoped_name, record.name)

    def _hint(self, geometry: str) -> str:
        for body, shapes in zip(self.layout.bodies, self.layout.collision, strict=True):
            for shape in shapes:
                if geometry in GeometryNames(body.name, body.scoped_name, shape.name).of_geometry:
                    return (
                        f"Body '{body.name}' has it, but it is a {type(shape.shape).__name__}, which has no numbers: "
                        "load with meshes='hull', or register its hull, Convex.from_mesh(path)."
                    )
        places = range(len(self.layout.contact.all_geometries))
        return near_matches(geometry, map(self.collision_geometry_name, places))
