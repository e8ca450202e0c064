"""Closed-form derivatives of inverse and forward dynamics with respect to q, v and vdot or tau."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.array_types import Accelerations, GeneralizedForces, Positions, Velocities
from mbjax.errors import ModelError
from mbjax.execution import takes_model_first
from mbjax.forces import MultibodyForces
from mbjax.kinematics import (
    MobodInertia,
    PositionKinematics,
    VelocityKinematics,
    calc_position_kinematics,
    calc_velocity_kinematics,
    for_worlds_of,
    is_velocity_equal_to_qdot,
    qdot_to_velocity,
)
from mbjax.kinematics.jacobians import WithRespectTo
from mbjax.linear_algebra import matrix_vector, products_of_columns
from mbjax.model import MultibodyModel, as_coordinates, locked_velocities, zero_where_locked
from mbjax.spatial import component_algebra as ca
from mbjax.topology import (
    TreeTopology,
    over_directions,
    sum_directions,
    sum_moved_mobods,
    sum_velocities_over_path,
)

from .derivatives.composite_terms import (
    CompositeTerms,
    FixedWrenches,
    add_wrenches,
    calc_composite_terms,
    times_inertia_at_T,
)
from .derivatives.jacobian import TorqueColumns, calc_all_columns, calc_torque_columns
from .derivatives.motion import MotionDerivatives, calc_motion_derivatives
from .derivatives.path_products import calc_mirrored_products
from .equations_of_motion import calc_reflected_inertia
from .explicit_forces import ExplicitForces, calc_explicit_forces
from .mass_matrix_factor import diagonal_matrix, inverse_of_free
from .records.inertia_about_origin import shift_inertia_to_T
from .records.tree_motion import calc_inertia_in_world


class InverseDynamicsDerivatives(eqx.Module):
    """tau of inverse dynamics and its derivatives; `dvdot` is the mass matrix."""

    tau: Float[Array, " nv"]
    dq: Float[Array, "nv n"]
    dv: Float[Array, "nv nv"]
    dvdot: Float[Array, "nv nv"]


class ForwardDynamicsDerivatives(eqx.Module):
    """vdot of forward dynamics and its derivatives; `dtau` is the inverse mass matrix, zero where joints are locked."""

    vdot: Float[Array, " nv"]
    dq: Float[Array, "nv n"]
    dv: Float[Array, "nv nv"]
    dtau: Float[Array, "nv nv"]


@takes_model_first
def inverse_dynamics_derivatives(
    model: MultibodyModel,
    q: Positions,
    v: Velocities,
    vdot: Accelerations,
    forces: MultibodyForces | None = None,
    *,
    force_elements: bool = False,
    wrt: WithRespectTo = "v",
) -> InverseDynamicsDerivatives:
    """tau of `inverse_dynamics` and its derivatives with respect to q, v and vdot.

    `forces` are held: torques and forces keep their components in W and act at the bodies' origins, which move with
    q. With `force_elements` the forces of `force_elements_contribution` act too, and vary with q and v. `dq` is with
    respect to the tangent of `integrate_configuration`, or with wrt="qdot" to the numbers of q, as in `jax.jacfwd`.
    """
    q = as_coordinates("q", q, model.num_positions, model.dtype)
    v = as_coordinates("v", v, model.num_velocities, model.dtype)
    vdot = as_coordinates("vdot", vdot, model.num_velocities, model.dtype)
    require_wrt(wrt)
    return for_worlds_of(_inverse_dynamics_derivatives, model, q, v, vdot, forces, force_elements, wrt, several=2)


@takes_model_first
def forward_dynamics_derivatives(
    model: MultibodyModel,
    q: Positions,
    v: Velocities,
    tau: GeneralizedForces,
    forces: MultibodyForces | None = None,
    *,
    force_elements: bool = False,
    wrt: WithRespectTo = "v",
) -> ForwardDynamicsDerivatives:
    """vdot of `forward_dynamics` and its derivatives with respect to q, v and tau.

    `dq` and `dv` are -M⁻¹ times those of inverse dynamics, `dtau` is M⁻¹. `forces`, `force_elements`, `wrt` are as in
    `inverse_dynamics_derivatives`. Locked joints have zero rows, and zero columns in `dv` and `dtau`.
    """
    q = as_coordinates("q", q, model.num_positions, model.dtype)
    v = as_coordinates("v", v, model.num_velocities, model.dtype)
    tau = as_coordinates("tau", tau, model.num_velocities, model.dtype)
    require_wrt(wrt)
    return for_worlds_of(_forward_dynamics_derivatives, model, q, v, tau, forces, force_elements, wrt, several=2)


def require_wrt(wrt: str) -> None:
    """Raises unless `wrt` is 'v' or 'qdot'."""
    if wrt not in ("v", "qdot"):
        raise ModelError(f"wrt must be 'v' (the dq of integrate_configuration) or 'qdot' (q itself), got {wrt!r}.")


def _inverse_dynamics_derivatives(
    model: MultibodyModel,
    q: Array,
    v: Array,
    vdot: Array,
    forces: MultibodyForces | None,
    force_elements: bool,
    wrt: str,
) -> InverseDynamicsDerivatives:
    topology = model.topology
    position = calc_position_kinematics(model, q)
    explicit = calc_explicit_forces(model, position, q, v, forces, force_elements)
    terms, columns, M = calc_all_columns(model, position, q, v, vdot, explicit.wrenches)
    columns = subtract_slopes(columns, explicit)
    diagonal, S = calc_reflected_inertia(model), position.S_T
    M = plus_diagonal(topology, M, diagonal)
    tau = sum_directions(topology, ca.dot(S, terms.F)) + diagonal * vdot - explicit.tau
    return InverseDynamicsDerivatives(tau, convert_dq_columns(model, q, columns.dq, wrt), columns.dv, M)


def _forward_dynamics_derivatives(
    model: MultibodyModel,
    q: Array,
    v: Array,
    tau: Array,
    forces: MultibodyForces | None,
    force_elements: bool,
    wrt: str,
) -> ForwardDynamicsDerivatives:
    free = calc_free_motion(model, q, zero_where_locked(model, v), tau, forces, force_elements)
    columns, _ = calc_driven_columns(model, free, free.vdot, None)
    dq = -products_of_columns(free.inverse, convert_dq_columns(model, q, columns.dq, wrt))
    dv = jnp.where(locked_velocities(model)[None], 0.0, -products_of_columns(free.inverse, columns.dv))
    return ForwardDynamicsDerivatives(free.vdot, dq, dv, free.inverse)


class FreeMotion(NamedTuple):
    """Motion under tau and forces alone, with what derivatives of driven motion reuse."""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    position: PositionKinematics
    velocity: VelocityKinematics
    explicit: ExplicitForces
    inertia_T: MobodInertia
    terms: CompositeTerms  # at vdot = 0
    inverse: Float[Array, "nv nv"]  # M⁻¹ of the free velocities, zero where joints are locked
    vdot: Float[Array, " nv"]


def calc_free_motion(
    model: MultibodyModel,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    forces: MultibodyForces | None,
    force_elements: bool,
) -> FreeMotion:
    """Forward dynamics by the inverse of the mass matrix; `v` must be zero where joints are locked."""
    topology = model.topology
    position = calc_position_kinematics(model, q)
    velocity = calc_velocity_kinematics(model, position, q, v)
    explicit = calc_explicit_forces(model, position, q, v, forces, force_elements)
    inertia_T = shift_inertia_to_T(position, calc_inertia_in_world(model, position))
    S = position.S_T
    A_bias_T = sum_velocities_over_path(topology, ca.scale(velocity.Sdot_T, over_directions(topology, v)))
    terms = calc_composite_terms(topology, inertia_T, velocity.V_WM_T, A_bias_T, explicit.wrenches)
    products = calc_mirrored_products(topology, S, terms.inertia_times(S))
    M = plus_diagonal(topology, products, calc_reflected_inertia(model))
    inverse = inverse_of_free(topology, M, locked_velocities(model))
    vdot = matrix_vector(inverse, tau + explicit.tau - sum_directions(topology, ca.dot(S, terms.F)))
    return FreeMotion(q, v, position, velocity, explicit, inertia_T, terms, inverse, vdot)


def calc_driven_columns(
    model: MultibodyModel, free: FreeMotion, vdot: Float[Array, " nv"], further: FixedWrenches | None
) -> tuple[TorqueColumns, MotionDerivatives]:
    """Columns by q (tangent) and v of the torques that the motion `vdot` takes, less those of `further` wrenches."""
    topology, S, terms = model.topology, free.position.S_T, free.terms
    motion = calc_motion_derivatives(model, free.position, free.velocity, free.q, free.v, vdot)
    A_driven_T = sum_velocities_over_path(topology, ca.scale(S, over_directions(topology, vdot)))
    F_driven_T = times_inertia_at_T(free.inertia_T, A_driven_T)
    if further is None:
        terms = eqx.tree_at(lambda t: t.F, terms, terms.F + sum_moved_mobods(topology, F_driven_T))
    else:
        terms = add_wrenches(topology, terms, F_driven_T, further)
    columns = calc_torque_columns(topology, free.position, free.velocity, motion, terms)
    return subtract_slopes(columns, free.explicit), motion


def plus_diagonal(
    topology: TreeTopology, products: Float[Array, "nd nd"], diagonal: Float[Array, " nv"]
) -> Float[Array, "nv nv"]:
    """Mass matrix of velocities: products of directions summed per velocity, plus the diagonal."""
    return sum_directions(topology, sum_directions(topology, products, 0), 1) + diagonal_matrix(diagonal)


def subtract_slopes(columns: TorqueColumns, explicit: ExplicitForces) -> TorqueColumns:
    """Subtracts from the columns the derivatives of explicit forces that depend on q and v."""
    dq, dv = columns.dq, columns.dv - diagonal_matrix(explicit.dv_diagonal)
    if explicit.dq is not None and explicit.dv is not None:
        dq, dv = dq - explicit.dq, dv - explicit.dv
    return TorqueColumns(dq, dv)


def convert_dq_columns(
    model: MultibodyModel, q: Float[Array, " nq"], J: Float[Array, "nv nv"], wrt: str
) -> Float[Array, "nv n"]:
    """J unchanged for wrt="v"; J N⁺(q), with respect to the numbers of q, for wrt="qdot"."""
    if wrt == "v" or is_velocity_equal_to_qdot(model):
        return J
    nq = model.num_positions
    units = jnp.eye(nq, dtype=q.dtype).reshape(nq, nq, *(1 for _ in q.shape[1:]))
    N_plus = jax.vmap(lambda qdot: qdot_to_velocity(model, q, jnp.broadcast_to(qdot, q.shape)), out_axes=1)(units)
    return products_of_columns(ca.transpose(J), N_plus)
