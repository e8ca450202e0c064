"""A guess that stands still: the efforts that hold each state, as well as they can."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from mbjax.linear_algebra import cholesky, cholesky_solve
from mbjax.model import MultibodyModel
from mbjax.simulation import State

from .effort_rate import WithLastEffort
from .feasibility_ddp import clipped
from .problem import Problem, dtype_of, num_efforts, prepared, require_states, times_of
from .states import difference_states, parts_of, size_of_part

TURNS = 12
DAMPING = 1e-8  # of the squares of the slopes, so that efforts that do nothing stay as they are


def quasi_static(problem: Problem, states: Any = None) -> tuple[Any, Float[Array, "steps nu"]]:
    """A guess for `solve`: states at rest, and the efforts under which a step moves each of them least.

    `states` are num_steps + 1 of them, the start at all times by default; their velocities become zero. The efforts
    are the least squares of what a step changes, contacts of its stage included, and within limits. Of states that are
    pytrees only the `State`s are to stay, if there are any. Lengths of steps, as in `FreeSteps`, are the shortest. An
    arm that holds itself up and a robot on its feet do not move at all; what falls whatever it does falls slowest.
    Raises `ModelError` for states of other shapes.
    """
    problem = prepared(problem)
    if states is None:
        states = jax.tree.map(lambda x: jnp.repeat(jnp.asarray(x)[None], problem.num_steps + 1, axis=0), problem.start)
    require_states("quasi_static", problem, states)
    rest = jax.tree.map(at_rest, states, is_leaf=lambda part: isinstance(part, State))
    efforts = holding_efforts(problem, rest)
    if isinstance(problem.dynamics, WithLastEffort):
        state, before = rest
        rest = state, jnp.concatenate([before[:1], efforts])
    return times_of(problem, rest, efforts), efforts


def at_rest(part: Any) -> Any:
    """A `State` with no velocity; an array as it is."""
    return State(part.q, jnp.zeros_like(part.v), part.time) if isinstance(part, State) else part


@eqx.filter_jit
def holding_efforts(problem: Problem, states: Any) -> Float[Array, "steps nu"]:
    """Efforts of every step, by Gauss and Newton's method with a little damping, which the turns undo."""
    nu, dtype = num_efforts(problem), dtype_of(problem)
    start = clipped(problem, jnp.zeros((problem.num_steps, nu), dtype))

    def one(x: Any, start: Array, stage: Any) -> Array:
        held, pushes = are_held(problem.model, x), ~are_lengths(problem, start)

        def change(effort: Array) -> Array:
            return jnp.where(held, difference_states(problem.model, x, problem.next_state(x, effort, stage)), 0.0)

        def turn(effort: Array, _: None) -> tuple[Array, None]:
            J = jnp.where(pushes, jax.jacfwd(change)(effort), 0.0)
            H = J.T @ J
            damping = DAMPING * jnp.max(jnp.diagonal(H)) + jnp.finfo(H.dtype).tiny
            factor = cholesky(H + damping * jnp.eye(nu, dtype=H.dtype))
            return effort - cholesky_solve(factor, (J.T @ change(effort))[:, None])[:, 0], None

        return jax.lax.scan(turn, start, None, length=TURNS)[0]

    before, stages = (jax.tree.map(lambda x: x[:-1], tree) for tree in (states, problem.stages))
    return clipped(problem, jax.vmap(one)(before, start, stages))


def are_held(model: MultibodyModel | None, x: Any) -> np.ndarray:
    """Which components of a state's tangent are to stay: those of `State`s, or all where there are none."""
    parts = parts_of(x)
    is_held = [isinstance(part, State) for part in parts]
    sizes = [size_of_part(model, part) for part in parts]
    return np.repeat(is_held if any(is_held) else np.ones(len(parts), bool), sizes)


def are_lengths(problem: Problem, effort: Float[Array, " nu"]) -> Bool[Array, " nu"]:
    """Which efforts are lengths of steps, as in `FreeSteps`."""
    if not hasattr(problem.dynamics, "step_length"):
        return jnp.zeros(effort.shape, bool)
    return jax.grad(lambda u: jnp.asarray(problem.step_length(u), u.dtype))(effort) != 0.0
