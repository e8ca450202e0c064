"""Models that carry their placement, which follows from the model alone, for the time of one call."""

import dataclasses

from mbjax.model import MultibodyModel

from .placement_records import ModelPlacement


class PlacedModel(MultibodyModel):
    """A `MultibodyModel` with its placement, which follows from its leaves.

    Functions make one for those they call, so that the placement is computed once; nobody outside holds one. Its leaves
    must not be changed: the placement would not follow.
    """

    placement: ModelPlacement | None = None  # never None; fields of the model have defaults, so this needs one

    def require_one(self, call: str = "") -> None:
        """Passes: the function that made this model has checked the one it was made of."""


def placement_of(model: MultibodyModel) -> ModelPlacement | None:
    """The placement that the model carries, or None: callers then compute it."""
    return model.placement if isinstance(model, PlacedModel) else None


def with_placement(model: MultibodyModel, placement: ModelPlacement) -> PlacedModel:
    """A `PlacedModel` of the model and its placement."""
    return PlacedModel(**fields_of(model), placement=placement)


def without_placement(model: MultibodyModel) -> MultibodyModel:
    """The model without its placement, for users' functions: their setters would change the leaves only."""
    return MultibodyModel(**fields_of(model)) if isinstance(model, PlacedModel) else model


def fields_of(model: MultibodyModel) -> dict:
    """Fields that every `MultibodyModel` has, by name."""
    return {field.name: getattr(model, field.name) for field in dataclasses.fields(MultibodyModel)}
