"""A spring and damper between points of two bodies."""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from mbjax.kinematics import PositionKinematics
from mbjax.kinematics.frames import calc_point_velocity
from mbjax.model import AbstractForceElement, MultibodyModel
from mbjax.model.element_keys import BodyKey, Numbers
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_norm, safe_normalize

from .checked_numbers import checked_element_numbers
from .multibody_forces import MultibodyForces


class LinearSpringDamper(AbstractForceElement):
    """Spring and damper that pull points P of body A and Q of body B together along the line between them.

    The pull is f = stiffness (length - free_length) + damping d(length)/dt, in N. Where the points coincide there is no
    line: no force acts, and the derivative is that of a spring without free length and damper. Drake raises there.
    """

    p_AP: Float[Array, "3"]
    p_BQ: Float[Array, "3"]
    free_length: Float[Array, ""]
    stiffness: Float[Array, ""]
    damping: Float[Array, ""]
    body_A: Any = eqx.field(static=True)
    body_B: Any = eqx.field(static=True)

    def __init__(
        self,
        body_A: BodyKey,
        p_AP: Numbers,
        body_B: BodyKey,
        p_BQ: Numbers,
        free_length: ArrayLike,
        stiffness: ArrayLike,
        damping: ArrayLike = 0.0,
    ):
        name = "LinearSpringDamper"
        self.body_A, self.body_B = body_A, body_B
        self.p_AP = checked_element_numbers(name, "p_AP", p_AP, size=3, signed=True)
        self.p_BQ = checked_element_numbers(name, "p_BQ", p_BQ, size=3, signed=True)
        self.free_length = checked_element_numbers(name, "free_length", free_length)
        self.stiffness = checked_element_numbers(name, "stiffness", stiffness)
        self.damping = checked_element_numbers(name, "damping", damping)

    def resolve(self, plant):
        A, B = (plant.body(body, "LinearSpringDamper").index for body in (self.body_A, self.body_B))
        return LinearSpringDamper(A, self.p_AP, B, self.p_BQ, self.free_length, self.stiffness, self.damping)

    def forces(self, model, position, velocity, q, v):
        del q
        P, Q = (
            attach(model, position, self.body_A, self.p_AP),
            attach(model, position, self.body_B, self.p_BQ),
        )
        v_WP, v_WQ = (calc_point_velocity(velocity, X.mobod, X.p_MP_W)[3:] for X in (P, Q))
        line = Q.p_WP - P.p_WP
        direction = safe_normalize(line)
        rate = ca.dot(direction, v_WQ - v_WP)
        pull = self.stiffness * line + (self.damping * rate - self.stiffness * self.free_length) * direction
        body = jnp.zeros((model.num_bodies, 6), v.dtype)
        body = body.at[self.body_A].add(jnp.concatenate([ca.cross(P.p_BoP_W, pull), pull]))
        body = body.at[self.body_B].add(-jnp.concatenate([ca.cross(Q.p_BoP_W, pull), pull]))
        return MultibodyForces(jnp.zeros_like(v), body)

    def potential_energy(self, model, position, q):
        del q
        P, Q = (
            attach(model, position, self.body_A, self.p_AP),
            attach(model, position, self.body_B, self.p_BQ),
        )
        line = Q.p_WP - P.p_WP
        length, free = safe_norm(line), self.free_length
        at_coincidence = (
            ca.dot(line, line) + free * free
        )  # equals the other branch there, with the second derivative of a free length 0
        return 0.5 * self.stiffness * jnp.where(length == 0.0, at_coincidence, (length - free) ** 2)


class Attachment(NamedTuple):
    """Position of a body's point P from the body's origin, from its mobod's and from the world's, all in W."""

    mobod: int
    p_BoP_W: Array
    p_MP_W: Array
    p_WP: Array


def attach(model: MultibodyModel, position: PositionKinematics, body: int, p_BP: Array) -> Attachment:
    """Positions in W of a point that is given in a body's frame."""
    mobod, placement = model.topology.body_mobods[body], position.placement
    R_WM = position.R_WM[..., mobod]
    p_BoP_W = ca.matvec(R_WM, ca.matvec(placement.R_MB[..., body], p_BP))
    p_MP_W = ca.matvec(R_WM, placement.p_MB[:, body]) + p_BoP_W
    return Attachment(mobod, p_BoP_W, p_MP_W, position.p_WM[:, mobod] + p_MP_W)
