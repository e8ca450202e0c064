"""The rows a plant's constraints add to its equation of motion: G vdot + R λ = rhs.

In the continuous plant rigid rows have R = 0 and are stabilized with the time in their record; springs are forces. In
the discrete plant every row is a stiff spring and damper at the end of the step, as in Drake's convex formulation
(Castro et al. 2022, arXiv 2110.10107, sec. V). With error e, stiffness k and dissipation time τ

    λ = -k (e⁺ + τ ė⁺),  e⁺ = e + dt ė⁺     so that     ė⁺ + dt R λ = -e / (dt + τ),  R = 1 / (dt (dt + τ) k)

with ė⁺ = G (v + dt vdot). Rigid rows, and springs that are too stiff for the step, are near-rigid: their R is that of a
period of β dt, and τ = dt.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from mbjax.constraints import (
    BoundConstraintSet,
    ConstrainedDynamicsTerms,
    ConstraintTerms,
    Direct,
    calc_constrained_dynamics,
    calc_constraint_terms,
)
from mbjax.constraints.constraint_kinematics import per_row
from mbjax.contact import NEAR_RIGID
from mbjax.dynamics import ForwardDynamicsTerms
from mbjax.execution.arrays import dot_with_mask
from mbjax.linear_algebra import products_of_columns, transposed_matrix_vector
from mbjax.model import DistanceConstraint, MultibodyModel
from mbjax.model.abstract_constraint import with_static
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_sqrt


class ConstraintRows(eqx.Module):
    """Rows of (M + diag) vdot = tau - bias + Gᵀ (λ + given), G vdot + R λ = rhs; λ = 0 where inactive."""

    G: Float[Array, "nc nv"]
    R: Float[Array, " nc"] | None  # None: zero
    rhs: Float[Array, " nc"]
    active: Float[Array, " nc"]
    given: Float[Array, " nc"]  # forces of springs, which the state determines


def constraint_rows(model: MultibodyModel) -> BoundConstraintSet:
    """The model's constraints, with one row for each spring."""
    rows = (with_static(c, is_rigid=True, v_plus=model.zeros(1)) if is_spring(c) else c for c in model.constraints)
    return BoundConstraintSet(tuple(rows), model.topology)


def num_constraint_rows(model: MultibodyModel) -> int:
    """Number of rows of all constraints."""
    return sum(constraint.num_rows for constraint in constraint_rows(model).constraints)


def is_spring(constraint: object) -> bool:
    """Whether a constraint is a spring, which acts as a force in the continuous plant."""
    return isinstance(constraint, DistanceConstraint) and not constraint.is_rigid


def calc_rows_now(
    model: MultibodyModel, terms: ForwardDynamicsTerms, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> ConstraintRows:
    """Constraint rows of the continuous plant: rigid rows at acceleration level, springs as forces."""
    of_rows = calc_terms_of_rows(model, terms, q, v)
    stiffness, damping, spring = spring_constants(model)
    given = -of_rows.active * (stiffness * of_rows.error + damping * of_rows.velocity_error)
    return ConstraintRows(
        of_rows.G,
        None,
        of_rows.gamma + of_rows.stabilization,
        jnp.where(spring, 0.0, of_rows.active),
        given,
    )


def calc_rows_of_step(
    model: MultibodyModel,
    terms: ForwardDynamicsTerms,
    diagonal: Float[Array, " nv"],
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
) -> ConstraintRows:
    """Constraint rows of the discrete plant; `diagonal` of M with implicit dissipation scales the rigid rows."""
    of_rows, dt = calc_terms_of_rows(model, terms, q, v), model.time_step
    stiffness, damping, spring = spring_constants(model)
    near_rigid = NEAR_RIGID * estimate_responses(model, of_rows.G, diagonal)
    k = jnp.where(spring, stiffness, 1.0)
    R_of_spring = 1.0 / (dt * (dt * k + damping))
    is_rigid = ~spring | (R_of_spring < near_rigid)
    R = jnp.where(is_rigid, near_rigid, R_of_spring)
    dissipation_time = jnp.where(is_rigid, dt, damping / k)
    v_hat = -of_rows.error / (dt + dissipation_time)
    return ConstraintRows(
        of_rows.G, R, (v_hat - of_rows.velocity_error) / dt, of_rows.active, jnp.zeros_like(of_rows.error)
    )


def calc_terms_of_rows(
    model: MultibodyModel, terms: ForwardDynamicsTerms, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> ConstraintTerms:
    """Errors, Jacobian and bias of all rows; columns of locked velocities are zero."""
    of_rows = calc_constraint_terms(model, constraint_rows(model), terms.position, terms.velocity, q, v)
    return of_rows._replace(G=jnp.where(terms.locked, 0.0, of_rows.G))


def spring_constants(
    model: MultibodyModel,
) -> tuple[Float[Array, " nc"], Float[Array, " nc"], Bool[np.ndarray, "nc ..."]]:
    """Stiffness and damping of each row, 0 for a rigid row; and a mask of the rows of springs."""
    constraints = constraint_rows(model).constraints
    springs = [is_spring(c) for c in model.constraints]
    nothing = jnp.zeros_like(model.parameters.time_step)
    stiffness, damping = (
        per_row(
            model, constraints, [getattr(c, x) if s else nothing for c, s in zip(constraints, springs, strict=True)]
        )
        for x in ("stiffness", "damping")
    )
    flags = np.repeat(np.array(springs, bool), [c.num_rows for c in constraints])
    return stiffness, damping, flags.reshape(-1, *(1 for _ in range(model.num_world_axes)))


def solve_with_rows(
    model: MultibodyModel, terms: ForwardDynamicsTerms, rows: ConstraintRows
) -> tuple[Float[Array, " nv"], Float[Array, " nc"]]:
    """Solves for vdot and all λ, including the forces of springs."""
    constrained = ConstrainedDynamicsTerms(
        position=terms.position,
        inertia_W=terms.inertia_W,
        motion=terms.motion,
        tau=terms.tau + transposed_matrix_vector(rows.G, rows.given),
        F_applied_T=terms.F_applied_T,
        diagonal=terms.diagonal,
        locked=terms.locked,
        G=rows.G,
        rhs=rows.rhs,
        active=rows.active,
        regularization=rows.R,
    )
    result = calc_constrained_dynamics(model.topology, Direct(), constrained)
    return result.vdot, result.multipliers + rows.given


def estimate_responses(
    model: MultibodyModel, G: Float[Array, "nc nv"], diagonal: Float[Array, " nv"]
) -> Float[Array, " nc"]:
    """Response |W| / n of each row in 1/kg or 1/(kg m²), over the n rows of its constraint; W = G diag⁻¹ Gᵀ.

    M is taken as diagonal (Castro et al. 2022, sec. V); the norm is Frobenius's.
    """
    sizes = [c.num_rows for c in constraint_rows(model).constraints]
    owner = np.repeat(np.arange(len(sizes)), sizes)
    together = owner[:, None] == owner[None, :]
    columns = ca.transpose(G)
    W = products_of_columns(columns / diagonal[:, None], columns)
    squares = jnp.where(together.reshape(*together.shape, *(1 for _ in W.shape[2:])), W * W, 0.0)
    per_constraint = dot_with_mask(jnp.sum(squares, axis=1), together, 0)
    count = np.repeat(np.array(sizes, G.dtype), sizes).reshape(-1, *(1 for _ in W.shape[2:]))
    return safe_sqrt(per_constraint) / count
