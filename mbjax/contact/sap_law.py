"""Contact with linear dissipation and Coulomb friction as a convex projection.

Castro, Permenter, Han 2022, arXiv 2110.10107: the impulse is the point of the friction cone that is nearest to
y = R⁻¹ (v̂ - v) in the norm of R.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mbjax.spatial import safe_divide, safe_sqrt

from .abstract_law import AbstractContactLaw

FRICTION_REGULARIZATION = 1e-3  # σ: R_t in units of w, as in Drake


class SapLaw(AbstractContactLaw):
    """R = diag(R_t, R_t, R_n), v̂ = v_hat along the normal. Not active: no force."""

    normal_W: Float[Array, "3 m"]
    friction: Float[Array, " m"]
    R_t: Float[Array, " m"]
    R_n: Float[Array, " m"]
    v_hat: Float[Array, " m"]
    active: Bool[Array, " m"]

    def magnitudes(self, v_n: Float[Array, " m"], slip_squared: Float[Array, " m"]) -> tuple[Array, Array]:
        slip = safe_sqrt(slip_squared)
        y_n, y_r, sticks, slides = self.unprojected(v_n, slip)
        mu_hat = self.friction * self.R_t / self.R_n
        sliding = (y_n + mu_hat * y_r) / (1.0 + self.friction * mu_hat)
        normal = jnp.where(sticks, y_n, jnp.where(slides, sliding, 0.0))
        return normal, jnp.where(sticks, 1.0 / self.R_t, safe_divide(self.friction * normal, slip))

    def slopes(self, v_n: Float[Array, " m"], slip_squared: Float[Array, " m"]) -> tuple[Array, Array, Array, Array]:
        y_n, y_r, sticks, slides = self.unprojected(v_n, safe_sqrt(slip_squared))
        mu = self.friction
        mu_hat = mu * self.R_t / self.R_n
        factor = 1.0 / (1.0 + mu * mu_hat)
        across = safe_divide(mu * (y_n + mu_hat * y_r) * factor, y_r)
        per_slip = jnp.where(sticks, 1.0, jnp.where(slides, across, 0.0)) / self.R_t
        extra = jnp.where(slides, (mu * mu_hat * factor - across) / self.R_t, 0.0)
        mixed = jnp.where(slides, -mu * factor / self.R_n, 0.0)
        normal = jnp.where(sticks, 1.0, jnp.where(slides, factor, 0.0)) / self.R_n
        return per_slip, extra, mixed, normal

    def sticking_magnitudes(self, v_n: Float[Array, " m"]) -> tuple[Array, Array, Array]:
        is_near = (self.v_hat >= 0.0) | (v_n < self.v_hat)  # they overlap, or would by the end of the step
        slope, per_slip = (jnp.where(is_near, 1.0 / R, 0.0) for R in (self.R_n, self.R_t))
        return slope * (self.v_hat - v_n), slope, per_slip

    def unprojected(self, v_n: Float[Array, " m"], slip: Float[Array, " m"]) -> tuple[Array, Array, Array, Array]:
        """y along the normal, the length of its tangential part, which points stick, and which slide."""
        y_n, y_r = (self.v_hat - v_n) / self.R_n, slip / self.R_t
        sticks = y_r < self.friction * y_n
        touches = y_n > -self.friction * self.R_t / self.R_n * y_r
        return y_n, y_r, sticks, ~sticks & touches
