"""Forward dynamics: v̇ from tau, and its derivative rule dv̇ = M⁻¹ (dtau − dID).

Two entry points:
    calc_forward_dynamics_from_state   model, q, v, tau           where nothing else reads the kinematics
    calc_forward_dynamics              terms already computed     where forces on bodies act
Both solve by the articulated-body algorithm (`articulated_body_algorithm`):
    in kernels      `articulated_body_recursion`: newton_euler/recursion.py, then articulated_body/recursion.py
    elsewhere       `solve_by_sums_over_tree`: newton_euler/sums.py, then mass_matrix_factor.py
Both are differentiated through inverse dynamics and the factor already there:
    dtau − dID      `calc_residual_change`: derivatives/rule.py
    M⁻¹             `solve_mass_matrix`
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from mbjax.execution import in_kernels
from mbjax.execution.derivative_rules import add_tangents, fit_tangent, linear_map
from mbjax.execution.recursions import array_of
from mbjax.kinematics import MobodInertia, PositionKinematics, VelocityKinematics
from mbjax.model import MultibodyModel, locked_velocities
from mbjax.topology import TreeTopology

from .articulated_body.factor import ArticulatedFactor
from .articulated_body.recursion import calc_accelerations
from .derivatives.rule import enough, shape_of_torques, torque_derivative_rule
from .inverse_dynamics import recursive_newton_euler_algorithm
from .mass_matrix_factor import MassMatrixFactor, factor_mass_matrix, solve_factored, solve_many_factored
from .newton_euler.recursion import calc_motion
from .newton_euler.sums import (
    calc_inverse_dynamics,
    calc_mass_matrix_product,
    calc_motion_and_forces,
    moved_to_mobods,
)
from .records.direction_rows import PlacedRows, calc_placed_inertia
from .records.tree_motion import TreeMotion


class ForwardDynamicsTerms(eqx.Module):
    """The terms of (M + diag) vdot = tau - bias(q, v) + sum J^T F_applied.

    `diagonal` holds the reflected inertias, and what an implicit step adds to them. Velocities that are `locked` have
    zero acceleration and no equation; `v` is zero there. `only_weights` says that `F_applied_T` are the weights of all
    bodies and nothing else, so that recursions can compute them on their way. Where nobody reads the kinematics in
    `motion` but derivatives, M may have been computed from the state, by a recursion.
    """

    motion: TreeMotion
    tau: Float[Array, " nv"]
    F_applied_T: Float[Array, "6 nm"] | None
    diagonal: Float[Array, " nv"]
    locked: Bool[Array, " nv"]
    only_weights: bool = eqx.field(static=True, default=False)
    M: Float[Array, "nv nv"] | None = None  # without `diagonal`; not differentiated

    @property
    def position(self) -> PositionKinematics:
        return self.motion.position

    @property
    def inertia_W(self) -> MobodInertia:
        return self.motion.inertia_W

    @property
    def velocity(self) -> VelocityKinematics:
        return self.motion.velocity

    @property
    def v(self) -> Float[Array, " nv"]:
        return self.motion.v


def solve_mass_matrix(
    topology: TreeTopology,
    factor: MassMatrixFactor,
    motion: TreeMotion,
    diagonal: Float[Array, " nv"],
    locked: Bool[Array, " nv"],
    b: Float[Array, " nv"],
) -> Float[Array, " nv"]:
    """Solves (M + diag) x = b, differentiable to any order in M and b by solving again with the factor.

    Locked rows read x = 0 instead: with P the projection on the free velocities, P (M + diag) P + (1 - P) is the
    matrix and P b the right-hand side.
    """

    def matvec(x: Array) -> Array:
        free = jnp.where(locked, 0.0, x)
        product = calc_mass_matrix_product(topology, motion.position, motion.inertia_W, free) + diagonal * free
        return jnp.where(locked, x, product)

    def solve(factor: MassMatrixFactor, b: Array) -> Array:
        return solve_factored(topology, factor, b)

    def solve_many(factor: MassMatrixFactor, b: Float[Array, "k nv"]) -> Float[Array, "k nv"]:
        return solve_many_factored(topology, factor, b)

    many = solve_many, solve_many, enough(topology)
    return lax.custom_linear_solve(
        matvec,
        jnp.where(locked, 0.0, b),
        lambda _, rhs: linear_map(solve, solve, factor, rhs, shape_of_torques(rhs, factor), many),
        symmetric=True,
    )


def calc_forward_dynamics(terms: ForwardDynamicsTerms) -> Float[Array, " nv"]:
    """Accelerations from `terms`: the exact inverse of `calc_inverse_dynamics`; O(n) where no joint mimics another."""
    topology = terms.motion.model.topology
    if topology.num_velocities == 0:
        return jnp.zeros_like(terms.tau)
    fixed, placed = lax.stop_gradient(terms), None
    if topology.followers:
        factor, vdot = solve_by_sums_over_tree(fixed)
    else:
        factor, vdot, placed = solve_terms_by_recursion(fixed)
    return vdot_with_rule(terms, factor, vdot, placed)


@eqx.filter_custom_jvp
def calc_forward_dynamics_from_state(
    model: MultibodyModel,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    diagonal: Float[Array, " nv"],
    weights: bool,
) -> Float[Array, " nv"]:
    """Forward dynamics from model and state, where no forces act on bodies except, with `weights`, gravity.

    It skips the kinematics records, which take a quarter of a program's tracing time; only derivatives compute them.
    """
    if model.topology.followers or model.topology.num_velocities == 0:
        return forward_dynamics_through_terms(model, q, v, tau, diagonal, weights)
    return articulated_body_algorithm(model, q, v, tau, None, diagonal, locked_velocities(model), weights)[1]


@calc_forward_dynamics_from_state.def_jvp
def _calc_forward_dynamics_from_state_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    vdot, change = eqx.filter_jvp(forward_dynamics_through_terms, primals, tangents)
    return vdot, fit_tangent(change, vdot)


def forward_dynamics_through_terms(
    model: MultibodyModel, q: Array, v: Array, tau: Array, diagonal: Array, weights: bool
) -> Float[Array, " nv"]:
    """Forward dynamics from model and state: computes the terms, then calls `calc_forward_dynamics`."""
    motion, F_T = calc_motion_and_forces(model, q, v, None, weights)
    return calc_forward_dynamics(
        ForwardDynamicsTerms(motion, tau, F_T, diagonal, locked_velocities(model), only_weights=True)
    )


def calc_residual_change(
    terms: ForwardDynamicsTerms, change: Any, vdot: Float[Array, " nv"], placed: PlacedRows | None
) -> Array:
    """Tangent of the residual tau - ID(vdot) - diag vdot along the tangent `change` of the terms, vdot held."""

    def rest(tau: Array, diagonal: Array) -> Array:
        return tau - diagonal * vdot

    _, of_rest = eqx.filter_jvp(rest, (terms.tau, terms.diagonal), (change.tau, change.diagonal))
    applied = terms.F_applied_T, terms.only_weights
    required = torque_derivative_rule(terms.motion, vdot, *applied, change.motion, None, change.F_applied_T, placed)
    return add_tangents(of_rest, None if required is None else -required)


def calc_force_at_rest(terms: ForwardDynamicsTerms) -> Float[Array, " nv"]:
    """The forces that act less the bias: tau - ID(vdot = 0), zero where locked; not differentiated."""
    motion = terms.motion
    if terms.M is not None:
        weights = terms.F_applied_T is not None
        bias = recursive_newton_euler_algorithm(motion.model, motion.q, motion.v, None, None, weights)
    else:
        bias = calc_inverse_dynamics(motion, None, terms.F_applied_T)
    return jnp.where(terms.locked, 0.0, terms.tau - bias)


def solve_by_sums_over_tree(terms: ForwardDynamicsTerms) -> tuple[MassMatrixFactor, Float[Array, " nv"]]:
    """Factor and vdot from bias forces that are summed over all mobods at once, and one solve with the factor."""
    rhs = calc_force_at_rest(terms)
    inertia = terms.position, terms.inertia_W, terms.diagonal
    factor, vdot = factor_mass_matrix(terms.motion.model.topology, *inertia, terms.locked, rhs)
    assert vdot is not None
    return factor, vdot


def solve_terms_by_recursion(terms: ForwardDynamicsTerms) -> tuple[ArticulatedFactor, Float[Array, " nv"], PlacedRows]:
    """Forward dynamics by recursion; also returns the factor and the placed inertias, which derivatives reuse."""
    motion, F = terms.motion, None
    if terms.F_applied_T is not None and not terms.only_weights:
        F = moved_to_mobods(motion.position, terms.F_applied_T, -1.0)
    weights = terms.only_weights and terms.F_applied_T is not None
    state = motion.model, motion.q, motion.v
    return articulated_body_algorithm(*state, terms.tau, F, terms.diagonal, terms.locked, weights)


def articulated_body_algorithm(
    model: MultibodyModel,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    F_applied_W: Float[Array, "6 nm"] | None,
    diagonal: Float[Array, " nv"],
    locked: Bool[Array, " nv"],
    weights: bool,
) -> tuple[ArticulatedFactor, Float[Array, " nv"], PlacedRows]:
    """Factor, v̇ and placed inertias from model and state: by recursion in kernels, by sums elsewhere.

    `F_applied_W` are the forces on mobods, each at its own origin Mo.
    """

    def by_sums(
        model: MultibodyModel, q: Array, v: Array, tau: Array, F: Array | None, diagonal: Array, locked: Array
    ) -> tuple:
        motion, F_T = calc_motion_and_forces(model, q, v, F, weights)
        factor, vdot = solve_by_sums_over_tree(ForwardDynamicsTerms(motion, tau, F_T, diagonal, locked))
        assert isinstance(factor, ArticulatedFactor)
        return factor, vdot, PlacedRows(factor.directions, calc_placed_inertia(model.topology, motion.inertia_W))

    by_recursion = partial(articulated_body_recursion, weights=weights)
    return in_kernels(by_recursion, by_sums, model, q, v, tau, F_applied_W, diagonal, locked)


def articulated_body_recursion(
    model: MultibodyModel,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    F_applied_W: Float[Array, "6 nm"] | None,
    diagonal: Float[Array, " nv"],
    locked: Bool[Array, " nv"],
    weights: bool,
) -> tuple[ArticulatedFactor, Float[Array, " nv"], PlacedRows]:
    """Articulated-body algorithm in three passes: outward, inward, outward. Applied forces act at each mobod's Mo."""
    motion = calc_motion(model, q, v, None, weights, F_applied_W)
    tau, diagonal = jnp.where(locked, 0.0, tau), jnp.where(locked, jnp.inf, diagonal)
    vdot, pivots = calc_accelerations(model.topology, motion, diagonal, tau)
    hinge = array_of(motion.hinge)
    return ArticulatedFactor(hinge, array_of(pivots.factor), None), vdot, PlacedRows(hinge, array_of(motion.inertia))


@eqx.filter_custom_jvp
def vdot_with_rule(
    terms: ForwardDynamicsTerms,
    factor: MassMatrixFactor,
    vdot: Float[Array, " nv"],
    placed: PlacedRows | None,
) -> Float[Array, " nv"]:
    """Returns vdot, the solution of `terms`; its derivative is one more solve, whatever found vdot."""
    return vdot


@vdot_with_rule.def_jvp
def _vdot_with_rule_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    terms, factor, vdot, placed = primals
    vdot = vdot_with_rule(terms, factor, vdot, placed)  # called with its own rule, which second derivatives need

    change = calc_residual_change(terms, tangents[0], vdot, placed)
    b = jnp.broadcast_to(change, jnp.broadcast_shapes(change.shape, vdot.shape))
    topology = terms.motion.model.topology
    return vdot, solve_mass_matrix(topology, factor, terms.motion, terms.diagonal, terms.locked, b)
