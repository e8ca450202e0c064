"""Quantities of a constraint set at a state: errors, Jacobian, forces, and terms of the constrained equation."""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.array_types import GeneralizedForces, Positions, Velocities
from mbjax.dynamics import inverse_dynamics, mass_matrix
from mbjax.errors import ModelError
from mbjax.execution import compiled_outside_jit, takes_model_first
from mbjax.forces import MultibodyForces, require_forces
from mbjax.kinematics import (
    calc_position_kinematics,
    calc_velocity_kinematics,
    for_worlds_of,
    qdot_to_velocity_matrix,
)
from mbjax.model import MultibodyModel, as_coordinates
from mbjax.number_rules import as_numbers, is_known, shown

from .bound_constraint_set import BoundConstraintSet, require_bound_set
from .constraint_forces import calc_compliant_forces, calc_constraint_forces
from .constraint_kinematics import ConstraintTerms, calc_constraint_terms


class ConstrainedSystem(eqx.Module):
    """Matrices of H vdot + C = tau + Gᵀ λ, G vdot = gamma, or (H, -Gᵀ; G, 0) (vdot; λ) = (c; gamma).

    Inactive rows are zero.
    """

    H: Float[Array, "nv nv"]  # mass matrix
    G: Float[Array, "nc nv"]
    C: Float[Array, " nv"]  # C(q, v) v less all applied forces, springs of compliant constraints included
    c: Float[Array, " nv"]  # tau - C
    gamma: Float[Array, " nc"]  # -(dG/dt) v and the stabilization
    error: Float[Array, " nc"]
    velocity_error: Float[Array, " nc"]


@takes_model_first
def constraints_position_error(model: MultibodyModel, cset: BoundConstraintSet, q: Positions) -> Float[Array, " nc"]:
    """Position error of every row, the successor's relative to the predecessor, in m or rad; 0 for contacts."""
    return constraint_terms(model, cset, q).error


@takes_model_first
def constraints_velocity_error(
    model: MultibodyModel, cset: BoundConstraintSet, q: Positions, v: Velocities
) -> Float[Array, " nc"]:
    """Rate G v of every row, in m/s or rad/s."""
    return constraint_terms(model, cset, q, v).velocity_error


@takes_model_first
def constraints_jacobian(
    model: MultibodyModel, cset: BoundConstraintSet, q: Positions, wrt: Literal["v", "qdot"] = "v"
) -> Float[Array, "nc n"]:
    """Jacobian G with rate = G v, or G N⁺ with rate = G N⁺ qdot; inactive rows are included."""
    if wrt not in ("v", "qdot"):
        raise ModelError(f"wrt must be 'v' or 'qdot', got {wrt!r}.")
    G = constraint_terms(model, cset, q).G
    return G if wrt == "v" else G @ qdot_to_velocity_matrix(model, q)


@takes_model_first
def constraint_terms(
    model: MultibodyModel, cset: BoundConstraintSet, q: Positions, v: Velocities | None = None
) -> ConstraintTerms:
    """Terms of all rows at (q, v); without v, terms that depend on it are zero."""
    require_bound_set("constraint_terms", cset, model)
    q = as_coordinates("q", q, model.num_positions, model.dtype)
    v = None if v is None else as_coordinates("v", v, model.num_velocities, model.dtype)
    return for_worlds_of(_constraint_terms, model, cset, q, v)


def _constraint_terms(model: MultibodyModel, cset: BoundConstraintSet, q: Array, v: Array | None) -> ConstraintTerms:
    position = calc_position_kinematics(model, q)
    velocity = None if v is None else calc_velocity_kinematics(model, position, q, v)
    return calc_constraint_terms(model, cset, position, velocity, q, v)


