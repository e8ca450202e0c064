"""The interface of a contact law, for m points at once, expressed in W.

Friction is isotropic, so two functions of the normal speed and the slip speed describe a law: the impulse along the
normal, and the friction impulse per slip speed.
"""

import abc
import functools
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_divide, safe_sqrt


class LawAtSpeed(NamedTuple):
    """A law's impulses and their derivatives at one normal speed and slip speed, for active points."""

    normal: Float[Array, " m"]  # γ_n, N s
    per_slip: Float[Array, " m"]  # f, kg
    extra: Float[Array, " m"]  # df / d|v_t| |v_t|
    mixed: Float[Array, " m"]  # -dγ_n / d|v_t|
    slope: Float[Array, " m"]  # -dγ_n / dv_n


class LawBefore(NamedTuple):
    """A linear law at the velocities of an iteration of a search, and how far velocities are from there now."""

    impulse: Float[Array, "3 m"]
    stiffness: Float[Array, "6 m"]
    change: Float[Array, "3 m"]

    def estimate(self) -> Float[Array, "3 m"]:
        """The impulse now, by the linear law."""
        return self.impulse - ca.matvec(ca.symmetric_matrix(self.stiffness), self.change)


class Line(NamedTuple):
    """Velocities v + s d of points: v_t is split into parts along and across d_t, so its length needs two of them."""

    v_n: Float[Array, " m"]
    d_n: Float[Array, " m"]
    length: Float[Array, " m"]  # |d_t|
    along: Float[Array, " m"]
    across_squared: Float[Array, " m"]


