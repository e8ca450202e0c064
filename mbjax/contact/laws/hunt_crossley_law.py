"""Contact with Hunt–Crossley dissipation and regularized friction, in two convex approximations.

Castro, Han, Masterjohn 2023, arXiv 2312.03908. The normal impulse over the step is

    n(v_n) = dt f(φ + dt v_n) (1 - d v_n)₊,    f the elastic force, φ the signed distance at its start.

*lagged*: friction is bounded by the normal impulse of the step's start. *similar*: by that of its end, and n is taken
at v_n - μ |v_t|, which keeps it convex.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mbjax.spatial import safe_sqrt

from .abstract_law import AbstractContactLaw, LawAtSpeed
from .elastic_force import ElasticForce


class HuntCrossleyLaw(AbstractContactLaw):
    """The Hunt–Crossley law. Friction is proportional to slip below `soft_speed`. Inactive points have no force."""

    normal_W: Float[Array, "3 m"]
    friction: Float[Array, " m"]
    elastic: ElasticForce
    dissipation: Float[Array, " m"]
    distance: Float[Array, " m"]
    impulse_before: Float[Array, " m"]
    soft_speed: Float[Array, " m"]
    active: Bool[Array, " m"]
    time_step: Float[Array, ""]
    is_lagged: bool = eqx.field(static=True)

    def at(self, v_n: Float[Array, " m"], slip_squared: Float[Array, " m"]) -> LawAtSpeed:
        length = safe_sqrt(slip_squared + self.soft_speed**2)  # (|v_t|² + ε²)^½
        one_over_length, dt, mu = 1.0 / length, self.time_step, self.friction
        force, damping, force_slope = self.factors(v_n if self.is_lagged else v_n - mu * (length - self.soft_speed))
        normal = dt * force * damping
        slope = jnp.where(damping > 0.0, dt * (dt * force_slope * damping + self.dissipation * force), 0.0)
        per_slip = mu * (self.impulse_before if self.is_lagged else normal) * one_over_length
        softened = safe_sqrt(slip_squared) * one_over_length
        extra = -per_slip * softened * softened
        if self.is_lagged:
            return LawAtSpeed(normal, per_slip, extra, jnp.zeros_like(extra), slope)
        mixed = -mu * slope * softened
        return LawAtSpeed(normal, per_slip, extra - mu * softened * mixed, mixed, slope)

    def friction_bound(self, normal: Float[Array, " m"]) -> Float[Array, " m"]:
        return self.friction * (self.impulse_before if self.is_lagged else normal)

    def aligned(self, law: LawAtSpeed, slip_squared: Float[Array, " m"]) -> Float[Array, " m"]:
        return safe_sqrt(slip_squared) / safe_sqrt(slip_squared + self.soft_speed**2)

    def sticking_magnitudes(self, v_n: Float[Array, " m"]) -> tuple[Array, Array, Array]:
        approaching = jnp.minimum(v_n, 0.0)
        law = self.at(approaching, jnp.zeros_like(v_n))
        return law.normal + law.slope * (approaching - v_n), law.slope, law.per_slip

    def factors(self, v_n: Float[Array, " m"]) -> tuple[Array, Array, Array]:
        """The elastic force at the step's end, the factor of dissipation, and the force's decrease with distance."""
        distance = self.distance + self.time_step * v_n
        damping = 1.0 - self.dissipation * v_n
        return self.elastic.at(distance), jnp.where(damping > 0.0, damping, 0.0), self.elastic.slope(distance)
