"""Contact with Hunt–Crossley dissipation and regularized friction, in two convex approximations.

Castro, Han, Masterjohn 2023, arXiv 2312.03908. The normal impulse over the step is

    n(v_n) = dt f(φ + dt v_n) (1 - d v_n)₊,    f the elastic force, φ the signed distance at its start.

*lagged*: friction is bounded by the normal impulse of the step's start. *similar*: by that of its end, and n is taken
at v_n - μ |v_t|, which keeps it convex.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_sqrt

from .abstract_law import AbstractContactLaw
from .elastic_force import ElasticForce
from .sap_law import identity_like, weighted_sum


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

    def impulse(self, v_AcBc_W: Float[Array, "3 m"]) -> Float[Array, "3 m"]:
        z, t, _ = self.arguments(v_AcBc_W)
        force, damping, _ = self.factors(z)
        normal = self.time_step * force * damping
        bound = self.impulse_before if self.is_lagged else normal
        gamma = ca.scale(self.normal_W, normal) - ca.scale(t, self.friction * bound)
        return jnp.where(self.active, gamma, 0.0)

    def stiffness(self, v_AcBc_W: Float[Array, "3 m"]) -> Float[Array, "3 3 m"]:
        z, t, length = self.arguments(v_AcBc_W)
        force, damping, force_slope = self.factors(z)
        dt, mu, n = self.time_step, self.friction, self.normal_W
        slope = jnp.where(damping > 0.0, dt * (dt * force_slope * damping + self.dissipation * force), 0.0)
        bound = self.impulse_before if self.is_lagged else dt * force * damping
        nn, tt, tn = ca.outer(n, n), ca.outer(t, t), ca.outer(t, n)
        across = identity_like(nn) - nn - tt
        parts = [(nn, slope), (across, mu * bound / length)]
        if not self.is_lagged:
            parts += [(tt, mu * mu * slope), (tn + ca.transpose(tn), -mu * slope)]
        return jnp.where(self.active, weighted_sum(parts), 0.0)

    def arguments(self, v_AcBc_W: Float[Array, "3 m"]) -> tuple[Array, Array, Array]:
        """The normal speed n is taken at, the softened slip direction, and (|v_t|² + ε²)^½."""
        v_n = ca.dot(self.normal_W, v_AcBc_W)
        v_t = v_AcBc_W - ca.scale(self.normal_W, v_n)
        length = safe_sqrt(ca.dot(v_t, v_t) + self.soft_speed**2)
        z = v_n if self.is_lagged else v_n - self.friction * (length - self.soft_speed)
        return z, ca.scale(v_t, 1.0 / length), length

    def factors(self, v_n: Float[Array, " m"]) -> tuple[Array, Array, Array]:
        """The elastic force at the step's end, the factor of dissipation, and how the force falls with distance."""
        distance = self.distance + self.time_step * v_n
        damping = 1.0 - self.dissipation * v_n
        return self.elastic.at(distance), jnp.where(damping > 0.0, damping, 0.0), self.elastic.slope(distance)
