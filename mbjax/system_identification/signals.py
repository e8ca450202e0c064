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

RPY_KINDS = ("ball_rpy", "rpy_floating")  # joints whose first three positions are roll, pitch and yaw
SLACK_AT_ENDS = 1e-6  # of a period, by which a time may be outside of those that are known


def derivative_weights(time: Float[np.ndarray, " steps"]) -> Float[np.ndarray, "steps 5"]:
    """Weights of the samples from two before to two after whose sum is the rate at each time.

    They differentiate the polynomial through five samples, of fourth order whatever the times, and at the two ends
    that through three (Fornberg 1988). Weights of samples that are not there are zero.
    """
    steps = len(time)
    offsets = np.arange(-2, 3)
    index = np.clip(np.arange(steps)[:, None] + offsets, 0, steps - 1)
    x = time[index] - time[:, None]
    used = np.ones((steps, 5), bool)
    for row, first in ((0, 0), (1, -1), (steps - 2, -1), (steps - 1, -2)):
        used[row] = (offsets >= first) & (offsets <= first + 2)
    W = np.zeros((steps, 5))
    for j in (0, 1, 3, 4):
        others = [k for k in (0, 1, 3, 4) if k != j]
        both = [used[:, j] & used[:, k] for k in others]
        ratios = [
            np.where(b, x[:, k] / np.where(b, x[:, k] - x[:, j], 1.0), 1.0) for k, b in zip(others, both, strict=True)
        ]
        W[:, j] = np.where(used[:, j], np.prod(ratios, 0) / np.where(used[:, j], x[:, j], 1.0), 0.0)
    W[:, 2] = -W.sum(1)
    return W


def differentiate(x: Float[np.ndarray, "steps n"], time: Float[np.ndarray, " steps"]) -> Float[np.ndarray, "steps n"]:
    """Rates of signals, by polynomials through five samples, and through three at the ends."""
    steps = len(time)
    index = np.clip(np.arange(steps)[:, None] + np.arange(-2, 3), 0, steps - 1)
    return np.einsum("tk,tkn->tn", derivative_weights(time), x[index])


def differentiate_configurations(
    model: MultibodyModel, q: Float[np.ndarray, "steps nq"], time: Float[np.ndarray, " steps"]
) -> Float[np.ndarray, "steps nv"]:
    """Velocities along measured positions: `differentiate` of the differences on the manifold to the neighbours."""
    Q, W = jnp.asarray(q, model.dtype), derivative_weights(time)
    steps = len(time)
    v = np.zeros((steps, model.num_velocities))
    for j, offset in ((0, -2), (1, -1), (3, 1), (4, 2)):
        index = np.clip(np.arange(steps) + offset, 0, steps - 1)
        v += W[:, j, None] * np.asarray(call_compiled(differences, model, Q, Q[index]), float)
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
    """Positions through `low_pass`; rotations as quaternions without jumps, then of unit length.

    Rotation vectors and roll-pitch-yaw angles would jump where a body turns on and on.
    """
    smooth = low_pass(without_jumps(model, q), period, cutoff)
    for place in quaternion_places(model):
        smooth[:, place] /= np.linalg.norm(smooth[:, place], axis=1, keepdims=True)
    turning = [joint for joint in model.layout.joints if joint.num_positions and joint.kind in RPY_KINDS]
    if not turning:
        return smooth
    from scipy.spatial.transform import Rotation

    moved = np.zeros((len(q), model.num_velocities))
    for joint in turning:
        angles = slice(joint.q_start, joint.q_start + 3)
        measured = Rotation.from_euler("xyz", q[:, angles])
        numbers = low_pass(of_one_sign(measured.as_quat()), period, cutoff)
        moved[:, joint.v_start : joint.v_start + 3] = (Rotation.from_quat(numbers) * measured.inv()).as_rotvec()
        smooth[:, angles] = q[:, angles]  # from where the filter moves them, on their own branch
    arrays = (jnp.asarray(x, model.dtype) for x in (smooth, moved))
    return np.asarray(call_compiled(moved_from, model, *arrays), float)


def quaternion_places(model: MultibodyModel) -> list[slice]:
    """Where quaternions are among the positions."""
    return [
        slice(joint.q_start, joint.q_start + 4)
        for joint in model.layout.joints
        if joint.num_positions and JOINT_KINDS[joint.kind].has_quaternion
    ]


def without_jumps(model: MultibodyModel, q: Float[np.ndarray, "steps nq"]) -> Float[np.ndarray, "steps nq"]:
    """Positions whose quaternions do not change their sign from sample to sample."""
    q = np.array(q, float)
    for place in quaternion_places(model):
        q[:, place] = of_one_sign(q[:, place])
    return q


def of_one_sign(quaternions: Float[np.ndarray, "steps 4"]) -> Float[np.ndarray, "steps 4"]:
    """Quaternions, or their negatives, that are near those before."""
    turns = np.sum(quaternions[1:] * quaternions[:-1], 1) < 0.0
    signs = np.where(np.cumsum(turns) % 2 == 1, -1.0, 1.0)
    return np.concatenate([quaternions[:1], quaternions[1:] * signs[:, None]])


def resample_positions(
    model: MultibodyModel, time: Float[np.ndarray, " steps"], q: Float[np.ndarray, "steps nq"], at: np.ndarray
) -> Float[np.ndarray, "new nq"]:
    """Positions at other times; quaternions take no detour over -q, and have unit length."""
    new = resample_smooth(time, without_jumps(model, q), at)
    for place in quaternion_places(model):
        new[:, place] /= np.linalg.norm(new[:, place], axis=1, keepdims=True)
    return new


def resample(
    time: Float[np.ndarray, " steps"], x: Float[np.ndarray, "steps n"], at: Float[np.ndarray, " new"]
) -> Float[np.ndarray, "new n"]:
    """Signals at other times within those given, by a shape-preserving cubic (PCHIP), which does not overshoot."""
    from scipy import interpolate

    time, at = np.asarray(time, float), np.asarray(at, float)
    slack = SLACK_AT_ENDS * float(time[-1] - time[0]) / len(time)
    if not np.all((at >= time[0] - slack) & (at <= time[-1] + slack)):
        raise ModelError(
            f"resample: times must lie within {time[0]:g} … {time[-1]:g} s, got {at.min():g} … {at.max():g}."
        )
    return interpolate.PchipInterpolator(time, x, axis=0)(at)


def resample_smooth(
    time: Float[np.ndarray, " steps"], x: Float[np.ndarray, "steps n"], at: Float[np.ndarray, " new"]
) -> Float[np.ndarray, "new n"]:
    """Signals without steps, such as positions, at other times, by a cubic spline with continuous curvature."""
    from scipy import interpolate

    return interpolate.CubicSpline(time, x, axis=0)(at)


def shifted(x: Float[Array, "steps n"], samples: Float[Array, ""]) -> Float[Array, "steps n"]:
    """Signals `samples` later, x(k - samples), by Catmull-Rom cubics; differentiable, with the ends held."""
    steps = x.shape[0]
    place = jnp.arange(steps, dtype=x.dtype) - samples
    first = jnp.floor(place)
    f = (place - first)[:, None]
    i = first.astype(jnp.int32)
    a, b, c, d = (x[jnp.clip(i + k, 0, steps - 1)] for k in (-1, 0, 1, 2))
    return b + 0.5 * f * (c - a + f * (2.0 * a - 5.0 * b + 4.0 * c - d + f * (3.0 * (b - c) + d - a)))
