"""Applied forces and force elements, with their derivatives by v and by the tangent of q."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.execution import each_world
from mbjax.execution.arrays import dot_with_mask, take
from mbjax.forces import MultibodyForces, calc_joint_dissipation, calc_mobod_forces
from mbjax.forces.force_elements import calc_element_forces
from mbjax.forces.gravity import calc_masses_with_gravity, gravity_at_each
from mbjax.kinematics import (
    PositionKinematics,
    calc_body_offsets,
    calc_position_kinematics,
    calc_velocity_kinematics,
    integrate_configuration,
)
from mbjax.model import MultibodyModel, as_coordinates
from mbjax.spatial import component_algebra as ca
from mbjax.topology import sum_directions, sum_moved_mobods

from .derivatives.composite_terms import (
    FixedWrenches,
    calc_turning_of_wrenches,
    matrix_rows,
    rows_as_matrix,
    times_identity,
)


class ExplicitForces(NamedTuple):
    """Wrenches fixed in the world; generalized forces `tau`, damping's derivative by v, and elements' by q and v."""

    wrenches: FixedWrenches | None
    tau: Float[Array, " nv"]
    dv_diagonal: Float[Array, " nv"]
    dq: Float[Array, "nv nv"] | None
    dv: Float[Array, "nv nv"] | None


def calc_explicit_forces(
    model: MultibodyModel,
    position: PositionKinematics,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    forces: MultibodyForces | None,
    force_elements: bool,
) -> ExplicitForces:
    """The given forces, which are held, and with `force_elements` those of all force elements."""
    wrenches, tau, slope = None, jnp.zeros_like(v), jnp.zeros_like(v)
    dq = dv = None
    if forces is not None:
        wrenches = calc_wrenches_on_bodies(model, position, forces)
        tau = as_coordinates("forces.generalized", forces.generalized, v.shape[0], model.dtype, model.num_world_axes)
    if force_elements:
        weights = calc_fixed_weights(model, position)
        wrenches = weights if wrenches is None else wrenches + weights
        dissipation, slope = jax.jvp(lambda v: calc_joint_dissipation(model, v), (v,), (jnp.ones_like(v),))
        tau = tau + dissipation
    if force_elements and model.force_elements:
        of_elements, dq, dv = each_world(calc_element_torques_and_derivatives, model.num_world_axes, model, q, v)
        tau = tau + of_elements
    return ExplicitForces(wrenches, tau, slope, dq, dv)


def calc_wrenches_on_bodies(
    model: MultibodyModel, position: PositionKinematics, forces: MultibodyForces
) -> FixedWrenches:
    """Wrenches of `forces.body`, which act at the bodies' origins, summed per mobod."""
    F_T = calc_mobod_forces(model, position, forces.body)  # checks the shape, too
    p_TBo_W = take(position.p_TM_W, model.topology.body_mobods, 1) + calc_body_offsets(model, position)
    Z = calc_turning_of_wrenches(p_TBo_W, ca.transpose(jnp.asarray(forces.body, model.dtype)))
    return FixedWrenches(F_T, rows_as_matrix(dot_with_mask(matrix_rows(Z), model.topology.body_membership, 1)))


def calc_fixed_weights(model: MultibodyModel, position: PositionKinematics) -> FixedWrenches:
    """Weights as wrenches fixed in the world: f = m g, and Z = (s·g) 1 - g sᵀ with s = m p_TMcm."""
    moment_W, mass = calc_masses_with_gravity(model, position)
    s = moment_W + ca.scale(position.p_TM_W, mass)
    g = jnp.broadcast_to(gravity_at_each(model, s), s.shape)
    F_T = ca.concatenate([ca.cross(s, g), ca.scale(g, mass)], 0)
    return FixedWrenches(F_T, times_identity(ca.dot(s, g)) - ca.outer(g, s))


def calc_element_torques(model: MultibodyModel, q: Array, v: Array) -> Float[Array, " nv"]:
    """Generalized forces of the elements in `model.force_elements`, those on bodies included."""
    position = calc_position_kinematics(model, q)
    velocity = calc_velocity_kinematics(model, position, q, v)
    forces = calc_element_forces(model, position, velocity, q, v)
    F_T = calc_mobod_forces(model, position, forces.body)
    of_bodies = ca.dot(position.S_T, sum_moved_mobods(model.topology, F_T))
    return forces.generalized + sum_directions(model.topology, of_bodies)


def calc_element_torques_and_derivatives(model: MultibodyModel, q: Array, v: Array) -> tuple[Array, Array, Array]:
    """Element torques of one world and their derivatives by q and v, in forward mode as elements may be of any kind."""

    def moved(dq: Array, v: Array) -> Array:
        return calc_element_torques(model, integrate_configuration(model, q, dq), v)

    dq, dv = jax.jacfwd(moved, (0, 1))(jnp.zeros_like(v), v)
    return calc_element_torques(model, q, v), dq, dv
