"""Contact forces of the continuous plant: Hunt–Crossley along the normal, Stribeck friction across it.

f_n = k x (1 + d ẋ)₊ with depth x, and f_t = -μ(|v_t| / v_s) f_n t, where μ rises to the static coefficient at the
stiction tolerance v_s and falls to the dynamic one at 3 v_s: "Contact modeling" in Drake's MultibodyPlant. A face of a
hydroelastic surface has its area times its pressure in place of k x, and μ = μ_d (2 / π) atan(|v_t| / v_s).
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_divide, safe_sqrt

from ..points.point_records import ContactPoints
from .elastic_force import ElasticForce

END_OF_TRANSITION = 3.0  # stiction tolerances at which friction is dynamic


def calc_continuous_contact_forces(
    points: ContactPoints,
    v_AcBc_W: Float[Array, "3 m"],
    stiction_tolerance: Float[Array, ""],
    smoothing_length: Float[Array, ""] | None,
) -> Float[Array, "3 m"]:
    """Contact forces f_Bc_W on B at each point, in N, expressed in W."""
    pair, n = points.parameters, points.normal_W
    v_n = ca.dot(n, v_AcBc_W)
    v_t = v_AcBc_W - ca.scale(n, v_n)
    speed = safe_sqrt(ca.dot(v_t, v_t))
    damping = 1.0 - pair.hunt_crossley_dissipation * v_n
    elastic = ElasticForce(1.0 / pair.compliance, smoothing_length).at(points.distance)
    f_n = jnp.where(points.active & (damping > 0.0), elastic * damping, 0.0)
    slope = calc_friction_over_slip(speed / stiction_tolerance, pair.static_friction, pair.dynamic_friction)
    if points.surfaces:
        of_faces = calc_friction_of_faces_over_slip(speed / stiction_tolerance, pair.dynamic_friction)
        slope = jnp.where(points.are_faces.reshape(-1, *(1,) * (speed.ndim - 1)), of_faces, slope)
    return ca.scale(n, f_n) - ca.scale(v_t, f_n * slope / stiction_tolerance)


def calc_friction_of_faces_over_slip(s: Float[Array, " m"], dynamic: Float[Array, " m"]) -> Float[Array, " m"]:
    """μ(s) / s of faces of surfaces at the slip s in stiction tolerances."""
    return (2.0 / math.pi) * dynamic * safe_divide(jnp.arctan(s), s, at_zero=1.0)


def calc_friction_over_slip(
    s: Float[Array, " m"], static: Float[Array, " m"], dynamic: Float[Array, " m"]
) -> Float[Array, " m"]:
    """μ(s) / s of the slip s in stiction tolerances: finite and differentiable at rest.

    μ = μ_s σ(s) for s < 1, then μ_s - (μ_s - μ_d) σ((s - 1) / 2), then μ_d, with σ(x) = x³ (10 - 15 x + 6 x²).
    """
    rising = jnp.where(s < 1.0, s, 0.0)
    falling = jnp.clip((s - 1.0) / (END_OF_TRANSITION - 1.0), 0.0, 1.0)
    below = static * rising * rising * (10.0 + rising * (6.0 * rising - 15.0))
    above = static - (static - dynamic) * falling**3 * (10.0 + falling * (6.0 * falling - 15.0))
    return jnp.where(s < 1.0, below, safe_divide(above, s))
