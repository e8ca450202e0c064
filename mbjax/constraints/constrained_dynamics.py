"""Accelerations and multipliers under constraints; derivatives solve once more with the factor already computed.

    tau - ID(q, v, vdot) - diag vdot + Gᵀ λ = 0,    rhs - G vdot - R λ = 0

Solver strategies are not differentiated. Where rows depend on each other, the derivative is that of the motion under
the rows that are kept. It is right if the other rows keep following from these, as duplicated rows do.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from mbjax.dynamics import (
    TreeMotion,
    calc_inertia_in_world,
    calc_inverse_dynamics,
    calc_mass_matrix_product,
    calc_reflected_inertia,
)
from mbjax.kinematics import MobodInertia, PositionKinematics
from mbjax.linear_algebra import matrix_vector, transposed_matrix_vector
from mbjax.model import MultibodyModel, locked_velocities
from mbjax.topology import TreeTopology

from .solvers.abstract_solver import AbstractConstraintSolver, KktMatrix, TreeMassMatrix


class ConstrainedDynamicsTerms(eqx.Module):
    """Terms of constrained motion: M vdot + bias = tau + sum Jᵀ F_applied + Gᵀ λ, G vdot + R λ = rhs.

    Without `motion` the tree is at rest; vdot is then a change of velocity and λ an impulse. Velocities that are
    `locked` do not change, and rows that are not `active` have λ = 0.
    """

    position: PositionKinematics
    inertia_W: MobodInertia
    motion: TreeMotion | None
    tau: Float[Array, "nv *w"]
    F_applied_T: Float[Array, "6 nm *w"] | None
    diagonal: Float[Array, "nv *w"]
    locked: Bool[Array, "nv *w"]
    G: Float[Array, "nc nv *w"]
    rhs: Float[Array, "nc *w"]
    active: Float[Array, "nc *w"]
    regularization: Float[Array, "nc *w"] | None = None  # R, in m/s² per N or rad/s² per N m

    def system(self, topology: TreeTopology) -> KktMatrix:
        """The KKT matrix, with inactive rows and locked columns of G set to zero."""
        free, active = ~self.locked[None], self.active > 0.5
        inertia = TreeMassMatrix(topology, self.position, self.inertia_W, self.diagonal, self.locked)
        return KktMatrix(inertia, jnp.where(active[:, None] & free, self.G, 0.0), self.regularization)


def terms_at_rest(
    model: MultibodyModel,
    position: PositionKinematics,
    G: Float[Array, "nc nv *w"],
    rhs: Float[Array, "nc *w"],
    active: Float[Array, "nc *w"],
) -> ConstrainedDynamicsTerms:
    """The system of a change x and the impulses Λ that cause it: M x = Gᵀ Λ, G x = rhs."""
    return ConstrainedDynamicsTerms(
        position=position,
        inertia_W=calc_inertia_in_world(model, position),
        motion=None,
        tau=model.zeros(model.num_velocities),
        F_applied_T=None,
        diagonal=calc_reflected_inertia(model),
        locked=locked_velocities(model),
        G=G,
        rhs=rhs,
        active=active,
    )


class ConstrainedDynamicsResult(NamedTuple):
    """vdot, λ and, without derivatives, the number of redundant rows and the largest |rhs - G vdot - R λ|."""

    vdot: Float[Array, "nv *w"]
    multipliers: Float[Array, "nc *w"]
    num_redundant: Float[Array, "*w"]
    residual: Float[Array, "*w"]


@eqx.filter_custom_jvp
def calc_constrained_dynamics(
    topology: TreeTopology, solver: AbstractConstraintSolver, terms: ConstrainedDynamicsTerms
) -> ConstrainedDynamicsResult:
    """Solves for vdot and λ; differentiable to any order with respect to `terms`."""
    return _solve(topology, solver, terms)[0]


@calc_constrained_dynamics.def_jvp
def _calc_constrained_dynamics_jvp(
    primals: tuple, tangents: tuple
) -> tuple[ConstrainedDynamicsResult, ConstrainedDynamicsResult]:
    topology, solver, terms = primals
    _, _, terms_tangent = tangents
    result, factor = _solve(topology, solver, terms)

    def residual(terms: ConstrainedDynamicsTerms) -> tuple[Array, Array]:
        return calc_constraint_residual(topology, terms, result.vdot, result.multipliers)

    _, tangents = eqx.filter_jvp(residual, (terms,), (terms_tangent,))  # None where a residual does not move
    zeros = jnp.zeros_like(result.vdot), jnp.zeros_like(result.multipliers)
    of_v, of_c = (zero if x is None else x for x, zero in zip(tangents, zeros, strict=True))
    dvdot, dmultipliers = kkt_solve(solver, terms.system(topology), factor, *masked(terms, of_v, of_c))
    nothing = jnp.zeros_like(result.residual)
    return result, ConstrainedDynamicsResult(dvdot, dmultipliers, nothing, nothing)


def calc_constraint_residual(
    topology: TreeTopology, terms: ConstrainedDynamicsTerms, vdot: Array | None, multipliers: Array | None
) -> tuple[Float[Array, "nv *w"], Float[Array, "nc *w"]]:
    """Residuals of both equations at vdot and λ; None means zero."""
    of_v, of_c = terms.tau, terms.rhs
    if terms.motion is not None:
        of_v = of_v - calc_inverse_dynamics(terms.motion, vdot, terms.F_applied_T)
    elif vdot is not None:
        of_v = of_v - calc_mass_matrix_product(topology, terms.position, terms.inertia_W, vdot)
    if vdot is not None:
        of_v, of_c = of_v - terms.diagonal * vdot, of_c - matrix_vector(terms.G, vdot)
    if multipliers is not None:
        of_v = of_v + transposed_matrix_vector(terms.G, multipliers)
        if terms.regularization is not None:
            of_c = of_c - terms.regularization * multipliers
    return of_v, of_c


def masked(terms: ConstrainedDynamicsTerms, rhs_v: Array, rhs_c: Array) -> tuple[Array, Array]:
    """Both right-hand sides, with zeros for locked velocities and inactive rows."""
    return jnp.where(terms.locked, 0.0, rhs_v), jnp.where(terms.active > 0.5, rhs_c, 0.0)


def _solve(
    topology: TreeTopology, solver: AbstractConstraintSolver, terms: ConstrainedDynamicsTerms
) -> tuple[ConstrainedDynamicsResult, Any]:
    system = terms.system(topology)
    factor = solver.init(lax.stop_gradient(system))
    rhs_v, rhs_c = masked(terms, *calc_constraint_residual(topology, terms, None, None))
    vdot, multipliers = kkt_solve(solver, system, factor, rhs_v, rhs_c)
    num_redundant, residual = calc_solution_status(solver, system, factor, terms.active, rhs_c, vdot, multipliers)
    return ConstrainedDynamicsResult(vdot, multipliers, num_redundant, residual), factor


def calc_solution_status(
    solver: AbstractConstraintSolver,
    system: KktMatrix,
    factor: Any,
    active: Float[Array, "nc *w"],
    rhs_c: Float[Array, "nc *w"],
    x: Float[Array, "nv *w"],
    multipliers: Float[Array, "nc *w"],
) -> tuple[Float[Array, "*w"], Float[Array, "*w"]]:
    """Number of active rows that depend on others, and the largest error of any row."""
    system, rhs_c, x, multipliers = lax.stop_gradient((system, rhs_c, x, multipliers))
    error = rhs_c - matrix_vector(system.G, x)
    if system.regularization is not None:
        error = error - system.regularization * multipliers
    redundant = jnp.sum((active > 0.5) & ~solver.kept(factor), axis=0).astype(x.dtype)
    return jnp.broadcast_to(redundant, x.shape[1:]), jnp.max(jnp.abs(error), axis=0, initial=0.0)


def kkt_solve(
    solver: AbstractConstraintSolver,
    system: KktMatrix,
    factor: Any,
    rhs_v: Float[Array, "nv *w"],
    rhs_c: Float[Array, "nc *w"],
) -> tuple[Float[Array, "nv *w"], Float[Array, "nc *w"]]:
    """Solves M x - Gᵀ λ = rhs_v, G x + R λ = rhs_c for x and λ; differentiable to any order by solving again."""

    nv = rhs_v.shape[0]

    def matvec(unknown: Array) -> Array:
        x, minus_multipliers = unknown[:nv], unknown[nv:]
        of_c = matrix_vector(system.G, x)
        if system.regularization is not None:
            of_c = of_c - system.regularization * minus_multipliers
        of_v = system.inertia.times(x) + transposed_matrix_vector(system.G, minus_multipliers)
        return jnp.concatenate([of_v, of_c])

    def solve(_: Any, rhs: Array) -> Array:
        x, multipliers = solver.solve(lax.stop_gradient(system), factor, rhs[:nv], rhs[nv:])
        return jnp.concatenate([x, -multipliers])

    worlds = jnp.broadcast_shapes(rhs_v.shape[1:], rhs_c.shape[1:], system.G.shape[2:], system.inertia.worlds)
    # The unknowns form one vector, as the transpose of `custom_linear_solve` takes a pair only if both have tangents.
    rhs = jnp.concatenate([jnp.broadcast_to(b, (b.shape[0], *worlds)) for b in (rhs_v, rhs_c)])
    unknown = lax.custom_linear_solve(matvec, rhs, solve, symmetric=True)
    x, minus_multipliers = unknown[:nv], unknown[nv:]
    return x, -minus_multipliers
