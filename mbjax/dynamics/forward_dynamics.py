"""v̇ from tau, with the derivative rule dv̇ = M⁻¹ (dtau − dID)."""

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from mbjax.kinematics import MobodInertia, PositionKinematics, VelocityKinematics
from mbjax.topology import TreeTopology

from .mass_matrix_factor import MassMatrixFactor, factor_mass_matrix, solve_factored
from .newton_euler import calc_inverse_dynamics, calc_mass_matrix_product
from .tree_motion import TreeMotion


class ForwardDynamicsTerms(eqx.Module):
    """What forward dynamics reads: (M + diag) vdot = tau - bias(q, v) + sum J^T F_applied.

    `diagonal` holds the reflected inertias, and what an implicit step adds to them. Velocities that are `locked`
    have no acceleration, and their rows are not asked for; `v` is zero there.
    """

    motion: TreeMotion
    tau: Float[Array, " nv"]
    F_applied_T: Float[Array, "6 nm"] | None
    diagonal: Float[Array, " nv"]
    locked: Bool[Array, " nv"]

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
    """x with (M + diag) x = b, differentiable to any order in M and b by solving again with the factor.

    Where locked, x = 0 instead of the row's equation: with P the projection on the others, P (M + diag) P + (1 - P)
    is the matrix, P b the right-hand side.
    """

    def matvec(x: Array) -> Array:
        free = jnp.where(locked, 0.0, x)
        product = calc_mass_matrix_product(topology, motion.position, motion.inertia_W, free) + diagonal * free
        return jnp.where(locked, x, product)

    return lax.custom_linear_solve(
        matvec,
        jnp.where(locked, 0.0, b),
        lambda _, rhs: solve_factored(topology, factor, rhs),
        symmetric=True,
    )


def calc_forward_dynamics(topology: TreeTopology, terms: ForwardDynamicsTerms) -> Float[Array, " nv"]:
    """The exact inverse of `calc_inverse_dynamics`, in O(n) where no joint mimics another."""
    if topology.num_velocities == 0:
        return jnp.zeros_like(terms.tau)
    fixed = lax.stop_gradient(terms)
    rhs = fixed.tau - calc_inverse_dynamics(fixed.motion, None, fixed.F_applied_T)
    rhs = jnp.where(fixed.locked, 0.0, rhs)
    inertia = fixed.position, fixed.inertia_W, fixed.diagonal
    factor, vdot = factor_mass_matrix(topology, *inertia, fixed.locked, rhs)
    return at_solution(topology, terms, factor, vdot)


@eqx.filter_custom_jvp
def at_solution(
    topology: TreeTopology, terms: ForwardDynamicsTerms, factor: MassMatrixFactor, vdot: Float[Array, " nv"]
) -> Float[Array, " nv"]:
    """vdot, a solution, which the derivative rule knows to be one."""
    return vdot


@at_solution.def_jvp
def _at_solution_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    topology, terms, factor, vdot = primals
    vdot = at_solution(topology, terms, factor, vdot)  # its own derivative is needed for second ones

    def residual(terms: ForwardDynamicsTerms) -> Array:
        required = calc_inverse_dynamics(terms.motion, vdot, terms.F_applied_T)
        return terms.tau - required - terms.diagonal * vdot

    _, residual_tangent = eqx.filter_jvp(residual, (terms,), (tangents[1],))
    b = jnp.broadcast_to(residual_tangent, jnp.broadcast_shapes(residual_tangent.shape, vdot.shape))
    return vdot, solve_mass_matrix(topology, factor, terms.motion, terms.diagonal, terms.locked, b)
