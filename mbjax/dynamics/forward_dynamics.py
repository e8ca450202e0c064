"""v̇ from tau, with the derivative rule dv̇ = M⁻¹ (dtau − dID)."""

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from mbjax.kinematics import MobodInertia, PositionKinematics, VelocityKinematics
from mbjax.topology import TreeTopology

from .articulated_body import ArticulatedFactor
from .mass_matrix_factor import MassMatrixFactor, factor_mass_matrix, solve_factored
from .newton_euler import TreeMotion, calc_inverse_dynamics, calc_mass_matrix_product


class ForwardDynamicsTerms(eqx.Module):
    """What forward dynamics reads: (M + diag) vdot = tau - bias(q, v) + sum J^T F_applied.

    `diagonal` holds the reflected inertias, and what an implicit step adds to them. Velocities that are `locked`
    have no acceleration, and their rows are not asked for; `v` is zero there.
    """

    position: PositionKinematics
    inertia_W: MobodInertia
    velocity: VelocityKinematics
    v: Float[Array, " nv"]
    tau: Float[Array, " nv"]
    F_applied_T: Float[Array, "6 nm"] | None
    diagonal: Float[Array, " nv"]
    locked: Bool[Array, " nv"]

    @property
    def motion(self) -> TreeMotion:
        return TreeMotion(self.position.S_T, self.position.p_TM_W, self.inertia_W, self.velocity, self.v)


def solve_mass_matrix(
    topology: TreeTopology,
    factor: MassMatrixFactor,
    motion: TreeMotion,
    diagonal: Float[Array, " nv"],
    locked: Bool[Array, " nv"],
    b: Float[Array, " nv"],
) -> Float[Array, " nv"]:
    """x with (M + diag) x = b, differentiable to any order in M and b by solving again with the factor.

    Where locked, x = 0 instead of the row's equation: with P the projection on the others, P (M + diag) P + (1 - P)
    is the matrix, P b the right-hand side.
    """
    if topology.num_velocities == 0:
        return b

    def matvec(x: Array) -> Array:
        free = jnp.where(locked, 0.0, x)
        product = calc_mass_matrix_product(topology, motion, free) + diagonal * free
        return jnp.where(locked, x, product)

    worlds = jnp.broadcast_shapes(b.shape[1:], factor.one_over_D.shape[1:])
    return lax.custom_linear_solve(
        matvec,
        jnp.broadcast_to(jnp.where(locked, 0.0, b), (b.shape[0], *worlds)),
        lambda _, rhs: solve_factored(topology, factor, rhs),
        symmetric=True,
    )


@eqx.filter_custom_jvp
def calc_forward_dynamics(topology: TreeTopology, terms: ForwardDynamicsTerms) -> Float[Array, " nv"]:
    """The exact inverse of `calc_inverse_dynamics`, in O(n) where no joint mimics another."""
    return _solve(topology, terms)[0]


@calc_forward_dynamics.def_jvp
def _calc_forward_dynamics_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    topology, terms = primals
    _, terms_tangent = tangents
    vdot, factor = _solve(topology, terms)

    def residual(terms: ForwardDynamicsTerms) -> Array:
        required = calc_inverse_dynamics(topology, terms.motion, vdot, terms.F_applied_T)
        return terms.tau - required - terms.diagonal * vdot

    _, residual_tangent = eqx.filter_jvp(residual, (terms,), (terms_tangent,))
    dvdot = solve_mass_matrix(topology, factor, terms.motion, terms.diagonal, terms.locked, residual_tangent)
    return vdot, dvdot


def _solve(topology: TreeTopology, terms: ForwardDynamicsTerms) -> tuple[Array, MassMatrixFactor]:
    motion = terms.motion
    if topology.num_velocities == 0:
        empty = jnp.zeros_like(terms.tau)
        return empty, ArticulatedFactor(empty, empty, empty, empty)
    factor = factor_mass_matrix(topology, terms.position, terms.inertia_W, terms.diagonal, terms.locked)
    rhs = terms.tau - calc_inverse_dynamics(topology, motion, None, terms.F_applied_T)
    return solve_mass_matrix(topology, factor, motion, terms.diagonal, terms.locked, rhs), factor
