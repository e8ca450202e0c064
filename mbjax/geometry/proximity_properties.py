"""Contact properties of a collision geometry: friction, stiffness, dissipation, and hydroelastic properties."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from .hydroelastic_properties import COMPLIANT_VOLUME, RIGID_SURFACE, HydroelasticProperties

DEFAULT_FRICTION = 1.0
DEFAULT_RELAXATION_TIME = 0.1  # s, as in Drake


@dataclass(frozen=True)
class ProximityProperties:
    """Friction of a collision geometry and, where the defaults do not fit, the parameters of its normal force.

    `dynamic_friction` defaults to the static friction. Both default to 1, as in a robot file without friction.
    `point_stiffness` is in N/m (inf: rigid) and `hunt_crossley_dissipation` in s/m; None derives them from the plant's
    penetration allowance. `relaxation_time` in s is the dissipation of the SAP approximation. `hydroelastic` is None
    for a shape that touches at points alone; the methods that add hydroelastic properties, named as in Drake, return
    new properties that have them.
    """

    static_friction: float = DEFAULT_FRICTION
    dynamic_friction: float | None = None
    point_stiffness: float | None = None
    hunt_crossley_dissipation: float | None = None
    relaxation_time: float | None = None
    hydroelastic: HydroelasticProperties | None = None

    def __post_init__(self) -> None:
        if self.dynamic_friction is None:
            object.__setattr__(self, "dynamic_friction", self.static_friction)
        for name, is_allowed, wanted in (
            ("static_friction", is_not_negative, "a finite number >= 0"),
            ("dynamic_friction", is_not_negative, "a finite number >= 0"),
            ("point_stiffness", is_stiffness, "a number of N/m > 0, or None"),
            ("hunt_crossley_dissipation", is_not_negative, "a finite number of s/m >= 0, or None"),
            ("relaxation_time", is_not_negative, "a finite number of seconds >= 0, or None"),
        ):
            value = getattr(self, name)
            if value is None:
                continue
            number = as_float(value)
            if not is_allowed(number):
                raise ValueError(f"ProximityProperties: {name} is {value!r}; give {wanted}.")
            object.__setattr__(self, name, number)
        if self.friction[1] > self.friction[0]:
            raise ValueError(
                f"ProximityProperties: the dynamic friction {self.dynamic_friction:g} is greater than the static one "
                f"{self.static_friction:g}; it takes at least as much to start sliding as to go on."
            )
        if not isinstance(self.hydroelastic, HydroelasticProperties | None):
            raise ValueError(
                f"ProximityProperties: hydroelastic is {self.hydroelastic!r}; give HydroelasticProperties, or None."
            )

    def add_rigid_hydroelastic_properties(self, resolution_hint: float | None = None) -> "ProximityProperties":
        """The properties of a shape that is rigid in hydroelastic contact; a hint in m where its surface is curved."""
        return dataclasses.replace(
            self, hydroelastic=HydroelasticProperties(RIGID_SURFACE, resolution_hint=resolution_hint)
        )

    def add_compliant_hydroelastic_properties(
        self, resolution_hint: float | None, hydroelastic_modulus: float, *, margin: float = 0.0
    ) -> "ProximityProperties":
        """The properties of a shape that is compliant in hydroelastic contact, with a modulus in Pa.

        The hint in m is for curved shapes, the margin in m how far outside of the shape its field begins.
        """
        made = HydroelasticProperties(COMPLIANT_VOLUME, hydroelastic_modulus, resolution_hint, margin)
        return dataclasses.replace(self, hydroelastic=made)

    def add_compliant_hydroelastic_properties_for_half_space(
        self, slab_thickness: float, hydroelastic_modulus: float, *, margin: float = 0.0
    ) -> "ProximityProperties":
        """The properties of a compliant half space, whose pressure is the modulus in Pa at this depth in m."""
        made = HydroelasticProperties(
            COMPLIANT_VOLUME, hydroelastic_modulus, margin=margin, slab_thickness=slab_thickness
        )
        return dataclasses.replace(self, hydroelastic=made)

    @property
    def friction(self) -> tuple[float, float]:
        """The static and the dynamic coefficient of friction."""
        assert self.dynamic_friction is not None  # set in __post_init__
        return self.static_friction, self.dynamic_friction


def as_proximity_properties(properties: Any) -> ProximityProperties:
    """The properties as given, or made from one coefficient of friction or a (static, dynamic) pair."""
    match properties:
        case ProximityProperties():
            return properties
        case [static_friction, dynamic_friction]:
            return ProximityProperties(static_friction, dynamic_friction)
        case _ if not math.isnan(as_float(properties)):
            return ProximityProperties(properties)
    raise ValueError(
        f"expected ProximityProperties, a coefficient of friction or a (static, dynamic) pair, got {properties!r}."
    )


def as_float(value: Any) -> float:
    """The value as a float; NaN if it is not a number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def is_not_negative(number: float) -> bool:
    return math.isfinite(number) and number >= 0.0


def is_stiffness(number: float) -> bool:
    return number > 0.0
