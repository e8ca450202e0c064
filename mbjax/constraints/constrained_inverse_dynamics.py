"""Inverse dynamics under constraints: torques for a desired motion, also where some velocities are not actuated."""

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from mbjax.array_types import Accelerations, GeneralizedForces, Positions, Velocities
from mbjax.errors import ModelError
from mbjax.execution import takes_model_first
from mbjax.execution.arrays import scan
from mbjax.forces import MultibodyForces, require_forces
from mbjax.kinematics import for_worlds_of
from mbjax.model import MultibodyModel, as_coordinates
from mbjax.number_rules import POSITIVE, checked_numbers, shown

from .bound_constraint_set import BoundConstraintSet, require_bound_set
from .constrained_dynamics import calc_constrained_dynamics, calc_constraint_residual, kkt_solve, masked
from .constrained_forward_dynamics import calc_constrained_dynamics_terms
from .solvers.abstract_solver import AbstractConstraintSolver
from .solvers.checked_solver import checked_solver

LIMIT_STEPS = 5  # steps of the proximal method towards a torque weight of zero
LIMIT_WEIGHT = 1.0 / 3.0  # torque weight of each step, as a power of eps; rounding grows with its inverse


class ConstrainedTorques(eqx.Module):
    """Torques, constraint forces, and the acceleration they cause; `tau, force, vdot = …` unpacks them."""

    tau: GeneralizedForces
    force: Float[Array, " nc"]
    vdot: Accelerations

    def __iter__(self) -> Iterator[Array]:
        return iter((self.tau, self.force, self.vdot))


@takes_model_first
def inverse_dynamics_with_constraints(
    model: MultibodyModel,
    cset: BoundConstraintSet,
    q: Positions,
    v: Velocities,
    vdot: Accelerations,
    force: Float[Array, " nc"],
    forces: MultibodyForces | None = None,
) -> GeneralizedForces:
    """Torques tau = M vdot + C(q, v) v - tau_applied - sum Jᵀ F_applied - Gᵀ λ, with the constraint forces λ given.

    Where vdot satisfies the constraints, `constrained_forward_dynamics` of tau returns it.
    """
    require_bound_set("inverse_dynamics_with_constraints", cset, model)
    if forces is not None:
        require_forces("inverse_dynamics_with_constraints", model, forces)
    q = as_coordinates("q", q, model.num_positions, model.dtype)
    v = as_coordinates("v", v, model.num_velocities, model.dtype)
    vdot = as_coordinates("vdot", vdot, model.num_velocities, model.dtype)
    force = as_coordinates("force", force, cset.num_rows, model.dtype)
    return for_worlds_of(_inverse_dynamics_with_constraints, model, cset, q, v, vdot, force, forces)


def _inverse_dynamics_with_constraints(
    model: MultibodyModel,
    cset: BoundConstraintSet,
    q: Array,
    v: Array,
    vdot: Array,
    force: Array,
    forces: MultibodyForces | None,
) -> Float[Array, "nv *w"]:
    terms = calc_constrained_dynamics_terms(model, cset, q, v, model.zeros(model.num_velocities), forces)
    _, acting = masked(terms, terms.tau, force)
    return -calc_constraint_residual(model.topology, terms, vdot, acting)[0]


