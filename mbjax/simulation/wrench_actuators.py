"""Actuators that push bodies themselves: thrusters, propellers with their drag, reaction wheels, winches.

Drake has them outside of the plant too, as `Propeller`, whose spatial forces go into the plant's port.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.kinematics import jacobian_spatial_velocity, relative_rotation_matrix
from mbjax.model import MultibodyModel
from mbjax.number_rules import is_known
from mbjax.spatial import safe_normalize, small_matmul, small_matvec

from .ports import AppliedSpatialForces, Inputs
from .state import State

BodyName = str | int


class WrenchActuators(eqx.Module):
    """k actuators, each with a wrench that is fixed in its body and grows with its effort u, low <= u <= high.

    F_Bo_B (k, 6) is the wrench of a unit effort, torque first, at the body's origin and along its axes; efforts beyond
    the limits act as the limits. A body may have any number of them, and each has a name.
    """

    F_Bo_B: Float[Array, "k 6"]
    low: Float[Array, " k"]
    high: Float[Array, " k"]
    bodies: tuple[BodyName, ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)

    def __init__(
        self,
        bodies: Sequence[BodyName],
        F_Bo_B: ArrayLike,
        *,
        low: ArrayLike = -np.inf,
        high: ArrayLike = np.inf,
        names: Sequence[str] | None = None,
    ):
        if isinstance(bodies, str):
            raise ModelError(f"WrenchActuators: bodies must be a list, one for each actuator, got the name '{bodies}'.")
        self.bodies, count = tuple(bodies), len(tuple(bodies))
        self.names = tuple(f"wrench_{k}" for k in range(count)) if names is None else tuple(names)
        if len(set(self.names)) != count or len(self.names) != count:
            raise ModelError(
                f"WrenchActuators: {count} actuators need as many different names, got {list(self.names)}."
            )
        self.F_Bo_B = jnp.asarray(F_Bo_B, float)
        if self.F_Bo_B.shape != (count, 6):
            raise ModelError(
                f"WrenchActuators: F_Bo_B has shape {self.F_Bo_B.shape}; {count} bodies need ({count}, 6), torque and "
                "force of a unit effort, in a row each."
            )
        self.low, self.high = (jnp.broadcast_to(jnp.asarray(bound, float), (count,)) for bound in (low, high))
        self.require_bounds()

    @staticmethod
    def propellers(
        bodies: Sequence[BodyName],
        p_BoP_B: ArrayLike,
        axis_B: Any = (0.0, 0.0, 1.0),
        *,
        drag: ArrayLike = 0.0,
        low: ArrayLike = 0.0,
        high: ArrayLike = np.inf,
        names: Sequence[str] | None = None,
    ) -> "WrenchActuators":
        """Propellers or thrusters at points p_BoP_B (k, 3) of bodies, whose efforts are thrusts along axis_B, in N.

        `drag` is the torque about the axis for each newton of thrust, in m: above zero where the air turns the body
        about axis_B, below zero for propellers that turn the other way.
        """
        p, count = jnp.atleast_2d(jnp.asarray(p_BoP_B, float)), len(tuple(bodies))
        if p.shape != (count, 3):
            raise ModelError(
                f"WrenchActuators.propellers: p_BoP_B has shape {p.shape}; {count} bodies need ({count}, 3), a point "
                "each."
            )
        force = jnp.broadcast_to(safe_normalize(jnp.asarray(axis_B, float)), p.shape)
        torque = jnp.cross(p, force) + jnp.broadcast_to(jnp.asarray(drag, float), (count,))[:, None] * force
        names = [f"propeller_{k}" for k in range(count)] if names is None else names
        return WrenchActuators(bodies, jnp.concatenate([torque, force], axis=1), low=low, high=high, names=names)

    def require_bounds(self) -> None:
        """Raises for bounds between which no effort is."""
        if not is_known(self.low, self.high):
            return
        wrong = np.argwhere(~(np.asarray(self.low) <= np.asarray(self.high)))
        if len(wrong):
            k = int(wrong[0, 0])
            raise ModelError(
                f"WrenchActuators: the effort of '{self.names[k]}' must be at least {self.low[k]} and at most "
                f"{self.high[k]}: no effort is both."
            )

    @property
    def num_actuators(self) -> int:
        """Number of actuators, k."""
        return len(self.bodies)

    def within_limits(self, efforts: Float[Array, " k"]) -> Float[Array, " k"]:
        """The efforts that act; at a limit the derivative is that of the inside."""
        return jnp.where(efforts > self.high, self.high, jnp.where(efforts < self.low, self.low, efforts))

    def spatial_forces(
        self, model: MultibodyModel, q: Float[Array, " nq"], efforts: Float[Array, " k"]
    ) -> AppliedSpatialForces:
        """The wrenches on the bodies under efforts, in the world: for the port `applied_spatial_forces`."""
        F_Bo_B = self.F_Bo_B.astype(q.dtype) * self.within_limits(jnp.asarray(efforts, q.dtype))[:, None]
        return AppliedSpatialForces(self.bodies, wrenches_along(self.rotations(model, q), F_Bo_B))

    def inputs(self, model: MultibodyModel, state: State, efforts: ArrayLike, actuation: Any = None) -> Inputs:
        """`Inputs` with the wrenches at a state, and the actuation of joints if any."""
        forces = self.spatial_forces(model, state.q, jnp.asarray(efforts, model.dtype))
        return Inputs(actuation=actuation, applied_spatial_forces=forces)

    def matrix(self, model: MultibodyModel, q: Float[Array, " nq"]) -> Float[Array, "nv k"]:
        """G(q) with generalized forces tau = G(q) u: Jᵀ times the wrenches of unit efforts."""
        columns = wrenches_along(self.rotations(model, q), self.F_Bo_B.astype(q.dtype))
        jacobians = self.jacobians(model, q)
        parts = {body: [k for k, other in enumerate(self.bodies) if other == body] for body in jacobians}
        found = [small_matmul(jacobians[body].T, columns[np.array(parts[body])].T) for body in jacobians]
        order = np.argsort(np.concatenate(list(parts.values())))
        return jnp.concatenate(found, axis=1)[:, order]

    def rotations(self, model: MultibodyModel, q: Float[Array, " nq"]) -> Float[Array, "k 3 3"]:
        """Attitudes R_WB of the actuators' bodies."""
        of_body = {
            b: relative_rotation_matrix(model, q, "world", frame_of(model, b)) for b in dict.fromkeys(self.bodies)
        }
        return jnp.stack([of_body[body] for body in self.bodies])

    def jacobians(self, model: MultibodyModel, q: Float[Array, " nq"]) -> dict[BodyName, Float[Array, "6 nv"]]:
        """Jacobians of the spatial velocities V_WB_W of the bodies that have actuators."""
        zero = jnp.zeros(3, q.dtype)
        return {
            body: jacobian_spatial_velocity(model, q, frame_of(model, body), zero, "world", "world")
            for body in dict.fromkeys(self.bodies)
        }


def frame_of(model: MultibodyModel, body: BodyName) -> int:
    """Index of a body's own frame."""
    return model.body(body).body_frame


def wrenches_along(R: Float[Array, "k 3 3"], F: Float[Array, "k 6"]) -> Float[Array, "k 6"]:
    """Wrenches with both halves turned."""
    return small_matvec(R[:, None], F.reshape(-1, 2, 3)).reshape(-1, 6)
