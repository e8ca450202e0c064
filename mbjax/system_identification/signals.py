"""Signals: differentiation along the configuration manifold, zero-phase filters, resampling and delays."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.execution import call_compiled
from mbjax.joints import JOINT_KINDS
from mbjax.kinematics import difference_configuration, integrate_configuration
from mbjax.model import MultibodyModel


def differentiate_evenly(x: Float[np.ndarray, "steps n"], period: float) -> Float[np.ndarray, "steps n"]:
    """Rates of signals at even times, by differences of fourth order inside and of second order at the ends."""
    rate = np.gradient(x, period, axis=0, edge_order=2)
    if x.shape[0] >= 5:
        rate[2:-2] = (x[:-4] - 8.0 * x[1:-3] + 8.0 * x[3:-1] - x[4:]) / (12.0 * period)
    return rate


def differentiate_configurations(
    model: MultibodyModel, q: Float[np.ndarray, "steps nq"], period: float
) -> Float[np.ndarray, "steps nv"]:
    """Velocities along measured positions: differences on the manifold to the neighbours, fourth order inside."""
    Q = jnp.asarray(q, model.dtype)
    steps = Q.shape[0]

    def to_offset(k: int) -> np.ndarray:
        index = np.clip(np.arange(steps) + k, 0, steps - 1)
        return np.asarray(call_compiled(differences, model, Q, Q[index]), float)

    back, ahead = to_offset(-1), to_offset(1)
    v = (ahead - back) / (2.0 * period)
    v[0], v[-1] = (ahead[0] / period, -back[-1] / period) if steps < 3 else (0.0, 0.0)
    if steps >= 3:
        two_ahead, two_back = to_offset(2), to_offset(-2)
        v[0] = (4.0 * ahead[0] - two_ahead[0]) / (2.0 * period)
        v[-1] = -(4.0 * back[-1] - two_back[-1]) / (2.0 * period)
        if steps >= 5:
            inner = slice(2, -2)
            v[inner] = (8.0 * (ahead - back)[inner] - (two_ahead - two_back)[inner]) / (12.0 * period)
    return v


def differences(
    model: MultibodyModel, first: Float[Array, "steps nq"], second: Float[Array, "steps nq"]
) -> Float[Array, "steps nv"]:
    """From first to second configurations, along the velocities."""
    return jax.vmap(lambda a, b: difference_configuration(model, a, b))(first, second)


def moved_from(
    model: MultibodyModel, first: Float[Array, "steps nq"], d: Float[Array, "steps nv"]
) -> Float[Array, "steps nq"]:
    """Configurations that are d from the first ones."""
    return jax.vmap(lambda q, d: integrate_configuration(model, q, d))(first, d)


def low_pass(
    x: Float[np.ndarray, "steps n"], period: float, cutoff: float, *, order: int = 4
) -> Float[np.ndarray, "steps n"]:
    """Butterworth filter run forwards and backwards, so that nothing is late; `cutoff` in Hz, by scipy."""
    from scipy import signal  # a second and a half of `import mbjax` otherwise

    nyquist = 0.5 / period
    if not 0.0 < cutoff < nyquist:
        raise ModelError(f"low_pass: the cutoff must be between 0 and {nyquist:g} Hz, half the rate, got {cutoff:g}.")
    sections = np.asarray(signal.butter(order, cutoff / nyquist, output="sos"))
    pad = min(3 * (2 * len(sections) + 1), x.shape[0] - 1)
    return signal.sosfiltfilt(sections, np.asarray(x, float), axis=0, padlen=pad)


def smooth_positions(
    model: MultibodyModel, q: Float[np.ndarray, "steps nq"], period: float, cutoff: float
) -> Float[np.ndarray, "steps nq"]:
    """Positions through `low_pass`; on the manifold, as differences from the first."""
    Q = jnp.asarray(q, model.dtype)
    first = jnp.broadcast_to(Q[0], Q.shape)
    moved = call_compiled(differences, model, first, Q)
    smooth = jnp.asarray(low_pass(np.asarray(moved, float), period, cutoff), model.dtype)
    return np.asarray(call_compiled(moved_from, model, first, smooth), float)


def resample_positions(
    model: MultibodyModel, time: Float[np.ndarray, " steps"], q: Float[np.ndarray, "steps nq"], at: np.ndarray
) -> Float[np.ndarray, "new nq"]:
    """Positions at other times; quaternions take no detour over -q, and have unit length."""
    places = [
        slice(joint.q_start, joint.q_start + 4)
        for joint in model.layout.joints
        if joint.num_positions and JOINT_KINDS[joint.kind].has_quaternion
    ]
    q = q.copy()
    for place in places:
        turns = np.sum(q[1:, place] * q[:-1, place], 1) < 0.0
        q[1:, place] *= np.where(np.cumsum(turns) % 2 == 1, -1.0, 1.0)[:, None]
    new = resample(time, q, at)
    for place in places:
        new[:, place] /= np.linalg.norm(new[:, place], axis=1, keepdims=True)
    return new


def resample(
    time: Float[np.ndarray, " steps"], x: Float[np.ndarray, "steps n"], at: Float[np.ndarray, " new"]
) -> Float[np.ndarray, "new n"]:
    """Signals at other times, by a shape-preserving cubic (PCHIP), which does not overshoot."""
    from scipy import interpolate

    return interpolate.PchipInterpolator(time, x, axis=0)(at)


def shifted(x: Float[Array, "steps n"], samples: Float[Array, ""]) -> Float[Array, "steps n"]:
    """Signals `samples` later, x(k - samples), by Catmull-Rom cubics; differentiable, with the ends held."""
    steps = x.shape[0]
    place = jnp.arange(steps, dtype=x.dtype) - samples
    first = jnp.floor(place)
    f = (place - first)[:, None]
    i = first.astype(jnp.int32)
    a, b, c, d = (x[jnp.clip(i + k, 0, steps - 1)] for k in (-1, 0, 1, 2))
    return b + 0.5 * f * (c - a + f * (2.0 * a - 5.0 * b + 4.0 * c - d + f * (3.0 * (b - c) + d - a)))
