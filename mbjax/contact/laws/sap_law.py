"""Contact with linear dissipation and Coulomb friction as a convex projection.

Castro, Permenter, Han 2022, arXiv 2110.10107: the impulse is the point of the friction cone that is nearest to
y = R⁻¹ (v̂ - v) in the norm of R.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mbjax.spatial import safe_sqrt

from .abstract_law import AbstractContactLaw, LawAtSpeed, one_over

FRICTION_REGULARIZATION = 1e-3  # σ: R_t in units of w, as in Drake


class SapLaw(AbstractContactLaw):
    """SAP's law of contact: R = diag(R_t, R_t, R_n), v̂ = v_hat along the normal. Inactive points have no force."""

    normal_W: Float[Array, "3 m"]
    friction: Float[Array, " m"]
    R_t: Float[Array, " m"]
    R_n: Float[Array, " m"]
    v_hat: Float[Array, " m"]
    active: Bool[Array, " m"]

    def at(self, v_n: Float[Array, " m"], slip_squared: Float[Array, " m"]) -> LawAtSpeed:
        slip, mu = safe_sqrt(slip_squared), self.friction
        stiffness_n, stiffness_t = 1.0 / self.R_n, 1.0 / self.R_t
        mu_hat = mu * self.R_t * stiffness_n
        factor = 1.0 / (1.0 + mu * mu_hat)
        y_n, y_r = stiffness_n * (self.v_hat - v_n), stiffness_t * slip
        sticks = y_r < mu * y_n
        slides = ~sticks & (y_n > -mu_hat * y_r)
        sliding = factor * (y_n + mu_hat * y_r)

        def by_mode(sticking: Array | float, sliding: Array) -> Array:
            return jnp.where(sticks, sticking, jnp.where(slides, sliding, 0.0))

        per_slip = mu * sliding * one_over(slip)
        return LawAtSpeed(
            normal=by_mode(y_n, sliding),
            per_slip=by_mode(stiffness_t, per_slip),
            extra=by_mode(0.0, stiffness_t * mu * mu_hat * factor - per_slip),
            mixed=by_mode(0.0, -stiffness_n * mu * factor),
            slope=by_mode(stiffness_n, stiffness_n * factor),
        )

    def aligned(self, law: LawAtSpeed, slip_squared: Float[Array, " m"]) -> Float[Array, " m"]:
        return jnp.where(law.mixed != 0.0, 1.0, 0.0).astype(law.mixed.dtype)

    def sticking_magnitudes(self, v_n: Float[Array, " m"]) -> tuple[Array, Array, Array]:
        is_near = (self.v_hat >= 0.0) | (v_n < self.v_hat)  # they overlap, or would by the end of the step
        slope, per_slip = (jnp.where(is_near, 1.0 / R, 0.0) for R in (self.R_n, self.R_t))
        return slope * (self.v_hat - v_n), slope, per_slip
