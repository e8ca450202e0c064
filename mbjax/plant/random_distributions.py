"""Random distributions declared on a plant, which `finalize` sets on the model."""

import abc
from collections.abc import Callable
from typing import Any

from mbjax.joints import AbstractJoint
from mbjax.model import (
    AbstractDistribution,
    Body,
    MultibodyModel,
    set_free_body_random_rotation_distribution,
    set_free_body_random_rotation_distribution_to_uniform,
    set_free_body_random_translation_distribution,
    set_joint_random_position_distribution,
    set_joint_random_velocity_distribution,
)

from .queries import PlantQueries


class PlantRandomDistributions(PlantQueries):
    """Methods of the plant for random distributions, named like the setters of `mbjax` for a finished model."""

    def set_joint_random_position_distribution(
        self, joint: AbstractJoint | str | int, distribution: AbstractDistribution
    ) -> None:
        """Sets how `random_state` draws a joint's positions."""
        self._declare_joint(set_joint_random_position_distribution, joint, distribution)

    def set_joint_random_velocity_distribution(
        self, joint: AbstractJoint | str | int, distribution: AbstractDistribution
    ) -> None:
        """Sets how `random_state` draws a joint's velocities."""
        self._declare_joint(set_joint_random_velocity_distribution, joint, distribution)

    def set_free_body_random_translation_distribution(
        self, body: Body | str | int, distribution: AbstractDistribution
    ) -> None:
        """Sets how `random_state` draws a free body's position: p_FM_F (x, y, z) of its joint."""
        self._declare_body(set_free_body_random_translation_distribution, body, distribution)

    def set_free_body_random_rotation_distribution(
        self, body: Body | str | int, distribution: AbstractDistribution
    ) -> None:
        """Sets how `random_state` draws a free body's orientation: a quaternion (w, x, y, z) of any length."""
        self._declare_body(set_free_body_random_rotation_distribution, body, distribution)

    def set_free_body_random_rotation_distribution_to_uniform(self, body: Body | str | int) -> None:
        """Makes every orientation of a free body equally likely in `random_state`."""
        self._declare_body(set_free_body_random_rotation_distribution_to_uniform, body)

    def _declare_joint(self, setter: Callable[..., MultibodyModel], joint: Any, *arguments: Any) -> None:
        self._require_building(setter.__name__)
        self.random_distributions.append((setter, self.joint(joint, setter.__name__), arguments))

    def _declare_body(self, setter: Callable[..., MultibodyModel], body: Any, *arguments: Any) -> None:
        self._require_building(setter.__name__)
        self.random_distributions.append((setter, self.body(body, setter.__name__), arguments))

    @abc.abstractmethod
    def _require_building(self, call: str) -> None: ...


def with_declared_distributions(plant: PlantQueries, model: MultibodyModel) -> MultibodyModel:
    """The model with the distributions declared on its plant, except those of elements removed since."""
    for setter, element, arguments in plant.random_distributions:
        if element.index >= 0:
            model = setter(model, element.index, *arguments)
    return model
