"""Exciting motions: Fourier series within limits that tell as much as possible about the unknown parameters."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jaxtyping import Array, Float

from mbjax.dynamics import inverse_dynamics
from mbjax.errors import ModelError
from mbjax.execution import call_compiled
from mbjax.kinematics import is_velocity_equal_to_qdot
from mbjax.linear_algebra import log_determinant
from mbjax.model import MultibodyModel

from .base_parameters import base_parameters, condition_number
from .log import Log, make_log
from .regressor import regressor_of_log

SOFTNESS = 0.05  # of limits, in parts of their range
WIDEST = 1e3  # stands for infinite limits
BESIDE = 1.0  # rad or m, from a limit that has none opposite to the middle of a motion


@dataclasses.dataclass(frozen=True, eq=False)
class ExcitingMotion:
    """A periodic motion within limits: positions, velocities, accelerations and efforts at even times."""

    time: Float[np.ndarray, " steps"]
    q: Float[np.ndarray, "steps nq"]
    v: Float[np.ndarray, "steps nv"]
    vdot: Float[np.ndarray, "steps nv"]
    effort: Float[np.ndarray, "steps nv"]
    coefficients: Float[np.ndarray, "2 harmonics nv"]
    condition_number: float
    condition_number_at_start: float

    def log(self, model: MultibodyModel) -> Log:
        """The motion as a log, with the efforts of the model."""
        return make_log(model, self.time, self.q, self.v, self.vdot, effort=self.effort, name="exciting motion")


def exciting_motion(
    model: MultibodyModel,
    *,
    period: float = 10.0,
    harmonics: int = 5,
    samples: int = 100,
    center: Any = None,
    margin: float = 0.9,
    max_steps: int = 60,
    seed: int = 0,
) -> ExcitingMotion:
    """A motion that maximizes log det YᵀY of the base parameters, by gradient, within `margin` of all limits.

    q(t) = q_0 + sum_k a_k sin(k w t) + b_k cos(k w t),  w = 2 pi / period  (Swevers et al. 1997)
    Limits are those of positions, velocities, accelerations and efforts; a limit that is passed costs, and at the end
    the motion is shrunk until it holds all. `center` are the positions q_0 that it goes around: by default the middle
    of the limits, 1 rad or m beside one that has none opposite, and zero without limits. A limit of positions without
    one opposite is held on both sides of the center. It needs coordinates that are not quaternions.
    """
    if not is_velocity_equal_to_qdot(model) or model.num_positions != model.num_velocities:
        raise ModelError("exciting_motion: the model has joints whose velocities are not the rates of positions.")
    base = base_parameters(model)
    time = jnp.arange(samples, dtype=model.dtype) * (period / samples)
    limits_of_positions = model.position_lower_limits, model.position_upper_limits
    middle = middle_of(*limits_of_positions) if center is None else jnp.asarray(center, model.dtype)
    limits = motion_limits(model, margin, middle)
    low, high = limits[0]
    size = jnp.minimum(jnp.minimum(high - middle, middle - low), 1.0) / (2.0 * harmonics)
    start = size * jax.random.normal(jax.random.key(seed), (2, harmonics, model.num_velocities), model.dtype)
    series = Series(model, time, jnp.asarray(period, model.dtype), middle, limits, tuple(map(int, base.independent)))
    found = shrunk(series, call_compiled(most_exciting, series, start, max_steps))
    q, v, vdot, effort = call_compiled(Series.motion, series, found)
    before, after = (
        float(condition_number(call_compiled(Series.rows, series, x))) for x in (shrunk(series, start), found)
    )
    time, q, v, vdot, effort, found = (np.asarray(x, float) for x in (time, q, v, vdot, effort, found))
    return ExcitingMotion(time, q, v, vdot, effort, found, after, before)


class Series(eqx.Module):
    """Fourier series of a model's positions about a middle, by their coefficients, and its limits."""

    model: MultibodyModel
    time: Float[Array, " steps"]
    period: Float[Array, ""]
    middle: Float[Array, " nv"]
    limits: tuple[tuple[Array, Array], ...]  # of positions, velocities, accelerations and efforts
    independent: tuple[int, ...] = eqx.field(static=True)  # columns of the regressor

    def motion(self, coefficients: Float[Array, "2 k nv"]) -> tuple[Array, Array, Array, Array]:
        """Positions, velocities, accelerations and efforts."""
        motion = fourier(self.time, self.period, self.middle, coefficients)
        return *motion, jax.vmap(lambda *x: inverse_dynamics(self.model, *x, force_elements=True))(*motion)

    def rows(self, coefficients: Float[Array, "2 k nv"]) -> Float[Array, "rows rank"]:
        """The regressor's columns of base parameters along the motion."""
        motion = fourier(self.time, self.period, self.middle, coefficients)
        Y = regressor_of_log(self.model, *motion)[..., np.array(self.independent)]
        return Y.reshape(-1, Y.shape[-1])

    def excess(self, coefficients: Float[Array, "2 k nv"]) -> Float[Array, "4 steps nv"]:
        """How far positions, velocities, accelerations and efforts are outside of their limits, in parts of those."""
        pairs = zip(self.motion(coefficients), self.limits, strict=True)
        return jnp.stack([jnp.maximum(x - high, low - x) / (high - low) for x, (low, high) in pairs])


