"""Coordinates that the search moves in: position rates of all joints but quaternions, whose velocities they are.

Limits of positions are then bounds of single coordinates, also for joints with roll, pitch and yaw.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from mbjax.joints import JOINT_KINDS
from mbjax.kinematics import integrate_configuration, qdot_to_velocity_matrix
from mbjax.model import MultibodyModel, locked_velocities

FREE_TURN, FREE_SHIFT = np.pi, 0.3  # rad, m: how far from the guess a start without limits may be
FLOATING_TURN = 0.5  # rad


class Coordinates(NamedTuple):
    """Which position each tangent coordinate is, -1 for one of a quaternion, and how far from the guess starts are."""

    places: Int[np.ndarray, " nv"]
    spans: Float[np.ndarray, " nv"]

    @property
    def are_positions(self) -> Bool[np.ndarray, " nv"]:
        """Which tangent coordinates are rates of a position."""
        return self.places >= 0


def coordinates_of(model: MultibodyModel) -> Coordinates:
    """The tangent coordinates of a model."""
    places, spans = np.full(model.num_velocities, -1), np.ones(model.num_velocities)
    for joint in model.layout.joints:
        if joint.num_velocities == 0 or joint.mimics is not None:
            continue
        kind = JOINT_KINDS[joint.kind]
        if not kind.has_quaternion:
            places[joint.v] = np.arange(joint.q.start, joint.q.stop)
        turn = FLOATING_TURN if kind.is_floating else FREE_TURN
        spans[joint.v] = np.where(kind.angular_velocities, turn, FREE_SHIFT)
    return Coordinates(places, spans)


def columns_in_tangent(model: MultibodyModel, q: Float[Array, " nq"]) -> Float[Array, "nv nv"] | None:
    """Matrix from tangent coordinates to velocities; None where they are the same."""
    coordinates = coordinates_of(model)
    own = coordinates.are_positions
    if not has_roll_pitch_yaw(model):
        return None
    N = qdot_to_velocity_matrix(model, q)[:, np.where(own, coordinates.places, 0)]
    return jnp.where(own[None], N, jnp.eye(model.num_velocities, dtype=q.dtype))


def has_roll_pitch_yaw(model: MultibodyModel) -> bool:
    """Whether some joint's velocities are no position rates although it has no quaternion."""
    return any(kind in ("ball_rpy", "rpy_floating") for kind, _ in model.topology.mobods_by_kind)


def move(model: MultibodyModel, q: Float[Array, " nq"], d: Float[Array, " nv"]) -> Float[Array, " nq"]:
    """The configuration q moved along tangent coordinates."""
    places = coordinates_of(model).places
    if np.array_equal(places, np.arange(model.num_positions)):
        return q + d
    velocities = np.full(model.num_positions, -1)
    velocities[places[places >= 0]] = np.flatnonzero(places >= 0)
    changed = q + d[np.maximum(velocities, 0)]
    if np.all(velocities >= 0):
        return changed
    return jnp.where(velocities >= 0, changed, integrate_configuration(model, q, d))


def limits_in_tangent(
    model: MultibodyModel, q_limits: tuple[Float[Array, " nq"], Float[Array, " nq"]], q: Float[Array, " nq"]
) -> tuple[Float[Array, " nv"], Float[Array, " nv"]]:
    """Least and greatest change of each tangent coordinate from q; infinite for quaternions."""
    coordinates = coordinates_of(model)
    places = np.where(coordinates.are_positions, coordinates.places, 0)
    low, high = q_limits[0][places] - q[places], q_limits[1][places] - q[places]
    return (
        jnp.where(coordinates.are_positions, low, -jnp.inf),
        jnp.where(coordinates.are_positions, high, jnp.inf),
    )


def locked_positions(model: MultibodyModel) -> Bool[Array, " nq"]:
    """Which positions are those of locked joints."""
    velocities = np.zeros(model.num_positions, int)  # the first one of each position's joint
    for joint in model.layout.joints:
        if joint.num_velocities and joint.mimics is None:
            velocities[joint.q] = joint.v_start
    return locked_velocities(model)[velocities]


def drawn_start(
    model: MultibodyModel,
    q_limits: tuple[Float[Array, " nq"], Float[Array, " nq"]],
    guess: Float[Array, " nq"],
    draw: Float[Array, " nv"],
) -> Float[Array, " nq"]:
    """A configuration within limits from numbers in [0, 1); without limits, near the guess."""
    low, high = limits_in_tangent(model, q_limits, guess)
    spans = coordinates_of(model).spans
    low = jnp.where(jnp.isfinite(low), low, -spans)
    high = jnp.where(jnp.isfinite(high), high, jnp.maximum(spans, low + spans))
    low = jnp.minimum(low, high)
    change = jnp.where(locked_velocities(model), 0.0, low + draw * (high - low))
    return jnp.clip(move(model, guess, change), *q_limits)
