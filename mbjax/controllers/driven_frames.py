"""Which frames the actuators of a model can move."""

import numpy as np

from mbjax.errors import ModelError
from mbjax.model import MultibodyModel

from .actuated_trees import driven_trees


def require_driven_frame(call: str, model: MultibodyModel, frame: str | int) -> None:
    """Raises `ModelError` for a frame that is fixed to the world or to a body that no actuator carries."""
    info = model.frame(frame)
    mobod = model.topology.body_mobods[info.body]
    driven = model.topology.velocity_mobods[driven_directions(model)]
    if not model.topology.is_ancestor[mobod, driven].any():
        raise ModelError(f"{call}: no actuator moves frame '{info.name}'; name a frame of a body that one carries.")


def driven_directions(model: MultibodyModel) -> np.ndarray:
    """Which directions of joints, those that mimic included, belong to a tree that has an actuator."""
    return driven_trees(model)[model.topology.velocities_of_directions]
