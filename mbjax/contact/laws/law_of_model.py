"""The contact law of a model's approximation, from its points and how they respond to an impulse."""

import functools
import operator
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_sqrt

from ..points.contact_parameters import PairParameters
from .abstract_law import AbstractContactLaw
from .elastic_force import ElasticForce
from .hunt_crossley_law import HuntCrossleyLaw
from .sap_law import FRICTION_REGULARIZATION, SapLaw

NEAR_RIGID_PERIOD = 0.1  # β: period of a rigid row, in steps, as in Drake
NEAR_RIGID = (NEAR_RIGID_PERIOD / (2.0 * np.pi)) ** 2  # R of a rigid row, relative to 1 / (the inertia it moves)
RESOLVED = 16.0  # times eps: the least relative R, so that the inertia is not lost to rounding beside the row


class LawInputs(NamedTuple):
    """The fields of `ContactPoints` that a contact law reads, for m points."""

    distance: Float[Array, " m"]
    normal_W: Float[Array, "3 m"]
    active: Bool[Array, " m"]
    parameters: PairParameters


def calc_contact_law(
    model: MultibodyModel,
    points: LawInputs,
    v_AcBc_W: Float[Array, "3 m"],
    w: Float[Array, " m"],
) -> AbstractContactLaw:
    """The contact law of the model's approximation at these points, whose response is w in 1/kg."""
    pair, dt, approximation = points.parameters, model.time_step, model.layout.contact.approximation
    R_t, compliance = FRICTION_REGULARIZATION * w, finite_compliance(model, pair.compliance, w)
    if approximation == "sap":
        softening = (model.collision.sap_near_rigid_threshold / (2.0 * np.pi)) ** 2
        near_rigid = jnp.maximum(softening, RESOLVED * float(jnp.finfo(model.dtype).eps)) * w
        settling = dt + pair.relaxation_time
        R_n = jnp.maximum(near_rigid, compliance / (dt * settling))
        v_hat = -points.distance / jnp.where(points.distance < 0.0, settling, dt)  # while apart, free until they touch
        return SapLaw(
            normal_W=points.normal_W,
            friction=pair.dynamic_friction,
            R_t=R_t,
            R_n=R_n,
            v_hat=v_hat,
            active=points.active,
        )
    elastic = ElasticForce(1.0 / compliance, model.collision.smoothing_length)
    force = elastic.at(jnp.where(points.active, points.distance, 0.0))
    v_n = ca.dot(points.normal_W, v_AcBc_W)
    damping = 1.0 - pair.hunt_crossley_dissipation * v_n
    before = dt * jnp.where(points.active, force, 0.0) * jnp.where(damping > 0.0, damping, 0.0)
    return HuntCrossleyLaw(
        normal_W=points.normal_W,
        friction=pair.dynamic_friction,
        elastic=elastic,
        dissipation=pair.hunt_crossley_dissipation,
        distance=points.distance,
        impulse_before=before,
        soft_speed=jnp.maximum(model.collision.stiction_tolerance, pair.dynamic_friction * R_t * before),
        active=points.active,
        time_step=dt,
        is_lagged=approximation == "lagged",
    )


def finite_compliance(
    model: MultibodyModel, compliance: Float[Array, " m"], w: Float[Array, " m"]
) -> Float[Array, " m"]:
    """Compliance in m/N. Two rigid surfaces have that of other near-rigid rows: c = dt² R."""
    return jnp.where(compliance == 0.0, model.time_step**2 * NEAR_RIGID * w, compliance)


def size_of_response(W: Float[Array, "6 m"]) -> Float[Array, " m"]:
    """Size |W| / 3 of a point's response in 1/kg, with M taken as diagonal (Castro et al. 2022, sec. V).

    It is 1 where locked bodies leave no motion: between compliant surfaces the impulse does not depend on it.
    """
    pairs, entries = ca.SYMMETRIC_PAIRS, jnp.unstack(W)
    squares = [W_ik * W_ik if i == k else 2.0 * W_ik * W_ik for (i, k), W_ik in zip(pairs, entries, strict=True)]
    total = functools.reduce(operator.add, squares)
    size = safe_sqrt(total)
    return jnp.where(size == 0.0, 1.0, size / 3.0)
