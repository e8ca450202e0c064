"""Hydroelastic properties of a collision geometry: whether it yields, how stiffly, and how finely it is meshed."""

import math
from dataclasses import dataclass
from typing import Any

from .shapes import HalfSpace, Shape

RIGID_SURFACE, COMPLIANT_VOLUME = "rigid", "compliant"
MESHED_BY_HINT = ("Sphere", "Cylinder", "Capsule", "Ellipsoid")  # shapes whose mesh needs a resolution hint


@dataclass(frozen=True)
class HydroelasticProperties:
    """How a shape takes part in hydroelastic contact; the meanings are Drake's.

    A `"compliant"` shape has a pressure field that rises from zero on its surface to `modulus` (Pa) where it is deepest
    inside; a `"rigid"` one has a surface alone. `resolution_hint` is the length in m of the edges of its mesh, which
    spheres, cylinders, capsules and ellipsoids need. `margin` in m is how far outside of a compliant shape its field
    begins.
    `slab_thickness` in m is the depth at which a compliant half space has its modulus as pressure.
    """

    compliance: str
    modulus: float | None = None
    resolution_hint: float | None = None
    margin: float = 0.0
    slab_thickness: float | None = None

    def __post_init__(self) -> None:
        if self.compliance not in (RIGID_SURFACE, COMPLIANT_VOLUME):
            raise ValueError(f"HydroelasticProperties: compliance is {self.compliance!r}; give 'rigid' or 'compliant'.")
        if self.compliance == COMPLIANT_VOLUME and self.modulus is None:
            raise ValueError(
                "HydroelasticProperties: a compliant shape needs a hydroelastic modulus in Pa; give one, or make the "
                "shape rigid."
            )
        if self.compliance == RIGID_SURFACE and self.modulus is not None:
            raise ValueError(
                f"HydroelasticProperties: a rigid shape has no hydroelastic modulus, got {self.modulus!r}; leave it "
                "out, or make the shape compliant."
            )
        for name, unit, lowest in (
            ("modulus", "Pa", "> 0"),
            ("resolution_hint", "m", "> 0"),
            ("margin", "m", ">= 0"),
            ("slab_thickness", "m", "> 0"),
        ):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, checked_property(name, value, unit, lowest))

    def require_fits(self, shape: Shape) -> None:
        """Raises `ValueError` if a number is missing without which the shape has no mesh or field."""
        kind = type(shape).__name__
        if kind in MESHED_BY_HINT and self.resolution_hint is None:
            raise ValueError(
                f"a {self.compliance} hydroelastic {kind} needs a resolution_hint, the length of its mesh's edges in m "
                "(drake:mesh_resolution_hint in files)."
            )
        if isinstance(shape, HalfSpace) and self.compliance == COMPLIANT_VOLUME and self.slab_thickness is None:
            raise ValueError(
                "a compliant hydroelastic HalfSpace needs a slab_thickness in m, which files cannot give: use "
                "add_compliant_hydroelastic_properties_for_half_space, or make it rigid."
            )


def checked_property(name: str, value: Any, unit: str, lowest: str) -> float:
    """The value as a finite number above zero, or from zero on where `lowest` is ">= 0"; else a `ValueError`."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number) or number < 0.0 or (number == 0.0 and lowest == "> 0"):
        raise ValueError(f"HydroelasticProperties: {name} is {value!r}; give a finite number of {unit} {lowest}.")
    return number
