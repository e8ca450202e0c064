"""Forward dynamics under constraints: v̇ and λ from tau."""

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from mbjax.array_types import Accelerations, GeneralizedForces, Positions, Scalar, Velocities
from mbjax.dynamics import calc_reflected_inertia, calc_tree_motion, split_forces
from mbjax.errors import ModelError
from mbjax.execution import for_worlds, takes_model_first
from mbjax.forces import (
    MultibodyForces,
    are_elements_at,
    calc_mobod_forces,
    force_elements_contribution,
    require_forces,
)
from mbjax.kinematics import calc_position_kinematics, for_worlds_of
from mbjax.model import MultibodyModel, as_coordinates, locked_velocities, zero_where_locked
from mbjax.number_rules import as_numbers, as_traced_numbers, is_known, shown

from .bound_constraint_set import BoundConstraintSet, require_bound_set
from .constrained_dynamics import (
    ConstrainedDynamicsResult,
    ConstrainedDynamicsTerms,
    calc_constrained_dynamics,
    calc_solution_status,
    kkt_solve,
)
from .constraint_forces import calc_compliant_forces
from .constraint_kinematics import calc_constraint_terms
from .contact_derivatives import are_contacts
from .contact_motion import contact_motion_derivatives, with_contact_derivatives
from .solvers.abstract_solver import AbstractConstraintSolver, DenseMassMatrix, KktMatrix
from .solvers.checked_solver import checked_solver
from .solvers.direct import Direct


class ConstrainedAcceleration(eqx.Module):
    """Acceleration and constraint forces; `vdot, force = …` unpacks the two.

    λ acts on the successor of each constraint, in N or N m by row. `num_redundant` active rows depend on others. If
    they contradict the others, `residual` is the largest |G vdot - gamma| in m/s² or rad/s²; else it is rounding.
    """

    vdot: Accelerations
    force: Float[Array, " nc"]
    num_redundant: Int[Array, ""]
    residual: Scalar

    def __iter__(self) -> Iterator[Array]:
        return iter((self.vdot, self.force))


@takes_model_first
def constrained_forward_dynamics(
    model: MultibodyModel,
    cset: BoundConstraintSet,
    q: Positions,
    v: Velocities,
    tau: GeneralizedForces,
    forces: MultibodyForces | None = None,
    solver: AbstractConstraintSolver | None = None,
    *,
    force_elements: bool = False,
) -> ConstrainedAcceleration:
    """vdot and λ with M vdot + C(q, v) v = tau + tau_applied + sum Jᵀ F_applied + Gᵀ λ, G vdot = gamma + stabilization.

    `forces` are all applied forces, including gravity if it acts, as in `forward_dynamics`; with `force_elements` those
    of `force_elements_contribution` act too. Springs of compliant constraints are added here. Locked joints stay, and
    inactive constraints have λ = 0. The result is differentiable with respect to the model, the constraints, q, v, tau
    and forces; which rows are redundant is held fixed.
    The solver is `Direct()` if none is given. RBDL's ForwardDynamicsConstraints….

    For contacts alone, with `force_elements` and no other forces, Jacobians by q, v and tau are closed forms.
    """
    require_bound_set("constrained_forward_dynamics", cset, model)
    if forces is not None:
        require_forces("constrained_forward_dynamics", model, forces)
    chosen = checked_solver("constrained_forward_dynamics", solver)
    if are_elements_at(forces, model, q, v) and not force_elements:
        forces, force_elements = None, True
    q = as_coordinates("q", q, model.num_positions, model.dtype)
    v = as_coordinates("v", v, model.num_velocities, model.dtype)
    tau = as_coordinates("tau", tau, model.num_velocities, model.dtype)
    if force_elements and forces is None and solver is None and are_contacts(cset):
        result = with_contact_derivatives(
            forward_dynamics_under_elements, contact_motion_derivatives, model, cset, q, v, tau
        )
    else:
        if force_elements:
            of_elements = force_elements_contribution(model, q, v)
            forces = of_elements if forces is None else forces + of_elements
        result = for_worlds_of(_constrained_forward_dynamics, model, cset, q, v, tau, forces, chosen)
    vdot, force, num_redundant, residual = result
    return ConstrainedAcceleration(vdot, force, num_redundant.astype(jnp.int32), residual)


def forward_dynamics_under_elements(
    model: MultibodyModel, cset: BoundConstraintSet, q: Array, v: Array, tau: Array
) -> ConstrainedDynamicsResult:
    """Constrained forward dynamics under force elements, differentiated as it stands."""
    forces = force_elements_contribution(model, q, v)
    return for_worlds_of(_constrained_forward_dynamics, model, cset, q, v, tau, forces, Direct())


