"""The contacts of a discrete step as rows of its equation: their Jacobian, velocities and contact law."""

import functools
import operator
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from mbjax.kinematics import PositionKinematics
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_sqrt

from .abstract_law import AbstractContactLaw
from .contact_jacobian import ContactJacobian, calc_contact_jacobian, choose_slots
from .contact_parameters import PairParameters
from .contact_points import ContactPoints
from .elastic_force import ElasticForce
from .hunt_crossley_law import HuntCrossleyLaw
from .moved_bodies import MovedBodies, find_moved_bodies
from .sap_law import FRICTION_REGULARIZATION, SapLaw

NEAR_RIGID_PERIOD = 0.1  # β: period of a rigid row, in steps, as in Drake
NEAR_RIGID = (NEAR_RIGID_PERIOD / (2.0 * np.pi)) ** 2  # R of a rigid row, relative to 1 / (the inertia it moves)
RESOLVED = 16.0  # times eps: the least relative R, so that the inertia is not lost to rounding beside the row


class ContactRows(eqx.Module):
    """m contact points with velocities v_AcBc_W = J v at the step's start, and impulses from those at its end.

    Where a world works on fewer points than there may be, `slots` selects them.
    """

    v_AcBc_W: Float[Array, "3 m"]
    law: AbstractContactLaw
    moved: MovedBodies | ContactJacobian
    slots: Int[Array, " m"] | None = None

    def motion(self, dv: Float[Array, " nv"]) -> Float[Array, "3 m"]:
        """Change J dv of the points' relative velocities."""
        return self.moved.velocities(dv)

    def impulse(self, motion: Float[Array, "3 m"]) -> Float[Array, "3 m"]:
        """Impulses on B at C once the velocities have changed by `motion`."""
        return self.law.impulse(self.v_AcBc_W + motion)

    def stiffness(self, motion: Float[Array, "3 m"]) -> Float[Array, "6 m"]:
        """Stiffness -d impulse / d motion, as the entries of a symmetric matrix."""
        return self.law.stiffness(self.v_AcBc_W + motion)

    def sticking_law(self, motion: Float[Array, "3 m"]) -> tuple[Float[Array, "3 m"], Float[Array, "6 m"]]:
        """Impulse and stiffness of the linear law of points that stick."""
        return self.law.sticking_law(self.v_AcBc_W + motion)

    def power_along(
        self, motion: Float[Array, "3 m"], d: Float[Array, "3 m"]
    ) -> Callable[[Array], Float[Array, "2 m"]]:
        """s → d · impulse(motion + s d) of each point, and its derivative."""
        return self.law.power_along(self.v_AcBc_W + motion, d)

    def generalized(self, gamma: Float[Array, "3 m"]) -> Float[Array, " nv"]:
        """Generalized impulses Jᵀ gamma."""
        return self.moved.generalized(gamma)


def count_left_out(
    model: MultibodyModel, points: ContactPoints, slots: Int[Array, " k"], v_AcBc_W: Float[Array, "3 m"]
) -> Int[Array, ""]:
    """Counts points outside `slots` that touch now, or at the end of a step that ends with these velocities.

    At the step's end, surfaces nearer than the smoothing length count as touching.
    """
    length = model.zeros() if model.collision.smoothing_length is None else model.collision.smoothing_length
    distance_after = points.distance + model.time_step * ca.dot(points.normal_W, v_AcBc_W)
    acts = points.active & ((points.distance < 0.0) | (distance_after < length))
    kept = jnp.take_along_axis(acts, slots, 0)
    return jnp.sum(acts, axis=0, dtype=jnp.int32) - jnp.sum(kept, axis=0, dtype=jnp.int32)


def in_all_slots(rows: ContactRows, x: Float[Array, "3 k"], num_points: int) -> Float[Array, "3 m"]:
    """Scatters vectors of the points worked on to the slots of all points; zero elsewhere."""
    if rows.slots is None:
        return x
    worlds = jnp.broadcast_shapes(x.shape[2:], rows.slots.shape[1:])
    x, slots = (jnp.broadcast_to(y, (3, y.shape[-1 - len(worlds)], *worlds)) for y in (x, rows.slots))
    return jnp.put_along_axis(jnp.zeros((3, num_points, *worlds), x.dtype), slots, x, axis=1, inplace=False)


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


def calc_contact_rows(
    model: MultibodyModel,
    points: ContactPoints,
    position: PositionKinematics,
    v: Float[Array, " nv"],
    diagonal: Float[Array, " nv"],
    locked: Bool[Array, " nv"],
) -> ContactRows:
    """Rows of the deepest points, as many as the model works on. `diagonal` is that of M with implicit dissipation.

    Where joints mimic others, a velocity moves a body along several directions, whose products matter. A Jacobian sums
    them.
    """
    moved, slots = find_moved_bodies(model.topology, position, points, locked), find_deepest(model, points)
    if slots is not None or model.topology.followers:
        moved = calc_contact_jacobian(moved, slots)
    distance, normal_W, active, parameters = points.distance, points.normal_W, points.active, points.parameters
    if slots is not None:
        normal_W = choose_slots(normal_W, slots, 1)
        distance, active, parameters = jax.tree.map(lambda x: choose_slots(x, slots, 0), (distance, active, parameters))
    v_AcBc_W, w = moved.velocities(v), size_of_response(moved.response(diagonal))
    law = calc_contact_law(model, LawInputs(distance, normal_W, active, parameters), v_AcBc_W, w)
    return ContactRows(v_AcBc_W, law, moved, slots)


def find_deepest(model: MultibodyModel, points: ContactPoints) -> Int[Array, " k"] | None:
    """Indices of each world's `max_contacts` deepest points; None for all points."""
    count = model.layout.contact.max_contacts
    if count is None or count >= len(points.pairs):
        return None
    return jnp.argsort(jnp.where(points.active, points.distance, jnp.inf), axis=0)[:count]


def size_of_response(W: Float[Array, "6 m"]) -> Float[Array, " m"]:
    """Size |W| / 3 of a point's response in 1/kg, with M taken as diagonal (Castro et al. 2022, sec. V).

    It is 1 where locked bodies leave no motion: between compliant surfaces the impulse does not depend on it.
    """
    pairs, entries = ca.SYMMETRIC_PAIRS, jnp.unstack(W)
    squares = [W_ik * W_ik if i == k else 2.0 * W_ik * W_ik for (i, k), W_ik in zip(pairs, entries, strict=True)]
    total = functools.reduce(operator.add, squares)
    size = safe_sqrt(total)
    return jnp.where(size == 0.0, 1.0, size / 3.0)
