"""Stiffness, dissipation and friction of pairs, combined from those of the two geometries, as in Drake."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.execution import of_one_model, take
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_divide, safe_norm, safe_sqrt

EARTH_GRAVITY = 9.81  # m/s²


class PairParameters(eqx.Module):
    """Contact parameters of n pairs. `weight_A` places C between the surfaces: on A's at 1, where B alone yields."""

    compliance: Float[Array, " n"]  # m/N, zero where both are rigid
    hunt_crossley_dissipation: Float[Array, " n"]  # s/m
    relaxation_time: Float[Array, " n"]  # s
    static_friction: Float[Array, " n"]
    dynamic_friction: Float[Array, " n"]
    weight_A: Float[Array, " n"]


def calc_pair_parameters(model: MultibodyModel) -> PairParameters:
    """Parameters of every pair: two springs in series, each with its damper, and the harmonic mean of the frictions.

    1 / k = 1 / k_A + 1 / k_B        d = (k_B d_A + k_A d_B) / (k_A + k_B)
    τ = τ_A + τ_B                    μ = 2 μ_A μ_B / (μ_A + μ_B)

    The friction is that of Drake's CalcContactFrictionFromSurfaceProperties.
    """
    collision, pairs = model.collision, model.layout.contact.pairs
    A, B = [a for a, _ in pairs], [b for _, b in pairs]
    k, d = calc_stiffness_and_dissipation(model)
    c_A, c_B = 1.0 / take(k, A, 0), 1.0 / take(k, B, 0)  # a rigid geometry has zero compliance
    weight_A = safe_divide(c_B, c_A + c_B, at_zero=0.5)
    d_A, d_B = take(d, A, 0), take(d, B, 0)
    mu_s, mu_d = (combine_friction(take(mu, A, 0), take(mu, B, 0)) for mu in frictions(model))
    tau = collision.relaxation_time
    return PairParameters(
        c_A + c_B,
        (1.0 - weight_A) * d_A + weight_A * d_B,
        take(tau, A, 0) + take(tau, B, 0),
        mu_s,
        mu_d,
        weight_A,
    )


def frictions(model: MultibodyModel) -> tuple[Array, Array]:
    """Static and dynamic friction coefficients of the geometries."""
    return model.collision.static_friction, model.collision.dynamic_friction


def combine_friction(mu_A: Float[Array, " n"], mu_B: Float[Array, " n"]) -> Float[Array, " n"]:
    """The harmonic mean of two friction coefficients; zero where either is zero."""
    return safe_divide(2.0 * mu_A * mu_B, mu_A + mu_B)


def calc_stiffness_and_dissipation(model: MultibodyModel) -> tuple[Float[Array, " ng"], Float[Array, " ng"]]:
    """Stiffness and dissipation of every geometry: its own, or the default."""
    geometries = model.layout.contact.geometries
    k_default, d_default = calc_default_stiffness_and_dissipation(model)

    def choose(own: Array, default: Array, where: list[int]) -> Array:
        return take(ca.concatenate([default[None], own], 0), np.array(where, int) + 1, 0)

    return (
        choose(model.collision.stiffness, k_default, [g.stiffness_index for g in geometries]),
        choose(model.collision.hunt_crossley_dissipation, d_default, [g.dissipation_index for g in geometries]),
    )


@of_one_model
def contact_penalty_method_time_scale(model: MultibodyModel) -> Float[Array, ""]:
    """Time in s in which default stiffness and dissipation stop a body; steps of a continuous plant must resolve it."""
    return safe_sqrt(model.collision.penetration_allowance / calc_gravity_or_earths(model))


def calc_gravity_or_earths(model: MultibodyModel) -> Float[Array, ""]:
    """Magnitude of gravity in m/s²; the earth's where the model has no gravity."""
    gravity = safe_norm(model.parameters.gravity, axis=0)
    return jnp.where(gravity == 0.0, EARTH_GRAVITY, gravity)


def calc_default_stiffness_and_dissipation(model: MultibodyModel) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Default stiffness and dissipation: the heaviest body sinks by the penetration allowance, critically damped.

    The two geometries of a pair are in series, so each is twice as stiff: k = 2 m g / δ. The dissipation is that of
    one body on a spring: ω² = g / δ and d = 1 / (ω δ).
    """
    allowance = model.collision.penetration_allowance
    mass = jnp.max(model.parameters.body_mass, axis=0)
    g = calc_gravity_or_earths(model)
    return 2.0 * mass * g / allowance, 1.0 / safe_sqrt(g * allowance)
