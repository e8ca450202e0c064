"""Exciting motions: Fourier series within limits that tell as much as possible about the unknown parameters."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jaxtyping import Array, Float

from mbjax.dynamics import inverse_dynamics
from mbjax.errors import ModelError
from mbjax.kinematics import is_velocity_equal_to_qdot
from mbjax.model import MultibodyModel

from .base_parameters import base_parameters
from .log import Log, make_log
from .regressor import regressor_of_log

SOFTNESS = 0.05  # of limits, in parts of their range
WIDEST = 1e3  # stands for infinite limits


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
    the motion is shrunk until it holds all. It needs coordinates that are not quaternions.
    """
    if not is_velocity_equal_to_qdot(model) or model.num_positions != model.num_velocities:
        raise ModelError("exciting_motion: the model has joints whose velocities are not the rates of positions.")
    base = base_parameters(model)
    time = jnp.arange(samples, dtype=model.dtype) * (period / samples)
    limits = motion_limits(model, margin)
    middle = middle_of(limits[0]) if center is None else jnp.asarray(center, model.dtype)
    key, nv = jax.random.key(seed), model.num_velocities
    spread = jnp.minimum(limits[0][1] - middle, middle - limits[0][0])
    size = jnp.minimum(spread, 1.0) / (2.0 * harmonics)
    start = size * jax.random.normal(key, (2, harmonics, nv), model.dtype)

    def rows_of(coefficients: Array) -> Array:
        q, v, vdot = fourier(time, period, middle, coefficients)
        Y = regressor_of_log(model, q, v, vdot)[..., jnp.array(base.independent)]
        return Y.reshape(-1, base.rank)

    column = jnp.maximum(jnp.sum(rows_of(start) ** 2, 0), 1e-12)

    def cost(coefficients: Array, _: None) -> Array:
        Y = rows_of(coefficients) * jax.lax.rsqrt(column)
        eye = 1e-9 * jnp.eye(base.rank, dtype=Y.dtype)
        return -jnp.linalg.slogdet(Y.T @ Y + eye)[1] + penalty(model, time, period, middle, coefficients, limits)

    solver = optx.BFGS(rtol=1e-4, atol=1e-4)
    found = jax.jit(lambda start: optx.minimise(cost, solver, start, max_steps=max_steps, throw=False).value)(start)
    coefficients = shrunk(model, time, period, middle, found, limits)
    q, v, vdot = fourier(time, period, middle, coefficients)
    effort = jax.jit(jax.vmap(lambda *x: inverse_dynamics(model, *x, force_elements=True)))(q, v, vdot)
    numbers = [scaled_condition(rows_of(x)) for x in (coefficients, shrunk(model, time, period, middle, start, limits))]
    arrays = [np.asarray(x, float) for x in (time, q, v, vdot, effort, coefficients)]
    return ExcitingMotion(*arrays, *numbers)  # pyright: ignore[reportArgumentType]


def fourier(
    time: Float[Array, " steps"], period: float, middle: Float[Array, " nv"], coefficients: Float[Array, "2 k nv"]
) -> tuple[Float[Array, "steps nv"], Float[Array, "steps nv"], Float[Array, "steps nv"]]:
    """Positions, velocities and accelerations of a Fourier series."""
    w = (2.0 * np.pi / period) * jnp.arange(1, coefficients.shape[1] + 1, dtype=time.dtype)
    sine, cosine = jnp.sin(time[:, None] * w), jnp.cos(time[:, None] * w)
    a, b = coefficients
    q = middle + sine @ a + cosine @ b
    return q, (cosine * w) @ a - (sine * w) @ b, -(sine * w**2) @ a - (cosine * w**2) @ b


def motion_limits(model: MultibodyModel, margin: float) -> tuple[tuple[Array, Array], ...]:
    """Lower and upper limits of positions, velocities, accelerations and efforts, shrunk by `margin`."""
    p = model.parameters
    limits = (
        jnp.zeros(model.num_velocities, model.dtype)
        .at[np.array(model.layout.velocities_of_actuators, int)]
        .add(jnp.minimum(p.effort_limit, WIDEST))
    )
    limits = jnp.where(limits > 0.0, limits, WIDEST)
    pairs = (
        (model.position_lower_limits, model.position_upper_limits),
        (model.velocity_lower_limits, model.velocity_upper_limits),
        (model.acceleration_lower_limits, model.acceleration_upper_limits),
        (-limits, limits),
    )
    bounded = []
    for low, high in pairs:
        low, high = jnp.clip(low, -WIDEST, WIDEST), jnp.clip(high, -WIDEST, WIDEST)
        half, mid = 0.5 * margin * (high - low), 0.5 * (high + low)
        bounded.append((mid - half, mid + half))
    return tuple(bounded)


def middle_of(limits: tuple[Array, Array]) -> Float[Array, " nq"]:
    """The middle of position limits; zero where there are none."""
    low, high = limits
    return jnp.where(high - low < WIDEST, 0.5 * (low + high), 0.0)


def excess(
    model: MultibodyModel, time: Array, period: float, middle: Array, coefficients: Array, limits: tuple
) -> list[Float[Array, "steps nv"]]:
    """How far positions, velocities, accelerations and efforts are outside of their limits, in parts of the range."""
    motion = fourier(time, period, middle, coefficients)
    effort = jax.vmap(lambda *x: inverse_dynamics(model, *x, force_elements=True))(*motion)
    return [
        jnp.maximum(x - high, low - x) / (high - low) for x, (low, high) in zip((*motion, effort), limits, strict=True)
    ]


def penalty(
    model: MultibodyModel, time: Array, period: float, middle: Array, coefficients: Array, limits: tuple
) -> Float[Array, ""]:
    """A cost of passing limits, which begins softly before them."""
    outside = excess(model, time, period, middle, coefficients, limits)
    return sum((jnp.sum(jnp.maximum(x + SOFTNESS, 0.0) ** 2) * 1e3 for x in outside), jnp.zeros((), time.dtype))


def shrunk(
    model: MultibodyModel, time: Array, period: float, middle: Array, coefficients: Array, limits: tuple
) -> Float[Array, "2 k nv"]:
    """The coefficients times the largest of many factors up to one with which all limits hold."""
    factors = jnp.linspace(1.0, 0.02, 50, dtype=time.dtype)

    def worst(factor: Array) -> Array:
        return jnp.max(
            jnp.stack([jnp.max(x) for x in excess(model, time, period, middle, factor * coefficients, limits)])
        )

    holds = np.asarray(jax.jit(jax.vmap(worst))(factors)) <= 0.0
    if not holds.any():
        raise ModelError("exciting_motion: no motion about the center holds all limits; give another center.")
    return coefficients * factors[int(np.argmax(holds))]


def scaled_condition(Y: Float[Array, "rows n"]) -> float:
    """Condition number with columns scaled to one."""
    S = np.linalg.svd(np.asarray(Y, float) / np.linalg.norm(np.asarray(Y, float), axis=0), compute_uv=False)
    return float(S[0] / S[-1])
