"""Distributions of random states, and setters that put them on coordinates of a model."""

import abc
import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, PRNGKeyArray

from mbjax.errors import ModelError
from mbjax.execution import of_one_model
from mbjax.joints import JOINT_KINDS
from mbjax.number_rules import as_numbers, as_traced_numbers, is_known, shown
from mbjax.spatial import normalize_quaternion, quaternion_to_rpy

from .free_joints import free_joint
from .mimics import require_own_coordinates
from .multibody_model import MultibodyModel


class AbstractDistribution(eqx.Module):
    """Contract of a distribution; subclass it in pure JAX, with float leaves and samples that are functions of them.

    `sample(key, size)` returns `size` numbers. A random state's derivatives pass through the sample to the leaves.
    """

    @abc.abstractmethod
    def sample(self, key: PRNGKeyArray, size: int) -> Float[Array, " size"]: ...


class UniformDistribution(AbstractDistribution):
    """Independent uniform numbers in [lower, upper); bounds are numbers, or one per coordinate, in rad, m or rates."""

    lower: Float[Array, "*size"]
    upper: Float[Array, "*size"]

    def __init__(self, lower: Any, upper: Any):
        self.lower, self.upper = (as_floats("UniformDistribution", x) for x in (lower, upper))
        require("UniformDistribution", "lower <= upper, both finite", np.less_equal, self.lower, self.upper)

    def sample(self, key: PRNGKeyArray, size: int) -> Float[Array, " size"]:
        return self.lower + (self.upper - self.lower) * jax.random.uniform(key, (size,), self.lower.dtype)


class GaussianDistribution(AbstractDistribution):
    """Independent normal numbers; mean and deviation are one number, or one per coordinate, in rad, m or rates."""

    mean: Float[Array, "*size"]
    standard_deviation: Float[Array, "*size"]

    def __init__(self, mean: Any, standard_deviation: Any):
        self.mean, self.standard_deviation = (as_floats("GaussianDistribution", x) for x in (mean, standard_deviation))
        needed = "a finite mean and a finite standard deviation >= 0"
        require(
            "GaussianDistribution", needed, lambda mean, deviation: deviation >= 0.0, self.mean, self.standard_deviation
        )

    def sample(self, key: PRNGKeyArray, size: int) -> Float[Array, " size"]:
        return self.mean + self.standard_deviation * jax.random.normal(key, (size,), self.mean.dtype)


class UniformRotation(AbstractDistribution):
    """Uniform distribution of orientations: four normal numbers give a quaternion's direction."""

    def sample(self, key: PRNGKeyArray, size: int) -> Float[Array, " size"]:
        return jax.random.normal(key, (size,))


class CoordinateDistribution(eqx.Module):
    """A distribution on `size` coordinates from `start` on, of positions ("q") or velocities ("v").

    For an orientation (`is_rotation`) it draws a quaternion (w, x, y, z) of any length; three coordinates get the
    quaternion's roll-pitch-yaw angles.
    """

    distribution: AbstractDistribution
    space: str = eqx.field(static=True)
    start: int = eqx.field(static=True)
    size: int = eqx.field(static=True)
    is_rotation: bool = eqx.field(static=True, default=False)

    @property
    def coordinates(self) -> slice:
        return slice(self.start, self.start + self.size)

    def sample(self, key: PRNGKeyArray) -> Float[Array, " size"]:
        """Random coordinates; those of the model's other distributions are independent of them."""
        key = jax.random.fold_in(jax.random.fold_in(key, "qv".index(self.space)), self.start)
        if not self.is_rotation:
            return self.distribution.sample(key, self.size)
        quaternion = normalize_quaternion(self.distribution.sample(key, 4))
        return quaternion if self.size == 4 else quaternion_to_rpy(quaternion)


@of_one_model
def set_joint_random_position_distribution(
    model: MultibodyModel, joint: str | int, distribution: AbstractDistribution | None
) -> MultibodyModel:
    """Sets how `random_state` draws a joint's positions; None takes the distribution away.

    A joint with a quaternion is refused: set its rotation's and translation's distributions by body instead.
    """
    info = model.joint(joint)
    call = f"set_joint_random_position_distribution('{info.name}')"
    if JOINT_KINDS[info.kind].has_quaternion:
        raise ModelError(
            f"{call}: four numbers of a quaternion are no coordinates to draw one by one; use "
            "set_free_body_random_translation_distribution and set_free_body_random_rotation_distribution with body "
            f"'{model.body_names[info.child_body]}'."
        )
    require_own_coordinates(model, info, call)
    is_rotation = info.kind == "ball_rpy" and isinstance(distribution, UniformRotation)
    return with_distribution(model, call, distribution, "q", info.q, is_rotation)


