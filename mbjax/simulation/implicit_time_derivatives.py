"""The continuous plant in implicit form: 0 = r(x, u; ẋ)."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.array_types import Accelerations, Positions
from mbjax.dynamics import calc_inverse_dynamics
from mbjax.execution import call_compiled
from mbjax.kinematics import velocity_to_qdot
from mbjax.linear_algebra import transposed_matrix_vector
from mbjax.model import MultibodyModel, as_coordinates

from .constraint_rows import calc_rows_now, solve_with_rows
from .ports import Inputs, as_inputs
from .state import State, as_state, require_rigid_bodies_alone
from .time_derivatives import calc_terms_now, require_compliant_pairs


def implicit_time_derivatives_residual(
    model: MultibodyModel, state: State, qdot: Positions, vdot: Accelerations, inputs: Any = None
) -> Float[Array, " nq+nv"]:
    """Residual [qdot - N(q) v, M vdot + C v - all forces]: zero where `time_derivatives` is (qdot, vdot).

    No system is solved unless there are constraints, whose forces are those of `time_derivatives`. The entry of a
    locked velocity is its acceleration. Drake's CalcImplicitTimeDerivativesResidual.
    """
    state = as_state(model, state)
    require_rigid_bodies_alone(model, "implicit_time_derivatives_residual", "take mbjax.step, which moves their nodes")
    require_compliant_pairs(model)
    qdot = as_coordinates("qdot", qdot, model.num_positions, model.dtype)
    vdot = as_coordinates("vdot", vdot, model.num_velocities, model.dtype)
    return call_compiled(_residual, model, state, qdot, vdot, as_inputs(model, inputs))


def _residual(model: MultibodyModel, state: State, qdot: Array, vdot: Array, inputs: Inputs) -> Float[Array, " nq+nv"]:
    terms, _, _ = calc_terms_now(model, state, inputs)
    tau = terms.tau
    if model.constraints:
        rows = calc_rows_now(model, terms, state.q, state.v)
        tau = tau + transposed_matrix_vector(rows.G, solve_with_rows(model, terms, rows)[1])
    required = calc_inverse_dynamics(terms.motion, vdot, terms.F_applied_T) + terms.diagonal * vdot
    of_v = jnp.where(terms.locked, vdot, required - tau)
    return jnp.concatenate([qdot - velocity_to_qdot(model, state.q, state.v), of_v])