@takes_model_first
def constrained_inverse_dynamics(
    model: MultibodyModel,
    cset: BoundConstraintSet,
    q: Positions,
    v: Velocities,
    vdot: Accelerations,
    forces: MultibodyForces | None = None,
    *,
    actuated: ArrayLike | None = None,
    torque_weight: ArrayLike | None = None,
    solver: AbstractConstraintSolver | None = None,
) -> ConstrainedTorques:
    """Torques of the actuated velocities that bring the acceleration a nearest to the desired vdot.

    Among all motions that the constraints and actuators allow, (a - vdot)ᵀ M (a - vdot) is least. Among all torques
    with that motion, |tau|² is least. A feasible motion is met exactly. With every velocity actuated, each motion that
    satisfies the constraints is feasible. Otherwise it is also where the constraints hold the velocities that are not
    actuated, such as a standing robot's base (RBDL's InverseDynamicsConstraints). With a `torque_weight` w > 0, in
    1 / (kg m²) or 1 / kg, the sum (a - vdot)ᵀ M (a - vdot) + w |tau|² is least instead (RBDL's relaxed version). Raises
    `ModelError` for another weight.

    `actuated` holds one truth value (bool) a velocity, True for all if none is given. Other arguments are as in
    `constrained_forward_dynamics`, which returns the same vdot and force for this tau.
    """
    require_bound_set("constrained_inverse_dynamics", cset, model)
    if forces is not None:
        require_forces("constrained_inverse_dynamics", model, forces)
    solver = checked_solver("constrained_inverse_dynamics", solver)
    q = as_coordinates("q", q, model.num_positions, model.dtype)
    v = as_coordinates("v", v, model.num_velocities, model.dtype)
    vdot = as_coordinates("vdot", vdot, model.num_velocities, model.dtype)
    driven = as_coordinates("actuated", truth_values(model, actuated), model.num_velocities, model.dtype)
    weight = None if torque_weight is None else jnp.asarray(checked_weight(torque_weight), model.dtype)
    return for_worlds_of(_constrained_inverse_dynamics, model, cset, q, v, vdot, forces, driven, weight, solver)


def truth_values(model: MultibodyModel, actuated: ArrayLike | None) -> Bool[Array, " nv"]:
    """Which velocities are actuated, all if None is given; raises `ModelError` for indices, names and other numbers."""
    if actuated is None:
        return jnp.ones(model.num_velocities, bool)
    try:
        given = jnp.asarray(actuated)
    except (TypeError, ValueError):
        given = None
    if given is None or given.dtype != bool:
        raise ModelError(
            f"constrained_inverse_dynamics: actuated must be {model.num_velocities} truth values of type bool, one for "
            f"each velocity, got {shown(actuated)}. Of indices they are np.isin(np.arange(model.num_velocities), "
            "indices); a joint with this name has the indices model.joint(name).v."
        )
    return given


def checked_weight(torque_weight: ArrayLike) -> ArrayLike:
    """The weight of torques; raises `ModelError` unless it is one finite number > 0."""
    hint = "Leave it out for the least torques of the exact motion."
    return checked_numbers("constrained_inverse_dynamics", "torque_weight", torque_weight, POSITIVE, hint=hint)


def _constrained_inverse_dynamics(
    model: MultibodyModel,
    cset: BoundConstraintSet,
    q: Array,
    v: Array,
    vdot: Array,
    forces: MultibodyForces | None,
    driven: Array,
    torque_weight: Array | None,
    solver: AbstractConstraintSolver,
) -> ConstrainedTorques:
    """Solves the optimality conditions of tau = B u, with e the M⁻¹-weighted multipliers of the equation of motion.

    (M + B Bᵀ / w) e - Gᵀ μ = -ID(vdot),  G e = 0,  u = -Bᵀ e / w

    Repeating the solve for the remainder of ID(vdot) takes u to the limit of w → 0.
    """
    topology = model.topology
    terms = calc_constrained_dynamics_terms(model, cset, q, v, model.zeros(model.num_velocities), forces)
    steps = 1
    if torque_weight is None:
        torque_weight, steps = jnp.asarray(jnp.finfo(model.dtype).eps ** LIMIT_WEIGHT, model.dtype), LIMIT_STEPS
    gain = driven / torque_weight
    augmented = eqx.tree_at(lambda t: t.diagonal, terms, terms.diagonal + gain).system(topology)
    factor = solver.init(lax.stop_gradient(augmented))
    rest, none = masked(terms, calc_constraint_residual(topology, terms, vdot, None)[0], jnp.zeros_like(terms.rhs))

    def step(tau: Array, _: Any) -> tuple[Array, None]:
        e, _ = kkt_solve(solver, augmented, factor, rest + tau, none)
        return tau - gain * e, None

    worlds = jnp.broadcast_shapes(rest.shape[1:], gain.shape[1:], augmented.G.shape[2:], augmented.inertia.worlds)
    tau, _ = scan(step, jnp.zeros((rest.shape[0], *worlds), rest.dtype), None, length=steps)
    moved = eqx.tree_at(lambda t: t.tau, terms, terms.tau + tau)
    result = calc_constrained_dynamics(topology, solver, moved)
    return ConstrainedTorques(tau, result.multipliers, result.vdot)
