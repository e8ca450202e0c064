"""Linear quadratic regulator: the optimal feedback about a state at rest."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.model import MultibodyModel, as_coordinates, locked_velocities
from mbjax.number_rules import is_known
from mbjax.simulation import State, step
from mbjax.simulation.state import as_state
from mbjax.trajectory_optimization import difference_states, linearize

from .actuated_trees import cost_matrix
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
    (nu, nu). Of matrices the symmetric part counts; Q is positive semidefinite and R positive definite. Locked joints
    rest: they cost nothing, and K has zeros for them. Raises `ModelError` where the state is not at rest under the
    effort, where nothing stabilizes it, and where Q does not see a motion that then goes on or grows.
    """
    require_discrete_model("lqr", model)
    state = as_state(model, state)
    effort = as_coordinates("effort", effort, model.num_actuators, model.dtype)
    Q = cost_matrix("lqr: Q", Q, 2 * model.num_velocities, model.dtype)
    R = cost_matrix("lqr: R", R, model.num_actuators, model.dtype, is_positive=True)
    require_rest(model, state, effort)
    A, B = linearize(model, state, effort)
    A, B, Q = free_motion(model, A, B, Q)
    P = discrete_riccati(A, B, Q, R)
    require_solution("lqr", P)
    K = optimal_gain(A, B, R, P)
    require_stable(model, A, B, K)
    return Regulator(model, state, effort, K, P)


def free_motion(model: MultibodyModel, A: Array, B: Array, Q: Array) -> tuple[Array, Array, Array]:
    """A, B and Q with zeros for locked joints, whose positions would else cost for ever what no effort can change."""
    locked = jnp.tile(locked_velocities(model), 2)
    either = locked[:, None] | locked
    return jnp.where(either, 0.0, A), jnp.where(locked[:, None], 0.0, B), jnp.where(either, 0.0, Q)


def require_stable(model: MultibodyModel, A: Array, B: Array, K: Array) -> None:
    """Raises `ModelError` where a mode under the feedback does not decay, if the numbers are known."""
    if not is_known(A, B, K):
        return
    modes, vectors = np.linalg.eig(np.asarray(A - B @ K))
    worst = int(np.argmax(np.abs(modes)))
    if np.abs(modes[worst]) < 1.0 - 100.0 * float(jnp.finfo(model.dtype).eps):
        return
    place = int(np.argmax(np.abs(vectors[:, worst])))
    kind, names = ("position", "velocity")[place // model.num_velocities], model.velocity_names()
    raise ModelError(
        f"lqr: Q does not see a motion, mostly of the {kind} of '{names[place % model.num_velocities]}', which the "
        f"cheapest feedback lets go on: in each step it is multiplied by {np.abs(modes[worst]):.4g}. Give it a cost "
        "above 0 in Q."
    )


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