def most_exciting(series: Series, start: Float[Array, "2 k nv"], max_steps: int) -> Float[Array, "2 k nv"]:
    """Coefficients with a small cost: -log det YᵀY, and what begins softly before limits and grows beyond."""
    column = jnp.maximum(jnp.sum(series.rows(start) ** 2, 0), 1e-12)

    def cost(coefficients: Array, _: None) -> Array:
        Y = series.rows(coefficients) * jax.lax.rsqrt(column)
        eye = 1e-9 * jnp.eye(Y.shape[1], dtype=Y.dtype)
        beyond = jnp.maximum(series.excess(coefficients) + SOFTNESS, 0.0)
        return 1e3 * jnp.sum(beyond**2) - log_determinant(Y.T @ Y + eye)

    solver = optx.BFGS(rtol=1e-4, atol=1e-4)
    return optx.minimise(cost, solver, start, max_steps=max_steps, throw=False).value


def fourier(
    time: Float[Array, " steps"], period: Array, middle: Float[Array, " nv"], coefficients: Float[Array, "2 k nv"]
) -> tuple[Float[Array, "steps nv"], Float[Array, "steps nv"], Float[Array, "steps nv"]]:
    """Positions, velocities and accelerations of a Fourier series."""
    w = (2.0 * np.pi / period) * jnp.arange(1, coefficients.shape[1] + 1, dtype=time.dtype)
    sine, cosine = jnp.sin(time[:, None] * w), jnp.cos(time[:, None] * w)
    a, b = coefficients
    q = middle + sine @ a + cosine @ b
    return q, (cosine * w) @ a - (sine * w) @ b, -(sine * w**2) @ a - (cosine * w**2) @ b


def motion_limits(model: MultibodyModel, margin: float, middle: Float[Array, " nq"]) -> tuple[tuple[Array, Array], ...]:
    """Lower and upper limits of positions, velocities, accelerations and efforts, shrunk by `margin`."""
    p = model.parameters
    limits = (
        jnp.zeros(model.num_velocities, model.dtype)
        .at[np.array(model.layout.velocities_of_actuators, int)]
        .add(jnp.minimum(p.effort_limit, WIDEST))
    )
    limits = jnp.where(limits > 0.0, limits, WIDEST)
    zero = jnp.zeros(model.num_velocities, model.dtype)
    pairs = (
        (model.position_lower_limits, model.position_upper_limits, middle),
        (model.velocity_lower_limits, model.velocity_upper_limits, zero),
        (model.acceleration_lower_limits, model.acceleration_upper_limits, zero),
        (-limits, limits, zero),
    )
    shrunk = []
    for low, high in (bounded(*pair) for pair in pairs):
        half, mid = 0.5 * margin * (high - low), 0.5 * (high + low)
        shrunk.append((mid - half, mid + half))
    return tuple(shrunk)


def bounded(low: Array, high: Array, middle: Array) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Finite limits: one without another opposite stands for both, as far from the middle; without any, wide ones."""
    has_low, has_high = low > -WIDEST, high < WIDEST
    to_low, to_high = middle - jnp.where(has_low, low, 0.0), jnp.where(has_high, high, 0.0) - middle
    to_low, to_high = (jnp.where(x > 0.0, x, BESIDE) for x in (to_low, to_high))  # a middle outside holds no motion
    below = jnp.where(has_high, high - 2.0 * to_high, middle - WIDEST)
    above = jnp.where(has_low, low + 2.0 * to_low, middle + WIDEST)
    return jnp.where(has_low, low, below), jnp.where(has_high, high, above)


def middle_of(low: Array, high: Array) -> Float[Array, " nq"]:
    """The middle of position limits; beside the only one, and zero where there are none."""
    has_low, has_high = low > -WIDEST, high < WIDEST
    one = jnp.where(has_low, low + BESIDE, jnp.where(has_high, high - BESIDE, 0.0))
    return jnp.where(has_low & has_high, 0.5 * (low + high), one)


def shrunk(series: Series, coefficients: Float[Array, "2 k nv"]) -> Float[Array, "2 k nv"]:
    """The coefficients times the largest of many factors up to one with which all limits hold."""
    factors = jnp.linspace(1.0, 0.02, 50, dtype=coefficients.dtype)
    holds = np.asarray(call_compiled(largest_excess, series, coefficients, factors)) <= 0.0
    if not holds.any():
        raise ModelError("exciting_motion: no motion about the center holds all limits; give another center.")
    return coefficients * factors[int(np.argmax(holds))]


def largest_excess(series: Series, coefficients: Array, factors: Float[Array, " n"]) -> Float[Array, " n"]:
    """The largest excess of the coefficients times each factor."""
    return jax.vmap(lambda factor: jnp.max(series.excess(factor * coefficients)))(factors)
