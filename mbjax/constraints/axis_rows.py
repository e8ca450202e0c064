"""Rows of contacts, loops, balls and welds: they measure the pose X_PS along axes (rotation, translation) given in P.

A row is  a_t · p_PS_P + a_r · rho.  The vector rho measures how far R_PS is from the identity:

    aligned    rho = f_P x f_S, f the direction perpendicular to the two axes that rotate; any angle about f
    vector     rho = phi, the rotation vector of R_PS
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.execution.arrays import take
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import (
    one_minus_cos_over_x2_of_square,
    rotation_log,
    safe_normalize,
    sin_over_x_of_square,
    x_minus_sin_over_x3_of_square,
)

from .relative_motion import FramePair, RelativeMotion


class AxisKind(NamedTuple):
    """A kind of constraint along axes: its frames P and S, its axes, which of them rotate, and how they measure it."""

    frames: Callable[[Any], FramePair]
    axes: Callable[[Any], Float[Array, "6 k"]]
    rotational_rows: Callable[[Any], tuple[int, ...]] = lambda constraint: ()
    is_aligned: Callable[[Any], bool] = lambda constraint: False
    has_position_error: bool = True


class RowsInP(eqx.Module):
    """Rows with rate = torque_P · w_PS + force_P · v_PS, expressed in P.

    (torque, force) at So is the spatial force of λ = 1 on the body of S. `bias` is the second rate at vdot = 0, or None
    without velocities.
    """

    error: Float[Array, " r"]
    torque_P: Float[Array, "3 r"]
    force_P: Float[Array, "3 r"]
    bias: Float[Array, " r"] | None


def calc_axis_rows(
    kinds: Sequence[AxisKind],
    constraints: Sequence[Any],
    R_PS: Float[Array, "3 3 n"],
    p_PS_P: Float[Array, "3 n"],
    motion: RelativeMotion | None,
) -> RowsInP:
    """Axis rows of the constraints, one constraint after another."""
    parts = [kind.axes(constraint) for kind, constraint in zip(kinds, constraints, strict=True)]
    axes, counts = ca.concatenate(parts, 1), [part.shape[1] for part in parts]
    starts = np.cumsum([0, *counts])
    owners = np.repeat(np.arange(len(parts)), counts)
    groups: dict[bool, list[int]] = {}  # rotational rows, by whether they are aligned
    measured = np.ones(len(owners), bool)
    for i, (kind, constraint) in enumerate(zip(kinds, constraints, strict=True)):
        rows = [int(starts[i]) + row for row in kind.rotational_rows(constraint)]
        if rows:
            groups.setdefault(kind.is_aligned(constraint), []).extend(rows)
        measured[starts[i] : starts[i + 1]] = kind.has_position_error
    force_P = axes[3:]
    error = ca.dot(force_P, take(p_PS_P, owners, 1))
    bias = None if motion is None else ca.dot(force_P, take(motion.a_PS, owners, 1))
    rows = RowsInP(error, jnp.zeros_like(force_P), force_P, bias)
    for is_aligned, members in groups.items():
        pairs, row_pairs = np.unique(owners[members], return_inverse=True)
        measure = measure_alignment if is_aligned else measure_rotation_vector
        motion_of_group = jax.tree.map(lambda x, pairs=pairs: take(x, pairs, 1), motion)
        turned = measure(take(axes[:3], members, 1), row_pairs, take(R_PS, pairs, 2), motion_of_group)
        rows = add_rotation(rows, members, turned)
    if np.all(measured):
        return rows
    shown = measured.reshape(-1, *(1,) * (rows.error.ndim - 1))
    return RowsInP(jnp.where(shown, rows.error, 0.0), rows.torque_P, rows.force_P, rows.bias)


class Turn(NamedTuple):
    """The rotational part a_r · rho of some rows, with their torque and second rate."""

    error: Float[Array, " r"]
    torque_P: Float[Array, "3 r"]
    bias: Float[Array, " r"] | None


def add_rotation(rows: RowsInP, members: Sequence[int], turn: Turn) -> RowsInP:
    """The rows, with the rotational part added to the rows `members`."""

    def spread_out(x: Array, axis: int) -> Array:
        size = rows.error.shape[0]
        source = np.full(size, len(members))
        source[list(members)] = np.arange(len(members))
        nothing = jnp.zeros_like(take(x, [0], axis))
        return take(jnp.concatenate([x, nothing], axis=axis), source, axis)

    bias = None if rows.bias is None or turn.bias is None else rows.bias + spread_out(turn.bias, 0)
    torque_P = rows.torque_P + spread_out(turn.torque_P, 1)
    return RowsInP(rows.error + spread_out(turn.error, 0), torque_P, rows.force_P, bias)


def measure_alignment(
    axes: Float[Array, "3 r"], pairs: np.ndarray, R_PS: Float[Array, "3 3 n"], motion: RelativeMotion | None
) -> Turn:
    """Aligned rows a · (f x d) with d = R_PS f, two rows a pair. They equal b · d with b = a x f; d turns with S."""
    f = safe_normalize(ca.cross(axes[:, ::2], axes[:, 1::2]), axis=0)
    d = ca.matvec(R_PS, f)
    b, d_row = ca.cross(axes, take(f, pairs, 1)), take(d, pairs, 1)
    bias = None
    if motion is not None:
        second_rate = ca.cross(motion.alpha_PS, d) + ca.cross(motion.w_PS, ca.cross(motion.w_PS, d))
        bias = ca.dot(b, take(second_rate, pairs, 1))
    return Turn(ca.dot(b, d_row), ca.cross(d_row, b), bias)


def measure_rotation_vector(
    axes: Float[Array, "3 r"], pairs: np.ndarray, R_PS: Float[Array, "3 3 n"], motion: RelativeMotion | None
) -> Turn:
    """Rows a · phi of the rotation vector, R_PS = exp([phi]x), with rates from dphi/dt = J(phi) w."""
    phi = ca.over_columns(lambda R: rotation_log(R.reshape(3, 3)), R_PS.reshape(9, *R_PS.shape[2:]))
    phi_row, bias = take(phi, pairs, 1), None
    if motion is not None:
        w = motion.w_PS
        _, of_J = jax.jvp(lambda x: rotation_vector_rate(x, w), (phi,), (rotation_vector_rate(phi, w),))
        bias = ca.dot(axes, take(rotation_vector_rate(phi, motion.alpha_PS) + of_J, pairs, 1))
    return Turn(ca.dot(axes, phi_row), rotation_vector_rate(-phi_row, axes), bias)


def rotation_vector_rate(phi: Float[Array, "3 *n"], w: Float[Array, "3 *n"]) -> Float[Array, "3 *n"]:
    """Rate J(phi) w of the rotation vector of R for dR/dt = [w]x R, with J(phi)ᵀ = J(-phi).

    J w = w - phi x w / 2 + c phi x (phi x w), c = (1 - (a/2) cot(a/2)) / a² with a = |phi|: the inverse left Jacobian
    of SO(3) (Chirikjian 2012, eq. 10.86).
    """
    h2 = 0.25 * ca.dot(phi, phi)  # h² of the half angle h; c = (sin h - h cos h) / (4 h² sin h)
    c = 0.25 * (one_minus_cos_over_x2_of_square(h2) - x_minus_sin_over_x3_of_square(h2)) / sin_over_x_of_square(h2)
    turned = ca.cross(phi, w)
    return w - 0.5 * turned + ca.scale(ca.cross(phi, turned), c)