def _constrained_forward_dynamics(
    model: MultibodyModel,
    cset: BoundConstraintSet,
    q: Array,
    v: Array,
    tau: Array,
    forces: MultibodyForces | None,
    solver: AbstractConstraintSolver,
) -> ConstrainedDynamicsResult:
    terms = calc_constrained_dynamics_terms(model, cset, q, v, tau, forces)
    return calc_constrained_dynamics(model.topology, solver, terms)


def solve_constrained_system(
    H: Float[Array, "nv nv"],
    G: Float[Array, "nc nv"],
    c: Float[Array, " nv"],
    gamma: Float[Array, " nc"],
    solver: AbstractConstraintSolver | None = None,
) -> ConstrainedAcceleration:
    """Solves H vdot - Gᵀ λ = c, G vdot = gamma for given matrices; H must be positive definite.

    `constrained_system_variables` returns such matrices. A row of zeros has λ = 0. RBDL's SolveConstrainedSystem….
    """
    solver = checked_solver("solve_constrained_system", solver)
    H, G, c, gamma = (as_block(what, x) for what, x in (("H", H), ("G", G), ("c", c), ("gamma", gamma)))
    if c.ndim != 1 or gamma.ndim != 1:
        raise ModelError(
            f"solve_constrained_system: c must be (nv,) and gamma (nc,), got shapes {c.shape} and {gamma.shape}. For a "
            "batch of systems use jax.vmap."
        )
    nv, nc = c.size, gamma.size
    if H.shape != (nv, nv) or G.shape != (nc, nv):
        raise ModelError(
            f"solve_constrained_system: c has {nv} and gamma {nc} entries, so H must be ({nv}, {nv}) and "
            f"G ({nc}, {nv}); got {H.shape} and {G.shape}."
        )
    vdot, force, num_redundant, residual = for_worlds(_solve_constrained_system, H, G, c, gamma, solver)
    return ConstrainedAcceleration(vdot, force, num_redundant.astype(jnp.int32), residual)


def as_block(what: str, value: Any) -> Array:
    """An array of floats, of integers too; raises `ModelError` for anything but real numbers."""
    numbers = None if is_known(value) and as_numbers(value) is None else as_traced_numbers(value)
    if numbers is None:
        raise ModelError(f"solve_constrained_system: {what} must be real numbers, got {shown(value)}.")
    return numbers if jnp.issubdtype(numbers.dtype, jnp.floating) else numbers.astype(float)


def _solve_constrained_system(
    H: Array, G: Array, c: Array, gamma: Array, solver: AbstractConstraintSolver
) -> ConstrainedDynamicsResult:
    system = KktMatrix(DenseMassMatrix(H), G)
    factor = solver.init(lax.stop_gradient(system))
    vdot, multipliers = kkt_solve(solver, system, factor, c, gamma)
    status = calc_solution_status(solver, system, factor, jnp.ones_like(gamma), gamma, vdot, multipliers)
    return ConstrainedDynamicsResult(vdot, multipliers, *status)


def calc_constrained_dynamics_terms(
    model: MultibodyModel,
    cset: BoundConstraintSet,
    q: Float[Array, "nq *w"],
    v: Float[Array, "nv *w"],
    tau: Float[Array, "nv *w"],
    forces: MultibodyForces | None,
) -> ConstrainedDynamicsTerms:
    """Terms of the constrained system at a state; its forces include the springs of compliant constraints."""
    position = calc_position_kinematics(model, q)
    v = zero_where_locked(model, v)
    motion = calc_tree_motion(model, position, q, v)
    rows = calc_constraint_terms(model, cset, position, motion.velocity, q, v)
    tau_applied, F_T = split_forces(model, position, forces)
    F_spring_W = calc_compliant_forces(model, cset, position, motion.velocity, v)
    if F_spring_W is not None:
        F_spring_T = calc_mobod_forces(model, position, F_spring_W)
        F_T = F_spring_T if F_T is None else F_T + F_spring_T
    return ConstrainedDynamicsTerms(
        position=position,
        inertia_W=motion.inertia_W,
        motion=motion,
        tau=tau if tau_applied is None else tau + tau_applied,
        F_applied_T=F_T,
        diagonal=calc_reflected_inertia(model),
        locked=locked_velocities(model),
        G=rows.G,
        rhs=rows.gamma + rows.stabilization,
        active=rows.active,
    )
