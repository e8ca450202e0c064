"""How data weigh in a fit, and which unknowns are held a little."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .linear_torques import LinearTorques
from .parameters import Parameters
from .problem import AbstractProblem

INERTIA_STRENGTH = 0.1  # one over the deviation of log-Cholesky numbers from the start
SMALLEST_NOISE = 1e-6  # in parts of the error at the start


def anchors(unknown: Parameters, y: Array) -> Array:
    """Strengths that keep inertias from drifting to those of a rod or a sheet, where noise asks for impossible ones.

    A log-Cholesky number may then be off by ten, a factor of 22000, at the cost of one standard deviation.
    """
    is_inertia = [unknown.kinds[entry.kind].only_physical for entry in unknown.unknowns]
    strength = np.zeros(y.shape[0])
    strength[: len(unknown)] = np.where(is_inertia, INERTIA_STRENGTH, 0.0)
    return as_array(strength, y)


def needs_guidance(unknown: Parameters, problem: AbstractProblem) -> bool:
    """Whether unknown inertias may go astray, and steps cost little."""
    return bool(unknown.kind_names() & {"inertia", "center_of_mass"}) and isinstance(problem, LinearTorques)


def first_weights(at_start: Float[np.ndarray, " channels"]) -> Float[np.ndarray, " channels"]:
    """Weights from the errors at the start, a hundredth of which is taken for noise."""
    largest = at_start.max(initial=0.0)
    floor = 1e-3 * largest if largest > 0.0 else 1.0
    return 1.0 / (1e-2 * np.maximum(at_start, floor))


def noise_weights(left: np.ndarray, at_start: np.ndarray) -> Float[np.ndarray, " channels"]:
    """Weights from the errors that a first fit leaves."""
    floor = SMALLEST_NOISE * max(at_start.max(initial=0.0), np.finfo(float).tiny)
    return 1.0 / np.maximum(left, floor)


def as_array(weights: np.ndarray, like: Array) -> Array:
    """Weights in the type of the unknowns."""
    return jnp.asarray(weights, like.dtype)