@of_one_model
def set_joint_random_velocity_distribution(
    model: MultibodyModel, joint: str | int, distribution: AbstractDistribution | None
) -> MultibodyModel:
    """Sets how `random_state` draws a joint's velocities; None takes the distribution away."""
    info = model.joint(joint)
    call = f"set_joint_random_velocity_distribution('{info.name}')"
    require_own_coordinates(model, info, call)
    return with_distribution(model, call, distribution, "v", info.v)


@of_one_model
def set_free_body_random_translation_distribution(
    model: MultibodyModel, body: str | int, distribution: AbstractDistribution | None
) -> MultibodyModel:
    """Sets how `random_state` draws p_FM_F (x, y, z) of a free body's joint; None takes the distribution away."""
    call = "set_free_body_random_translation_distribution"
    q = free_joint(model, body, call).q
    return with_distribution(model, f"{call}({body!r})", distribution, "q", slice(q.stop - 3, q.stop))


@of_one_model
def set_free_body_random_rotation_distribution(
    model: MultibodyModel, body: str | int, distribution: AbstractDistribution | None
) -> MultibodyModel:
    """Sets how `random_state` draws R_FM of a free body's joint: as a quaternion (w, x, y, z), then normalised.

    Roll-pitch-yaw joints get the quaternion's angles. None takes the distribution away.
    """
    call = "set_free_body_random_rotation_distribution"
    q = free_joint(model, body, call).q
    return with_distribution(model, f"{call}({body!r})", distribution, "q", slice(q.start, q.stop - 3), True)


@of_one_model
def set_free_body_random_rotation_distribution_to_uniform(model: MultibodyModel, body: str | int) -> MultibodyModel:
    """Makes every orientation of a free body equally likely in `random_state`."""
    return set_free_body_random_rotation_distribution(model, body, UniformRotation())


def with_distribution(
    model: MultibodyModel,
    call: str,
    distribution: AbstractDistribution | None,
    space: str,
    where: slice,
    is_rotation: bool = False,
) -> MultibodyModel:
    """The model with a distribution that replaces those within the same coordinates."""
    size = where.stop - where.start
    if size == 0:
        raise ModelError(f"{call}: the joint is a weld and has no coordinates.")
    kept = tuple(
        d
        for d in model.random_distributions
        if not (d.space == space and where.start <= d.start and d.coordinates.stop <= where.stop)
    )
    if distribution is None:
        return dataclasses.replace(model, random_distributions=kept)
    check_distribution(call, distribution, size, is_rotation)
    of_dtype = jax.tree.map(lambda leaf: jnp.asarray(leaf, model.dtype), distribution)
    new = CoordinateDistribution(of_dtype, space, where.start, size, is_rotation)
    return dataclasses.replace(model, random_distributions=(*kept, new))


def check_distribution(call: str, distribution: AbstractDistribution, size: int, is_rotation: bool) -> None:
    """Refuses a distribution that does not draw as many numbers as there are coordinates."""
    if not isinstance(distribution, AbstractDistribution):
        raise ModelError(f"{call}: expected a distribution, such as mbjax.UniformDistribution, got {distribution!r}.")
    if isinstance(distribution, UniformRotation) and not is_rotation:
        raise ModelError(f"{call}: UniformRotation draws orientations; these {size} coordinate(s) are not one.")
    numbers = 4 if is_rotation else size
    what = "4 numbers, a quaternion" if is_rotation else f"{size} number(s)"
    message = f"{call}: the distribution must draw {what}; give it one number, or one per coordinate."
    try:
        shape = jax.eval_shape(lambda: distribution.sample(jax.random.key(0), numbers)).shape
    except (TypeError, ValueError) as error:
        raise ModelError(message) from error
    if shape != (numbers,):
        raise ModelError(message)


def as_floats(name: str, value: Any) -> Array:
    """Numbers as an array of floats, traced ones too."""
    numbers = as_numbers(value) if is_known(value) else as_traced_numbers(value)
    if numbers is None:
        raise ModelError(f"{name}: needs one number, or one per coordinate, got {shown(value)}.")
    return jnp.asarray(numbers, float)


def require(name: str, needed: str, holds: Any, *numbers: Array) -> None:
    """Refuses numbers for which `holds` is false or that are not finite, unless they are traced."""
    if any(isinstance(x, Tracer) for x in numbers):
        return
    values = [np.asarray(x) for x in numbers]
    try:
        valid = all(np.isfinite(x).all() for x in values) and bool(np.all(holds(*values)))
    except ValueError:
        valid = False
    if not valid:
        raise ModelError(f"{name}: needs {needed}, got {' and '.join(str(x.tolist()) for x in values)}.")
