"""Linear quadratic regulator: the optimal feedback about a state at rest."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.model import MultibodyModel, as_coordinates
from mbjax.number_rules import is_known
from mbjax.simulation import State, step
from mbjax.simulation.state import as_state
from mbjax.trajectory_optimization import difference_states, linearize

from .actuated_trees import gain_matrix
from .discrete_models import require_discrete_model
from .riccati import discrete_riccati, optimal_gain, require_solution


class Regulator(eqx.Module):
    """The feedback u = effort - K dx about a state, with dx = (dq, dv) the tangent from it to the state that is met.

    `cost_to_go` P says what remains to be paid, dxᵀ P dx.
    """

    model: MultibodyModel
    state: State
    effort: Float[Array, " nu"]
    K: Float[Array, "nu ndx"]
    cost_to_go: Float[Array, "ndx ndx"]

    def __call__(self, state: State) -> Float[Array, " nu"]:
        """Efforts (nu,) at a state, in N m or N; for `rollout(model, start, regulator, num_steps)`."""
        return self.effort - self.K @ difference_states(self.model, self.state, state)


def lqr(model: MultibodyModel, state: State, effort: Any, Q: Any, R: Any) -> Regulator:
    """The optimal feedback about a `state` at rest under an `effort` (nu,), of a discrete model.

    It minimizes the sum of dxᵀ Q dx + duᵀ R du over all steps to come (Anderson and Moore 1990, "Optimal Control",
    chapter 2), with dx' = A dx + B du of `trajectory_optimization.linearize`. Q is a number, (2 nv,) or (2 nv, 2 nv),
    positions first, along tangents: a free body's are a rotation vector and a translation. R is a number, (nu,) or
    (nu, nu). Raises `ModelError` where the state is not at rest under the effort, or nothing stabilizes it.
    """
    require_discrete_model("lqr", model)
    state = as_state(model, state)
    effort = as_coordinates("effort", effort, model.num_actuators, model.dtype)
    Q = gain_matrix("Q", Q, 2 * model.num_velocities, model.dtype)
    R = gain_matrix("R", R, model.num_actuators, model.dtype)
    require_rest(model, state, effort)
    A, B = linearize(model, state, effort)
    P = discrete_riccati(A, B, Q, R)
    require_solution("lqr", P)
    return Regulator(model, state, effort, optimal_gain(A, B, R, P), P)


def require_rest(model: MultibodyModel, state: State, effort: Array) -> None:
    """Raises `ModelError` where a step leaves the state, if the numbers are known."""
    if not is_known(model, state, effort):
        return
    moved = np.abs(difference_states(model, state, step(model, state, effort)[0]))
    dt, nv = float(model.time_step), model.num_velocities
    speed, acceleration = moved[:nv] / dt, moved[nv:] / dt
    allowed = 1e-6 if model.dtype == jnp.float64 else 1e-2
    if max(speed.max(initial=0.0), acceleration.max(initial=0.0)) <= allowed:
        return
    worst = int(np.argmax(acceleration if acceleration.max() > allowed else speed))
    raise ModelError(
        f"lqr: the state is not at rest under the effort: '{model.velocity_names()[worst]}' moves at "
        f"{speed[worst]:.3g} and accelerates at {acceleration[worst]:.3g} (SI). Give the effort that holds it, such as "
        "controllers.gravity_compensation(model, q), or use controllers.time_varying_lqr along a trajectory."
    )
