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

from .abstract_law import AbstractContactLaw
from .elastic_force import ElasticForce


class HuntCrossleyLaw(AbstractContactLaw):
    """Below the slip speed `soft_speed` friction grows in proportion to it. Not active: no force."""

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

    def magnitudes(self, v_n: Float[Array, " m"], slip_squared: Float[Array, " m"]) -> tuple[Array, Array]:
        z, length = self.arguments(v_n, slip_squared)
        force, damping, _ = self.factors(z)
        normal = self.time_step * force * damping
        return normal, self.friction * (self.impulse_before if self.is_lagged else normal) / length

    def slopes(self, v_n: Float[Array, " m"], slip_squared: Float[Array, " m"]) -> tuple[Array, Array, Array, Array]:
        z, length = self.arguments(v_n, slip_squared)
        force, damping, force_slope = self.factors(z)
        dt, mu = self.time_step, self.friction
        slope = jnp.where(damping > 0.0, dt * (dt * force_slope * damping + self.dissipation * force), 0.0)
        per_slip = mu * (self.impulse_before if self.is_lagged else dt * force * damping) / length
        extra = -per_slip * slip_squared / (length * length)
        if self.is_lagged:
            return per_slip, extra, jnp.zeros_like(extra), slope
        softened = safe_sqrt(slip_squared) / length
        return per_slip, extra + mu * mu * slope * softened * softened, -mu * slope * softened, slope

    def sticking_magnitudes(self, v_n: Float[Array, " m"]) -> tuple[Array, Array, Array]:
        approaching = jnp.minimum(v_n, 0.0)
        normal, per_slip = self.magnitudes(approaching, jnp.zeros_like(v_n))
        slope = self.slopes(approaching, jnp.zeros_like(v_n))[3]
        return normal + slope * (approaching - v_n), slope, per_slip

    def arguments(self, v_n: Float[Array, " m"], slip_squared: Float[Array, " m"]) -> tuple[Array, Array]:
        """The normal speed n is taken at, and (|v_t|² + ε²)^½."""
        length = safe_sqrt(slip_squared + self.soft_speed**2)
        return v_n if self.is_lagged else v_n - self.friction * (length - self.soft_speed), length

    def factors(self, v_n: Float[Array, " m"]) -> tuple[Array, Array, Array]:
        """The elastic force at the step's end, the factor of dissipation, and how the force falls with distance."""
        distance = self.distance + self.time_step * v_n
        damping = 1.0 - self.dissipation * v_n
        return self.elastic.at(distance), jnp.where(damping > 0.0, damping, 0.0), self.elastic.slope(distance)
