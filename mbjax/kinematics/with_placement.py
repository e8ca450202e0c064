"""A model together with what follows from it alone, for the time of one call."""

import dataclasses
from typing import TYPE_CHECKING

from mbjax.model import MultibodyModel

if TYPE_CHECKING:
    from .model_placement import ModelPlacement


class PlacedModel(MultibodyModel):
    """A `MultibodyModel` with its placement, which its leaves decide.

    Functions make one for those they call, so that the placement is computed once; nobody outside holds one. Its leaves
    must not be changed: the placement would be that of the old ones.
    """

    placement: "ModelPlacement | None" = None  # never None; fields of the model have defaults, so this needs one


def placement_of(model: MultibodyModel) -> "ModelPlacement | None":
    """The placement that the model carries; None: whoever needs it computes it."""
    return model.placement if isinstance(model, PlacedModel) else None


def with_placement(model: MultibodyModel, placement: "ModelPlacement") -> PlacedModel:
    """The model together with its placement."""
    return PlacedModel(**fields_of(model), placement=placement)


def without_placement(model: MultibodyModel) -> MultibodyModel:
    """The model by itself, for functions of users: setters change its leaves only."""
    return MultibodyModel(**fields_of(model)) if isinstance(model, PlacedModel) else model


def fields_of(model: MultibodyModel) -> dict:
    """The fields that every model has, by name."""
    return {field.name: getattr(model, field.name) for field in dataclasses.fields(MultibodyModel)}
