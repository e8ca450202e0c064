"""Drift taken out: a state that nearly satisfies the constraints, moved onto them in the metric of kinetic energy."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from mbjax.array_types import Positions, Velocities
from mbjax.dynamics import calc_reflected_inertia
from mbjax.dynamics.newton_euler import TreeMotion, calc_inertia_in_world
from mbjax.kinematics import PositionKinematics, as_coordinates, calc_position_kinematics, integrate_configuration
from mbjax.linear_algebra import matrix_vector
from mbjax.model import MultibodyModel, locked_velocities, zero_where_locked
from mbjax.worlds import for_worlds

from .assembly_problem import rows_with_position
from .bound_constraint_set import BoundConstraintSet
from .constrained_dynamics import ConstrainedDynamicsTerms, calc_constrained_dynamics
from .constraint_kinematics import ConstraintTerms, calc_constraint_terms
from .solvers import Direct

NEWTON_STEPS = 2  # an error of 1e-4 is at rounding after them


def project_onto_constraints(
    model: MultibodyModel, cset: BoundConstraintSet, q: Positions, v: Velocities
) -> tuple[Positions, Velocities]:
    """(q, v) with no error, or very little: the least change dq, dv in dqᵀ M dq and dvᵀ M dv.

    For states that are nearly right, as after a step of integration; two Newton steps on q, then one linear system
    for v, which is what an inelastic impact does. Rows that constrain velocities only leave q alone. To start from
    far away use `assembly_q` and `assembly_qdot`. Differentiable, and batched like the dynamics.
    """
    cset.require_model(model)
    q = as_coordinates("q", q, model.num_positions, model.dtype)
    v = as_coordinates("v", v, model.num_velocities, model.dtype)
    return for_worlds(calc_projection, model, cset, q, v)


def calc_projection(
    model: MultibodyModel, cset: BoundConstraintSet, q: Float[Array, "nq *w"], v: Float[Array, "nv *w"]
) -> tuple[Float[Array, "nq *w"], Float[Array, "nv *w"]]:
    """Positions first, then velocities there."""
    v = zero_where_locked(model, v)
    have_position = rows_with_position(cset).reshape(-1, *(1 for _ in range(model.num_world_axes)))

    def newton_step(q: Array, _: None) -> tuple[Array, None]:
        position, rows = calc_rows_at(model, cset, q)
        active = jnp.where(have_position, rows.active, 0.0)
        return integrate_configuration(model, q, calc_change(model, position, rows, -rows.error, active)), None

    if any(rows_with_position(cset)):
        q, _ = lax.scan(newton_step, q, length=NEWTON_STEPS)
    position, rows = calc_rows_at(model, cset, q)
    return q, v + calc_change(model, position, rows, -matrix_vector(rows.G, v), rows.active)


def calc_rows_at(
    model: MultibodyModel, cset: BoundConstraintSet, q: Array
) -> tuple[PositionKinematics, ConstraintTerms]:
    """Poses, errors and G."""
    position = calc_position_kinematics(model, q)
    return position, calc_constraint_terms(model, cset, position, None, q, None)


def calc_change(
    model: MultibodyModel, position: PositionKinematics, rows: ConstraintTerms, rhs: Array, active: Array
) -> Float[Array, "nv *w"]:
    """x with M x = Gᵀ Λ and G x = rhs."""
    terms = ConstrainedDynamicsTerms(
        position=position,
        motion=TreeMotion(position.S_T, position.p_TM_W, calc_inertia_in_world(model, position), None, None),
        tau=model.zeros(model.num_velocities),
        F_applied_T=None,
        diagonal=calc_reflected_inertia(model),
        locked=locked_velocities(model),
        G=rows.G,
        rhs=rhs,
        active=active,
    )
    return calc_constrained_dynamics(model.topology, Direct(), terms).vdot
