"""Stiffness, dissipation and friction of pairs, combined from those of the two geometries, as in Drake."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.execution import of_one_model
from mbjax.execution.arrays import take
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


class SurfaceParameters(eqx.Module):
    """Contact parameters of ng geometries."""

    compliance: Float[Array, " ng"]  # m/N, zero where rigid
    hunt_crossley_dissipation: Float[Array, " ng"]  # s/m
    relaxation_time: Float[Array, " ng"]  # s
    static_friction: Float[Array, " ng"]
    dynamic_friction: Float[Array, " ng"]


def calc_pair_parameters(model: MultibodyModel) -> PairParameters:
    """Parameters of every pair."""
    surfaces = calc_surface_parameters(model)
    sides = zip(*model.layout.contact.pairs, strict=True)
    return combine_surfaces(*(jax.tree.map(lambda x, side=side: take(x, side, 0), surfaces) for side in sides))


def calc_surface_parameters(model: MultibodyModel) -> SurfaceParameters:
    """Parameters of every geometry."""
    stiffness, dissipation = calc_stiffness_and_dissipation(model)
    collision = model.collision
    frictions = collision.static_friction, collision.dynamic_friction
    return SurfaceParameters(1.0 / stiffness, dissipation, collision.relaxation_time, *frictions)


def combine_surfaces(A: SurfaceParameters, B: SurfaceParameters) -> PairParameters:
    """Two springs in series, each with its damper, and the harmonic mean of the frictions.

    1 / k = 1 / k_A + 1 / k_B        d = (k_B d_A + k_A d_B) / (k_A + k_B)
    τ = τ_A + τ_B                    μ = 2 μ_A μ_B / (μ_A + μ_B)

    The friction is that of Drake's CalcContactFrictionFromSurfaceProperties.
    """
    compliance = A.compliance + B.compliance
    weight_A = safe_divide(B.compliance, compliance, at_zero=0.5)
    return PairParameters(
        compliance,
        (1.0 - weight_A) * A.hunt_crossley_dissipation + weight_A * B.hunt_crossley_dissipation,
        A.relaxation_time + B.relaxation_time,
        combine_friction(A.static_friction, B.static_friction),
        combine_friction(A.dynamic_friction, B.dynamic_friction),
        weight_A,
    )


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
    masses = model.parameters.body_mass
    mass = jnp.max(masses, axis=0) if masses.shape[0] > 0 else model.zeros()
    g = calc_gravity_or_earths(model)
    return 2.0 * mass * g / allowance, 1.0 / safe_sqrt(g * allowance)
