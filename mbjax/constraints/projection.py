"""Removes drift: moves a state that nearly satisfies the constraints onto them, in the metric of kinetic energy."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.array_types import Positions, Velocities
from mbjax.execution import takes_model_first
from mbjax.execution.arrays import scan
from mbjax.kinematics import calc_position_kinematics, for_worlds_of, integrate_configuration
from mbjax.linear_algebra import matrix_vector
from mbjax.model import MultibodyModel, as_coordinates, zero_where_locked

from .assembly_problem import rows_with_position
from .bound_constraint_set import BoundConstraintSet, require_bound_set
from .constrained_dynamics import calc_constrained_dynamics, terms_at_rest
from .constraint_kinematics import calc_constraint_terms
from .solvers.direct import Direct

NEWTON_STEPS = 2  # enough to take an error of 1e-4 to rounding


@takes_model_first
def project_onto_constraints(
    model: MultibodyModel, cset: BoundConstraintSet, q: Positions, v: Velocities
) -> tuple[Positions, Velocities]:
    """Projects (q, v) onto the constraints, with the least changes in the metrics dqᵀ M dq and dvᵀ M dv.

    It is meant for states with small errors, as after a step of integration. Two Newton steps change q, so a small
    error may remain. One linear system then changes v, as an inelastic impact does. Rows that constrain velocities only
    leave q alone. To start from far away use `assembly_q` and `assembly_qdot`. Differentiable, and batched like the
    dynamics.
    """
    require_bound_set("project_onto_constraints", cset, model)
    q = as_coordinates("q", q, model.num_positions, model.dtype)
    v = as_coordinates("v", v, model.num_velocities, model.dtype)
    return for_worlds_of(calc_projection, model, cset, q, v)


def calc_projection(
    model: MultibodyModel, cset: BoundConstraintSet, q: Float[Array, "nq *w"], v: Float[Array, "nv *w"]
) -> tuple[Float[Array, "nq *w"], Float[Array, "nv *w"]]:
    """Projects the positions first, then the velocities at the new positions."""
    has_position = rows_with_position(cset)
    in_position = has_position.reshape(-1, *(1 for _ in range(model.num_world_axes)))

    def advance(qv: tuple[Array, Array], moves_q: Array) -> tuple[tuple[Array, Array], None]:
        """Solves one linear system: a Newton step of q or, in the last round, the change of v."""
        q, v = qv
        position = calc_position_kinematics(model, q)
        rows = calc_constraint_terms(model, cset, position, None, q, None)
        rhs = jnp.where(moves_q, -rows.error, -matrix_vector(rows.G, v))
        active = jnp.where(moves_q & ~in_position, 0.0, rows.active)
        terms = terms_at_rest(model, position, rows.G, rhs, active)
        change = calc_constrained_dynamics(model.topology, Direct(), terms).vdot
        moved = integrate_configuration(model, q, jnp.where(moves_q, change, 0.0))
        return (jnp.where(moves_q, moved, q), jnp.where(moves_q, v, v + change)), None

    steps = NEWTON_STEPS if any(has_position) else 0
    rounds = jnp.arange(steps + 1) < steps
    start = q, zero_where_locked(model, v)
    after, _ = jax.eval_shape(advance, start, rounds[0])  # `after` has every axis of worlds of the inputs
    start = jax.tree.map(lambda x, like: jnp.broadcast_to(x, like.shape), start, after)
    qv, _ = scan(advance, start, rounds)
    return qv
