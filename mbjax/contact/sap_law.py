"""Contact with linear dissipation and Coulomb friction as a convex projection.

Castro, Permenter, Han 2022, arXiv 2110.10107: the impulse is the point of the friction cone that is nearest to
y = R⁻¹ (v̂ - v) in the norm of R.
"""

import functools
import operator
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from mbjax.spatial import component_algebra as ca
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

    def impulse(self, v_AcBc_W: Float[Array, "3 m"]) -> Float[Array, "3 m"]:
        y_n, y_t, y_r = self.unprojected(v_AcBc_W)
        sticks, slides = self.modes(y_n, y_r)
        mu_hat = self.friction * self.R_t / self.R_n
        sliding = (y_n + mu_hat * y_r) / (1.0 + self.friction * mu_hat)
        normal = jnp.where(sticks, y_n, jnp.where(slides, sliding, 0.0))
        along = jnp.where(sticks, 1.0, safe_divide(self.friction * normal, y_r))
        return ca.scale(self.normal_W, normal) + ca.scale(y_t, jnp.where(self.active, along, 0.0))

    def stiffness(self, v_AcBc_W: Float[Array, "3 m"]) -> Float[Array, "3 3 m"]:
        y_n, y_t, y_r = self.unprojected(v_AcBc_W)
        sticks, slides = self.modes(y_n, y_r)
        mu, n = self.friction, self.normal_W
        mu_hat = mu * self.R_t / self.R_n
        factor = 1.0 / (1.0 + mu * mu_hat)
        t = ca.scale(y_t, safe_divide(jnp.ones_like(y_r), y_r))
        across = safe_divide(mu * (y_n + mu_hat * y_r) * factor, y_r)
        nn, tt, tn = ca.outer(n, n), ca.outer(t, t), ca.outer(t, n)
        tangential = identity_like(nn) - nn
        along = jnp.where(sticks, 1.0, jnp.where(slides, across, 0.0)) / self.R_t
        extra = jnp.where(slides, (mu * mu_hat * factor - across) / self.R_t, 0.0)
        mixed = jnp.where(slides, mu * factor / self.R_n, 0.0)
        normal = jnp.where(sticks, 1.0, jnp.where(slides, factor, 0.0)) / self.R_n
        parts = ((tangential, along), (tt, extra), (tn + ca.transpose(tn), mixed), (nn, normal))
        return weighted_sum(parts)

    def unprojected(self, v_AcBc_W: Float[Array, "3 m"]) -> tuple[Array, Array, Array]:
        """y along the normal, its tangential part, and that part's length."""
        v_n = ca.dot(self.normal_W, v_AcBc_W)
        y_t = ca.scale(ca.scale(self.normal_W, v_n) - v_AcBc_W, 1.0 / self.R_t)
        return (self.v_hat - v_n) / self.R_n, y_t, safe_sqrt(ca.dot(y_t, y_t))

    def modes(self, y_n: Float[Array, " m"], y_r: Float[Array, " m"]) -> tuple[Array, Array]:
        """Which points stick, and which slide; the others are apart."""
        sticks = self.active & (y_r < self.friction * y_n)
        touches = y_n > -self.friction * self.R_t / self.R_n * y_r
        return sticks, self.active & ~sticks & touches


def weighted_sum(parts: Sequence[tuple[Float[Array, "3 3 *n"], Float[Array, "*n"]]]) -> Float[Array, "3 3 *n"]:
    """Matrices times numbers, added up."""
    products = [matrix * ca.spread(ca.spread(weight, 3), 3) for matrix, weight in parts]
    return functools.reduce(operator.add, products)


def identity_like(matrix: Float[Array, "3 3 *n"]) -> Float[Array, "3 3 *n"]:
    """1 for a stack of matrices."""
    return jnp.asarray(np.eye(3), matrix.dtype).reshape(3, 3, *(1 for _ in matrix.shape[2:]))