class AbstractContactLaw(eqx.Module):
    """A contact law: impulses over a step are minus the gradient of a convex function of the velocity at its end.

    γ = γ_n n - f v_t at the velocity v = v_n n + v_t. Inactive points have no impulse.
    """

    normal_W: eqx.AbstractVar[Float[Array, "3 m"]]
    friction: eqx.AbstractVar[Float[Array, " m"]]
    active: eqx.AbstractVar[Bool[Array, " m"]]

    @abc.abstractmethod
    def at(self, v_n: Float[Array, " m"], slip_squared: Float[Array, " m"]) -> LawAtSpeed:
        """The law at a normal speed and |v_t|². Searches evaluate it most often, so it divides by the slip only."""

    def friction_bound(self, normal: Float[Array, " m"]) -> Float[Array, " m"]:
        """The largest friction impulse at a normal impulse."""
        return self.friction * normal

    @abc.abstractmethod
    def aligned(self, law: LawAtSpeed, slip_squared: Float[Array, " m"]) -> Float[Array, " m"]:
        """How far friction turns with the slip, b in the part -f b² of `extra`: 1 where a point slides."""

    @abc.abstractmethod
    def sticking_magnitudes(self, v_n: Float[Array, " m"]) -> tuple[Array, Array, Array]:
        """γ_n, -dγ_n / dv_n and f of pressed points that do not slip, at a speed near v_n; zero where far apart."""

    def impulse(self, v_AcBc_W: Float[Array, "3 m"]) -> Float[Array, "3 m"]:
        """Impulses on B at C in N s, zero at inactive points."""
        v_n, v_t = self.split(v_AcBc_W)
        law = self.at(v_n, ca.dot(v_t, v_t))
        return jnp.where(self.active, ca.scale(self.normal_W, law.normal) - ca.scale(v_t, law.per_slip), 0.0)

    def stiffness(
        self, v_AcBc_W: Float[Array, "3 m"], estimate: Float[Array, "3 m"] | None = None
    ) -> Float[Array, "6 m"]:
        """Stiffness -dγ / dv in kg, as the entries of a symmetric, positive semidefinite matrix.

        f 1 + (slope - f) n nᵀ + extra t tᵀ + mixed (t nᵀ + n tᵀ) with t = v_t / |v_t|.

        With an `estimate` of the impulse, the part -f b² t tᵀ of the third term (`aligned`) is -f b (z tᵀ + t zᵀ) / 2.
        There z, |z| ≤ 1, is minus the estimated friction over the bound on it; the impulse itself changes nothing. A
        point without any estimated friction, as one that was apart, has the direction of its slip.
        """
        v_n, v_t = self.split(v_AcBc_W)
        squared = ca.dot(v_t, v_t)
        law = LawAtSpeed(*(jnp.where(self.active, x, 0.0) for x in self.at(v_n, squared)))
        t = ca.scale(v_t, one_over(safe_sqrt(squared)))
        ns, ts = jnp.unstack(self.normal_W), jnp.unstack(t)
        by_n = [(law.slope - law.per_slip) * n + law.mixed * t for n, t in zip(ns, ts, strict=True)]
        by_t = [law.extra * t + law.mixed * n for n, t in zip(ns, ts, strict=True)]
        entries = [by_n[i] * ns[k] + by_t[i] * ts[k] for i, k in ca.SYMMETRIC_PAIRS]
        if estimate is not None:
            friction = self.split(estimate)[1]
            has_friction = ca.dot(friction, friction) > 0.0
            z = ca.scale(friction, -one_over(self.friction_bound(law.normal)))
            z = ca.scale(z, 1.0 / jnp.maximum(safe_sqrt(ca.dot(z, z)), 1.0))
            b = self.aligned(law, squared)
            turned = ca.scale(z - ca.scale(t, b), jnp.where(has_friction, 0.5 * law.per_slip * b, 0.0))
            turned = jnp.unstack(turned)
            pairs = zip(entries, ca.SYMMETRIC_PAIRS, strict=True)
            entries = [entry - turned[i] * ts[k] - ts[i] * turned[k] for entry, (i, k) in pairs]
        return with_diagonal(entries, law.per_slip)

    def linear_law(
        self, v_AcBc_W: Float[Array, "3 m"], before: LawBefore
    ) -> tuple[Float[Array, "3 m"], Float[Array, "6 m"]]:
        """Impulse, and the stiffness with the impulse that the law of the iteration before estimates.

        So a search has the direction of friction as an unknown of its own, as in Newton's method with velocities and
        impulses as separate unknowns (Chan, Golub, Mulet 1999). By the direction of the slip itself, one step turns the
        slip of slow points far, and steps get short as one point after the other comes to stick.
        """
        return self.impulse(v_AcBc_W), self.stiffness(v_AcBc_W, before.estimate())

    def sticking_law(self, v_AcBc_W: Float[Array, "3 m"]) -> tuple[Float[Array, "3 m"], Float[Array, "6 m"]]:
        """Impulse and stiffness of the linear law of sticking points, from which a search may start."""
        v_n, v_t = self.split(v_AcBc_W)
        impulse, slope, per_slip = (jnp.where(self.active, x, 0.0) for x in self.sticking_magnitudes(v_n))
        n = jnp.unstack(self.normal_W)
        stiffness = with_diagonal([(slope - per_slip) * n[i] * n[k] for i, k in ca.SYMMETRIC_PAIRS], per_slip)
        return ca.scale(self.normal_W, impulse) - ca.scale(v_t, per_slip), stiffness

    def power_along(
        self, v_AcBc_W: Float[Array, "3 m"], d: Float[Array, "3 m"]
    ) -> Callable[[Array], Float[Array, "2 m"]]:
        """s → γ(v + s d) · d and its derivative with respect to s, which is minus the stiffness along d."""
        return functools.partial(self.power_on, self.line(v_AcBc_W, d))

    def line(self, v_AcBc_W: Float[Array, "3 m"], d: Float[Array, "3 m"]) -> Line:
        """The line v + s d by its parts."""
        (v_n, v_t), (d_n, d_t) = self.split(v_AcBc_W), self.split(d)
        length = safe_sqrt(ca.dot(d_t, d_t))
        e = ca.scale(d_t, one_over(length))
        along = ca.dot(v_t, e)
        across = v_t - ca.scale(e, along)
        return Line(v_n, d_n, length, along, ca.dot(across, across))

    def power_on(self, line: Line, s: Array) -> Float[Array, "2 m"]:
        """`power_along` on a line."""
        v_n, d_n, length, along, across_squared = line
        x = along + s * length
        v, squared = v_n + s * d_n, across_squared + x * x
        normal, f, extra, mixed, slope = self.at(v, squared)
        d_s = length * x * one_over(safe_sqrt(squared))  # d|v_t| / ds
        rate = f * length * length + extra * d_s * d_s + 2.0 * mixed * d_s * d_n + slope * d_n * d_n
        return jnp.where(self.active, jnp.stack([normal * d_n - f * x * length, -rate]), 0.0)

    def split(self, v_AcBc_W: Float[Array, "3 m"]) -> tuple[Float[Array, " m"], Float[Array, "3 m"]]:
        """v_n and v_t. The normal part is removed twice, as its rounding error would tilt a slow slip."""
        v_n = ca.dot(self.normal_W, v_AcBc_W)
        v_t = v_AcBc_W - ca.scale(self.normal_W, v_n)
        return v_n, v_t - ca.scale(self.normal_W, ca.dot(self.normal_W, v_t))


def one_over(x: Float[Array, " m"]) -> Float[Array, " m"]:
    """1 / x, zero where x is zero. Many products share it, as XLA computes a quotient once but repeats products."""
    return safe_divide(jnp.ones_like(x), x)


def with_diagonal(entries: list[Array], x: Float[Array, " m"]) -> Float[Array, "6 m"]:
    """Entries of symmetric matrices, with x added on the diagonal."""
    return jnp.stack([y + x if i == k else y for y, (i, k) in zip(entries, ca.SYMMETRIC_PAIRS, strict=True)])
