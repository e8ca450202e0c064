"""Methods of the plant for shapes and contact: visual and collision geometry, filters, settings."""

import abc
import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, overload

import numpy as np

from mbjax.errors import ModelError
from mbjax.geometry import Geometry, Shape, as_proximity_properties
from mbjax.model import Body, checked_pairs
from mbjax.model.poses import as_rigid_transform

from .contact_settings import REPRESENTATIONS, default_contact_surface_representation, require_choice
from .declarations import CollisionExclusion, RegisteredCollision
from .deformables import DeclaredDeformable, PlantDeformables
from .queries import PlantQueries

Group = tuple[str, Iterable[Body | DeclaredDeformable | str | int | Geometry]]


class PlantGeometry(PlantQueries):
    """Methods for shapes and contact; a shape is given as a `Geometry`, or as in Drake by pose, shape and name."""

    @overload
    def register_visual_geometry(self, body: Body | str, geometry: Geometry, /) -> Geometry: ...
    @overload
    def register_visual_geometry(
        self, body: Body | str, X_BG: Any, /, shape: Shape, name: str, diffuse_color: Any = None
    ) -> Geometry: ...
    def register_visual_geometry(
        self,
        body: Body | str,
        geometry: Any,
        /,
        shape: Shape | None = None,
        name: str | None = None,
        diffuse_color: Any = None,
    ) -> Geometry:
        """Registers a shape to look at, fixed to a body."""
        self._require_building("register_visual_geometry")
        on = self.body(body, "register_visual_geometry")
        made = as_geometry("register_visual_geometry", geometry, shape, name, diffuse_color)
        require_free_name("register_visual_geometry", on, made.name, on.visual)
        on.visual.append(made)
        return made

    @overload
    def register_collision_geometry(
        self, body: Body | str, geometry: Geometry, properties: Any, /, *, source: str | None = None
    ) -> Geometry: ...
    @overload
    def register_collision_geometry(
        self, body: Body | str, geometry: Geometry, /, *, properties: Any, source: str | None = None
    ) -> Geometry: ...
    @overload
    def register_collision_geometry(
        self, body: Body | str, X_BG: Any, /, shape: Shape, name: str, properties: Any, *, source: str | None = None
    ) -> Geometry: ...
    def register_collision_geometry(
        self,
        body: Body | str,
        geometry: Any,
        /,
        shape: Any = None,
        name: str | None = None,
        properties: Any = None,
        *,
        source: str | None = None,
    ) -> Geometry:
        """Registers a shape to touch with, fixed to a body.

        `properties` are `ProximityProperties`, or just the friction: one coefficient or a (static, dynamic) pair.
        """
        call = "register_collision_geometry"
        self._require_building(call)
        on = self.body(body, call)
        if isinstance(geometry, Geometry) and shape is not None:
            shape, properties = None, shape
        made = as_geometry(call, geometry, shape, name, None)
        label = f"{'' if source is None else f'{source}: '}{call}('{on.name}', '{made.name}')"
        if properties is None:
            raise ModelError(f"{label}: give ProximityProperties or a coefficient of friction.")
        try:
            touch = as_proximity_properties(properties)
            if touch.hydroelastic is not None:
                touch.hydroelastic.require_fits(made.shape)
        except ValueError as error:
            raise ModelError(f"{label}: {error}") from None
        require_free_name(call, on, made.name, on.collision)
        on.collision.append(made)
        self.collisions.append(RegisteredCollision(on, made, touch, source))
        return made

    def exclude_collision_geometries_with_collision_filter_group_pair(self, group_A: Group, group_B: Group) -> None:
        """Excludes contact between two groups of geometries; with one name for both, within the first group.

        A group is its name and its members: bodies, for all geometries they have at finalize, deformable bodies, and
        `Geometry`s.
        """
        call = "exclude_collision_geometries_with_collision_filter_group_pair"
        self._require_building(call)
        groups = [self._members(call, group) for group in (group_A, group_B)]
        if group_A[0] == group_B[0]:
            groups[1] = groups[0]
        self.collision_exclusions.append(CollisionExclusion(*groups))

    def exclude_collisions_between(self, body_A: Any, body_B: Any) -> None:
        """Excludes contact between the geometries of two bodies; one may be a deformable body."""
        self._require_building("exclude_collisions_between")
        A, B = (self._rigid_or_deformable(body, "exclude_collisions_between") for body in (body_A, body_B))
        self.collision_exclusions.append(CollisionExclusion((A,), (B,)))

    def _rigid_or_deformable(self, body: Any, call: str) -> Body | DeclaredDeformable:
        """A body, or the deformable body of that name where no other body has it."""
        deformables = self.deformables if isinstance(self, PlantDeformables) else []
        if isinstance(body, DeclaredDeformable):
            return self.deformable_body(body, call) if isinstance(self, PlantDeformables) else body
        if isinstance(body, str) and not any(body == x.name for x in self.bodies):
            named = [x for x in deformables if x.name == body]
            if len(named) == 1:
                return named[0]
        return self.body(body, call)

    def keep_contact_only(self, between: Sequence[tuple[str, str]]) -> None:
        """Restricts contact to named pairs of shapes, among those that the filters allow: only the feet on the ground.

        `between` lists pairs of names, `[("*foot*", "ground")]`. A name is that of a body, for all its shapes, that of
        a collision geometry (`"sole"`, `"foot::sole"`, `"robot::foot::sole"`), or a pattern with * and ?. Names are
        looked up at finalize, which refuses a name without match and a pair that cannot touch. Calls add pairs.
        """
        self._require_building("keep_contact_only")
        self.contact_kept += checked_pairs("keep_contact_only", between)

    @property
    def adjacent_bodies_collision_filters(self) -> bool:
        """Whether geometries of two bodies with a joint between them pass through each other."""
        return self.contact_settings.adjacent_bodies_collision_filters

    def set_adjacent_bodies_collision_filters(self, value: bool) -> None:
        """Sets whether geometries of two bodies with a joint between them pass through each other."""
        self._set_contact(adjacent_bodies_collision_filters=value)

    def set_contact_model(self, contact_model: str) -> None:
        """Sets the contact model.

        `"hydroelastic_with_fallback"` takes surfaces of hydroelastic contact where both geometries have hydroelastic
        properties that make one, and points elsewhere; `"hydroelastic"` refuses other pairs at finalize; `"point"`
        takes points for all, and with `"none"` geometries pass through each other.
        """
        self._set_contact(contact_model=contact_model)

    def set_contact_surface_representation(self, representation: str) -> None:
        """Sets the faces of hydroelastic contact surfaces: `"polygon"`, or `"triangle"`, several for each polygon."""
        require_choice("contact_surface_representation", representation, REPRESENTATIONS)
        self._set_contact(contact_surface_representation=representation)

    @staticmethod
    def default_contact_surface_representation(time_step: float) -> str:
        """`"polygon"` for a discrete plant, `"triangle"` for a continuous one, whose time step is 0."""
        return default_contact_surface_representation(time_step)

    def set_max_faces(self, max_faces: int | None) -> None:
        """Bounds the polygons of each hydroelastic contact surface; None: as many as contact of usual depth has.

        Those beyond have no force; `surfaces` of the contact results count them.
        """
        self._set_contact(max_faces=max_faces)

    def set_discrete_contact_approximation(self, approximation: str) -> None:
        """Sets how the discrete step treats dissipation and friction: `"sap"`, `"similar"` or `"lagged"`."""
        self._set_contact(discrete_contact_approximation=approximation)

    def set_penetration_allowance(self, penetration_allowance: float) -> None:
        """Sets how far, in m, the heaviest body sinks under its weight where no stiffness is given."""
        self._set_contact(penetration_allowance=penetration_allowance)

    def set_stiction_tolerance(self, v_stiction: float) -> None:
        """Sets the slip speed in m/s below which friction is less than its full amount."""
        self._set_contact(stiction_tolerance=v_stiction)

    def set_sap_near_rigid_threshold(self, near_rigid_threshold: float) -> None:
        """Sets the factor by which contacts too stiff for the time step are softened; 0: not at all."""
        self._set_contact(sap_near_rigid_threshold=near_rigid_threshold)

    def set_max_contacts(self, max_contacts: int | None) -> None:
        """Bounds how many points of contact a world works on at a time; None: all there may be."""
        self._set_contact(max_contacts=max_contacts)

    def set_max_pairs(self, max_pairs: int | None) -> None:
        """Bounds how many pairs of each two kinds of shapes the broad phase leaves in a world, the nearest; None: all.

        Nearness is that of bounding spheres; `contact_results.num_pairs_left_out` counts other pairs that overlap.
        """
        self._set_contact(max_pairs=max_pairs)

    def set_contact_prediction(self, contact_prediction: bool) -> None:
        """Sets whether points that are apart take part in a discrete step that would bring them to touch.

        The step is then continuous in the state where contact begins, too, and its derivative includes the contact.
        """
        self._set_contact(contact_prediction=contact_prediction)

    def set_contact_smoothing_length(self, contact_smoothing_length: float) -> None:
        """Sets the depth in m over which the force of Hunt–Crossley's law rises from zero; it begins before touch.

        Gradients then feel a contact from a distance; the force falls with the distance's square. 0: no smoothing.
        """
        self._set_contact(contact_smoothing_length=contact_smoothing_length)

    def _set_contact(self, **settings: Any) -> None:
        (name,) = settings
        self._require_building(f"set_{name}")
        self.contact_settings = dataclasses.replace(self.contact_settings, **settings)

    def _members(self, call: str, group: Group) -> tuple[Any, ...]:
        name, elements = group
        if not isinstance(name, str) or isinstance(elements, str):
            raise ModelError(f"{call}: a group is a pair (name, [bodies and geometries]), got {group!r}.")
        label = f"{call}: group '{name}'"
        found = tuple(e if isinstance(e, Geometry) else self._rigid_or_deformable(e, label) for e in elements)
        for element in found:
            if isinstance(element, Geometry) and not any(c.geometry is element for c in self.collisions):
                raise ModelError(f"{call}: group '{name}': '{element.name}' is no collision geometry of this plant.")
        return found

    @abc.abstractmethod
    def _require_building(self, call: str) -> None: ...


