"""A guess that stands still: the efforts that hold each state, as well as they can."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.linear_algebra import cholesky, cholesky_solve
from mbjax.simulation import State

from .feasibility_ddp import clipped
from .problem import Problem, dtype_of, num_efforts, prepared, times_of
from .states import difference_states

TURNS = 12
DAMPING = 1e-8  # of the squares of the slopes, so that efforts that do nothing stay zero


def quasi_static(problem: Problem, states: Any = None) -> tuple[Any, Float[Array, "steps nu"]]:
    """A guess for `solve`: states at rest, and the efforts under which a step moves each of them least.

    `states` are num_steps + 1 of them, the start at all times by default; their velocities become zero. The efforts
    are the least squares of what a step changes, contacts of its stage included, and within limits. An arm that holds
    itself up and a robot on its feet do not move at all; what falls whatever it does falls slowest.
    """
    problem = prepared(problem)
    if states is None:
        states = jax.tree.map(lambda x: jnp.repeat(jnp.asarray(x)[None], problem.num_steps + 1, axis=0), problem.start)
    rest = jax.tree.map(at_rest, states, is_leaf=lambda part: isinstance(part, State))
    efforts = holding_efforts(problem, rest)
    return times_of(problem, rest, efforts), efforts


def at_rest(part: Any) -> Any:
    """A `State` with no velocity; an array as it is."""
    return State(part.q, jnp.zeros_like(part.v), part.time) if isinstance(part, State) else part


@eqx.filter_jit
def holding_efforts(problem: Problem, states: Any) -> Float[Array, "steps nu"]:
    """Efforts of every step, by Gauss and Newton's method with a little damping, which the turns undo."""
    zero = jnp.zeros(num_efforts(problem), dtype_of(problem))

    def one(x: Any, stage: Any) -> Array:
        def change(effort: Array) -> Array:
            return difference_states(problem.model, x, problem.next_state(x, effort, stage))

        def turn(effort: Array, _: None) -> tuple[Array, None]:
            J = jax.jacfwd(change)(effort)
            H = J.T @ J
            damping = DAMPING * jnp.max(jnp.diagonal(H)) + jnp.finfo(H.dtype).tiny
            factor = cholesky(H + damping * jnp.eye(len(effort), dtype=H.dtype))
            return effort - cholesky_solve(factor, (J.T @ change(effort))[:, None])[:, 0], None

        return jax.lax.scan(turn, zero, None, length=TURNS)[0]

    before, stages = (jax.tree.map(lambda x: x[:-1], tree) for tree in (states, problem.stages))
    return clipped(problem, jax.vmap(one)(before, stages))
