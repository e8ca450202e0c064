"""Time-varying linear quadratic regulator: the optimal feedback along a trajectory."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.execution import call_compiled
from mbjax.model import MultibodyModel
from mbjax.simulation import State
from mbjax.trajectory_optimization import difference_states, linearize

from .actuated_trees import cost_matrix
from .discrete_models import require_discrete_model
from .riccati import optimal_gain


class TrajectoryRegulator(eqx.Module):
    """The feedback u = efforts[k] - K[k] dx of each step k along a trajectory; the last is kept after its end.

    `cost_to_go` P[k] says what remains to be paid from step k on, dxᵀ P[k] dx.
    """

    model: MultibodyModel
    states: State
    efforts: Float[Array, "steps nu"]
    K: Float[Array, "steps nu ndx"]
    cost_to_go: Float[Array, "steps_and_end ndx ndx"]

    def __call__(self, state: State) -> Float[Array, " nu"]:
        """Efforts (nu,) at a state, in N m or N, of the step that its time tells."""
        started = (state.time - self.states.time[0]) / self.model.time_step
        k = jnp.clip(jnp.round(started).astype(int), 0, len(self.efforts) - 1)
        return self.at(k, state)

    def at(self, k: Any, state: State) -> Float[Array, " nu"]:
        """Efforts (nu,) at a state of step k."""
        nominal = jax.tree.map(lambda x: x[k], self.states)
        return self.efforts[k] - self.K[k] @ difference_states(self.model, nominal, state)


def time_varying_lqr(
    model: MultibodyModel, states: Any, efforts: Any, Q: Any, R: Any, Q_end: Any = None
) -> TrajectoryRegulator:
    """The optimal feedback along a trajectory: `states` at steps + 1 times, `efforts` (steps, nu) between them.

    P[k] = Q + Aᵀ P[k+1] (A - B K[k]),    K[k] = (R + Bᵀ P[k+1] B)⁻¹ Bᵀ P[k+1] A,    P[end] = Q_end

    (Anderson and Moore 1990, "Optimal Control"), with A and B of `trajectory_optimization.linearize` at
    each step. States come from a `Trajectory`, a plan, or a `State` with a leading axis. Q, R and Q_end, which is Q by
    default, are as in `lqr`, R at least 0.
    """
    require_discrete_model("time_varying_lqr", model)
    states = State(states.q, states.v, states.time)
    efforts = jnp.asarray(efforts, model.dtype)
    if (
        efforts.ndim != 2
        or not len(efforts)
        or efforts.shape[1] != model.num_actuators
        or len(states.q) != len(efforts) + 1
    ):
        raise ModelError(
            f"time_varying_lqr: {jnp.shape(states.q)} positions and {efforts.shape} efforts; give efforts "
            f"(steps, {model.num_actuators}) with at least one step, and one more state than there are steps."
        )
    ndx = 2 * model.num_velocities
    Q = cost_matrix("time_varying_lqr: Q", Q, ndx, model.dtype)
    R = cost_matrix("time_varying_lqr: R", R, model.num_actuators, model.dtype)
    P_end = Q if Q_end is None else cost_matrix("time_varying_lqr: Q_end", Q_end, ndx, model.dtype)
    K, P = call_compiled(backward_recursion, *linearize(model, states, efforts), Q, R, P_end)
    return TrajectoryRegulator(model, states, efforts, K, P)


def backward_recursion(A: Array, B: Array, Q: Array, R: Array, P_end: Array) -> tuple[Array, Array]:
    """Gains of all steps and costs to go, from the end backward."""

    def earlier(P: Array, step: tuple[Array, Array]) -> tuple[Array, tuple[Array, Array]]:
        A, B = step
        K = optimal_gain(A, B, R, P)
        P = Q + A.T @ P @ (A - B @ K)
        P = 0.5 * (P + P.T)
        return P, (K, P)

    _, (K, P) = jax.lax.scan(earlier, P_end, (A, B), reverse=True)
    return K, jnp.concatenate([P, P_end[None]])