def as_geometry(call: str, geometry: Any, shape: Shape | None, name: str | None, rgba: Any) -> Geometry:
    """Returns the geometry itself, or makes one from a pose X_BG, a shape and a name."""
    if isinstance(geometry, Geometry):
        if shape is not None or name is not None or rgba is not None:
            raise ModelError(f"{call}: the Geometry '{geometry.name}' has a shape, a name and a color of its own.")
        return geometry
    if not isinstance(shape, Shape) or not isinstance(name, str) or not name:
        raise ModelError(
            f"{call}: give a Geometry, or a pose X_BG, a shape and a name; got {geometry!r}, {shape!r}, {name!r}."
        )
    X_BG = as_rigid_transform(f"{call}: X_BG of '{name}'", geometry)
    R_BG, p_BG = np.asarray(X_BG.rotation, float), np.asarray(X_BG.translation, float)
    return Geometry(name, shape, tuple(R_BG.tolist()), tuple(p_BG.tolist()), rgba)


def require_free_name(call: str, body: Body, name: str, others: Sequence[Geometry]) -> None:
    """Raises `ModelError` if another of a body's visual, or collision, geometries has the name."""
    if any(other.name == name for other in others):
        raise ModelError(f"{call}: body '{body.name}' has a geometry named '{name}' already; choose another name.")
