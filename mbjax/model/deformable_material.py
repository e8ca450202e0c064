"""The material of a deformable body, as it is declared on a plant."""

import dataclasses
from typing import Any

import numpy as np

from mbjax.errors import ModelError
from mbjax.finite_elements import MODELS
from mbjax.number_rules import is_known, known_numbers, shown

from .deformable_bodies import MATERIAL_NUMBERS
from .leaf_rules import DEFORMABLE_RULES
from .lookup import near_matches


@dataclasses.dataclass(frozen=True, eq=False)
class DeformableMaterial:
    """Young's modulus in Pa, Poisson's ratio, density in kg/m³, and Rayleigh's damping α M + β K in 1/s and s.

    A number is one for the whole body, or an array with one for each element. `model` is the law: "linear" for small
    strains and small rotations, "linear_corotated" for small strains, "corotated", "neo_hookean" and
    "stable_neo_hookean" for large ones. These are Drake's laws but the last, which at small strain has the given
    modulus and ratio, as Drake's neo-Hookean law has not. The defaults are Drake's.
    """

    youngs_modulus: Any = 1e8
    poissons_ratio: Any = 0.49
    mass_density: Any = 1.5e3
    mass_damping: Any = 0.0
    stiffness_damping: Any = 0.0
    model: str = "linear_corotated"

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise ModelError(
                f"DeformableMaterial: there is no model {shown(self.model)}. {near_matches(str(self.model), MODELS)}"
            )
        for name in MATERIAL_NUMBERS:
            value, leaf = getattr(self, name), DEFORMABLE_RULES[name]
            shape = (np.size(value),) if is_known(value) and np.ndim(value) == 1 and np.size(value) else ()
            numbers = known_numbers("DeformableMaterial", name, value, leaf.rule, shape, unit=leaf.unit)
            object.__setattr__(self, name, numbers)
        if self.model == "neo_hookean" and np.any(np.asarray(self.poissons_ratio) <= 0.125):
            raise ModelError(
                "DeformableMaterial: Drake's neo-Hookean law is stable at rest where poissons_ratio > 0.125, got "
                f'{shown(self.poissons_ratio)}. Take model="stable_neo_hookean" or "corotated".'
            )

    def require_elements(self, call: str, count: int) -> None:
        """Raises `ModelError` for arrays that do not have a number for each of `count` elements."""
        for name in MATERIAL_NUMBERS:
            size = np.size(getattr(self, name))
            if np.ndim(getattr(self, name)) == 1 and size != count:
                raise ModelError(
                    f"{call}: the material's {name} has {size} numbers, and the mesh {count} elements. Give one number "
                    "for all of them, or one for each."
                )