@compiled_outside_jit
def constrained_system_variables(
    model: MultibodyModel,
    cset: BoundConstraintSet,
    q: Positions,
    v: Velocities,
    tau: GeneralizedForces,
    forces: MultibodyForces | None = None,
) -> ConstrainedSystem:
    """The matrices of the constrained equation of motion (RBDL's CalcConstrainedSystemVariables).

    `forces` are all forces that act besides tau and the constraints, as for `forward_dynamics`. All joints are taken as
    free, locked ones too: `constrained_forward_dynamics` keeps these at rest, a solution of this system does not.
    """
    if forces is not None:
        require_forces("constrained_system_variables", model, forces)
    terms = constraint_terms(model, cset, q, v)
    tau = as_coordinates("tau", tau, model.num_velocities, model.dtype)
    forces = MultibodyForces.zero(model) if forces is None else forces
    springs = compliant_forces(model, cset, q, v)
    C = inverse_dynamics(model, q, v, jnp.zeros_like(tau), MultibodyForces(forces.generalized, forces.body + springs))
    return ConstrainedSystem(
        mass_matrix(model, q),
        terms.active[:, None] * terms.G,
        C,
        tau - C,
        terms.active * (terms.gamma + terms.stabilization),
        terms.error,
        terms.velocity_error,
    )


@takes_model_first
def constraint_spatial_forces(
    model: MultibodyModel, cset: BoundConstraintSet, q: Positions, multipliers: Float[Array, " nc"]
) -> Float[Array, "nb 6"]:
    """Spatial forces F_Bo_W of λ on every body: torque about its origin Bo and force, in W; row 0 is the world's.

    Couplers, locks and custom constraints act on joints, so they appear in Gᵀ λ alone. For λ in N s the result is
    impulses.
    """
    require_bound_set("constraint_spatial_forces", cset, model)
    q = as_coordinates("q", q, model.num_positions, model.dtype)
    multipliers = as_coordinates("multipliers", multipliers, cset.num_rows, model.dtype)
    return for_worlds_of(_constraint_spatial_forces, model, cset, q, multipliers)


def _constraint_spatial_forces(
    model: MultibodyModel, cset: BoundConstraintSet, q: Array, multipliers: Array
) -> Float[Array, "nb 6"]:
    return calc_constraint_forces(model, cset, calc_position_kinematics(model, q), multipliers)


@takes_model_first
def compliant_forces(
    model: MultibodyModel, cset: BoundConstraintSet, q: Positions, v: Velocities
) -> Float[Array, "nb 6"]:
    """Spatial forces F_Bo_W of distance constraints with finite stiffness, which act as springs and dampers."""
    require_bound_set("compliant_forces", cset, model)
    q = as_coordinates("q", q, model.num_positions, model.dtype)
    v = as_coordinates("v", v, model.num_velocities, model.dtype)
    return for_worlds_of(_compliant_forces, model, cset, q, v)


def _compliant_forces(model: MultibodyModel, cset: BoundConstraintSet, q: Array, v: Array) -> Float[Array, "nb 6"]:
    position = calc_position_kinematics(model, q)
    return calc_compliant_forces(model, cset, position, calc_velocity_kinematics(model, position, q, v), v)


def constraint_forces_by_name(
    cset: BoundConstraintSet, multipliers: Float[Array, "*batch nc"]
) -> dict[str, Float[Array, "*batch k"]]:
    """Forces λ, or impulses, of each constraint by its name; leading axes are kept."""
    if not isinstance(cset, BoundConstraintSet):
        raise ModelError(
            "constraint_forces_by_name: cset must be a BoundConstraintSet, as ConstraintSet.bind(model) returns it, "
            f"got {type(cset).__name__}."
        )
    if is_known(multipliers) and as_numbers(multipliers) is None:
        raise ModelError(f"constraint_forces_by_name: multipliers must be numbers, got {shown(multipliers)}.")
    multipliers = jnp.asarray(multipliers)
    if multipliers.shape[-1:] != (cset.num_rows,):
        raise ModelError(
            f"constraint_forces_by_name: multipliers have shape {multipliers.shape}; the last axis must be the set's "
            f"{cset.num_rows} rows: {', '.join(cset.row_names)}."
        )
    return {name: multipliers[..., cset.rows_of(name)] for name in cset.names}
