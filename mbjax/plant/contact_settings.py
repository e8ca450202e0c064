"""Settings of a plant's contact, chosen before finalize."""

import dataclasses
import math
import operator
from typing import Any

from mbjax.errors import ModelError

APPROXIMATIONS = ("sap", "similar", "lagged")
CONTACT_MODELS = ("point", "hydroelastic", "hydroelastic_with_fallback", "none")
REPRESENTATIONS = ("polygon", "triangle")


@dataclasses.dataclass(frozen=True)
class ContactSettings:
    """Drake's settings of contact, with Drake's numbers; the approximation is that of the discrete step, where Drake's
    default is "lagged".

    `max_contacts` bounds how many points a world works on at a time, `max_pairs` how many pairs of each two kinds of
    shapes the broad phase leaves; None: all there may be. Two settings are not Drake's and are off by default:
    `contact_prediction` counts points that would touch within the step, `contact_smoothing_length` lets surfaces that
    are apart push each other a little. A `contact_surface_representation` of None is Drake's default for the kind of
    plant. `max_faces` bounds the polygons of each contact surface; None: as many as contact of usual depth has.
    """

    contact_model: str = "hydroelastic_with_fallback"
    discrete_contact_approximation: str = "sap"
    penetration_allowance: float = 1e-3  # m
    stiction_tolerance: float = 1e-4  # m/s
    sap_near_rigid_threshold: float = 1.0
    adjacent_bodies_collision_filters: bool = True
    max_contacts: int | None = None
    max_pairs: int | None = None
    contact_prediction: bool = False
    contact_smoothing_length: float = 0.0  # m
    contact_surface_representation: str | None = None
    max_faces: int | None = None

    def __post_init__(self) -> None:
        require_choice("contact_model", self.contact_model, CONTACT_MODELS)
        require_choice("discrete_contact_approximation", self.discrete_contact_approximation, APPROXIMATIONS)
        if self.contact_surface_representation is not None:
            given = self.contact_surface_representation
            require_choice("contact_surface_representation", given, REPRESENTATIONS)
        for name, unit, lowest in (
            ("penetration_allowance", "m", "> 0"),
            ("stiction_tolerance", "m/s", "> 0"),
            ("sap_near_rigid_threshold", "", ">= 0"),
            ("contact_smoothing_length", "m", ">= 0"),
        ):
            object.__setattr__(self, name, checked_number(name, getattr(self, name), unit, lowest))
        for name in ("adjacent_bodies_collision_filters", "contact_prediction"):
            if not isinstance(getattr(self, name), bool):
                raise ModelError(f"{name} must be True or False, got {getattr(self, name)!r}.")
        for name in ("max_contacts", "max_pairs", "max_faces"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, checked_count(name, getattr(self, name)))


def require_that_settings_agree(settings: ContactSettings, is_discrete: bool) -> None:
    """Refuses settings that the plant's kind of step would ignore."""
    if settings.contact_prediction and not is_discrete:
        raise ModelError(
            "contact_prediction=True needs a discrete plant (time_step > 0): a continuous one has no step to look into."
        )
    if settings.contact_smoothing_length and is_discrete and settings.discrete_contact_approximation == "sap":
        raise ModelError(
            f"contact_smoothing_length={settings.contact_smoothing_length} m is of Hunt–Crossley's law: choose "
            "discrete_contact_approximation='similar' or 'lagged', or a continuous plant."
        )


def require_that_surfaces_agree(settings: ContactSettings, has_surfaces: bool) -> None:
    """Refuses settings that surfaces of contact would ignore."""
    if has_surfaces and settings.contact_smoothing_length:
        raise ModelError(
            f"contact_smoothing_length={settings.contact_smoothing_length} m is of contact at points, and geometries "
            "of this plant touch by hydroelastic surfaces: leave it out, or choose contact_model='point'. A margin of "
            "compliant shapes lets their fields begin outside of them."
        )


def default_contact_surface_representation(time_step: float) -> str:
    """Drake's default: polygons in discrete plants, triangles in continuous ones."""
    return "polygon" if time_step > 0.0 else "triangle"


def require_choice(option: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raises `ModelError` for a value that is not among the choices."""
    if value not in choices:
        raise ModelError(f"{option}={value!r}: choose one of {', '.join(repr(c) for c in choices)}.")


def checked_number(what: str, value: Any, unit: str, lowest: str) -> float:
    """Returns a finite number above 0, or from 0 on where `lowest` is ">= 0"; else raises `ModelError`."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number) or number < 0.0 or (number == 0.0 and lowest == "> 0"):
        raise ModelError(f"{what} must be a finite number{f' of {unit}' if unit else ''} {lowest}, got {value!r}.")
    return number


def checked_count(what: str, value: Any) -> int:
    """Returns a whole number > 0; else raises `ModelError`."""
    try:
        count = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        count = 0
    if count <= 0:
        raise ModelError(f"{what} must be a whole number > 0, or None, got {value!r}.")
    return count
