"""Impacts: the jump of v, and the constraint impulses that cause it."""

from collections.abc import Iterator

import equinox as eqx
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from mbjax.array_types import Positions, Scalar, Velocities
from mbjax.execution import takes_model_first
from mbjax.kinematics import calc_position_kinematics, for_worlds_of
from mbjax.linear_algebra import matrix_vector
from mbjax.model import MultibodyModel, as_coordinates, zero_where_locked
from mbjax.number_rules import FINITE, checked_numbers

from .bound_constraint_set import BoundConstraintSet, require_bound_set
from .constrained_dynamics import ConstrainedDynamicsResult, calc_constrained_dynamics, terms_at_rest
from .constraint_kinematics import calc_constraint_terms
from .contact_derivatives import are_contacts
from .contact_motion import contact_impulse_derivatives, with_contact_derivatives
from .solvers.abstract_solver import AbstractConstraintSolver
from .solvers.checked_solver import checked_solver
from .solvers.direct import Direct


class ConstraintImpulses(eqx.Module):
    """Velocity after an impact, and the impulses; `v, impulse = …` unpacks the two.

    Λ acts on the successor of each constraint, in N s or N m s by row. `num_redundant` active rows depend on others;
    `residual` is the largest |G v - v_plus| in m/s or rad/s.
    """

    v: Velocities
    impulse: Float[Array, " nc"]
    num_redundant: Int[Array, ""]
    residual: Scalar

    def __iter__(self) -> Iterator[Array]:
        return iter((self.v, self.impulse))


@takes_model_first
def constraint_impulses(
    model: MultibodyModel,
    cset: BoundConstraintSet,
    q: Positions,
    v_minus: Velocities,
    v_plus: ArrayLike | None = None,
    solver: AbstractConstraintSolver | None = None,
) -> ConstraintImpulses:
    """Velocity v and impulses Λ of an impact: M (v - v_minus) = Gᵀ Λ, G v = v_plus.

    `v_plus` is the rate of each row right after the impact: one number a row, or one for all; the constraints' own if
    none is given. Restitution with coefficient e is `v_plus = -e * constraints_velocity_error(model, cset, q,
    v_minus)`. The impact takes no time, so other forces have no effect. Locked joints stay at rest. The solver is
    `Direct()` if none is given. RBDL's ComputeConstraintImpulses….

    For contacts alone that use their own `v_plus`, Jacobians by q and v_minus are closed forms.
    """
    require_bound_set("constraint_impulses", cset, model)
    chosen = checked_solver("constraint_impulses", solver)
    q = as_coordinates("q", q, model.num_positions, model.dtype)
    v_minus = as_coordinates("v_minus", v_minus, model.num_velocities, model.dtype)
    if v_plus is not None:
        rows = (cset.num_rows,)
        v_plus = checked_numbers("constraint_impulses", "v_plus", v_plus, FINITE, rows, is_repeated=True)
        v_plus = jnp.broadcast_to(jnp.asarray(v_plus, model.dtype), rows)
    if solver is None and v_plus is None and are_contacts(cset):
        result = with_contact_derivatives(impulses_by_default, contact_impulse_derivatives, model, cset, q, v_minus)
    else:
        result = for_worlds_of(_constraint_impulses, model, cset, q, v_minus, v_plus, chosen)
    change, impulse, num_redundant, residual = result
    v = zero_where_locked(model, v_minus) + change
    return ConstraintImpulses(v, impulse, num_redundant.astype(jnp.int32), residual)


def impulses_by_default(
    model: MultibodyModel, cset: BoundConstraintSet, q: Array, v_minus: Array
) -> ConstrainedDynamicsResult:
    """Change of velocity and impulses by the set's own `v_plus`, differentiated as they stand."""
    return for_worlds_of(_constraint_impulses, model, cset, q, v_minus, None, Direct())


def _constraint_impulses(
    model: MultibodyModel,
    cset: BoundConstraintSet,
    q: Array,
    v_minus: Array,
    v_plus: Array | None,
    solver: AbstractConstraintSolver,
) -> ConstrainedDynamicsResult:
    position = calc_position_kinematics(model, q)
    rows = calc_constraint_terms(model, cset, position, None, q, None)
    after = rows.v_plus if v_plus is None else v_plus
    rhs = after - matrix_vector(rows.G, zero_where_locked(model, v_minus))
    terms = terms_at_rest(model, position, rows.G, rhs, rows.active)
    return calc_constrained_dynamics(model.topology, solver, terms)
